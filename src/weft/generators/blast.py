"""A workflow like BLAST: sequences split into parts, each compared on its own, and merged."""

from __future__ import annotations

import numpy as np

from weft.generators.graph import Graph, family, in_steps
from weft.generators.limits import whole


@family
def blast(rng: np.random.Generator, parallelism: int = 200) -> Graph:
    """BLAST: sequences are split, N chains of four jobs work side by side, one merges: 4N + 2.

    The six-step workflow of Yu, Shi (An adaptive rescheduling strategy for grid workflow
    applications, figure 6). The names in the figure are lost; those here are plain guesses at
    what such jobs do. The jobs of one step are of one category.
    """
    n = whole("parallelism", parallelism, 1)
    chain = ("format", "blast", "parse", "annotate")
    return in_steps({"split": None, **dict.fromkeys(chain, n), "merge": None})
