"""`weft plan`: a schedule of a workflow on a platform, before anything runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.expected import DataDirectory, NoHistory, On, PlatformFile, Prices, expected
from weft.cli.money import read_time
from weft.errors import InputError, in_seconds
from weft.quantities import amount, duration, precise

if TYPE_CHECKING:
    from weft.model import Expectation, Schedule, Workflow

SHOWN = 30  # tasks listed one by one; beyond that a summary says more


def plan(
    workflow: Annotated[
        Path, typer.Argument(help="The workflow: YAML, JSON, WfFormat, STG, DOT, DAGMan.")
    ],
    platform: PlatformFile = None,
    planner: Annotated[
        str | None,
        typer.Option(
            help="A planner, such as `heft` or `heft[insertion=false]`; see `weft planners`. "
            "Default: `heft`; with a budget `best-affordable`; with a deadline `cheapest-in-time`."
        ),
    ] = None,
    budget: Annotated[
        float | None, typer.Option(help="The fastest plan that costs at most this.")
    ] = None,
    deadline: Annotated[
        float | None,
        typer.Option(
            parser=read_time,
            metavar="TIME",
            help="The cheapest plan that ends by then: seconds from the start, or `90min`, `1.5h`.",
        ),
    ] = None,
    reserve: Annotated[
        float,
        typer.Option(help="The plan leaves this share of the budget for surprises: 0.1 is 10%."),
    ] = 0.0,
    pareto: Annotated[
        Path | None,
        typer.Option(help="Draw what more money would buy: .png or .svg. With a table of plans."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the schedule as JSON.")] = False,
    gantt: Annotated[
        list[Path] | None,
        typer.Option(help="Draw it: .svg, .png, .html (zoom and hover), .json (for Perfetto)."),
    ] = None,
    on: On = None,
    price: Prices = None,
    directory: DataDirectory = Path(),
    no_history: NoHistory = False,
) -> None:
    """Plan a workflow: which task runs where and when, how long it takes, what it costs.

    Without -p: on this machine, by what a run here would expect. What tasks without a cost take is
    looked up in the history, and said.

    With a budget or a deadline: the fastest plan found within the one, the cheapest one by the
    other. Where there is none, it says what there is, and exits with 2.

    Example: `weft plan wf.yaml -p cluster.yaml --planner heft --gantt plan.html`

    Example: `weft plan wf.yaml -p cluster.yaml --budget 40`, or `--pareto money.png`

    Example: `weft plan wf.yaml --on local:4`, as `weft run wf.yaml --on local:4` would begin

    A search that takes long says so, and can be bounded: `--planner 'best-affordable[seconds=5]'`.
    What is found by then depends on how fast the machine is.
    """
    from weft import api, registry
    from weft.cli.tables import told_when_slow
    from weft.limits import check_limits

    for path in gantt or []:
        check_suffix(path)
    if pareto is not None:
        _check_pareto(pareto, gantt)
    if planner is not None:
        registry.planner(planner)  # a wrong one is told before the work
    check_limits(budget, deadline, reserve)
    if pareto is not None and reserve:
        raise InputError("--reserve is of one plan's budget, --pareto tries many: leave it out")
    wf = api.load(workflow)
    file = None if platform is None else api.load_platform(platform)
    told = expected(workflow, wf, file, on, price, directory, no_history, budget is not None)
    if pareto is not None:
        _pareto(wf, told, planner, pareto, as_json, budget, deadline)
        return
    with told_when_slow("looking for a plan"):
        schedule = api.plan(
            wf,
            told.platform,
            planner,
            budget,
            deadline,
            estimates=told.estimates,
            reserve=reserve,
        )
    if as_json:
        print(json.dumps(_as_dict(schedule, budget, deadline), indent=1))
    else:
        show(schedule, budget, deadline, reserve)
    for path in gantt or []:
        draw(schedule, path)
        if not as_json:
            print(f"wrote {path}")


def _check_pareto(path: Path, gantt: list[Path] | None) -> None:
    from weft.experiments.comparison_plot import check_plot

    check_plot(path)
    if gantt:
        raise InputError("--gantt draws one plan, --pareto many: ask for one of them")


def _pareto(
    wf: Workflow,
    told: Expectation,
    planner: str | None,
    path: Path,
    as_json: bool,
    budget: float | None,
    deadline: float | None,
) -> None:
    """The plans over all budgets: printed, and drawn."""
    from weft import api
    from weft.cli.pareto_output import show_frontier
    from weft.cli.tables import told_when_slow
    from weft.experiments.frontier_plot import write_plot

    with told_when_slow("planning for many budgets") as progress:
        frontier = api.pareto(
            wf,
            told.platform,
            planner,
            budget=budget,
            progress=progress,
            estimates=told.estimates,
        )
    # before the table: whoever reads only the head of that gets the picture, too
    write_plot(frontier, path, f"{wf.name}: what money buys", budget, deadline)
    if as_json:
        limits = {"budget": budget, "deadline": deadline}
        asked = {key: value for key, value in limits.items() if value is not None}
        print(json.dumps({**frontier.to_dict(), **asked}, indent=1))
    else:
        show_frontier(frontier, wf.name, budget)
        print(f"wrote {path}")


def check_suffix(path: Path) -> None:
    """A chart of an unknown kind is told before the work."""
    from weft.charts import SUFFIXES

    known = (*SUFFIXES, ".json")
    if path.suffix.lower() not in known:
        raise InputError(f"{path}: cannot draw a chart of this kind; known: {', '.join(known)}")


def draw(schedule: Schedule, path: Path) -> None:
    """Write the chart that the suffix asks for."""
    from weft import charts, formats

    if path.suffix.lower() == ".json":
        formats.write_trace(schedule, path)
    else:
        charts.write_gantt(schedule, path)


def _as_dict(schedule: Schedule, budget: float | None, deadline: float | None) -> dict[str, Any]:
    """The schedule, with what was asked for."""
    limits = {"budget": budget, "deadline": deadline}
    asked = {key: value for key, value in limits.items() if value is not None}
    content = schedule.to_dict()
    tasks = content.pop("tasks")
    return {**content, **asked, "tasks": tasks}


def show(
    schedule: Schedule,
    budget: float | None = None,
    deadline: float | None = None,
    reserve: float = 0.0,
) -> None:
    """Print a summary, each processor's share, and the tasks where they are few."""
    from weft.cli.tables import say

    wf, pf = schedule.workflow, schedule.platform
    span = schedule.makespan
    # within a budget: what is said can be asked for as a deadline
    ends = precise(span) if budget is None else in_seconds(span)
    say(
        f"{wf.name}: {wf.n_tasks} tasks, {wf.n_edges} dependencies, "
        f"{pf.n_processors} processors on {pf.n_hosts} hosts"
    )
    say(
        f"planner {schedule.planner}: makespan {ends}, cost {amount(schedule.cost)}, "
        f"mean utilisation {schedule.utilisation:.0%}",
        "bold",
    )
    if budget is not None:
        left = max(0.0, budget - schedule.cost)  # it may be over by what is but rounding
        kept = f", {amount(reserve * budget)} of it a reserve" if reserve else ""
        say(f"budget {amount(budget)}: cost {amount(schedule.cost)}, {amount(left)} left{kept}")
    if deadline is not None:
        left = max(0.0, deadline - span)
        say(
            f"deadline {duration(deadline, 3)}: ends at {duration(span, 3)}, "
            f"{duration(left)} before it"
        )
    if schedule.by:
        say(f"found by {schedule.by}")
    _show_processors(schedule)
    if wf.n_tasks <= SHOWN:
        _show_tasks(schedule)


def _show_processors(schedule: Schedule) -> None:
    from weft.cli.tables import table

    pf, busy, span = schedule.platform, schedule.busy, schedule.makespan
    cost = schedule.usage.by_processor(pf)
    counts = [0] * pf.n_processors
    for p in schedule.processor.tolist():
        counts[p] += 1
    rows = [
        [
            name,
            pf.host_names[pf.host[p]],
            counts[p],
            duration(busy[p], 3),
            f"{busy[p] / span:.0%}" if span > 0 else "-",
            amount(cost[p]),
        ]
        for p, name in enumerate(pf.processor_names)
    ]
    if pf.link_price.any():
        rows.append(["transfers", *[""] * 4, amount(schedule.usage.transfers)])
    table(["processor", "host", "tasks", "busy", "busy %", "cost"], rows, texts=2)


def _show_tasks(schedule: Schedule) -> None:
    from weft.cli.tables import table

    names, processors = schedule.workflow.task_names, schedule.platform.processor_names
    rows = [
        [
            names[task],
            processors[schedule.processor[task]],
            duration(schedule.start[task], 3),
            duration(schedule.finish[task], 3),
        ]
        for task in sorted(range(len(names)), key=lambda t: schedule.start[t])
    ]
    table(["task", "processor", "start", "finish"], rows, texts=2)
