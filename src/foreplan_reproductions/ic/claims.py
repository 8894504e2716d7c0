"""What Hall, Rosenberg and Venkataramani say, each with a verdict; and what foreplan is to show."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from foreplan_reproductions.ic.cases import COMPOSED, EVOLVING, FFT, Q2, REDUCTION, W, name_of
from foreplan_reproductions.ic.plays import (
    FIFO,
    GREEDY,
    HEURISTICS,
    ICO,
    KNOWN,
    LIFO,
    MEANS,
    Columns,
)
from foreplan_reproductions.ic.tables import (
    FITTED,
    HIGHEST,
    HULL,
    AreaRow,
    FitRow,
    OtherRow,
    PhaseRow,
    RunRow,
    Tables,
    against,
    usual,
    workflows,
)
from foreplan_reproductions.ic.volunteers import STRATEGIES, application
from foreplan_reproductions.reports import Figure, Verdict

GAME, BATCHED, VOLUNTEERS = "game", "batched", "volunteers"
SIMULATORS = {GAME: "step by step", BATCHED: "in batches", VOLUNTEERS: "event by event"}

PUBLISHED_B = 1.7  # of the FFT, for all three
PUBLISHED_A = {FIFO: 0.023, LIFO: 0.11, GREEDY: 0.023}
NEAR = 0.15  # about 1.7
SAME_RATIO = 0.2
LEAST_B = 2.0  # of the compositions' hulls
ALIKE = 5.0  # % of ICO's area: heuristics that are closer perform almost identically
CONSIDERABLE = 20.0  # % of ICO's area


def verdicts(measured: Tables) -> list[Verdict]:
    """All claims: those of the paper in its order, then what else foreplan is to show."""
    return [
        *area_verdicts(measured),
        *batch_verdicts(measured, BATCHED),
        *other_verdicts(measured, GAME),
        *volunteer_verdicts(measured.runs, VOLUNTEERS),
    ]


def area_verdicts(measured: Tables) -> list[Verdict]:
    """Section 5.1."""
    found = [grows(measured, family) for family in (FFT, REDUCTION, EVOLVING)]
    found += [fft_exponent(measured), fft_coefficients(measured)]
    found += [fft_order(measured), reduction(measured), evolving(measured)]
    found += [hull_exponents(measured, family) for family in COMPOSED]
    found += [greedy_best(measured, family) for family in COMPOSED]
    return [*found, greedy_on_w(measured), fifo_on_w(measured), cliques(measured)]


def grows(measured: Tables, family: str) -> Verdict:
    """The difference of the normalised areas grows with the dag, wherever there is one."""
    fits = [fit for name in HEURISTICS if (fit := measured.fit(family, name)) is not None]
    behind = {name for name in HEURISTICS if measured.points(family, name)[1].any()}
    exponents = ", ".join(f"{fit.heuristic} v^{fit.b_normalised:.2f}" for fit in fits)
    none = [name for name in HEURISTICS if name not in behind]
    figures = f"normalised: {exponents or 'no difference'}"
    figures += f"; no difference at all: {', '.join(none)}" if none else ""
    holds = bool(fits) and all(fit.b_normalised > 0 for fit in fits)
    return _verdict(f"ICO's advantage grows with the size: {name_of(family)}", holds, figures)


def fft_exponent(measured: Tables) -> Verdict:
    """All three lag by a v^1.7 on the FFT."""
    fits = {name: measured.fit(FFT, name) for name in HEURISTICS}
    holds = all(f is not None and abs(f.b - PUBLISHED_B) <= NEAR for f in fits.values())
    listed = "; ".join(
        f"{name} {shown_fit(fit)} (published {PUBLISHED_A[name]:g} v^{PUBLISHED_B})"
        for name, fit in fits.items()
        if fit is not None
    )
    claim = f"FFT: the areas differ by a v^b with b about {PUBLISHED_B} for all three"
    return _verdict(claim, holds, listed or "no difference")


def fft_coefficients(measured: Tables) -> Verdict:
    """LIFO's lag on the FFT is as many times FIFO's as the published coefficients say."""
    published = PUBLISHED_A[LIFO] / PUBLISHED_A[FIFO]
    (_, fifo), (sizes, lifo) = (measured.points(FFT, name) for name in (FIFO, LIFO))
    last = int(sizes.argmax())
    ratio = float(lifo[last] / fifo[last]) if fifo[last] else float("inf")
    figures = f"{ratio:.1f} on {sizes[last]:.0f} vertices; published {published:.1f}"
    claim = f"FFT: LIFO lags {published:.1f} times as much as FIFO, within {SAME_RATIO:.0%}"
    return _verdict(claim, abs(ratio / published - 1) <= SAME_RATIO, figures)


def fft_order(measured: Tables) -> Verdict:
    """On the FFT GREEDY is FIFO, and LIFO is the worst."""
    apart, lag = measured.gap(FFT, FIFO, GREEDY), measured.gap(FFT, FIFO, LIFO)
    holds = not (apart.above or apart.below) and lag.above
    figures = f"FIFO ahead of GREEDY by {shown(apart)} of ICO's area, of LIFO by {shown(lag)}"
    return _verdict("FFT: GREEDY and FIFO are the same, LIFO is the worst", holds, figures)


def reduction(measured: Tables) -> Verdict:
    """On reduction meshes FIFO and GREEDY come near the optimum, LIFO lags."""
    rows = _rows(measured, REDUCTION)
    shares = {name: _share(rows, name) for name in HEURISTICS}
    holds = all(0 < shares[name] < shares[LIFO] / 2 for name in (FIFO, GREEDY))
    claim = "reduction meshes: GREEDY and FIFO do well but are not IC-optimal, LIFO lags"
    return _verdict(claim, holds, _listed(shares))


def evolving(measured: Tables) -> Verdict:
    """On evolving meshes FIFO and GREEDY are IC-optimal in every play, LIFO is not."""
    rows = _rows(measured, EVOLVING)
    off = sum(row.difference != 0 for row in rows if row.heuristic != LIFO)
    behind = sum(row.least > 0 for row in rows if row.heuristic == LIFO)
    plays = sum(row.plays for row in rows if row.heuristic != LIFO)
    sizes = len(rows) // len(HEURISTICS)
    figures = (
        f"FIFO and GREEDY below the optimum on {off} of {2 * sizes} occasions ({plays} plays); "
        f"LIFO behind in every play on {behind} of {sizes} meshes"
    )
    claim = "evolving meshes: FIFO and GREEDY are IC-optimal, LIFO lags"
    return _verdict(claim, bool(rows) and off == 0 and behind == sizes, figures)


def hull_exponents(measured: Tables, family: str) -> Verdict:
    """The lower envelopes grow faster than v^2."""
    fits = [measured.fit(family, name, HULL) for name in HEURISTICS]
    every = [measured.fit(family, name, FITTED) for name in HEURISTICS]
    # at the limit of the search there is no curve through the hull
    holds = all(fit is not None and LEAST_B < fit.b < HIGHEST - 0.01 for fit in fits)
    listed = [f"{fit.heuristic} {shown_fit(fit)}" for fit in fits if fit is not None]
    beside = [f"{fit.heuristic} v^{fit.b:.2f}" for fit in every if fit is not None]
    figures = f"{'; '.join(listed)}; through all dags {', '.join(beside)}"
    claim = f"compositions of {name_of(family)}: the lower hulls' exponents are above 2"
    return _verdict(claim, holds, figures)


def greedy_best(measured: Tables, family: str) -> Verdict:
    """GREEDY has the largest area of the three."""
    gaps = {other: measured.gap(family, GREEDY, other) for other in (FIFO, LIFO)}
    figures = "; ".join(f"ahead of {n.upper()} by {shown(gap)}" for n, gap in gaps.items())
    claim = f"compositions of {name_of(family)}: GREEDY is the best of the heuristics"
    return _verdict(claim, all(gap.above for gap in gaps.values()), f"{figures} of ICO's area")


def greedy_on_w(measured: Tables) -> Verdict:
    """On W-based dags by much."""
    gaps = [measured.gap(W, GREEDY, other) for other in (FIFO, LIFO)]
    holds = all(gap.value - gap.margin > CONSIDERABLE for gap in gaps)
    figures = f"ahead of FIFO by {shown(gaps[0])}, of LIFO by {shown(gaps[1])} of ICO's area"
    claim = "compositions of W: GREEDY is ahead by a considerable margin (over 20%)"
    return _verdict(claim, holds, figures)


def fifo_on_w(measured: Tables) -> Verdict:
    """FIFO is the weakest where there are W-dags."""
    gap = measured.gap(W, LIFO, FIFO)
    figures = f"LIFO ahead of FIFO by {shown(gap)} of ICO's area"
    return _verdict("compositions of W: FIFO is the weakest", gap.above, figures)


def cliques(measured: Tables) -> Verdict:
    """On compositions of Q2 the three are almost the same."""
    shares = {name: _share(_rows(measured, Q2), name) for name in HEURISTICS}
    holds = max(shares.values()) - min(shares.values()) < ALIKE
    claim = f"compositions of Q2: the heuristics are almost the same (within {ALIKE:g}%)"
    return _verdict(claim, holds, _listed(shares))


def shown(figure: Figure) -> str:
    """In percent, with the interval."""
    return f"{figure.value:.1f}% ± {figure.margin:.1f}"


def shown_fit(fit: FitRow) -> str:
    """The curve, with the interval of its exponent."""
    margin = "" if math.isnan(fit.margin) else f" ± {fit.margin:.2f}"
    return f"{fit.a:.2g} v^{fit.b:.2f}{margin}"


def _rows(measured: Tables, family: str) -> list[AreaRow]:
    return [row for row in measured.areas if row.family == family]


def _share(rows: list[AreaRow], heuristic: str) -> float:
    """How far behind ICO's area, in % of it, by dag."""
    shares = [100 * row.difference / row.ico for row in rows if row.heuristic == heuristic]
    return sum(shares) / len(shares) if shares else float("nan")


def _listed(shares: dict[str, float]) -> str:
    listed = ", ".join(f"{name.upper()} {share:.1f}%" for name, share in shares.items())
    return f"below ICO's area by: {listed}"


def _verdict(claim: str, holds: bool, figures: str) -> Verdict:
    return Verdict(claim, GAME, bool(holds), figures)


FEWER = 10.0  # % of the phases
MOST_FEWER = 20.0
RARE = 0.01  # of the cells
NO_AREA, NO_PHASES = 1.0, 0.01  # % of ICO's area, ratio of phases: less is no order
SLIGHT = 0.02  # a ratio that is off 1 by less is no difference to speak of


def batch_verdicts(measured: Tables, simulator: str) -> list[Verdict]:
    """All of section 5.2."""
    found = [
        fewer_phases(measured.phases, family, simulator)
        for family in COMPOSED
        if any(row.family == family for row in measured.phases)
    ]
    found += [same_order(measured, family, simulator) for family in (REDUCTION, EVOLVING, FFT)]
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


def same_order(measured: Tables, family: str, simulator: str) -> Verdict:
    """The larger the area, the fewer the phases, where they differ most."""
    areas = {name: _share(_rows(measured, family), name) for name in HEURISTICS}
    some = [row for row in measured.phases if row.family == family]
    phases = {
        name: max(np.mean([r.ratio for r in some if (r.heuristic, r.mean) == (name, mean)])
        for mean in MEANS)
        for name in HEURISTICS
    }  # fmt: skip
    pairs = [(a, b) for a in areas for b in areas if areas[a] < areas[b] - NO_AREA]
    turned = [f"{b} before {a}" for a, b in pairs if phases[a] > phases[b] + NO_PHASES]
    most = ", ".join(f"{name.upper()} {ratio:.2f}" for name, ratio in phases.items())
    figures = f"{_listed(areas)}; the greatest ratio of phases: {most}"
    figures += f"; {', '.join(turned)}" if turned else ""
    claim = f"{name_of(family)}: the order of the schedulers is the same by area and by phases"
    return Verdict(claim, simulator, not turned, figures)


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


def other_verdicts(measured: Tables, simulator: str) -> list[Verdict]:
    """All of them."""
    found = [every_size(family, sizes, simulator) for family, sizes in measured.every.items()]
    for what in ("area", "phases"):
        for real in (True, False):
            rows = [row for row in measured.others if row.real == real]
            found += [behind_none(rows, simulator, what)] if rows else []
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


DRAW = 0.1  # %: what differs by less is alike


def behind_none(rows: list[OtherRow], simulator: str, what: str) -> Verdict:
    """No known order has a larger area, or needs fewer phases, on a dag not made for ICO."""
    at = ("area", "phases").index(what)
    ahead: dict[str, list[float]] = {name: [] for name in KNOWN}  # `ico`, in %
    behind = []
    for row in rows:
        for name in KNOWN:
            mine, theirs = row.schedulers[ICO][at], row.schedulers[name][at]
            share = 100 * (1 - theirs / mine) * (1 if what == "area" else -1)
            ahead[name].append(share)
            if share < -DRAW:
                behind.append(f"{name} on {row.dag} by {-share:.1f}%")
    means = ", ".join(f"{name} {np.mean(some):.1f}%" for name, some in ahead.items())
    listed = f"behind {'; '.join(behind)}" if behind else "behind none on any"
    some = "workflow" if rows[0].real else "kind of random dag"
    claim = f"`ico` is behind no known order on any {some}: {what}"
    figures = f"on average over {len(rows)} ahead of {means}; {listed}"
    return Verdict(claim, simulator, not behind, figures)


def volunteer_verdicts(runs: Sequence[RunRow], simulator: str) -> list[Verdict]:
    """`ico` against each of the others on the usual platform, over all workflows."""
    known = [name for name in STRATEGIES if name != ICO]
    if not any(run.strategy == ICO for run in runs):
        return []
    return [ahead(runs, name, simulator) for name in known if _ran(runs, name)]


def _ran(runs: Sequence[RunRow], name: str) -> bool:
    return any(run.strategy == name for run in usual(runs))


def ahead(runs: Sequence[RunRow], name: str, simulator: str) -> Verdict:
    """Whether a strategy takes longer than `ico` in the same worlds."""
    figure = against(usual(runs), name)
    by_workflow = "; ".join(
        f"{application(name_of(workflow))} {longer(against(usual(runs, workflow), name))}"
        for workflow in workflows(runs)
    )
    figures = f"{longer(figure)}, {figure.graphs} worlds ({by_workflow})"
    claim = f"among volunteers `ico` ends before `{name}`"
    return Verdict(claim, simulator, figure.above, figures)


FEW = 4  # worlds


def longer(figure: Figure) -> str:
    """By how much longer, in %, with the interval unless there are few worlds."""
    few = figure.graphs < FEW or math.isnan(figure.margin)
    margin = "" if few else f" ± {figure.margin:.1f}"
    return f"{figure.value:+.1f}%{margin}"
