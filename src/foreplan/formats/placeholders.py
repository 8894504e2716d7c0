"""Placeholders in the texts of a workflow: `{name}`, `$name`, and how to write these as text.

- `{name}` in a text stands for a value, `{name.field}` for one of its fields, `{name[0]}` for an
  entry.
- `{{name}}` is the text `{name}`, and `{{{name}}}` a value in braces, as in format strings of
  Python.
- `${name}` belongs to the shell and stays as it is.
- A text that is just `$name` is the value itself; `$$name` is the text `$name`.

In commands and environments all this holds for known names alone, so `awk '{print}'`, `{a,b}` and
`{{x}}` need no care there. Elsewhere an unknown name is an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

FILES = ("input", "inputs", "output", "outputs")  # names in a command for the files of its task
LITERAL_FIELDS = ("run", "env")  # an unknown name in them is text

_PART = r"(\.\w+|\[[^\][{}]*\])?"
_BRACED = re.compile(r"(?<!\{)(\{+)([A-Za-z_]\w*)" + _PART + r"(\}+)", re.ASCII)
_ALONE = re.compile(r"(\$+)([A-Za-z_]\w*)" + _PART, re.ASCII)

IsKnown = Callable[[str], bool]


class Placeholder(NamedTuple):
    """A name in a text, and the field or entry of its value, as `.stem` or `[0]`."""

    name: str
    part: str = ""

    def __str__(self) -> str:
        return self.name + self.part


def _any_name(name: str) -> bool:
    return True


def split_text(text: str, is_known: IsKnown = _any_name) -> tuple[list[str], list[Placeholder]]:
    """Return the texts around the references to known names, and these references."""
    texts: list[str] = []
    references: list[Placeholder] = []
    literal = ""  # the text since the last reference
    end = 0
    for found in _BRACED.finditer(text) if "{" in text else ():
        opening, name, part, closing = found.groups(default="")
        if _is_variable(found) or not is_known(name):
            continue
        pairs = min(len(opening), len(closing))
        braces = pairs // 2  # on each side, beside those that have no partner
        literal += text[end : found.start()] + opening[pairs:] + "{" * braces
        after = "}" * braces + closing[pairs:]
        if pairs % 2:
            texts.append(literal)
            references.append(Placeholder(name, part))
            literal = after
        else:
            literal += name + part + after
        end = found.end()
    return [*texts, literal + text[end:]], references


def references_in(text: str) -> list[Placeholder]:
    """Return the references in a text, to whichever names."""
    return split_text(text)[1]


def replace_references(text: str, value: Callable[[Placeholder], str]) -> str:
    """Return a text with a value in the place of each reference."""
    texts, references = split_text(text)
    pairs = zip(texts, [*map(value, references), ""], strict=True)
    return "".join(part for pair in pairs for part in pair)


def lone_reference(text: str) -> Placeholder | None:
    """Return the reference that a text consists of, as `$name`."""
    found = _ALONE.fullmatch(text)
    return Placeholder(found[2], found[3] or "") if found and found[1] == "$" else None


def unescape_lone(text: str, is_known: IsKnown = _any_name) -> str:
    """Return `$name` for `$$name`; any other text as it is."""
    found = _ALONE.fullmatch(text)
    return text[1:] if found and len(found[1]) > 1 and is_known(found[2]) else text


# documents


def has_placeholders(fields: Mapping[object, object]) -> bool:
    """Return whether a text of a task, or of a file beside its tasks, may need a replacement.

    Where no parameter is known, a command can refer to files only, and an environment to nothing.
    """
    for key, value in fields.items():
        if key == "run" and isinstance(value, str):
            if "{input" in value or "{output" in value:
                return True
        elif _has_signs(key) or (key != "env" and _has_signs(value)):
            return True
    return False


def _has_signs(value: object) -> bool:
    if isinstance(value, str):
        return "{" in value or value[:1] == "$"
    if isinstance(value, Mapping):
        return has_placeholders(value)
    return isinstance(value, list | tuple) and any(map(_has_signs, value))


def escape_document(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document to write for one in which every text means itself."""
    escaped = dict[str, Any]()
    for field, value in content.items():
        if field == "tasks":
            escaped[field] = {_escape(name): _escape_task(body) for name, body in value.items()}
        else:
            escaped[field] = _escape(value) if _has_signs(value) else value
    return escaped


def _escape_task(body: dict[Any, Any]) -> dict[Any, Any]:
    """Escape the fields of a task: in its command the names of files, in its environment none."""
    if not has_placeholders(body):
        return body
    escaped = dict[str, Any]()
    for field, value in body.items():
        if field == "run":
            escaped[field] = _double_braces(value, FILES.__contains__)
        else:
            escaped[field] = value if field == "env" else _escape(value)
    return escaped


def _escape(value: object) -> Any:
    if isinstance(value, str):
        return f"${value}" if _ALONE.fullmatch(value) else _double_braces(value, _any_name)
    if isinstance(value, list | tuple):
        return [_escape(entry) for entry in value]
    if isinstance(value, Mapping):
        return {_escape(key): _escape(entry) for key, entry in value.items()}
    return value


def _double_braces(text: str, is_known: IsKnown) -> str:
    """Return a text with twice the braces around known names."""

    def doubled(found: re.Match[str]) -> str:
        opening, name, _, closing = found.groups()
        if _is_variable(found) or not is_known(name):
            return found[0]
        pairs = min(len(opening), len(closing))
        return "{" * pairs + found[0] + "}" * pairs

    return _BRACED.sub(doubled, text) if "{" in text else text


def _is_variable(found: re.Match[str]) -> bool:
    """Return whether a name in braces is a variable of the shell, as `${name}`."""
    return found[1] == "{" and found.string.endswith("$", 0, found.start())
