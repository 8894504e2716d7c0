"""What is different between two recipes, part by part: from what, to what."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

COMMAND, FUNCTION, ARGUMENTS = "command", "function", "arguments"
INPUT, OUTPUT, AFTER = "input", "output", "after"
AROUND = "around"  # a variable of the environment, the container, the conda environment


class KeyChange(NamedTuple):
    """A part of a recipe that has changed; None where it was not there, or is not any more."""

    what: str
    name: str = ""  # of a file, or of another task
    before: str | None = None  # its digest
    after: str | None = None


def changes(
    old: Mapping[str, Any], made: Collection[str], new: Mapping[str, Any], makes: Collection[str]
) -> list[KeyChange]:
    """From one recipe, which made these outputs, to another; both as the store has them."""
    found = []
    is_call = "arguments" in new
    if old.get("how") != new.get("how"):
        found.append(
            KeyChange(FUNCTION if is_call else COMMAND, "", old.get("how"), new.get("how"))
        )
    if old.get("arguments") != new.get("arguments"):
        found.append(KeyChange(ARGUMENTS, "", old.get("arguments"), new.get("arguments")))
    found += _named(AROUND, old.get("around", {}), new.get("around", {}))
    found += _named(INPUT, old.get("inputs", {}), new.get("inputs", {}))
    if not is_call:
        found += _named(OUTPUT, dict.fromkeys(made, ""), dict.fromkeys(makes, ""))
    return [*found, *_named(AFTER, old.get("after", {}), new.get("after", {}))]


def _named(what: str, old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[KeyChange]:
    for name in sorted(old.keys() | new.keys()):
        if old.get(name) != new.get(name):
            yield KeyChange(what, name, old.get(name), new.get(name))
