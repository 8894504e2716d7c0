"""The tables of the AHEFT experiment, with the published figures beside ours."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from foreplan.arrays import FloatArray
from foreplan_reproductions.aheft.cases import (
    APPLICATIONS,
    BLAST,
    BLAST_JOBS,
    KINDS,
    RANDOM,
    WIEN2K,
    WIEN2K_JOBS,
)
from foreplan_reproductions.aheft.runs import BASE
from foreplan_reproductions.aheft.units import Settings, Unit, units

EVENTS, LETTER = "no levels|aheft", "no levels|append"  # ours; equations (1) to (3) as printed
ALL = "all"
PARAMETERS = ("size", "ccr", "beta", "out_degree", "pool", "interval", "share")

AVERAGES = {  # HEFT, AHEFT, Min-Min: the text of section 4.2, and Table 6
    RANDOM: (4075.0, 3911.0, 12352.0),
    BLAST: (4939.3, 3933.1, np.nan),
    WIEN2K: (3451.6, 3233.8, np.nan),
}
AVERAGES |= {BLAST_JOBS: AVERAGES[BLAST], WIEN2K_JOBS: AVERAGES[WIEN2K]}
PUBLISHED: dict[tuple[str, str], dict[float, float]] = {  # improvement in %: Tables 3, 4, 7 and 8
    (RANDOM, "ccr"): {0.1: 0.4, 0.5: 0.5, 1.0: 0.7, 5.0: 3.2, 10.0: 7.7},
    (RANDOM, "size"): {20: 2.9, 40: 3.9, 60: 4.3, 80: 4.2, 100: 4.1},
    (BLAST, "size"): {200: 15.9, 400: 18.3, 600: 19.9, 800: 21.9, 1000: 23.6},
    (WIEN2K, "size"): {200: 2.2, 400: 4.3, 600: 6.0, 800: 7.8, 1000: 9.4},
    (BLAST, "ccr"): {0.1: 16.1, 0.5: 15.5, 1.0: 14.3, 5.0: 19.1, 10.0: 26.1},
    (WIEN2K, "ccr"): {0.1: 7.3, 0.5: 7.3, 1.0: 6.6, 5.0: 5.3, 10.0: 6.4},
    **{(kind, ALL): {0.0: 100 * (1 - a / h)} for kind, (h, a, _) in AVERAGES.items()},
}
for _parameter in ("size", "ccr"):
    PUBLISHED[BLAST_JOBS, _parameter] = PUBLISHED[BLAST, _parameter]
    PUBLISHED[WIEN2K_JOBS, _parameter] = PUBLISHED[WIEN2K, _parameter]


@dataclass(frozen=True)
class Row:
    """Average makespans where a parameter has a value, and by how much AHEFT's is smaller.

    The improvement is that of the averages, in %; the margin half its 95% interval, by DAG. The
    mean rate is the mean of the cases' own improvements.
    """

    reading: str
    kind: str
    parameter: str
    value: float
    dags: int
    cases: int
    heft: float
    aheft: float
    minmin: float
    improvement: float
    margin: float
    mean_rate: float
    worse: int  # cases in which AHEFT ends later
    published: float


@dataclass(frozen=True)
class Tables:
    """Everything that was measured: rows of the main part, and those of the readings."""

    main: list[Row]
    readings: list[Row]

    def main_row(self, kind: str, parameter: str = ALL, value: float = 0.0) -> Row:
        """One row of the main part."""
        return next(r for r in self.rows(kind, parameter) if r.value == value)

    def rows(self, kind: str, parameter: str, reading: str = EVENTS) -> list[Row]:
        """The rows of a parameter, by value; ours are those of the main part."""
        every = self.main if reading == EVENTS else self.readings
        wanted = (reading, kind, parameter)
        return [r for r in every if (r.reading, r.kind, r.parameter) == wanted]


def tables(settings: Settings, done: Mapping[int, dict[str, list[float]]]) -> Tables:
    """The averages over all units."""
    main, readings = [], []
    for kind in KINDS:
        mine = [(u, done[u.number]) for u in units(settings) if u.dag.kind == kind]
        cases = _cases((u, columns) for u, columns in mine if u.part == "main")
        main += _rows(EVENTS, kind, cases, ("heft", "aheft", "minmin"))
        cases = _cases((u, columns) for u, columns in mine if u.part == "readings")
        readings += _of_readings(kind, cases)
    return Tables(main, readings)


Cases = dict[str, FloatArray]


def _cases(some: Iterable[tuple[Unit, dict[str, list[float]]]]) -> Cases:
    """All cases as columns."""
    parts: dict[str, list[FloatArray]] = defaultdict(list)
    for unit, columns in some:
        n, dag = len(unit.models), unit.dag
        parts["dag"].append(np.full(n, float(unit.number)))
        for name in ("size", "ccr", "beta", "out_degree"):
            parts[name].append(np.full(n, float(getattr(dag, name))))
        for name in ("pool", "interval", "share"):
            parts[name].append(np.array([float(getattr(m, name)) for m in unit.models]))
        for name, values in columns.items():
            parts[name].append(np.array(values, dtype=np.float64))
    return {name: np.concatenate(some) for name, some in parts.items()}


def _of_readings(kind: str, cases: Cases) -> list[Row]:
    rows = []
    for column in cases:
        shape, _, name = column.partition("|")
        if not name or name.startswith("heft") or name == "minmin":
            continue
        heft = f"{shape}|{BASE.get(name, 'heft')}"
        rows += _rows(column, kind, cases, (heft, column, f"{shape}|minmin"))
    return rows


def _rows(reading: str, kind: str, cases: Cases, names: tuple[str, str, str]) -> list[Row]:
    everywhere = np.ones(len(cases["dag"]), dtype=np.bool_)
    rows = [_row(reading, kind, ALL, 0.0, cases, names, everywhere)]
    for parameter in PARAMETERS:
        if parameter == "out_degree" and kind in APPLICATIONS:
            continue
        for value in np.unique(cases[parameter]).tolist():
            where = cases[parameter] == value
            rows.append(_row(reading, kind, parameter, value, cases, names, where))
    return rows


def _row(
    reading: str,
    kind: str,
    parameter: str,
    value: float,
    cases: Cases,
    names: tuple[str, str, str],
    where: npt.NDArray[np.bool_],
) -> Row:
    heft, aheft = (cases[name][where] for name in names[:2])
    minmin = float(cases[names[2]][where].mean()) if names[2] in cases else np.nan
    saved, margin, dags = _ratio(heft - aheft, heft, cases["dag"][where])
    return Row(
        reading=reading,
        kind=kind,
        parameter=parameter,
        value=value,
        dags=dags,
        cases=len(heft),
        heft=float(heft.mean()),
        aheft=float(aheft.mean()),
        minmin=minmin,
        improvement=100 * saved,
        margin=100 * margin,
        mean_rate=100 * float((1 - aheft / heft).mean()),
        worse=int((aheft > heft * (1 + 1e-9)).sum()),
        published=PUBLISHED.get((kind, parameter), {}).get(value, np.nan),
    )


def _ratio(part: FloatArray, whole: FloatArray, dag: FloatArray) -> tuple[float, float, int]:
    """The ratio of the sums, half its 95% interval by DAG, and the number of DAGs."""
    _, which = np.unique(dag, return_inverse=True)
    parts, wholes = np.bincount(which, part), np.bincount(which, whole)
    n, ratio = len(parts), parts.sum() / wholes.sum()
    if n < 2:
        return float(ratio), float("nan"), n
    spread = (parts - ratio * wholes).std(ddof=1) * np.sqrt(n) / wholes.sum()
    return float(ratio), float(1.96 * spread), n
