"""A report as one HTML page that needs nothing else: tiles, the Gantt chart, and the tables."""

from __future__ import annotations

import math
from html import escape
from importlib.resources import files
from pathlib import Path

from foreplan.charts.build import run_chart_of
from foreplan.charts.gantt import parts as chart_parts
from foreplan.files import clean, write_text
from foreplan.quantities import against, amount, data_size, duration, many, with_needs
from foreplan.report.data import Report
from foreplan.report.tables import Sheet, facts_of, sheets_of
from foreplan.report.tasks import ListedTask, last_lines, tasks_of
from foreplan.report.words import about_command

TAILS = 50  # tasks whose last lines are there to be opened
LOGGED = 1000  # of more tasks, only those that are not done have the ends of their logs here
OPEN = 200  # a list of more tasks is folded away
FOLDED = "New plans, and why"
SHARE = "share"  # the column that is drawn as a bar


def write_page(report: Report, path: Path) -> None:
    """Write the page; the file is complete or not there."""
    write_text(path, page(report))


def page(report: Report) -> str:
    """The page."""
    home = files("foreplan.report")
    template = home.joinpath("report.html").read_text(encoding="utf-8")
    style = home.joinpath("report.css").read_text(encoding="utf-8")
    chart = run_chart_of(report.run) if report.attempts else None
    drawn, elements = chart_parts(chart) if chart else ("", "")
    if chart:
        height = 220 + min(34 * round(chart.places.height), 640)
        elements = f'<section class="gantt" style="height: {height}px">{elements}</section>'
    # what others have written comes last: it is not searched for places to fill
    filled = template.replace("/*STYLE*/", f"{style}\n{drawn}")
    filled = filled.replace("/*TITLE*/", _text(report.id))
    return filled.replace("/*BODY*/", _body(report, elements))


def _text(content: str) -> str:
    return escape(clean(content))


def _body(report: Report, chart: str) -> str:
    status = _text(report.status)
    parts = [
        f'<h1>{_text(report.name or "workflow")}<span class="status {status}">{status}</span></h1>',
        f'<p class="id">run {_text(report.id)}</p>',
    ]
    if report.damage is not None:
        parts.append(f'<p class="note">{_text(report.damage)}</p>')
    parts.append(_tiles(report))
    sections = {
        sheet.title: _section(sheet, folded=sheet.title == FOLDED) for sheet in sheets_of(report)
    }
    parts.append(sections.pop("Failures", "") + _tails(report))
    parts += [chart] if chart else []
    parts.append(_pair(_facts(report), sections.pop("Processors", "")))
    parts.append(
        _pair(sections.pop("Slowest tasks", ""), sections.pop("Predicted against actual", ""))
    )
    return "\n".join([*parts, *sections.values(), _tasks(report)])


def _pair(left: str, right: str) -> str:
    """Two sections side by side, where there is room."""
    return f'<div class="pair">{left}{right}</div>'


def _tiles(report: Report) -> str:
    r = report
    planned = "makespan" if r.run.plans else "not planned"
    if r.planned is not None:
        planned = f"planned {duration(r.planned)}"
        planned += f", {against(r.makespan, r.planned)}" if r.done == r.tasks else ""
    tiles = [
        (f"{r.done:,} / {r.tasks:,}", "tasks done"),
        (duration(r.makespan), planned),
        (
            f"{r.utilisation:.0%}",
            f"of {many(len(r.processors), 'processor')}: tasks ran",
        ),
        (f"{r.overhead:.0%}", "foreplan itself: starting tasks, moving files"),
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


def _facts(report: Report) -> str:
    rows = "".join(f"<dt>{_text(a)}</dt><dd>{_text(b)}</dd>" for a, b in facts_of(report))
    return f"<section><h2>Summary</h2><dl>{rows}</dl></section>"


def _section(sheet: Sheet, folded: bool) -> str:
    right = [not heading.startswith("<") for heading in sheet.columns]
    names = [heading.removeprefix("<") for heading in sheet.columns]
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
    head = f"<h2>{_text(sheet.title)}</h2>"
    if folded:
        return f"<section><details><summary>{head}</summary>{table}{note}</details></section>"
    return f"<section>{head}{table}{note}</section>"


def _bar(share: str) -> str:
    return f'<i style="width: {min(100, int(share.rstrip("%")))}%"></i>'


def _tails(report: Report) -> str:
    """The commands and the last words of tasks that were given up."""
    failures = [f for f in report.failures if f.final and (f.command or f.tail)][:TAILS]
    if not failures:
        return ""
    home = Path(report.home)
    places = (home / f.scratch if f.scratch else None for f in failures)
    told = (
        (f, "\n".join([*about_command(f.command, f.unlisted, kept), f.tail]))
        for f, kept in zip(failures, places, strict=True)
    )
    inner = "".join(
        f"<details><summary>{_text(f.task)}: {_text(f.reason)}</summary>"
        f"<pre>{_text(lines)}</pre></details>"
        for f, lines in told
    )
    return f"<section><h2>Last lines</h2>{inner}</section>"


def _tasks(report: Report) -> str:
    """Every task, with its command and the end of its log to be opened."""
    home = Path(report.home)
    rows = "".join(_task(task, home, report.tasks <= LOGGED) for task in tasks_of(report))
    heads = ("task", "category", "state", "on", "attempts", "planned", "in fact", "took",
             "memory", "CPU")  # fmt: skip
    head = "".join(f"<th>{name}</th>" for name in heads)
    return (
        f"<section><details{' open' if report.tasks <= OPEN else ''}><summary><h2>All tasks</h2>"
        f'</summary>{_FILTER}<table id="tasks"><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></details></section>{_SCRIPT}"
    )


def _task(task: ListedTask, home: Path, logged: bool) -> str:
    planned, spent = "-", "-"
    if task.planned is not None:
        planned = f"{duration(task.planned.start)} to {duration(task.planned.finish)}"
    if task.start is not None:
        until = "now" if task.finish is None else duration(task.finish)
        spent = f"{duration(task.start)} to {until}"
    on = "-" if task.processor is None else with_needs(task.processor, task.cores or 1, 0.0)
    if task.planned is not None and task.planned.processor != task.processor:
        meant = f"planned: {task.planned.processor}"
        on = meant if task.processor is None else f"{on} ({meant})"
    took = "-" if task.seconds is None else duration(task.seconds)
    used = task.used or {}
    cells = (task.category or "-", task.state, on, f"{task.attempts:,}", planned, spent, took,
             _memory(used.get("memory"), task.memory),
             duration(used["cpu"]) if "cpu" in used else "-")  # fmt: skip
    inner = "".join(f"<td>{_text(cell)}</td>" for cell in cells)
    return f'<tr class="{task.state}"><td>{_opened(task, home, logged)}</td>{inner}</tr>'


def _memory(used: float | None, held: float | None) -> str:
    """What was used of what was held, as far as there is anything to say."""
    said = "-" if used is None else data_size(used)
    return f"{said} of {data_size(held)}" if held else said


def _opened(task: ListedTask, home: Path, logged: bool) -> str:
    """The name; behind it the command, and the end of what was printed."""
    told = [] if task.command is None else [f"<pre>{_text(task.command.strip())}</pre>"]
    for log in task.logs:
        told.append(f'<p class="quiet">{_text(log)}</p>')
        if logged or task.state != "done":
            told.append(f"<pre>{_text(last_lines(home, log).rstrip())}</pre>")
    if not told:
        return _text(task.task)
    return f"<details><summary>{_text(task.task)}</summary>{''.join(told)}</details>"


_FILTER = (
    '<p><input id="wanted" type="search" placeholder="Find tasks: by name, state, processor" '
    'aria-label="Find tasks" autocomplete="off" spellcheck="false"> '
    '<output id="shown"></output></p>'
)
_SCRIPT = """<script>
"use strict";
(() => {
  const wanted = document.getElementById("wanted"), shown = document.getElementById("shown");
  const rows = [...document.querySelectorAll("#tasks > tbody > tr")];
  wanted.addEventListener("input", () => {
    const words = wanted.value.toLowerCase().split(/\\s+/).filter(Boolean);
    let count = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase(), hit = words.every((word) => text.includes(word));
      row.hidden = !hit;
      count += hit;
    }
    shown.textContent = words.length ? `${count} of ${rows.length}` : "";
  });
})();
</script>"""
