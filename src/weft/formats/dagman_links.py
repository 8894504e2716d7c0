"""How the jobs of a DAGMan file depend on each other: PARENT..CHILD, and pins of splices."""

from __future__ import annotations

from weft.errors import unknown_name
from weft.formats.dagman_dag import Arcs, Node, Place, Scope
from weft.formats.fields import shown

LINKS = frozenset({"PARENT", "CONNECT", "PIN_IN", "PIN_OUT"})
_LONGEST = 80  # of a name in a message


class Links:
    """Turns the statements of a scope into arcs."""

    def __init__(self, nodes: list[Node], arcs: Arcs) -> None:
        self._nodes, self._arcs = nodes, arcs

    def add(self, command: str, scope: Scope, place: Place, words: list[str]) -> None:
        """The arcs, or the pins, of one statement."""
        if command == "PARENT":
            self._parent(scope, place, words)
        elif command == "CONNECT":
            self._connect(scope, place, words)
        else:
            pins = scope.pins_in if command == "PIN_IN" else scope.pins_out
            node = node_called(words[0], scope, place)
            pins.setdefault(int(words[1]), []).append(node)

    def _parent(self, scope: Scope, place: Place, words: list[str]) -> None:
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
