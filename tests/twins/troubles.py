"""Trouble on top of a random situation: slow machines and links, lost hosts, items gone astray."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from foreplan.arrays import BoolArray
from foreplan.model import Copies, Reuse, Situation, Transfers

from .situations import UNIT, random_situation


def troubled_situation(
    rng: np.random.Generator, exact: bool | None = None, at_start: bool = False
) -> Situation:
    """A random situation in which machines and links are slow, and some are lost."""
    exact = bool(rng.random() < 0.5) if exact is None else exact
    situation = random_situation(rng, exact=exact, at_start=at_start)
    situation = replace(situation, reuse=Reuse(int(rng.integers(0, 3))))
    situation = _slowed(rng, situation, exact)
    if at_start:
        return situation
    situation = _progressed(rng, situation, exact)
    return _lost(rng, situation) if rng.random() < 0.7 else situation


def _slowed(rng: np.random.Generator, situation: Situation, exact: bool) -> Situation:
    """Halves and quarters where nothing is to be rounded; else anything, and some stand still."""
    p, h = situation.platform.n_processors, situation.platform.n_hosts
    if rng.random() < 0.8:
        rate = rng.choice([0.25, 0.5, 1.0], p) if exact else rng.uniform(0.1, 1, p)
        if not exact and rng.random() < 0.3:
            rate[rng.random(p) < 0.4] = 0.0
        situation = replace(situation, availability=rate)
    if rng.random() < 0.8:
        factor = rng.choice([0.25, 0.5, 1.0, 2.0], (h, h)) if exact else rng.uniform(0, 2, (h, h))
        situation = replace(situation, bandwidth=factor)
    return situation


def _progressed(rng: np.random.Generator, situation: Situation, exact: bool) -> Situation:
    """Running tasks have done some work, known since a while ago."""
    a, now = situation.attempts, situation.now
    share = rng.integers(0, 3, len(a.task)) / 2 if exact else rng.random(len(a.task))
    worked = (
        rng.integers(0, 4, len(a.task)) * UNIT / 2 if exact else rng.uniform(0, 400, len(share))
    )
    since = a.start + share * (now - a.start)
    running = np.isnan(a.finish)
    changed = replace(
        a, worked=np.where(running, worked, 0.0), since=np.where(running, since, a.start)
    )
    return replace(situation, attempts=changed)


def _lost(rng: np.random.Generator, situation: Situation) -> Situation:
    """Hosts on which nothing runs are gone, single items too; one copy of each item is left."""
    pf, a = situation.platform, situation.attempts
    running = set(pf.host[a.processor[np.isnan(a.finish)]].tolist())
    spare = [h for h in range(pf.n_hosts) if h not in running and h != pf.host[0]]
    gone = [h for h in spare if rng.random() < 0.5]
    here: BoolArray = pf.present(situation.now) & ~np.isin(pf.host, gone)
    there, moving = situation.copies, situation.transfers
    copies = {
        (i, h)
        for i, h in zip(there.item.tolist(), there.host.tolist(), strict=True)
        if h not in gone
    }
    made_on = dict(zip(a.task.tolist(), pf.host[a.processor].tolist(), strict=True))
    finished = set(a.task[~np.isnan(a.finish)].tolist())
    astray = np.zeros(situation.workflow.n_items, dtype=np.bool_)
    for item, producer in enumerate(situation.workflow.item_producer.tolist()):
        if producer not in finished:
            continue
        home = made_on[producer]
        if home in gone or rng.random() < 0.1:
            astray[item] = True
            if not any(i == item for i, _ in copies):
                copies.add((item, int(pf.host[0])))
            copies.discard((item, home))
            if not any(i == item for i, _ in copies):
                astray[item] = False
    ways = zip(moving.item.tolist(), moving.host.tolist(), strict=True)
    kept = np.array([h not in gone and (i, h) not in copies for i, h in ways], dtype=np.bool_)
    pairs = sorted(copies)
    return replace(
        situation,
        present=here,
        astray=astray if astray.any() else None,
        copies=Copies(np.array([i for i, _ in pairs]), np.array([h for _, h in pairs])),
        transfers=Transfers(moving.item[kept], moving.host[kept], moving.arrival[kept]),
    )
