"""What a job must know, and tells, so that its result is known by its key: plain data both ways."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from foreplan.model.filenames import is_many, is_pattern, is_tree
from foreplan.store.content import CONTENT, Entry, Memory, Status, settle, settle_many
from foreplan.store.keys import Recipe
from foreplan.store.parts import encode
from foreplan.store.store import ADOPTED, KeptResult, Result, file_lines


@dataclass(frozen=True)
class Making:
    """The recipe that an attempt follows, and its files as they were when that was written."""

    recipe: Recipe | None  # None: what it is made from cannot be told
    statuses: Mapping[str, Status] = field(default_factory=dict)
    trust: str = CONTENT
    note: str = ""  # why there is no recipe
    former: tuple[str, ...] = ()  # files that foreplan made and that match patterns of outputs


class Made(NamedTuple):
    """What an attempt has made."""

    line: bytes  # for the store, before the outputs are published
    contents: dict[str, Entry]  # of its outputs, for whoever waits for them
    missing: list[str]  # outputs that are not there
    warning: str = ""


def made(
    making: Making,
    *,
    data: str,
    scratch: str,
    outputs: Iterable[str],
    task: str,
    run: str,
    attempt: int | None = None,
    seconds: float = 0.0,
    matched: Mapping[str, Sequence[str]] | None = None,
) -> Made:
    """Read what an attempt has made in its directory, and write the line that says so.

    The line is true whether or not the outputs are published after it, and it must be in the store
    before: what is on disk is then always known as foreplan's own. If inputs have changed
    meanwhile, it says what was made, but not from what. `matched` are the files of each pattern.
    """
    own = matched or {}
    found = {n: _settled(scratch, n, making.trust, own.get(n, ())) for n in outputs}
    contents = {name: entry for name, (entry, _) in found.items() if entry is not None}
    missing = [name for name, (entry, _) in found.items() if entry is None]
    inner = {name: files for name, (_, files) in found.items() if is_many(name)}
    recipe, note = making.recipe, making.note
    changed = changed_inputs(making, data) if recipe is not None and making.statuses else []
    if changed:
        note = changed_meanwhile(changed[0])
    warning = f"{task}: {note}: it will be run again" if note else ""
    line = _line(recipe, note, task, run, contents, None, attempt, seconds, changed, inner)
    for files in inner.values():
        contents |= files
    return Made(line, contents, missing, warning)


def changed_meanwhile(name: str) -> str:
    """Why what an attempt has made is not known by what it read."""
    return f"its input {name} was changed while it ran"


def _settled(
    scratch: str, name: str, trust: str, matched: Sequence[str]
) -> tuple[Entry | None, dict[str, Entry]]:
    if not is_many(name):
        return settle(os.path.join(scratch, name), trust), {}
    return settle_many(scratch, name, trust, matched)


def command_line(making: Making, *, task: str, run: str, contents: Mapping[str, Entry]) -> bytes:
    """The line of outputs that were made elsewhere, of which some come to the directory."""
    return _line(making.recipe, making.note, task, run, contents)


def call_line(making: Making, *, task: str, kept: KeptResult, seconds: float = 0.0) -> bytes:
    """The line of a function's result; it must be in the store before the result is in its place.

    Who finds it looks whether what is there is what it tells of.
    """
    return _line(making.recipe, making.note, task, kept.run, {}, kept, seconds=seconds)


def content_of_pickle(making: Making, digest: str, run: str) -> str:
    """What a result is that only its pickle tells of.

    The methods of what is in there are not in the pickle, so the function that made it counts.
    """
    return f"pickle:{digest}:{run if making.recipe is None else making.recipe.how}"


def adopted_line(
    recipe: Recipe,
    task: str,
    contents: Mapping[str, Entry],
    inner: Mapping[str, Mapping[str, Entry]],
) -> bytes:
    """The line of outputs that count as made by a recipe, since somebody says so."""
    return _line(recipe, ADOPTED, task, "", contents, inner=inner)


def _line(
    recipe: Recipe | None,
    note: str,
    task: str,
    run: str,
    contents: Mapping[str, Entry],
    call: KeptResult | None = None,
    attempt: int | None = None,
    seconds: float = 0.0,
    changed: Collection[str] = (),
    inner: Mapping[str, Mapping[str, Entry]] | None = None,
) -> bytes:
    """The line of a result; `inner` are the files of its directories and patterns."""
    key, used = (None, {}) if recipe is None else (recipe.key, recipe.parts)
    if changed:
        inputs = {name: content for name, content in used["inputs"].items() if name not in changed}
        key, used = None, used | {"inputs": inputs}
    now = round(time.time(), 6)
    many = inner or {}
    matched = {name: files for name, files in many.items() if is_pattern(name)}
    result = Result(task, run, now, key, used, contents, note, call, attempt, seconds, matched)
    trees = {f: e for name, files in many.items() if is_tree(name) for f, e in files.items()}
    return encode(result.line()) + file_lines(trees, now)


def changed_inputs(making: Making, data: str) -> list[str]:
    """The inputs that are not as they were when the recipe was written."""
    memory = Memory(data)
    return [name for name, status in making.statuses.items() if memory.status(name) != status]
