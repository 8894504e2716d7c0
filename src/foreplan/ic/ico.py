"""ICO: an IC-optimal schedule by the priority-linear composition of building blocks.

Malewicz, Rosenberg, Yurkewych: Toward a theory for scheduling dags in Internet-based computing; as
Hall, Rosenberg and Venkataramani put it in section 3.1. Beyond that, the theorem is applied to each
section of the dag on its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cmp_to_key
from itertools import pairwise

import numpy as np

from foreplan.arrays import IntArray, csr, frozen, sealed
from foreplan.ic.blocks import has_priority
from foreplan.ic.dag import Dag
from foreplan.ic.search import Scheduled
from foreplan.ic.structure import Structure, structure_of


@dataclass(frozen=True)
class IcoFailure:
    """Where ICO failed in a section: at one block or at two, or at a vertex between two.

    `none_exists`: this proves that the dag has no IC-optimal schedule.
    """

    section: int
    step: str  # parse, blocks, priorities, linear order
    blocks: tuple[int, ...]
    vertex: int = -1
    none_exists: bool = False


@dataclass(frozen=True, eq=False)
class IcoResult:
    """What ICO gives: an IC-optimal order, or the sections that failed, and where.

    `place` is each block's in the order that the priorities impose on its section.
    """

    structure: Structure
    place: IntArray
    failures: tuple[IcoFailure, ...]

    @property
    def order(self) -> IntArray | None:
        """An IC-optimal schedule, unless a section failed."""
        return None if self.failures else self.theorem_order

    @property
    def theorem_order(self) -> IntArray:
        """The sources of the blocks, section by section, and then all sinks (Theorem 2.1)."""
        structure, parsing = self.structure, self.structure.parsing
        # between equals, all orders that respect the arcs are as good: the longest path goes first
        blocks = np.lexsort((-structure.hops, structure.level, self.place, structure.section))
        ptr, sizes = parsing.source_ptr[:-1][blocks], parsing.n_sources[blocks]
        inner = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        nonsinks = structure.scheduled.sources[np.repeat(ptr, sizes) + inner]
        sinks = np.flatnonzero(parsing.source_of < 0)
        order: IntArray = frozen(np.concatenate([nonsinks, sinks]), np.int32)
        return order


def ico(dag: Dag) -> IcoResult:
    """An IC-optimal schedule of a dag where ICO's conditions hold, or where they do not."""
    structure = structure_of(dag)
    parsing, type_of = structure.parsing, structure.scheduled.type_of
    all_blocks = np.arange(parsing.n_blocks, dtype=np.int32)
    ptr, blocks = csr(structure.section, all_blocks, structure.n_sections)
    places = _Places(structure.scheduled)
    place = np.zeros(parsing.n_blocks, dtype=np.int32)
    failures: dict[int, IcoFailure] = {}
    stuck = structure.in_circle | (type_of < 0)
    # a section of one block that has an order needs no more
    hard = np.diff(ptr) > 1
    hard[structure.section[stuck]] = True
    for section in np.flatnonzero(hard).tolist():
        members = blocks[ptr[section] : ptr[section + 1]]
        if stuck[members].any():
            failures[section] = _stuck(structure, section, members)
            continue
        found = places.of(type_of[members])
        if isinstance(found, tuple):
            pair = _two_blocks(members, type_of[members], *found)
            failures[section] = IcoFailure(section, "priorities", pair)
        else:
            place[members] = found
    _check_arcs(structure, place, failures)
    return IcoResult(structure, sealed(place), tuple(failures[s] for s in sorted(failures)))


def _stuck(structure: Structure, section: int, members: IntArray) -> IcoFailure:
    """A section with a circle of blocks, or with a block that has no order."""
    circle = members[structure.in_circle[members]]
    if len(circle):
        unit = structure.unit[circle[0]]
        return IcoFailure(section, "parse", tuple(circle[structure.unit[circle] == unit].tolist()))
    scheduled = structure.scheduled
    without = [b for b in members.tolist() if b in scheduled.without]
    first = without[0] if without else int(members[scheduled.type_of[members] < 0][0])
    none = len(members) == 1 and bool(without)
    return IcoFailure(section, "blocks", (first,), none_exists=none)


def _two_blocks(members: IntArray, types: IntArray, one: int, other: int) -> tuple[int, int]:
    """Two blocks of these types; two different ones if the type is the same."""
    first, second = np.flatnonzero(types == one), np.flatnonzero(types == other)
    return int(members[first[0]]), int(members[second[1 if one == other else 0]])


def _check_arcs(structure: Structure, place: IntArray, failures: dict[int, IcoFailure]) -> None:
    """A section fails if a block comes before one that has priority over it."""
    shared, above, below = structure.parsing.super_arcs
    inner = structure.section[above] == structure.section[below]
    against = np.flatnonzero(inner & (place[above] > place[below]))
    for arc in against[::-1].tolist():  # the first of each section is written last
        section = int(structure.section[above[arc]])
        if section not in failures or failures[section].step == "linear order":
            pair = int(above[arc]), int(below[arc])
            failures[section] = IcoFailure(section, "linear order", pair, int(shared[arc]))


class _NoOrderError(Exception):
    """The priority relation does not order these two types."""


class _Places:
    """The order that the priority relation imposes on types of blocks.

    It is transitive, so a chain of neighbours is enough.
    """

    def __init__(self, scheduled: Scheduled) -> None:
        self._profiles = scheduled.profiles
        self._prior: dict[tuple[int, int], bool] = {}
        self._known: dict[bytes, dict[int, int] | tuple[int, int]] = {}

    def of(self, types: IntArray) -> IntArray | tuple[int, int]:
        """The place of each of some blocks, given their types; or two types without an order."""
        kinds, inverse, counts = np.unique(types, return_inverse=True, return_counts=True)
        key = kinds.tobytes() + (counts > 1).tobytes()
        if key not in self._known:
            self._known[key] = self._ordered(kinds.tolist(), kinds[counts > 1].tolist())
        known = self._known[key]
        if isinstance(known, tuple):
            return known
        return np.array([known[kind] for kind in kinds.tolist()], dtype=np.int32)[inverse]

    def _ordered(self, kinds: list[int], repeated: list[int]) -> dict[int, int] | tuple[int, int]:
        for kind in repeated:
            if not self._priority(kind, kind):
                return kind, kind
        try:
            ordered = sorted(kinds, key=cmp_to_key(self._compare))
        except _NoOrderError as pair:
            return pair.args[0], pair.args[1]
        place = {ordered[0]: 0}
        for before, kind in pairwise(ordered):
            if not self._priority(before, kind):
                return before, kind
            place[kind] = place[before] + (0 if self._priority(kind, before) else 1)
        return place

    def _compare(self, one: int, other: int) -> int:
        forward, backward = self._priority(one, other), self._priority(other, one)
        if not forward and not backward:
            raise _NoOrderError(one, other)
        return int(backward) - int(forward)

    def _priority(self, one: int, other: int) -> bool:
        if (one, other) not in self._prior:
            prior = has_priority(self._profiles[one], self._profiles[other])
            self._prior[one, other] = prior
        return self._prior[one, other]
