"""Tables and lines where there is no terminal: the same text that rich prints, and all of it."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.table import Table

from foreplan.cli.shared.tables import say, table

HEADER = ["名", "host", "tasks", "cost"]
ROWS = [["é[b]x[/b]", "a", 12, "1.5"], ["日本", ":smile:", 3, "-"], ["plain", "", 1234, ""]]


def by_rich() -> str:
    shown = Table(box=None)
    for number, heading in enumerate(HEADER):
        shown.add_column(heading, justify="left" if number < 2 else "right", no_wrap=True)
    for row in ROWS:
        shown.add_row(*map(str, row))
    text = io.StringIO()
    Console(file=text, width=200, highlight=False, markup=False, emoji=False).print(shown)
    return text.getvalue()


def test_a_table_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    table(HEADER, ROWS, texts=2)
    assert capsys.readouterr().out == by_rich()


def test_nothing_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    table(["what", "n"], [["x" * 300, 1]])
    assert "x" * 300 in capsys.readouterr().out
    say("[bold]" + "y" * 300, "bold")
    assert capsys.readouterr().out == "[bold]" + "y" * 300 + "\n"
