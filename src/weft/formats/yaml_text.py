"""YAML text to plain values and back, with the scalars of YAML 1.2.

Values are built from the parser's events, without recursion: deep nesting, aliases (hence alias
bombs), tags and keys given twice are all errors with a line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from weft.errors import InputError
from weft.formats.fields import shown

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
        events = loader(text)
        return _Builder().build(events)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = f"this is not YAML: {error.problem or error.context}"
        if mark and mark.index >= len(text.rstrip()):
            problem += "; the text ends too early"
        raise InputError(problem, place=where) from None
    except yaml.YAMLError as error:  # a character YAML does not allow
        reason = getattr(error, "reason", "unreadable")
        at = getattr(error, "position", None)
        where = "" if at is None else f"character {at}"
        raise InputError(f"this is not YAML: {reason}", place=where) from None
    except MemoryError:
        raise InputError("the document does not fit in memory") from None


class _Open:
    """A list or mapping still being read: its children (keys and values in turn), their lines."""

    __slots__ = ("children", "line", "lines")

    def __init__(self, line: int) -> None:
        self.line = line
        self.children: list[object] = []
        self.lines: list[int] = []


class _Builder:
    """Turns the parser's events into plain values."""

    def build(self, parser: Any) -> object:
        import yaml

        outer = _Open(0)
        stack = [outer]
        while (event := parser.get_event()) is not None:
            kind = type(event)
            if kind is yaml.ScalarEvent:
                value, line = _scalar(event), event.start_mark.line
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
                raise _error("aliases (*name) are not allowed: write the value out", event)
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


def _opened(event: Any, depth: int) -> _Open:
    if depth > MAX_DEPTH:
        raise _error(f"the document is nested too deeply: more than {MAX_DEPTH} levels", event)
    if event.tag not in (None, "!", _TAG + "map", _TAG + "seq"):
        raise _error(f"the tag {shown(event.tag)} is not allowed", event)
    return _Open(event.start_mark.line)


def _mapping(closed: _Open) -> dict[object, object]:
    keys, lines = closed.children[::2], closed.lines[::2]
    try:
        result = dict(zip(keys, closed.children[1::2], strict=True))
    except TypeError:  # a list or mapping cannot be hashed
        at = next(i for i, key in enumerate(keys) if isinstance(key, list | dict))
        raise _at_line(f"a key must be a name, not {shown(keys[at])}", lines[at]) from None
    if len(result) < len(keys):
        seen: set[object] = set()
        for key, line in zip(keys, lines, strict=True):
            if key in seen:
                raise _at_line(f"the key {shown(key)} is given twice", line)
            seen.add(key)
    return result


def _scalar(event: Any) -> object:
    text: str = event.value
    if not event.implicit[0]:  # quoted, or tagged
        if event.tag not in (None, "!", _TAG + "str"):
            raise _error(f"the tag {shown(event.tag)} is not allowed", event)
        return text
    if text[:1] not in _NUMBER_STARTS:
        return _WORDS.get(text, text)
    if _INT.fullmatch(text):
        try:
            return int(text)
        except ValueError:  # Python refuses to read an integer of thousands of digits
            raise _error("a number has too many digits", event) from None
    if _FLOAT.fullmatch(text):
        is_word = text[-1] in "fFnN"  # .inf and .nan are inf and nan to Python
        return float(text.replace(".", "") if is_word else text)
    return text


def _error(problem: str, event: Any) -> InputError:
    mark = event.start_mark
    return InputError(problem, place=f"line {mark.line + 1}, column {mark.column + 1}")


def _at_line(problem: str, line: int) -> InputError:
    return InputError(problem, place=f"line {line + 1}")


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
    return Dumper
