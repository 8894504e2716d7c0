"""Reading a DAGMan file: the jobs of all files first, then what is said of them.

INCLUDE is read as if the other file stood there. A splice is a scope of its own: its jobs are
called `SPLICE+JOB` elsewhere, and only its own file can say anything of them. As the parent of
others it stands for its jobs without children, as a child for those without parents.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from weft.formats.dagman_dag import MOST_JOBS, Arcs, Dag, Node, Place, Scope
from weft.formats.dagman_files import Files, Source
from weft.formats.dagman_links import LINKS, Links, node_called
from weft.formats.dagman_syntax import NODES, PRIORITY_MACRO, Statement, spelt
from weft.formats.fields import shown

_DEEPEST = 100  # splices and includes inside each other
_MOST_FILES = 1_000_000  # a file counts as often as it is named
_OF_A_JOB = frozenset(
    {"RETRY", "ABORT_DAG_ON", "PRIORITY", "CATEGORY", "PRE_SKIP", "DONE", "VARS", "SCRIPT"}
    | {"SAVE_POINT_FILE"}
)
_NOT_ALL = frozenset({"DONE", "SAVE_POINT_FILE"})  # ALL_NODES is no job to these
# what cannot be said of the nodes that are not run in their turn
_BARRED = {
    "FINAL": frozenset({"RETRY", "ABORT_DAG_ON", "PRIORITY", "CATEGORY", "DONE"}),
    "SERVICE": frozenset({"RETRY", "PRIORITY", "CATEGORY", "DONE", "SAVE_POINT_FILE"}),
    "PROVISIONER": frozenset({"SAVE_POINT_FILE"}),
}

_Said = tuple[Source, Statement]


class Reader:
    """Reads one file, and the files that it names, into a dag."""

    def __init__(self, files: Files | None) -> None:
        self.dag = Dag()
        self._files, self._arcs, self._named = files, Arcs(), 0
        self._links = Links(self.dag.nodes, self._arcs)

    def read(self, source: Source) -> Dag:
        """The whole dag."""
        bases = self._files.bases if self._files else ()
        self._scope(source, "", bases, (source,))
        self.dag.parents, self.dag.children = self._arcs.arrays(self.dag.nodes)
        return self.dag

    def _scope(
        self, source: Source, prefix: str, bases: tuple[Path, ...], within: tuple[Source, ...]
    ) -> Scope:
        scope, nodes = Scope(source, prefix), self.dag.nodes
        self.dag.scopes.append(scope)
        first = len(nodes)
        said = list(self._flat(scope, source, bases, within))
        for at, statement in said:
            command = statement.command
            if command in NODES:
                self._node(scope, at, statement)
            elif command == "SPLICE":
                self._splice(scope, at, statement, bases, within)
        for at, (line, _, command, words) in said:
            if command in LINKS:
                self._links.add(command, scope, Place(at, line), words)
            elif command in _OF_A_JOB:
                self._of_a_job(scope, Place(at, line), command, words)
        if prefix:
            self._arcs.ends(scope, first, len(nodes))
        return scope

    def _flat(
        self, scope: Scope, source: Source, bases: tuple[Path, ...], within: tuple[Source, ...]
    ) -> Iterator[_Said]:
        """The statements of a file, with those of the files that it includes in their place."""
        for statement in source.statements:
            if statement.command != "INCLUDE":
                yield source, statement
                continue
            other = self._other(source, statement, statement.words[0], bases, within)
            scope.included.append(other)
            yield from self._flat(scope, other, bases, (*within, other))

    def _other(
        self,
        source: Source,
        statement: Statement,
        name: str,
        bases: tuple[Path, ...],
        within: tuple[Source, ...],
    ) -> Source:
        """A file that a statement names, which must not be one that we are in."""
        if self._files is None:
            problem = "a text alone cannot name other files: load it from a file"
            raise source.wrong(statement.line, problem)
        other = self._files.named(name, bases, source, statement.line)
        if other in within:
            problem = f"the file {shown(name)} is part of itself"
            raise source.wrong(statement.line, problem)
        self._named += 1
        if len(within) > _DEEPEST or self._named > _MOST_FILES:
            problem = (
                f"at most {_DEEPEST} files can be inside each other, and {_MOST_FILES:,} in all"
            )
            raise source.wrong(statement.line, problem)
        return other

    def _node(self, scope: Scope, source: Source, statement: Statement) -> None:
        (name, submit, done), kind = statement.words, statement.command
        _check_new(scope, source, statement, name)
        if kind == "FINAL" and scope.prefix:
            raise source.wrong(statement.line, "a splice cannot have a FINAL job")
        nodes = self.dag.nodes
        if kind in ("FINAL", "PROVISIONER") and any(node.kind == kind for node in nodes):
            raise source.wrong(statement.line, f"there is a {kind} job already")
        if len(nodes) >= MOST_JOBS:
            raise source.wrong(statement.line, f"there are more than {MOST_JOBS:,} jobs")
        if done:
            self.dag.done.add(len(nodes))
        scope.nodes[name] = len(nodes)
        nodes.append(node := Node(scope.prefix + name, kind, submit))
        if node.is_job:
            scope.jobs[name] = scope.nodes[name]

    def _splice(
        self,
        scope: Scope,
        source: Source,
        statement: Statement,
        bases: tuple[Path, ...],
        within: tuple[Source, ...],
    ) -> None:
        name, file, *directory = statement.words
        _check_new(scope, source, statement, name)
        if "+" in name:
            problem = f"a splice cannot be called {shown(name)}: '+' stands after its name"
            raise source.wrong(statement.line, problem)
        if directory:
            bases = tuple(base / directory[1] for base in bases)
        other = self._other(source, statement, file, bases, within)
        prefix = f"{scope.prefix}{name}+"
        scope.splices[name] = self._scope(other, prefix, bases, (*within, other))

    def _of_a_job(self, scope: Scope, place: Place, command: str, words: list[str]) -> None:
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


def _check_new(scope: Scope, source: Source, statement: Statement, name: str) -> None:
    """No other job or splice has the name."""
    if name in scope.nodes or name in scope.splices:
        kind = "job" if name in scope.nodes else "splice"
        raise source.wrong(statement.line, f"there is a {kind} {shown(name)} already")
