"""The claims of Zhao and Sakellariou, each with a verdict from what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from foreplan_reproductions.reports import Verdict
from foreplan_reproductions.selective.runs import (
    EVENTS,
    FIGURE4_TASKS,
    FITTED,
    FITTED_SEQUENTIAL,
    PLANNERS,
    QOIS,
    RESCHEDULING,
    SEQUENTIAL,
    TABLE_TASKS,
)
from foreplan_reproductions.selective.tables import (
    DRAWN,
    PUBLISHED,
    TIMED,
    WAYS,
    Figure3Row,
    Figure4Row,
    Table1Row,
    Tables,
)

NEAR = 0.03  # of always's makespan
FEW = 0.20  # of the tasks
CHEAP = 0.25  # of always's running time
ALIKE = 1.0  # new plans more or less than published

SELECTIVE = ("slack", "spare")
COMPARABLE = 'Figure 3: always, slack and spare "roughly comparable"'
SIMULATORS = {
    EVENTS: "square DAGs, event by event",
    SEQUENTIAL: "square DAGs, the paper's loop",
    FITTED: "fitted DAGs, event by event",
    FITTED_SEQUENTIAL: "fitted DAGs, the paper's loop",
}


def verdicts(measured: Tables) -> list[Verdict]:
    """All claims, in the paper's order, for every way that they were simulated."""
    found = []
    for way in DRAWN:
        found.append(error_widens_gap(measured.figure3, way))
        found += [near_always(measured.figure3, way, s) for s in SELECTIVE]
        found += [not_better(measured.figure3, way, s) for s in SELECTIVE]
        found.append(short_of_ideal(measured.figure3, way))
        found.append(planner_matters_most(measured.figure3, way))
    for way in WAYS:
        found += [as_published(measured.table1, way, s) for s in SELECTIVE]
        found += [few_replans(measured.table1, way, s) for s in SELECTIVE]
        found.append(slack_replans_less(measured.table1, way))
    for way in TIMED:
        found += [cheap(measured.table1, way, s) for s in SELECTIVE]
        found.append(slack_faster(measured.table1, way))
        found.append(always_grows_faster(measured.figure4, way))
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
    return Verdict(claim, simulator, not over, figures, COMPARABLE)


def not_better(rows: Sequence[Figure3Row], simulator: str, strategy: str) -> Verdict:
    """Mean makespan at most 3% shorter than always: "comparable" is meant both ways."""
    ratios = _ratios(rows, simulator, strategy)
    best = min(ratios, key=lambda key: ratios[key])
    below = sorted({planner.upper() for (planner, _), r in ratios.items() if r < 1 - NEAR})
    figures = f"shortest {_percent(ratios[best] - 1)} ({_at(best)})"
    figures += f"; beyond it: {', '.join(below)}" if below else ""
    claim = f"{strategy} is no more than 3% shorter than always"
    return Verdict(claim, simulator, not below, figures, COMPARABLE)


def few_replans(rows: Sequence[Table1Row], simulator: str, strategy: str) -> Verdict:
    """New plans for at most 20% of the tasks, per planner."""
    counts = _replans(rows, simulator, strategy)
    most = max(counts.values()) / TABLE_TASKS
    figures = f"{_listed(counts, '{:.1f}')} of 49: at most {most:.0%} of the tasks"
    claim = f"{strategy} makes a new plan for at most 20% of the tasks"
    published = 'Table 1: "no more than 20% of the total number of tasks"'
    return Verdict(claim, simulator, most <= FEW, figures, published)


def as_published(rows: Sequence[Table1Row], simulator: str, strategy: str) -> Verdict:
    """The number of new plans is that of Table 1, within 1, per planner."""
    counts = _replans(rows, simulator, strategy)
    published = {planner: PUBLISHED[planner, strategy][1] for planner in PLANNERS}
    holds = all(abs(counts[planner] - published[planner]) <= ALIKE for planner in PLANNERS)
    margin = max(r.margin for r in _rows(rows, simulator, strategy))
    figures = f"{_listed(counts, '{:.2f}')}, each ± {margin:.2f} at most"
    claim = f"{strategy} makes as many new plans as published, within 1"
    return Verdict(claim, simulator, holds, figures, f"Table 1: {_listed(published, '{:.2f}')}")


def slack_replans_less(rows: Sequence[Table1Row], simulator: str) -> Verdict:
    """Slack makes fewer new plans than spare, for every planner."""
    slack, spare = (_replans(rows, simulator, strategy) for strategy in SELECTIVE)
    ratio = {planner: slack[planner] / spare[planner] for planner in PLANNERS if spare[planner]}
    holds = all(slack[planner] < spare[planner] for planner in PLANNERS)
    figures = f"slack / spare: {_listed(ratio, '{:.2f}')}"
    theirs = {p: PUBLISHED[p, "slack"][1] / PUBLISHED[p, "spare"][1] for p in PLANNERS}
    published = f"Table 1: {_listed(theirs, '{:.2f}')}"
    return Verdict("slack makes fewer new plans than spare", simulator, holds, figures, published)


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
    published = 'Figure 3: "falls short of what can be assumed to be the ideal"'
    claim = "rescheduling falls short of the ideal"
    return Verdict(claim, simulator, not below, figures, published)


def error_widens_gap(rows: Sequence[Figure3Row], simulator: str) -> Verdict:
    """The larger the QoI error, the larger static - ideal, at every step and for every planner."""
    mean = _makespans(rows, simulator)
    gaps = {
        planner: [mean[planner, qoi, "static"] - mean[planner, qoi, "ideal"] for qoi in QOIS]
        for planner in PLANNERS
    }
    holds = all(a < b for gap in gaps.values() for a, b in pairwise(gap))
    text = {planner: " ".join(f"{g:.0f}" for g in gap) for planner, gap in gaps.items()}
    figures = "static - ideal: " + "; ".join(f"{p.upper()} {t}" for p, t in text.items())
    published = 'Figure 3: "larger values of the QoI error result in larger differences"'
    claim = "larger QoI error, larger static - ideal"
    return Verdict(claim, simulator, holds, figures, published)


def planner_matters_most(rows: Sequence[Figure3Row], simulator: str) -> Verdict:
    """At 50% error the planners differ by more than static, ideal and rescheduling with one."""
    mean, most = _makespans(rows, simulator), QOIS[-1]
    between = max(
        _width([mean[planner, most, strategy] for planner in PLANNERS]) for strategy in RESCHEDULING
    )
    within = {
        p: _width([mean[p, most, s] for s in ("static", "ideal", *RESCHEDULING)]) for p in PLANNERS
    }
    figures = (
        f"at QoI 50%, planners {between:.1%} apart with one strategy; strategies with one planner: "
        f"{_listed(within, '{:.1%}')}"
    )
    published = 'Figure 3: "the scheduling algorithm chosen has the highest impact"'
    claim = "the planner matters more than the strategy"
    return Verdict(claim, simulator, between > max(within.values()), figures, published)


def cheap(rows: Sequence[Table1Row], simulator: str, strategy: str) -> Verdict:
    """Running time at most 25% of always's, per planner."""
    shares = _times(rows, simulator, strategy)
    holds = all(share <= CHEAP for share in shares.values())
    added = {r.planner: r.added_time_of_always for r in _rows(rows, simulator, strategy)}
    figures = f"{_listed(shares, '{:.0%}')}; without static's time {_listed(added, '{:.0%}')}"
    theirs = {p: PUBLISHED[p, strategy][0] / PUBLISHED[p, "always"][0] for p in PLANNERS}
    claim = f"{strategy} runs in at most 25% of the time of always"
    return Verdict(claim, simulator, holds, figures, f"Table 1: {_listed(theirs, '{:.0%}')}")


def slack_faster(rows: Sequence[Table1Row], simulator: str) -> Verdict:
    """Slack takes less time than spare, for every planner."""
    slack, spare = (_times(rows, simulator, strategy) for strategy in SELECTIVE)
    ratio = {planner: slack[planner] / spare[planner] for planner in PLANNERS}
    theirs = {p: PUBLISHED[p, "slack"][0] / PUBLISHED[p, "spare"][0] for p in PLANNERS}
    holds = all(r < 1 for r in ratio.values())
    figures, published = (f"slack / spare: {_listed(r, '{:.2f}')}" for r in (ratio, theirs))
    claim = "slack is faster than spare"
    return Verdict(claim, simulator, holds, figures, f"Table 1: {published}")


def always_grows_faster(rows: Sequence[Figure4Row], simulator: str) -> Verdict:
    """From 10 to 50 tasks the running time of always grows more than that of slack and spare."""
    took = {(r.planner, r.tasks, r.strategy): r.milliseconds for r in rows if r.way == simulator}
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
    published = 'Figure 4: always "leads to faster increases in the running time"'
    return Verdict(claim, simulator, holds, figures, published)


def _ratios(
    rows: Sequence[Figure3Row], simulator: str, strategy: str
) -> dict[tuple[str, float], float]:
    return {
        (r.planner, r.qoi): r.of_always
        for r in rows
        if (r.way, r.strategy) == (simulator, strategy)
    }


def _makespans(rows: Sequence[Figure3Row], simulator: str) -> dict[tuple[str, float, str], float]:
    return {(r.planner, r.qoi, r.strategy): r.makespan for r in rows if r.way == simulator}


def _replans(rows: Sequence[Table1Row], simulator: str, strategy: str) -> dict[str, float]:
    return {r.planner: r.replans for r in _rows(rows, simulator, strategy)}


def _times(rows: Sequence[Table1Row], simulator: str, strategy: str) -> dict[str, float]:
    return {r.planner: r.time_of_always for r in _rows(rows, simulator, strategy)}


def _rows(rows: Sequence[Table1Row], simulator: str, strategy: str) -> list[Table1Row]:
    return [r for r in rows if (r.way, r.strategy) == (simulator, strategy)]


def _width(values: Sequence[float]) -> float:
    return max(values) / min(values) - 1


def _listed(values: dict[str, float], form: str) -> str:
    return ", ".join(f"{planner.upper()} {form.format(v)}" for planner, v in values.items())


def _percent(share: float) -> str:
    return f"{share:+.1%}"


def _at(key: Sequence[object]) -> str:
    return f"{str(key[0]).upper()}, QoI {key[1]:.0%}"
