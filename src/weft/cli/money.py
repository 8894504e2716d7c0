"""Options and words about money that the commands for runs share."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

import typer

from weft.errors import rounded_up

if TYPE_CHECKING:
    from weft.model import Money, Run

Budget = Annotated[
    float | None,
    typer.Option(
        help="Money for all of it: every plan costs at most this, with what is spent already."
    ),
]
OverBudget = Annotated[
    str,
    typer.Option(
        metavar="continue|stop|cut",
        help="When even the cheapest way to finish is over the budget: finish that way; or finish "
        "what runs and stop; or stop, and cancel what runs when the money is gone.",
    ),
]
Reserve = Annotated[
    float,
    typer.Option(
        help="Plans leave this share of the money that is left for surprises: 0.1 is 10%."
    ),
]


def amounts(money: Money, budget: float) -> str:
    """The money of a run under way, in words."""
    said = [f"{money.spent:,.4g} spent", f"{money.committed:,.4g} committed"]
    if math.isfinite(money.projected):
        said.append(f"{money.projected:,.4g} projected")
    text = ", ".join(said)
    return f"{text} of a budget of {budget:,.6g}" if math.isfinite(budget) else text


def foreseen(run: Run) -> str:
    """Whether it was known, or only seemed, that the budget would not do."""
    finished = bool((run.final_attempts() >= 0).all())
    return "it seemed" if finished and run.within_budget else "known"


def against_budget(run: Run) -> str:
    """What was spent of the budget, and what is left or over."""
    left = run.budget - run.cost
    what = f"{left:,.6g} left" if run.within_budget else f"{rounded_up(-left)} over"
    text = f"budget {run.budget:,.6g}: {run.cost:,.6g} spent, {what}"
    if not math.isnan(run.over_budget_at):
        text += f"; {foreseen(run)} at {run.over_budget_at:,.6g} s that it would not do"
    return text
