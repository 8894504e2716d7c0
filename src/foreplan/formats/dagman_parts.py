"""What completes a DAGMan file: the rescue file of a run that failed, and the DAGs of its SUBDAGs.

DAGMan takes the newest rescue file, `x.dag.rescue002`, when `x.dag` is submitted again; so does
foreplan. It says which nodes are DONE, and how often others may be tried again.

A SUBDAG EXTERNAL is a DAG of its own, with a rescue file of its own; its jobs are called
`SUBDAG+JOB` here. They wait for what the SUBDAG waits for, and what waits for it waits for all of
them, the sub-DAG's FINAL job last. DAGMan reads the file only when the SUBDAG's turn comes: if it
is not there yet, or nothing in it is left to do, the SUBDAG stays one task.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from foreplan.arrays import IntArray
from foreplan.errors import unknown_name
from foreplan.files import printable
from foreplan.formats.dagman_dag import (
    MOST_ARCS,
    MOST_JOBS,
    DagmanDag,
    DagmanFile,
    Node,
    Place,
)
from foreplan.formats.dagman_syntax import spelt
from foreplan.formats.fields import shown
from foreplan.quantities import many

_RESCUE = re.compile(r"(?P<dag>.+)\.rescue(?P<number>[0-9]{3})", re.DOTALL)
_LONGEST = 80  # of a name in a message


def rescued_file(path: Path) -> Path | None:
    """The DAGMan file that a rescue file is of, by their names."""
    found = _RESCUE.fullmatch(path.name)
    return path.with_name(found["dag"]) if found else None


def newest_rescue(path: Path) -> Path | None:
    """The rescue file that DAGMan would take with a file."""
    try:
        beside = [entry for entry in path.parent.iterdir() if rescued_file(entry) == path]
    except (OSError, ValueError):
        return None
    return max(beside, default=None, key=lambda entry: entry.name)


def is_whole(file: DagmanFile) -> bool:
    """Whether a rescue file is a DAG by itself, as DAGMan wrote them once."""
    return any(s.command not in ("DONE", "RETRY") for s in file.statements)


def apply_rescue(dag: DagmanDag, rescue: DagmanFile) -> None:
    """Note what a rescue file says of the nodes of a DAG, whose SUBDAGs are not opened yet."""
    nodes = {node.name: i for i, node in enumerate(dag.nodes)}
    before = len(dag.done)
    for line, _, command, words in rescue.statements:
        place = Place(rescue, line)
        if command not in ("DONE", "RETRY"):
            problem = (
                f"{spelt(command) or shown(words[0])} cannot stand in a rescue file beside its DAG"
            )
            raise place.wrong(f"{problem}: if it is a whole DAG, name it instead of the other")
        job = words[0]
        if job not in nodes:
            known = [name for name in nodes if len(name) <= _LONGEST]
            raise place.wrong(unknown_name("job", job[:_LONGEST], known))
        if command == "RETRY":
            dag.retries[nodes[job]] = int(words[1])
        else:
            dag.done.add(nodes[job])
    assert rescue.path is not None
    done = many(len(dag.done) - before, "job")
    dag.notes[f"{printable(rescue.path)} is read: {done} done"] = None


def open_subdags(dag: DagmanDag, inner: Mapping[int, tuple[Place, DagmanDag]]) -> None:
    """Put the jobs of sub-DAGs, by the node of each, in the place of these."""
    first: dict[int, IntArray] = {}
    last: dict[int, IntArray] = {}
    tails, heads = [], []
    for node, (place, other) in inner.items():
        offset = len(dag.nodes)
        dag.nodes[node] = dag.nodes[node]._replace(kind="OPENED")
        _take_over(dag, other, node)
        if len(dag.nodes) > MOST_JOBS:
            raise place.wrong(f"there are more than {MOST_JOBS:,} jobs")
        ends = _ends(other)
        first[node], last[node] = ends[0] + offset, ends[1] + offset
        tails.append(other.parents + offset)
        heads.append(other.children + offset)
    parents, children = _replaced(dag.parents, dag.children, last, inner)
    children, parents = _replaced(children, parents, first, inner)
    dag.parents = np.concatenate([parents, *tails]).astype(np.int32)
    dag.children = np.concatenate([children, *heads]).astype(np.int32)


def _replaced(
    ends: IntArray,
    others: IntArray,
    jobs: Mapping[int, IntArray],
    inner: Mapping[int, tuple[Place, DagmanDag]],
) -> tuple[IntArray, IntArray]:
    """Arcs with one end at SUBDAGs, which now is at each of their first or last jobs."""
    counts = np.ones(len(ends), np.int64)
    for node, those in jobs.items():
        counts[ends == node] = len(those)
        if counts.sum() > MOST_ARCS:
            raise inner[node][0].wrong(f"these are more than {MOST_ARCS:,} arcs")
    spread = [jobs[end] for end in ends.tolist() if end in jobs]
    is_subdag = np.isin(ends, list(jobs))
    new = np.repeat(ends, counts)
    if spread:
        new[np.repeat(is_subdag, counts)] = np.concatenate(spread)
    return new, np.repeat(others, counts)


def _take_over(dag: DagmanDag, other: DagmanDag, node: int) -> None:
    """Add the nodes of a sub-DAG, and what is said of them."""
    offset, prefix = len(dag.nodes), dag.nodes[node].name + "+"
    for own in other.nodes:
        kind = "SUBFINAL" if own.kind == "FINAL" else own.kind
        dag.nodes.append(Node(prefix + own.name, kind, own.submit))
    dag.retries |= {i + offset: value for i, value in other.retries.items()}
    dag.categories |= {i + offset: value for i, value in other.categories.items()}
    dag.priorities |= {i + offset: value for i, value in other.priorities.items()}
    dag.macros |= {i + offset: value for i, value in other.macros.items()}
    dag.requests |= {i + offset: value for i, value in other.requests.items()}
    dag.done |= {i + offset for i in other.done}
    dag.opened |= {i + offset: node for i in range(len(other.nodes)) if i not in other.opened}
    dag.opened |= {i + offset: above + offset for i, above in other.opened.items()}
    dag.notes |= other.notes
    for scope in other.scopes:
        scope.prefix = prefix + scope.prefix
        for names in (scope.nodes, scope.jobs):
            names.update({name: i + offset for name, i in names.items()})
        dag.scopes.append(scope)


def _ends(dag: DagmanDag) -> tuple[IntArray, IntArray]:
    """The jobs of a sub-DAG that wait for no other of it, and those that none waits for."""
    left = np.zeros(len(dag.nodes), np.bool_)
    left[dag.waiting()] = True
    last = [i for i, node in enumerate(dag.nodes) if node.kind == "FINAL"]
    left[last] = True
    for final in last:  # which waits for all others
        others = np.flatnonzero(left & (np.arange(len(left)) != final)).astype(np.int32)
        dag.parents = np.concatenate([dag.parents, others])
        dag.children = np.concatenate([dag.children, np.full(len(others), final, np.int32)])
    arcs = left[dag.parents] & left[dag.children]
    jobs = np.flatnonzero(left).astype(np.int32)
    return (
        np.setdiff1d(jobs, dag.children[arcs]).astype(np.int32),
        np.setdiff1d(jobs, dag.parents[arcs]).astype(np.int32),
    )
