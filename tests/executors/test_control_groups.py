"""Control groups of both versions, in folders that look like the system's."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from foreplan.executors import limits
from foreplan.executors.control_groups import (
    NOT_WANTED,
    Group,
    Groups,
    find_groups,
    granted_memory,
    granted_processors,
)
from foreplan.executors.limits import Limit, fenced, in_words, is_refused
from foreplan.executors.local.this_machine import available_memory, available_processors

GB = 10**9


def tree(root: Path, cgroup: str, files: Mapping[str, str]) -> Path:
    """A system with these groups."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(cgroup)
    for name, content in files.items():
        path = root / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


NEW = "0::/user.slice/run.scope\n"
OLD = "9:name=systemd:/x\n5:cpu,cpuacct:/box\n4:memory:/outer/box\n0::/\n"


@pytest.mark.parametrize(
    ("cgroup", "files", "memory", "processors"),
    [
        ("", {}, math.inf, math.inf),
        (NEW, {"user.slice/run.scope/memory.max": "max\n"}, math.inf, math.inf),
        (
            NEW,
            {
                "user.slice/memory.max": f"{2 * GB}\n",
                "user.slice/run.scope/memory.max": f"{3 * GB}\n",
                "user.slice/cpu.max": "max 100000\n",
                "user.slice/run.scope/cpu.max": "150000 100000\n",
            },
            2 * GB,
            1.5,
        ),
        # in a container its group is the root of what is mounted
        ("0::/docker/abc\n", {"memory.max": f"{GB}\n", "cpu.max": "50000 100000\n"}, GB, 0.5),
        (
            OLD,
            {
                "memory/outer/box/memory.limit_in_bytes": "9223372036854771712\n",
                "memory/outer/memory.limit_in_bytes": f"{4 * GB}\n",
                "cpu/box/cpu.cfs_quota_us": "300000\n",
                "cpu/box/cpu.cfs_period_us": "100000\n",
                "cpu/cpu.cfs_quota_us": "-1\n",
                "cpu/cpu.cfs_period_us": "100000\n",
            },
            4 * GB,
            3.0,
        ),
        (NEW, {"memory.max": "nonsense", "cpu.max": "1 0\n"}, math.inf, math.inf),
    ],
)
def test_what_is_granted(
    tmp_path: Path, cgroup: str, files: dict[str, str], memory: float, processors: float
) -> None:
    root = tree(tmp_path, cgroup, files)
    assert granted_memory(root) == memory
    assert granted_processors(root) == processors
    assert available_memory(root) == min(memory, available_memory(tmp_path / "nothing"))
    assert 1 <= available_processors(root) <= max(1, math.ceil(min(processors, 1e9)))


def test_this_machine_has_memory() -> None:
    assert 10**8 < available_memory() < 10**15


V2 = {"cgroup.controllers": "cpu memory pids\n", "cgroup.subtree_control": "cpu memory\n"}
# what the system puts into a new group of a controller, or of version 2
OF_NEW = ("memory.max", "memory.swap.max", "memory.oom.group", "cpu.max")
OF_OLD = {
    "memory": ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes"),
    "cpu": ("cpu.cfs_quota_us", "cpu.cfs_period_us"),
}


@pytest.fixture(autouse=True)
def system(monkeypatch: pytest.MonkeyPatch) -> None:
    """It fills new groups, and removes them whole."""
    monkeypatch.delenv(NOT_WANTED, raising=False)
    make = Groups.make

    def filled(groups: Groups) -> Group:
        group = make(groups)
        for folder in group.folders:
            part = folder.relative_to(next(p for p in folder.parents if p.name == "cgroup"))
            for name in (*OF_OLD.get(part.parts[0], OF_NEW), "cgroup.procs"):
                (folder / name).write_text("")
        return group

    monkeypatch.setattr(Groups, "make", filled)
    monkeypatch.setattr(Group, "remove", _remove)


def _remove(group: Group) -> None:
    for folder in group.folders:
        shutil.rmtree(folder)


def test_groups_of_version_2(tmp_path: Path) -> None:
    root = tree(tmp_path, "0::/\n", V2)
    found = find_groups(root)
    assert found is not None
    assert (found.version, found.holds_memory, found.holds_cores) == (2, True, True)
    assert [p for p in (root / "sys/fs/cgroup").iterdir() if p.is_dir()] == []  # the trial is gone
    group = found.make()
    [folder] = group.folders
    group.hold(GB, 2)
    held = {path.name: path.read_text() for path in folder.iterdir()}
    assert held["memory.max"] == str(GB)
    assert (held["memory.swap.max"], held["memory.oom.group"]) == ("0", "1")
    assert held["cpu.max"] == "200000 100000"
    group.hold(None, None)
    assert (folder / "memory.max").read_text() == "max"
    assert (folder / "cpu.max").read_text() == "max 100000"
    assert (group.oom_kills, group.peak) == (0, 0)
    (folder / "memory.events").write_text("low 0\noom 3\noom_kill 2\noom_group_kill 1\n")
    (folder / "memory.peak").write_text("12345\n")
    assert (group.oom_kills, group.peak) == (2, 12345)


def test_a_group_that_has_processes_of_others_stays_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = str(os.getpid())
    others = {**V2, "cgroup.subtree_control": "", "cgroup.procs": f"1\n{own}\n"}
    crowded = tree(tmp_path / "a", "0::/\n", others)
    alone = tree(tmp_path / "b", "0::/\n", {**others, "cgroup.procs": f"{own}\n"})
    write = Path.write_text

    def busy(path: Path, text: str) -> int:
        leaf = path.parent / f"foreplan-{own}" / "cgroup.procs"
        if path.name == "cgroup.subtree_control" and not leaf.exists():
            raise OSError(16, "Device or resource busy")
        return write(path, text)

    monkeypatch.setattr(Path, "write_text", busy)
    assert find_groups(crowded) is None
    assert find_groups(alone) is not None
    top = alone / "sys/fs/cgroup"
    assert (top / f"foreplan-{own}" / "cgroup.procs").read_text() == own
    assert (top / "cgroup.subtree_control").read_text() == "+memory +cpu"


def test_groups_of_version_1(tmp_path: Path) -> None:
    root = tree(tmp_path, OLD, {"memory/outer/box/tasks": "", "cpu/box/tasks": ""})
    found = find_groups(root)
    assert found is not None
    assert (found.version, found.holds_memory, found.holds_cores) == (1, True, True)
    group = found.make()
    group.hold(GB, 3)
    memory, cpu = group.folders
    assert memory.parent == root / "sys/fs/cgroup/memory/outer/box"
    assert (memory / "memory.limit_in_bytes").read_text() == str(GB)
    assert (memory / "memory.memsw.limit_in_bytes").read_text() == str(GB)
    assert (cpu / "cpu.cfs_quota_us").read_text() == "300000"
    (memory / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 1\n")
    (memory / "memory.max_usage_in_bytes").write_text("77\n")
    assert (group.oom_kills, group.peak) == (1, 77)
    subprocess.run(["sh", "-euc", group.joining + "exit 0"], check=True)
    assert [(f / "cgroup.procs").read_text() for f in group.folders] == ["0\n", "0\n"]
    group.take(4711)
    assert (cpu / "cgroup.procs").read_text() == "4711"


def test_a_command_that_cannot_join_its_group_fails(tmp_path: Path) -> None:
    group = Group((tmp_path / "gone",))
    told = subprocess.run(["sh", "-c", group.joining + "exit 0"], capture_output=True, text=True)
    assert told.returncode == 125
    assert "it cannot join its control group" in told.stderr


def test_none_is_made_where_people_do_not_want_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tree(tmp_path, "0::/\n", V2)
    monkeypatch.setenv(NOT_WANTED, "no")
    assert find_groups(root) is None
    assert "RLIMIT_DATA" in in_words(None)


def test_none_is_made_where_it_would_hold_nothing(tmp_path: Path) -> None:
    assert find_groups(tmp_path / "nothing") is None
    assert find_groups(tree(tmp_path, "0::/\n", {"cgroup.controllers": "cpu\n"})) is None


def test_a_fence_is_a_group_where_there_can_be_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tree(tmp_path, "0::/\n", V2)
    here = Groups(2, (root / "sys/fs/cgroup",), True, False)
    assert in_words(here) == "memory by control groups of version 2, cores by CPU affinity"
    monkeypatch.setattr(limits, "groups", lambda: here)
    with fenced(Limit(GB, 1, (0,))) as fence:
        assert fence is not None
        assert fence.group is not None
        [folder] = fence.group.folders
        assert fence.prefix == fence.group.joining
        assert fence.data_limit is None
        (folder / "memory.events").write_text("oom_kill 1\n")
        (folder / "memory.peak").write_text(f"{GB}\n")
        assert fence.has_killed
        used = fence.measure({"cpu": 1.0, "memory": 5, "at_most": True})
        assert used == {"cpu": 1.0, "memory": GB}
        assert fence.explain(used).startswith("out of memory: it asked for 1 GB, had 1 GB at most")
        fence.change(Limit(2 * GB))
        assert not fence.has_killed  # that was before
    assert not folder.exists()


@pytest.mark.parametrize(
    ("tail", "refused"),
    [
        ("Traceback\nnumpy._ArrayMemoryError: Unable to allocate 8 GiB", True),
        ("sort: memory exhausted", True),
        ("terminate called after throwing an instance of 'std::bad_alloc'\n  what(): x", True),
        ("fork: Cannot allocate memory", True),
        ("no such file", False),
        ("", False),
        ("out of memory\n" + "later\n" * 9, False),
    ],
)
def test_words_of_programs_that_were_refused_memory(tail: str, refused: bool) -> None:
    assert is_refused(tail) is refused
