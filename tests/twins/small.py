"""Exact situations in small whole numbers: the same ties, but means that must be rounded."""

from __future__ import annotations

from dataclasses import replace

from foreplan.model import Attempts, Estimates, Link, Situation, Transfers

from .situations import UNIT


def in_units(situation: Situation) -> Situation:
    """The same situation with all times divided by UNIT, which is exact for an exact one.

    Means over 3, 5 or 6 processors are no longer exact, so equal ranks are equal only up to
    rounding errors, as in real files; times stay exact. For planners that compare means with
    nothing but rounded ranks: heft, dls, lmt, hbmct, min-min, max-min.
    """
    w, p, a, t = situation.workflow, situation.platform, situation.attempts, situation.transfers
    columns = {name: column / UNIT for name, column in w.processor_cost.items()}
    network = Link(p.network.time_per_unit / UNIT, p.network.startup / UNIT)
    return replace(
        situation,
        workflow=replace(w, base_cost=w.base_cost / UNIT, processor_cost=columns),
        platform=replace(
            p,
            joins=p.joins / UNIT,
            leaves=p.leaves / UNIT,
            startup=p.startup / UNIT,
            time_per_unit=p.time_per_unit / UNIT,
            network=network,
        ),
        estimates=Estimates(situation.estimates.cost / UNIT),
        now=situation.now / UNIT,
        attempts=Attempts(a.task, a.processor, a.start / UNIT, a.finish / UNIT),
        transfers=Transfers(t.item, t.host, t.arrival / UNIT),
    )
