"""What weft is to show beyond the paper: every size, workflows and random dags."""

from __future__ import annotations

from weft.experiments.ic_cases import name_of
from weft.experiments.ic_plays import FIFO, HEURISTICS, ICO, Columns
from weft.experiments.ic_tables import OtherRow, Tables
from weft.experiments.selective_claims import Verdict


def other_verdicts(measured: Tables, simulator: str) -> list[Verdict]:
    """All of them."""
    found = [every_size(family, sizes, simulator) for family, sizes in measured.every.items()]
    if measured.others:
        found += [on_average(measured.others, simulator, what) for what in ("area", "phases")]
    return found


def every_size(family: str, sizes: Columns, simulator: str) -> Verdict:
    """ICO succeeds on each size, and no play of a heuristic has a larger area."""
    failed = sum(not proved for proved in sizes["optimal"])
    behind = sum(ahead < 0 for ahead in sizes["ahead"])
    figures = (
        f"{len(sizes['n'])} sizes up to {max(sizes['n']):,.0f} vertices: ICO failed on {failed}, "
        f"a play had a larger area on {behind}"
    )
    claim = f"{name_of(family)}: ICO succeeds, and no play of a heuristic has a larger area"
    return Verdict(claim, simulator, failed == behind == 0, figures)


def on_average(rows: list[OtherRow], simulator: str, what: str) -> Verdict:
    """The order is not behind FIFO on average on dags that were not made for it."""
    at = ("area", "phases").index(what)
    sign = 1 if what == "area" else -1
    behind = [r for r in rows if sign * (r.schedulers[ICO][at] - r.schedulers[FIFO][at]) < 0]
    count = len(rows)
    ratios = {
        name: sum(r.schedulers[name][at] / r.schedulers[ICO][at] for r in rows) / count
        for name in HEURISTICS
    }
    listed = ", ".join(f"{name.upper()} {ratio:.3f}" for name, ratio in ratios.items())
    figures = f"of ICO's {what}, mean over {count} kinds: {listed}; behind FIFO on {len(behind)}"
    figures += f": {', '.join(row.dag for row in behind)}" if behind else ""
    words = "area is never below" if what == "area" else "phases are never above"
    claim = f"workflows and random dags: `ico`'s {words} FIFO's on average"
    holds = ratios[FIFO] <= 1 if what == "area" else ratios[FIFO] >= 1
    return Verdict(claim, simulator, holds, figures)
