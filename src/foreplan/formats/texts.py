"""JSON and YAML text to plain values and back; a key given twice is an error."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from foreplan.errors import InputError
from foreplan.files import in_file, read_text
from foreplan.formats.fields import QUOTE_COMMAND, mistaken, shown, wrong_line
from foreplan.quantities import shortened


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
    except InputError as error:
        raise error.at(_line_of_repeat(text)) from None
    except ValueError:  # Python refuses to read an integer of thousands of digits
        raise InputError("a number has too many digits") from None
    except (RecursionError, MemoryError):
        raise InputError("the document is nested too deeply, or too large") from None


def _line_of_repeat(text: str) -> str:
    """Return the line of a key that is given twice, which only the reader of YAML knows."""
    try:
        parse_yaml(text)
    except InputError as error:
        return error.place if "given twice" in error.problem else ""
    return ""


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


# YAML text to plain values and back, with the scalars of YAML 1.2.
#
# Values are built from the parser's events, without recursion: deep nesting, aliases (hence alias
# bombs), tags and keys given twice are all errors with a line.

MAX_DEPTH = 100

_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_FLOAT = re.compile(
    r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
_NUMBER_STARTS = frozenset("-+.0123456789")
_WORDS: dict[str, object] = {"": None, "~": None, "null": None, "true": True, "false": False}
_TAG = "tag:yaml.org,2002:"


def parse_yaml(text: str) -> object:
    """The value of a YAML text of one document."""
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return _build(loader(text), text)
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(error, text) from None
    except yaml.YAMLError as error:  # a character YAML does not allow
        reason = getattr(error, "reason", "unreadable")
        at = getattr(error, "position", None)
        where = "" if at is None else f"character {at}"
        raise InputError(f"this is not YAML: {reason}", place=where) from None
    except MemoryError:
        raise InputError("the document does not fit in memory") from None


def _syntax_error(error: Any, text: str) -> InputError:
    """Return what is wrong with a text that YAML refuses, and what to do about it."""
    from foreplan.formats.mistakes import TextPosition, find_advice

    marks = (error.problem_mark or error.context_mark, error.context_mark)
    spot, begin = (None if mark is None else TextPosition(mark.line, mark.column) for mark in marks)
    words = f"{error.context or ''} {error.problem or ''}"
    advice = None if spot is None else find_advice(text, spot, begin, words)
    if advice is not None:
        spot = advice.spot
        problem = advice.problem
    else:
        problem = f"this is not YAML: {error.problem or error.context}"
        if spot and marks[0].index >= len(text.rstrip()):
            problem += "; the text ends too early"
    where = f"line {spot.line + 1}, column {spot.column + 1}" if spot else ""
    return InputError(problem, place=where)


class _Open(NamedTuple):
    """A list or mapping still being read: its children (keys and values in turn), their lines."""

    line: int
    children: list[object]
    lines: list[int]


def _build(parser: Any, text: str) -> object:
    """Plain values from the parser's events."""
    import yaml

    outer = _Open(0, [], [])
    stack = [outer]
    while (event := parser.get_event()) is not None:
        kind = type(event)
        if kind is yaml.ScalarEvent:
            value, line = _scalar(event), event.start_mark.line
            if event.implicit[0] and (before := stack[-1].children) and before[-1] == "run":
                _check_command(event, text)
        elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
            stack.append(_opened(event, len(stack)))
            continue
        elif kind is yaml.MappingEndEvent:
            closed = stack.pop()
            value, line = _mapping(closed), closed.line
        elif kind is yaml.SequenceEndEvent:
            closed = stack.pop()
            value, line = closed.children, closed.line
        elif kind is yaml.AliasEvent:
            raise _error(f"{_REPEATED}; quote text that begins with *", event)
        elif kind is yaml.StreamEndEvent:
            break
        else:
            if kind is yaml.DocumentStartEvent and outer.children:
                raise _error("there is a second document; one is expected", event)
            continue
        stack[-1].children.append(value)
        stack[-1].lines.append(line)
    if not outer.children or outer.children == [None]:
        raise InputError("the file is empty")
    return outer.children[0]


_MERGE = "<<"  # this very object stands for one without quotes
_FOREIGN_TAG = "the tag {} is not allowed: leave it out, or quote text that begins with !"
_REPEATED = (
    "anchors (&a), aliases (*a) and merge keys (<<) are not supported: `defaults:` sets fields for "
    "several tasks, `foreach:` repeats a task"
)


def _opened(event: Any, depth: int) -> _Open:
    if event.anchor is not None:
        raise _error(_REPEATED, event)
    if depth > MAX_DEPTH:
        raise _error(f"the document is nested too deeply: more than {MAX_DEPTH} levels", event)
    if event.tag not in (None, "!", _TAG + "map", _TAG + "seq"):
        raise _error(_FOREIGN_TAG.format(shown(event.tag)), event)
    return _Open(event.start_mark.line, [], [])


def _mapping(closed: _Open) -> dict[object, object]:
    keys, lines = closed.children[::2], closed.lines[::2]
    try:
        result = dict(zip(keys, closed.children[1::2], strict=True))
    except TypeError:  # a list or mapping cannot be hashed
        at = next(i for i, key in enumerate(keys) if isinstance(key, list | dict))
        error = mistaken("a key must be a name", keys[at])
        raise InputError(error.problem, place=f"line {lines[at] + 1}") from None
    if _MERGE in result and any(key is _MERGE for key in keys):
        raise wrong_line(_REPEATED, lines[keys.index(_MERGE)] + 1)
    if len(result) < len(keys):
        seen: set[object] = set()
        for key, line in zip(keys, lines, strict=True):
            if key in seen:
                first = lines[keys.index(key)] + 1
                problem = f"the key {shown(key)} is given twice, first in line {first}"
                raise wrong_line(f"{problem}: rename or remove one of them", line + 1)
            seen.add(key)
    return result


def _scalar(event: Any) -> object:
    text: str = event.value
    if event.anchor is not None:
        raise _error(f"{_REPEATED}; quote text that begins with &", event)
    if event.tag == "!" and not event.style:
        raise _error("quote text that begins with !", event)
    if not event.implicit[0]:  # quoted, or tagged
        if event.tag not in (None, "!", _TAG + "str"):
            raise _error(_FOREIGN_TAG.format(shown(event.tag)), event)
        return text
    return _MERGE if text == _MERGE else plain_scalar(text, event)


_COMMENT = re.compile(r"[ \t]+(#.*)")


def _check_command(event: Any, text: str) -> None:
    """Refuse a command without quotes of YAML that a comment of YAML ends within shell quotes.

    A `#` outside of shell quotes begins a comment in the shell, too: there YAML changes nothing.
    """
    command: str = event.value
    if "'" not in command and '"' not in command:
        return
    comment = _COMMENT.match(text, event.end_mark.index)
    if comment is None:
        return
    try:
        shlex.split(command)
    except ValueError:
        dropped = shortened(comment[1], 20)
        problem = f"YAML ends this command before `{dropped}`, within quotes of the shell"
        raise _error(f"{problem}: {QUOTE_COMMAND}", event) from None


def plain_scalar(text: str, event: Any = None) -> object:
    """What a text without quotes means: null, true, false, a number, or itself."""
    if text[:1] not in _NUMBER_STARTS:
        return _WORDS.get(text, text)
    if _INT.fullmatch(text):
        try:
            return int(text)
        except ValueError:  # Python refuses to read an integer of thousands of digits
            problem = "a number has too many digits"
            raise (_error(problem, event) if event else InputError(problem)) from None
    if _FLOAT.fullmatch(text):
        if text[-1] in "fFnN":  # .inf and .nan are inf and nan to Python
            return float(text.replace(".", ""))
        number = float(text)
        return number if repr(number) == text else WrittenNumber(text)
    return text


class WrittenNumber(float):
    """A number that is written in its own way (1e3, 1.10), and so stands in commands."""

    __slots__ = ("_text",)
    _text: str

    def __new__(cls, text: str) -> WrittenNumber:
        """What the text means."""
        number = super().__new__(cls, text)
        number._text = text
        return number

    def __str__(self) -> str:
        return self._text

    def __reduce__(self) -> tuple[type[WrittenNumber], tuple[str]]:
        return WrittenNumber, (self._text,)


def _error(problem: str, event: Any) -> InputError:
    mark = event.start_mark
    return InputError(problem, place=f"line {mark.line + 1}, column {mark.column + 1}")


def dump_yaml(content: Mapping[str, object]) -> str:
    """A YAML text that this reader, and one of YAML 1.1, reads back as it was."""
    import yaml

    text: str = yaml.dump(
        content,
        Dumper=_dumper(),
        sort_keys=False,
        default_flow_style=None,
        allow_unicode=True,
        width=1000,
    )
    return text


@cache
def _dumper() -> Any:
    import yaml

    base: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

    class Dumper(base):  # type: ignore[misc]
        """Quotes what either version of YAML would not read as a string; writes no aliases."""

        def ignore_aliases(self, data: object) -> bool:
            """A value used twice is written twice."""
            return True

    for start in _NUMBER_STARTS:
        whole = re.compile(rf"^(?:{_FLOAT.pattern})$")
        Dumper.add_implicit_resolver(_TAG + "float", whole, [start])
    Dumper.add_representer(WrittenNumber, base.represent_float)
    return Dumper


def read_document(path: str | os.PathLike[str]) -> object:
    """The content of a JSON file (by its suffix) or else a YAML file."""
    return parse_document(read_text(path), path)


def parse_document(text: str, path: str | os.PathLike[str]) -> object:
    """The content of a file's text, JSON by its suffix or else YAML."""
    with in_file(path):
        is_json = Path(path).suffix.lower() == ".json"
        return parse_json(text) if is_json else parse_yaml(text)
