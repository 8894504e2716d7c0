"""The language of HTCondor's DAGMan: jobs, what each waits for, and files within files.

A job becomes a task, called as in DAGMan (`SPLICE+JOB` inside a splice, `SUBDAG+JOB` inside a
SUBDAG EXTERNAL), and a dependency an edge without data. What a task costs is not said. RETRY gives
its retries, and its category is that of CATEGORY, else the name of its submit file. A FINAL job is
a task that waits for all others. A PROVISIONER and a SERVICE run beside the others, and a job that
is DONE does not run at all: none is a task, and nobody waits for them.

What a job asks for is in its submit description, if that is inline or the file is there: plain
numbers of request_cpus, request_memory and request_gpus. Scripts, macros and what DAGMan is to
write are checked and left out.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from foreplan.errors import InputError, unknown_name
from foreplan.files import in_file
from foreplan.formats.dagman_dag import (
    MOST_JOBS,
    Arcs,
    DagmanDag,
    DagmanFile,
    Files,
    Node,
    Place,
    Scope,
    is_there,
    text_source,
)
from foreplan.formats.dagman_parts import (
    apply_rescue,
    is_whole,
    newest_rescue,
    open_subdags,
    rescued_file,
)
from foreplan.formats.dagman_submit import Said, read_submit, read_submit_file
from foreplan.formats.dagman_syntax import (
    NODES,
    PRIORITY_MACRO,
    WEAK_PARENT,
    spelt,
    unsupported_command,
)
from foreplan.formats.fields import shown
from foreplan.garbage import no_collection
from foreplan.model import TaskSpec, Workflow

LINKS = frozenset({"PARENT", WEAK_PARENT, "CONNECT", "PIN_IN", "PIN_OUT"})
_LONGEST = 80  # of a name in a message


class DagmanLinks:
    """Turns the statements of a scope into arcs."""

    def __init__(self, nodes: list[Node], arcs: Arcs) -> None:
        self._nodes, self._arcs = nodes, arcs

    def add(self, command: str, scope: Scope, place: Place, words: list[str]) -> None:
        """The arcs, or the pins, of one statement."""
        if command in ("PARENT", WEAK_PARENT):
            self._add_parents(scope, place, words)
        elif command == "CONNECT":
            self._connect(scope, place, words)
        else:
            pins = scope.pins_in if command == "PIN_IN" else scope.pins_out
            node = node_called(words[0], scope, place)
            pins.setdefault(int(words[1]), []).append(node)

    def _add_parents(self, scope: Scope, place: Place, words: list[str]) -> None:
        at = words.index("")
        above, below = words[:at], words[at + 1 :]
        jobs = scope.jobs
        try:
            self._arcs.add([jobs[job] for job in above], [jobs[job] for job in below], place)
        except KeyError:  # a splice, or a mistake
            self._arcs.add(
                [i for name in above for i in self._ends(name, scope, place, last=True)],
                [i for name in below for i in self._ends(name, scope, place, last=False)],
                place,
            )

    def _ends(self, name: str, scope: Scope, place: Place, last: bool) -> list[int]:
        """The job of that name, or the last or first jobs of the splice."""
        if name in scope.splices:
            splice = scope.splices[name]
            ends = splice.terminal if last else splice.initial
            jobs = [i for i in ends if self._nodes[i].is_job]
            if not jobs:
                raise place.wrong(f"the splice {shown(name)} has no jobs")
            return jobs
        found = node_called(name, scope, place)
        node = self._nodes[found]
        if not node.is_job:
            problem = f"{shown(name)} has no place among the others: it is a {node.kind} job"
            raise place.wrong(problem)
        return [found]

    def _connect(self, scope: Scope, place: Place, words: list[str]) -> None:
        for name in words:
            if name not in scope.splices:
                raise place.wrong(unknown_name("splice", name[:_LONGEST], scope.splices))
        above, below = (scope.splices[name] for name in words)
        for name, pins, command in (
            (words[0], above.pins_out, "PIN_OUT"),
            (words[1], below.pins_in, "PIN_IN"),
        ):
            if not pins or max(pins) != len(pins):
                problem = f"the {command}s of the splice {shown(name)} must be 1, 2, 3, ..."
                raise place.wrong(f"{problem} without a gap, but are {shown(sorted(pins))}")
        if len(above.pins_out) != len(below.pins_in):
            problem = f"{len(above.pins_out)} PIN_OUTs and {len(below.pins_in)} PIN_INs"
            raise place.wrong(f"the splices do not match: there are {problem}")
        pinned = {node for nodes in below.pins_in.values() for node in nodes}
        for node in below.initial:
            if node not in pinned and self._nodes[node].is_job:
                name = self._nodes[node].name
                raise place.wrong(f"the job {shown(name)} has neither a parent nor a PIN_IN")
        for pin, parents in above.pins_out.items():
            self._arcs.add(parents, below.pins_in[pin], place)


def node_called(name: str, scope: Scope, place: Place) -> int:
    """The index of a job that a scope names."""
    found = scope.nodes.get(name)
    if found is None:
        raise place.wrong(_unknown(name, scope))
    return found


def _unknown(name: str, scope: Scope) -> str:
    if name in scope.splices:
        return f"{shown(name)} is a splice: this can only be said of a job"
    if name.split("+")[0] in scope.splices and "+" in name:
        file = scope.splices[name.split("+")[0]].source.path
        return f"{shown(name)} is inside a splice: only {file}, its own file, can name it"
    known = [k for k in scope.nodes if len(k) <= _LONGEST]
    return unknown_name("job", name[:_LONGEST], known)


# Reading a DAGMan file: the jobs of all files first, then what is said of them.
#
# INCLUDE is read as if the other file stood there. A splice is a scope of its own: its jobs are
# called `SPLICE+JOB` elsewhere, and only its own file can say anything of them. As the parent of
# others it stands for its jobs without children, as a child for those without parents.

_DEEPEST = 100  # splices and includes inside each other
_MOST_FILES = 1_000_000  # a file counts as often as it is named
_OF_A_JOB = frozenset(
    {"RETRY", "ABORT_DAG_ON", "PRIORITY", "CATEGORY", "PRE_SKIP", "DONE", "VARS", "SCRIPT"}
    | {"SAVE_POINT_FILE", "TOLERANCE"}
)
_NOT_ALL = frozenset({"DONE", "SAVE_POINT_FILE"})  # ALL_NODES is no job to these
# what cannot be said of the nodes that are not run in their turn
_BARRED = {
    "FINAL": frozenset({"RETRY", "ABORT_DAG_ON", "PRIORITY", "CATEGORY", "DONE"}),
    "SERVICE": frozenset({"RETRY", "PRIORITY", "CATEGORY", "DONE", "SAVE_POINT_FILE"}),
    "PROVISIONER": frozenset({"SAVE_POINT_FILE"}),
}


class Reader:
    """Reads one file, and the files that it names, into a dag.

    For a workflow, submit files are read as well, and a command that is unknown, or that a
    workflow cannot follow, is an error.
    """

    def __init__(self, files: Files | None, for_workflow: bool = False) -> None:
        self.dag = DagmanDag()
        self._submits: dict[object, Said] | None = {} if for_workflow else None  # by file
        self._files, self._arcs = files, Arcs()
        self._links = DagmanLinks(self.dag.nodes, self._arcs)
        self._subdags: list[tuple[int, Place, str, tuple[Path, ...]]] = []  # node, line, file

    def read(
        self,
        source: DagmanFile,
        rescue: Path | None = None,
        bases: tuple[Path, ...] = (),
        within: tuple[DagmanFile, ...] = (),
    ) -> DagmanDag:
        """The whole dag, less what is done by a rescue file: the newest, unless another is told."""
        if self._files is not None:
            bases = bases or self._files.bases
        self._read_scope(Scope(source, "", bases), (*within, source))
        self.dag.parents, self.dag.children = self._arcs.arrays(self.dag.nodes)
        if self._files is not None and source.path is not None:
            rescue = rescue or newest_rescue(source.path)
            if rescue is not None:
                apply_rescue(self.dag, self._files.open(rescue))
            self._open_subdags((*within, source))
        return self.dag

    def _open_subdags(self, within: tuple[DagmanFile, ...]) -> None:
        """Read the DAGs of SUBDAGs that are not done, where they are there already."""
        assert self._files is not None
        inner: dict[int, tuple[Place, DagmanDag]] = {}
        for node, place, file, bases in self._subdags:
            if node in self.dag.done:
                continue
            name = self.dag.nodes[node].name
            if not any(is_there(base / file) for base in bases):
                note = f"the SUBDAG {shown(name)} is one task: its file {shown(file)} is not there"
                self.dag.notes[note] = None
                continue
            other = self._open_other(file, bases, place, within)
            reader = Reader(self._files, self._submits is not None)
            dag = reader.read(other, None, bases, within)
            if dag.waiting():
                inner[node] = place, dag
        if inner:
            open_subdags(self.dag, inner)

    def _read_scope(self, scope: Scope, within: tuple[DagmanFile, ...]) -> Scope:
        nodes = self.dag.nodes
        self.dag.scopes.append(scope)
        first = len(nodes)
        said = list(self._flatten(scope, scope.source, within))
        for _, command, words in said:
            if command == "SUBMIT_DESCRIPTION":
                scope.descriptions[words[0]] = words[1]
        for place, command, words in said:
            if command in NODES:
                self._add_node(scope, place, command, words)
            elif command == "SPLICE":
                self._add_splice(scope, place, words, within)
        for place, command, words in said:
            if command in LINKS:
                self._links.add(command, scope, place, words)
            elif command in _OF_A_JOB:
                self._note_of_a_job(scope, place, command, words)
        if scope.prefix:
            self._arcs.note_ends(scope, first, len(nodes))
        return scope

    def _flatten(
        self, scope: Scope, source: DagmanFile, within: tuple[DagmanFile, ...]
    ) -> Iterator[tuple[Place, str, list[str]]]:
        """The statements of a file, with those of the files that it includes in their place."""
        for line, _, command, words in source.statements:
            place = Place(source, line)
            if self._submits is not None and (problem := unsupported_command(command, words)):
                raise place.wrong(problem)
            if command != "INCLUDE":
                yield place, command, words
                continue
            other = self._open_other(words[0], scope.bases, place, within)
            scope.included.append(other)
            yield from self._flatten(scope, other, (*within, other))

    def _open_other(
        self, name: str, bases: tuple[Path, ...], place: Place, within: tuple[DagmanFile, ...]
    ) -> DagmanFile:
        """A file that a statement names, which must not be one that we are in."""
        if self._files is None:
            raise place.wrong("a text alone cannot name other files: load it from a file")
        other = self._files.open_named(name, bases, place)
        if other in within:
            raise place.wrong(f"the file {shown(name)} is part of itself")
        self._files.n_named += 1
        if len(within) > _DEEPEST or self._files.n_named > _MOST_FILES:
            most = f"{_DEEPEST} files can be inside each other, and {_MOST_FILES:,} in all"
            raise place.wrong(f"at most {most}")
        return other

    def _add_node(self, scope: Scope, place: Place, kind: str, words: list[str]) -> None:
        name, submit, done, *more = words
        _check_new(scope, place, name)
        if kind == "FINAL" and scope.prefix:
            raise place.wrong("a splice cannot have a FINAL job")
        nodes = self.dag.nodes
        if kind in ("FINAL", "PROVISIONER") and any(node.kind == kind for node in nodes):
            raise place.wrong(f"there is a {kind} job already")
        if len(nodes) >= MOST_JOBS:
            raise place.wrong(f"there are more than {MOST_JOBS:,} jobs")
        if done:
            self.dag.done.add(len(nodes))
        if kind == "SUBDAG":
            bases = tuple(base / "".join(more[:1]) for base in scope.bases)
            self._subdags.append((len(nodes), place, submit, bases))
        elif self._submits is not None:
            self._note_request(scope, submit, *more)
        scope.nodes[name] = len(nodes)
        nodes.append(node := Node(scope.prefix + name, kind, submit))
        if node.is_job:
            scope.jobs[name] = scope.nodes[name]

    def _note_request(
        self, scope: Scope, submit: str, directory: str = "", inline: str = ""
    ) -> None:
        """Keep what the description of the next node asks for."""
        said: Said = (None, ())
        if inline or submit in scope.descriptions:
            said = read_submit(inline or scope.descriptions[submit])
        elif self._files is not None and submit:
            assert self._submits is not None
            key = (scope.bases, directory, submit)  # thousands of jobs may share a file
            if key not in self._submits:
                places = [base / directory / submit for base in scope.bases]
                path = next((p for p in places if is_there(p)), places[0])
                self._submits[key] = read_submit_file(path)
            said = self._submits[key]
        request, notes = said
        if request is not None:
            self.dag.requests[len(self.dag.nodes)] = request
        self.dag.notes |= dict.fromkeys(f"{submit}: {note}".lstrip(": ") for note in notes)

    def _add_splice(
        self, scope: Scope, place: Place, words: list[str], within: tuple[DagmanFile, ...]
    ) -> None:
        name, file, *directory = words
        _check_new(scope, place, name)
        if "+" in name:
            problem = f"a splice cannot be called {shown(name)}: '+' stands after its name"
            raise place.wrong(problem)
        bases = tuple(base.joinpath(*directory[1:]) for base in scope.bases)
        other = self._open_other(file, bases, place, within)
        inner = Scope(other, f"{scope.prefix}{name}+", bases)
        scope.splices[name] = self._read_scope(inner, (*within, other))

    def _note_of_a_job(self, scope: Scope, place: Place, command: str, words: list[str]) -> None:
        job = words[0]
        if job.upper() == "ALL_NODES" and command not in _NOT_ALL:
            barred = [kind for kind, commands in _BARRED.items() if command in commands]
            kinds = {"FINAL", *barred}
            nodes = [i for i in scope.nodes.values() if self.dag.nodes[i].kind not in kinds]
        else:
            nodes = [node_called(job, scope, place)]
            kind = self.dag.nodes[nodes[0]].kind
            if kind != "JOB" and command in _BARRED.get(kind, ()):
                problem = f"{spelt(command)} cannot be said of {shown(job)}: it is a {kind} job"
                raise place.wrong(problem)
        self._note(command, nodes, words, place)

    def _note(self, command: str, nodes: list[int], words: list[str], place: Place) -> None:
        """Keep what matters here of a statement about jobs; the last one holds."""
        dag = self.dag
        if command == "RETRY":
            dag.retries.update(dict.fromkeys(nodes, int(words[1])))
        elif command == "CATEGORY":
            dag.categories.update(dict.fromkeys(nodes, words[1]))
        elif command == "DONE":
            dag.done.update(nodes)
        elif command == "PRIORITY":
            dag.priorities.update(dict.fromkeys(nodes, (int(words[1]), place)))
        elif command == "VARS" and PRIORITY_MACRO in words[1:]:
            dag.macros.update(dict.fromkeys(nodes, place))


def _check_new(scope: Scope, place: Place, name: str) -> None:
    """No other job or splice has the name."""
    if name in scope.nodes or name in scope.splices:
        kind = "job" if name in scope.nodes else "splice"
        raise place.wrong(f"there is a {kind} {shown(name)} already")


def read_dag(path: str | os.PathLike[str], *, for_workflow: bool = False) -> DagmanDag:
    """Read a DAGMan file and the files that it names, to prioritize it or to make a workflow of it.

    The path of a rescue file means the DAG that it is of, from there on.
    """
    file = Path(path)
    with in_file(file), no_collection():
        files, rescue = Files(file), None
        source, rescued = files.open(file), rescued_file(file)
        if rescued is not None and not is_whole(source):  # it is read with its DAG
            source, rescue = files.open(rescued), file
        return Reader(files, for_workflow).read(source, rescue)


def load_dagman(path: str | os.PathLike[str]) -> Workflow:
    """A workflow from a DAGMan file and the files that it names."""
    file = Path(path)
    with in_file(file):
        return dag_workflow(read_dag(file, for_workflow=True), (rescued_file(file) or file).stem)


def parse_dagman(text: str, name: str = "") -> Workflow:
    """A workflow from the text of a DAGMan file that names no other."""
    return dag_workflow(Reader(None, for_workflow=True).read(text_source(text)), name)


def dag_workflow(dag: DagmanDag, name: str = "", *, final: bool = True) -> Workflow:
    """The jobs that are still to run as a workflow, with or without the FINAL one."""
    tasks = dag.waiting()
    last = [i for i, node in enumerate(dag.nodes) if node.kind == "FINAL" and final]
    if not tasks and not last:
        raise InputError("every job is done already" if dag.done else "the file has no jobs")
    index = np.full(len(dag.nodes), -1, np.int32)
    index[tasks + last] = np.arange(len(tasks + last), dtype=np.int32)
    parents, children = index[dag.parents], index[dag.children]
    both = (parents >= 0) & (children >= 0)
    parents, children = parents[both], children[both]
    for task in index[last].tolist():
        ends = np.setdiff1d(index[tasks], parents).astype(np.int32)
        parents = np.concatenate([parents, ends])
        children = np.concatenate([children, np.full(len(ends), task, np.int32)])
    return Workflow.from_edges(
        name,
        [dag.nodes[i].name for i in tasks + last],
        parents,
        children,
        np.zeros(len(parents)),
        specs={task: _spec(dag, node) for task, node in enumerate(tasks + last)},
        notes=tuple(dag.notes),
    )


def _spec(dag: DagmanDag, node: int) -> TaskSpec:
    # a category with a + is shared by all splices; here all are
    category = dag.categories.get(node, "").lstrip("+") or dag.nodes[node].submit
    return TaskSpec(
        category=category or None,
        retries=dag.retries.get(node),
        request=dag.requests.get(node),
    )
