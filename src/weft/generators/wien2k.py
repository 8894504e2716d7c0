"""A workflow like WIEN2k: one iteration of a quantum chemistry code with two parallel sections."""

from __future__ import annotations

import numpy as np

from weft.generators.graph import Graph, family, in_steps
from weft.generators.limits import whole


@family
def wien2k(rng: np.random.Generator, parallelism: int = 200) -> Graph:
    """WIEN2K: one chain but for N LAPW1 and N LAPW2 side by side: 2N + 8 tasks.

    The full-balanced graph of Yu, Shi (An adaptive rescheduling strategy for grid workflow
    applications, figure 7): LAPW2_FERMI waits for every LAPW1, and every LAPW2 waits for it, so
    that in the middle only one job can run. The jobs of one step are of one category.
    """
    n = whole("parallelism", parallelism, 1)
    sections = {"stage-in": None, "LAPW0": None, "LAPW1": n, "LAPW2_FERMI": None, "LAPW2": n}
    end = dict.fromkeys(("Sumpara", "LCore", "Mixer", "Converged", "stage-out"))
    return in_steps(sections | end)
