"""`weft what-if`: what to expect if processors came or went, before anything is spent."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.expected import DataDirectory, NoHistory, On, PlatformFile, Prices, expected
from weft.cli.wording import clean, many
from weft.errors import InputError, WeftError
from weft.quantities import amount, duration, precise

if TYPE_CHECKING:
    from rich.table import Table

    from weft.whatif import Alternative, WhatIf


def what_if(
    subject: Annotated[
        str,
        typer.Argument(
            metavar="WORKFLOW|RUN",
            help="A workflow's file; or a run: its id, its beginning, or `last`.",
        ),
    ],
    platform: PlatformFile = None,
    add: Annotated[
        list[str] | None,
        typer.Option(
            help="`fast:2`: two more like the processor fast; `fast:1..10`: a table; "
            "`fast[speed=4,price=2]:2`: nearly like it; `new[speed=2]:1`: like none."
        ),
    ] = None,
    remove: Annotated[
        list[str] | None, typer.Option(help="A processor's name; `each`: each in turn.")
    ] = None,
    at: Annotated[
        float | None, typer.Option(help="When, in seconds of the run. Default: now.")
    ] = None,
    planner: Annotated[
        str | None, typer.Option(help="Who makes the new plans. Default: `heft`, or the run's own.")
    ] = None,
    on: On = None,
    price: Prices = None,
    directory: DataDirectory = Path(),
    no_history: NoHistory = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")] = False,
    plot: Annotated[Path | None, typer.Option(help="Draw it: .png or .svg.")] = None,
) -> None:
    """Ask what would happen if processors were added or lost, now or later. It changes nothing.

    Several changes are one combined change; ranges and `each` give a table. Everything goes as
    estimated, and a new plan is taken only if it ends earlier than the present one. Of a run that
    has finished, it is about the next one like it, on the machines that were there at its end.

    Example: `weft what-if wf.yaml -p cluster.yaml --add fast:1..10 --at 120 --plot add.png`
    """
    if plot is not None:
        from weft.experiments.comparison_plot import check_plot

        check_plot(plot)
    changes = {"add": add or [], "remove": remove or [], "at": at, "planner": planner}
    if Path(subject).is_file():
        answer = _of_workflow(subject, platform, on, price, directory, no_history, changes)
    else:
        if platform is not None or on is not None or price:
            raise InputError(
                f"there is no file {subject!r}; a run has its own machines: leave out -p, --on and "
                "--price"
            )
        answer = _of_run(subject, directory, no_history, changes)
    if as_json:
        print(json.dumps(answer.to_dict(), indent=1, allow_nan=False))
    else:
        show(answer)
    if plot is not None:
        from weft.experiments.what_if_plot import write_plot

        write_plot(answer, plot)
        if not as_json:
            print(f"wrote {plot}")


def _of_workflow(
    path: str,
    platform: Path | None,
    on: str | None,
    price: list[str] | None,
    directory: Path,
    no_history: bool,
    changes: dict[str, Any],
) -> WhatIf:
    from weft import api

    wf = api.load(path)
    file = None if platform is None else api.load_platform(platform)
    told = expected(path, wf, file, on, price, directory, no_history)
    return api.what_if(wf, expected=told, **changes)


def _of_run(name: str, directory: Path, no_history: bool, changes: dict[str, Any]) -> WhatIf:
    from weft import api
    from weft.journal.places import RunHome

    try:
        run = RunHome.find(directory, name).id
    except WeftError as error:
        raise InputError(f"there is no file {name!r}, and as a run: {error}") from None
    return api.what_if(run=run, dir=directory, use_history=not no_history, **changes)


def show(answer: WhatIf) -> None:
    """Print where things stand, what is expected, and the alternatives."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    console = console if console.is_terminal else Console(highlight=False, width=200)
    for line in _stand(answer):
        console.print(Text(clean(line)))
    console.print(Text(clean(_expected(answer)), style="bold"))
    console.print(_table(answer))
    if answer.knee is not None:
        console.print(Text(f"knee: after {answer.knee} the curve flattens; more of them help less"))
    for note in answer.notes:
        console.print(Text(clean(note), style="dim"))


def _stand(answer: WhatIf) -> list[str]:
    counts = answer.tasks
    if answer.status is None:
        return [f"{answer.name}: {many(sum(counts.values()), 'task')}, before the start"]
    if answer.is_next:
        return [
            f"run {answer.name} has finished: this is about the next one like it, on the machines "
            f"that it had in the end: {many(sum(counts.values()), 'task')}, before the start"
        ]
    said = [
        f"{counts['done']} done",
        f"{counts['running']} running",
        f"{counts['waiting']} waiting",
    ]
    said += [f"{counts['given_up']} given up"] if counts["given_up"] else []
    return [f"run {answer.name} ({answer.status}) at {duration(answer.now)}: {', '.join(said)}"]


def _expected(answer: WhatIf) -> str:
    present, replanned = answer.present, answer.replanned
    how = f"planner {answer.by}"
    if present.taken is None:
        how = f"{answer.by} has no plan: it is simulated to the end"
        if replanned.taken is not None:
            how = f"no plan is followed yet, the new ones are by {answer.by}"
    text = f"as it is: makespan {_seconds(present.makespan)}, cost {amount(present.cost)} ({how})"
    if replanned.makespan < present.makespan * (1 - 1e-9):
        text += f"\na new plan alone: makespan {_seconds(replanned.makespan)}"
        text += f", cost {amount(replanned.cost)}"
    return text


def _table(answer: WhatIf) -> Table:
    from rich.table import Table
    from rich.text import Text

    when = "now" if answer.at == answer.now else f"at {duration(answer.at)}"
    when = "from the start" if answer.before_start and answer.at == 0 else when
    table = Table(f"change, {when}", box=None, header_style="dim")
    for heading in ("makespan", "saves", "saves %", "cost", "more cost"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("plan")
    counts = answer.counts or [None] * len(answer.alternatives)
    for count, row in zip(counts, answer.alternatives, strict=True):
        mark = "  <- knee" if count is not None and count == answer.knee else ""
        table.add_row(Text(clean(row.change)), *_figures(answer, row), _plan(row) + mark)
    return table


def _figures(answer: WhatIf, row: Alternative) -> list[str]:
    if not math.isfinite(row.makespan):
        return ["-"] * 5
    whole, more = answer.present.makespan, row.cost - answer.present.cost
    share = f"{row.saves / whole:+.1%}" if whole > 0 and math.isfinite(whole) else "-"
    saves = _signed(_zero(row.saves, whole), partial(duration, parts=3))
    return [
        duration(row.makespan, 3),
        saves,
        share.replace("-0.0%", "+0.0%"),
        amount(row.cost),
        _signed(_zero(more, answer.present.cost), amount),
    ]


def _signed(value: float, words: Callable[[float], str]) -> str:
    """A difference with its sign."""
    return ("+" if value >= 0 else "") + words(value) if math.isfinite(value) else "-"


def _zero(value: float, whole: float) -> float:
    """What is nothing but rounding is nothing."""
    return 0.0 if abs(value) <= 1e-9 * abs(whole) else value


def _plan(row: Alternative) -> str:
    if not math.isfinite(row.makespan):
        return "it cannot be done"
    return "-" if row.taken is None else "new" if row.taken else "kept"


def _seconds(value: float) -> str:
    return precise(value) if math.isfinite(value) else "never: it cannot be done"
