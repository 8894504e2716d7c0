"""How a run ended: the summary that is printed, and the exit code."""

from __future__ import annotations

import io
import json
import math
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

from foreplan.cli.shared.notify import notify
from foreplan.cli.shared.terminal import INTERRUPTED, command, hear_signals
from foreplan.display.display import Display, display
from foreplan.display.view import amounts
from foreplan.errors import ForeplanError, rounded_up
from foreplan.files import clean, near
from foreplan.quantities import amount, first_few
from foreplan.report.words import about_command, against_budget, against_deadline
from foreplan.runs.home import check_system
from foreplan.runs.journal import JournalRemovedError
from foreplan.runs.surveys import run_command, uses_store

if TYPE_CHECKING:
    from foreplan.model import Run
    from foreplan.runs import Failure, Outcome, Session
    from foreplan.runs.entries import Header

STOPPED = "stopped"
FAILED = "failed"
CODES = {"finished": 0, FAILED: 1, STOPPED: INTERRUPTED}
OVER_BUDGET, LATE = 3, 4  # it is finished, but
SHOWN = 10  # failures, and lines of each one's log


def drive(
    opened: Callable[[Display], Session],
    directory: Path,
    as_json: bool,
    quiet: bool,
    detached: Callable[[str], None] | None = None,
    notified: str | None = None,
) -> NoReturn:
    """Have a run driven and shown; tell how it ended, and exit accordingly."""
    check_system()
    shown = display(quiet, as_json, detached)
    shown.summary = lambda outcome: told(outcome, shown, directory)
    with hear_signals(shown.hang_up):
        try:
            with shown, opened(shown) as session:
                outcome = session.drive()
        except KeyboardInterrupt:
            if shown.id is not None:
                again = command("resume", shown.id, directory)
                print(f"stopped; `{again}` resumes it", file=sys.stderr)
                notify(notified, shown.id, STOPPED, shown.ended, f"run {shown.id} {STOPPED}")
            raise typer.Exit(INTERRUPTED) from None
        except ForeplanError as error:
            if shown.id is not None:  # it had begun
                if not isinstance(error, JournalRemovedError):
                    again = command("resume", shown.id, directory)
                    advice = f"the run ends here; once that is repaired, `{again}` resumes it"
                    print(advice, file=sys.stderr)
                message = f"run {shown.id} cannot continue: {error}"
                notify(notified, shown.id, "error", shown.ended, message)
            raise
        if as_json:
            shown.conclude(json.dumps(outcome.to_dict(), indent=1, allow_nan=False))
        else:
            shown.conclude(told(outcome, shown, directory))
        message = told(outcome, shown, directory).partition("\n")[0]
        notify(notified, outcome.id, outcome.status, outcome.makespan, message)
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
    run = outcome.run.closed(shown.ended)
    if outcome.ok and len(run.attempts.task) == shown.attempts_before > 0:
        print(f"run {outcome.id} was finished already: nothing was to be done")
    else:
        _print_figures(outcome, run)
    for warning in outcome.warnings:
        print(clean(f"note: {warning}"))
    _print_undeclared(outcome)
    for failure in outcome.failures[:SHOWN]:
        _print_failure(failure, outcome.home)
    if len(outcome.failures) > SHOWN:
        print(f"... and {len(outcome.failures) - SHOWN} more")
    _print_waiting(outcome)
    print(f"more about it: {command('report', outcome.id, directory)}")
    if logged := [failure.task for failure in outcome.failures if failure.log]:
        shown_by = command("logs", logged[0], directory, outcome.id)
        print(clean(f"all that {logged[0]} printed: {shown_by}"))
    again = command("resume", outcome.id, directory)
    if outcome.needed is not None:
        print(f"resume it: {again} --budget {rounded_up(outcome.needed)}{_expected(outcome)}")
        print(f"or finish it the cheapest way all the same: {again} --over-budget continue")
    elif outcome.status == FAILED and (what := _what_is_left(shown.header, directory)):
        print(f"fix it, then do what is left: {what}")
    elif not outcome.ok:
        print(f"resume it: {again}")


def _what_is_left(header: Header | None, directory: Path) -> str | None:
    """The command that does what is not up to date; None where a new run would do all again."""
    if header is None or header.source is None or not uses_store(None, header.options):
        return None
    return run_command(header.source, replace(header.options, directory=directory))


def _expected(outcome: Outcome) -> str:
    """What may be enough, beside what is advised."""
    expected = math.nan if outcome.money is None else outcome.money.projected
    if not outcome.run.budget < expected < 0.99 * (outcome.needed or 0.0):
        return " (or more)"
    return f" (or more; {rounded_up(expected)} if all goes as expected from now on)"


def _print_figures(outcome: Outcome, run: Run) -> None:
    print(outcome.headline(run.makespan))
    if run.failed_attempts > len(outcome.failures):
        print(f"failed attempts: {run.failed_attempts:,}")
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


def _print_undeclared(outcome: Outcome) -> None:
    """Print which files were not kept, and which tasks read older ones in their place."""
    from foreplan.runs.undeclared import summarise_not_kept

    if outcome.undeclared:
        print(clean(f"not kept: {summarise_not_kept(outcome.undeclared)}"))
    for line in [line for made in outcome.undeclared for line in made.stale_reads()][:SHOWN]:
        print(clean(f"warning: {line}"))


def _print_failure(failure: Failure, home: Path) -> None:
    print(clean(f"\nfailed: {failure.task}: {failure.reason}"))
    if failure.log:
        print(f"  log: {near(home / failure.log)}")
    for line in failure.tail.splitlines()[-SHOWN:]:
        print(clean(f"  | {line}"))
    kept = home / failure.scratch if failure.scratch else None
    for line in about_command(failure.command, failure.unlisted, kept):
        print(clean(f"  {line}"))


def _print_waiting(outcome: Outcome) -> None:
    """Print which tasks are not done."""
    failed = {failure.task: f"{failure.task} (failed)" for failure in outcome.failures}
    others = [task for task in outcome.not_done if task not in failed]
    if failed:
        print()
    if failed or others:
        print(clean(f"left to do: {first_few([*failed.values(), *others])}"))
