"""`foreplan why`: why a task waits, is where it is, ran again, failed, moved or was given up."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from foreplan.cli.shared.options import (
    ParamOptions,
    RunDirectory,
    TaskQuestion,
    TaskWords,
    json_option,
    with_groups,
)
from foreplan.cli.shared.tables import say, table
from foreplan.files import clean
from foreplan.quantities import amount, duration, first_few, many
from foreplan.report.words import moment

if TYPE_CHECKING:
    from foreplan.report.known import Changed, KnownTask
    from foreplan.report.placing import Placing
    from foreplan.report.why import Why

SHOWN = 8  # changes, processors
DIGEST = 8  # letters of one
NOW = {"stale": "it would run", "unsure": "it may have to run"}  # where it is not up to date


@with_groups
def why(
    words: TaskWords,
    directory: RunDirectory = Path(),
    as_json: Annotated[bool, json_option("all that is known")] = False,
    *,
    params: ParamOptions,
) -> None:
    """Tell why a task waits, is where it is, ran again, failed, moved or was given up.

    It is asked of the plan, the journal and the store, and changes nothing; the run may be under
    way. For each processor it is told when the task would end there, and the run, everything else
    as planned. With a workflow's file no run is asked: whether the task is up to date now, and if
    not, why.

    Example: `foreplan why train`

    Example: `foreplan why train words-2026 --json` (of another run)

    Example: `foreplan why pipeline.yaml train` (would it run now, and why?)
    """
    told = _asked(TaskQuestion.read(words), directory, params)
    if as_json:
        print(json.dumps(_plain(told.to_dict()), indent=1, allow_nan=False))
        return
    _show(told)


def _asked(question: TaskQuestion, directory: Path, params: ParamOptions) -> Why:
    from foreplan.report.why import why_in_run, why_now

    home = question.find_run(directory, "why", params)
    if home is not None:
        return why_in_run(home, question.task)
    assert question.workflow is not None
    return why_now(directory, question.workflow, question.task, params.values())


def _plain(value: Any) -> Any:
    """As JSON can hold it: a number that nobody knows is None."""
    if isinstance(value, float):
        return value if abs(value) != float("inf") and value == value else None
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def _show(told: Why) -> None:
    from foreplan.runs.undeclared import summarise_not_kept

    where = "" if told.run is None else f" (run {told.run}, {told.status})"
    say(f"{told.task}: {NOW.get(told.state, told.state)}{where}", "bold")
    if told.damage is not None:
        say(f"note: {told.damage}", "yellow")
    if told.waits:
        _fact("waits", told.waits.removeprefix("waits "))
    if len(told.needs) > 1:
        listed = first_few((f"{need.task} ({need.state})" for need in told.needs), SHOWN)
        _fact("needs", listed)
    if told.because:
        _fact("runs", told.because)
    if told.known is not None:
        _show_known(told, told.known)
    if told.place is not None:
        _show_place(told.place, told.blind)
    for move in told.moves:
        way = f"from {move.source} to {move.target}"
        _fact("moved", f"at {duration(move.time)} {way}: {move.reason}")
    if told.undeclared is not None:
        _fact("not kept", summarise_not_kept([told.undeclared]))
    for line in told.stale:
        _fact("warning", line)
    _show_attempts(told)


def _fact(label: str, text: str) -> None:
    first, *rest = clean(text).splitlines() or [""]
    head = f"{label}:" if label else ""
    say("\n".join([f"{head:<10}{first}", *(" " * 10 + line for line in rest)]))


def _show_known(told: Why, known: KnownTask) -> None:
    """What the store knows: since when it is as it is, and what has changed."""
    for change in known.changed[:SHOWN]:
        _fact("changed", _change(change))
    if len(known.changed) > SHOWN:
        _fact("", f"and {len(known.changed) - SHOWN:,} more")
    if known.changed and known.since:
        _fact("since", f"run {known.since}")
    if known.edited:
        _fact(
            "edited",
            f"somebody has changed {known.edited}: `foreplan adopt {known.edited}` keeps it, "
            f"`{known.remake}` makes it again",
        )
    if known.made_at is not None:
        by = f"by run {known.made_by}" if known.made_by else (known.note or "adopted")
        at = datetime.fromtimestamp(known.made_at, UTC).isoformat(timespec="seconds")
        _fact("made", f"{by}, {moment(at)}")
    if known.problem:
        _fact("now", f"cannot be told: {known.problem}")
    elif known.now is not None and known.now != told.state:
        _fact("now", NOW.get(known.now, known.now) + (f": {known.reason}" if known.reason else ""))
    elif known.reason:
        _fact("because", known.reason)


def _change(change: Changed) -> str:
    if change.what == "command":
        return f"its command\n- {_lines(change.before)}\n+ {_lines(change.after)}"
    what = {"input": "its input", "output": "its output", "after": "what it comes after:"}
    what |= {"around": "its"}
    name = f"{what.get(change.what, f'its {change.what}')} {change.name}".rstrip()
    if change.what == "output":
        return f"{name} is {'new' if change.before is None else 'no longer made'}"
    if change.before is None:
        return f"{name} is new"
    if change.after is None:
        return f"{name} is no longer {'there' if change.what == 'around' else 'read'}"
    by = f", made by run {change.made_by}" if change.made_by else ""
    return f"{name}: {change.before[:DIGEST]} -> {change.after[:DIGEST]}{by}"


def _lines(text: str | None) -> str:
    return "(not known)" if text is None else "\n  ".join(text.strip().splitlines())


def _show_place(place: Placing, blind: bool) -> None:
    _fact("where", f"{place.processor or 'no processor yet'}, by {place.by}")
    if place.verdict:
        _fact("", place.verdict)
    rows = place.alternatives
    if len(rows) < 2:
        return
    timed = any(row.finish is not None for row in rows)
    if timed and blind:
        _fact("", "nothing was known of the times of tasks: these are guesses")
    whole, paid = (any(getattr(row, k) is not None for row in rows) for k in ("makespan", "cost"))
    moved = any(row.lacks for row in rows)
    header = ["processor", "host", "<then" if place.begun else "<now"]
    header += ["it ends"] * timed + ["the run"] * whole + ["cost"] * paid + ["<must fetch"] * moved
    order = sorted(rows, key=lambda row: (not row.chosen, row.finish is None, row.finish or 0.0))
    lines = []
    for row in order[:SHOWN]:
        line = [row.processor + " *" * row.chosen, row.host, row.doing]
        line += [_time(row.finish)] * timed + [_time(row.makespan)] * whole
        line += ["-" if row.cost is None else amount(row.cost)] * paid
        lines.append(line + [first_few(row.lacks, 3)] * moved)
    say("")
    table(header, lines, texts=2)
    hidden = len(rows) - SHOWN + place.left_out
    if hidden > 0:
        say(f"{many(hidden, 'processor')} more, see --json", "dim")


def _time(seconds: float | None) -> str:
    return "-" if seconds is None else duration(seconds)


def _show_attempts(told: Why) -> None:
    if not told.attempts:
        return
    say("")
    for number, tried in enumerate(told.attempts, 1):
        took = "" if tried.finish is None else f" after {duration(tried.finish - tried.start)}"
        text = f"attempt {number}: {tried.processor}, at {duration(tried.start)}: {tried.end}{took}"
        text += f": {tried.reason}" if tried.reason else ""
        say(clean(text + (f"; {tried.then}" if tried.then else "")))
        if tried.scratch is not None:
            say(f"  its directory was kept: `foreplan shell {told.task} {told.run}`", "dim")
