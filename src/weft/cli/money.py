"""Options and words about money and time that the commands for runs share."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli.wording import took
from weft.errors import InputError, rounded_up
from weft.quantities import amount, duration

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
OwnReserve = Annotated[
    float | None,
    typer.Option(
        help="Plans leave this share of the money that is left for surprises: 0.1 is 10%.",
        show_default="0.03 with a budget",
    ),
]
OWN_RESERVE = 0.03  # of a real run: things take longer than expected more often than shorter
_UNITS = {"": 1.0, "s": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_TIMES = re.compile(r"(?:\d+(?:\.\d+)?\s*(?:s|min|m|h|d)\s*)+|\d+(?:\.\d+)?")
_TIME = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)")


def read_time(text: str) -> float:
    """Seconds, from `5400`, `90min`, `1.5h` or `1h 30min`."""
    if not _TIMES.fullmatch(text.strip()):
        raise InputError(f"{text!r} is no time: 5400 (seconds), 90min, 1.5h or 2d")
    return sum(float(number) * _UNITS[unit] for number, unit in _TIME.findall(text))


Deadline = Annotated[
    float | None,
    typer.Option(
        parser=read_time,
        metavar="TIME",
        help="Be done by then, as cheaply as possible: seconds from the start of the run, or "
        "`90min`, `1.5h`, `2d`. A run that is late goes on.",
    ),
]


def amounts(money: Money, budget: float) -> str:
    """The money of a run under way, in words."""
    said = [f"{amount(money.spent)} spent", f"{amount(money.committed)} committed"]
    if math.isfinite(money.projected):
        said.append(f"{amount(money.projected)} projected")
    text = ", ".join(said)
    return f"{text} of a budget of {amount(budget)}" if math.isfinite(budget) else text


def foreseen(run: Run) -> str:
    """Whether it was known, or only seemed, that the budget would not do."""
    finished = bool((run.final_attempts() >= 0).all())
    return "it seemed" if finished and run.within_budget else "known"


def against_deadline(run: Run) -> str:
    """How far before or after the deadline it ended."""
    left = run.deadline - run.makespan
    what = f"{took(left)} before it" if run.in_time else f"{took(-left)} late"
    text = f"deadline {took(run.deadline)}: ended at {took(run.makespan)}, {what}"
    if not math.isnan(run.late_at) and not run.in_time:
        text += f"; known at {took(run.late_at)}"
    return text


def against_budget(run: Run) -> str:
    """What was spent of the budget, and what is left or over."""
    left = run.budget - run.cost
    what = f"{amount(left)} left" if run.within_budget else f"{rounded_up(-left)} over"
    text = f"budget {amount(run.budget)}: {amount(run.cost)} spent, {what}"
    if not math.isnan(run.over_budget_at):
        text += f"; {foreseen(run)} at {duration(run.over_budget_at)} that it would not do"
    return text
