"""`foreplan bench memory`: what memory tasks of traces would be given, beside what they had."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from foreplan.cli.shared.tables import table
from foreplan.errors import InputError


def memory(
    traces: Annotated[
        list[Path], typer.Argument(help="Traces in WfFormat; those without memory are left out.")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Memory as the history learns it beside simple rules, on traces that tell what tasks had.

    Every task by all others of its category, and by those before it alone.
    Example: `foreplan bench memory path/to/*.json`
    """
    from foreplan_benchmarks.memory_needs import figures, together

    found = {
        how: [row for path in traces for row in figures(path, how == "by all others")]
        for how in ("by all others", "by those before")
    }
    found = {how: [*rows, *together(rows)] for how, rows in found.items()}
    if not any(found.values()):
        raise InputError("none of these traces tells what memory its tasks had")
    if as_json:
        plain = {how: [asdict(row) for row in listed] for how, listed in found.items()}
        print(json.dumps(plain, indent=1))
        return
    for how, rows in found.items():
        print(f"Each task {how} of its category")
        header = ["trace", "rule", "tasks", "too little", "given / had (mean)", "(in all)"]
        lines = [
            [row.trace, row.rule, f"{row.tasks:,}", f"{row.under:.1%}", f"{row.mean_ratio:.2f}",
             f"{row.total_ratio:.2f}"]
            for row in rows
        ]  # fmt: skip
        table(header, lines, texts=2)
