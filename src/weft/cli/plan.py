"""`weft plan`: a schedule of a workflow on a platform, before anything runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weft.errors import InputError
from weft.files import in_file

if TYPE_CHECKING:
    from rich.table import Table

    from weft.model import Schedule

SHOWN = 30  # tasks listed one by one; beyond that a summary says more


def plan(
    workflow: Annotated[Path, typer.Argument(help="The workflow: YAML, JSON, WfFormat, STG, DOT.")],
    platform: Annotated[
        Path, typer.Option("--platform", "-p", help="The machines and links: YAML or JSON.")
    ],
    planner: Annotated[
        str,
        typer.Option(
            help="A planner, such as `heft` or `heft[insertion=false]`; see `weft planners`."
        ),
    ] = "heft",
    as_json: Annotated[bool, typer.Option("--json", help="Print the schedule as JSON.")] = False,
    gantt: Annotated[
        list[Path] | None,
        typer.Option(help="Draw it: .svg, .png, .html (zoom and hover), .json (for Perfetto)."),
    ] = None,
) -> None:
    """Plan a workflow: which task runs where and when, how long it takes, what it costs.

    Example: `weft plan wf.yaml -p cluster.yaml --planner heft --gantt plan.html`
    """
    from weft import api, registry
    from weft.model import Situation

    for path in gantt or []:
        check_suffix(path)
    chosen = registry.planner(planner)
    wf, pf = api.load(workflow), api.load_platform(platform)
    with in_file(workflow):  # a task without a cost is found only with the platform at hand
        situation = Situation.at_start(wf, pf)
    schedule = chosen.plan(situation)
    if as_json:
        print(json.dumps(schedule.to_dict(), indent=1))
    else:
        show(schedule)
    for path in gantt or []:
        draw(schedule, path)
        if not as_json:
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


def show(schedule: Schedule) -> None:
    """Print a summary, each processor's share, and the tasks where they are few."""
    from rich.console import Console

    console = Console(highlight=False)
    wf, pf = schedule.workflow, schedule.platform
    span = schedule.makespan
    console.print(
        f"{wf.name}: {wf.n_tasks} tasks, {wf.n_edges} dependencies, "
        f"{pf.n_processors} processors on {pf.n_hosts} hosts",
        markup=False,
    )
    console.print(
        f"planner {schedule.planner}: makespan {span:,.6g} s, cost {schedule.cost:,.6g}, "
        f"mean utilisation {schedule.utilisation:.0%}",
        markup=False,
        style="bold",
    )
    console.print(_processors(schedule))
    if wf.n_tasks <= SHOWN:
        console.print(_tasks(schedule))


def _processors(schedule: Schedule) -> Table:
    from rich.table import Table
    from rich.text import Text

    pf, busy, span = schedule.platform, schedule.busy, schedule.makespan
    table = Table("processor", "host", box=None, header_style="dim")
    for heading in ("tasks", "busy s", "busy %", "cost"):
        table.add_column(heading, justify="right")
    counts = [0] * pf.n_processors
    for p in schedule.processor.tolist():
        counts[p] += 1
    for p, name in enumerate(pf.processor_names):
        table.add_row(
            Text(name),
            Text(pf.host_names[pf.host[p]]),
            str(counts[p]),
            f"{busy[p]:,.6g}",
            f"{busy[p] / span:.0%}" if span > 0 else "-",
            f"{busy[p] * pf.price[p]:,.6g}",
        )
    return table


def _tasks(schedule: Schedule) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table("task", "processor", box=None, header_style="dim")
    table.add_column("start", justify="right")
    table.add_column("finish", justify="right")
    for task in sorted(range(schedule.workflow.n_tasks), key=lambda t: schedule.start[t]):
        table.add_row(
            Text(schedule.workflow.task_names[task]),
            Text(schedule.platform.processor_names[schedule.processor[task]]),
            f"{schedule.start[task]:,.6g}",
            f"{schedule.finish[task]:,.6g}",
        )
    return table
