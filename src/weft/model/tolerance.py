"""How many failures a run puts up with."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Tolerance:
    """A task that fails more often is given up, and with it all that needs its results."""

    retries: int = 0  # for tasks that do not say
    losses: int = 3  # how many processors may be lost under one task
    keep_going: bool = False  # do all that can still be done; else start nothing more
