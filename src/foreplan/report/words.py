"""What a run tells of itself in words: money, deadline, what was lost, commands that failed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from foreplan.errors import rounded_up
from foreplan.files import near
from foreplan.quantities import amount, duration, first_few, many

if TYPE_CHECKING:
    from foreplan.model import Run


def moment(text: str | None) -> str:
    """A moment of a journal's, which is UTC, in the user's time."""
    try:
        return datetime.fromisoformat(text or "").astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except ValueError:
        return "-"


def against_budget(run: Run) -> str:
    """What was spent of the budget, and what is left or over."""
    left = run.budget - run.cost
    what = f"{amount(left)} left" if run.within_budget else f"{rounded_up(-left)} over"
    text = f"budget {amount(run.budget)}: {amount(run.cost)} spent, {what}"
    if not math.isnan(run.over_budget_at):
        text += f"; {not_enough(run)}"
    return text


def not_enough(run: Run) -> str:
    """When it was known, or only seemed, that the budget would not be enough."""
    finished = bool((run.final_attempts() >= 0).all())
    known = "it seemed" if finished and run.within_budget else "known"
    return f"{known} at {duration(run.over_budget_at)} that it would not be enough"


def against_deadline(run: Run) -> str:
    """How far before or after the deadline it ended."""
    left = run.deadline - run.makespan
    what = f"{duration(left)} before it" if run.in_time else f"{duration(-left)} late"
    text = f"deadline {duration(run.deadline)}: ended at {duration(run.makespan)}, {what}"
    if not math.isnan(run.late_at) and not run.in_time:
        text += f"; known at {duration(run.late_at)}"
    return text


def recovery_of(run: Run) -> str:
    """How the run adapted: tasks moved, copies used, work done again; empty if nothing was."""
    said, figures = [], run.recovery()
    if figures["migrations"]:
        running = f" ({many(figures['restarts'], 'running task')})" if figures["restarts"] else ""
        said.append(many(figures["migrations"], "migration") + running)
    if figures["copies_used"]:
        said.append(f"{many(figures['copies_used'], 'transfer')} from copies")
    if figures["rewound"]:
        levels = many(figures["rewound_levels"], "level")
        said.append(f"{many(figures['rewound'], 'finished task')} rewound, on {levels}")
    if figures["lost_seconds"] > 0:
        said.append(f"{duration(figures['lost_seconds'])} of processors lost")
    return ", ".join(said)


def about_command(
    command: str | None, unlisted: Sequence[str], kept: Path | None = None
) -> list[str]:
    """The lines about a command that has failed: all of it, what was perhaps forgotten, where."""
    if command is None:
        return []
    first, *rest = command.strip().splitlines() or [""]
    lines = [f"command: {first}", *(f"         {line}" for line in rest)]
    if unlisted:
        names, one = first_few(unlisted), len(unlisted) == 1
        lines.append(
            f"it names {names}, which {'is' if one else 'are'} in the data directory but not "
            f"among its inputs: list {'it' if one else 'them'} under inputs"
        )
    if kept is not None:
        lines.append(f"its directory was kept, with the command as a script: {near(kept)}")
    return lines
