"""Priorities written into a DAGMan file; every other line stays as it is, byte for byte.

New lines stand at the end of the file: `PRIORITY JOB NUMBER`, or, in the style of the PRIO tool
(Malewicz, Foster, Rosenberg, Wilde: A Tool for Prioritizing DAGMan Jobs and Its Evaluation),
`VARS JOB JobPriority="NUMBER"`, which the submit file takes up by `priority = $(JobPriority)`.

A job that has a priority, in either style, keeps it. To replace priorities is to drop the lines
that give them and to write new ones. An included file is never written: what its jobs get stands
in the file that includes it, and overrules it. The jobs of a splice, or of a SUBDAG, can only be
named in its own file; it is written too if the priorities go into the file itself, and left alone
if they go to another. A file that is read in more than once gives its jobs one number for all
their instances: the mean.

To the PRIORITY of a job inside a SUBDAG, DAGMan adds that of the SUBDAG; so what is written is
less by that.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from foreplan.errors import InputError, unknown_name
from foreplan.files import printable, write_bytes
from foreplan.formats.dagman import read_dag
from foreplan.formats.dagman_dag import DagmanDag, DagmanFile, Place, Scope
from foreplan.formats.dagman_syntax import PRIORITY_MACRO, UNKNOWN, Statement, near_command
from foreplan.formats.fields import shown

Style = Literal["priority", "vars"]
_MOST = 2**31 - 1


@dataclass(frozen=True)
class Written:
    """What was written where: the jobs by their names in full, and what a user should know."""

    files: tuple[Path, ...]  # that were written
    priorities: dict[str, int]  # that were written
    kept: tuple[str, ...]  # jobs that had a priority and keep it
    left: tuple[str, ...]  # jobs of splices and SUBDAGs, whose files were not to be written
    notes: tuple[str, ...]
    # what counts for each job in the end, where that is not 0
    effective: dict[str, int] = field(default_factory=dict, compare=False)


def with_priorities(
    source: DagmanDag | str | os.PathLike[str],
    priorities: Mapping[str, int],
    *,
    replace: bool = False,
    style: Style = "priority",
    output: str | os.PathLike[str] | None = None,
    dry: bool = False,
) -> Written:
    """Write priorities of jobs, by their names in full, into a DAGMan file or a copy of it.

    Nothing is written if anything is wrong, or in a dry run. Without an output the file itself is
    written, and the files of its splices and SUBDAGs. A SUBDAG needs no number: it gets the highest
    of its jobs.
    """
    dag = source if isinstance(source, DagmanDag) else read_dag(source)
    _check(dag, priorities)
    plan = _Plan(dag, _within_subdags(dag, priorities, replace, style), replace, style)
    files = _by_file(dag)
    if output is None:
        _check_splices(files)
    else:
        _check_output(dag, Path(output))
    contents: dict[Path, bytes] = {}
    for file, scopes in reversed(files.items()):  # the file itself last
        if output is not None and file is not dag.scopes[0].source:
            plan.leave(scopes)
            continue
        content = plan.make_content(file, scopes)
        if output is not None:
            contents[Path(output)] = content
        elif file.path is not None and content != file.raw:
            contents[file.path] = content
    if not dry:
        _write(contents, files)
    return plan.written(contents)


def unknown_commands(dag: DagmanDag) -> list[str]:
    """Return a warning for each unknown command of each file; their lines are kept and not read."""
    files = dict.fromkeys(file for scope in dag.scopes for file in (scope.source, *scope.included))
    warnings = []
    for file in files:
        found: dict[str, list[Statement]] = {}
        for statement in file.statements:
            if statement.command == UNKNOWN:
                found.setdefault(statement.words[0].upper(), []).append(statement)
        for first, *others in found.values():
            word = first.words[0]
            more = f" (and {len(others):,} more)" if others else ""
            problem = f"unknown command {shown(word)}{near_command(word)}{more}"
            error = Place(file, first.line).wrong(f"{problem} is kept as it is and not considered")
            warnings.append(str(error))
    return warnings


def _check_output(dag: DagmanDag, output: Path) -> None:
    """The output must not be a file that the dag needs as it is."""
    own = dag.scopes[0].source
    for scope in dag.scopes:
        for file in (scope.source, *scope.included):
            if file is own or file.path is None:
                continue
            if os.path.realpath(file.path) == os.path.realpath(output):
                problem = "cannot write the priorities to it: it is a part of the dag"
                raise InputError(problem, source=printable(output))


def _check(dag: DagmanDag, priorities: Mapping[str, int]) -> None:
    jobs = {node.name for node in dag.nodes if node.may_have_priority}
    for job, number in priorities.items():
        if job not in jobs:
            raise InputError(unknown_name("job", job[:80], [j for j in jobs if len(j) <= 80]))
        if abs(number) > _MOST:
            raise InputError(f"the priority {number} of {shown(job)} is out of range")


def _within_subdags(
    dag: DagmanDag, priorities: Mapping[str, int], replace: bool, style: Style
) -> dict[str, int]:
    """What is to be written, if DAGMan adds to a job's number those of the SUBDAGs it is in."""
    numbers = dict(priorities)
    if style == "vars":  # of which DAGMan knows nothing
        return numbers
    places = {node.name: i for i, node in enumerate(dag.nodes)}
    highest: dict[int, int] = {}
    for name, number in priorities.items():
        above = dag.opened.get(places[name])
        while above is not None:
            highest[above] = max(highest.get(above, number), number)
            above = dag.opened.get(above)
    for node in sorted(highest):  # a SUBDAG stands before those inside it
        if node in dag.priorities and not replace:
            outer = dag.opened.get(node)
            highest[node] = dag.priorities[node][0] + (0 if outer is None else highest[outer])
    for node, number in highest.items():
        numbers[dag.nodes[node].name] = number
    for name in numbers:
        above = dag.opened.get(places[name])
        if above is not None:
            numbers[name] -= highest[above]
    return numbers


def _by_file(dag: DagmanDag) -> dict[DagmanFile, list[Scope]]:
    """The scopes of each file, the first file first."""
    files: dict[DagmanFile, list[Scope]] = {}
    for scope in dag.scopes:
        files.setdefault(scope.source, []).append(scope)
    return files


def _check_splices(files: Mapping[DagmanFile, list[Scope]]) -> None:
    """What is written into the file of a splice must count there only."""
    for scopes in files.values():
        for other in (file for scope in scopes for file in scope.included):
            if other in files and other.path is not None:
                problem = "priorities would count twice in it: it is both included and spliced in"
                raise InputError(problem, source=printable(other.path))


class _Plan:
    """What is to be written, file by file."""

    def __init__(self, dag: DagmanDag, priorities: Mapping[str, int], replace: bool, style: Style):
        self._dag, self._given, self._replace, self._style = dag, priorities, replace, style
        self._numbers: dict[str, int] = {}
        self._kept: list[str] = []
        self._left: list[str] = []
        self._shared: set[Path | None] = set()
        self._overruled = 0

    def make_content(self, file: DagmanFile, scopes: list[Scope]) -> bytes:
        """The file with its new lines."""
        numbers = self._number_jobs(file, scopes)
        gone: list[Statement] = []
        if self._replace:
            every = all(
                job in numbers
                for scope in scopes
                for job, i in scope.nodes.items()
                if self._dag.nodes[i].may_have_priority and i not in self._dag.done
            )
            gone = [s for s in file.statements if _is_replaced(s, numbers, every)]
        lines = [
            f"PRIORITY {job} {number}"
            if self._style == "priority"
            else f'VARS {job} JobPriority="{number}"'
            for job, number in numbers.items()
        ]
        return _appended(_without(file.raw, gone), lines, file.raw)

    def _number_jobs(self, file: DagmanFile, scopes: list[Scope]) -> dict[str, int]:
        """The new numbers of a file's own jobs, by their names there."""
        everywhere = Counter(job for scope in scopes for job in scope.nodes)
        numbers: dict[str, int] = {}
        for job in scopes[0].nodes:
            if everywhere[job] < len(scopes):  # what is included depends on the directory
                continue
            nodes = [scope.nodes[job] for scope in scopes]
            names = [self._dag.nodes[i].name for i in nodes]
            given = [self._given[name] for name in names if name in self._given]
            if not given:
                continue
            if not self._replace and any(self._has_one(i) for i in nodes):
                self._kept += names
                continue
            self._overrule_included(file, nodes)
            numbers[job] = (2 * sum(given) + len(given)) // (2 * len(given))
            if min(given) < max(given):
                self._shared.add(file.path)
            self._numbers.update(dict.fromkeys(names, numbers[job]))
        return numbers

    def _has_one(self, node: int) -> bool:
        return node in self._dag.priorities or node in self._dag.macros

    def _overrule_included(self, file: DagmanFile, nodes: Iterable[int]) -> None:
        """A PRIORITY of an included file can be overruled by another, but not by VARS."""
        for node in nodes:
            number, place = self._dag.priorities.get(node, (0, None))
            if place is None or place.source is file:
                continue
            if self._style == "vars" and number != 0:
                problem = "VARS cannot overrule this PRIORITY of an included file"
                raise place.wrong(f"{problem}: write PRIORITY lines, or edit it")
            self._overruled += 1

    def leave(self, scopes: Iterable[Scope]) -> None:
        """Note the jobs of a file that is not to be written."""
        for scope in scopes:
            names = (self._dag.nodes[i].name for i in scope.nodes.values())
            for name, node in zip(names, scope.nodes.values(), strict=True):
                if name in self._given:
                    kept = self._has_one(node) and not self._replace
                    (self._kept if kept else self._left).append(name)

    def written(self, contents: Mapping[Path, bytes]) -> Written:
        """The report."""
        notes: list[str] = []
        if self._left:
            notes.append(
                f"jobs inside splices and SUBDAGs get none ({len(self._left)}): only the file of a "
                "splice or a SUBDAG can name its jobs, and with an output no other file is written"
            )
        for path in sorted(printable(p) for p in self._shared if p is not None):
            notes.append(f"{path} is used more than once: its jobs get the mean priority")
        if self._overruled:
            notes.append(f"priorities of included files are overruled ({self._overruled})")
        if self._style == "vars" and self._numbers:
            notes.append("the submit files must say: priority = $(JobPriority)")
        return Written(
            tuple(contents),
            self._numbers,
            tuple(self._kept),
            tuple(self._left),
            tuple(notes),
            self._effective(),
        )

    def _effective(self) -> dict[str, int]:
        """What counts for each job: its number, and with PRIORITY those of its SUBDAGs."""
        own: dict[int, int] = {i: number for i, (number, _) in self._dag.priorities.items()}
        own |= {
            i: self._numbers[node.name]
            for i, node in enumerate(self._dag.nodes)
            if node.name in self._numbers
        }
        sums: dict[str, int] = {}
        for i, node in enumerate(self._dag.nodes):
            number, above = own.get(i, 0), self._dag.opened.get(i)
            while above is not None and self._style == "priority":
                number, above = number + own.get(above, 0), self._dag.opened.get(above)
            if number:
                sums[node.name] = number
        return sums


def _is_replaced(statement: Statement, numbers: Mapping[str, int], every: bool) -> bool:
    """Whether a line gives a priority, and nothing else, to jobs that all get another."""
    command, words = statement.command, statement.words
    if command != "PRIORITY" and (command != "VARS" or set(words[1:]) != {PRIORITY_MACRO}):
        return False
    if words[0].upper() == "ALL_NODES":
        return every
    return words[0] in numbers


def _without(raw: bytes, gone: Iterable[Statement]) -> bytes:
    """The bytes without the lines of some statements; comments between these stay."""
    lines = raw.split(b"\n")
    dropped = {line for s in gone for line in range(s.line - 1, s.end)}
    if not dropped:
        return raw
    last = len(lines) - 1
    kept = [
        line if i == last else line + b"\n"
        for i, line in enumerate(lines)
        if i not in dropped or line.strip().startswith(b"#")
    ]
    return b"".join(kept)


def _appended(body: bytes, lines: list[str], raw: bytes) -> bytes:
    """More lines at the end, ended as the others are; a last line without an end has none."""
    if not lines:
        return body
    first = raw.find(b"\n")
    end = b"\r\n" if first > 0 and raw[first - 1 : first] == b"\r" else b"\n"
    ended = not body or body.endswith(b"\n")
    last = body.removesuffix(b"\n").rsplit(b"\n", 1)[-1].strip()
    gap = end if last.endswith(b"\\") else b""  # else the new line would continue that one
    added = end.join(line.encode("utf-8") for line in lines)
    return body + gap + added + end if ended else body + end + gap + added


def _write(contents: Mapping[Path, bytes], files: Iterable[DagmanFile]) -> None:
    """All or, if one cannot be written, none."""
    before = {file.path: file.raw for file in files}
    done: list[Path] = []
    try:
        for path, content in contents.items():
            write_bytes(path, content)
            done.append(path)
    except InputError:
        for path in done:
            if path in before:
                write_bytes(path, before[path])
        raise
