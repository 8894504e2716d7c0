"""`foreplan prioritize`: priorities for the jobs of a DAGMan file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from foreplan.cli.shared.options import json_option
from foreplan.cli.shared.tables import table
from foreplan.errors import InputError, unknown_name
from foreplan.quantities import against, duration, many

if TYPE_CHECKING:
    from foreplan.arrays import FloatArray
    from foreplan.formats.dagman_dag import DagmanDag
    from foreplan.formats.dagman_write import Style, Written
    from foreplan.model import Workflow


ORDERS = ("ico", "hops", "times")
HISTORY = "history"
SLOTS = 8


def prioritize(
    dag: Annotated[Path, typer.Argument(metavar="FILE.dag", help="The DAGMan file.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="Write a copy (- is standard output); the file, its splices and its sub-DAGs stay "
            "as they are.",
        ),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace the priorities that are there already.")
    ] = False,
    as_vars: Annotated[
        bool,
        typer.Option(
            "--vars",
            help='Write `VARS job JobPriority="n"` for submit files that say '
            "`priority = $(JobPriority)`, in place of `PRIORITY job n`.",
        ),
    ] = False,
    order: Annotated[
        str,
        typer.Option(
            help="`ico`: many jobs ready early. `hops`: the longest path first. `times`: the "
            "longest path by the times of `--times` first."
        ),
    ] = "ico",
    times: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LOG|history",
            help="What jobs take: HTCondor's event log (`FILE.dag.nodes.log`), repeatable, or what "
            "foreplan's history knows of their categories.",
        ),
    ] = None,
    preview: Annotated[
        bool,
        typer.Option(
            "--preview",
            help="Write nothing: simulate the orders, and DAGMan's own, on so many slots.",
        ),
    ] = False,
    slots: Annotated[
        int | None,
        typer.Option(min=1, help="The slots of the preview.", show_default=str(SLOTS)),
    ] = None,
    as_json: Annotated[bool, json_option("what was done")] = False,
) -> None:
    """Write priorities into an HTCondor DAGMan file, so that idle machines find work.

    The order is that of `foreplan ic`: at every step as many jobs as can be are ready to be handed
    out, if there is an IC-optimal schedule, and else nearly so. It needs no times, nor does `hops`.

    Of the jobs that are ready, DAGMan submits the one with the highest number first. The numbers
    run from the number of jobs that are not done down to 1. They are added at the end; all other
    lines stay as they are, byte for byte, also those with commands that foreplan does not know: a
    warning names them. A job inside a splice or a sub-DAG gets its number in the file of that,
    which is written too unless there is an output; included files are never written. Jobs that the
    newest rescue file has as done get none.

    Example: `foreplan prioritize my.dag -o my-prioritized.dag`

    Example: `foreplan prioritize my.dag --times my.dag.nodes.log --preview --slots 16`
    """
    from foreplan.files import in_file, is_stdout, printable
    from foreplan.formats.dagman import read_dag
    from foreplan.formats.dagman_write import unknown_commands, with_priorities

    _check(order, times, preview, slots)
    aside = is_stdout(output)  # what is said then goes to stderr
    read = read_dag(dag)
    warnings = unknown_commands(read)
    for warning in warnings:
        typer.echo(f"warning: {warning}", err=True)
    style: Style = "vars" if as_vars else "priority"
    with in_file(dag):
        job_times = JobTimes.look_up(read, dag, times)
        if preview:
            found = _preview(read, job_times, slots or SLOTS, replace, style, output)
            job_times.notes[:0] = read.notes
            if read.macros and not replace:
                kept = many(len(read.macros), "job")
                job_times.notes.append(f"priorities by VARS count as none here ({kept})")
            _show_preview(dag, found, job_times, slots or SLOTS, as_json)
            return
        numbers = _numbers(read, order, job_times)
        written = with_priorities(read, numbers, replace=replace, style=style, output=output)
    notes = [*read.notes, *job_times.notes, *written.notes]
    if as_json:
        document = _document(dag, read, written, style, notes, warnings)
        typer.echo(json.dumps(document, indent=1), err=aside)
        return
    for path in [] if aside else written.files:
        typer.echo(f"wrote {printable(path)}")
    typer.echo(_summary(read, written), err=aside)
    for note in notes:
        typer.echo(f"note: {note}", err=aside)


def _check(order: str, times: list[str] | None, preview: bool, slots: int | None) -> None:
    """Options that do not fit together are told before the work."""
    if order not in ORDERS:
        raise InputError(unknown_name("order", order, ORDERS), source="--order")
    if order == "times" and not times:
        problem = "`times` needs times: add --times with an event log of HTCondor, or with history"
        raise InputError(problem, source="--order")
    if times and order != "times" and not preview:
        problem = f"the order {order!r} needs no times: say --order times, or --preview"
        raise InputError(problem, source="--times")
    if times and HISTORY in times and len(times) > 1:
        raise InputError("give logs or `history`, not both", source="--times")
    if slots is not None and not preview:
        raise InputError("slots are of the simulation alone: add --preview", source="--slots")


class JobTimes:
    """The jobs that are not done as a workflow, and what each takes, if that was asked for."""

    def __init__(self, workflow: Workflow | None, seconds: FloatArray | None, note: str) -> None:
        self.workflow, self.seconds = workflow, seconds
        self.notes = [note] if note else []

    @staticmethod
    def look_up(dag: DagmanDag, path: Path, times: list[str] | None) -> JobTimes:
        """By the logs or the history; without either nobody knows."""
        from foreplan.formats.dagman import dag_workflow

        if not dag.waiting() and dag.done:
            return JobTimes(None, None, "")
        # DAGMan itself keeps the FINAL job for the end
        workflow = dag_workflow(dag, path.stem, final=False)
        if not times:
            return JobTimes(workflow, None, "")
        if times == [HISTORY]:
            return JobTimes(workflow, *_by_history(workflow))
        return JobTimes(workflow, *_by_logs(dag, workflow, times))


def _by_logs(dag: DagmanDag, workflow: Workflow, logs: list[str]) -> tuple[FloatArray, str]:
    """What each job took; for the others the median of their category, or of all."""
    import numpy as np

    from foreplan.formats.dagman_log import logged_seconds
    from foreplan.history.records import categories_of

    logged = logged_seconds(dag, logs)  # also of jobs that are done: they are alike
    by_category: dict[str, list[float]] = {}
    for i, node in enumerate(dag.nodes):
        if node.name in logged:
            category = dag.categories.get(i, "").lstrip("+") or node.submit
            by_category.setdefault(category, []).append(logged[node.name])
    medians = {name: float(np.median(values)) for name, values in by_category.items()}
    middle = float(np.median(list(logged.values())))
    tasks = zip(workflow.task_names, categories_of(workflow), strict=True)
    seconds = [logged.get(name, medians.get(category, middle)) for name, category in tasks]
    known = sum(name in logged for name in workflow.task_names)
    note = f"times: {many(known, 'job')} by the log"
    if known < len(seconds):
        note += (
            f", {len(seconds) - known:,} by the median of their category or, without one, of all"
        )
    return np.array(seconds), note


def _by_history(workflow: Workflow) -> tuple[FloatArray, str]:
    """What the history expects of each job on one machine like those that it knows."""
    from foreplan.formats import load_platform
    from foreplan.runs.estimates import expect

    platform = load_platform({"processors": {"slot": {"speed": 1}}})
    found = expect(workflow.without_requests(), platform)
    if found.blind:
        problem = (
            "the history knows no category of these jobs, which is CATEGORY or the submit file"
        )
        raise InputError(problem, source="--times")
    return found.estimates.cost[:, 0], f"times: {found.message}"


def _numbers(dag: DagmanDag, order: str, times: JobTimes) -> dict[str, int]:
    """The jobs that are not done by their names; the first in the order has the highest number."""
    from foreplan import registry
    from foreplan.contracts import Order

    workflow = times.workflow
    if workflow is None:
        return {}
    if order == "times":
        places, n = _places_by_times(times), workflow.n_tasks
    else:
        chosen, _ = registry.strategy(order)
        assert isinstance(chosen, Order)  # and its ranks are places
        places, n = chosen.priority(workflow).rank.tolist(), workflow.n_tasks
    fixed = {node.name for node in dag.nodes if not node.may_have_priority}  # FINAL in a sub-DAG
    pairs = zip(workflow.task_names, places, strict=True)
    return {name: n - place for name, place in pairs if name not in fixed}


def _places_by_times(times: JobTimes) -> list[int]:
    """By the longest way to the end; of equals what most wait for, and then as in the file."""
    import numpy as np

    from foreplan.ic import Dag, places
    from foreplan.ic.slots import longest_ways

    assert times.workflow is not None
    assert times.seconds is not None
    dag = Dag.from_workflow(times.workflow)
    keys = np.arange(dag.n), -dag.outdegree, -longest_ways(dag, times.seconds)
    found: list[int] = places(np.lexsort(keys).astype(np.int32)).tolist()
    return found


Simulated = dict[str, tuple[int, float | None]]  # phases and makespan, by the order


def _preview(
    dag: DagmanDag, times: JobTimes, slots: int, replace: bool, style: Style, output: Path | None
) -> Simulated:
    """What DAGMan's own order takes, and each order as it would be written."""
    import numpy as np

    from foreplan.formats.dagman_write import with_priorities
    from foreplan.ic import Dag
    from foreplan.ic.slots import makespan

    workflow = times.workflow
    if workflow is None:
        raise InputError("every job is done already")
    graph, ones = Dag.from_workflow(workflow), np.ones(workflow.n_tasks)

    def simulate(counts: dict[str, int]) -> tuple[int, float | None]:
        priority = np.array([counts.get(name, 0) for name in workflow.task_names], np.int64)
        ends = times.seconds
        phases = round(makespan(graph, ones, priority, slots))
        return phases, None if ends is None else makespan(graph, ends, priority, slots)

    found = {"fifo": simulate({})}
    if dag.priorities:
        found["as it is"] = simulate(with_priorities(dag, {}, dry=True).effective)
    for order in ORDERS:
        if order != "times" or times.seconds is not None:
            numbers = _numbers(dag, order, times)
            written = with_priorities(
                dag, numbers, replace=replace, style=style, output=output, dry=True
            )
            found[order] = simulate(written.effective)
    return found


def _show_preview(path: Path, found: Simulated, times: JobTimes, slots: int, as_json: bool) -> None:
    from foreplan.files import printable

    assert times.workflow is not None
    if as_json:
        orders = {name: {"phases": p, "makespan": m} for name, (p, m) in found.items()}
        n = times.workflow.n_tasks
        document = {"dag": printable(path), "slots": slots, "jobs": n, "orders": orders}
        typer.echo(json.dumps(document | {"notes": times.notes}, indent=1))
        return
    phases, end = found["fifo"]
    if end is None:
        rows = [[name, p, against(p, phases)] for name, (p, _) in found.items()]
        table(["order", "phases", "against fifo"], rows)
    else:
        timed = [
            [name, p, against(p, phases), duration(m or 0.0), against(m or 0.0, end)]
            for name, (p, m) in found.items()
        ]
        table(["order", "phases", "against fifo", "makespan", "against fifo"], timed)
    said = f"simulated: {many(times.workflow.n_tasks, 'job')} on {many(slots, 'slot')}"
    typer.echo(f"{said}; fifo is DAGMan without priorities; nothing was written")
    if end is None:
        typer.echo("note: without --times nothing is known of the makespan")
    for note in times.notes:
        typer.echo(f"note: {note}")


def _summary(dag: DagmanDag, written: Written) -> str:
    parts = [f"priorities of {many(len(written.priorities), 'job')} written"]
    if written.kept:
        parts.append(f"{len(written.kept):,} kept")
    if dag.done:
        parts.append(f"{many(len(dag.done), 'job')} done already")
    return ", ".join(parts)


def _document(
    path: Path,
    dag: DagmanDag,
    written: Written,
    style: str,
    notes: list[str],
    warnings: list[str],
) -> dict[str, object]:
    from foreplan.files import printable

    return {
        "dag": printable(path),
        "written": [printable(file) for file in written.files],
        "style": style,
        "jobs": len(dag.waiting()),
        "done": len(dag.done),
        "priorities": written.priorities,
        "kept": list(written.kept),
        "left": list(written.left),
        "notes": notes,
        "warnings": warnings,
    }
