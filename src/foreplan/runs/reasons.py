"""Why tasks run, in a few lines: tasks of a category that run for like reasons are one group.

Reasons are alike if they differ only in names of the tasks' own files and neighbours, as in `its
input reads/1.fq has changed` and `its input reads/2.fq has changed`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from itertools import takewhile

from foreplan.quantities import first_few, many

LISTED = 5  # tasks, or groups of them, that get a place of their own
_SLOT = "\0"  # stands for a name
_SLOTS = re.compile(f"{_SLOT}(?:, {_SLOT})*(?: and \\d+ more)?")
_Shape = tuple[str, ...]  # the clauses of a reason, with slots where there are names


@dataclass
class ReasonGroup:
    """Tasks of one category that run for like reasons."""

    category: str | None
    shape: _Shape
    tasks: list[str] = field(default_factory=list)
    slots: list[dict[str, None]] = field(default_factory=list)  # the names in each slot

    @property
    def why(self) -> str:
        """The reason of all of them: `its input reads/*.fq has changed`."""
        texts = iter([_common(list(names)) for names in self.slots])
        return re.sub(_SLOT, lambda _: next(texts), "; ".join(self.shape))

    def __str__(self) -> str:
        if len(self.tasks) <= LISTED:
            return f"{first_few(self.tasks)}: {self.why}"
        label = self.category or first_few(self.tasks, 2)
        return f"{label} ({many(len(self.tasks), 'task')}): {self.why}"


def group_reasons(
    reasons: Mapping[str, str],
    category_of: Callable[[str], str | None],
    names_around: Callable[[str], Collection[str]],
) -> list[ReasonGroup]:
    """Return the groups of tasks, in the order of their first tasks."""
    groups = dict[tuple[str | None, _Shape], ReasonGroup]()
    for task, reason in reasons.items():
        shape, slots = _parse(reason, names_around(task))
        category = category_of(task)
        group = groups.setdefault((category, shape), ReasonGroup(category, shape))
        group.slots = group.slots or [{} for _ in slots]
        group.tasks.append(task)
        for known, names in zip(group.slots, slots, strict=True):
            known |= dict.fromkeys(names)
    return list(groups.values())


def _parse(reason: str, names: Collection[str]) -> tuple[_Shape, list[list[str]]]:
    """Return the clauses of a reason, each once, with slots for names; and the names in each."""
    named = sorted((name for name in names if name in reason), key=len, reverse=True)
    if not named:
        return tuple(dict.fromkeys(reason.split("; "))), []
    either = "|".join(map(re.escape, named))
    name = re.compile(rf"(?<!\S)(?:{either})(?=[\s,;:]|$)")
    shape = dict[str, list[list[str]]]()
    for clause in reason.split("; "):
        found = name.findall(clause)
        text = name.sub(_SLOT, clause)
        slots = list[list[str]]()
        for run in _SLOTS.findall(text):
            count = run.count(_SLOT)
            slots.append(found[:count])
            found = found[count:]
        text = _SLOTS.sub(_SLOT, text)
        for known, more in zip(shape.setdefault(text, slots), slots, strict=True):
            known += more if known is not more else []
    return tuple(shape), [slot for slots in shape.values() for slot in slots]


def _common(names: list[str]) -> str:
    """Return one name, or what several have in common: `reads/*.fq`."""
    if len(names) == 1:
        return names[0]
    head = _common_start(names)
    tail = _common_start([name[len(head) :][::-1] for name in names])[::-1]
    return f"{head}*{tail}" if head or tail else first_few(names, 2)


def _common_start(texts: list[str]) -> str:
    """Return the longest text that all of these begin with."""
    first, last = min(texts), max(texts)
    same = takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False))
    return "".join(letter for letter, _ in same)
