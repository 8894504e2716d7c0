"""IC-optimal scheduling: the pebble game, building blocks, priorities, ICO, and a heuristic."""

from __future__ import annotations

from foreplan.ic.analysis import Analysis, analyse, analyse_dag, best_order
from foreplan.ic.blocks import BlockProfile, has_priority
from foreplan.ic.dag import Dag, places
from foreplan.ic.game import (
    DISCIPLINES,
    Play,
    heuristic_order,
    heuristic_phases,
    listed_order,
    order_phases,
    play,
    request_sizes,
)
from foreplan.ic.ico import IcoFailure, IcoResult, ico

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
