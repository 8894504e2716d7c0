"""`foreplan simulate`: a run in a simulated world, and what happened in it."""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from foreplan.cli.shared.options import (
    Budget,
    OverBudget,
    ParamOptions,
    PlaceOptions,
    PlatformFile,
    Qoi,
    Reserve,
    RunGantt,
    WorkflowFile,
    WorldOptions,
    expected,
    json_option,
    load_workflow,
    with_groups,
)
from foreplan.cli.shared.pictures import check_gantts, draw_gantt
from foreplan.cli.shared.tables import processor_table, say, say_size, table
from foreplan.quantities import against, amount, duration, first_few, many, precise
from foreplan.report.words import against_budget, recovery_of

if TYPE_CHECKING:
    from foreplan.model import Run

SHOWN = 10  # evaluations listed one by one
STOPPED = 130  # the exit code of a run that was stopped, as for `foreplan run`


@with_groups
def simulate(
    workflow: WorkflowFile,
    *,
    platform: PlatformFile = None,
    strategy: Annotated[
        str,
        typer.Option(
            help="When to replan, and with which planner: `slack[planner=dls]`; "
            "see `foreplan strategies`."
        ),
    ] = "static",
    world: Annotated[
        Path | None,
        typer.Option(
            help="What really happens: durations, availability, bandwidth, failures (YAML or JSON)."
        ),
    ] = None,
    qoi: Qoi = 0.0,
    per_processor: Annotated[
        bool, typer.Option("--per-processor", help="Draw them per processor, not only per task.")
    ] = False,
    machines: WorldOptions,
    budget: Budget = None,
    over_budget: OverBudget = "continue",
    reserve: Reserve = 0.0,
    seed: Annotated[
        int, typer.Option(min=0, help="Same seed, same durations, changes and failures.")
    ] = 0,
    as_json: Annotated[bool, json_option("the run")] = False,
    gantt: RunGantt = None,
    journal: Annotated[
        Path | None,
        typer.Option(
            help="Write every plan, event and evaluation as JSON lines; - is standard output."
        ),
    ] = None,
    place: PlaceOptions,
    params: ParamOptions,
) -> None:
    """Run a workflow in a simulated world, where things go otherwise than estimated.

    Example: `foreplan simulate wf.yaml -p cluster.yaml --strategy 'slack[planner=dls]' --qoi 0.3`

    Speeds that vary by 40%, and a machine that dies:
    `foreplan simulate wf.yaml -p cluster.yaml --strategy aheft --variability 0.4 --failures 1`

    With a budget: exit code 2 if no plan is affordable, 130 if it was stopped (`--over-budget`).
    """
    from foreplan import api, formats, registry
    from foreplan.files import is_stdout
    from foreplan.scheduling.nsl import nsl

    charts = check_gantts(gantt)
    registry.strategy(strategy, budget is not None)  # a wrong one is told before the work
    wf = load_workflow(workflow, params, place)
    file = None if platform is None else api.load_platform(platform)
    told = expected(workflow, wf, file, place, budget is not None)
    run = api.simulate(
        wf,
        told.platform,
        strategy,
        world,
        qoi,
        seed,
        per_processor,
        by_events=journal is not None,
        **machines._asdict(),
        budget=budget,
        over_budget=over_budget,
        reserve=reserve,
        estimates=told.estimates,
    )
    rest = not_done(run)  # then its makespan is not that of the workflow
    length = math.nan if rest else nsl(run.makespan, wf, told.estimates.cost)
    written = [*charts, *([journal] if journal else [])]
    for path in charts:
        draw_gantt(run, path)
    if journal and not is_stdout(journal):
        formats.write_journal(run, journal)
    with redirect_stdout(sys.stderr) if is_stdout(journal) else nullcontext():
        if as_json:
            content = run.to_dict()
            tasks = content.pop("tasks")  # at the end
            content |= {"nsl": None if math.isnan(length) else length, "tasks": tasks}
            print(json.dumps(content | ({"not_done": rest} if rest else {}), indent=1))
        else:
            show(run, length)
    if journal and is_stdout(journal):
        formats.write_journal(run, journal)
    for path in [] if as_json else written:
        typer.echo(f"wrote {path}", err=is_stdout(journal))
    if rest:
        raise typer.Exit(STOPPED)


def not_done(run: Run) -> list[str]:
    """The tasks that are not done: the run was stopped for its budget."""
    last = run.final_attempts().tolist()
    return [run.workflow.task_names[task] for task, attempt in enumerate(last) if attempt < 0]


def show(run: Run, length: float) -> None:
    """Print a summary, the first evaluations and each processor's share."""
    planned = ""
    if run.planned is not None:
        change = f", {against(run.makespan, run.planned)}" if run.planned > 0 else ""
        planned = f" (planned {duration(run.planned, 3)}{change})"
    say_size(run.workflow, run.platform)
    say(
        f"strategy {run.strategy}: makespan {precise(run.makespan)}{planned}, "
        f"cost {amount(run.cost)}",
        "bold",
    )
    if math.isfinite(run.budget):
        say(against_budget(run))
    if rest := not_done(run):
        say(
            f"stopped for the budget, not done: {many(len(rest), 'task')} ({first_few(rest)})",
            "bold",
        )
    say(
        f"new plans: {run.considered} considered, {run.replans} taken; "
        f"planning took {duration(run.planning_seconds)}"
    )
    if recovery := recovery_of(run):
        say(f"adapted: {recovery}")
    if happened := changes_of(run):
        say(f"machines: {happened}")
    if not math.isnan(length):
        say(f"NSL {length:.3f}: the makespan over the longest path of mean costs")
    if run.evaluations:
        _show_evaluations(run)
        if run.considered > SHOWN:
            say(f"... and {run.considered - SHOWN} more")
    _show_processors(run)


def changes_of(run: Run) -> str:
    """What happened to the machines until the run was over: so many changes of each kind."""
    from foreplan.model.events import (
        LinkChanged,
        ProcessorGone,
        ProcessorJoined,
        ProcessorLeaving,
        SpeedChanged,
    )

    pf, counts, leaving = run.platform, Counter[str](), dict[int, float]()
    for e in run.changes:
        match e:
            case SpeedChanged():
                counts["changes of speed"] += 1
            case LinkChanged() if e.link // pf.n_hosts < e.link % pf.n_hosts:
                counts["changes of bandwidth"] += 1  # of both directions
            case ProcessorJoined():
                counts["joins" if e.time == pf.joins[e.processor] else "returns"] += 1
            case ProcessorLeaving():
                leaving[e.processor] = e.gone_at
            case ProcessorGone():
                told = e.time in (pf.leaves[e.processor], leaving.get(e.processor))
                counts["leaves" if told else "failures"] += 1
    kinds = ("changes of speed", "changes of bandwidth", "joins", "leaves", "failures", "returns")
    return ", ".join(f"{kind}: {counts[kind]:,}" for kind in kinds if counts[kind])


def _show_evaluations(run: Run) -> None:
    header = ["time", "<new plan, because of", "<taken", "its makespan"]
    if compared := any(not math.isnan(e.projected) for e in run.evaluations[:SHOWN]):
        header.append("the old plan's")
    rows = []
    for e in run.evaluations[:SHOWN]:
        taken = ("yes, it had to be" if e.forced else "yes") if e.taken else "no"
        row = [duration(e.time, 3), e.reason, taken, duration(e.makespan, 3)]
        if compared:
            row.append("" if math.isnan(e.projected) else duration(e.projected, 3))
        rows.append(row)
    table(header, rows, texts=0)


def _show_processors(run: Run) -> None:
    from foreplan.model import ENDS

    finished = run.attempts.end == ENDS.index("finished")
    processor_table(run, {"tasks": finished, "lost attempts": ~finished})
