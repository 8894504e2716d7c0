"""IC-optimal orders of building blocks, by their family or by search; and of small dags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from foreplan.arrays import IntArray, sealed
from foreplan.ic.blocks import OTHER, BlockProfile, Parsing
from foreplan.ic.dag import Dag

MOST_GROUPS = 16  # groups of like sources in a block: 2^16 sets are looked at
MOST_STEPS = 200_000  # between sets of executed vertices of a small dag


@dataclass(frozen=True)
class SearchResult:
    """What a search found: an order, or that there is none, or that it would take too long."""

    order: tuple[int, ...] | None
    exhausted: bool  # every possibility was looked at, so that no order means there is none
    step: int = 0  # the first that cannot be IC-optimal if all before are, where there is none


def block_order(children: Sequence[Sequence[int]]) -> SearchResult:
    """An IC-optimal order of the sources 0 .. s-1 of a bipartite block, given their sinks.

    Sources with the same sinks are executed together: a part of them completes nothing.
    """
    groups: dict[frozenset[int], list[int]] = {}
    for source, sinks in enumerate(children):
        groups.setdefault(frozenset(sinks), []).append(source)
    if len(groups) > MOST_GROUPS:
        return SearchResult(None, exhausted=False)
    members = list(groups.values())
    completed = _completed(list(groups))
    size = _sums([len(group) for group in members])
    best = np.zeros(len(children) + 1, dtype=np.int64)  # the most sinks that k sources complete
    np.maximum.at(best, size, completed)
    best = np.maximum.accumulate(best)
    chain = _chain(members, completed, size, best)
    if chain is None:
        return SearchResult(None, exhausted=True)
    return SearchResult(
        tuple(source for group in chain for source in members[group]), exhausted=True
    )


def _completed(sinks_of: list[frozenset[int]]) -> npt.NDArray[np.int64]:
    """For every set of groups, as bits, the number of sinks all of whose parents are in it."""
    parents: dict[int, int] = {}
    for group, sinks in enumerate(sinks_of):
        for sink in sinks:
            parents[sink] = parents.get(sink, 0) | 1 << group
    count = np.zeros(1 << len(sinks_of), dtype=np.int64)
    np.add.at(count, list(parents.values()), 1)
    for group in range(len(sinks_of)):  # sums over subsets, one bit at a time
        halves = count.reshape(-1, 2, 1 << group)
        halves[:, 1] += halves[:, 0]
    return count


def _sums(sizes: list[int]) -> npt.NDArray[np.int64]:
    """For every set of groups, as bits, the sum of their sizes."""
    sums = np.zeros(1, dtype=np.int64)
    for size in sizes:
        sums = np.concatenate([sums, sums + size])
    return sums


def _chain(
    members: list[list[int]],
    completed: npt.NDArray[np.int64],
    size: npt.NDArray[np.int64],
    best: npt.NDArray[np.int64],
) -> list[int] | None:
    """Groups one after the other such that every set on the way completes the most it can."""
    everything = len(completed) - 1
    came_by: dict[int, int] = {0: -1}
    layer = [0]
    while layer and everything not in came_by:
        following: list[int] = []
        for chosen in layer:
            for group in range(len(members)):
                more = chosen | 1 << group
                # until the whole group is executed, the set completes no more than before
                if more not in came_by and completed[chosen] == best[size[more] - 1]:
                    came_by[more] = group
                    following.append(more)
        layer = following
    if everything not in came_by:
        return None
    if completed[everything] != best[-1]:
        raise AssertionError("all sources complete all sinks")
    chain: list[int] = []
    while everything:
        chain.append(came_by[everything])
        everything ^= 1 << chain[-1]
    return chain[::-1]


def dag_order(dag: Dag, most_steps: int = MOST_STEPS) -> SearchResult:
    """An IC-optimal order of a small dag: all sets of nonsinks that can be executed first.

    Sinks come last: to put them off never costs anything, since a vertex takes away one ELIGIBLE
    vertex at most, and a sink always does.
    """
    search = _BitSets(dag)
    # sets of executed vertices, with what they gained and the nonsinks that are ELIGIBLE
    layer = {0: (0, search.sources)}
    reached: dict[int, int] = {0: -1}  # those on an IC-optimal way, with the vertex executed last
    trail = [reached]
    for step in range(1, search.nonsinks.bit_count() + 1):
        following: dict[int, tuple[int, int]] = {}
        for done, (gain, eligible) in layer.items():
            for v in search.choices(done, eligible):
                if done | 1 << v not in following:
                    following[done | 1 << v] = search.after(v, done, gain, eligible)
                most_steps -= 1
            if most_steps < 0:
                return SearchResult(None, exhausted=False)
        most = max(gain for gain, _ in following.values())
        reached = {
            done | 1 << v: v
            for done in reached
            for v in search.choices(done, layer[done][1])
            if following[done | 1 << v][0] == most
        }
        if not reached:
            return SearchResult(None, exhausted=True, step=step)
        trail.append(reached)
        layer = following
    return SearchResult(_back(trail, dag.n), exhausted=True)


class _BitSets:
    """A dag with its sets of vertices as whole numbers, a bit for each vertex."""

    def __init__(self, dag: Dag) -> None:
        self.children = [
            dag.child[dag.child_ptr[v] : dag.child_ptr[v + 1]].tolist() for v in range(dag.n)
        ]
        self.parents = [0] * dag.n
        for v in range(dag.n):
            for c in self.children[v]:
                self.parents[c] |= 1 << v
        self.nonsinks = sum(1 << v for v in range(dag.n) if self.children[v])
        self.sources = sum(1 << v for v in range(dag.n) if self.children[v] and not self.parents[v])
        # of nonsinks with the same parents and children, each waits for the one before
        self.twin = [0] * dag.n
        last: dict[tuple[int, tuple[int, ...]], int] = {}
        for v in range(dag.n):
            alike = self.parents[v], tuple(self.children[v])
            self.twin[v] = 1 << last[alike] if alike in last else 0
            last[alike] = v

    def choices(self, done: int, eligible: int) -> list[int]:
        """The nonsinks that can be executed next, one of each group of twins."""
        chosen: list[int] = []
        while eligible:
            v = (eligible & -eligible).bit_length() - 1
            eligible &= eligible - 1
            if not self.twin[v] & ~done:
                chosen.append(v)
        return chosen

    def after(self, v: int, done: int, gain: int, eligible: int) -> tuple[int, int]:
        """What has been gained once v is executed too, and what is ELIGIBLE then."""
        left = ~(done | 1 << v)
        fresh = [c for c in self.children[v] if not self.parents[c] & left]
        rendered = sum(1 << c for c in fresh) & self.nonsinks
        return gain - 1 + len(fresh), eligible & ~(1 << v) | rendered


def _back(trail: list[dict[int, int]], n: int) -> tuple[int, ...]:
    """The way back through the sets reached, and then all sinks."""
    (done,) = trail[-1]
    sinks = [v for v in range(n) if not done >> v & 1]
    order: list[int] = []
    for reached in reversed(trail[1:]):
        order.append(reached[done])
        done ^= 1 << reached[done]
    return (*order[::-1], *sinks)


MOST_SEARCHING = 1 << 20  # sets looked at over all blocks of a dag
MOST_SOURCES = 2_000  # of a block: its profile is compared in quadratic time


@dataclass(frozen=True, eq=False)
class Scheduled:
    """Blocks by type: those of one type have the same profile.

    `type_of` is -1 for a block that has no IC-optimal order, or none that was found;
    `without` says of some of them that there is none.
    """

    parsing: Parsing
    sources: IntArray  # as in the parsing, but each block's in IC-optimal order
    type_of: IntArray
    profiles: list[BlockProfile]
    names: list[str]
    without: frozenset[int]


def schedule_blocks(parsing: Parsing) -> Scheduled:
    """Give every block an IC-optimal order of its sources, where one can be found."""
    family, s, t = parsing.family, parsing.n_sources, parsing.n_sinks
    looks = np.stack([family, s, t], axis=1)
    _, examples, alike = np.unique(looks, axis=0, return_index=True, return_inverse=True)
    profiles: list[BlockProfile] = []
    names: list[str] = []
    number = np.full(len(examples), -1, dtype=np.int32)
    for i, block in enumerate(examples.tolist()):
        kind = parsing.kind(block)
        if kind is not None:
            number[i] = len(profiles)
            profiles.append(kind.profile())
            names.append(str(kind))
    type_of: IntArray = number[alike.reshape(-1)]
    sources = parsing.sources.copy()
    without = _search(parsing, sources, type_of, profiles, names)
    return Scheduled(parsing, sealed(sources), sealed(type_of), profiles, names, without)


def _search(
    parsing: Parsing,
    sources: IntArray,
    type_of: IntArray,
    profiles: list[BlockProfile],
    names: list[str],
) -> frozenset[int]:
    """Order the sources of the blocks of no known family; those that have no order."""
    known: dict[tuple[tuple[int, ...], ...], SearchResult] = {}
    types: dict[bytes, int] = {}
    without: set[int] = set()
    looked_at = 0
    small = (parsing.family == OTHER) & (parsing.n_sources <= MOST_SOURCES)
    for block in np.flatnonzero(small).tolist():
        listed = parsing.block_sources(block)
        children = _children(parsing, listed)
        if children is None:
            continue
        if children not in known:
            looked_at += 1 << len(set(children))
            if looked_at > MOST_SEARCHING:
                break
            known[children] = block_order(children)
        found = known[children]
        if found.order is None:
            without.add(block)
            continue
        order = np.array(found.order, dtype=np.int32)
        sources[parsing.source_ptr[block] : parsing.source_ptr[block + 1]] = listed[order]
        gains = _gains([children[source] for source in found.order])
        type_of[block] = types.setdefault(gains.tobytes(), len(profiles))
        if type_of[block] == len(profiles):
            profiles.append(BlockProfile(gains))
            names.append(f"a block of {len(children)} sources")
    return frozenset(without)


def _children(parsing: Parsing, sources: IntArray) -> tuple[tuple[int, ...], ...] | None:
    """The sinks of each source, numbered from 0 as they appear; None if too many differ."""
    dag = parsing.dag
    number: dict[int, int] = {}
    children: list[tuple[int, ...]] = []
    different: set[tuple[int, ...]] = set()
    for v in sources.tolist():
        sinks = dag.child[dag.child_ptr[v] : dag.child_ptr[v + 1]].tolist()
        children.append(tuple(number.setdefault(c, len(number)) for c in sinks))
        different.add(children[-1])
        if len(different) > MOST_GROUPS:
            return None
    return tuple(children)


def _gains(children: list[tuple[int, ...]]) -> IntArray:
    """What each source gains: the sinks of which it is the last parent, less itself."""
    last = {sink: place for place, sinks in enumerate(children) for sink in sinks}
    return np.bincount(list(last.values()), minlength=len(children)).astype(np.int32) - 1
