"""What Hall, Rosenberg and Venkataramani say of the areas, each with a verdict from our plays."""

from __future__ import annotations

import math

from weft.experiments.gtp_tables import Figure
from weft.experiments.ic_batch_claims import batch_verdicts
from weft.experiments.ic_cases import COMPOSED, EVOLVING, FFT, Q2, REDUCTION, W, name_of
from weft.experiments.ic_other_claims import other_verdicts
from weft.experiments.ic_plays import FIFO, GREEDY, HEURISTICS, LIFO
from weft.experiments.ic_tables import FITTED, HULL, AreaRow, FitRow, Tables
from weft.experiments.ic_volunteer_claims import volunteer_verdicts
from weft.experiments.selective_claims import Verdict

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
    """All claims: those of the paper in its order, then what else weft is to show."""
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
    holds = all(fit is not None and fit.b > LEAST_B for fit in fits)
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
