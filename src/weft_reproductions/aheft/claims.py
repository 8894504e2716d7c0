"""The claims of Yu and Shi, each with a verdict from what was measured."""

from __future__ import annotations

from collections.abc import Iterator
from math import hypot

from weft_reproductions.aheft.cases import APPLICATIONS, BLAST, KINDS, RANDOM, WIEN2K
from weft_reproductions.aheft.tables import ALL, EVENTS, LETTER, Row, Tables
from weft_reproductions.reports import Verdict

FAR_MORE = 2.0  # times the improvement
FAR_BEHIND = 2.0  # times the makespan
INSENSITIVE = 0.25  # of the improvement: what varies by less, or by chance, is called insensitive
ALIKE = 1.0  # percentage points

SIMULATORS = {EVENTS: "event by event", LETTER: "the paper's loop"}
NAMES = {RANDOM: "random DAGs", BLAST: "BLAST", WIEN2K: "WIEN2K"}
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
    """All claims, in the paper's order; those of the tables by our runs and by the paper's loop."""
    found = [never_worse(measured), far_behind(measured)]
    for kind in KINDS:
        found += [as_published(measured, kind, reading) for reading in SIMULATORS]
    for kind, parameter in ((RANDOM, "ccr"), *((kind, "size") for kind in KINDS)):
        found += [grows(measured, kind, parameter, reading) for reading in SIMULATORS]
    found += [grows(measured, BLAST, "ccr", reading) for reading in SIMULATORS]
    found += [far_more(measured, reading) for reading in SIMULATORS]
    found += [falls(measured, kind, "pool") for kind in APPLICATIONS]
    found += [falls(measured, kind, "interval") for kind in APPLICATIONS]
    for parameter in ("beta", "share"):
        found += [insensitive(measured, kind, parameter) for kind in APPLICATIONS]
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
    claim = "AHEFT is never worse than HEFT on average"
    return Verdict(claim, EVENTS, least.improvement >= 0, figures)


def far_behind(measured: Tables) -> Verdict:
    """Min-Min's average is at least twice HEFT's."""
    row = measured.main_row(RANDOM)
    figures = f"{row.minmin / row.heft:.2f} x HEFT; published 3.03"
    return Verdict("Min-Min is far behind", EVENTS, row.minmin >= FAR_BEHIND * row.heft, figures)


def as_published(measured: Tables, kind: str, reading: str) -> Verdict:
    """The improvement is the published one, within a point or by chance."""
    [row] = measured.rows(kind, ALL, reading)
    holds = abs(row.improvement - row.published) <= max(ALIKE, row.margin)
    figures = f"{_rate(row)}; published {row.published:.1f}%"
    claim = f"{NAMES[kind]}: the published improvement, within 1% or the interval"
    return Verdict(claim, reading, holds, figures)


def grows(measured: Tables, kind: str, parameter: str, reading: str) -> Verdict:
    """More improvement at the parameter's highest value than at its lowest."""
    rows = measured.rows(kind, parameter, reading)
    claim = f"{NAMES[kind]}: improvement grows with the {PARAMETER_NAMES[parameter]}"
    return Verdict(claim, reading, rows[-1].improvement > rows[0].improvement, _listed(rows))


def falls(measured: Tables, kind: str, parameter: str) -> Verdict:
    """More improvement at the parameter's lowest value than at its highest."""
    rows = measured.rows(kind, parameter)
    what = "smaller initial pools" if parameter == "pool" else "more frequent joins"
    holds = rows[0].improvement > rows[-1].improvement
    return Verdict(f"{NAMES[kind]}: {what} gain more", EVENTS, holds, _listed(rows))


def far_more(measured: Tables, reading: str) -> Verdict:
    """BLAST's improvement is at least twice WIEN2K's."""
    [blast], [wien2k] = (measured.rows(kind, ALL, reading) for kind in (BLAST, WIEN2K))
    holds = blast.improvement >= FAR_MORE * wien2k.improvement
    figures = f"BLAST {_rate(blast)}, WIEN2K {_rate(wien2k)}; published 20.4%, 6.3%"
    return Verdict("BLAST gains far more than WIEN2K", reading, holds, figures)


def insensitive(measured: Tables, kind: str, parameter: str) -> Verdict:
    """The improvement varies by no more than a quarter of itself, or by chance."""
    rows = measured.rows(kind, parameter)
    low, high = (pick(rows, key=lambda row: row.improvement) for pick in (min, max))
    spread = high.improvement - low.improvement
    allowed = INSENSITIVE * measured.main_row(kind).improvement
    holds = spread <= max(allowed, hypot(low.margin, high.margin))
    name = PARAMETER_NAMES[parameter]
    claim = f"{NAMES[kind]}: the improvement is not very sensitive to {name}"
    return Verdict(claim, EVENTS, holds, _listed(rows))


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
