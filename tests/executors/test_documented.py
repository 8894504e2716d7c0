"""The executors of docs/executors.md pass the conformance suite, and `run` finds them."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from executors.bench import Bench
from executors.conformance import CHECKS as FOR_ALL
from executors.conformance import Entry
from executors.conformance_real import CHECKS as FOR_REAL
from executors.sites import REAL, Site
from foreplan.executors.base import Workload

PAGE = Path(__file__).parents[2] / "docs" / "executors.md"


def code(mark: str = "SCHEME = ") -> str:
    """The executor as the page shows it."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    [found] = [block for block in blocks if mark in block]
    return str(found)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The package of the page, as an installer would leave it."""
    folder = tmp_path_factory.mktemp("site-packages")
    (folder / "foreplan_hosts.py").write_text(code())
    (folder / "foreplan_pool.py").write_text(code("class Pool("))
    info = folder / "foreplan_hosts-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: foreplan-hosts\nVersion: 1\n")
    declared = re.findall(r'\b((?:hosts|pool) = )"(.*?)"', PAGE.read_text())
    lines = ["[foreplan.executors]", *map("".join, declared)]
    (info / "entry_points.txt").write_text("\n".join(lines))
    sys.path.insert(0, str(folder))
    try:
        yield folder
    finally:
        sys.path.remove(str(folder))
        for name in ("foreplan_hosts", "foreplan_pool"):
            sys.modules.pop(name, None)


class Hosts(Site):
    """Two machines that are this one, reached by other words."""

    def executor(self, bench: Bench, **options: Any) -> Any:
        work = Workload(bench.workflow, directory=bench.dir)
        hosts = {"one": "sh -c", "two": "nice sh -c"}
        made = importlib.import_module("foreplan_hosts").HostsExecutor
        return made(hosts, work, bench.home, bench.clock, None)

    def queued(self, executor: Any) -> bool:
        return not executor.inbox.empty()


class Pool(Site):
    """Two processes of a pool, or four."""

    def executor(self, bench: Bench, **options: Any) -> Any:
        pool = importlib.import_module("foreplan_pool").Pool(4 if options.get("wide") else 2)
        work = Workload(bench.workflow, bench.calls, bench.dir)
        return pool.open(pool, work, bench.home, bench.clock)

    def queued(self, executor: Any) -> bool:
        return not executor.inbox.empty()


SITES = (
    Hosts("hosts", REAL | {"stops", "keeps", "tails"}),
    Pool("pool", REAL | {"keeps", "wide"}, functions=True),
)
PAIRS = [
    pytest.param(site, entry, id=f"{site.name}-{entry.check.__name__}")
    for site in SITES
    for entry in FOR_ALL + FOR_REAL
    if entry.needs <= site.has
]


def test_they_are_short() -> None:
    assert len(code().splitlines()) <= 130
    assert len(code("class Pool(").splitlines()) <= 60


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(("site", "entry"), PAIRS)
def test_check(site: Site, entry: Entry, tmp_path: Path) -> None:
    places = list[Path]()

    @contextmanager
    def open(works: Any, again: bool = False, **options: Any) -> Iterator[Bench]:
        if not again:
            places.append(tmp_path / str(len(places)))
            places[-1].mkdir()
        with site.open(works, places[-1], **options) as bench:
            yield bench

    entry.check(site, open)


WORKFLOW = """
tasks:
  first: {run: "echo one > a", outputs: [a]}
  second: {run: "echo two > b", outputs: [b]}
  both: {run: "cat a b > c", inputs: [a, b], outputs: [c]}
"""


def foreplan(installed: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from foreplan.cli import main; main()", *words]
    path = os.pathsep.join([str(installed), *sys.path])
    env = {**os.environ, "PYTHONPATH": path, "FOREPLAN_HOME": str(folder / "home")}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=60)


def test_foreplan_finds_it(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "wf.yaml").write_text(WORKFLOW)
    (tmp_path / "hosts").write_text("one: sh -c\ntwo: nice sh -c\n")
    done = foreplan(installed, tmp_path, "run", "wf.yaml", "--on", "hosts:hosts", "-q")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "c").read_text() == "one\ntwo\n"
    report = foreplan(installed, tmp_path, "report", "last")
    assert "hosts:hosts" in report.stdout + report.stderr
    plan = foreplan(installed, tmp_path, "plan", "wf.yaml", "--on", "hosts:hosts", "--json")
    assert plan.returncode == 0, plan.stderr
    assert '"two"' in plan.stdout
    asked = foreplan(
        installed, tmp_path, "what-if", "wf.yaml", "--on", "hosts:hosts", "--remove", "two"
    )
    assert asked.returncode == 0, asked.stderr


def test_what_it_refuses(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "wf.yaml").write_text(WORKFLOW)
    missing = foreplan(installed, tmp_path, "run", "wf.yaml", "--on", "hosts:none")
    assert (missing.returncode, "cannot read it" in missing.stderr) == (2, True)
    unknown = foreplan(installed, tmp_path, "run", "wf.yaml", "--on", "hostz:none")
    assert (unknown.returncode, "`hosts:FILE`" in unknown.stderr) == (2, True)
    assert not (tmp_path / ".foreplan").exists()
