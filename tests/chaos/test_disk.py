"""The data directory is full, or cannot be written: said clearly, and nothing finished is lost."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from chaos.runs import (
    LIMIT,
    Place,
    after_entries,
    check_nothing_repeated,
    ended,
    rebuilt,
    sums,
    until,
    write,
)

SIZE = 4 << 20


def mount(*arguments: str) -> bool:
    try:
        return not subprocess.run(["mount", *arguments], capture_output=True).returncode
    except OSError:
        return False


@pytest.fixture
def small(place: Place) -> Iterator[Place]:
    """A place whose data directory is a small file system of its own."""
    if os.geteuid() != 0 or not mount(
        "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(place.data)
    ):
        pytest.skip("only who may mount file systems can test a full one")
    yield place
    subprocess.run(["umount", "-l", str(place.data)], check=True)


def fill(path: Path, driver: subprocess.Popen[str]) -> None:
    """Take all room, and what is freed again, until the run has noticed."""
    with path.open("wb", buffering=0) as file:

        def noticed() -> bool:
            with suppress(OSError):
                while file.write(b"\0" * 1024):
                    pass
            return driver.poll() is not None

        until(noticed, "the end of a run on a full disk", LIMIT)


@pytest.mark.parametrize("outputs", [True, False], ids=["outputs", "journal alone"])
def test_full(small: Place, outputs: bool) -> None:
    work = sums(300, extra="sleep 0.01; ")
    if not outputs:  # nothing is written but the journal
        for i, task in enumerate(work.content["tasks"].values()):
            task.update(run=task["run"].replace(f"> x{i}.txt", ">/dev/null"), outputs=[], inputs=[])
            task["run"] = task["run"].partition(" s=")[0]
    file = write(small, work)
    driver = small.foreplan("run", file, "--on", "local:2", "--no-history", "--strategy", "fifo")
    after_entries(40)(small, driver)
    filler = small.data / "filler"
    fill(filler, driver)
    code, output = ended(driver)
    said = " ".join(output.split()).lower()
    assert code in (1, 2), output
    assert "no space left on device" in said, output
    assert ("journal.jsonl: cannot write the journal" in said) == (code == 2)
    # commands that fail are said to fail: 1; what could not even be noted is resumed
    assert ("foreplan resume" if code == 2 else "foreplan run") in said
    assert "traceback" not in said
    until(lambda: not small.processes(), "the end of all processes of the run")
    before, executed = small.finished(), small.executions()
    assert 0 < len(before) < 300
    filler.unlink()
    code, output = ended(small.foreplan("resume", "last"))
    assert code == 0, output
    if outputs:
        work.check(small)
    check_nothing_repeated(small, [{task: executed[task] for task in before}])
    rebuilt(small)


def test_full_while_it_is_resumed(small: Place) -> None:
    """Not even the note that it goes on can be written: nothing is done."""
    work = sums(40, extra='[ -e "$FOREPLAN_DIR/go" ] || sleep 60; ')
    driver = small.foreplan("run", write(small, work), "--on", "local:2", "--no-history")
    until(lambda: small.executions().total() == 2, "two tasks that run")
    driver.kill()
    ended(driver)
    (small.data / "go").touch()
    with (small.data / "filler").open("wb", buffering=0) as file, suppress(OSError):
        while file.write(b"\0" * 64):
            pass
    home = small.the_home()
    journal = home.journal.read_bytes()
    room = -len(journal) % 4096  # what is left of the journal's last page
    home.journal.write_bytes(journal + b"\0" * room)
    code, output = ended(small.foreplan("resume", "last"))
    assert code == 2, output
    assert "no space left on device" in " ".join(output.split()).lower()
    assert "Traceback" not in output
    assert sum(small.executions().values()) == 2
    (small.data / "filler").unlink()
    code, output = ended(small.foreplan("resume", "last"))
    assert code == 0, output
    work.check(small)


@pytest.fixture
def locked(place: Place) -> Iterator[Place]:
    """A place whose data directory can be made read-only by `lock`."""
    if os.geteuid() == 0 and not mount("-t", "tmpfs", "tmpfs", str(place.data)):
        pytest.skip("root can write everywhere but on a file system that is read-only")
    yield place
    if os.geteuid() == 0:
        subprocess.run(["umount", "-l", str(place.data)], check=True)
    else:
        place.data.chmod(0o700)


def lock(place: Place, locked: bool = True) -> None:
    if os.geteuid() == 0:
        assert mount("-o", "remount,ro" if locked else "remount,rw", str(place.data))
    else:
        for path in (place.data, place.home() and place.the_home().path):
            if path:
                path.chmod(0o500 if locked else 0o700)


def test_unwritable(locked: Place) -> None:
    work = sums(10)
    file = write(locked, work)
    lock(locked)
    code, output = ended(locked.foreplan("run", file))
    said = " ".join(output.split())
    assert code == 2
    assert "cannot make a home for the run" in said
    assert str(locked.data) in output.replace("\n", "")
    assert any(os.strerror(n).lower() in said.lower() for n in (errno.EROFS, errno.EACCES))
    assert not locked.executions()
    lock(locked, False)
    code, output = ended(locked.foreplan("run", file))
    assert code == 0, output
    work.check(locked)


def test_unwritable_when_it_is_resumed(locked: Place) -> None:
    work = sums(40, extra='[ -e "$FOREPLAN_DIR/go" ] || sleep 60; ')
    driver = locked.foreplan("run", write(locked, work), "--on", "local:2", "--no-history")
    until(lambda: locked.executions().total() == 2, "two tasks that run")
    driver.kill()
    ended(driver)
    for pid in locked.processes():
        os.kill(pid, 9)
    until(lambda: not locked.processes(), "the end of what ran")
    (locked.data / "go").touch()
    lock(locked)
    code, output = ended(locked.foreplan("resume", "last"))
    assert code == 2, output
    assert any(os.strerror(n).lower() in output.lower() for n in (errno.EROFS, errno.EACCES))
    assert "Traceback" not in output
    lock(locked, False)
    code, output = ended(locked.foreplan("resume", "last"))
    assert code == 0, output
    work.check(locked)
    check_nothing_repeated(locked, [])
