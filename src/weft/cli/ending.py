"""How a run ended: the summary that is printed, and the exit code."""

from __future__ import annotations

import io
import json
import math
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

from weft.cli.display import Display, display
from weft.cli.money import against_budget, against_deadline, amounts
from weft.cli.recovery import recovery_of
from weft.cli.terminal import hearing_signals
from weft.cli.wording import about_command, against, clean, command, many, near, took
from weft.errors import WeftError, rounded_up
from weft.journal.system import check_system
from weft.quantities import amount

if TYPE_CHECKING:
    from weft.live import Failure, Outcome
    from weft.model import Run

INTERRUPTED = 130
CODES = {"finished": 0, "failed": 1, "stopped": INTERRUPTED}
OVER_BUDGET, LATE = 3, 4  # it is finished, but
SHOWN = 10  # failures, and lines of each one's log


def drive(
    sit: Callable[[Display], Outcome],
    directory: Path,
    as_json: bool,
    quiet: bool,
    detached: Callable[[str], None] | None = None,
) -> NoReturn:
    """Have a run driven and shown; tell how it ended, and exit accordingly."""
    check_system()
    shown = display(quiet, as_json, detached)
    shown.summary = lambda outcome: told(outcome, shown, directory)
    with hearing_signals(shown.hung_up):
        try:
            with shown:
                outcome = sit(shown)
        except KeyboardInterrupt:
            if shown.id is not None:
                again = command("resume", shown.id, directory)
                print(f"stopped; `{again}` goes on", file=sys.stderr)
            raise typer.Exit(INTERRUPTED) from None
        except WeftError:
            if shown.id is not None:  # it had begun
                again = command("resume", shown.id, directory)
                print(f"the run ends here; once mended, `{again}` goes on", file=sys.stderr)
            raise
        if as_json:
            shown.conclude(json.dumps(outcome.to_dict(), indent=1, allow_nan=False))
        else:
            shown.conclude(told(outcome, shown, directory))
    raise typer.Exit(code_of(outcome))


def code_of(outcome: Outcome) -> int:
    """The exit code: of what is finished, whether it was within its limits, too."""
    if outcome.ok and not outcome.run.within_budget:
        return OVER_BUDGET
    return LATE if outcome.ok and not outcome.run.in_time else CODES[outcome.status]


def told(outcome: Outcome, shown: Display, directory: Path) -> str:
    """The summary."""
    with redirect_stdout(io.StringIO()) as text:
        tell(outcome, shown, directory)
    return text.getvalue().rstrip("\n")


def tell(outcome: Outcome, shown: Display, directory: Path) -> None:
    """Print the summary."""
    from weft.cli.figures import closed

    run = closed(outcome.run, shown.ended)
    if outcome.ok and len(run.attempts.task) == shown.attempts_before > 0:
        print(f"run {outcome.id} was finished already: nothing was to be done")
    else:
        _figures(outcome, run)
    for warning in outcome.warnings:
        print(clean(f"note: {warning}"))
    for failure in outcome.failures[:SHOWN]:
        _failure(failure, outcome.home)
    if len(outcome.failures) > SHOWN:
        print(f"... and {len(outcome.failures) - SHOWN} more")
    _waiting(outcome)
    print(f"more about it: {command('report', outcome.id, directory)}")
    again = command("resume", outcome.id, directory)
    if outcome.needed is not None:
        print(f"go on with it: {again} --budget {rounded_up(outcome.needed)}{_expected(outcome)}")
        print(f"or finish it the cheapest way all the same: {again} --over-budget continue")
    elif not outcome.ok:
        print(f"go on with it: {again}")


def _expected(outcome: Outcome) -> str:
    """What may be enough, beside what is advised."""
    expected = math.nan if outcome.money is None else outcome.money.projected
    if not outcome.run.budget < expected < 0.99 * (outcome.needed or 0.0):
        return " (or more)"
    return f" (or more; {rounded_up(expected)} if all goes as expected from now on)"


def _figures(outcome: Outcome, run: Run) -> None:
    from weft.cli.figures import FAILED, n_done, shares

    wf, plan = run.workflow, ""
    for first in run.plans[:1] if outcome.ok else ():
        change = against(run.makespan, first.makespan)
        plan = f" (planned {took(first.makespan)}, {change})"
    print(
        f"run {outcome.id} {outcome.status}: {n_done(run):,} of {many(wf.n_tasks, 'task')} done "
        f"in {took(run.makespan)}{plan}"
    )
    said = [f"{many(run.platform.n_processors, 'processor')}: {shares(run)}"]
    if run.plans:
        said.append(f"new plans: {run.replans} of {run.considered} considered")
    if failed := int((run.attempts.end == FAILED).sum()):
        said.append(many(failed, "failed attempt"))
    if recovery := recovery_of(run):
        said.append(recovery)
    print("; ".join(said))
    if outcome.money is not None:
        print(_cost(outcome, run))
    if math.isfinite(run.deadline) and outcome.ok:
        print(against_deadline(run))


def _cost(outcome: Outcome, run: Run) -> str:
    """What it cost; of a run that is not finished, also what is expected."""
    assert outcome.money is not None
    if not outcome.ok:
        return amounts(outcome.money, run.budget)
    return against_budget(run) if math.isfinite(run.budget) else f"cost {amount(run.cost)}"


def _failure(failure: Failure, home: Path) -> None:
    print(clean(f"\nfailed: {failure.task}: {failure.reason}"))
    if failure.log:
        print(f"  log: {near(home / failure.log)}")
    for line in failure.tail.splitlines()[-SHOWN:]:
        print(clean(f"  | {line}"))
    for line in about_command(failure.command, failure.unlisted):
        print(clean(f"  {line}"))


def _waiting(outcome: Outcome) -> None:
    """Tasks that were not even tried, or not to the end."""
    failed = {failure.task for failure in outcome.failures}
    rest = [task for task in outcome.not_done if task not in failed]
    if failed:
        print()
    if rest:
        listed = ", ".join(rest[:5]) + (", ..." if rest[5:] else "")
        print(clean(f"not done: {many(len(rest), 'task')} ({listed})"))
