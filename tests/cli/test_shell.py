"""`foreplan shell`: a task's directory, with its inputs, its environment and its command."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

from .commands import MAIN, foreplan, refuse
from .live_runs import chain, failed, the_id, write_workflow

QUIET = ("run", "wf.yaml", "--on", "local:1", "-q")


def in_shell(*arguments: str, cwd: Path) -> tuple[int, list[str]]:
    done = foreplan("shell", *arguments, cwd=cwd)
    return done.returncode, done.stdout.splitlines()


def ran(folder: Path) -> None:
    write_workflow(folder, chain(folder))
    assert foreplan(*QUIET, cwd=folder).returncode == 0


def test_a_directory_made_anew_and_removed(folder: Path) -> None:
    ran(folder)
    code, lines = in_shell(
        "b", "-c", 'pwd; ls; echo "$FOREPLAN_TASK $FOREPLAN_DIR"; exit 7', cwd=folder
    )
    assert code == 7
    place, *names, told = lines
    assert names == ["a.txt", "command.sh"]
    assert told == f"b {folder.resolve()}"
    assert place.startswith(str(folder.resolve() / ".foreplan" / "shells" / "b-"))
    assert not Path(place).exists()
    assert os.listdir(folder / ".foreplan" / "shells") == []


def test_the_command_as_a_script_publishes_nothing(folder: Path) -> None:
    ran(folder)
    (folder / "b.txt").write_text("mine\n")
    code, lines = in_shell("b", "-c", "bash command.sh && cat b.txt", cwd=folder)
    assert (code, lines) == (0, ["1", "1"])
    assert (folder / "b.txt").read_text() == "mine\n"


def test_kept(folder: Path) -> None:
    ran(folder)
    done = foreplan("shell", "b", "--keep", "-c", "touch here", cwd=folder)
    place = folder / done.stderr.removeprefix("kept: ").strip()
    assert sorted(os.listdir(place)) == ["a.txt", "command.sh", "here"]


def test_the_directory_of_a_failed_attempt(folder: Path) -> None:
    tasks = chain(folder)
    tasks["b"]["run"] = "echo half > b.txt; echo $FOREPLAN_ATTEMPT > mine; exit 3"
    write_workflow(folder, tasks)
    failed(*QUIET, cwd=folder)
    code, lines = in_shell("b", "-c", "pwd; cat b.txt; bash command.sh", cwd=folder)
    kept = folder.resolve() / ".foreplan" / "runs" / the_id(folder) / "attempts" / "1-b.failed"
    assert (code, lines) == (3, [str(kept), "half"])
    assert (kept / "mine").exists()
    code, lines = in_shell("b", "--new", "-c", "pwd; ls", cwd=folder)
    assert (code, lines[1:]) == (0, ["a.txt", "command.sh"])
    assert "shells" in lines[0]


def test_killed_by_a_signal(folder: Path) -> None:
    ran(folder)
    assert in_shell("b", "-c", "kill -TERM $$", cwd=folder)[0] == 128 + 15


def test_bad_input(folder: Path) -> None:
    write_workflow(folder, chain(folder))
    assert "`foreplan shell FILE b`" in refuse("shell", "b", cwd=folder)
    said = refuse("shell", "wf.yaml", "b", "-c", "true", cwd=folder)
    assert said == "b: its input 'a.txt' is missing: what it needs must be made first"
    assert in_shell("wf.yaml", "a", "-c", "bash command.sh; cat a.txt", cwd=folder) == (
        0,
        ["1"],
    )
    assert not (folder / "a.txt").exists()
    assert "did you mean 'a'?" in refuse("shell", "wf.yaml", "aa", cwd=folder)
    assert foreplan(*QUIET, cwd=folder).returncode == 0
    assert "did you mean 'a'?" in refuse("shell", "aa", cwd=folder)
    assert "unknown run 'x'" in refuse("shell", "a", "x", cwd=folder)
    (folder / "c.txt").unlink()
    assert foreplan(*QUIET, cwd=folder).returncode == 0  # of which a is no part
    assert in_shell("a", "-c", "cat command.sh | tail -n 1 | wc -l", cwd=folder) == (0, ["1"])


def test_in_a_terminal(folder: Path) -> None:
    """It says what it is, Ctrl-C is for what runs in it, and its exit code is the shell's."""
    ran(folder)
    main, other = pty.openpty()
    environment = os.environ | {"SHELL": "/bin/sh", "PS1": "$ ", "ENV": ""}
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, "shell", "b"],
        stdin=other, stdout=other, stderr=other, cwd=folder, env=environment,
        start_new_session=True,
        preexec_fn=lambda: _take_terminal(other),
    )  # fmt: skip
    os.close(other)
    said = _read_until(main, b"$ ")
    assert b"nothing made here is published" in said
    assert b"removed afterwards" in said
    # what says so is in the foreground then
    os.write(main, b"sh -c 'echo st\"\"arted; exec sleep 100'\n")
    _read_until(main, b"started")
    os.write(main, b"\x03")
    _read_until(main, b"$ ")
    os.write(main, b"echo $FOREPLAN_TASK > $FOREPLAN_DIR/said; exit 5\n")
    while _read(main):
        pass
    assert process.wait(60) == 5
    os.close(main)
    assert (folder / "said").read_text() == "b\n"
    assert os.listdir(folder / ".foreplan" / "shells") == []


def _take_terminal(descriptor: int) -> None:
    import fcntl
    import termios

    fcntl.ioctl(descriptor, termios.TIOCSCTTY, 0)


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 4096)
    except OSError:  # nobody is there any more
        return b""


def _read_until(descriptor: int, text: bytes) -> bytes:
    said = b""
    while text not in said:
        piece = _read(descriptor)
        assert piece, said
        said += piece
    return said
