"""Why ICO failed, in words."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from weft.ic.ico import Failure
from weft.ic.structure import Structure

Names = Callable[[int], str]

SHOWN = 8  # vertices of a circle that are named


def reason_of(structure: Structure, failure: Failure, names: Names) -> str:
    """Which step failed, and at which vertices."""
    makers = {
        "parse": _parse_reason,
        "blocks": _block_reason,
        "priorities": _pair_reason,
        "linear order": _against_reason,
    }
    return makers[failure.step](structure, failure, names)


def block_name(structure: Structure, block: int, names: Names) -> str:
    """A block by its kind and its first source."""
    scheduled = structure.scheduled
    kind = scheduled.type_of[block]
    sources = structure.parsing.block_sources(block)
    what = scheduled.names[kind] if kind >= 0 else f"a block of {len(sources)} sources"
    return f"{what} at {names(int(sources.min()))}"


def _block_reason(structure: Structure, failure: Failure, names: Names) -> str:
    (block,), parsing = failure.blocks, structure.parsing
    why = "is of no known family and too large for a search"
    if block in structure.scheduled.without:
        why = "has no IC-optimal order"
    size = f"{parsing.n_sources[block]} sources and {parsing.n_sinks[block]} sinks"
    first = names(int(parsing.block_sources(block).min()))
    return f"the building block of {size} that begins at {first} {why}"


def _pair_reason(structure: Structure, failure: Failure, names: Names) -> str:
    first, second = (block_name(structure, block, names) for block in failure.blocks)
    return f"of the building blocks {first} and {second} neither has priority over the other"


def _against_reason(structure: Structure, failure: Failure, names: Names) -> str:
    above, below = (block_name(structure, block, names) for block in failure.blocks)
    through = names(failure.vertex)
    return f"{above} comes before {below} (by way of {through}) but has no priority over it"


def _parse_reason(structure: Structure, failure: Failure, names: Names) -> str:
    """The vertices that lead round a circle of blocks."""
    shared, above, below = structure.parsing.super_arcs
    inside = np.isin(above, failure.blocks) & np.isin(below, failure.blocks)
    entry = {
        int(to): (int(vertex), int(start))
        for vertex, start, to in zip(shared[inside], above[inside], below[inside], strict=True)
    }
    block, path, seen = min(entry), list[int](), dict[int, int]()
    while block not in seen:
        seen[block] = len(path)
        vertex, block = entry[block]
        path.append(vertex)
    circle = path[seen[block] :][::-1]
    shown = ", ".join(names(v) for v in circle[:SHOWN]) + (", ..." if len(circle) > SHOWN else "")
    if len(circle) == 1:
        return f"{shown} would be both a source and a sink of one building block"
    return f"the building blocks that meet at {shown} come before one another in a circle"
