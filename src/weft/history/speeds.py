"""How slow each machine is, from categories that were measured on several of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weft.arrays import BoolArray, FloatArray
from weft.history.medians import Indices

NEAR = 0.05  # differences of logarithms below this weigh by their square, others by their size
SWEEPS = 20
STILL = 1e-5  # a change of the logarithms that is none
ALIKE = 1e-6  # how strongly machines are taken to be alike where nothing links them


@dataclass(frozen=True, eq=False)
class Cells:
    """Log seconds of rows (kinds of work) on machines, and how much each is to be trusted."""

    row: Indices
    machine: Indices
    level: FloatArray
    weight: FloatArray


@dataclass(frozen=True, eq=False)
class Speeds:
    """The logarithm of each machine's slowness; 0 where it is not measured."""

    slowness: FloatArray
    measured: BoolArray


def machine_speeds(cells: Cells, n_machines: int) -> Speeds:
    """Fit log seconds = row + machine, nearly by least absolute deviations.

    Deviations are weighed anew until the fit stands still, so that wild cells have little say.
    A row that is on one machine only tells nothing of machines.
    """
    linked = np.bincount(cells.row)[cells.row] > 1 if len(cells.row) else np.zeros(0, np.bool_)
    _, row = np.unique(cells.row[linked], return_inverse=True)
    machine, level = cells.machine[linked], cells.level[linked]
    slowness = np.zeros(n_machines)
    measured = np.zeros(n_machines, dtype=np.bool_)
    measured[machine] = True
    if not len(level):
        return Speeds(slowness, measured)
    weight = cells.weight[linked]
    for _ in range(SWEEPS):
        before = slowness
        slowness = _least_squares(row, machine, level, weight, before)
        rest = level - slowness[machine]
        rest -= _row_means(rest, weight, row)[row]
        weight = cells.weight[linked] / np.maximum(np.abs(rest), NEAR)
        if np.abs(slowness - before).max() < STILL:
            break
    return Speeds(slowness, measured)


def _row_means(values: FloatArray, weight: FloatArray, row: Indices) -> FloatArray:
    means: FloatArray = np.bincount(row, weight * values) / np.bincount(row, weight)
    return means


def _least_squares(
    row: Indices, machine: Indices, level: FloatArray, weight: FloatArray, guess: FloatArray
) -> FloatArray:
    """The machines' part by conjugate gradients, the rows' part taken out."""
    n = len(guess)
    total = np.bincount(machine, weight, n)
    ridge = ALIKE * float(total.max())

    def apply(values: FloatArray) -> FloatArray:
        of_cell = values[machine]
        of_cell = of_cell - _row_means(of_cell, weight, row)[row]
        image: FloatArray = np.bincount(machine, weight * of_cell, n) + ridge * values
        return image

    wanted = np.bincount(machine, weight * (level - _row_means(level, weight, row)[row]), n)
    scale = 1 / (total + ridge)
    x = guess.copy()
    rest = wanted - apply(x)
    near_enough = 1e-12 * max(float(np.abs(wanted).max()), ridge)
    step = scale * rest
    size = float(rest @ step)
    for _ in range(2 * n):
        if np.abs(rest).max() <= near_enough:
            break
        image = apply(step)
        along = size / float(step @ image)
        x += along * step
        rest -= along * image
        conditioned = scale * rest
        size, last = float(rest @ conditioned), size
        step = conditioned + (size / last) * step
    return x
