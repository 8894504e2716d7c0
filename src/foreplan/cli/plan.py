"""`foreplan plan`: a schedule of a workflow on a platform, before anything runs."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from foreplan.cli.shared.left import Everything, Left, find_left
from foreplan.cli.shared.options import (
    ParamOptions,
    PlaceOptions,
    PlatformFile,
    WorkflowFile,
    expected,
    json_option,
    with_groups,
)
from foreplan.cli.shared.pictures import check_gantts, check_plot, draw_gantt
from foreplan.cli.shared.tables import processor_table, say, say_size, table, tell_when_slow
from foreplan.errors import InputError, in_seconds
from foreplan.quantities import amount, data_size, duration, many, precise
from foreplan.runs.options import read_time

if TYPE_CHECKING:
    from foreplan.model import Expectation, Schedule
    from foreplan.scheduling.frontier import Frontier
    from foreplan.scheduling.margins import Margins

SHOWN = 30  # tasks listed one by one; beyond that a summary says more


@with_groups
def plan(
    workflow: WorkflowFile,
    *,
    platform: PlatformFile = None,
    planner: Annotated[
        str | None,
        typer.Option(
            help="A planner, such as `heft` or `heft[insertion=false]`; see `foreplan planners`. "
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
    as_json: Annotated[bool, json_option("the schedule")] = False,
    gantt: Annotated[
        list[Path] | None,
        typer.Option(help="Draw it: .svg, .png, .html (zoom and hover), .json (for Perfetto)."),
    ] = None,
    everything: Everything = False,
    place: PlaceOptions,
    params: ParamOptions,
) -> None:
    """Plan a workflow: which task runs where and when, how long it takes, what it costs.

    Without -p: on this machine, by what a run here would expect. What tasks without a cost take is
    looked up in the history, and said. Where --dir knows results of earlier runs, it is about what
    is left to do there, and says so; `--all` plans everything.

    With a budget or a deadline: the fastest plan found within the one, the cheapest one by the
    other. Where there is none, it says what there is, and exits with 2.

    Example: `foreplan plan wf.yaml -p cluster.yaml --planner heft --gantt plan.html`

    Example: `foreplan plan wf.yaml -p cluster.yaml --budget 40`, or `--pareto money.png`

    Example: `foreplan plan wf.yaml --on local:4`, as `foreplan run` would begin there

    A search that takes long says so, and can be bounded: `--planner 'best-affordable[seconds=5]'`.
    What is found by then depends on how fast the machine is.
    """
    from foreplan import api, registry
    from foreplan.scheduling.limits import check_limits

    charts = check_gantts(gantt)
    check_plot(pareto)
    if pareto is not None and gantt:
        raise InputError("--gantt draws one plan, --pareto many: ask for one of them")
    if planner is not None:
        registry.planner(planner)  # a wrong one is told before the work
    check_limits(budget, deadline, reserve)
    if pareto is not None and reserve:
        raise InputError("--reserve is of one plan's budget, --pareto tries many: leave it out")
    file = None if platform is None else api.load_platform(platform)
    left = find_left(workflow, params, place, everything)
    wf = left.workflow
    if not wf.n_tasks and left.up_to_date:
        _tell_nothing(left, as_json)
        return
    told = expected(workflow, wf, file, place, budget is not None)
    if left.summary and not as_json:
        say(left.summary)
    if pareto is not None:
        _pareto(left, told, planner, pareto, as_json, budget, deadline)
        return
    with tell_when_slow("looking for a plan"):
        schedule = api.plan(
            wf,
            told.platform,
            planner,
            budget,
            deadline,
            estimates=told.estimates,
            reserve=reserve,
        )
    for path in charts:
        draw_gantt(schedule, path)
    if as_json:
        from foreplan.scheduling.margins import plan_to_dict

        content = plan_to_dict(schedule)
        tasks = content.pop("tasks")  # after what was asked for
        content |= {**_asked(budget, deadline), **_up_to_date(left), "tasks": tasks}
        print(json.dumps(content, indent=1))
    else:
        show(schedule, budget, deadline, reserve)
        for path in charts:
            print(f"wrote {path}")


def _tell_nothing(left: Left, as_json: bool) -> None:
    """All is up to date: there is nothing to plan, and nothing to draw."""
    if as_json:
        content = {"planner": None, "makespan": 0.0, "cost": 0.0, **_up_to_date(left)}
        print(json.dumps({**content, "tasks": {}}, indent=1))
    else:
        say(left.summary)


def _up_to_date(left: Left) -> dict[str, list[str]]:
    """The tasks that are not planned, where the directory was asked for them."""
    return {} if left.up_to_date is None else {"up_to_date": [*left.up_to_date]}


def _pareto(
    left: Left,
    told: Expectation,
    planner: str | None,
    path: Path,
    as_json: bool,
    budget: float | None,
    deadline: float | None,
) -> None:
    """The plans over all budgets: printed, and drawn."""
    from foreplan import api
    from foreplan.charts.frontier import write_plot

    wf = left.workflow
    with tell_when_slow("planning for many budgets") as progress:
        frontier = api.pareto(
            wf,
            told.platform,
            planner,
            budget=budget,
            progress=progress,
            estimates=told.estimates,
        )
    write_plot(frontier, path, f"{wf.name}: what money buys", budget, deadline)
    if as_json:
        content = {**frontier.to_dict(), **_asked(budget, deadline), **_up_to_date(left)}
        print(json.dumps(content, indent=1))
    else:
        show_frontier(frontier, wf.name, budget)
        print(f"wrote {path}")


def show_frontier(frontier: Frontier, name: str, budget: float | None = None) -> None:
    """Print the plans by cost; the knee and the best within the budget are marked."""
    from foreplan.charts.tables import of_plans

    points = frontier.points
    first, last = points[0], points[-1]
    said = f"{name}: {many(len(points), 'plan')} by {first.schedule.planner}"
    if len(points) > 1:
        said += f", from {duration(first.makespan)} for {amount(first.cost)}"
        said += f" to {duration(last.makespan)} for {amount(last.cost)}"
    say(said, "bold")
    table(*of_plans(frontier, budget))
    for line in _remarks(frontier, budget):
        say(line)


def _remarks(frontier: Frontier, budget: float | None) -> list[str]:
    points, said = frontier.points, list[str]()
    if frontier.free:
        said.append("nothing to choose: no processor and no link has a price")
    elif len(points) == 1:
        said.append("nothing to choose: the cheapest plan found is also the fastest")
    if (k := frontier.knee) is not None:
        said.append(
            f"knee: {duration(points[k].makespan)} for {amount(points[k].cost)}; "
            "beyond it, more money buys less"
        )
    if budget is not None and math.isfinite(budget) and frontier.within(budget) is None:
        said.append(f"no plan found costs at most {amount(budget)}")
    if len(points) > 1:
        by = points[0].schedule.planner
        named = "" if by == "best-affordable" else f" --planner '{by}'"
        said.append(f"each is given by `foreplan plan{named} --budget` with the budget of its row")
    return said


def _asked(budget: float | None, deadline: float | None) -> dict[str, float]:
    """The limits that were asked for."""
    limits = {"budget": budget, "deadline": deadline}
    return {name: value for name, value in limits.items() if value is not None}


def show(
    schedule: Schedule,
    budget: float | None = None,
    deadline: float | None = None,
    reserve: float = 0.0,
) -> None:
    """Print a summary, each processor's share, and the tasks where they are few."""
    from foreplan.scheduling.margins import margins

    wf, pf = schedule.workflow, schedule.platform
    span, late = schedule.makespan, margins(schedule)
    # within a budget: what is said can be asked for as a deadline
    ends = precise(span) if budget is None else in_seconds(span)
    say_size(wf, pf)
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
    if late.path:
        say(f"critical: {late.in_words(wf.task_names)}")
    processor_table(schedule, {"tasks": schedule.start >= 0})
    if wf.n_tasks <= SHOWN:
        _show_tasks(schedule, late)


def _show_tasks(schedule: Schedule, late: Margins) -> None:
    from foreplan.model.profiles import amounts_held
    from foreplan.model.resources import MEMORY

    names, processors = schedule.workflow.task_names, schedule.platform.processor_names
    more = dict[str, list[str]]()  # columns that only some plans have
    if schedule.cores is not None and (schedule.cores.width > 1).any():
        more["cores"] = [str(width) for width in schedule.cores.width.tolist()]
    if (memory := amounts_held(schedule, MEMORY)).any():
        more["memory"] = [data_size(size) if size else "-" for size in memory.tolist()]
    rows = [
        [
            names[task],
            processors[schedule.processor[task]],
            *(column[task] for column in more.values()),
            duration(schedule.start[task], 3),
            duration(schedule.finish[task], 3),
            duration(late.slack[task]) if late.slack[task] else "-",
            duration(late.spare[task]) if late.spare[task] else "-",
        ]
        for task in sorted(range(len(names)), key=lambda t: schedule.start[t])
    ]
    table(["task", "processor", *more, "start", "finish", "slack", "spare"], rows, texts=2)
