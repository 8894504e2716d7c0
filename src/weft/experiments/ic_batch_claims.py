"""What the paper says of the batched game (section 5.2), each with a verdict."""

from __future__ import annotations

import numpy as np

from weft.experiments.ic_cases import COMPOSED, name_of
from weft.experiments.ic_plays import HEURISTICS, MEANS
from weft.experiments.ic_tables import PhaseRow, Tables
from weft.experiments.selective_claims import Verdict

FEWER = 10.0  # % of the phases
MOST_FEWER = 20.0
RARE = 0.01  # of the cells
SLIGHT = 0.02  # a ratio that is off 1 by less is no difference to speak of


def batch_verdicts(measured: Tables, simulator: str) -> list[Verdict]:
    """All of section 5.2."""
    found = [
        fewer_phases(measured.phases, family, simulator)
        for family in COMPOSED
        if any(row.family == family for row in measured.phases)
    ]
    return [*found, hump(measured.phases, simulator), rarely_worse(measured.phases, simulator)]


def saved(row: PhaseRow) -> float:
    """How many phases less ICO needs, in %."""
    return 100 * (1 - 1 / row.ratio)


def peaks(rows: list[PhaseRow], heuristic: str) -> dict[int, PhaseRow]:
    """By dag, where the ratio of a heuristic is greatest."""
    found: dict[int, PhaseRow] = {}
    for row in rows:
        if row.heuristic == heuristic and (
            row.dag not in found or row.ratio > found[row.dag].ratio
        ):
            found[row.dag] = row
    return found


def fewer_phases(rows: list[PhaseRow], family: str, simulator: str) -> Verdict:
    """ICO needs 10% to 20% less phases in some range of request sizes, or even less."""
    some = [row for row in rows if row.family == family]
    best: dict[str, float] = {}
    parts = []
    for name in HEURISTICS:
        found = list(peaks(some, name).values())
        best[name] = float(np.median([saved(row) for row in found]))
        where = ", ".join(str(mean) for mean in sorted({row.mean for row in found}))
        parts.append(f"{name.upper()} {best[name]:.1f}% (at {where})")
    reached = [name for name, value in best.items() if value >= FEWER]
    beyond = [name for name, value in best.items() if value > MOST_FEWER]
    figures = f"at most, in the median over dags: {'; '.join(parts)}"
    figures += f"; more than {MOST_FEWER:g}% against {', '.join(beyond)}" if beyond else ""
    claim = (
        f"compositions of {name_of(family)}: {FEWER:g}% to {MOST_FEWER:g}% fewer phases (or more) "
        "than the heuristics over a range of request sizes"
    )
    return Verdict(claim, simulator, len(reached) == len(HEURISTICS), figures)


def hump(rows: list[PhaseRow], simulator: str) -> Verdict:
    """The order matters only between very small and very large requests."""
    ends = [row.ratio for row in rows if row.mean in (MEANS[0], MEANS[-1])]
    inner = [row.ratio for row in rows if row.mean not in (MEANS[0], MEANS[-1])]
    by_mean = {mean: np.mean([r.ratio for r in rows if r.mean == mean]) for mean in MEANS}
    top = max(by_mean, key=lambda mean: by_mean[mean])
    figures = (
        f"mean ratio {by_mean[MEANS[0]]:.3f} at {MEANS[0]}, {by_mean[top]:.3f} at {top}, "
        f"{by_mean[MEANS[-1]]:.3f} at {MEANS[-1]}; greatest at the ends {max(ends):.2f}, between "
        f"{max(inner):.2f}"
    )
    outer = max(by_mean[MEANS[0]], by_mean[MEANS[-1]])
    holds = top not in (MEANS[0], MEANS[-1]) and by_mean[top] - 1 > 2 * (outer - 1)
    claim = "schedulers differ between the extremes of the request sizes, hardly at them"
    return Verdict(claim, simulator, bool(holds), figures)


def rarely_worse(rows: list[PhaseRow], simulator: str) -> Verdict:
    """ICO needs more phases than a heuristic in rare cases only."""
    below = [row for row in rows if row.ratio + row.margin < 1]
    clearly = [row for row in below if row.ratio < 1 - SLIGHT]
    worst = min(rows, key=lambda row: row.ratio)
    figures = (
        f"beyond chance in {len(below)} of {len(rows)} cells, by more than {SLIGHT:.0%} in "
        f"{len(clearly)}; least ratio {worst.ratio:.3f} ({worst.heuristic.upper()}, "
        f"{name_of(worst.family)} of {worst.vertices} vertices, mean {worst.mean}); "
        "published: one instance"
    )
    claim = f"ICO is never behind but for rare cases (at most {RARE:.0%} of the cells)"
    return Verdict(claim, simulator, len(below) <= RARE * len(rows), figures)
