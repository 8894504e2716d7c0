"""The claims of Hernandez and Cole, each with a verdict from what was measured."""

from __future__ import annotations

from collections import defaultdict
from math import hypot
from statistics import fmean

from foreplan_reproductions.gtp.cases import MAIN_CCR
from foreplan_reproductions.gtp.runs import DLS, DLS_PEAK, GTP, GTPC, GTPCR, GTPR, HEFT
from foreplan_reproductions.gtp.tables import NSL, OVERHEAD, PUBLISHED, Key, Tables
from foreplan_reproductions.gtp.units import (
    BY_PLANNER,
    CALM,
    FAILURE,
    GRID_BOUND,
    GRID_BOUND_FAILURE,
)
from foreplan_reproductions.reports import Figure, Verdict

ALIKE = 2.0  # percentage points
LOW = 0.2  # what is called low variability
FEW = 100  # what are called few tasks
NEARLY_ALL = 0.9  # of the cells: some are behind by chance

EVENTS = "events"
SIMULATORS = {EVENTS: "event by event"}
COMPETITORS = (HEFT, DLS, GTP)
METRIC_NAMES = {
    NSL: "NSL",
    "migrated": "migrated tasks",
    "remappings": "remappings",
    OVERHEAD: "overhead",
    "rewound": "rewound tasks",
    "levels": "rewound levels",
}
# What GTP/r is said to need more than GTP/c/r, in % at most.
MORE = {"levels": 3.0, "rewound": 4.0, OVERHEAD: 3.0}


def verdicts(measured: Tables) -> list[Verdict]:
    """All claims, in the paper's order."""
    found = [unvaried(measured, name) for name in (DLS, GTP, GTPC)]
    for over in COMPETITORS:
        found += beaten(measured, CALM, GRID_BOUND, GTPC, over)
        found.append(grows(measured, CALM, GTPC, over))
    found += beaten(measured, BY_PLANNER, GRID_BOUND, GTPC, DLS_PEAK)
    found += [exceptions(measured, over) for over in COMPETITORS]
    found += [larger(measured, over) for over in COMPETITORS]
    found += [fewer(measured, metric) for metric in ("remappings", "migrated", OVERHEAD)]
    found += beaten(measured, FAILURE, GRID_BOUND_FAILURE, GTPCR, GTPR)
    found += [grows(measured, FAILURE, GTPCR, GTPR), most_cases(measured)]
    return found + [rewinds_more(measured, metric) for metric in MORE]


def unvaried(measured: Tables, strategy: str) -> Verdict:
    """Where nothing varies, a reactive strategy is better than HEFT."""
    gain = measured.gain(measured.main(CALM, 0.0), strategy, HEFT)
    return _verdict(f"at 0% {strategy} is better than HEFT", gain.above, shown(gain))


def beaten(measured: Tables, part: str, bound: float, mine: str, over: str) -> list[Verdict]:
    """One strategy is better than another on average, and by as much as published.

    "Up to" so much is taken for the best of ten graphs.
    """
    key, value = measured.main(part, bound), PUBLISHED[part, bound, mine, over]
    gain, best = measured.gain(key, mine, over), measured.best(key, mine, over)
    words = published_words(part, value)
    near = abs(gain.value - value) <= max(ALIKE, gain.margin)
    by = f"by {words}, within 2% or the interval"
    if part != FAILURE:
        near = abs(best.of_ten - value) <= ALIKE
        by = f"by {words}, within 2%: the best of ten graphs"
    figures = (
        f"{shown(gain)} on average, best of ten {best.of_ten:.1f}%, maximum {best.of_all:.1f}%; "
        f"published {words}"
    )
    claim = f"at {bound:.0%} {mine} beats {over}"
    return [_verdict(claim, gain.above, figures), _verdict(f"{claim} {by}", near, figures)]


def grows(measured: Tables, part: str, mine: str, over: str) -> Verdict:
    """The gain rises with the bound, by a line fitted to each graph."""
    slope = measured.slope(part, mine, over)
    keys = measured.keys(part, measured.main_size, MAIN_CCR)
    listed = "; ".join(
        f"{key.value:.0%}: {measured.gain(key, mine, over).value:.1f}%" for key in keys
    )
    figures = f"{slope.value:+.2f} ± {slope.margin:.2f} points per 10%; {listed}"
    return _verdict(f"{mine}'s gain over {over} grows with variability", slope.above, figures)


def exceptions(measured: Tables, over: str) -> Verdict:
    """With many tasks and much variability GTP/c is the better one nearly everywhere."""
    gains = {key: measured.gain(key, GTPC, over) for key in measured.keys(CALM)}
    many = [gain for key, gain in gains.items() if key.size > FEW and key.value > LOW]
    others = [gain for key, gain in gains.items() if key.size <= FEW or key.value <= LOW]
    better, elsewhere = (sum(gain.value > 0 for gain in some) for some in (many, others))
    worst = min(gains, key=lambda key: gains[key].value)
    figures = (
        f"with more than {FEW} tasks and more than {LOW:.0%} better on average in {better} of "
        f"{len(many)} cells, beyond chance in {sum(gain.above for gain in many)}, worse beyond "
        f"chance in {sum(gain.below for gain in many)}; else better in {elsewhere} of "
        f"{len(others)}; worst {shown(gains[worst])} ({at(worst)})"
    )
    claim = f"{GTPC} loses to {over} only with few tasks or low variability"
    return _verdict(claim, better >= NEARLY_ALL * len(many), figures)


def larger(measured: Tables, over: str) -> Verdict:
    """GTP/c gains more on graphs with many tasks, over all CCRs."""
    by_size: dict[int, list[Figure]] = defaultdict(list)
    for key in measured.keys(CALM):
        if key.value == GRID_BOUND:
            by_size[key.size].append(measured.gain(key, GTPC, over))
    # the CCRs have the same graphs, so their intervals do not shrink together
    means = {
        size: Figure(fmean(g.value for g in gains), fmean(g.margin for g in gains), gains[0].graphs)
        for size, gains in by_size.items()
    }
    many, few = ([g for size, g in means.items() if (size > FEW) is big] for big in (True, False))
    listed = "; ".join(f"{size} tasks: {gain.value:.1f}%" for size, gain in means.items())
    claim = f"at {GRID_BOUND:.0%} {GTPC} gains more over {over} with more than {FEW} tasks"
    if not (many and few):  # of files, which may have one size
        return _verdict(claim, False, f"not to be told; {listed}")
    more = fmean(g.value for g in many) - fmean(g.value for g in few)
    margin = hypot(*(g.margin / len(some) for some in (many, few) for g in some))
    return _verdict(claim, more > margin, f"{more:+.1f} ± {margin:.1f} points; {listed}")


def most_cases(measured: Tables) -> Verdict:
    """GTP/c/r is better than GTP/r in most cells where a processor fails."""
    gains = {key: measured.gain(key, GTPCR, GTPR) for key in measured.keys(FAILURE)}
    better = sum(gain.value > 0 for gain in gains.values())
    worst = min(gains, key=lambda key: gains[key].value)
    figures = (
        f"better on average in {better} of {len(gains)} cells, beyond chance in "
        f"{sum(gain.above for gain in gains.values())}, worse beyond chance in "
        f"{sum(gain.below for gain in gains.values())}; worst {shown(gains[worst])} ({at(worst)})"
    )
    return _verdict(f"{GTPCR} beats {GTPR} in most cases", 2 * better > len(gains), figures)


def fewer(measured: Tables, metric: str) -> Verdict:
    """GTP/c has less of something than GTP, over all bounds together."""
    keys = measured.keys(CALM, measured.main_size, MAIN_CCR)
    gain = measured.pooled(keys, GTPC, GTP, metric)
    mine, base = (_average(measured, keys, name, metric) for name in (GTPC, GTP))
    figures = f"{base:.1f} with {GTP}, {mine:.1f} with {GTPC}: less by {shown(gain)}"
    if metric == "remappings":
        figures += "; here the period fixes them, and only a longer run has more"
    words = "less overhead" if metric == OVERHEAD else f"fewer {METRIC_NAMES[metric]}"
    return _verdict(f"{GTPC} has {words} than {GTP}", gain.above, figures)


def rewinds_more(measured: Tables, metric: str) -> Verdict:
    """GTP/r needs more of something than GTP/c/r, over all bounds together."""
    keys = measured.keys(FAILURE, measured.main_size, MAIN_CCR)
    more = _negative(measured.pooled(keys, GTPR, GTPCR, metric))
    mine, base = (_average(measured, keys, name, metric) for name in (GTPR, GTPCR))
    figures = f"{mine:.1f} with {GTPR}, {base:.1f} with {GTPCR}: more by {shown(more)}"
    if metric == "rewound":
        figures += f", or {(mine - base) / measured.main_size:.1%} of all tasks"
    if metric == OVERHEAD:
        lost = (_average(measured, keys, name, "lost") for name in (GTPR, GTPCR))
        figures += ", of which work lost is {:.1f}% and {:.1f}%".format(*lost)
    figures += f"; published up to {MORE[metric]:g}%"
    words = METRIC_NAMES[metric]
    return _verdict(f"{GTPR} has more {words} than {GTPCR}", more.above, figures)


def _average(measured: Tables, keys: list[Key], strategy: str, metric: str) -> float:
    return sum(measured.mean(key, strategy, metric).value for key in keys) / len(keys)


def _negative(figure: Figure) -> Figure:
    return figure._replace(value=-figure.value)


def _verdict(claim: str, holds: bool, figures: str) -> Verdict:
    return Verdict(claim, EVENTS, bool(holds), figures)


def shown(figure: Figure) -> str:
    """In percent, with the interval."""
    return f"{figure.value:.1f}% ± {figure.margin:.1f}"


def published_words(part: str, value: float) -> str:
    """As the paper's text says it."""
    return f"{value:g}%" if part == FAILURE else f"up to {value:g}%"


def at(key: Key) -> str:
    """Where a figure of the grid comes from."""
    return f"{key.size} tasks, CCR {key.ccr:g}, {key.value:.0%}"
