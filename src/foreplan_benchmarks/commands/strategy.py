"""`foreplan bench strategy`: the default strategy beside those of the papers, cell by cell."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foreplan.cli.shared.tables import table, tell_when_slow
from foreplan.errors import InputError
from foreplan.quantities import amount

if TYPE_CHECKING:
    from foreplan.comparison import Mean
    from foreplan.model import Workflow
    from foreplan_benchmarks.default_strategy import Load, Result

HEADER = ["events", "speeds", "processors", "QoI", "to slack", "+-", "to aheft", "+-"]
LOADS = ["plans asked", "taken", "moved", "slack's", "aheft's"]


def strategy(
    workflows: Annotated[
        Path, typer.Option(help="A folder of workflows, all of which are taken.", metavar="DIR")
    ],
    worlds: Annotated[
        int,
        typer.Option(
            min=1,
            help="For each workflow and cell: a quarter beyond 300 tasks, else three times as "
            "many where machines die.",
        ),
    ] = 4,
    quick: Annotated[
        bool, typer.Option("--quick", help="A third of the cells, workflows up to 300 tasks.")
    ] = False,
    named: Annotated[
        str, typer.Option("--strategy", help="Measure this one instead of the default.")
    ] = "adaptive",
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same figures.")] = 0,
    jobs: Annotated[
        int | None, typer.Option(min=1, max=1024, help="Processes.  [default: one per core]")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Makespans of the default strategy over those of `slack` and `aheft`, in the same worlds.

    2 to 16 processors, equal and mixed; durations off by 10% to 50%; quiet, with joins, with
    losses. In no cell should it be more than 1% behind either, and overall ahead of both.

    Example: `foreplan bench strategy --workflows path/to/workflows --quick`
    """
    from foreplan_benchmarks import default_strategy as bench

    given = _loaded(workflows)
    if quick:
        given = [wf for wf in given if wf.n_tasks <= bench.LARGE]
    cells = bench.QUICK if quick else bench.CELLS
    with tell_when_slow("simulated worlds") as progress:
        found = bench.compare(given, worlds, cells, named, seed, jobs, progress)
    if as_json:
        rows = [{**asdict(x), "verdict": x.verdict} for x in found]
        rows = [
            {**row, "cell": x.cell and x.cell._asdict()} for row, x in zip(rows, found, strict=True)
        ]
        print(json.dumps({"workflows": len(given), "worlds": worlds, "results": rows}, indent=1))
        return
    runs = sum(bench.worlds_of(wf, cell, worlds) for wf in given for cell in cells)
    print(f"{named} over {len(given)} workflows, {runs:,} worlds: makespans over those of others")
    table([*HEADER, *LOADS, "verdict"], [_row(x, named) for x in found], texts=2)
    print(
        "+-: 95%; moved: tasks that had begun to gather their inputs, or to run; slack's, aheft's:"
    )
    print("plans asked for / taken / tasks moved")


def _loaded(folder: Path) -> list[Workflow]:
    from foreplan import api

    files = sorted(path for path in folder.glob("*") if path.is_file())
    if not files:
        raise InputError("there is no workflow in this folder", source=str(folder))
    return [api.load(path, resources=False) for path in files]


def _row(x: Result, named: str) -> list[Any]:
    where: list[Any] = ["all", "", "", ""]
    if x.cell is not None:
        where = [x.cell.events, x.cell.speeds, x.cell.processors, f"{x.cell.qoi:g}"]
    ratios = [figure for ratio in x.ratio.values() for figure in _figures(ratio)]
    own, others = x.load[named], [x.load[name] for name in x.ratio]
    loads = [amount(own.considered, 3), amount(own.taken, 3), amount(own.migrations, 3)]
    return [*where, *ratios, *loads, *map(_in_short, others), x.verdict]


def _figures(ratio: Mean) -> tuple[str, str]:
    if ratio.mean is None or ratio.high is None:
        return f"{ratio.mean:.4f}", "-"
    return f"{ratio.mean:.4f}", f"{ratio.high - ratio.mean:.4f}"


def _in_short(load: Load) -> str:
    return "/".join(f"{x:.0f}" for x in (load.considered, load.taken, load.migrations))
