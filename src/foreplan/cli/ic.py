"""`foreplan ic`: whether a workflow has an IC-optimal schedule, and how much that is worth."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foreplan.cli.shared.options import ParamOptions, json_option, load_workflow, with_groups
from foreplan.cli.shared.pictures import check_plot
from foreplan.cli.shared.tables import say, table
from foreplan.quantities import amount, many

if TYPE_CHECKING:
    from foreplan.ic import Analysis
    from foreplan.ic.game import Curve
    from foreplan.model import Workflow

MOST_NAMED = 12  # tasks of the order that are printed


@with_groups
def ic(
    workflow: Annotated[Path, typer.Argument(metavar="WORKFLOW", help="The workflow's file.")],
    as_json: Annotated[bool, json_option("all of it")] = False,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the eligibility curves: .png or .svg.")
    ] = None,
    plays: Annotated[
        int, typer.Option(min=1, max=10_000, help="Plays of FIFO, LIFO, GREEDY and HOPS each.")
    ] = 50,
    seed: Annotated[int, typer.Option(min=0, help="Of their random ties.")] = 0,
    *,
    params: ParamOptions,
) -> None:
    """Tell whether an IC-optimal schedule exists: one that always keeps as many tasks ready as can
    be. It needs no times.

    It is proved, or it is said where the proof fails. The order is what `--strategy ico` goes by,
    and `foreplan prioritize`. The area is the sum, over all steps, of the tasks that are ready;
    normalised, it is how many are ready on average. FIFO, LIFO, GREEDY and HOPS (the longest path
    of tasks first) are averages of seeded plays with random ties.

    Example: `foreplan ic my.yaml --plot curve.png`
    """
    from foreplan.files import printable
    from foreplan.ic import Dag, analyse
    from foreplan.ic.game import heuristic_curves

    check_plot(plot)
    wf = load_workflow(workflow, params)
    found = analyse(wf)
    dag = Dag.from_workflow(wf)
    curves = [_own(found), *heuristic_curves(dag, plays, seed)]
    if plot is not None:
        from foreplan.charts.eligibility import write_plot
        from foreplan.charts.plots import shortened

        write_plot(curves, f"{shortened(wf.name, 40)}: {_verdict(found)}", plot)
    if as_json:
        print(json.dumps(_document(wf, dag.n_arcs, found, curves, plays, seed), indent=1))
        return
    _show(wf, dag.n_arcs, found, curves, plays)
    if plot is not None:
        typer.echo(f"wrote {printable(plot)}")


def _own(found: Analysis) -> Curve:
    """The curve of the order that was found."""
    import numpy as np

    from foreplan.ic.game import Curve

    areas = np.array([found.play.normalised_area])
    return Curve("ico", found.play.profile.astype(np.float64), areas)


def _verdict(found: Analysis) -> str:
    if found.exists is None:
        return "not known whether an IC-optimal schedule exists"
    return f"{'an' if found.exists else 'no'} IC-optimal schedule exists"


def _show(wf: Workflow, arcs: int, found: Analysis, curves: list[Curve], plays: int) -> None:
    say(f"{wf.name}: {many(wf.n_tasks, 'task')}, {many(arcs, 'dependency', 'dependencies')}")
    verdict = _verdict(found)
    say(verdict, "bold")
    say(f"  {found.reason.removeprefix(f'{verdict}: ')}")
    say(f"order: {_first(wf, found)}")
    rows = []
    for curve in curves:
        spread = f" ±{amount(curve.deviation, 3)}" if curve.name != "ico" else ""
        share = f"{curve.area / curves[0].area:.1%}" if curves[0].area > 0 else "-"
        rows.append([curve.name, f"{amount(curve.area)}{spread}", share])
    table(["", "normalised area", "of ico's"], rows)
    say(f"fifo, lifo, greedy, hops: mean ± standard deviation of {plays:,} plays", "dim")


def _first(wf: Workflow, found: Analysis) -> str:
    """The beginning of the order."""
    names = [wf.task_names[task] for task in found.play.order[:MOST_NAMED]]
    more = wf.n_tasks - len(names)
    return ", ".join(names) + (f" and {more:,} more (--json has all)" if more > 0 else "")


def _document(
    wf: Workflow, arcs: int, found: Analysis, curves: list[Curve], plays: int, seed: int
) -> dict[str, Any]:
    return {
        "workflow": wf.name,
        "tasks": wf.n_tasks,
        "arcs": arcs,
        "ic_optimal": found.ic_optimal,
        "exists": found.exists,
        "reason": found.reason,
        "order": [wf.task_names[task] for task in found.play.order.tolist()],
        "profile": found.play.profile.tolist(),
        "area": found.play.area,
        "normalised_area": found.play.normalised_area,
        "heuristics": {
            curve.name: {"normalised_area": curve.area, "deviation": curve.deviation}
            for curve in curves[1:]
        },
        "plays": plays,
        "seed": seed,
    }
