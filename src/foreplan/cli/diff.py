"""`foreplan diff`: what is different between two runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foreplan.cli.shared.options import RunDirectory, RunId, json_option
from foreplan.cli.shared.tables import say, table
from foreplan.quantities import against, amount, duration, first_few, many

if TYPE_CHECKING:
    from foreplan.report.difference import Difference, Pair, TaskDifference

MOST = 15  # tasks of a table
COMMANDS = 5  # commands that are shown as they were and are
LEAST = 0.02  # seconds: less is chance
TIMES = ("makespan", "planned")
SHARES = ("utilisation", "overhead")


def diff(
    before: RunId,
    after: Annotated[
        str, typer.Argument(help="The other run, likewise: what is different in it.")
    ] = "last",
    directory: RunDirectory = Path(),
    as_json: Annotated[bool, json_option("all of it")] = False,
) -> None:
    """Compare two runs: workflow, options, machines, times, attempts and money.

    Tasks are compared by name, those whose times differ most first. It reads the journals and
    changes nothing; either run may be under way.

    Example: `foreplan diff pipeline-20261115-233501 last`
    """
    from foreplan.report.difference import difference
    from foreplan.runs.home import RunHome

    found = difference(RunHome.find(directory, before), RunHome.find(directory, after))
    if as_json:
        print(json.dumps(found.to_dict(), indent=1, allow_nan=False))
        return
    say(f"{found.runs[0]} -> {found.runs[1]}", "bold")
    _figures(found.figures)
    _workflow(found)
    _changes("Options", found.options)
    _machines(found.machines)
    _tasks(found.tasks)
    if found.is_same:
        say("\nworkflow, options and machines are the same, and so is what came of each task")


def _figures(figures: dict[str, Pair]) -> None:
    rows = []
    for name, (before, after) in figures.items():
        if before is None and after is None:
            continue
        known = isinstance(before, int | float) and isinstance(after, int | float)
        change = _change(name, before, after) if known and before != after else ""
        rows.append([name, _figure(name, before), _figure(name, after), change])
    table(["", "before", "after", "change"], rows)


def _figure(name: str, value: Any) -> str:
    if value is None:
        return "-"
    if name in TIMES:
        return duration(value)
    if name in SHARES:
        return f"{value:.0%}"
    return amount(value, 4) if name == "cost" else f"{value:,}" if name != "status" else value


def _change(name: str, before: float, after: float) -> str:
    """Of times and money the share, of counts how many."""
    if name in SHARES:
        return ""
    if name in (*TIMES, "cost"):
        return against(after, before) if before > 0 else ""
    return f"{after - before:+,}"


def _workflow(found: Difference) -> None:
    """Tasks that came, went or changed."""
    if not (found.added or found.removed or found.changed or any(found.edges)):
        return
    say("\nWorkflow", "bold")
    for word, names in (("added", found.added), ("removed", found.removed)):
        if names:
            listed = first_few(names, MOST)
            say(f"{word}: {many(len(names), 'task')}: {listed}")
    for word, count in zip(("new", "gone"), found.edges, strict=True):
        if count:
            say(f"{many(count, 'dependency', 'dependencies')} {word}")
    commands = 0
    for task, fields in list(found.changed.items())[:MOST]:
        say(f"changed: {task}: {', '.join(fields)}")
        if "run" in fields and commands < COMMANDS:
            commands += 1
            for mark, text in zip("-+", fields["run"], strict=True):
                for line in str(text or "").strip().splitlines():
                    say(f"  {mark} {line}", "red" if mark == "-" else "green")
    if len(found.changed) > MOST:
        say(f"{len(found.changed) - MOST:,} more tasks have changed")


def _changes(title: str, pairs: dict[str, Pair]) -> None:
    if pairs:
        say(f"\n{title}", "bold")
        rows = [[name, *(_word(value) for value in pair)] for name, pair in pairs.items()]
        table([title.lower(), "<before", "<after"], rows)


def _word(value: Any) -> str:
    return "-" if value is None else value if isinstance(value, str) else json.dumps(value)


def _machines(pairs: dict[str, Pair]) -> None:
    """Processors that came, went, or are not what they were."""
    came = [name for name, (before, _) in pairs.items() if before is None]
    went = [name for name, (_, after) in pairs.items() if after is None]
    other = {name: pair for name, pair in pairs.items() if None not in pair}
    if pairs:
        say("\nMachines", "bold")
    for word, names in (("only after", came), ("only before", went)):
        if names:
            listed = first_few(names, MOST)
            say(f"{word}: {many(len(names), 'processor')}: {listed}")
    for name, (before, after) in list(other.items())[:MOST]:
        unlike = [key for key in before if before[key] != after[key]]
        words = (f"{key} {_word(before[key])} -> {_word(after[key])}" for key in unlike)
        say(f"{name}: {', '.join(words)}")


def _tasks(tasks: list[TaskDifference]) -> None:
    """First what came out otherwise, then what took another time."""
    both = [task for task in tasks if None not in task.states]
    if other := [task for task in both if task.is_other]:
        say("\nTasks that came out otherwise", "bold")
        rows = [
            [t.task, _arrow(t.states), _arrow(t.attempts)]
            for t in sorted(other, key=_by_state)[:MOST]
        ]
        table(["task", "<state", "<attempts"], rows)
        _more(len(other), "task")
    if slower := [task for task in both if abs(task.by) >= LEAST]:
        say("\nTasks by how much their times differ", "bold")
        rows = [
            [
                t.task,
                *(duration(s) for s in t.seconds if s is not None),
                f"{'+' if t.by > 0 else '-'}{duration(abs(t.by))}",
                _arrow(t.processors),
            ]
            for t in slower[:MOST]
        ]
        table(["task", "before", "after", "difference", "<on"], rows)
        _more(len(slower), "task")


def _by_state(task: TaskDifference) -> bool:
    return task.states[0] == task.states[1]


def _arrow(pair: Pair) -> str:
    before, after = pair
    return f"{before}" if before == after else f"{before} -> {after}"


def _more(count: int, one: str) -> None:
    if count > MOST:
        say(f"{many(count - MOST, 'more ' + one)} not shown; --json has all", "dim")
