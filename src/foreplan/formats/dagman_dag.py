"""What a DAGMan file says: its files, its jobs, the arcs between them, and where each was said."""

from __future__ import annotations

import codecs
import os
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from foreplan.arrays import IntArray
from foreplan.errors import InputError
from foreplan.files import MAX_BYTES, in_file, printable
from foreplan.formats.dagman_syntax import Statement, statements
from foreplan.formats.fields import shown
from foreplan.model.resources import Request
from foreplan.model.workflow import cycle_error, topological_order


@dataclass(frozen=True, eq=False)
class DagmanFile:
    """One file: where it is (None for a mere text), its bytes and its statements."""

    path: Path | None
    raw: bytes
    statements: list[Statement]


class Place(NamedTuple):
    """A line of a file."""

    source: DagmanFile
    line: int

    def wrong(self, problem: str) -> InputError:
        """An error there."""
        path = self.source.path
        source = "" if path is None else printable(path)
        return InputError(problem, place=f"line {self.line}", source=source)


def text_source(text: str) -> DagmanFile:
    """A text that is in no file, and hence can name none."""
    return DagmanFile(None, b"", statements(text))


class Files:
    """Reads each file once, however often it is named.

    Paths are relative to the folder of the first file, as if it were submitted from there; what
    is not there is looked for in the working directory, as if it were submitted from here.
    """

    def __init__(self, first: Path) -> None:
        self.bases = (first.parent, Path())
        self.n_named = 0  # a file counts as often as it is named
        self._read: dict[str, DagmanFile] = {}

    def open(self, path: Path) -> DagmanFile:
        """The file at a path."""
        key = os.path.realpath(path)
        if key not in self._read:
            with in_file(path):
                self._read[key] = _source(path)
        return self._read[key]

    def open_named(self, name: str, bases: Sequence[Path], place: Place) -> DagmanFile:
        """The file that a line of another names."""
        places = [base / name for base in bases]
        path = next((p for p in places if is_there(p)), places[0])
        if not is_there(path):
            problem = f"the file {shown(name)} cannot be read: there is no {printable(path)}"
            raise place.wrong(problem)
        return self.open(path)


def is_there(path: Path) -> bool:
    """Whether there is such a file."""
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name that is too long
        return False


def _source(path: Path) -> DagmanFile:
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except ValueError:  # a zero byte in the path
        raise InputError("this is not a path") from None
    except FileNotFoundError:
        raise InputError("cannot read it: there is no such file or directory") from None
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise InputError(f"cannot read it: {reason}") from None
    if len(raw) > MAX_BYTES:
        raise InputError(f"the file is too large: more than {MAX_BYTES:,} bytes")
    # DAGMan does not ask for UTF-8; a comment in another code is as good
    text = raw.removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogateescape")
    return DagmanFile(path, raw, statements(text))


MOST_JOBS = 2_000_000
MOST_ARCS = 50_000_000


class Node(NamedTuple):
    """A job: its name in full, what it is (JOB, SUBDAG, FINAL, ...) and its submit file, if any.

    A SUBDAG whose jobs stand beside it is OPENED, and a FINAL job of it is a SUBFINAL.
    """

    name: str
    kind: str
    submit: str

    @property
    def is_job(self) -> bool:
        """Whether it is run in its turn: FINAL, PROVISIONER and SERVICE are not."""
        return self.kind in ("JOB", "SUBDAG", "SUBFINAL")

    @property
    def may_have_priority(self) -> bool:
        """Whether PRIORITY can be said of it."""
        return self.kind in ("JOB", "SUBDAG", "OPENED")


@dataclass(eq=False)
class Scope:
    """A file and what it includes, where names are without a prefix; a splice is another."""

    source: DagmanFile
    prefix: str = ""
    bases: tuple[Path, ...] = ()  # where the files that it names are looked for
    nodes: dict[str, int] = field(default_factory=dict)  # by the name without the prefix
    jobs: dict[str, int] = field(default_factory=dict)  # those that are run in their turn
    splices: dict[str, Scope] = field(default_factory=dict)
    descriptions: dict[str, str] = field(default_factory=dict)  # of jobs, by their names
    included: list[DagmanFile] = field(default_factory=list)
    initial: list[int] = field(default_factory=list)  # jobs without parents, when it was read
    terminal: list[int] = field(default_factory=list)
    pins_in: dict[int, list[int]] = field(default_factory=dict)
    pins_out: dict[int, list[int]] = field(default_factory=dict)


@dataclass(eq=False)
class DagmanDag:
    """A DAGMan file with all its splices, each node by its index in the order of the files."""

    nodes: list[Node] = field(default_factory=list)
    scopes: list[Scope] = field(default_factory=list)  # the file's own first
    retries: dict[int, int] = field(default_factory=dict)
    categories: dict[int, str] = field(default_factory=dict)
    done: set[int] = field(default_factory=set)
    priorities: dict[int, tuple[int, Place]] = field(default_factory=dict)  # by PRIORITY
    macros: dict[int, Place] = field(default_factory=dict)  # a priority by VARS
    requests: dict[int, Request] = field(default_factory=dict)  # by submit descriptions
    notes: dict[str, None] = field(default_factory=dict)  # what was not, or else was, read
    opened: dict[int, int] = field(default_factory=dict)  # a node inside a SUBDAG -> that node
    parents: IntArray = field(default_factory=lambda: np.zeros(0, np.int32))
    children: IntArray = field(default_factory=lambda: np.zeros(0, np.int32))

    def waiting(self) -> list[int]:
        """The jobs that are run in their turn and are not done, in the order of the files."""
        return [i for i, node in enumerate(self.nodes) if node.is_job and i not in self.done]


class Arcs:
    """Arcs as they are read: every parent of a line is one of every child of it."""

    def __init__(self) -> None:
        self._parents, self._children = array("i"), array("i")
        self._places: list[Place] = []
        self._counts: list[int] = []  # arcs by place
        self._has_parent: set[int] = set()
        self._has_child: set[int] = set()

    def add(self, parents: Sequence[int], children: Sequence[int], place: Place) -> None:
        """All arcs of one line."""
        above = list(dict.fromkeys(parents)) if len(parents) > 1 else parents
        below = list(dict.fromkeys(children)) if len(children) > 1 else children
        if len(self._parents) + len(above) * len(below) > MOST_ARCS:
            problem = f"these are more than {MOST_ARCS:,} arcs; a NOOP job in between saves most"
            raise place.wrong(problem)
        for parent in above:
            self._parents.extend([parent] * len(below))
            self._children.extend(below)
        self._places.append(place)
        self._counts.append(len(above) * len(below))
        self._has_parent.update(below)
        self._has_child.update(above)

    def note_ends(self, scope: Scope, first: int, last: int) -> None:
        """Note which of the nodes from first to last have no parents, and which no children."""
        scope.initial = [i for i in range(first, last) if i not in self._has_parent]
        scope.terminal = [i for i in range(first, last) if i not in self._has_child]

    def arrays(self, nodes: list[Node]) -> tuple[IntArray, IntArray]:
        """Parents and children, each arc once, in the order of the lines; a cycle is an error."""
        parents = np.array(self._parents, np.int32)
        children = np.array(self._children, np.int32)
        _, kept = np.unique(parents.astype(np.int64) * len(nodes) + children, return_index=True)
        kept.sort()
        parents, children = parents[kept], children[kept]
        _, cycle = topological_order(parents, children, len(nodes))
        if cycle:
            lines = np.repeat(np.arange(len(self._counts)), self._counts)[kept]
            arcs = enumerate(zip(parents.tolist(), children.tolist(), strict=True))
            number = {arc: k for k, arc in arcs}
            last = max(lines[number[arc]] for arc in pairwise([*cycle, cycle[0]]))
            problem = cycle_error("jobs", [nodes[i].name for i in cycle]).problem
            raise self._places[last].wrong(problem)
        return parents, children
