"""The statements of a DAGMan file: its lines, joined and checked one by one.

A line that ends in a backslash goes on in the next, whose leading blanks are left out; a comment
does not go on, and may stand between such lines. Commands and keywords are read in any case, and
with `_` for `-`. What names a job is checked later, when all jobs are known. A command that is not
known is a statement as well: the reader decides whether to refuse it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from foreplan.errors import InputError, did_you_mean, unknown_name
from foreplan.formats.fields import shown

# the words after a command, as a user is told, and as they must be
FORMS = {
    "RETRY": ("JOB TIMES [UNLESS-EXIT CODE]", r"W [0-9]+( UNLESS-EXIT N)?"),
    "ABORT_DAG_ON": ("JOB CODE [RETURN CODE]", r"W N( RETURN [0-9]+)?"),
    "PRIORITY": ("JOB NUMBER", r"W N"),
    "CATEGORY": ("JOB CATEGORY", r"W W"),
    "MAXJOBS": ("CATEGORY NUMBER", r"W [0-9]+"),
    "PRE_SKIP": ("JOB CODE", r"W N"),
    "TOLERANCE": (
        "JOB FAILURES[%] [FAIL-FAST|WAIT]",
        r"W \+?[0-9]+( ?%)?( (FAIL[-_]FAST|WAIT))?",
    ),
    "DONE": ("JOB", r"W"),
    "SPLICE": ("NAME FILE [DIR DIRECTORY]", r"W W( DIR W)?"),
    "INCLUDE": ("FILE", r"W"),
    "CONNECT": ("SPLICE SPLICE", r"W W"),
    "PIN_IN": ("JOB NUMBER", r"W 0*[1-9][0-9]*"),
    "PIN_OUT": ("JOB NUMBER", r"W 0*[1-9][0-9]*"),
    "CONFIG": ("FILE", r"W"),
    "DOT": (
        "FILE [[DONT-]UPDATE] [[DONT-]OVERWRITE] [INCLUDE FILE]",
        r"W( (DONT-)?(UPDATE|OVERWRITE)| INCLUDE W)*",
    ),
    "NODE_STATUS_FILE": ("FILE [SECONDS] [ALWAYS-UPDATE]", r"W( N| ALWAYS-UPDATE)*"),
    "JOBSTATE_LOG": ("FILE", r"W"),
    "SAVE_POINT_FILE": ("JOB [FILE]", r"W( W)?"),
    "SET_JOB_ATTR": ("NAME = VALUE", r"[^ =]+ ?=.*"),
    "ENV": ("SET|GET VARIABLES", r"(SET|GET)( W)+"),
    "REJECT": ("", r""),
    "SCRIPT": (
        "[DEFER STATUS SECONDS] [DEBUG FILE STDOUT|STDERR|ALL] PRE|POST|HOLD JOB PROGRAM ...",
        r"(DEFER N N |DEBUG W (STDOUT|STDERR|ALL) )*(PRE|POST|HOLD) W( W)+",
    ),
}
SHAPES = {
    command: re.compile(
        re.sub(r"\bN\b", "[+-]?[0-9]+", re.sub(r"\bW\b", "[^ ]+", shape)), re.IGNORECASE
    )
    for command, (_, shape) in FORMS.items()
}


WEAK_PARENT = "WEAK PARENT"
UNKNOWN = ""  # the command of a statement that begins with a word DAGMan's manual does not have
NODES = frozenset({"JOB", "FINAL", "PROVISIONER", "SERVICE", "SUBDAG"})
_MAY_BE_DONE = ("JOB", "SUBDAG", "PROVISIONER")
_ALSO = {"NODE": "JOB"}  # what newer manuals say for it
RESERVED = ("PARENT", "CHILD", "ALL_NODES")
PRIORITY_MACRO = "jobpriority"  # of VARS, in lower case: what the PRIO tool wrote
_BLANK = " \t\v\f\r"
_MOST = 2**31 - 1  # DAGMan's numbers are C's int

_WORD = re.compile(r"[^ \t]+")
_QUOTED = re.compile(r'"([^"]*)"|([^ \t]+)')
_PAIR = re.compile(
    r"""(?P<name>\+?[A-Za-z0-9_.]+)[ \t]*=[ \t]*
        (?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^ \t"']+)[ \t]*""",
    re.VERBOSE,
)
_VARS = re.compile(
    r"[^ \t]+[ \t]+(?P<job>[^ \t]+)(?:[ \t]+(?:PREPEND|APPEND)(?=[ \t]))?(?P<pairs>.*)",
    re.IGNORECASE | re.DOTALL,
)

_NODE_FORM = "NAME SUBMIT-FILE [DIR DIRECTORY] [NOOP] [DONE]"
_FAMILY_FORM = "JOB ... CHILD JOB ..."
_OPENING = ("{", "@", "")  # what an inline description begins with, or nothing
_DASHED = {"ABORT_DAG_ON": "ABORT-DAG-ON", "SUBMIT_DESCRIPTION": "SUBMIT-DESCRIPTION"}


class Statement(NamedTuple):
    """A command, on the lines from `line` to `end`, and its words in a fixed form.

    A node: its name, its submit file ("" if inline), and "DONE" or ""; then, if it has either, its
    directory and its inline description. SUBMIT-DESCRIPTION: its name and the description. PARENT
    and WEAK PARENT: both lists with an empty word between. VARS: the job and the macros' names in
    lower case. SCRIPT: the job. UNKNOWN: the command and its words. All else as it is written.
    """

    line: int
    end: int
    command: str
    words: list[str]


def statements(text: str) -> list[Statement]:
    """The statements of a file's text; an error names the line."""
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise InputError("this is not text: it holds a zero byte", place=f"line {line}")
    lines = text.split("\n")
    found: list[Statement] = []
    at = 0
    while at < len(lines):
        body = lines[at].strip(_BLANK)
        at = first = at + 1
        if not body or body.startswith(("#", "//")):
            continue
        try:
            if body.endswith("\\"):
                body, at = _joined(body, lines, at)
            if body:
                command, words, at = _command(body, lines, at)
                found.append(Statement(first, at, command, words))
        except InputError as error:
            raise error.at(f"line {first}") from None
    return found


def _joined(body: str, lines: list[str], at: int) -> tuple[str, int]:
    """A line with those that it goes on with, and where the next begins."""
    parts: list[str] = []
    while body.endswith("\\"):
        if not body.startswith("#"):
            parts.append(body[:-1])
        body = lines[at].strip(_BLANK) if at < len(lines) else ""
        at += 1
    if not body.startswith("#"):
        parts.append(body)
    return "".join(parts).strip(_BLANK), min(at, len(lines))


def _command(body: str, lines: list[str], at: int) -> tuple[str, list[str], int]:
    if body[:4].upper() == "VARS" and body[4:5] in (" ", "\t"):
        return "VARS", _macros(body), at
    written, *words = _words(body)
    command = written.upper().replace("-", "_")
    command = _ALSO.get(command, command)
    if command == "JOB" and len(words) == 2 and words[1][:1] not in _OPENING:  # most lines
        return command, [_node_name(words[0]), sayable(words[1]), ""], at
    if command == "PARENT":
        return command, _family(command, words), at
    if command == "WEAK":
        if not words or words[0].upper() != "PARENT":
            raise _misused("WEAK", f"PARENT {_FAMILY_FORM}", words)
        return WEAK_PARENT, _family(WEAK_PARENT, words[1:]), at
    if command in FORMS:
        return command, _formed(command, words), at
    if command in NODES or command == "SUBMIT_DESCRIPTION":
        return _described(command, words, lines, at)
    if command == "VARS":
        return command, _macros(body), at
    return UNKNOWN, [written, *words], _after_block(words, lines, at)


def _words(body: str) -> list[str]:
    if '"' in body:
        return [found[1] if found[2] is None else found[2] for found in _QUOTED.finditer(body)]
    if body.isascii() and body.isprintable():  # the usual line; split() knows more blanks
        return body.split()
    return _WORD.findall(body)


def _after_block(words: list[str], lines: list[str], at: int) -> int:
    """Return the line after the inline block that an unknown command opens, if it opens one."""
    last = words[-1] if words else ""
    close = _close(last) if last == "{" or last.startswith("@=") else ""
    if not close:
        return at
    try:
        return _inline(lines, at, close, last)[1]
    except InputError:  # no end: not a block
        return at


def unsupported_command(command: str, words: list[str]) -> str:
    """Return why a workflow cannot be made of a file with this statement, or nothing if it can."""
    if command == UNKNOWN:
        return unknown_name("command", words[0][:80], _spelt_commands())
    if reason := _NOT_IN_WORKFLOWS.get(command):
        return f"{command} is not supported: {reason}; only `foreplan prioritize` reads it"
    return ""


_NOT_IN_WORKFLOWS = {
    WEAK_PARENT: "a task never starts after one that it depends on has failed",
    "TOLERANCE": "a job is one task, which fails or not",
}


def near_command(word: str) -> str:
    """Return a question about the known command nearest to an unknown one, if there is one."""
    return did_you_mean(word[:80].upper(), _spelt_commands())


def _spelt_commands() -> list[str]:
    known = [*NODES, *FORMS, "PARENT", WEAK_PARENT, "VARS", "SUBMIT_DESCRIPTION"]
    return [spelt(command) for command in known]


def spelt(command: str) -> str:
    """A command as DAGMan's manual spells it."""
    return _DASHED.get(command, command)


def _misused(command: str, form: str, words: list[str]) -> InputError:
    command = spelt(command)
    written = " ".join([command, *words])
    return InputError(f"expected {f'{command} {form}'.strip()!r}, not {shown(written)}")


def _formed(command: str, words: list[str]) -> list[str]:
    said = " ".join(words)
    if said.count(" ") >= len(words):  # some word was quoted
        said = " ".join(word.replace(" ", "_") for word in words)
    if not SHAPES[command].fullmatch(said):
        raise _misused(command, FORMS[command][0], words)
    if command in _LIMITED and abs(_number(words[1])) > _MOST:
        raise InputError(f"the number {shown(words[1])} is out of range (at most {_MOST})")
    if command == "SCRIPT":
        at = 0
        while words[at].upper() in ("DEFER", "DEBUG"):
            at += 3
        return [words[at + 1]]
    for word in words[: _NAMED.get(command, 0)]:
        sayable(word)
    return words


_LIMITED = frozenset({"RETRY", "PRIORITY", "MAXJOBS", "PIN_IN", "PIN_OUT"})
_NAMED = {"CATEGORY": 2, "SPLICE": 2, "INCLUDE": 1}  # words that must be text


def _number(word: str) -> int:
    return int(word) if len(word) <= 20 else _MOST + 1


def sayable(word: str) -> str:
    """The word, if it is whole and UTF-8 text, as what names a task must be."""
    if word[:1] == '"':
        raise InputError(f"the quotation mark before {shown(word[1:])} has no other")
    if not word.isascii() and any("\udc80" <= c <= "\udcff" for c in word):
        raise InputError(f"the name {shown(word)} is not UTF-8 text")
    return word


def _described(
    command: str, words: list[str], lines: list[str], at: int
) -> tuple[str, list[str], int]:
    """A node or a submit description: both may be followed by an inline one."""
    form = _NODE_FORM if command in _MAY_BE_DONE else _NODE_FORM.removesuffix(" [DONE]")
    if command == "SUBDAG":
        form = f"EXTERNAL {form.replace('SUBMIT-FILE', 'DAG-FILE')}"
        if not words or words[0].upper() != "EXTERNAL":
            raise _misused(command, form, words)
        words = words[1:]
    if len(words) < 2:
        raise _misused(command, "NAME {" if command == "SUBMIT_DESCRIPTION" else form, words)
    name, submit, *rest = words
    close = _close(submit) if command != "SUBDAG" else ""
    body = ""
    if close:
        begins = at
        tail, at = _inline(lines, at, close, name)
        submit, rest, body = "", rest + _words(tail), "\n".join(lines[begins : at - 1])
    if command == "SUBMIT_DESCRIPTION":
        if not close:
            raise InputError(f"expected an inline description after {shown(name)}: {{ ... }}")
        return command, [name, body], at
    done, directory = _options(command, form, words, rest)
    more = [directory, body] if directory or body else []
    return command, [_node_name(name), sayable(submit), done, *more], at


def _close(submit: str) -> str:
    """What ends the inline description that begins here, if one does."""
    if submit.startswith("{"):
        return "}"
    return "@" + submit[2:] if submit.startswith("@=") and len(submit) > 2 else ""


def _inline(lines: list[str], at: int, close: str, name: str) -> tuple[str, int]:
    for line in range(at, len(lines)):
        body = lines[line].strip(_BLANK)
        if body == close or (
            body.startswith(close) and (close == "}" or body[len(close)] in " \t")
        ):
            return body[len(close) :], line + 1
    problem = f"the inline description of {shown(name)} has no end: a line with {close!r}"
    raise InputError(problem)


def _node_name(name: str) -> str:
    if name.isidentifier() and name.isascii() and name.upper() not in RESERVED:
        return name
    if name.upper() in RESERVED:
        raise InputError(f"a job cannot be called {shown(name)}: the word is reserved")
    if "+" in name:
        problem = "'+' stands between a splice and its jobs"
        raise InputError(f"a job cannot be called {shown(name)}: {problem}")
    if not name or " " in name or "\t" in name:
        raise InputError(f"a job cannot be called {shown(name)}: a name has no blanks")
    return sayable(name)


def _options(command: str, form: str, words: list[str], rest: list[str]) -> tuple[str, str]:
    """Whether the node is done, and its directory; DIR, NOOP and DONE may follow it."""
    done, directory, at = "", "", 0
    while at < len(rest):
        option = rest[at].upper()
        if option == "DIR" and at + 1 < len(rest):
            at += 1
            directory = rest[at]
        elif option == "DONE" and command in _MAY_BE_DONE:
            done = "DONE"
        elif option != "NOOP":
            raise _misused(command, form, words)
        at += 1
    return done, directory


def _family(command: str, words: list[str]) -> list[str]:
    """The parents, an empty word, and the children."""
    large = [word.upper() for word in words]
    at = large.index("CHILD") if "CHILD" in large else 0
    if at == 0 or at == len(words) - 1 or large.count("CHILD") > 1 or "PARENT" in large:
        raise _misused(command, _FAMILY_FORM, words)
    return [*words[:at], "", *words[at + 1 :]]


def _macros(body: str) -> list[str]:
    """The job of a VARS line, and its macros in lower case."""
    found = _VARS.fullmatch(body)
    names = _pairs(found["pairs"].strip(_BLANK)) if found else []
    if found is None or not names:
        raise _misused("VARS", 'JOB NAME="VALUE" ...', _WORD.findall(body)[1:])
    return [found["job"], *names]


def _pairs(text: str) -> list[str]:
    names: list[str] = []
    at = 0
    while at < len(text):
        found = _PAIR.match(text, at)
        if found is None:
            problem = f'expected NAME="VALUE", not {shown(text[at:])}'
            raise InputError(problem)
        name = found["name"].lower()
        if name.startswith("queue") or name == "+":
            raise InputError(f"a macro cannot be called {shown(found['name'])}")
        names.append(name)
        at = found.end()
    return names
