"""What a notebook shows of plans, runs, workflows and answers: a picture and a short table.

A picture is an image within the HTML: it needs nothing else, and nothing of it reaches the page.
"""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import Callable, Sequence
from functools import partial
from html import escape
from typing import TYPE_CHECKING

from foreplan.charts.graph import CATEGORIES, FEW, graph_of
from foreplan.charts.tables import (
    Rows,
    by_processor,
    of_alternatives,
    of_categories,
    of_plans,
    of_strategies,
)
from foreplan.files import one_line
from foreplan.model import ENDS

if TYPE_CHECKING:
    from foreplan.charts.plots import Target
    from foreplan.comparison import Comparison
    from foreplan.flow import Flow
    from foreplan.model import Platform, Run, Schedule, Workflow
    from foreplan.runs import Outcome
    from foreplan.scheduling.frontier import Frontier
    from foreplan.whatif import WhatIf

MOST_TASKS = 20_000  # of more there is no picture: it would take long, and show nothing
MOST_PROCESSORS = 200
MOST_NODES = 150  # likewise of a graph
MOST_ROWS = 20
MOST_FAILURES = 5
WIDE, NARROW, TALLEST = 1000, 640, 800  # pixels


def of_schedule(schedule: Schedule) -> str:
    """The Gantt chart of a plan, and what every processor does."""
    from foreplan.charts.build import chart_of
    from foreplan.charts.picture import png

    picture = ""
    if _can_be_drawn(schedule.workflow.n_tasks, schedule.platform):
        picture = _image(png(chart_of(schedule)), repr(schedule))
    return _shown(schedule, picture, by_processor(schedule, {"tasks": schedule.start >= 0}))


def of_run(run: Run) -> str:
    """The Gantt chart of a run, plan against fact, and what every processor did."""
    from foreplan.charts.build import run_chart_of
    from foreplan.charts.picture import png

    closed, picture = run.closed(), ""
    if _can_be_drawn(len(run.attempts.task), run.platform):
        picture = _image(png(run_chart_of(closed)), repr(run))
    finished = run.attempts.end == ENDS.index("finished")
    counted = {"tasks": finished} | ({} if finished.all() else {"lost attempts": ~finished})
    return _shown(run, picture, by_processor(closed, counted))


def _can_be_drawn(tasks: int, platform: Platform) -> bool:
    return 0 < tasks <= MOST_TASKS and platform.n_processors <= MOST_PROCESSORS


def of_outcome(outcome: Outcome) -> str:
    """How it ended, what failed and why, and the run."""
    said = [str(outcome), *(f"note: {warning}" for warning in outcome.warnings)]
    said += [f"failed: {f.task}: {f.reason}" for f in outcome.failures[:MOST_FAILURES]]
    if (more := len(outcome.failures) - MOST_FAILURES) > 0:
        said.append(f"... and {more:,} more")
    lines = "".join(f"<div>{escape(one_line(line, 300))}</div>" for line in said)
    return lines + (of_run(outcome.run) if len(outcome.run.attempts.task) else "")


def of_workflow(workflow: Workflow) -> str:
    """The graph, by category if there are many tasks, and its categories."""
    from foreplan.charts.graph_picture import svg

    picture = ""
    if 0 < workflow.n_tasks <= MOST_TASKS:
        graph = graph_of(workflow, CATEGORIES if workflow.n_tasks > FEW else None)
        if len(graph.nodes) <= MOST_NODES:
            picture = _image(svg(graph), repr(workflow), "svg+xml", tallest=TALLEST)
    return _shown(workflow, picture, of_categories(workflow))


def of_flow(flow: Flow) -> str:
    """The workflow that a flow is by now."""
    return of_workflow(flow.build()[0]) if len(flow) else f"<div>{escape(repr(flow))}</div>"


def of_comparison(comparison: Comparison) -> str:
    """The strategies side by side."""
    from foreplan.charts.comparison import write_plot

    picture = _plotted(partial(write_plot, comparison), repr(comparison), WIDE)
    return _shown(comparison, picture, of_strategies(comparison.overall))


def of_frontier(frontier: Frontier) -> str:
    """Makespan against cost, and the plans."""
    from foreplan.charts.frontier import write_plot

    title = f"{frontier.points[0].schedule.workflow.name}: what money buys"
    picture = _plotted(lambda to: write_plot(frontier, to, title), repr(frontier))
    return _shown(frontier, picture, of_plans(frontier))


def of_what_if(answer: WhatIf) -> str:
    """What is expected of every alternative."""
    from foreplan.charts.what_if import write_plot

    picture = ""
    if answer.alternatives:
        picture = _plotted(partial(write_plot, answer), repr(answer))
    return _shown(answer, picture, of_alternatives(answer))


def _shown(thing: object, picture: str, rows: Rows) -> str:
    """The picture, which says what it is; where there is none, its name; and the table."""
    return (picture or f"<div>{escape(repr(thing).strip('<>'))}</div>") + _table(rows)


def _plotted(draw: Callable[[Target], None], words: str, widest: int = NARROW) -> str:
    content = io.BytesIO()
    draw(content)
    return _image(content.getvalue(), words, widest=widest)


def _image(
    content: bytes, words: str, kind: str = "png", widest: int = WIDE, tallest: int | None = None
) -> str:
    style = f"max-width:min(100%,{widest}px);height:auto"
    style += "" if tallest is None else f";max-height:{tallest}px"
    data = f"data:image/{kind};base64,{b64encode(content).decode()}"
    return f'<div><img alt="{escape(words)}" style="{style}" src="{data}"/></div>'


def _table(table: Rows) -> str:
    """The first rows; texts stand at the left, numbers at the right."""
    left = [k < table.texts or name.startswith("<") for k, name in enumerate(table.header)]
    lines = [_cells("th", [name.removeprefix("<") for name in table.header], left)]
    lines += [_cells("td", row, left) for row in table.rows[:MOST_ROWS]]
    if (more := len(table.rows) - MOST_ROWS) > 0:
        lines.append(f'<tr><td colspan="{len(left)}">... and {more:,} more</td></tr>')
    return f'<table style="color:inherit">{"".join(lines)}</table>'


def _cells(kind: str, row: Sequence[object], left: list[bool]) -> str:
    cells = (
        f'<{kind} style="padding:.1em .6em;text-align:{"left" if to_left else "right"}">'
        f"{escape(one_line(str(cell)))}</{kind}>"
        for cell, to_left in zip(row, left, strict=True)
    )
    return f"<tr>{''.join(cells)}</tr>"
