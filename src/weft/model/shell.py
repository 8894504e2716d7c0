"""Commands as text: the shell that a command is given to, and the files that its words name."""

from __future__ import annotations

import glob
import os
import re
import shlex
from collections.abc import Iterator
from typing import NamedTuple

from weft.errors import InputError

_TAKES_C = re.compile(r"(|a|ba|da|fi|k|mk|z)sh|(python|pypy)[\d.]*")
_C_OPTION = re.compile(r"-[A-Za-z]*c")
_ENDS = r"\s;&|<>()`"  # what ends a word
_GAPS = re.compile(rf"[{_ENDS}]+")
_PARTS = re.compile(rf"[{_ENDS}=]+")
_TOKENS = re.compile(
    rf"""(?P<gap>[{_ENDS}]+)|(?P<comment>(?<![^{_ENDS}])\#[^\n]*)
    |'(?P<single>[^']*)'|"(?P<double>(?:\\.|[^"\\])*)"|\\(?P<escaped>.)
    |(?P<open>['"\\])|[^{_ENDS}'"\\]+""",
    re.DOTALL | re.VERBOSE,
)
_SPECIAL = re.compile(r"[\"'\\#]")
_WILD = re.compile(r"[*?]|\[[^]]+\]")
_ASSIGNED = re.compile(r"^[A-Za-z_]\w*=")
_ARITHMETIC = re.compile(r"\(\(.*?\)\)", re.DOTALL)
_COMPARISONS = ("=", "==", "!=", "=~")


def shell_words(shell: str) -> list[str]:
    """The words before a command; shells and Python take it after -c, which may be left out."""
    try:
        words = shlex.split(shell)
    except ValueError as error:
        raise InputError(f"{shell!r} is no shell: {str(error).lower()}") from None
    if not words or not words[0] or "\0" in shell:
        raise InputError(f"{shell!r} is no shell: say, for example, 'bash -e' or 'perl -e'")
    known = _TAKES_C.fullmatch(os.path.basename(words[0])) is not None
    if known and not any(_C_OPTION.fullmatch(word) for word in words[1:]):
        words.append("-c")
    return words


def text_of(command: str, shell: str | None) -> str:
    """What of a task may name files: its command, and the words of its shell."""
    return f"{shell}\n{command}" if shell else command


def named_files(command: str) -> list[str]:
    """What in a command may be the name of a file of the data directory."""
    return sorted(name for name in named_paths(command) if is_inner(name))


def named_paths(command: str) -> set[str]:
    """What in a command may be the name of a file.

    Whole words, what stands after a `=`, and the words within quotes, which may be a command too.
    """
    if _SPECIAL.search(command) is None:
        parts = {*_PARTS.split(command), *_GAPS.split(command)}
    else:
        parts = set()
        for word in _words(command):
            parts.update((word.text, word.text.partition("=")[2]), _PARTS.split(word.text))
    return {os.path.normpath(part) for part in parts if part and "\0" not in part}


def named_patterns(command: str) -> list[str]:
    """The words that a shell replaces by the files that match them, as `glob` wants them."""
    if _WILD.search(command) is None:
        return []
    found, before = set(), ""
    for word in _words(_ARITHMETIC.sub(" ", command)):
        # `case x in *.csv)` and `[[ x == *.csv ]]` match other things than files
        is_case = word.after == ")" and (before == "in" or word.gap.strip() in (";;", "|"))
        if word.is_wild and not is_case and before not in _COMPARISONS:
            found.add(os.path.normpath(_ASSIGNED.sub("", word.pattern)))
        before = word.text
    return sorted(pattern for pattern in found if "$" not in pattern and "\0" not in pattern)


def is_inner(name: str) -> bool:
    """Whether a path stays in the directory, and out of what is weft's own there."""
    return name[0] not in "-/" and name.split("/", 1)[0] not in (".", "..", ".weft")


class _Word(NamedTuple):
    """A word of a command, without its quotes."""

    text: str
    pattern: str  # the same for `glob`: what was quoted means itself
    is_wild: bool  # a wildcard stands outside of quotes
    gap: str  # what stands before it
    after: str  # the character after it


def _words(command: str) -> Iterator[_Word]:
    """The words of a command; a quote that is never closed, which the shell refuses, is a gap."""
    text = pattern = gap = ""
    is_word = is_wild = False
    for token in _TOKENS.finditer(command.replace("\\\n", "") + "\n"):
        kind, part = token.lastgroup, token[0]
        if kind in ("gap", "comment", "open"):
            if is_word:
                yield _Word(text, pattern, is_wild, gap, part.lstrip(" \t")[:1])
                text = pattern = gap = ""
                is_word = is_wild = False
            gap += part
            continue
        is_word = True
        if kind is None:
            text, pattern = text + part, pattern + part
            is_wild = is_wild or _WILD.search(part) is not None
        else:
            text, pattern = text + token[kind], pattern + glob.escape(token[kind])
