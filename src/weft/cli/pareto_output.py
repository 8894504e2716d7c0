"""What `weft plan --pareto` prints: a table of plans, and what more money would buy."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from weft.cli.wording import clean, many
from weft.quantities import amount, duration

if TYPE_CHECKING:
    from rich.table import Table

    from weft.frontier import Frontier


def show_frontier(frontier: Frontier, name: str, budget: float | None = None) -> None:
    """Print the plans by cost; the knee and the best within the budget are marked."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    console = console if console.is_terminal else Console(highlight=False, width=200)
    points = frontier.points
    first, last = points[0], points[-1]
    said = f"{name}: {many(len(points), 'plan')} by {first.schedule.planner}"
    if len(points) > 1:
        said += f", from {duration(first.makespan)} for {amount(first.cost)}"
        said += f" to {duration(last.makespan)} for {amount(last.cost)}"
    console.print(Text(clean(said), style="bold"))
    console.print(_table(frontier, budget))
    for line in _remarks(frontier, budget):
        console.print(Text(clean(line)))


def _table(frontier: Frontier, budget: float | None) -> Table:
    from rich.table import Table

    table = Table(box=None, header_style="dim")
    for heading in ("budget", "cost", "makespan", "a unit more buys"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("")
    knee, chosen = frontier.knee, None if budget is None else frontier.within(budget)
    for k, point in enumerate(frontier.points):
        marks = ["<- knee"] * (k == knee) + ["<- within the budget"] * (k == chosen)
        buys = frontier.buys(k)
        table.add_row(
            f"{point.budget:.15g}",  # to be copied: no thousands separators, no rounding
            amount(point.cost),
            duration(point.makespan, 3),
            "-" if buys is None else duration(buys),
            "  ".join(marks),
        )
    return table


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
        said.append(f"each is given by `weft plan{named} --budget` with the budget of its row")
    return said
