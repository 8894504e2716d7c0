"""The blocks of a dag with the order of their sources: the known families', or found by search."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weft.arrays import IntArray, sealed
from weft.ic.blocks import OTHER, Parsing
from weft.ic.profiles import Profile
from weft.ic.search import MOST_GROUPS, Found, block_order

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
    profiles: list[Profile]
    names: list[str]
    without: frozenset[int]

    @property
    def first_unscheduled(self) -> int | None:
        """The first block without a type."""
        found = np.flatnonzero(self.type_of < 0)
        return int(found[0]) if len(found) else None


def schedule_blocks(parsing: Parsing) -> Scheduled:
    """Give every block an IC-optimal order of its sources, where one can be found."""
    family, s, t = parsing.family, parsing.n_sources, parsing.n_sinks
    looks = np.stack([family, s, t], axis=1)
    _, examples, alike = np.unique(looks, axis=0, return_index=True, return_inverse=True)
    profiles: list[Profile] = []
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
    profiles: list[Profile],
    names: list[str],
) -> frozenset[int]:
    """Order the sources of the blocks of no known family; those that have no order."""
    known: dict[tuple[tuple[int, ...], ...], Found] = {}
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
            profiles.append(Profile(gains))
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
