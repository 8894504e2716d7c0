"""One process drives a run; when it dies in whatever way, another may."""

import fcntl
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from foreplan.errors import ForeplanError
from foreplan.runs.home import RunHome
from foreplan.runs.lock import RunLock, is_driven

HOLDING = """
import os, subprocess, sys
from pathlib import Path
from foreplan.runs.lock import RunLock
from foreplan.runs.home import RunHome
lock = RunLock(RunHome(Path(sys.argv[1])))
lock.acquire()
kind = sys.argv[2]
if kind == "command":
    subprocess.Popen(["cat"], close_fds=False)
child = kind == "fork" and os.fork() == 0
if child or kind != "fork":
    os.write(1, b"holding\\n")
if child:
    sys.stdin.buffer.read()
    os._exit(0)
sys.stdin.buffer.read()
lock.release()
os.write(1, b"released\\n")
"""


@pytest.fixture
def home(tmp_path: Path) -> RunHome:
    return RunHome.create(tmp_path, "etl")


@contextmanager
def holding(home: RunHome, child: str = "none") -> Iterator["subprocess.Popen[bytes]"]:
    """Another process that holds the lock, until its stdin is closed."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDING, str(home.path), child],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"holding\n"
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def test_one_at_a_time(home: RunHome) -> None:
    assert not is_driven(home)
    with RunLock(home):
        assert is_driven(home)
        with pytest.raises(ForeplanError, match=f"process {os.getpid()} "):
            RunLock(home).acquire()
        assert is_driven(home)
    assert not is_driven(home)
    with RunLock(home) as lock, pytest.raises(ValueError, match="already"):
        lock.acquire()
    lock.release()  # once more does no harm


def test_another_process_holds_it(home: RunHome) -> None:
    with holding(home) as process:
        assert is_driven(home)
        with pytest.raises(ForeplanError) as caught:
            RunLock(home).acquire()
        message = str(caught.value)
        assert f"run {home.id} is being driven by process {process.pid}" in message
        assert f"on host {socket.gethostname()} since 2" in message
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        assert process.stdout.readline() == b"released\n"
        with RunLock(home):
            assert is_driven(home)


@pytest.mark.parametrize("child", ["none", "fork", "command"])
def test_killed_while_holding_it(home: RunHome, child: str) -> None:
    """The child that outlives its parent does not keep the lock."""
    with holding(home, child) as process:
        process.send_signal(signal.SIGKILL)
        assert process.wait(60) == -signal.SIGKILL
        assert not is_driven(home)
        with RunLock(home):
            assert is_driven(home)


def test_a_forked_child_does_not_release_it(home: RunHome) -> None:
    with RunLock(home) as lock:
        child = os.fork()
        if child == 0:
            lock.release()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert is_driven(home)


def test_looking_does_not_disturb(home: RunHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those who list the runs share the lock for a moment; a run begins all the same."""
    with RunLock(home):
        pass
    looks = home.lock.open("rb")
    fcntl.flock(looks, fcntl.LOCK_SH)
    monkeypatch.setattr(time, "sleep", lambda seconds: looks.close())
    with RunLock(home):
        assert looks.closed
        assert is_driven(home)


def test_those_who_look_for_ever(home: RunHome, monkeypatch: pytest.MonkeyPatch) -> None:
    with RunLock(home):
        pass
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    with home.lock.open("rb") as looks:
        fcntl.flock(looks, fcntl.LOCK_SH)
        with pytest.raises(ForeplanError, match="driven by another process"):
            RunLock(home).acquire()


@pytest.mark.parametrize("kind", ["flock", "bytes"])
def test_either_lock_is_enough(home: RunHome, kind: str) -> None:
    """Some network file systems take only one of the two to other hosts."""
    with RunLock(home):
        pass
    with home.lock.open("r+b") as there:
        if kind == "flock":
            fcntl.flock(there, fcntl.LOCK_EX)
        else:
            whole = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
            fcntl.fcntl(there, fcntl.F_OFD_SETLK, whole)
        assert is_driven(home)
        with pytest.raises(ForeplanError, match="driven by another process"):
            RunLock(home).acquire()
    assert not is_driven(home)
    with RunLock(home):
        assert is_driven(home)


def test_a_lock_that_nobody_signed(home: RunHome) -> None:
    with RunLock(home):
        for text in ("", "{", "[]", '{"pid": "x"}', "null"):
            home.lock.write_text(text)
            with pytest.raises(ForeplanError, match="driven by another process"):
                RunLock(home).acquire()


def test_what_is_signed_before_a_death_does_not_matter(home: RunHome) -> None:
    home.lock.write_text('{"pid": 1, "host": "h", "since": "2025"}' + " " * 500)
    assert not is_driven(home)
    with RunLock(home), pytest.raises(ForeplanError, match=f"process {os.getpid()} "):
        RunLock(home).acquire()


def test_no_home(tmp_path: Path) -> None:
    home = RunHome(tmp_path / "none")
    assert not is_driven(home)
    with pytest.raises(ForeplanError, match="cannot lock"):
        RunLock(home).acquire()


def test_a_link_is_not_followed(home: RunHome, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    home.lock.symlink_to(victim)
    with pytest.raises(ForeplanError, match="cannot lock"):
        RunLock(home).acquire()
    assert victim.read_text() == "precious"


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_only_a_file_can_be_locked(home: RunHome, make: Callable[[Path], None]) -> None:
    make(home.lock)
    for attempt in (lambda: RunLock(home).acquire(), lambda: is_driven(home)):
        with pytest.raises(ForeplanError, match=r"a named pipe|is a directory|a directory, not"):
            attempt()
