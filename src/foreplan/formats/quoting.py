"""Values put into commands: quoted for the shell, by where in the command each of them stands.

A command is read once, character by character, and a stack of frames tells what each value stands
in. Rules inside:

- A value is quoted only where bash, dash and the other shells agree on what its place means. Where
  they may not agree, or where quotes do not help (arithmetic), a value that could be anything else
  than a plain word or number is refused.
- Where the reader is no longer sure (`case` in parentheses, a here-document), all values behind are
  treated so.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum

from foreplan.formats.fields import shown, wrong
from foreplan.shell import shell_words

_SAFE = re.compile(r"[\w@%+=:,./-]+", re.ASCII)  # means itself wherever it stands
_SH = re.compile(r"(|a|ba|da|k|mk|z)sh")  # shells that quote alike
_WITHOUT_ANSI = ("sh", "ash", "dash")  # where $'...' may be a dollar and single quotes
_IN_DOUBLE = re.compile(r'([\\"$`])')
_WILDCARD = re.compile(r"([*?])")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_DIGITS = re.compile(r"[0-9]+")
_INDEXED = re.compile(r"\$?[A-Za-z_]\w*", re.ASCII)
_CASE = re.compile(r"case(?=[\s\\])")
_TEST_ENDS = re.compile(r"\]\](?=[\s;&|)]|$)")
_TEST_OF_NUMBERS = re.compile(r"-(eq|ne|lt|le|gt|ge|v|R)(?=[\s\\])")
_HERE_WORD = re.compile(
    r"<<-?[ \t]*((?:\\[^\n]|'[^'\n]*'|\"[^\"\\\n]*\"|[^\s;&|<>()'\"\\$`])+)(?=[\s;&|<>()]|$)"
)
_ANY_HERE_WORD = re.compile(r"<<-?[ \t]*([^\s;&|<>()]+)")
_BLANKS = " \t\n"

# frames; a command is at the bottom, too
_COMMANDS = ("", "(", "$(")
_ARITHMETIC = ("((", "$((", "$[", "within arithmetic")


class Quotes(Enum):
    """The kinds of places of values in a command."""

    NONE = "no quotes"
    SINGLE = "single quotes"
    DOUBLE = "double quotes"
    COMMENT = "a comment"
    ARITHMETIC = "arithmetic"
    DECIMAL = "arithmetic, after 10#"
    UNSURE = "a place where values cannot be quoted"
    NEVER = "the word that ends a here-document"


@dataclass
class Spot:
    """The place of a value in a command."""

    quotes: Quotes
    where: str = ""  # in words, if values cannot be quoted there
    forbidden: frozenset[str] = frozenset()  # values that would end a here-document
    is_one_line: bool = False  # a line break in a value would end a comment
    before_redirect: bool = False  # `2>` would redirect another file


@dataclass
class _Frame:
    """Something that is open: its kind, and for `[[` the values in it."""

    kind: str
    is_word: bool = False  # what follows its end may belong to the same word
    compares_numbers: bool = False
    spots: list[Spot] = field(default_factory=list)


def spots_of(command: str, spans: Sequence[tuple[int, int]], shell: str | None) -> list[Spot]:
    """Return where each span of a command stands; spans are in ascending order."""
    program = "bash" if shell is None else os.path.basename(shell_words(shell)[0])
    if not _SH.fullmatch(program):
        return [Spot(Quotes.UNSURE, f"a command for {program}")] * len(spans)
    return _Reader(command, spans, program).read()


class _Reader:
    """Read a command as a shell does, up to its last value and the end of what that stands in."""

    def __init__(self, command: str, spans: Sequence[tuple[int, int]], program: str) -> None:
        self._command = command
        self._spans = spans
        self._program = program
        self._at = 0
        self._stack = [_Frame("")]
        self._is_fresh: bool | None = True  # a word may begin here; None: it is not known
        self._word_start = 0
        self._escaped = -1  # the position after a backslash
        self._here_words: list[re.Match[str]] = []  # they end here-documents
        self._lost = ""  # why nothing is sure any more, and from where
        self._lost_at = 0

    def read(self) -> list[Spot]:
        """Return the place of each value."""
        spots = []
        for start, end in self._spans:
            while self._at < start and not self._lost:
                self._step()
            spots.append(self._spot(start, end))
            self._at = max(self._at, end)
            if self._is_fresh is not False:
                self._word_start = start
                self._is_fresh = None  # an empty list is no word
        while self._open_tests() and self._at < len(self._command) and not self._lost:
            self._step()
        for frame in self._open_tests():  # how it ends is not known
            for spot in frame.spots:
                _forbid_quotes(spot)
        return spots

    def _open_tests(self) -> list[_Frame]:
        """Return the `[[` that are open and have values in them."""
        return [frame for frame in self._stack if frame.kind == "[[" and frame.spots]

    # where a value stands

    def _spot(self, start: int, end: int) -> Spot:
        if self._lost and "<<" in self._command:
            patterns = _HERE_WORD, _ANY_HERE_WORD
            self._here_words = [w for p in patterns for w in p.finditer(self._command)]
        if any(word.start(1) <= start < word.end(1) for word in self._here_words):
            return Spot(Quotes.NEVER)
        if self._lost:
            return Spot(Quotes.UNSURE, self._lost, forbidden=self._forbidden(start))
        kinds = [frame.kind for frame in self._stack]
        top = kinds[-1]
        if "`" in kinds:
            return Spot(Quotes.UNSURE, "backticks")
        if "${" in kinds:
            return Spot(Quotes.UNSURE, "${...}")
        if top == "#":
            if len(kinds) > 2:
                return Spot(Quotes.UNSURE, "a comment in parentheses")
            return Spot(Quotes.COMMENT, is_one_line=True)
        if self._escaped == start:
            return Spot(Quotes.UNSURE, "a place right after a backslash")
        if top == "$'":
            return Spot(Quotes.UNSURE, "$'...'")
        quotes = {"'": Quotes.SINGLE, '"': Quotes.DOUBLE}.get(top, Quotes.NONE)
        spot = Spot(quotes, is_one_line=bool(self._here_words))
        spot.before_redirect = self._command[end : end + 1] in ("<", ">")
        for frame in reversed(self._stack):
            if frame.kind in _COMMANDS:
                break
            if frame.kind in _ARITHMETIC:
                is_decimal = self._command.endswith("10#", 0, start)
                return Spot(Quotes.DECIMAL if is_decimal else Quotes.ARITHMETIC)
            if frame.kind == "index":
                return Spot(Quotes.UNSURE, "an index")
            if frame.kind == "[[":
                frame.spots.append(spot)
                if frame.compares_numbers:
                    _forbid_quotes(spot)
        return spot

    def _forbidden(self, start: int) -> frozenset[str]:
        """Return values that could make the line of a here-document its end."""
        command = self._command
        first = command.rfind("\n", 0, start) + 1
        last = (command + "\n").index("\n", start)
        pieces = [""]
        for begin, end in self._spans:
            if first <= begin < last:
                pieces[-1] = command[first:begin]
                pieces.append(command[end:last])
                first = end
        pieces[0] = pieces[0].lstrip("\t")
        if "\\\n" in command[self._lost_at :]:  # lines may be joined
            pieces = [""] * 3
        values: set[str] = set()
        for word in {re.sub(r"\\(.)|['\"]", r"\1", found[1]) for found in self._here_words}:
            if len(pieces) == 2 and " " not in word:
                if word.startswith(pieces[0]) and word.endswith(pieces[1]):
                    values.add(word[len(pieces[0]) : len(word) - len(pieces[1])])
            elif re.fullmatch(".*".join(map(re.escape, pieces)), word):
                ends = range(1, len(word) + 1)
                values.update(word[i:j] for i in range(len(word)) for j in ends)
        return frozenset(values)

    # steps

    def _step(self) -> None:
        """Read on, noting what opens and closes."""
        c = self._command[self._at]
        top = self._stack[-1].kind
        if c == "\n" and self._here_words:
            self._lose("a here-document, or behind one")
        elif top == "'":
            self._close_if(c == "'")
        elif top == "#":
            self._close_if(c == "\n")
            self._is_fresh = True
        elif c == "\\":
            self._escape(top)
        elif top in ("`", "$'"):
            self._close_if(c == top[-1])
        elif c == "`":
            self._open("`")
        elif c == "$":
            self._dollar(top)
        elif top == '"':
            self._close_if(c == '"')
        elif top == "${":
            self._in_braces(c)
        elif top in _ARITHMETIC:
            self._in_arithmetic(c, top)
        else:
            self._in_command(c, top)

    def _open(self, kind: str, length: int = 1) -> None:
        self._begin_word()
        self._stack.append(_Frame(kind))
        self._at += length

    def _close_if(self, is_end: bool) -> None:
        if is_end:
            self._stack.pop()
        self._is_fresh = False
        self._at += 1

    def _begin_word(self) -> None:
        if self._is_fresh is not False:
            self._word_start = self._at
        self._is_fresh = False

    def _lose(self, where: str) -> None:
        self._lost = where
        self._lost_at = self._at

    def _escape(self, top: str) -> None:
        before = self._command[self._at - 1 : self._at] if self._at else " "
        after = self._command[self._at + 1 : self._at + 3]
        if top == "$'" and self._program in _WITHOUT_ANSI:
            self._lose("a place behind $'...' with a backslash")
        elif after[:1] == "\n" and top != "`":
            is_split = before not in _BLANKS and after[1:] not in _BLANKS
            if before == "$" or (is_split and top != '"'):
                self._lose("a place behind a word that is broken into two lines")
            self._at += 2
        else:
            self._begin_word()
            self._escaped = self._at + 1
            at_value = any(start == self._escaped for start, _ in self._spans)
            self._at += 1 if at_value else 2

    def _dollar(self, top: str) -> None:
        """Read what a dollar begins."""
        rest = self._command[self._at + 1 : self._at + 3]
        if rest[:1] == "'" and top not in ('"', "${", *_ARITHMETIC):
            self._open("$'", 2)
        elif rest[:1] == '"' and top != '"':
            self._at += 1  # as without the dollar
        elif rest == "((":
            self._open("$((", 3)
        elif rest[:1] == "(":
            self._open("$(", 2)
            self._stack[-1].is_word = True
            self._is_fresh = True
        elif rest[:1] == "{":
            if rest[1:] in ("|", *_BLANKS):
                self._lose("${ ...; }, or behind it")
            self._open("${", 2)
        elif rest[:1] == "[":
            self._open("$[", 2)
        else:
            self._begin_word()
            self._at += 2 if rest[:1] in ("$", "#", "?", "!", "*", "@", "-") else 1

    def _is_quoted(self) -> bool:
        """Return whether `${...}` stands in double quotes."""
        for frame in reversed(self._stack):
            if frame.kind == '"' or frame.kind in _COMMANDS:
                return frame.kind == '"'
        return False

    def _in_braces(self, c: str) -> None:
        if c in "'\"":
            if self._is_quoted():  # shells differ on quotes in "${...}"
                self._lose("a place behind quotes in ${...}")
            self._open(c)
        else:
            self._close_if(c == "}")

    def _in_arithmetic(self, c: str, top: str) -> None:
        two = self._command[self._at : self._at + 2]
        if c == "'" or (c == "#" and self._is_fresh):
            self._lose("a place behind (( that may not be arithmetic")
        elif c == '"':
            self._open('"')
        elif c in "([":
            self._open("within arithmetic")
        elif c == ")" and top in ("((", "$(("):
            if two == "))":
                self._stack.pop()
                self._is_fresh = top == "(("
                self._at += 2
            else:
                self._lose("a place behind (( that is not arithmetic")
        elif c in ")]":
            self._close_if(True)
        else:
            if two == "<<" and any(frame.kind in ("((", "$[") for frame in self._stack):
                self._here_document()  # for shells without this arithmetic
            self._at += 1
            self._is_fresh = c in _BLANKS

    def _in_command(self, c: str, top: str) -> None:
        command, at = self._command, self._at
        if c in "'\"":
            self._open(c)
        elif c in _BLANKS or c in ";&|":
            if top == "index":
                self._stack.pop()
            self._at += 1
            self._is_fresh = True
        elif c == "#" and self._is_fresh is not False:
            self._comment(top)
        elif command.startswith("((", at):
            self._open("((", 2)
        elif c == "(":
            self._parenthesis(top)
        elif c == ")":
            self._close_parenthesis(top)
        elif command.startswith("<<<", at):
            self._at += 3
            self._is_fresh = True
        elif command.startswith("<<", at):
            self._here_document()
            self._at += 2
            self._is_fresh = True
        elif c in "<>":
            self._at += 1
            self._is_fresh = True
        elif c == "[" and self._begins_index(top):
            self._open("index")
        elif c == "]" and top == "index":
            self._close_if(True)
        elif self._is_fresh is not False:
            self._word(top)
        else:
            self._at += 1

    def _comment(self, top: str) -> None:
        extended = self._command[max(self._at - 2, 0) : self._at]
        is_pattern = extended[1:] == "(" and extended[0] in "?*+@!"
        if self._is_fresh is None or top in ("[[", "index") or is_pattern:
            self._lose("a place behind # that may begin a comment")
        self._stack.append(_Frame("#"))
        self._at += 1

    def _parenthesis(self, top: str) -> None:
        is_inner = any(frame.kind in ("(", "$(") for frame in self._stack)
        if top in ("[[", "index") and is_inner:
            self._lose("a place behind parentheses in [[ ]]")
        is_word = self._is_fresh is not True
        self._open("(")
        self._stack[-1].is_word = is_word
        self._is_fresh = True

    def _close_parenthesis(self, top: str) -> None:
        self._is_fresh = True
        if top in ("(", "$("):
            is_word = self._stack.pop().is_word
            self._is_fresh = False if top == "$(" else None if is_word else True
        elif top in ("[[", "index"):
            self._lose("a place behind parentheses in [[ ]]")
        self._at += 1

    def _here_document(self) -> None:
        """Note the word that ends a here-document, which begins in the next line."""
        found = _HERE_WORD.match(self._command, self._at)
        if found is None:
            self._lose("a here-document, or behind one")
        else:
            self._here_words.append(found)

    def _begins_index(self, top: str) -> bool:
        if top == "index":
            return True
        if self._is_fresh is not False:
            return self._is_fresh is None
        return _INDEXED.fullmatch(self._command, self._word_start, self._at) is not None

    def _word(self, top: str) -> None:
        """Read the beginning of a word."""
        command, at = self._command, self._at
        self._begin_word()
        self._at += 1
        if _CASE.match(command, at) and any(f.kind in ("(", "$(") for f in self._stack):
            self._lose("a place behind `case` in parentheses")
        elif command.startswith("[[", at) and command[at + 2 : at + 3] in ("", *_BLANKS, "\\"):
            self._stack.append(_Frame("[["))
            self._at = at + 2
        elif top == "[[" and _TEST_ENDS.match(command, at):
            self._stack.pop()
            self._at = at + 2
        elif top == "[[" and _TEST_OF_NUMBERS.match(command, at):
            frame = self._stack[-1]
            frame.compares_numbers = True
            for spot in frame.spots:
                _forbid_quotes(spot)


def _forbid_quotes(spot: Spot) -> None:
    """Refuse values that need quotes: `[[ ]]` evaluates what it compares as a number."""
    spot.quotes = Quotes.UNSURE
    spot.where = "a comparison of numbers in [[ ]]"


def quoter(
    spot: Spot, reference: str, *place: str | int, patterns: bool = False
) -> Callable[[str], str]:
    """Return a function that makes a text mean itself there, or raises an InputError.

    Where names of files may be `patterns`, outside of quotes their wildcards stay wildcards.
    """
    quotes = spot.quotes

    def refuse(text: str, problem: str, how: str) -> str:
        where = spot.where or quotes.value
        raise wrong(
            f"{{{reference}}} stands in {where}, where its value {shown(text)} {problem}: {how}",
            *place,
        )

    def quote_or_refuse(text: str) -> str:
        if quotes in (Quotes.ARITHMETIC, Quotes.DECIMAL):
            if (_DIGITS if quotes is Quotes.DECIMAL else _NUMBER).fullmatch(text):
                return text
            zeros = " (after 10# it may begin with zeros)" if _DIGITS.fullmatch(text) else ""
            return refuse(text, "would be evaluated", f"choose a plain number{zeros}")
        if quotes is Quotes.NEVER:
            return refuse(text, "cannot be told from a line of it", "write the word itself")
        if text in spot.forbidden:
            return refuse(text, "could end it", "choose another word after <<")
        if _SAFE.fullmatch(text):
            is_file = spot.before_redirect and quotes is Quotes.NONE and text.isdecimal()
            return f"'{text}'" if is_file else text
        if spot.is_one_line and "\n" in text:
            return refuse(text, "would begin a new line", "choose a value of one line")
        if quotes in (Quotes.NONE, Quotes.COMMENT):
            parts = _WILDCARD.split(text) if patterns else []
            if len(parts) < 2:
                return shlex.quote(text)
            return "".join(p if _WILDCARD.fullmatch(p) else shlex.quote(p) for p in parts if p)
        if quotes is Quotes.DOUBLE:
            return _IN_DOUBLE.sub(r"\\\1", text)
        if quotes is Quotes.SINGLE:
            return text.replace("'", "'\\''")
        how = "choose a value of letters and digits, or give it to the command in a file"
        return refuse(text, "cannot be quoted", how)

    return quote_or_refuse
