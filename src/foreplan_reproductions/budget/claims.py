"""The claims of Sakellariou, Zhao, Tsiakkouri and Dikaiakos, each with a verdict; and ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from foreplan.arrays import BoolArray, FloatArray
from foreplan.model.money import ROUNDING
from foreplan_reproductions.budget.cases import FAMILY_NAMES, KS
from foreplan_reproductions.budget.runs import (
    BEST,
    CHEAPEST,
    FAITHFUL,
    FIRST,
    FROM_HBMCT,
    GAINS,
    LOSSES,
    MOVED,
    PLANS,
    RUN,
    STRATEGIES,
    WAYS,
    Columns,
    Way,
    careful,
)
from foreplan_reproductions.budget.tables import EVERY, SAME, Careful, Part, Tables
from foreplan_reproductions.reports import Figure, Verdict


@dataclass(frozen=True)
class RunRow:
    """One way to run: overspending is in % of the budget.

    Mean, median and worst are of the runs that ended over it, `spent` is the mean of all.
    """

    strategy: str
    kept: str
    runs: int
    over: int
    over_percent: float
    mean: float
    median: float
    worst: float
    spent: float
    avoidable: int  # of those over: the cheapest way all along would have kept the budget
    cost: float  # mean, in % of the budget
    makespan: float  # mean, in % of the cheapest assignment's as planned
    replans: float


def run_rows(runs: Sequence[Columns]) -> Iterator[RunRow]:
    """All ways to run."""
    hopeless = _over(runs, CHEAPEST_WAY)
    for way in WAYS:
        over, beyond = _over(runs, way), _beyond(runs, way)
        kept = way.name.partition("|")[2]
        makespan = _column(runs, way, "makespan") / _ends(runs, "cheapest")
        yield RunRow(
            way.strategy, kept, len(over), int(over.sum()), 100 * float(over.mean()),
            *_spread(beyond[over]), float(np.maximum(beyond, 0.0).mean()),
            int(np.count_nonzero(over & ~hopeless)),
            100 + float(beyond.mean()), 100 * float(makespan.mean()),
            float(_column(runs, way, "replans").mean()),
        )  # fmt: skip


def run_verdicts(runs: Sequence[Columns], simulator: str) -> list[Verdict]:
    """For every strategy: the budget kept at run time against the same plan without."""
    runs = held(runs)
    return [
        _less_over(runs, strategy, kept, simulator)
        for strategy in STRATEGIES
        for kept in (FIRST, PLANS)
    ]


def _less_over(runs: Sequence[Columns], strategy: str, kept: str, simulator: str) -> Verdict:
    """Fewer runs over budget, and less money over it in all."""
    mine, other = Way(strategy, RUN), Way(strategy, kept)
    over, over_other = _over(runs, mine), _over(runs, other)
    money, money_other = (
        float(np.maximum(_beyond(runs, way), 0.0).mean()) for way in (mine, other)
    )
    figures = (
        f"over {int(over.sum())} against {int(over_other.sum())} of {len(over)} (the cheapest way "
        f"all along: {int(_over(runs, CHEAPEST_WAY).sum())}); only with run-time budgeting "
        f"{int((over & ~over_other).sum())}, only without {int((~over & over_other).sum())}; over "
        f"by {money:.2f}% of the budget against {money_other:.2f}%, over all runs"
    )
    claim = f"{strategy} ends over budget less often and by less than with the budget {kept} only"
    holds = over.sum() < over_other.sum() and money < money_other
    return Verdict(claim, simulator, bool(holds), figures)


CHEAPEST_WAY = Way("static", CHEAPEST)


def held(runs: Sequence[Columns]) -> list[Columns]:
    """The runs that were held; the others had nothing between cheapest and HEFT."""
    return [columns for columns in runs if "budget" in columns]


def _column(runs: Sequence[Columns], way: Way, metric: str) -> FloatArray:
    return np.array([columns[f"{way.name}|{metric}"][0] for columns in runs])


def _ends(runs: Sequence[Columns], name: str) -> FloatArray:
    return np.array([columns[name][0] for columns in runs])


def _beyond(runs: Sequence[Columns], way: Way) -> FloatArray:
    """By how much the cost is above the budget, in % of it."""
    return 100 * (_column(runs, way, "cost") / _ends(runs, "budget") - 1)


def _over(runs: Sequence[Columns], way: Way) -> BoolArray:
    over: BoolArray = _beyond(runs, way) > 100 * ROUNDING
    return over


def _spread(values: FloatArray) -> tuple[float, float, float]:
    if len(values) == 0:
        return 0.0, 0.0, 0.0
    return float(values.mean()), float(np.median(values)), float(values.max())


NEAR_START = 0.8  # of the way from the cheapest assignment to HEFT, at the largest budget
LONGER = 1.05  # times as long: less is noise
ALIKE = 1.5  # times as long from type to type
CHEAP_END, DEAR_END = KS[0], KS[-1]

RELATED, UNRELATED, TIMES, RUNS, OURS = "related", "unrelated", "times", "runs", "ours"
SIMULATORS = {
    RELATED: "related machines",
    UNRELATED: "unrelated machines",
    TIMES: "processor time, FFT",
    RUNS: "simulated runs",
    OURS: "beside the paper",
}


def verdicts(measured: Tables) -> list[Verdict]:
    """The paper's claims in its order, then what is asked of the variants beside them."""
    pairs, parts = list(zip(LOSSES, GAINS, strict=True)), by_machines(measured)
    found = [loss_ahead(parts, way, *pair) for pair in pairs for way in parts]
    found += [near_start(parts, way, n) for n in (*LOSSES, *FROM_HBMCT) for way in parts]
    found += [gain_ahead(parts, way, loss) for loss in LOSSES for way in parts]
    found += [gain_longer(measured, *pair) for pair in pairs]
    found += [recomputing(measured, loss) for loss in ("LOSS1", "LOSS2")]
    found += [longer_when(measured, name, CHEAP_END, DEAR_END) for name in (*LOSSES, *FROM_HBMCT)]
    found += [longer_when(measured, name, DEAR_END, CHEAP_END) for name in GAINS]
    found += [types_alike(measured)]
    rows = list(measured.careful())
    found += [at_least_as_good(name, rows) for name in FAITHFUL]
    found += [best(measured), within_budget(measured)]
    return found + run_verdicts(measured.runs, RUNS)


def by_machines(measured: Tables) -> dict[str, Part]:
    """The figures on related and on unrelated machines."""
    return {RELATED: measured.figures, UNRELATED: measured.beside}


def loss_ahead(parts: Mapping[str, Part], way: str, loss: str, gain: str) -> Verdict:
    """LOSS has a generally better makespan: over all types and budgets."""
    part = parts[way]
    figure = part.ahead(loss, gain)
    cells = [part.ahead(loss, gain, (f,), (k,)) for f in EVERY for k in KS]
    by_k = "; ".join(f"{k:g}: {part.ahead(loss, gain, EVERY, (k,)).value:+.2f}" for k in KS)
    figures = (
        f"{shown(figure)} over all; ahead in {sum(c.value > 0 for c in cells)} of {len(cells)} "
        f"cells, beyond chance in {sum(c.above for c in cells)}, behind beyond chance in "
        f"{sum(c.below for c in cells)}; by k: {by_k}"
    )
    published = 'Figures 3 and 5: LOSS "generally better makespan than the GAIN variants"'
    claim = f"{loss} is generally ahead of {gain}"
    return Verdict(claim, way, figure.above, figures, published)


def near_start(parts: Mapping[str, Part], way: str, name: str) -> Verdict:
    """LOSS comes near HEFT or HBMCT, whose value is 1, as the budget allows."""
    part = parts[way]
    last = {f: part.mean(name, (f,), (DEAR_END,)).value for f in EVERY}
    means = [part.mean(name, EVERY, (k,)).value for k in KS]
    grows = all(after >= before - SAME for before, after in pairwise(means))
    figures = f"at k = {DEAR_END:g}: {_by_family(last)}; by k: {_listed(means)}"
    claim = f"{name} rises with the budget to at least {NEAR_START:g} at k = {DEAR_END:g}"
    number = 4 if name in FROM_HBMCT else 3
    published = f'Figure {number}: "close to the baseline performance" (1)'
    return Verdict(claim, way, grows and means[-1] >= NEAR_START, figures, published)


def gain_ahead(parts: Mapping[str, Part], way: str, loss: str) -> Verdict:
    """GAIN1 is ahead where the budget is near the cheapest."""
    part = parts[way]
    figure = part.ahead("GAIN1", loss, EVERY, (CHEAP_END,))
    each = {f: part.ahead("GAIN1", loss, (f,), (CHEAP_END,)).value for f in EVERY}
    until = [k for k in KS if part.ahead("GAIN1", loss, EVERY, (k,)).above]
    stuck = float((part.values(loss, EVERY, (CHEAP_END,)) <= SAME).mean())
    figures = (
        f"{shown(figure)}; {_by_family(each, '+.2f')}; beyond chance at k = "
        f"{', '.join(f'{k:g}' for k in until) or 'none'}; {stuck:.0%} of {loss}'s plans no shorter "
        "than the cheapest"
    )
    claim = f"GAIN1 is ahead of {loss} near the cheapest budget (k = {CHEAP_END:g})"
    published = 'Figures 3 and 5: higher than "the LOSS approaches" there, or "than LOSS1 or LOSS2"'
    return Verdict(claim, way, figure.above, figures, published)


def longer_when(measured: Tables, name: str, longer: float, shorter: float) -> Verdict:
    """LOSS takes longer near the cheapest budget, GAIN near the dearest."""
    part = measured.figures
    ratio = part.seconds(name, longer) / part.seconds(name, shorter)
    moved = (part.values(name, ("fft",), (k,), MOVED).mean() for k in (longer, shorter))
    figures = (
        f"{_milliseconds(measured, name, longer)} at k = {longer:g}, "
        f"{_milliseconds(measured, name, shorter)} at k = {shorter:g}: x {ratio:.2f}; tasks moved: "
        f"{' and '.join(f'{m:.0f}' for m in moved)}"
    )
    where = "cheapest" if longer < shorter else "dearest"
    published = 'Figure 6: LOSS "takes more time" towards the cheapest, GAIN "the opposite"'
    claim = f"{name} takes longer near the {where}"
    return Verdict(claim, TIMES, ratio >= LONGER, figures, published)


def recomputing(measured: Tables, loss: str) -> Verdict:
    """LOSS3 computes its weights again and again, and takes longer."""
    ratio = _ratio(measured, "LOSS3", loss)
    figures = f"LOSS3 / {loss}: x {ratio:.2f} over all budgets"
    published = 'Figure 6: the third variant "takes longer than the other two"'
    claim = f"LOSS3 takes longer than {loss}"
    return Verdict(claim, TIMES, ratio >= LONGER, figures, published)


def gain_longer(measured: Tables, loss: str, gain: str) -> Verdict:
    """GAIN generally takes longer than LOSS."""
    ratio = _ratio(measured, gain, loss)
    part = measured.figures
    by_k = [part.seconds(gain, k) / part.seconds(loss, k) for k in KS]
    figures = f"{gain} / {loss}: x {ratio:.2f} over all budgets; by k: {_listed(by_k)}"
    published = 'Figure 6: GAIN "generally, take longer", except near the cheapest'
    claim = f"{gain} generally takes longer than {loss}"
    return Verdict(claim, TIMES, ratio >= LONGER, figures, published)


def types_alike(measured: Tables) -> Verdict:
    """The running times differ little from type to type, whatever the variant."""
    part = measured.figures
    ratio = {}
    for name in FAITHFUL:
        times = [sum(part.seconds(name, k, (family,)) for k in KS) for family in EVERY]
        ratio[name] = max(times) / min(times)
    figures = "longest type / shortest: " + ", ".join(f"{n} {x:.2f}" for n, x in ratio.items())
    published = 'section 4.2: "little difference between different types of DAGs"'
    claim = f"a type of DAGs takes at most {ALIKE:g} times as long as another"
    return Verdict(claim, TIMES, max(ratio.values()) <= ALIKE, figures, published)


def at_least_as_good(name: str, rows: Sequence[Careful]) -> Verdict:
    """The default is at least as good as the faithful variant, on average in every cell."""
    mine = [row for row in rows if row.variant == name]
    behind = [row for row in mine if row.difference < -SAME]
    worst = min(mine, key=lambda row: row.difference)
    figures = (
        f"better on average in {sum(r.difference > SAME for r in mine)} of {len(mine)} cells of "
        f"type and k (beyond chance {sum(r.verdict == 'better' for r in mine)}), worse in "
        f"{len(behind)} (beyond chance {sum(r.verdict == 'worse' for r in mine)}); worst "
        f"{worst.difference:+.3f} ± {worst.margin:.3f} ({worst.dag}, k = {worst.k:g}); plans "
        f"better, alike, worse: {sum(r.better for r in mine)}, {sum(r.same for r in mine)}, "
        f"{sum(r.worse for r in mine)}"
    )
    claim = f"{careful(name)} is at least as good as the faithful one everywhere on average"
    return Verdict(claim, OURS, not behind, figures)


def best(measured: Tables) -> Verdict:
    """best-affordable is as good as the best variant from HEFT, everywhere."""
    part = measured.figures
    names = [careful(name) for name in (*LOSSES, *GAINS)]
    top = np.max([part.values(name) for name in names], axis=0)
    ours = part.values(BEST)
    behind = int(np.count_nonzero(ours < top - SAME))
    figures = (
        f"{ours.mean():.3f} on average, the best careful variant of each plan {top.mean():.3f}; "
        f"behind it in {behind} of {ours.size} plans; by k: "
        f"{_listed([part.mean(BEST, EVERY, (k,)).value for k in KS])}"
    )
    return Verdict(f"{BEST} is never behind a careful variant", OURS, behind == 0, figures)


def within_budget(measured: Tables) -> Verdict:
    """No plan costs more than its budget."""
    parts = [measured.figures, measured.beside, *measured.sweep.values()]
    plans, over = sum(p.plans for p in parts), sum(p.over for p in parts)
    figures = f"{over} of {plans:,} plans, with those on unrelated machines and of the sweep"
    return Verdict("no plan costs more than its budget", OURS, over == 0, figures)


def _ratio(measured: Tables, one: str, other: str) -> float:
    """How many times as long one takes, over all budgets together."""
    mine, base = (sum(measured.figures.seconds(name, k) for k in KS) for name in (one, other))
    return mine / base


def _milliseconds(measured: Tables, name: str, k: float) -> str:
    return f"{1000 * measured.figures.seconds(name, k):.2f} ms"


def _by_family(values: dict[str, float], form: str = ".2f") -> str:
    return ", ".join(f"{FAMILY_NAMES[family]} {value:{form}}" for family, value in values.items())


def _listed(values: Sequence[float]) -> str:
    return " ".join(f"{value:.2f}" for value in values)


def shown(figure: Figure) -> str:
    """A difference, with its interval."""
    return f"{figure.value:+.3f} ± {figure.margin:.3f}"
