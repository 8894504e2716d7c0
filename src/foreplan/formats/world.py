"""The simulated world: durations, availability, bandwidth and failures, from YAML and JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from foreplan.errors import InputError, place_of
from foreplan.formats.fields import (
    check_fields,
    divisor,
    mapping,
    named,
    number,
    sequence,
    shown,
    wrong,
)
from foreplan.formats.foreplan_platform import Pair, by_hosts
from foreplan.formats.foreplan_workflow import workflow_from_dict
from foreplan.formats.growing import added_tasks
from foreplan.model import Workflow
from foreplan.model.world import Trace, WorldFile

FIELDS = ("durations", "availability", "bandwidth", "failures", "leaving", "expansions")


def world_from_dict(content: Mapping[str, object]) -> WorldFile:
    """A world from the content of a file; names are checked when it meets a workflow."""
    document = mapping(content)
    if "tasks" in document or "workflow" in document:
        raise InputError("this is a workflow, not a world")
    if "processors" in document:
        raise InputError("this is a platform, not a world")
    check_fields(document, FIELDS)
    readers: dict[str, Callable[..., object]] = {
        "durations": _factor,
        "availability": _shares,
        "failures": _times,
        "leaving": _announcement,
    }
    sections: dict[str, Any] = {
        section: {
            entry: read(value, section, entry)
            for entry, value in named(document.get(section), "", section).items()
        }
        for section, read in readers.items()
    }
    return WorldFile(
        **sections,
        bandwidth=_bandwidth(document.get("bandwidth")),
        expansions={
            task: _expansion(more, "expansions", task)
            for task, more in named(document.get("expansions"), "", "expansions").items()
        },
    )


def _expansion(value: object, *place: str | int) -> Workflow:
    """The tasks that a task adds, as it would print them."""
    document: Any = mapping(value, *place)
    try:
        return added_tasks(document, workflow_from_dict)
    except InputError as error:
        where = ".".join(filter(None, [place_of(*place), error.place]))
        raise InputError(error.problem, place=where) from None


def _factor(value: object, *place: str | int) -> float:
    factor = divisor(number(value, *place), *place)
    if factor == 0:
        raise wrong("the factor must be more than 0", *place)
    return factor


def _shares(value: object, *place: str | int) -> Trace:
    trace = _trace(value, *place)
    for i, (_, share) in enumerate(trace):
        if share > 1:
            raise wrong(f"an availability is from 0 to 1, not {share:g}", *place, i)
    return trace


def _bandwidth(section: object) -> dict[Pair, Trace]:
    """Traces by pair of hosts."""
    form = "[host, host, [[time, factor], ...]]"
    entries = by_hosts(section, "bandwidth", form)
    return {pair: _trace(value, "bandwidth", i) for i, pair, value in entries}


def _trace(value: object, *place: str | int) -> Trace:
    """Pairs of a time and what holds from then on, the times ascending."""
    trace: list[tuple[float, float]] = []
    for i, entry in enumerate(sequence(value, *place)):
        pair = sequence(entry, *place, i)
        if len(pair) != 2:
            raise wrong(f"expected [time, value], not {shown(entry)}", *place, i)
        time = number(pair[0], *place, i)
        if trace and time <= trace[-1][0]:
            raise wrong(_not_ascending(time, trace[-1][0]), *place, i)
        trace.append((time, divisor(number(pair[1], *place, i), *place, i)))
    return tuple(trace)


def _times(value: object, *place: str | int) -> tuple[float, ...]:
    """When a processor dies, or a list: dies, is back, dies again."""
    if not isinstance(value, list | tuple):
        return (number(value, *place),)
    times: list[float] = []
    for i, entry in enumerate(value):
        time = number(entry, *place, i)
        if times and time <= times[-1]:
            raise wrong(_not_ascending(time, times[-1]), *place, i)
        times.append(time)
    if not times:
        raise wrong("expected a time, or [dies, back, ...], not an empty list", *place)
    return tuple(times)


def _announcement(value: object, *place: str | int) -> tuple[float, float]:
    """When it is announced that a processor leaves, and when it does."""
    pair = sequence(value, *place)
    if len(pair) != 2:
        raise wrong(f"expected [announced, gone], not {shown(value)}", *place)
    announced, gone = (number(time, *place, i) for i, time in enumerate(pair))
    if gone < announced:
        raise wrong(f"it cannot be gone at {gone:g}, before that is announced", *place)
    return announced, gone


def _not_ascending(time: float, before: float) -> str:
    return f"the times must ascend, but {time:g} comes after {before:g}"
