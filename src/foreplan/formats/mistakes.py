"""Advice about text that YAML refuses: what a newcomer meant, and how to write it.

The rules look at the line of the mistake, because the words of YAML parsers differ and name the
grammar rather than the mistake. This module is imported only when something is wrong.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from foreplan.formats.fields import QUOTE_COMMAND, shown
from foreplan.quantities import shortened

_KEY = re.compile(r"""\s*(?:-\s+)*(?P<key>[^\s:#'"{\[][^:]*|"[^"]*"|'[^']*'):(?:\s+|$)""")
_NO_SPACE = re.compile(r"\s*(?:-\s+)*(?P<key>[A-Za-z_]+):(?P<value>[^\s:/].*)")
_BRACED = re.compile(r"""[^\s,\[{"'(]*\{[A-Za-z_][\w.]*(?:\[\w*\])?\}[^\s,\]]*""")
_BLOCK = re.compile(r"\s*(?:-\s+)*(\w+):\s*[|>][-+\d]*\s*$")
_RUN_WITHIN = re.compile(r"[{,]\s*run:\s")
_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_SPECIAL = "*&!@`%|>"  # what a text without quotes cannot begin with


class TextPosition(NamedTuple):
    """A place in a text: a line and a column, from 0 on."""

    line: int
    column: int


class Advice(NamedTuple):
    """Advice about a mistake, and its place."""

    problem: str
    spot: TextPosition


def find_advice(
    text: str, spot: TextPosition, begin: TextPosition | None, problem: str
) -> Advice | None:
    """Return advice about a mistake at a spot, in what begins at another spot, if it is known."""
    lines = [*_BREAK.split(text), ""]
    line = lines[spot.line]
    if "\t" in line[: _indent(line)]:
        return Advice("a tab is used for indentation: indent with spaces", spot)
    if line[spot.column : spot.column + 1] == "\t":
        return Advice("a tab stands where a space is expected: write spaces", spot)
    before = _NO_SPACE.fullmatch(lines[spot.line - 1]) if spot.line else None
    if before and line[spot.column : spot.column + 1] == ":":
        how = f"write a space after the colon, `{before['key']}: ...`"
        return Advice(how, TextPosition(spot.line - 1, before.end("key")))
    if begin is not None and "quoted scalar" in problem:
        return Advice("the quote that begins here is not closed", begin)
    if begin is not None and "simple key" in problem:
        return _advise_on_line(lines, begin)
    if advice := _advise_on_indentation(lines, spot):
        return advice
    key = _find_key(lines, spot)
    if key == "run" or _RUN_WITHIN.search(line[: spot.column]):
        return Advice(f"YAML cannot read this command as text: {QUOTE_COMMAND}", spot)
    return _advise_on_value(lines, spot, begin, key)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _advise_on_indentation(lines: list[str], spot: TextPosition) -> Advice | None:
    """Return advice about a field of a task that is indented more than the field before it."""
    from foreplan.formats.foreplan_workflow import TASK_FIELDS

    line = lines[spot.line]
    indent = _indent(line)
    field = _KEY.match(line)
    if (
        not field
        or field["key"] not in TASK_FIELDS
        or spot.column not in (indent, field.end("key"))
    ):
        return None
    above = (one for one in reversed(lines[: spot.line]) if one.strip() and _indent(one) < indent)
    owner = _KEY.match(next(above, ""))
    if not owner or owner["key"] not in TASK_FIELDS:
        return None
    problem = f"`{field['key']}` is indented more than `{owner['key']}`: align them"
    return Advice(problem, TextPosition(spot.line, indent))


def _advise_on_line(lines: list[str], begin: TextPosition) -> Advice:
    """Return advice about a line without a key."""
    block = _BLOCK.match(lines[begin.line - 1]) if begin.line else None
    if block:
        return Advice(f"indent the text below `{block[1]}: |` more than `{block[1]}`", begin)
    return Advice(
        "expected `name: value`; if the text belongs to the line before, indent it", begin
    )


def _advise_on_value(
    lines: list[str], spot: TextPosition, begin: TextPosition | None, key: str
) -> Advice | None:
    """Return advice about a value that is no command, or about indentation."""
    line = lines[spot.line]
    for found in _BRACED.finditer(line):
        if found.start() <= spot.column <= found.end():
            text = shown(found[0].rstrip(":")).replace("'", '"')
            where = "that begins with {" if found[0][0] == "{" else "with { in it"
            return Advice(f"quote text {where}: {text}", spot)
    for at in filter(None, (begin, spot)):
        char = lines[at.line][at.column :][:1]
        if char and char in _SPECIAL:
            return Advice(f"quote text that begins with {char}", at)
    bracket = "" if begin is None else lines[begin.line][begin.column :][:1]
    if begin is not None and bracket in ("[", "{"):
        problem = f"the {bracket} that begins here is not closed, or a text in it needs quotes"
        return Advice(problem, begin)
    if key:
        field = shortened(key)
        is_colon = line[spot.column :][:1] == ":"
        inner = (line[: spot.column].split() or [""])[-1] if is_colon else ""
        how = f", or write `{shortened(inner)}:` on the next line, indented" if inner else ""
        return Advice(f"YAML cannot read the text after `{field}:`: quote the text{how}", spot)
    if spot.column == _indent(line) and _KEY.match(line):
        problem = "this line is indented differently from those before it"
        return Advice(f"{problem}: give all fields of a task the same indentation", spot)
    return None


def _find_key(lines: list[str], spot: TextPosition) -> str:
    """Return the key whose value a spot is in; empty if it is in none."""
    for number in range(min(spot.line, len(lines) - 1), -1, -1):
        line = lines[number]
        if not line.strip():
            continue
        found = _KEY.match(line)
        indent = _indent(line)
        if number == spot.line:
            if found and found.end() <= spot.column:
                return found["key"].strip("'\"")
            if found and spot.column <= indent:
                return ""
            spot = TextPosition(number, indent)
        elif indent < spot.column:
            value = line[found.end() :] if found else ""
            return found["key"].strip("'\"") if found and value.strip() else ""
        else:
            return ""
    return ""
