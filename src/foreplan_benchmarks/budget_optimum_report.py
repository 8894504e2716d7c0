"""The gaps to the optimum under budget as files: tables in CSV and Markdown, JSON, a picture."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from foreplan_benchmarks.budget_optimum import (
    BEST,
    CAREFUL,
    FAITHFUL,
    HEFT,
    ORDER_ONLY,
    ROWS,
    Gap,
    Result,
    Settings,
    gaps,
    parts,
)
from foreplan_reproductions import reports as report_files
from foreplan_reproductions.reports import figure_of, plain, png_of

# Colours that stay apart for colour-blind readers; marks and dashes for those who print in grey.
_COLOURS = ("#e69f00", "#d55e00", "#0072b2", "#56b4e9", "#cc79a7", "#999999", "#009e73")
STYLES: dict[str, dict[str, Any]] = {BEST: {"color": "#000000", "marker": "*", "linestyle": "-"}}
STYLES |= {
    name: {"color": colour, "marker": mark, "linestyle": "-" if name.startswith("loss") else "--"}
    for name, colour, mark in zip(CAREFUL, _COLOURS, "osd^vx+", strict=True)
}


def to_json(settings: Settings, results: Sequence[Result]) -> str:
    """Everything: settings, gaps by planner and k, where best-affordable loses, all results."""
    data = {
        "settings": asdict(settings),
        "gaps": [asdict(gap) for gap in gaps(results)],
        "parts": [asdict(part) for part in parts(results)],
        "results": [asdict(result) for result in results],
    }
    return json.dumps(data, indent=1)


def write(folder: Path, settings: Settings, results: Sequence[Result], command: str) -> list[Path]:
    """The files of a run of the benchmark; their paths."""
    found = gaps(results)
    content: dict[str, str | bytes] = {
        "README.md": markdown(settings, results, command),
        "gaps.csv": _csv([asdict(gap) for gap in found]),
        "results.csv": _csv([_flat(result) for result in results]),
    }
    if settings.ks != (1.0,):
        content["gaps.png"] = picture(found, _about(settings, results))
    return report_files.write_files(folder, content)


def gap_table(found: Sequence[Gap]) -> tuple[list[str], list[list[str]]]:
    """Header and rows: mean gaps over the proven optima, a row per planner, a column per k."""
    ks = sorted({gap.k for gap in found})
    means = {(gap.planner, gap.k): gap.mean for gap in found}
    rows = [[name, *(percent(means.get((name, k))) for k in ks)] for name in ROWS]
    return ["mean gap", *(f"k = {k:g}" for k in ks)], rows


def part_table(results: Sequence[Result]) -> tuple[list[str], list[list[str]]]:
    """Header and rows: the mean gap of best-affordable by family and by CCR; in brackets, order."""
    found = parts(results)
    ks, names = sorted({p.k for p in found}), dict.fromkeys(p.part for p in found)
    cells = {(p.part, p.k): f"{100 * p.mean:.1f} ({100 * p.order:.1f})" for p in found}
    rows = [[name, *(cells.get((name, k), "-") for k in ks)] for name in names]
    return [f"{BEST}, %", *(f"k = {k:g}" for k in ks)], rows


def open_table(found: Sequence[Gap]) -> tuple[list[str], list[list[str]]]:
    """Header and rows of what is not proven: between the best that CP-SAT found and its bound."""
    counts = {gap.k: gap.unproven for gap in found if gap.unproven}
    cells = {
        (gap.planner, gap.k): f"{percent(gap.least)} to {percent(gap.most)}"
        for gap in found
        if gap.unproven
    }
    rows = [[name, *(cells.get((name, k), "-") for k in counts)] for name in ROWS] if counts else []
    return ["gap", *(f"k = {k:g} ({count})" for k, count in counts.items())], rows


def percent(share: float | None) -> str:
    """A share as it is shown; a dash where there is none."""
    return "-" if share is None else f"{100 * share:.1f}%"


def proven_words(results: Sequence[Result]) -> str:
    """How many optima are proven."""
    return f"{sum(r.proven for r in results)} of {len(results)} optima proven"


def worst(results: Sequence[Result], count: int = 10) -> list[Result]:
    """Where best-affordable is furthest from a proven optimum."""
    sure = [r for r in results if r.proven and r.gap(BEST) > 0]
    return sorted(sure, key=lambda r: -r.gap(BEST))[:count]


def markdown(settings: Settings, results: Sequence[Result], command: str) -> str:
    """The page of the results."""
    found = gaps(results)
    sections = [
        "# How far from the optimum under a budget",
        f"`{command}`: {_about(settings, results)}; {proven_words(results)}.",
        "Means of makespan / optimum - 1 over the proven optima. The budget is that of the paper's "
        "equation 5: the cost of the cheapest assignment and k of what HEFT costs beyond that. "
        "All costs, volumes and prices are whole numbers, so the optimum is exact.",
        report_files.table(*gap_table(found)),
        f"`{ORDER_ONLY}` is no planner: each task stands where the optimum has it, and only the "
        "order is that of HEFT's ranks, in which LOSS and GAIN rebuild a schedule. It shows what "
        "the order alone can cost; other machines may suit that order better.",
        "## Where best-affordable loses",
        f"Mean gap; in brackets that of `{ORDER_ONLY}`.",
        report_files.table(*part_table(results)),
        "The furthest from the optimum:",
        report_files.table(
            ["instance", "tasks", "CCR", "k", "budget", "optimum", BEST, "gap"],
            [
                [f"{r.family}-{r.number}", str(r.tasks), f"{r.ccr:g}", f"{r.k:g}", str(r.budget),
                 str(r.optimum), f"{r.makespans[BEST]:g}", percent(r.gap(BEST))]
                for r in worst(results)
            ],
        ),
    ]  # fmt: skip
    if any(gap.unproven for gap in found):
        sections += [
            "## Where no optimum is proven",
            "The gap is between that to the best schedule found and that to the bound; in "
            "brackets, how many instances these are.",
            report_files.table(*open_table(found)),
        ]
    return "\n\n".join(sections) + "\n"


def picture(found: Sequence[Gap], title: str) -> bytes:
    """The mean gap by k: the careful variants in one panel, the faithful in the other; PNG."""
    means = {(gap.planner, gap.k): gap.mean for gap in found if gap.mean is not None}
    with figure_of(f"Mean gap to the optimum: {title}", (1, 2), STYLES) as (figure, panels):
        figure.set_size_inches(11, 5)
        for axes, variants, words in (
            (panels[0], CAREFUL, "careful (the default)"),
            (panels[1], FAITHFUL, "faithful (to the letter)"),
        ):
            for label, name in zip(STYLES, (BEST, *variants), strict=True):
                line = [(k, 100 * mean) for (n, k), mean in means.items() if n == name]
                axes.plot(*zip(*line, strict=True), markersize=5, linewidth=1.3, **STYLES[label])
            line = [(k, 100 * mean) for (n, k), mean in means.items() if n == HEFT]
            for k, mean in line:
                axes.annotate("HEFT", (k, mean), textcoords="offset points", xytext=(4, 6))
            plain(axes, words)
            axes.set_xlabel("k: budget between the cheapest (0) and HEFT's (1)", fontsize=9)
            axes.set_ylabel("longer than the optimum (%)", fontsize=9)
        top = max(axes.get_ylim()[1] for axes in panels)
        for axes in panels:
            axes.set_ylim(0, top)
        return png_of(figure)


def _about(settings: Settings, results: Sequence[Result]) -> str:
    count = len({(r.family, r.number) for r in results})
    sizes = [r.tasks for r in results]
    return f"{count} instances of {min(sizes)} to {max(sizes)} tasks on 3 machines"


def _flat(result: Result) -> dict[str, Any]:
    row = asdict(result)
    makespans = row.pop("makespans")
    return {**row, **{name: makespans.get(name) for name in ROWS}}


def _csv(rows: Sequence[dict[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: _cell(value) for key, value in row.items()} for row in rows)
    return text.getvalue()


def _cell(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) else value
