"""A place for runs that are killed; nothing of it is left running."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from chaos.runs import Place


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place.make(tmp_path)
    yield made
    for pid in made.processes():
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how many kills tests have recorded, of each kind."""
    reports = [report for found in terminalreporter.stats.values() for report in found]
    kills = Counter[str]()
    for report in reports:
        if getattr(report, "when", "") == "call":
            kills.update(dict(report.user_properties).get("kills", {}))
    if kills:
        kinds = (f"{count} {kind}" for kind, count in kills.most_common())
        terminalreporter.write_line(f"{kills.total()} kills: {'; '.join(kinds)}")
