"""The claims of Yu and Shi, each with a verdict from what was measured."""

from __future__ import annotations

from collections.abc import Iterator
from math import hypot

from foreplan_reproductions.aheft.cases import (
    APPLICATIONS,
    BLAST,
    BLAST_JOBS,
    RANDOM,
    WIEN2K,
    WIEN2K_JOBS,
)
from foreplan_reproductions.aheft.tables import ALL, EVENTS, LETTER, Row, Tables
from foreplan_reproductions.reports import Verdict

FAR_MORE = 2.0  # times the improvement
FAR_BEHIND = 2.0  # times the makespan
INSENSITIVE = 0.25  # of the improvement: what varies by less, or by chance, is called insensitive
ALIKE = 1.0  # percentage points
LEAST = 0.1  # percentage points: what factors are of, at least

SIMULATORS = {EVENTS: "event by event", LETTER: "the paper's loop"}
NAMES = {
    RANDOM: "random DAGs",
    BLAST: "BLAST, v-way", WIEN2K: "WIEN2K, v-way",
    BLAST_JOBS: "BLAST, v jobs", WIEN2K_JOBS: "WIEN2K, v jobs",
}  # fmt: skip
PAIRS = ((BLAST, WIEN2K), (BLAST_JOBS, WIEN2K_JOBS))  # Table 5's v, both ways
PARAMETER_NAMES = {
    "size": "number of jobs",
    "ccr": "CCR",
    "beta": "beta",
    "out_degree": "out_degree",
    "pool": "initial pool R",
    "interval": "interval Delta",
    "share": "share delta",
}


def verdicts(measured: Tables) -> list[Verdict]:
    """All claims, by table and figure; those of the tables by our runs and by the paper's loop."""
    found = [never_worse(measured), far_behind(measured)]
    found += [as_published(measured, "Section 4.2", RANDOM, reading) for reading in SIMULATORS]
    found += [grows(measured, "Table 3", RANDOM, "ccr", reading) for reading in SIMULATORS]
    found += [grows(measured, "Table 4", RANDOM, "size", reading) for reading in SIMULATORS]
    found += [levels_off(measured, "Table 4", RANDOM, "size", reading) for reading in SIMULATORS]
    for reading in SIMULATORS:
        found += [as_published(measured, "Table 6", kind, reading) for kind in APPLICATIONS]
        found += [far_more(measured, *pair, reading) for pair in PAIRS]
    for reading in SIMULATORS:
        found += [grows(measured, "Table 7", kind, "size", reading) for kind in APPLICATIONS]
        found += [rises_faster(measured, *pair, reading) for pair in PAIRS]
    for reading in SIMULATORS:
        found += [grows(measured, "Table 8", blast, "ccr", reading) for blast, _ in PAIRS]
        found += [insensitive(measured, "Table 8", w, "ccr", reading) for _, w in PAIRS]
    found += [falls(measured, "Figure 8 (d)", kind, "pool") for kind in APPLICATIONS]
    found += [falls(measured, "Figure 8 (e)", kind, "interval") for kind in APPLICATIONS]
    for letter, parameter in (("b", "beta"), ("f", "share")):
        place = f"Figure 8 ({letter})"
        found += [insensitive(measured, place, kind, parameter) for kind in APPLICATIONS]
    return found


def never_worse(measured: Tables) -> Verdict:
    """At no value of any parameter is AHEFT's average makespan the longer one."""
    rows = measured.main
    least = min(rows, key=lambda row: row.improvement)
    worse = sum(row.worse for row in rows if row.parameter == ALL)
    cases = sum(row.cases for row in rows if row.parameter == ALL)
    figures = (
        f"least improvement {least.improvement:+.2f}% ({NAMES[least.kind]}, {_at(least)}); "
        f"longer in {worse} of {cases} cases"
    )
    claim = "Section 4: AHEFT is never worse than HEFT on average"
    return Verdict(claim, EVENTS, least.improvement >= 0, figures)


def far_behind(measured: Tables) -> Verdict:
    """Min-Min's average is at least twice HEFT's."""
    row = measured.main_row(RANDOM)
    figures = f"{row.minmin / row.heft:.2f} x HEFT; published 3.03"
    holds = row.minmin >= FAR_BEHIND * row.heft
    return Verdict("Section 4.2: Min-Min is far behind", EVENTS, holds, figures)


def as_published(measured: Tables, place: str, kind: str, reading: str) -> Verdict:
    """The improvement is the published one, within a point or by chance."""
    [row] = measured.rows(kind, ALL, reading)
    holds = abs(row.improvement - row.published) <= max(ALIKE, row.margin)
    figures = f"{_rate(row)}; published {row.published:.1f}%"
    claim = f"{place}, {NAMES[kind]}: the published improvement, within 1% or the interval"
    return Verdict(claim, reading, holds, figures)


def grows(measured: Tables, place: str, kind: str, parameter: str, reading: str) -> Verdict:
    """More improvement at the parameter's highest value than at its lowest."""
    rows = measured.rows(kind, parameter, reading)
    claim = f"{place}, {NAMES[kind]}: improvement grows with the {PARAMETER_NAMES[parameter]}"
    return Verdict(claim, reading, rows[-1].improvement > rows[0].improvement, _listed(rows))


def levels_off(measured: Tables, place: str, kind: str, parameter: str, reading: str) -> Verdict:
    """The improvement jumps at first, and changes by less from then to the end."""
    rates = [row.improvement for row in measured.rows(kind, parameter, reading)]
    first, rest = rates[1] - rates[0], max(rates[1:]) - min(rates[1:])
    figures = f"by {first:+.1f} points at the first step, within {rest:.1f} from there; published "
    claim = (
        f"{place}, {NAMES[kind]}: it jumps, then is stable with the {PARAMETER_NAMES[parameter]}"
    )
    return Verdict(claim, reading, first > rest, figures + "+1.0, 0.4")


def falls(measured: Tables, place: str, kind: str, parameter: str) -> Verdict:
    """More improvement at the parameter's lowest value than at its highest."""
    rows = measured.rows(kind, parameter)
    what = "smaller initial pools" if parameter == "pool" else "more frequent joins"
    holds = rows[0].improvement > rows[-1].improvement
    claim = f"{place}, {NAMES[kind]}: {what} gain more"
    return Verdict(claim, EVENTS, holds, _listed(rows))


def far_more(measured: Tables, one: str, other: str, reading: str) -> Verdict:
    """BLAST's improvement is at least twice WIEN2K's."""
    [blast], [wien2k] = (measured.rows(kind, ALL, reading) for kind in (one, other))
    holds = blast.improvement >= FAR_MORE * wien2k.improvement
    figures = f"{_rate(blast)} and {_rate(wien2k)}; published 20.4%, 6.3%"
    return Verdict(f"Table 6: {NAMES[one]}, gains far more than WIEN2K", reading, holds, figures)


def rises_faster(measured: Tables, one: str, other: str, reading: str) -> Verdict:
    """From the fewest jobs to the most, WIEN2K's improvement grows by the greater factor."""
    blast, wien2k = (
        rows[-1].improvement / max(rows[0].improvement, LEAST)
        for rows in (measured.rows(kind, "size", reading) for kind in (one, other))
    )
    figures = f"WIEN2K x {wien2k:.1f}, BLAST x {blast:.1f}; published 4.3, 1.5"
    claim = f"Table 7: {NAMES[other]}, rises faster with the number of jobs than BLAST"
    return Verdict(claim, reading, wien2k > blast, figures)


def insensitive(
    measured: Tables, place: str, kind: str, parameter: str, reading: str = EVENTS
) -> Verdict:
    """The improvement varies by no more than a quarter of itself, or by chance."""
    rows = measured.rows(kind, parameter, reading)
    low, high = (pick(rows, key=lambda row: row.improvement) for pick in (min, max))
    spread = high.improvement - low.improvement
    [average] = measured.rows(kind, ALL, reading)
    allowed = INSENSITIVE * average.improvement
    holds = spread <= max(allowed, hypot(low.margin, high.margin))
    name = PARAMETER_NAMES[parameter]
    claim = f"{place}, {NAMES[kind]}: the improvement is not very sensitive to {name}"
    return Verdict(claim, reading, holds, _listed(rows))


def _listed(rows: list[Row]) -> str:
    return "; ".join(_each(rows))


def _each(rows: list[Row]) -> Iterator[str]:
    for row in rows:
        yield f"{row.value:g}: {_rate(row)}"


def _rate(row: Row) -> str:
    return f"{row.improvement:.1f}% ± {row.margin:.1f}"


def _at(row: Row) -> str:
    if row.parameter == ALL:
        return "in all"
    return f"{PARAMETER_NAMES[row.parameter]} {row.value:g}"
