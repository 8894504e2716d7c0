"""Where a document came from: mistakes in it are told with its file and the line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foreplan.errors import InputError, place_of


@dataclass(frozen=True)
class SourceText:
    """A file (or standard input) and its text; a document of Python has neither."""

    name: str = ""
    text: str | None = None
    folder: Path = Path()  # what it includes is found from here

    def located(self, error: InputError) -> InputError:
        """The error with this file and the line of its place, unless it is of another file."""
        if error.source:
            return error
        line = None if self.text is None else line_of(self.text, error.place, error.key)
        place = ": ".join(filter(None, ("" if line is None else f"line {line}", error.place)))
        return InputError(error.problem, place=place, source=self.name)

    def find_line(self, *place: str, with_file: bool) -> str:
        """Return the line of a place for a message about another place; empty if not known."""
        line = None if self.text is None else line_of(self.text, place_of(*place))
        if line is None:
            return ""
        return f"line {line} of {self.name}" if with_file else f"line {line}"


NOWHERE = SourceText()  # a document of Python


def line_of(text: str, place: str, key: str = "") -> int | None:
    """The line of a place such as `tasks.n3.cost` or `edges[4]`, as far as it is there.

    This reads the text again: lines are wanted only where something is wrong.
    """
    import yaml

    if not place and not key:
        return None
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        node: Any = yaml.compose(text, Loader=loader)
    except (yaml.YAMLError, RecursionError, MemoryError):
        return None
    line: int | None = None
    while node is not None and (place or key):
        if not place:
            place, key = place_of(key), ""
        line, node, place = _inside(node, place, line)
    return line


def _inside(node: Any, place: str, line: int | None) -> tuple[int | None, Any, str]:
    """The entry that a place begins with: its line, itself, and the rest of the place."""
    entries: list[tuple[str, Any, Any]] = []
    if isinstance(node.value, list) and node.id == "mapping":
        entries = [(place_of(str(key.value)), key, value) for key, value in node.value]
    elif isinstance(node.value, list):
        entries = [(f"[{i}]", value, value) for i, value in enumerate(node.value)]
    best: tuple[str, Any, Any] | None = None
    for entry in entries:
        begins = place == entry[0] or (place.startswith(entry[0]) and place[len(entry[0])] in ".[")
        if begins and (best is None or len(entry[0]) > len(best[0])):
            best = entry
    if best is None:
        return line, None, ""
    rest = place[len(best[0]) :]
    return best[1].start_mark.line + 1, best[2], rest.removeprefix(".")
