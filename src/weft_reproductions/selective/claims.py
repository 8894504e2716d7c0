"""The claims of Zhao and Sakellariou, each with a verdict from what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from weft_reproductions.reports import Verdict
from weft_reproductions.selective.runs import (
    EVENTS,
    FIGURE4_TASKS,
    PLANNERS,
    QOIS,
    RESCHEDULING,
    SEQUENTIAL,
    TABLE_TASKS,
)
from weft_reproductions.selective.tables import Figure3Row, Figure4Row, Table1Row, Tables

NEAR = 0.03  # of always's makespan
FEW = 0.20  # of the tasks
CHEAP = 0.25  # of always's running time
ALIKE = 1.0  # new plans more or less than published

SELECTIVE = ("slack", "spare")
SIMULATORS = {EVENTS: "event by event", SEQUENTIAL: "the paper's loop"}


def verdicts(measured: Tables) -> list[Verdict]:
    """All claims, in the paper's order; those about makespans and counts in both simulators."""
    found = []
    for simulator in SIMULATORS:
        found += [near_always(measured.figure3, simulator, s) for s in SELECTIVE]
        found += [not_better(measured.figure3, simulator, s) for s in SELECTIVE]
        found += [few_replans(measured.table1, simulator, s) for s in SELECTIVE]
        found += [as_published(measured.table1, simulator, s) for s in SELECTIVE]
        found.append(slack_replans_less(measured.table1, simulator))
        found.append(short_of_ideal(measured.figure3, simulator))
    found.append(error_widens_gap(measured.figure3))
    found += [cheap(measured.table1, s) for s in SELECTIVE]
    found.append(always_grows_faster(measured.figure4))
    order = {claim: k for k, claim in reversed(list(enumerate(v.claim for v in found)))}
    return sorted(found, key=lambda v: order[v.claim])


def near_always(rows: Sequence[Figure3Row], simulator: str, strategy: str) -> Verdict:
    """Mean makespan at most 3% longer than always, per planner and QoI."""
    ratios = _ratios(rows, simulator, strategy)
    worst = max(ratios, key=lambda key: ratios[key])
    most = ratios[worst]
    over = sorted({planner.upper() for (planner, _), r in ratios.items() if r > 1 + NEAR})
    figures = f"longest {_percent(most - 1)} ({_at(worst)})"
    figures += f"; beyond it: {', '.join(over)}" if over else ""
    claim = f"{strategy} takes no more than 3% longer than always"
    return Verdict(claim, simulator, not over, figures)


def not_better(rows: Sequence[Figure3Row], simulator: str, strategy: str) -> Verdict:
    """Mean makespan at most 3% shorter than always: "comparable" is meant both ways."""
    ratios = _ratios(rows, simulator, strategy)
    best = min(ratios, key=lambda key: ratios[key])
    below = sorted({planner.upper() for (planner, _), r in ratios.items() if r < 1 - NEAR})
    figures = f"shortest {_percent(ratios[best] - 1)} ({_at(best)})"
    figures += f"; beyond it: {', '.join(below)}" if below else ""
    claim = f"{strategy} is no more than 3% shorter than always"
    return Verdict(claim, simulator, not below, figures)


def few_replans(rows: Sequence[Table1Row], simulator: str, strategy: str) -> Verdict:
    """New plans for at most 20% of the tasks, per planner."""
    counts = _replans(rows, simulator, strategy)
    most = max(counts.values()) / TABLE_TASKS
    figures = f"{_listed(counts, '{:.1f}')} of 49: at most {most:.0%} of the tasks"
    return Verdict(
        f"{strategy} makes a new plan for at most 20% of the tasks", simulator, most <= FEW, figures
    )


def as_published(rows: Sequence[Table1Row], simulator: str, strategy: str) -> Verdict:
    """The number of new plans is that of Table 1, within 1, per planner."""
    counts = _replans(rows, simulator, strategy)
    published = {r.planner: r.published_replans for r in rows if r.strategy == strategy}
    off = {planner: counts[planner] - published[planner] for planner in PLANNERS}
    holds = all(abs(difference) <= ALIKE for difference in off.values())
    figures = f"ours - published: {_listed(off, '{:+.1f}')}"
    claim = f"{strategy} makes as many new plans as published, within 1"
    return Verdict(claim, simulator, holds, figures)


def slack_replans_less(rows: Sequence[Table1Row], simulator: str) -> Verdict:
    """Slack makes fewer new plans than spare, for every planner."""
    slack, spare = (_replans(rows, simulator, strategy) for strategy in SELECTIVE)
    ratio = {planner: slack[planner] / spare[planner] for planner in PLANNERS if spare[planner]}
    holds = all(slack[planner] < spare[planner] for planner in PLANNERS)
    figures = f"slack / spare: {_listed(ratio, '{:.2f}')}"
    return Verdict("slack makes fewer new plans than spare", simulator, holds, figures)


def short_of_ideal(rows: Sequence[Figure3Row], simulator: str) -> Verdict:
    """Rescheduling does not reach the ideal, planned post mortem."""
    mean = _makespans(rows, simulator)
    ratios = {
        (planner, qoi, strategy): mean[planner, qoi, strategy] / mean[planner, qoi, "ideal"]
        for planner in PLANNERS
        for qoi in QOIS
        for strategy in RESCHEDULING
    }
    best = min(ratios, key=lambda key: ratios[key])
    below = sorted({key[0].upper() for key, ratio in ratios.items() if ratio < 1})
    figures = f"nearest {_percent(ratios[best] - 1)} ({best[2]}, {_at(best[:2])})"
    figures += f"; better than ideal: {', '.join(below)}" if below else ""
    return Verdict("rescheduling falls short of the ideal", simulator, not below, figures)


def error_widens_gap(rows: Sequence[Figure3Row]) -> Verdict:
    """The larger the QoI error, the larger static - ideal, at every step and for every planner.

    The two make no new plan, and both simulators give them the same makespan.
    """
    mean = _makespans(rows, EVENTS)
    gaps = {
        planner: [mean[planner, qoi, "static"] - mean[planner, qoi, "ideal"] for qoi in QOIS]
        for planner in PLANNERS
    }
    holds = all(a < b for gap in gaps.values() for a, b in pairwise(gap))
    text = {planner: " ".join(f"{g:.0f}" for g in gap) for planner, gap in gaps.items()}
    figures = "static - ideal: " + "; ".join(f"{p.upper()} {t}" for p, t in text.items())
    return Verdict("larger QoI error, larger static - ideal", EVENTS, holds, figures)


def cheap(rows: Sequence[Table1Row], strategy: str) -> Verdict:
    """Running time at most 25% of always's, per planner."""
    shares = {row.planner: row.time_of_always for row in rows if row.strategy == strategy}
    holds = all(share <= CHEAP for share in shares.values())
    figures = f"{_listed(shares, '{:.0%}')} of always"
    return Verdict(f"{strategy} runs in at most 25% of the time of always", EVENTS, holds, figures)


def always_grows_faster(rows: Sequence[Figure4Row]) -> Verdict:
    """From 10 to 50 tasks the running time of always grows more than that of slack and spare."""
    took = {(r.planner, r.tasks, r.strategy): r.milliseconds for r in rows}
    first, last = FIGURE4_TASKS[0], FIGURE4_TASKS[-1]
    growth = {
        (planner, strategy): took[planner, last, strategy] - took[planner, first, strategy]
        for planner in PLANNERS
        for strategy in RESCHEDULING
    }
    holds = all(growth[p, "always"] > growth[p, s] for p in PLANNERS for s in SELECTIVE)
    figures = "ms more for always, slack, spare: " + "; ".join(
        f"{p.upper()} " + " ".join(f"{growth[p, s]:.1f}" for s in RESCHEDULING) for p in PLANNERS
    )
    claim = "from 10 to 50 tasks, always grows faster than slack and spare"
    return Verdict(claim, EVENTS, holds, figures)


def _ratios(
    rows: Sequence[Figure3Row], simulator: str, strategy: str
) -> dict[tuple[str, float], float]:
    return {
        (r.planner, r.qoi): r.of_always if simulator == EVENTS else r.sequential_of_always
        for r in rows
        if r.strategy == strategy
    }


def _makespans(rows: Sequence[Figure3Row], simulator: str) -> dict[tuple[str, float, str], float]:
    return {
        (r.planner, r.qoi, r.strategy): r.makespan if simulator == EVENTS else r.sequential_makespan
        for r in rows
    }


def _replans(rows: Sequence[Table1Row], simulator: str, strategy: str) -> dict[str, float]:
    return {
        r.planner: r.replans if simulator == EVENTS else r.sequential_replans
        for r in rows
        if r.strategy == strategy
    }


def _listed(values: dict[str, float], form: str) -> str:
    return ", ".join(f"{planner.upper()} {form.format(v)}" for planner, v in values.items())


def _percent(share: float) -> str:
    return f"{share:+.1%}"


def _at(key: Sequence[object]) -> str:
    return f"{str(key[0]).upper()}, QoI {key[1]:.0%}"
