"""A run on a terminal: a bar, what every processor does, and when it will end."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from foreplan.display.screens import Screen
from foreplan.display.view import View, Work, amounts, clock, look
from foreplan.files import clean
from foreplan.model import Money, affordable
from foreplan.quantities import with_needs

if TYPE_CHECKING:
    from foreplan.model.events import TaskFinished
    from foreplan.runs import Session

MOST_ROWS = 16  # more processors are only counted


class LiveScreen(Screen):
    """Messages go by above; the picture stays below and is gone in the end."""

    def __init__(self, console: Console) -> None:
        super().__init__(console.file)
        self.console = console
        self._live: Live | None = None

    def say(self, message: str, style: str = "") -> None:
        """One line above the picture."""
        self.console.print(Text(message, style=style))

    def update(self, session: Session, finished: list[TaskFinished]) -> None:
        """Draw the run as it is now."""
        drawn = picture(look(session), session.header.workflow.name, self.console.height)
        if self._live is None:
            # standard output is not this screen's to redirect: it may be a program's, and a pipe
            self._live = Live(
                drawn,
                console=self.console,
                auto_refresh=False,
                transient=True,
                redirect_stdout=False,
            )
            self._live.start(refresh=True)
        else:
            self._live.update(drawn, refresh=True)

    def close(self) -> None:
        """Take the picture away, and give the cursor back."""
        if self._live is not None:
            self._live.stop()
            self._live = None


def picture(view: View, name: str, height: int = 25) -> RenderableType:
    """The run at one moment."""
    failed = view.failed > 0
    bar = ProgressBar(
        total=max(1, view.total),
        completed=view.done,
        width=40,
        complete_style="red" if failed else "cyan",
        finished_style="green",
    )
    head = Table.grid(padding=(0, 1))
    head.add_row(
        Text(clean(name), style="bold"), bar, Text(f"{view.done / max(1, view.total):.0%}")
    )
    parts: list[RenderableType] = [head, _counts(view), _times(view)]
    if view.money is not None:
        parts.append(_money(view.money, view.budget))
    room = height - 3 - len(parts)  # lines
    if len(view.work) <= min(MOST_ROWS, room):
        parts.append(_processors(view))
        room -= len(view.work)
    else:
        there = sum(work.present for work in view.work)
        busy = sum(work.task is not None for work in view.work)
        parts.append(Text(f"{busy} of {there} processors are at work"))
    if view.next and len(view.next) < room:
        parts.append(_next(view))
    return Group(*parts)


def _counts(view: View) -> Text:
    text = Text()
    for count, word, style in (
        (view.done - view.reused, "done", "green"),
        (view.reused, "up to date", "green"),
        (view.running, "running", "cyan"),
        (view.waiting, f"waiting{_ready(view)}", "dim"),
        (view.failed, "given up", "bold red"),
    ):
        if count or word not in ("given up", "up to date"):
            text.append(f"{count:,} {word}   ", style=style)
    return text


def _ready(view: View) -> str:
    return f", {view.ready:,} of them ready" if view.ready else ""


def _next(view: View) -> Text:
    """The tasks that wait, a line each, and what for."""
    lines = [f"{clean(task)} {clean(reason)}" for task, reason in view.next]
    return Text("\n".join(lines), style="dim", no_wrap=True, overflow="ellipsis")


def _times(view: View) -> Text:
    text = Text(view.times())
    if math.isfinite(view.deadline):
        late = max(view.now, view.projected or 0.0) > view.deadline
        text.append(f", deadline {clock(view.deadline)}", style="bold red" if late else "")
    return text


def _money(money: Money, budget: float) -> Text:
    over = not affordable(money.projected, budget)  # nor is what nobody knows
    style = "bold red" if over and math.isfinite(money.projected) else ""
    return Text(amounts(money, budget), style=style)


def _processors(view: View) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(no_wrap=True, overflow="ellipsis")
    table.add_column(justify="right", no_wrap=True)
    table.add_column(justify="right", no_wrap=True, style="cyan")
    for work in view.work:
        table.add_row(Text(clean(work.processor)), *_doing(work, view.now))
    return table


def _doing(work: Work, now: float) -> tuple[Text, Text, Text]:
    """The task, how long it has run, and how much of it is done if it says so."""
    if work.task is None:
        return Text("-" if work.present else "gone", style="dim"), Text(""), Text("")
    if work.cores == 0:
        return Text(clean(work.task), style="dim"), Text(""), Text("")
    share = "" if work.progress is None else f"{work.progress:.0%}"
    return (
        Text(with_needs(clean(work.task), work.cores, 0.0)),
        Text(clock(max(0.0, now - work.since))),
        Text(share),
    )
