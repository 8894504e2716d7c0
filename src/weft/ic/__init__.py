"""IC-optimal scheduling: the pebble game, building blocks, priorities, ICO, and a heuristic."""

from __future__ import annotations

from weft.ic.analysis import Analysis, analyse, analyse_dag, best_order
from weft.ic.blocks import BlockProfile, has_priority
from weft.ic.dag import Dag, places
from weft.ic.game import (
    DISCIPLINES,
    Play,
    heuristic_order,
    heuristic_phases,
    listed_order,
    order_phases,
    play,
    request_sizes,
)
from weft.ic.ico import IcoFailure, IcoResult, ico

__all__ = [
    "DISCIPLINES",
    "Analysis",
    "BlockProfile",
    "Dag",
    "IcoFailure",
    "IcoResult",
    "Play",
    "analyse",
    "analyse_dag",
    "best_order",
    "has_priority",
    "heuristic_order",
    "heuristic_phases",
    "ico",
    "listed_order",
    "order_phases",
    "places",
    "play",
    "request_sizes",
]
