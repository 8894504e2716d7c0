"""The files that a shell command writes to by `>`, `>>` and the like, as far as its text shows.

Rules: a target with a variable, a command substitution or a wildcard in it is not known, nor is
one after `cd`: they are left out. Comments, here-documents, arithmetic and `[[ ... ]]` redirect
nothing. Text in quotes is not looked into, but for `$(...)`, and for what is given to `sh -c`.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from functools import lru_cache

SHELL = re.compile(r"(|a|ba|da|fi|k|mk|z)sh")
_C_OPTION = re.compile(r"-[A-Za-z]*c")
_ENDS_WORD = frozenset(" \t\n;&|<>()")
_BLANKS = re.compile(r"(?:[ \t]|\\\n)*")
_WRITES = re.compile(r"&>>?|>>|>\||>&|>|<>")
_TRICKY = re.compile(
    r"[\"'\\#`$(\[{*?~]|<<|<>|\bcd\b|\bpushd\b"
)  # what only the scanner understands
_PLAIN_WRITES = re.compile(r"(&>>?|>>|>\||>&|>)[ \t]*([^ \t\n;&|<>()]+)")
_HERE_DOCUMENT = re.compile(r"<<-?(?!<)")
_PLAIN = re.compile(r"[^ \t\n;&|<>()\\'\"$`*?\[{~]+")
_PLAIN_QUOTED = re.compile(r'[^"\\$`]+')
_CONDITION = re.compile(r"\[\[\s")
_DESCRIPTOR = re.compile(r"\d*-?")
_LEADS_COMMAND = frozenset(
    ("if", "then", "elif", "else", "while", "until", "for", "do", "!", "{", "time")
)


@lru_cache(maxsize=1 << 14)
def redirection_targets(command: str) -> frozenset[str]:
    """Return the names of the files that a command redirects output to."""
    if ">" not in command:
        return frozenset()
    if _TRICKY.search(command) is None:
        found = {
            word
            for operator, word in _PLAIN_WRITES.findall(command)
            if operator != ">&" or not _DESCRIPTOR.fullmatch(word)
        }
    else:
        scanner = _Scanner(command)
        # a quote or a bracket that is never closed, which the shell refuses
        with suppress(IndexError, RecursionError):
            scanner.read_commands("")
        found = scanner.targets
    return frozenset(os.path.normpath(name) for name in found if "\0" not in name)


class _Scanner:
    """A reader of shell text, from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.targets: set[str] = set()
        self._in_backticks = False
        self._is_elsewhere = False  # a command has changed the directory
        self._documents: list[tuple[str, bool]] = []  # ends of here-documents, if tabs are cut

    def _sees(self, token: str) -> bool:
        return self.text.startswith(token, self.at)

    def _skip_blanks(self) -> None:
        blanks = _BLANKS.match(self.text, self.at)
        self.at = self.at if blanks is None else blanks.end()

    def read_commands(self, closer: str) -> None:
        """Read commands up to a closing bracket or backtick, or to the end."""
        was_elsewhere = self._is_elsewhere
        words: list[str] = []  # of the command so far
        while True:
            self._skip_blanks()
            if self.at >= len(self.text):
                if closer:
                    raise IndexError
                return
            character = self.text[self.at]
            begins = not words or words[-1] in _LEADS_COMMAND
            if closer and character == closer:
                self.at += 1
                self._is_elsewhere = was_elsewhere
                return
            if self._sees("((") and begins:
                self._skip_arithmetic()
            elif writes := _WRITES.match(self.text, self.at):
                self._read_target(writes)
            elif document := _HERE_DOCUMENT.match(self.text, self.at):
                self.at = document.end()
                self._skip_blanks()
                self._documents.append((self._read_word()[0], document[0].endswith("-")))
            elif character == "<":
                self.at += 3 if self._sees("<<<") else 1
            elif character == "#":
                self._skip_to("\n")
            elif character in _ENDS_WORD:
                self.at += 1
                words.clear()
                if character == "(":
                    self.read_commands(")")
                elif character == "\n":
                    self._skip_documents()
            elif begins and _CONDITION.match(self.text, self.at):
                self._skip_to("]]")
                self.at += 2
            else:
                self._take_word(words)

    def _take_word(self, words: list[str]) -> None:
        """Read a word of a command; what is given to `sh -c` is a command, too."""
        begin = self.at
        word, _ = self._read_word()
        if self.at == begin:  # a stray backtick
            self.at += 1
        if word in ("cd", "pushd") and (not words or words[-1] in _LEADS_COMMAND):
            self._is_elsewhere = True
        given = (
            not self._is_elsewhere and len(words) > 1 and _C_OPTION.fullmatch(words[-1]) is not None
        )
        if given and any(SHELL.fullmatch(os.path.basename(before)) for before in words[:-1]):
            self.targets |= redirection_targets(word)
        words.append(word)

    def _read_target(self, writes: re.Match[str]) -> None:
        self.at = writes.end()
        if self._sees("("):  # >(...) is a process
            return
        self._skip_blanks()
        begin = self.at
        word, is_plain = self._read_word()
        is_descriptor = writes[0] == ">&" and _DESCRIPTOR.fullmatch(self.text[begin : self.at])
        if word and is_plain and not is_descriptor and not self._is_elsewhere:
            self.targets.add(word)

    def _read_word(self) -> tuple[str, bool]:
        """Read a word without its quotes; return whether it means itself as well."""
        parts: list[str] = []
        is_plain = True
        while self.at < len(self.text) and (character := self.text[self.at]) not in _ENDS_WORD:
            if run := _PLAIN.match(self.text, self.at):
                parts.append(run[0])
                self.at = run.end()
            elif character == "`" and self._in_backticks:
                break
            elif character == "\\":
                parts.append(self.text[self.at + 1].replace("\n", ""))
                self.at += 2
            elif character == "'":
                end = self.text.find("'", self.at + 1)
                if end < 0:
                    raise IndexError
                parts.append(self.text[self.at + 1 : end])
                self.at = end + 1
            elif character == '"':
                is_plain = self._read_quoted(parts) and is_plain
            elif character in "$`":
                if self._sees("$'") or self._sees('$"'):
                    self.at += 1
                else:
                    self._skip_expansion()
                is_plain = False
            else:  # a wildcard, braces or ~
                is_plain = False
                parts.append(character)
                self.at += 1
        return "".join(parts), is_plain

    def _read_quoted(self, parts: list[str]) -> bool:
        """Read text in double quotes; return whether nothing in it is expanded."""
        is_plain = True
        self.at += 1
        while (character := self.text[self.at]) != '"':
            if run := _PLAIN_QUOTED.match(self.text, self.at):
                parts.append(run[0])
                self.at = run.end()
            elif character == "\\":
                following = self.text[self.at + 1]
                parts.append(following if following in '"\\$`' else f"\\{following}")
                self.at += 2
            else:
                self._skip_expansion()
                is_plain = False
        self.at += 1
        return is_plain

    def _skip_expansion(self) -> None:
        """Skip `$name`, `${...}` or arithmetic; read the commands of `$(...)` and backticks."""
        if self._sees("$(("):
            self.at += 1
            self._skip_arithmetic()
        elif self._sees("$("):
            self.at += 2
            self.read_commands(")")
        elif self._sees("`"):
            self.at += 1
            self._in_backticks = True
            self.read_commands("`")
            self._in_backticks = False
        elif self._sees("${"):
            self.at += 2
            while self.text[self.at] != "}":
                if self.text[self.at] == "\\":
                    self.at += 2
                elif self.text[self.at] in "$`":
                    self._skip_expansion()
                else:
                    self.at += 1
            self.at += 1
        else:
            self.at += 1

    def _skip_arithmetic(self) -> None:
        depth = 0
        while True:
            depth += {"(": 1, ")": -1}.get(self.text[self.at], 0)
            self.at += 1
            if depth == 0:
                return

    def _skip_to(self, token: str) -> None:
        found = self.text.find(token, self.at)
        self.at = len(self.text) if found < 0 else found

    def _skip_documents(self) -> None:
        """Skip the here-documents that begin on the line that has just ended."""
        for end, cuts_tabs in self._documents:
            while self.at < len(self.text):
                begin = self.at
                self._skip_to("\n")
                line = self.text[begin : self.at]
                self.at += 1
                if (line.lstrip("\t") if cuts_tabs else line) == end:
                    break
        self._documents.clear()
