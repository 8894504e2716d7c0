"""`weft simulate`: a run in a simulated world, and what happened in it."""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.expected import DataDirectory, NoHistory, On, PlatformFile, Prices, expected
from weft.cli.money import Budget, OverBudget, Reserve, against_budget
from weft.cli.plan import check_suffix
from weft.cli.recovery import recovery_of
from weft.cli.wording import many
from weft.executors.scenario import EVENT_RATE, MOST_EVENTS
from weft.quantities import amount, duration, precise

if TYPE_CHECKING:
    from rich.table import Table

    from weft.model import Run

SHOWN = 10  # evaluations listed one by one
STOPPED = 130  # the exit code of a run that was stopped, as for `weft run`

Variability = Annotated[
    float,
    typer.Option(
        help="Speeds of processors and bandwidths of links change at random, each to a value "
        "between 1 - this and 1 of its peak: 0.4 is down to 60%."
    ),
]
EventRate = Annotated[
    float,
    typer.Option(
        help="How often each processor and each link changes in the planned makespan, that of HEFT "
        f"at full speed; on average. At most {MOST_EVENTS:,} changes are drawn."
    ),
]
Failures = Annotated[
    int,
    typer.Option(
        min=0,
        help="So many different processors die, each at a random time of the planned makespan; one "
        "is always left.",
    ),
]
FailureRate = Annotated[
    float,
    typer.Option(
        help="Each processor dies so often in the planned makespan, on average: 0.1 is one in ten."
    ),
]
ReturnAfter = Annotated[
    float,
    typer.Option(help="Processors that died are back after so many seconds.", show_default="never"),
]


def simulate(
    workflow: Annotated[
        Path, typer.Argument(help="The workflow: YAML, JSON, WfFormat, STG, DOT, DAGMan.")
    ],
    platform: PlatformFile = None,
    strategy: Annotated[
        str,
        typer.Option(
            help="When to replan, and with which planner: `slack[planner=dls]`; "
            "see `weft strategies`."
        ),
    ] = "static",
    world: Annotated[
        Path | None,
        typer.Option(
            help="What really happens: durations, availability, bandwidth, failures (YAML or JSON)."
        ),
    ] = None,
    qoi: Annotated[
        float,
        typer.Option(help="Draw durations within +-QoI of the estimates: 0.2 is 20%."),
    ] = 0.0,
    per_processor: Annotated[
        bool, typer.Option("--per-processor", help="Draw them per processor, not only per task.")
    ] = False,
    variability: Variability = 0.0,
    event_rate: EventRate = EVENT_RATE,
    failures: Failures = 0,
    failure_rate: FailureRate = 0.0,
    return_after: ReturnAfter = math.inf,
    budget: Budget = None,
    over_budget: OverBudget = "continue",
    reserve: Reserve = 0.0,
    seed: Annotated[
        int, typer.Option(min=0, help="Same seed, same durations, changes and failures.")
    ] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the run as JSON.")] = False,
    gantt: Annotated[
        list[Path] | None,
        typer.Option(
            help="Draw plan against fact: .svg, .png, .html (zoom and hover), .json (for Perfetto)."
        ),
    ] = None,
    journal: Annotated[
        Path | None,
        typer.Option(
            help="Write every plan, event and evaluation as JSON lines; - is standard output."
        ),
    ] = None,
    on: On = None,
    price: Prices = None,
    directory: DataDirectory = Path(),
    no_history: NoHistory = False,
) -> None:
    """Run a workflow in a simulated world, where things go otherwise than estimated.

    Example: `weft simulate wf.yaml -p cluster.yaml --strategy 'slack[planner=dls]' --qoi 0.3`

    Speeds that vary by 40%, and a machine that dies:
    `weft simulate wf.yaml -p cluster.yaml --strategy aheft --variability 0.4 --failures 1`

    With a budget: exit code 2 if no plan is affordable, 130 if it was stopped (`--over-budget`).
    """
    from weft import api, formats, registry
    from weft.files import is_stdout

    for path in gantt or []:
        check_suffix(path)
    registry.strategy(strategy, budget is not None)  # a wrong one is told before the work
    wf = api.load(workflow)
    file = None if platform is None else api.load_platform(platform)
    told = expected(workflow, wf, file, on, price, directory, no_history, budget is not None)
    run = api.simulate(
        wf,
        told.platform,
        strategy,
        world,
        qoi,
        seed,
        per_processor,
        by_events=journal is not None,
        variability=variability,
        event_rate=event_rate,
        failures=failures,
        failure_rate=failure_rate,
        return_after=return_after,
        budget=budget,
        over_budget=over_budget,
        reserve=reserve,
        estimates=told.estimates,
    )
    written = [*(gantt or []), *([journal] if journal else [])]
    with redirect_stdout(sys.stderr) if is_stdout(journal) else nullcontext():
        if as_json:
            print(json.dumps(_as_dict(run), indent=1))
        else:
            show(run)
    for path in gantt or []:
        draw(run, path)
    if journal:
        formats.write_journal(run, journal)
    for path in [] if as_json else written:
        typer.echo(f"wrote {path}", err=is_stdout(journal))
    if not_done(run):
        raise typer.Exit(STOPPED)


def not_done(run: Run) -> list[str]:
    """The tasks that are not done: the run was stopped for its budget."""
    last = run.final_attempts().tolist()
    return [run.workflow.task_names[task] for task, attempt in enumerate(last) if attempt < 0]


def _as_dict(run: Run) -> dict[str, Any]:
    rest = not_done(run)
    return run.to_dict() | ({"not_done": rest} if rest else {})


def draw(run: Run, path: Path) -> None:
    """Write the chart that the suffix asks for."""
    from weft import charts, formats

    if path.suffix.lower() == ".json":
        formats.write_run_trace(run, path)
    else:
        charts.write_run_gantt(run, path)


def show(run: Run) -> None:
    """Print a summary, the first evaluations and each processor's share."""
    from rich.console import Console

    console = Console(highlight=False)
    console = console if console.is_terminal else Console(highlight=False, width=200)
    wf, pf, against = run.workflow, run.platform, ""
    for plan in run.plans[:1]:  # there is none if tasks are given out as they become ready
        change = f", {run.makespan / plan.makespan - 1:+.1%}" if plan.makespan > 0 else ""
        against = f" (planned {duration(plan.makespan, 3)}{change})"
    console.print(
        f"{wf.name}: {wf.n_tasks} tasks, {wf.n_edges} dependencies, "
        f"{pf.n_processors} processors on {pf.n_hosts} hosts",
        markup=False,
    )
    console.print(
        f"strategy {run.strategy}: makespan {precise(run.makespan)}{against}, "
        f"cost {amount(run.cost)}",
        markup=False,
        style="bold",
    )
    if math.isfinite(run.budget):
        console.print(against_budget(run), markup=False)
    if rest := not_done(run):
        listed = ", ".join(rest[:5]) + (", ..." if rest[5:] else "")
        stopped = f"stopped for the budget, not done: {many(len(rest), 'task')} ({listed})"
        console.print(stopped, markup=False, style="bold")
    console.print(
        f"new plans: {run.considered} considered, {run.replans} taken; "
        f"planning took {duration(run.planning_seconds)}",
        markup=False,
    )
    if recovery := recovery_of(run):
        console.print(f"adapted: {recovery}", markup=False)
    if happened := machines(run):
        console.print(f"machines: {happened}", markup=False)
    if run.evaluations:
        console.print(_evaluations(run))
        if run.considered > SHOWN:
            console.print(f"... and {run.considered - SHOWN} more", markup=False)
    console.print(_processors(run))


def machines(run: Run) -> str:
    """What happened to the machines until the run was over: so many changes of each kind."""
    from weft.model.events import EventKind

    pf, counts, leaving = run.platform, Counter[str](), dict[int, float]()
    for e in run.changes:
        match e.kind:
            case EventKind.AVAILABILITY:
                counts["changes of speed"] += 1
            case EventKind.BANDWIDTH if e.which // pf.n_hosts < e.which % pf.n_hosts:
                counts["changes of bandwidth"] += 1  # of both directions
            case EventKind.JOINED:
                counts["joins" if e.time == pf.joins[e.which] else "returns"] += 1
            case EventKind.LEAVING:
                leaving[e.which] = e.value
            case EventKind.GONE:
                told = e.time in (pf.leaves[e.which], leaving.get(e.which))
                counts["leaves" if told else "failures"] += 1
    kinds = ("changes of speed", "changes of bandwidth", "joins", "leaves", "failures", "returns")
    return ", ".join(f"{kind}: {counts[kind]:,}" for kind in kinds if counts[kind])


def _evaluations(run: Run) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="dim")
    table.add_column("time", justify="right")
    table.add_column("new plan, because of")
    table.add_column("taken")
    table.add_column("its makespan", justify="right")
    if compared := any(not math.isnan(e.projected) for e in run.evaluations[:SHOWN]):
        table.add_column("the old plan's", justify="right")
    for e in run.evaluations[:SHOWN]:
        taken = ("yes, it had to be" if e.forced else "yes") if e.taken else "no"
        ends = duration(e.makespan, 3)
        row: list[str | Text] = [duration(e.time, 3), Text(e.reason), taken, ends]
        if compared:
            row.append("" if math.isnan(e.projected) else duration(e.projected, 3))
        table.add_row(*row)
    return table


def _processors(run: Run) -> Table:
    import numpy as np
    from rich.table import Table
    from rich.text import Text

    from weft.model import ENDS

    pf, log, n, span = run.platform, run.attempts, run.platform.n_processors, run.makespan
    finished = log.end == ENDS.index("finished")
    tasks = np.bincount(log.processor[finished], minlength=n)
    lost = np.bincount(log.processor[~finished], minlength=n)
    busy = np.bincount(log.processor, weights=log.finish - log.start, minlength=n)
    cost = run.usage.by_processor(pf)
    table = Table("processor", "host", box=None, header_style="dim")
    for heading in ("tasks", "lost attempts", "busy", "busy %", "cost"):
        table.add_column(heading, justify="right")
    for p, name in enumerate(pf.processor_names):
        table.add_row(
            Text(name),
            Text(pf.host_names[pf.host[p]]),
            str(tasks[p]),
            str(lost[p]),
            duration(busy[p], 3),
            f"{busy[p] / span:.0%}" if span > 0 else "-",
            amount(cost[p]),
        )
    if pf.link_price.any():
        table.add_row("transfers", *[""] * 5, amount(run.usage.transfers), style="dim")
    return table
