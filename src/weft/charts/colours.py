"""The colours of bars: what they stand for, and which they are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weft.arrays import FloatArray, IntArray
from weft.model import Workflow

# Pale enough for black names and dark outlines, and told apart without red-green vision.
PALETTE = (
    "#77aadd",
    "#ee8866",
    "#eedd88",
    "#44bb99",
    "#ffaabb",
    "#bbcc33",
    "#99ddff",
    "#aaaa00",
    "#b8a4e0",
    "#bbbbbb",
)
# Attempts that came to nothing, by how they ended.
LOST = {"failed": "#d64545", "cancelled": "#a06cd5", "rewound": "#8d8d8d"}
NO_CATEGORY = "(no category)"
OTHER = "(other)"


def categories_of(workflow: Workflow, weight: FloatArray) -> tuple[tuple[str, ...], IntArray]:
    """The categories in order of appearance, and each task's.

    Where a file gives none: the beginnings of the task names, if they form a few groups.
    More than the palette holds: those with the most weight, and the rest together.
    """
    n = workflow.n_tasks
    if any(spec.category for spec in workflow.specs.values()):
        labels = [workflow.spec(task).category or NO_CATEGORY for task in range(n)]
    else:
        labels = _prefixes(workflow.task_names)
    index = {label: i for i, label in enumerate(dict.fromkeys(labels))}
    of_task = np.array([index[label] for label in labels], dtype=np.int32)
    return _limited(tuple(index) or ("",), of_task, weight)


def _prefixes(names: Sequence[str]) -> list[str]:
    """The names without their numbers; all alike if that gives too many groups to mean much."""
    prefixes = [name.rstrip("0123456789_-.:/#[](), ") for name in names]
    groups = set(prefixes)
    useful = 2 <= len(groups) <= min(len(PALETTE), len(names) // 2) and "" not in groups
    return prefixes if useful else [""] * len(names)


def _limited(
    names: tuple[str, ...], of_task: IntArray, weight: FloatArray
) -> tuple[tuple[str, ...], IntArray]:
    """At most as many categories as there are colours; the last one takes the lightest."""
    most = len(PALETTE)
    if len(names) <= most:
        return names, of_task
    total = np.bincount(of_task, weights=weight, minlength=len(names))
    heaviest = np.sort(np.argsort(-total, kind="stable")[: most - 1])
    new = np.full(len(names), most - 1, dtype=np.int32)
    new[heaviest] = np.arange(most - 1, dtype=np.int32)
    return (*(names[i] for i in heaviest), OTHER), new[of_task]
