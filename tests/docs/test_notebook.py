"""The notebook of the manual runs, as a reader runs it, and shows pictures."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .blocks import ROOT

nbformat = pytest.importorskip("nbformat", reason="needs nbclient and ipykernel")
nbclient = pytest.importorskip("nbclient", reason="needs nbclient and ipykernel")
pytest.importorskip("ipykernel", reason="needs nbclient and ipykernel")

NOTEBOOK = ROOT / "docs" / "tour.ipynb"
LARGE = 150_000  # characters of one output


def read() -> Any:
    return nbformat.read(NOTEBOOK, as_version=4)


def test_it_is_kept_without_outputs() -> None:
    """They would differ with every run, and tell of the machine."""
    for cell in read().cells:
        assert cell.get("outputs", []) == []
        assert cell.get("execution_count") is None
    nbformat.validate(read())
    assert f"({NOTEBOOK.name})" in (ROOT / "docs" / "index.md").read_text()


def test_its_links_lead_somewhere() -> None:
    for cell in read().cells:
        if cell.cell_type == "markdown":
            for link in re.findall(r"\]\(([^)\s]+)\)", cell.source):
                assert (NOTEBOOK.parent / link).is_file(), link


@pytest.fixture
def event_loop_of_its_own() -> Iterator[None]:
    """The client must find one, and nobody else may."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.close()


@pytest.mark.usefixtures("event_loop_of_its_own")
@pytest.mark.filterwarnings("default")  # of the client
def test_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TMPDIR", "FOREPLAN_HOME", "IPYTHONDIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    before = {path.name for path in NOTEBOOK.parent.iterdir()}
    notebook = read()
    client = nbclient.NotebookClient(
        notebook, timeout=120, resources={"metadata": {"path": str(NOTEBOOK.parent)}}
    )
    client.execute()
    assert {path.name for path in NOTEBOOK.parent.iterdir()} == before
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    results = [output.data for output in outputs if output.output_type == "execute_result"]
    shown = {
        re.split(r"[ :]", data["text/plain"])[0]: data["text/html"]
        for data in results
        if "text/html" in data
    }
    pictured = {"Workflow", "Schedule", "Frontier", "WhatIf", "Run", "Comparison", "Outcome"}
    assert pictured <= {name.removeprefix("<") for name in shown}
    for name, page in shown.items():
        assert len(page) < LARGE, name
        assert "data:image/" in page or "nothing to do" in page, name
    progress = [output.data for output in outputs if output.output_type == "display_data"]
    assert len(progress) == 1  # it has changed, again and again
    assert "13 tasks done" in progress[0]["text/html"]
