"""Workflows like those of known applications: Montage, BLAST, WIEN2k."""

from __future__ import annotations

import math

import numpy as np

from foreplan.arrays import IntArray
from foreplan.generators.graph import Graph, Profile, edge_list, family, in_steps
from foreplan.generators.limits import whole

MAX_IMAGES = 3_000_000  # 18 million tasks
NOISE = 0.4  # a task takes its category's seconds, 20% more or less


@family
def montage(rng: np.random.Generator, images: int = 20) -> Graph:
    """Montage-like mosaic of n sky images: 2n + d + 6 tasks with d overlaps of images.

    The images tile the sky in a grid and each overlaps its eight neighbours. mProject prepares
    an image, mDiffFit fits an overlap, mConcatFit and mBgModel turn the fits into corrections,
    mBackground applies one, mImgtbl, mAdd, mShrink and mJPEG make the picture. Every task writes
    one file, whoever reads it. Seconds and MB are of the order of published profiles (Juve et
    al., Characterizing and profiling scientific workflows, 2013) and public traces.
    """
    n = whole("images", images, 2, MAX_IMAGES)
    left, right = _overlaps(n)
    d = len(left)
    image, overlap = np.arange(n), n + np.arange(d)
    concat, model = n + d, n + d + 1
    background = model + 1 + image
    table, add, shrink, jpeg = model + 1 + n + np.arange(4)
    producers, consumers = edge_list(
        (left, overlap),
        (right, overlap),
        (image, background),
        (overlap, np.full(d, concat)),
        (np.array([concat]), np.array([model])),
        (np.full(n, model), background),
        (background, np.full(n, table)),
        (background, np.full(n, add)),
        (np.array([table, add, shrink]), np.array([add, shrink, jpeg])),
    )
    counts = {"mProject": n, "mDiffFit": d, "mConcatFit": 1, "mBgModel": 1, "mBackground": n}
    counts |= {"mImgtbl": 1, "mAdd": 1, "mShrink": 1, "mJPEG": 1}
    names = [
        kind if count == 1 else f"{kind}_{i}"
        for kind, count in counts.items()
        for i in range(count)
    ]
    return Graph(names, producers, consumers, _profile(counts, names))


def _overlaps(n: int) -> tuple[IntArray, IntArray]:
    """The pairs of neighbours, also across corners, of n images laid out row by row."""
    columns = math.ceil(math.sqrt(n))
    image = np.arange(n, dtype=np.int32)
    column = image % columns
    pairs = []
    for step, possible in (
        (1, column < columns - 1),  # to the right
        (columns - 1, column > 0),  # below, left
        (columns, column >= 0),  # below
        (columns + 1, column < columns - 1),  # below, right
    ):
        first = image[possible & (image + step < n)]
        pairs.append((first, first + np.int32(step)))
    return edge_list(*pairs)


def _profile(counts: dict[str, int], names: list[str]) -> Profile:
    """Seconds and MB of every task; the single tasks grow with the number of images."""
    n, d = counts["mProject"], counts["mDiffFit"]
    mosaic = 2.0 * n
    table = {  # category: seconds, MB of its file, what the file is
        "mProject": (15.0, 8.3, "fits"),
        "mDiffFit": (0.7, 0.0003, "fit"),
        "mConcatFit": (0.2 + 0.02 * d, 0.0001 * d, "tbl"),
        "mBgModel": (0.5 + 0.18 * n, 0.00005 * n, "tbl"),
        "mBackground": (1.7, 8.3, "fits"),
        "mImgtbl": (0.2 + 0.01 * n, 0.0002 * n, "tbl"),
        "mAdd": (0.5 + 0.4 * n, mosaic, "fits"),
        "mShrink": (0.3 + 0.1 * n, mosaic / 25, "fits"),
        "mJPEG": (0.6, mosaic / 100, "jpg"),
    }
    kinds = [kind for kind, count in counts.items() for _ in range(count)]
    return Profile(
        seconds=np.array([table[kind][0] for kind in kinds]),
        size=np.array([table[kind][1] for kind in kinds]),
        categories=kinds,
        files=[f"{name}.{table[kind][2]}" for name, kind in zip(names, kinds, strict=True)],
        spread=NOISE,
    )


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
