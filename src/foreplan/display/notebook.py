"""A run in a notebook: one output that changes while the run goes on."""

from __future__ import annotations

import math
import sys
from html import escape
from typing import TYPE_CHECKING, Any

from foreplan.display.screens import Screen
from foreplan.display.view import View, Work, amounts, clock, look
from foreplan.files import clean
from foreplan.quantities import with_needs

if TYPE_CHECKING:
    from foreplan.model.events import TaskFinished
    from foreplan.runs import Session

MOST_ROWS = 16  # more processors are only counted
LAST = 8  # lines of what was said that are kept


def in_notebook() -> bool:
    """Whether a kernel runs this program; nothing is imported to find out."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


class NotebookScreen(Screen):
    """The bar, the processors, and the last lines that were said; in the end no processors."""

    def __init__(self) -> None:
        super().__init__(sys.stderr)
        self._said: list[tuple[str, str]] = []
        self._name = ""
        self._view: View | None = None
        self._handle: Any = None
        self._drawn, self._ended = "", False

    def say(self, message: str, style: str = "") -> None:
        """A line below the picture."""
        self._said.append((message, style))
        self._draw()

    def update(self, session: Session, finished: list[TaskFinished]) -> None:
        """Draw the run as it is now."""
        self._name, self._view = session.header.workflow.name, look(session)
        self._draw()

    def close(self) -> None:
        """The processors are not shown any more."""
        self._ended = True
        self._draw()

    def _draw(self) -> None:
        from IPython.display import HTML, display

        drawn = html_of(self._view, self._name, self._said, self._ended)
        if drawn == self._drawn:
            return
        self._drawn = drawn
        if self._handle is None:
            self._handle = display(HTML(drawn), display_id=True)
        else:
            self._handle.update(HTML(drawn))


def html_of(view: View | None, name: str, said: list[tuple[str, str]], ended: bool = False) -> str:
    """The run at one moment; the colours of text are the notebook's own."""
    parts = [] if view is None else [_bar(view, name)]
    if view is not None and not ended:
        parts += [_line(view.times() + _deadline(view))]
        parts += [] if view.money is None else [_line(amounts(view.money, view.budget))]
        parts.append(_processors(view))
    if len(said) > LAST:
        parts.append(_line(f"... {len(said) - LAST:,} lines before"))
    for message, style in said[-LAST:]:
        parts.append(_line(message, "color:#d64545" if style == "red" else ""))
    return f'<div style="line-height:1.5;max-width:60em">{"".join(parts)}</div>'


def _line(text: str, style: str = "") -> str:
    return f'<div style="white-space:pre-wrap;{style}">{escape(clean(text))}</div>'


def _bar(view: View, name: str) -> str:
    share = view.done / max(1, view.total)
    colour = "#c22f2f" if view.failed else "#2f7d4f" if share == 1 else "#1f5fa8"
    return (
        f"<div><b>{escape(clean(name))}</b> {share:.0%} &ensp; {escape(view.counts())}</div>"
        '<div style="background:#8884;height:8px;border-radius:4px;max-width:40em">'
        f'<div style="background:{colour};height:8px;border-radius:4px;width:{share:.1%}"></div>'
        "</div>"
    )


def _deadline(view: View) -> str:
    return f", deadline {clock(view.deadline)}" if math.isfinite(view.deadline) else ""


def _processors(view: View) -> str:
    if len(view.work) > MOST_ROWS:
        there = sum(work.present for work in view.work)
        busy = sum(work.task is not None for work in view.work)
        return _line(f"{busy} of {there} processors are at work")
    rows = "".join(_row(work, view.now) for work in view.work)
    return f'<table style="margin:0;color:inherit">{rows}</table>'


def _row(work: Work, now: float) -> str:
    cells = [work.processor, "-" if work.present else "gone", "", ""]
    if work.task is not None:
        cells[1] = with_needs(work.task, work.cores, 0.0) if work.cores else work.task
        if work.cores:
            cells[2] = clock(max(0.0, now - work.since))
            cells[3] = "" if work.progress is None else f"{work.progress:.0%}"
    inner = "".join(f'<td style="padding:0 .6em">{escape(clean(cell))}</td>' for cell in cells)
    return f"<tr>{inner}</tr>"
