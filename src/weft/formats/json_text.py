"""JSON text to plain values and back; a key given twice is an error."""

from __future__ import annotations

import json
from collections.abc import Mapping

from weft.errors import InputError
from weft.formats.fields import shown


def parse_json(text: str) -> object:
    """The value of a JSON text."""
    if not text.strip():
        raise InputError("the file is empty")
    try:
        return json.loads(text, object_pairs_hook=_without_repeats)
    except json.JSONDecodeError as error:
        problem = f"this is not JSON: {error.msg[:1].lower()}{error.msg[1:]}"
        if error.pos >= len(text.rstrip()):
            problem += "; the text ends too early"
        raise InputError(problem, place=f"line {error.lineno}, column {error.colno}") from None
    except ValueError:  # Python refuses to read an integer of thousands of digits
        raise InputError("a number has too many digits") from None
    except (RecursionError, MemoryError):
        raise InputError("the document is nested too deeply, or too large") from None


def _without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise InputError(f"the key {shown(key)} is given twice in one object")
            seen.add(key)
    return result


def dump_json(content: Mapping[str, object]) -> str:
    """A JSON text with one line per entry of each section: quick to write, easy to compare."""
    sections = [f"  {_line(key)}: {_section(value)}" for key, value in content.items()]
    return "{\n" + ",\n".join(sections) + "\n}\n"


def _section(value: object) -> str:
    if isinstance(value, dict) and value:
        lines = [f"    {_line(key)}: {_line(entry)}" for key, entry in value.items()]
        return "{\n" + ",\n".join(lines) + "\n  }"
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(f"    {_line(entry)}" for entry in value) + "\n  ]"
    return _line(value)


def _line(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
