"""Values put into commands: quoted for the shell, by where in the command each of them stands."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Sequence
from enum import Enum

from foreplan.formats.fields import shown, wrong
from foreplan.shell import shell_words

_SAFE = re.compile(r"[\w@%+=:,./-]+", re.ASCII)  # means itself wherever it stands
_SH = re.compile(r"(|a|ba|da|k|mk|z)sh")  # shells that quote alike
_IN_DOUBLE = re.compile(r'([\\"$`])')
_HERE_DOCUMENT = re.compile(r"<<-?\s*[\"'\\]?[A-Za-z_]")
_WILDCARD = re.compile(r"([*?])")
_WORD_BEGINS = " \t\n;&|("


class Quotes(Enum):
    """What a place in a command stands in."""

    NONE = "no quotes"
    SINGLE = "single quotes"
    DOUBLE = "double quotes"
    UNSURE = "a here-document, backticks, or a command that is not for a shell"


def quotes_at(command: str, positions: Sequence[int], shell: str | None) -> list[Quotes]:
    """What each of these positions stands in; they ascend."""
    if shell is not None and not _SH.fullmatch(os.path.basename(shell_words(shell)[0])):
        return [Quotes.UNSURE] * len(positions)
    found: list[Quotes] = []
    stack, i, unsure_from = [""], 0, len(command) + 1
    for position in positions:
        while i < position:
            if command[i : i + 2] == "<<" and stack[-1] in ("", "("):
                if command[i : i + 3] == "<<<":  # a word follows, no document
                    i += 3
                    continue
                if _HERE_DOCUMENT.match(command, i):
                    unsure_from = min(unsure_from, (command + "\n").index("\n", i))
            i = _step(command, i, stack)
        kind = {"'": Quotes.SINGLE, '"': Quotes.DOUBLE, "": Quotes.NONE, "(": Quotes.NONE}
        unsure = position >= unsure_from or "`" in stack
        found.append(Quotes.UNSURE if unsure else kind.get(stack[-1], Quotes.UNSURE))
    return found


def _step(command: str, i: int, stack: list[str]) -> int:
    """Read on from a position, noting what opens and closes; the position after it."""
    c, top = command[i], stack[-1]
    if top == "'":
        if c == "'":
            stack.pop()
        return i + 1
    if c == "\\":
        return i + 2
    if (c == top and c in '"`') or (top, c) in (("(", ")"), ("$'", "'")):
        stack.pop()
    elif top == "$'":
        pass
    elif c == "`" or (c == '"' and top != '"'):
        stack.append(c)
    elif command[i : i + 2] == "$(":
        stack.append("(")
        return i + 2
    elif top != '"':
        if c == "'":
            stack.append("$'" if command[i - 1 : i] == "$" else "'")
        elif c == "(":
            stack.append("(")
        elif c == "#" and (i == 0 or command[i - 1] in _WORD_BEGINS):
            return (command + "\n").index("\n", i)
    return i + 1


def quoter(
    quotes: Quotes, reference: str, *place: str | int, patterns: bool = False
) -> Callable[[str], str]:
    """What makes a text mean itself there; an InputError where that cannot be.

    Where names of files may be `patterns`, outside of quotes their wildcards stay wildcards.
    """

    def quote_or_refuse(text: str) -> str:
        if _SAFE.fullmatch(text):
            return text
        if quotes is Quotes.NONE:
            parts = _WILDCARD.split(text) if patterns else []
            if len(parts) < 2:
                return shlex.quote(text)
            return "".join(p if _WILDCARD.fullmatch(p) else shlex.quote(p) for p in parts if p)
        if quotes is Quotes.DOUBLE:
            return _IN_DOUBLE.sub(r"\\\1", text)
        if quotes is Quotes.SINGLE:
            return text.replace("'", "'\\''")
        raise wrong(
            f"{{{reference}}} stands in {quotes.value}, where its value {shown(text)} cannot be "
            "quoted: choose a value of letters and digits, or give it to the command in a file",
            *place,
        )

    return quote_or_refuse
