"""A report as facts and tables of text, which the terminal and the page show alike."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foreplan.files import near
from foreplan.quantities import against, amount, data_size, duration, many, with_needs
from foreplan.report.data import Report
from foreplan.report.usage import CategoryUse
from foreplan.report.words import against_deadline, moment, not_enough, recovery_of
from foreplan.runs.undeclared import summarise_not_kept

SLOWEST, MOST = 10, 20  # rows of tables that could be long

WAITED = {  # by what bound a task of the critical path
    "nothing": "nothing",
    "data": "data of {}",
    "processor": "its processor, after {}",
    "amounts": "memory or the like that {} held",
}
Columns = dict[str, Callable[[Any], str]]  # what each has of a row


@dataclass(frozen=True)
class Sheet:
    """A table of numbers; columns whose heading begins with < are texts."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def facts_of(report: Report) -> list[tuple[str, str]]:
    """The summary, line by line."""
    r = report
    counts = [f"{r.done - len(r.reused):,} of {r.tasks:,} done"]
    counts += [f"{len(r.reused):,} up to date"] if r.reused else []
    under_way = "running" if r.status == "running" else "cut short"
    counts += [f"{r.running:,} {under_way}"] if r.running else []
    counts += [f"{r.given_up:,} given up"] if r.given_up else []
    waiting = r.tasks - r.done - r.running - r.given_up
    counts += [f"{waiting:,} waiting"] if waiting else []
    span = duration(r.makespan)
    if r.planned is not None:
        change = f", {against(r.makespan, r.planned)}" if r.done == r.tasks else ""
        span += f" (planned {duration(r.planned)}{change})"
    attempts = many(r.attempts, "attempt")
    attempts += f", {len(r.failures):,} failed" if r.failures else ""
    plans = "no plan: tasks were given out as they became ready"
    if r.run.plans:
        plans = f"{r.replans:,} of {len(r.evaluations):,} considered, "
        plans += f"planning took {duration(r.planning)}"
    facts = [
        ("status", r.status + (f", in {many(r.sittings, 'session')}" * (r.sittings > 1))),
        ("tasks", ", ".join(counts)),
        ("time", span),
        ("started", moment(r.created)),
        ("strategy", strategy_of(r)),
        *_estimates(r),
        ("on", f"{r.on}, {many(len(r.processors), 'processor')}: {r.run.processor_time}"),
        ("attempts", attempts),
        ("new plans", plans),
    ]
    facts += [("transfers", f"{r.moved:,}")] if r.moved else []
    if r.margins is not None and r.margins.path:
        facts.append(("critical", r.margins.in_words(r.run.workflow.task_names)))
    facts += [("cost", cost_of(r))] if r.paid else []
    facts += [("deadline", deadline_of(r))] if math.isfinite(r.run.deadline) else []
    facts += [("adapted", adapted)] if (adapted := recovery_of(r.run)) else []
    if r.undeclared:
        facts.append(("not kept", summarise_not_kept(r.undeclared)))
    stale = [line for made in r.undeclared for line in made.stale_reads()]
    facts += [("warning", line) for line in stale[:SLOWEST]]
    return [*facts, ("kept in", near(Path(r.home)))]


def strategy_of(report: Report) -> str:
    """Which strategy was used, and why; blind, if so, and what came after it."""
    blind = ", blind" if report.blind else ""
    text = f"{report.strategy}{blind} ({report.why})"
    if (new := report.switched) is not None:
        text += f", then {new.strategy} from {duration(new.time)} on ({new.because})"
    return text


def _estimates(report: Report) -> list[tuple[str, str]]:
    """Return the fact about the sources of the estimates that the run began with."""
    if report.blind:
        return [("estimates", "none: no task had a history or a declared cost")]
    return [("estimates", report.origins)] if report.origins else []


def deadline_of(report: Report) -> str:
    """The deadline, and whether it was kept, or is expected not to be."""
    run = report.run
    if report.status == "finished":
        return against_deadline(run).removeprefix("deadline ")
    late = "" if math.isnan(run.late_at) else f", expected to be late since {duration(run.late_at)}"
    return duration(run.deadline) + late


def cost_of(report: Report) -> str:
    """The money in words: what it cost; of a run that is not finished, also what is expected."""
    run, money = report.run, report.money
    paid = run.bill.transfers
    sent = f" ({amount(paid)} for transfers)" if paid else ""
    text = f"{amount(run.cost)}{sent}"
    if money is not None:
        text = f"{amount(money.spent)} spent{sent}, {amount(money.committed)} committed"
        text += f", {amount(money.projected)} projected"
    if math.isfinite(run.budget):
        text += f"; budget {amount(run.budget)}{'' if run.within_budget else ', exceeded'}"
    if not math.isnan(run.over_budget_at):
        text += f" ({not_enough(run)})"
    return text


def sheets_of(report: Report) -> list[Sheet]:
    """The tables that have something to tell."""
    every = (
        _failures,
        _slowest,
        _critical,
        _categories,
        _usage,
        _suggestions,
        _replans,
        _processors,
    )
    return [sheet for make in every if (sheet := make(report)).rows]


def _sheet(title: str, rows: Iterable[Any], columns: Columns, *notes: str) -> Sheet:
    cells = tuple(tuple(cell(row) for cell in columns.values()) for row in rows)
    return Sheet(title, tuple(columns), cells, "; ".join(filter(None, notes)))


def _more(shown: Sequence[Any], all_of: Sequence[Any]) -> str:
    return f"{len(all_of) - len(shown):,} more are not shown" if len(all_of) > len(shown) else ""


def _failures(r: Report) -> Sheet:
    last = [f for f in r.failures if f.final]
    rows = (last + [f for f in reversed(r.failures) if not f.final])[:MOST]
    columns: Columns = {
        "<task": lambda f: f.task,
        "<on": lambda f: f.processor,
        "at": lambda f: duration(f.time),
        "<cause": lambda f: f.cause or "",
        "<reason": lambda f: f.reason,
        "<then": lambda f: "given up" if f.final else "",
        "<log": lambda f: f.log or "",
    }
    return _sheet("Failures", rows, columns, _more(rows, r.failures))


def _expected(seconds: float, r: Report) -> str:
    return "-" if r.blind or not math.isfinite(seconds) else duration(seconds)


def _ratio(actual: float, expected: float, r: Report) -> str:
    known = not r.blind and expected > 0 and math.isfinite(expected)
    return f"{actual / expected:.2f}" if known else "-"


def _slowest(r: Report) -> Sheet:
    columns: Columns = {
        "<task": lambda t: t.task,
        "<category": lambda t: t.category,
        "<on": lambda t: with_needs(t.processor, t.cores, t.memory),
        "predicted": lambda t: _expected(t.expected, r),
        "actual": lambda t: duration(t.seconds),
        "ratio": lambda t: _ratio(t.seconds, t.expected, r),
    }
    if (late := r.margins) is not None:
        slack = dict(zip(r.run.workflow.task_names, late.slack.tolist(), strict=True))
        columns["slack"] = lambda t: duration(slack[t.task]) if slack[t.task] else "-"
    return _sheet("Slowest tasks", r.times[:SLOWEST], columns)


def _critical(r: Report) -> Sheet:
    """The chain of tasks that decided the end."""
    path = () if r.margins is None else r.margins.path
    names, rows = r.run.workflow.task_names, list[tuple[str, str]]()
    for step, before in zip(path, (None, *path), strict=False):
        after = "" if before is None else names[before.task]
        rows.append((names[step.task], WAITED[step.bound.value].format(after)))
    columns: Columns = {"<task": lambda row: row[0], "<waited for": lambda row: row[1]}
    return _sheet("Critical path", rows[-MOST:], columns, _more(rows[-MOST:], rows))


def _categories(r: Report) -> Sheet:
    rows = r.categories[:MOST]
    columns: Columns = {
        "<category": lambda c: c.category,
        "tasks": lambda c: f"{c.tasks:,}",
        "predicted (median)": lambda c: _expected(c.expected, r),
        "actual (median)": lambda c: duration(c.seconds),
        "ratio": lambda c: _ratio(c.seconds, c.expected, r),
        "in all": lambda c: duration(c.total),
    }
    blind = "nothing was known to predict from" if r.blind else ""
    return _sheet("Predicted against actual", rows, columns, blind, _more(rows, r.categories))


def _usage(r: Report) -> Sheet:
    rows = r.usage[:MOST]
    columns: Columns = {
        "<category": lambda u: u.category,
        "attempts": lambda u: f"{u.attempts:,}",
        "memory (median)": lambda u: _bytes(u.memory_median, u.at_most),
        "(most)": lambda u: _bytes(u.memory_most, u.at_most),
        "CPU": lambda u: "-" if u.cpu is None else duration(u.cpu),
        "cores": _cores,
        "read": lambda u: _bytes(u.read),
        "written": lambda u: _bytes(u.written),
    }
    if any(u.copied for u in rows):
        columns["copied"] = lambda u: _bytes(u.copied)
        columns["in"] = lambda u: "-" if u.copying is None else duration(u.copying)
    if any(u.asked is not None for u in rows):
        columns["asked"] = lambda u: _bytes(u.asked)
    if any(u.held is not None for u in rows):
        columns["held"] = lambda u: _bytes(u.held)
        columns["wasted"] = lambda u: "-" if u.wasted is None else f"{u.wasted:.0%}"
    bound = "<: no more than that" if any(u.at_most for u in rows) else ""
    return _sheet("What was used", rows, columns, bound, _more(rows, r.usage))


def _cores(use: CategoryUse) -> str:
    """The cores that were kept busy, of those that were held."""
    busy = "-" if use.cores is None else f"{use.cores:.2g}"
    return f"{busy} of {use.cores_held}" if use.cores_held > 1 else busy


def _bytes(size: float | None, at_most: bool = False) -> str:
    return "-" if size is None else f"{'<' * at_most}{data_size(size)}"


def _suggestions(r: Report) -> Sheet:
    said: Columns = {"<by what was used": lambda s: s.words}
    return _sheet("Memory to ask for", r.suggestions[:MOST], said)


def _replans(r: Report) -> Sheet:
    rows = r.evaluations[:MOST]
    columns: Columns = {
        "at": lambda e: duration(e.time),
        "<because of": lambda e: e.reason,
        "<taken": lambda e: ("yes, it had to be" if e.forced else "yes") if e.taken else "no",
        "it would end at": lambda e: (
            duration(e.makespan) if math.isfinite(e.makespan) else "none was found"
        ),
        # when the old plan would have ended, where that was asked
        "the old one": lambda e: "" if math.isnan(e.projected) else duration(e.projected),
        "planning took": lambda e: duration(e.seconds),
    }
    return _sheet("New plans, and why", rows, columns, _more(rows, r.evaluations))


def _processors(r: Report) -> Sheet:
    busiest = sorted(r.processors, key=lambda p: -p.busy)[:MOST]
    rows = [p for p in r.processors if p in busiest][:MOST]
    columns: Columns = {
        "<processor": lambda p: p.processor,
        "<host": lambda p: p.host,
        "tasks": lambda p: f"{p.tasks:,}",
        "failed": lambda p: f"{p.failed:,}",
        "tasks ran": lambda p: duration(p.busy),
        "share": lambda p: f"{p.share:.0%}",
        "foreplan took": lambda p: duration(p.overhead),
    }
    sent = ""
    if r.paid:
        columns["cost"] = lambda p: amount(p.cost)
        paid = r.run.bill.transfers
        sent = f"transfers cost {amount(paid)} more" if paid else ""
    return _sheet("Processors", rows, columns, _more(rows, r.processors), sent)
