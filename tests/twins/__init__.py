"""Slow, obvious twins of the planners, in plain Python: what the kernels are held against."""

from collections.abc import Callable
from functools import partial

from foreplan.model import Situation

from .budget import gain, loss
from .cpop import cpop
from .dls import dls
from .fcp import fcp
from .gtp import gtp
from .hbmct import hbmct
from .heft import heft
from .lmt import lmt
from .minmin import max_min, min_min
from .partial_schedule import PartialSchedule, Placement
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
    "loss1": partial(loss, variant=1),
    "loss2": partial(loss, variant=2),
    "loss3": partial(loss, variant=3),
    "gain1": partial(gain, variant=1),
    "gain2": partial(gain, variant=2),
    "gain3": partial(gain, variant=3),
}

# They search around what the others find, for as long as it helps: what they promise is tested.
SEARCHES = {"best-affordable", "cheapest-in-time"}

__all__ = [
    "SEARCHES",
    "TWINS",
    "PartialSchedule",
    "Placement",
    "cpop",
    "dls",
    "fcp",
    "gain",
    "gtp",
    "hbmct",
    "heft",
    "lmt",
    "loss",
    "max_min",
    "min_min",
    "peft",
    "rank_d",
    "rank_u",
]
