"""Prices on random situations: per second, per billing unit, and of transfers."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np
from hypothesis import strategies as st

from foreplan.model import Situation

from .situations import UNIT, situations
from .troubles import troubled_situation

# Multiples of a quarter, so that costs and their sums are exact wherever times are.
PRICES = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0)


def with_prices(
    situation: Situation,
    rng: np.random.Generator,
    exact: bool = True,
    units: bool = False,
    links: bool = False,
) -> Situation:
    """The same situation, but machines cost money; now and then all the same, or nothing."""
    pf = situation.platform
    n, h = pf.n_processors, pf.n_hosts
    price = rng.choice(PRICES, n) if exact else rng.uniform(0, 4, n)
    kind = rng.random()
    if kind < 0.1:
        price = np.full(n, 1.5)
    elif kind < 0.2:
        price = np.zeros(n)
    elif kind < 0.3:
        price = pf.speed / 2
    billing = rng.choice([0.0, 1.0, 2.0, 5.0], n) * UNIT if units else np.zeros(n)
    sends = rng.choice([0.0, 100.0, 200.0], (h, h)) if links else np.zeros((h, h))
    np.fill_diagonal(sends, 0.0)
    platform = replace(pf, price=price, billing=billing, link_price=sends)
    return replace(situation, platform=platform)


@st.composite
def priced(
    draw: st.DrawFn, max_tasks: int = 12, changes: bool = False, at_start: bool | None = None
) -> Situation:
    """Exact situations of machines with a price per second."""
    situation = draw(situations(max_tasks, 4, exact=True, changes=changes, at_start=at_start))
    seed = draw(st.integers(0, 2**32 - 1), label="prices")
    return with_prices(situation, np.random.default_rng(seed))


@st.composite
def any_priced(draw: st.DrawFn, max_tasks: int = 10) -> Situation:
    """Anything: billing units, prices of links, joins and leaves, lost items, slow machines."""
    units, links = draw(st.booleans(), label="units"), draw(st.booleans(), label="links")
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1), label="seed"))
    if draw(st.booleans(), label="trouble"):
        situation = troubled_situation(rng)
    else:
        situation = draw(situations(max_tasks, 4))
    return with_prices(situation, rng, exact=False, units=units, links=links)


def between(low: float, high: float, k: float) -> float:
    """The paper's equation 5."""
    return low + k * (high - low) if high < inf else inf
