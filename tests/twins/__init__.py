"""Slow, obvious twins of the planners, in plain Python: what the kernels are held against."""

from collections.abc import Callable

from weft.model import Situation

from .board import Board, Placement
from .cpop import cpop
from .dls import dls
from .fcp import fcp
from .gtp import gtp
from .hbmct import hbmct
from .heft import heft
from .lmt import lmt
from .minmin import max_min, min_min
from .peft import peft
from .ranks import rank_d, rank_u

TWINS: dict[str, Callable[[Situation], dict[int, Placement]]] = {
    "heft": heft,
    "cpop": cpop,
    "peft": peft,
    "dls": dls,
    "fcp": fcp,
    "gtp": gtp,
    "lmt": lmt,
    "hbmct": hbmct,
    "min-min": min_min,
    "max-min": max_min,
}

__all__ = [
    "TWINS",
    "Board",
    "Placement",
    "cpop",
    "dls",
    "fcp",
    "gtp",
    "hbmct",
    "heft",
    "lmt",
    "max_min",
    "min_min",
    "peft",
    "rank_d",
    "rank_u",
]
