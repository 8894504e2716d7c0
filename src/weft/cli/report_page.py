"""A report as one HTML page that needs nothing else: tiles, the Gantt chart, and the tables."""

from __future__ import annotations

import math
from html import escape
from importlib.resources import files
from pathlib import Path

from weft.charts.page import page as chart_page
from weft.charts.run_build import run_chart_of
from weft.cli.report_data import Report
from weft.cli.report_tables import Sheet, facts_of, sheets_of
from weft.cli.wording import about_command, against, clean, many, took
from weft.files import write_text
from weft.quantities import amount

TAILS = 50  # tasks whose last lines are there to be opened
SHARE = "share"  # the column that is drawn as a bar


def write_page(report: Report, path: Path) -> None:
    """Write the page; the file is complete or not there."""
    write_text(path, page(report))


def page(report: Report) -> str:
    """The page."""
    home = files("weft.charts")
    template = home.joinpath("report.html").read_text(encoding="utf-8")
    style = home.joinpath("report.css").read_text(encoding="utf-8")
    # what others have written comes last: it is not searched for places to fill
    filled = template.replace("/*STYLE*/", style)
    return filled.replace("/*TITLE*/", _text(report.id)).replace("/*BODY*/", _body(report))


def _text(content: str) -> str:
    return escape(clean(content))


def _body(report: Report) -> str:
    status = _text(report.status)
    parts = [
        f'<h1>{_text(report.name or "workflow")}<span class="status {status}">{status}</span></h1>',
        f'<p class="id">run {_text(report.id)}</p>',
    ]
    if report.damage is not None:
        parts.append(f'<p class="note">{_text(report.damage)}</p>')
    parts.append(_tiles(report))
    sections = {sheet.title: _section(sheet) for sheet in sheets_of(report)}
    parts.append(sections.pop("Failures", "") + _tails(report))
    if report.attempts:
        parts.append(_chart(report))
    parts.append(_pair(_facts(report), sections.pop("Processors", "")))
    parts.append(
        _pair(sections.pop("Slowest tasks", ""), sections.pop("Predicted against actual", ""))
    )
    return "\n".join([*parts, *sections.values()])


def _pair(left: str, right: str) -> str:
    """Two sections side by side, where there is room."""
    return f'<div class="pair">{left}{right}</div>'


def _tiles(report: Report) -> str:
    r = report
    planned = "not planned" if r.planned is None else f"planned {took(r.planned)}"
    if r.planned is not None and r.done == r.tasks:
        planned += f", {against(r.makespan, r.planned)}"
    tiles = [
        (f"{r.done:,} / {r.tasks:,}", "tasks done"),
        (took(r.makespan), planned),
        (
            f"{r.utilisation:.0%}",
            f"of {many(len(r.processors), 'processor')}: tasks ran",
        ),
        (f"{r.overhead:.0%}", "weft itself: starting tasks, moving files"),
        (f"{r.replans:,}", f"new plans, {len(r.evaluations):,} considered"),
        (f"{len(r.failures):,}", f"failed of {many(r.attempts, 'attempt')}"),
    ]
    if r.paid:
        tiles.append((amount(r.run.cost, 4), _money(r)))
    inner = "".join(f"<div><b>{_text(b)}</b><span>{_text(s)}</span></div>" for b, s in tiles)
    return f'<div class="tiles">{inner}</div>'


def _money(report: Report) -> str:
    """What stands below the cost."""
    budget, money = report.run.budget, report.money
    words = ["spent" if money is not None else "cost"]
    words += [f"{amount(money.projected, 4)} projected"] if money is not None else []
    words += [f"of a budget of {amount(budget, 4)}"] if math.isfinite(budget) else []
    return ", ".join(words)


def _chart(report: Report) -> str:
    """The chart's own page inside this one, with its zoom and search."""
    content = chart_page(run_chart_of(report.run)).decode("utf-8")
    height = 210 + min(28 * len(report.processors), 640)
    return (
        f'<section class="chart"><iframe title="Plan against fact" sandbox="allow-scripts" '
        f'style="height: {height}px" srcdoc="{escape(content)}"></iframe></section>'
    )


def _facts(report: Report) -> str:
    rows = "".join(f"<dt>{_text(a)}</dt><dd>{_text(b)}</dd>" for a, b in facts_of(report))
    return f"<section><h2>Summary</h2><dl>{rows}</dl></section>"


def _section(sheet: Sheet) -> str:
    right = [heading.startswith(">") for heading in sheet.columns]
    names = [heading.lstrip(">") for heading in sheet.columns]
    classes = [
        (["right"] if to_right else []) + ([SHARE] if name == SHARE else [])
        for name, to_right in zip(names, right, strict=True)
    ]
    marks = [f' class="{" ".join(words)}"' if words else "" for words in classes]
    head = "".join(f"<th{m}>{_text(n)}</th>" for m, n in zip(marks, names, strict=True))
    body = "".join(
        "<tr>"
        + "".join(
            f"<td{m}>{_text(cell)}{_bar(cell) if name == SHARE else ''}</td>"
            for m, name, cell in zip(marks, names, row, strict=True)
        )
        + "</tr>"
        for row in sheet.rows
    )
    note = f'<p class="quiet">{_text(sheet.note)}</p>' if sheet.note else ""
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"<section><h2>{_text(sheet.title)}</h2>{table}{note}</section>"


def _bar(share: str) -> str:
    return f'<i style="width: {min(100, int(share.rstrip("%")))}%"></i>'


def _tails(report: Report) -> str:
    """The commands and the last words of tasks that were given up."""
    failures = [f for f in report.failures if f.final and (f.command or f.tail)][:TAILS]
    if not failures:
        return ""
    told = ((f, "\n".join([*about_command(f.command, f.unlisted), f.tail])) for f in failures)
    inner = "".join(
        f"<details><summary>{_text(f.task)}: {_text(f.reason)}</summary>"
        f"<pre>{_text(lines)}</pre></details>"
        for f, lines in told
    )
    return f"<section><h2>Last words</h2>{inner}</section>"
