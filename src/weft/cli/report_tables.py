"""A report as facts and tables of text, which the terminal and the page show alike."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from weft.cli.money import against_deadline, foreseen
from weft.cli.recovery import recovery_of
from weft.cli.report_data import Report
from weft.cli.wording import against, many, moment, near, took
from weft.quantities import amount

SLOWEST, MOST = 10, 20  # rows of tables that could be long


@dataclass(frozen=True)
class Sheet:
    """A table: columns whose heading begins with > are numbers, to the right."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def facts_of(report: Report) -> list[tuple[str, str]]:
    """The summary, line by line."""
    r = report
    counts = [f"{r.done:,} of {r.tasks:,} done"]
    under_way = "running" if r.status == "running" else "cut short"
    counts += [f"{r.running:,} {under_way}"] if r.running else []
    counts += [f"{r.given_up:,} given up"] if r.given_up else []
    waiting = r.tasks - r.done - r.running - r.given_up
    counts += [f"{waiting:,} waiting"] if waiting else []
    span = took(r.makespan)
    if r.planned is not None:
        change = f", {against(r.makespan, r.planned)}" if r.done == r.tasks else ""
        span += f" (planned {took(r.planned)}{change})"
    attempts = many(r.attempts, "attempt")
    attempts += f", {len(r.failures):,} failed" if r.failures else ""
    plans = "no plan: tasks were given out as they became ready"
    if r.planned is not None:
        plans = (
            f"{r.replans:,} of {len(r.evaluations):,} considered, planning took {took(r.planning)}"
        )
    facts = [
        ("status", r.status + (f", after {many(r.sittings, 'sitting')}" * (r.sittings > 1))),
        ("tasks", ", ".join(counts)),
        ("time", span),
        ("started", moment(r.created)),
        ("strategy", strategy_of(r)),
        ("on", f"{r.on}, {many(len(r.processors), 'processor')}: {r.shares}"),
        ("attempts", attempts),
        ("new plans", plans),
    ]
    facts += [("transfers", f"{r.moved:,}")] if r.moved else []
    facts += [("cost", cost_of(r))] if r.paid else []
    facts += [("deadline", deadline_of(r))] if math.isfinite(r.run.deadline) else []
    facts += [("adapted", adapted)] if (adapted := recovery_of(r.run)) else []
    return [*facts, ("kept in", near(Path(r.home)))]


def strategy_of(report: Report) -> str:
    """Which strategy was used, and why; blind, if so, and what came after it."""
    blind = ", blind" if report.blind else ""
    text = f"{report.strategy}{blind} ({report.why})"
    if (new := report.switched) is not None:
        text += f", then {new.strategy} from {took(new.time)} on ({new.because})"
    return text


def deadline_of(report: Report) -> str:
    """The deadline, and whether it was kept, or is expected not to be."""
    run = report.run
    if report.status == "finished":
        return against_deadline(run).removeprefix("deadline ")
    late = "" if math.isnan(run.late_at) else f", expected to be late since {took(run.late_at)}"
    return took(run.deadline) + late


def cost_of(report: Report) -> str:
    """The money in words: what it cost; of a run that is not finished, also what is expected."""
    run, money = report.run, report.money
    sent = f" ({amount(run.usage.transfers)} for transfers)" if run.usage.transfers else ""
    text = f"{amount(run.cost)}{sent}"
    if money is not None:
        text = f"{amount(money.spent)} spent{sent}, {amount(money.committed)} committed"
        text += f", {amount(money.projected)} projected"
    if math.isfinite(run.budget):
        text += f"; budget {amount(run.budget)}{'' if run.within_budget else ', exceeded'}"
    if not math.isnan(run.over_budget_at):
        text += f" ({foreseen(run)} at {took(run.over_budget_at)} that it would not do)"
    return text


def sheets_of(report: Report) -> list[Sheet]:
    """The tables that have something to tell."""
    sheets = [
        _failures(report),
        _slowest(report),
        _categories(report),
        _replans(report),
        _processors(report),
    ]
    return [sheet for sheet in sheets if sheet.rows]


def _more(shown: int, all_of: int) -> str:
    return f"{all_of - shown:,} more are not shown" if all_of > shown else ""


def _failures(r: Report) -> Sheet:
    last = [f for f in r.failures if f.final]
    rows = (last + [f for f in reversed(r.failures) if not f.final])[:MOST]
    return Sheet(
        "Failures",
        ("task", "on", ">at", "reason", "then", "log"),
        tuple(
            (
                f.task,
                f.processor,
                took(f.time),
                f.reason,
                "given up" if f.final else "",
                f.log or "",
            )
            for f in rows
        ),
        _more(len(rows), len(r.failures)),
    )


def _expected(seconds: float, r: Report) -> str:
    return "-" if r.blind or not math.isfinite(seconds) else took(seconds)


def _ratio(actual: float, expected: float, r: Report) -> str:
    known = not r.blind and expected > 0 and math.isfinite(expected)
    return f"{actual / expected:.2f}" if known else "-"


def _slowest(r: Report) -> Sheet:
    rows = r.times[:SLOWEST]
    return Sheet(
        "Slowest tasks",
        ("task", "category", "on", ">predicted", ">actual", ">ratio"),
        tuple(
            (
                t.task,
                t.category,
                t.processor,
                _expected(t.expected, r),
                took(t.seconds),
                _ratio(t.seconds, t.expected, r),
            )
            for t in rows
        ),
    )


def _categories(r: Report) -> Sheet:
    rows = r.categories[:MOST]
    notes = [
        "nothing was known to predict from" if r.blind else "",
        _more(len(rows), len(r.categories)),
    ]
    return Sheet(
        "Predicted against actual",
        ("category", ">tasks", ">predicted (median)", ">actual (median)", ">ratio", ">in all"),
        tuple(
            (
                c.category,
                f"{c.tasks:,}",
                _expected(c.expected, r),
                took(c.seconds),
                _ratio(c.seconds, c.expected, r),
                took(c.total),
            )
            for c in rows
        ),
        "; ".join(filter(None, notes)),
    )


def _replans(r: Report) -> Sheet:
    rows = r.evaluations[:MOST]
    return Sheet(
        "New plans, and why",
        (">at", "because of", "taken", ">it would end at", ">the old one", ">planning took"),
        tuple(
            (
                took(e.time),
                e.reason,
                ("yes, it had to be" if e.forced else "yes") if e.taken else "no",
                took(e.makespan) if math.isfinite(e.makespan) else "none was found",
                _projected(e.projected),
                took(e.seconds),
            )
            for e in rows
        ),
        _more(len(rows), len(r.evaluations)),
    )


def _projected(time: float) -> str:
    """When the old plan would have ended, where that was asked."""
    if math.isnan(time):
        return ""
    return took(time) if math.isfinite(time) else "never"


def _processors(r: Report) -> Sheet:
    busiest = sorted(r.processors, key=lambda p: -p.busy)[:MOST]
    rows = [p for p in r.processors if p in busiest][:MOST]
    columns: tuple[str, ...] = (
        "processor",
        "host",
        ">tasks",
        ">failed",
        ">tasks ran",
        ">share",
        ">weft took",
    )
    cells: list[tuple[str, ...]] = [
        (
            p.processor,
            p.host,
            f"{p.tasks:,}",
            f"{p.failed:,}",
            took(p.busy),
            f"{p.share:.0%}",
            took(p.overhead),
        )
        for p in rows
    ]
    notes = [_more(len(rows), len(r.processors))]
    if r.paid:
        columns = (*columns, ">cost")
        cells = [(*row, f"{amount(p.cost)}") for row, p in zip(cells, rows, strict=True)]
        sent = r.run.usage.transfers
        notes += [f"transfers cost {amount(sent)} more"] if sent else []
    return Sheet("Processors", columns, tuple(cells), "; ".join(filter(None, notes)))
