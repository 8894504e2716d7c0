"""What ICO finds out about a dag before it orders anything: sections, blocks, super-dag."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from weft.arrays import BoolArray, IntArray, csr, sealed
from weft.ic.blocks import Parsing, parse
from weft.ic.dag import Dag
from weft.ic.pruning import pruned
from weft.ic.scheduled import Scheduled, schedule_blocks
from weft.ic.sections import sections
from weft.kernels.building_blocks import strong_components
from weft.kernels.pebbles import levels


@dataclass(frozen=True, eq=False)
class Structure:
    """A dag without its shortcuts, its blocks, and for each block where it stands.

    A unit is a block, or the blocks of a circle in the super-dag, which cannot be told apart.
    """

    dag: Dag
    scheduled: Scheduled
    section: IntArray  # of each block
    unit: IntArray  # of each block
    in_circle: BoolArray  # whether a block's unit is a circle
    level: IntArray  # of each block's unit in the super-dag
    units: IntArray  # all units in a topological order

    @property
    def parsing(self) -> Parsing:
        """The blocks as they were found."""
        return self.scheduled.parsing

    @property
    def n_sections(self) -> int:
        """The number of sections."""
        return int(self.section.max(initial=-1)) + 1

    @cached_property
    def section_of_vertices(self) -> IntArray:
        """The section of each vertex; all sinks come after the last."""
        source_of = self.parsing.source_of
        if self.parsing.n_blocks == 0:
            return sealed(np.zeros(self.dag.n, dtype=np.int32))
        section = np.where(source_of >= 0, self.section[source_of], self.n_sections)
        return sealed(section.astype(np.int32))


def structure_of(dag: Dag) -> Structure:
    """Prune and parse a dag, and order the sources of its blocks."""
    without_shortcuts = pruned(dag)
    parsing = parse(without_shortcuts)
    scheduled = schedule_blocks(parsing)
    section = sections(without_shortcuts)[parsing.sources[parsing.source_ptr[:-1]]]
    _, above, below = parsing.super_arcs
    unit, in_circle = _units(above, below, parsing.n_blocks)
    count = int(unit.max(initial=-1)) + 1
    apart = unit[above] != unit[below]
    ptr, after = csr(unit[above[apart]], unit[below[apart]], count)
    waiting = np.bincount(after, minlength=count).astype(np.int32)
    order, level = levels(ptr, after, waiting)
    return Structure(
        without_shortcuts, scheduled, sealed(section), unit, in_circle, sealed(level[unit]), order
    )


def _units(above: IntArray, below: IntArray, blocks: int) -> tuple[IntArray, BoolArray]:
    """The unit of each block, and whether it is a circle."""
    ptr, after = csr(above, below, blocks)
    waiting = np.bincount(below, minlength=blocks).astype(np.int32)
    order, _ = levels(ptr, after, waiting)
    if len(order) == blocks:
        return np.arange(blocks, dtype=np.int32), np.zeros(blocks, dtype=np.bool_)
    component, count = strong_components(ptr, after)
    circle = np.bincount(component, minlength=count) > 1
    circle[component[above[above == below]]] = True
    return sealed(component), sealed(circle[component])
