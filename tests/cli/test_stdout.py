"""What goes to standard output goes into the stream; the file behind it is not replaced."""

import subprocess
import sys
from pathlib import Path

import pytest

from .commands import MAIN, written

DAG = "JOB a a.sub\nJOB b b.sub\nPARENT a CHILD b\n"
PRIORITIZE = ["prioritize", "x.dag", "-o"]
OUTPUTS = {
    "prioritize": ([*PRIORITIZE, "-"], "PRIORITY b 1\n"),
    "by its device": ([*PRIORITIZE, "/dev/stdout"], "PRIORITY b 1\n"),
    "by its descriptor": ([*PRIORITIZE, "/proc/self/fd/1"], "PRIORITY b 1\n"),
    "generate": (["generate", "chain", "--tasks", "3", "-o", "-"], "name: chain-3-seed0\n"),
    "a platform": (["generate", "platform", "--processors", "2", "-o", "-"], "processors:\n"),
    "convert": (["convert", "wf.yaml", "-"], "name: small\n"),
    "a journal": (["simulate", "wf.yaml", "-p", "pf.yaml", "--journal", "-"], '{"type": "run"'),
}


@pytest.mark.parametrize(("command", "found"), OUTPUTS.values(), ids=list(OUTPUTS))
def test_a_log_keeps_what_it_has(tmp_path: Path, command: list[str], found: str) -> None:
    written(tmp_path)
    (tmp_path / "x.dag").write_text(DAG)
    log = tmp_path / "log"
    log.write_text("the line before\n")
    inode = log.stat().st_ino
    with log.open("a") as stream:  # as >> does
        done = subprocess.run(
            [sys.executable, "-c", MAIN, *command],
            stdout=stream, stderr=subprocess.PIPE, text=True, check=False, cwd=tmp_path,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    text = log.read_text()
    assert text.startswith("the line before\n"), text
    assert found in text
    assert "wrote" not in text  # what is said about it goes to standard error
    assert log.stat().st_ino == inode
    assert not (tmp_path / "-").exists()


def test_a_reader_that_has_seen_enough(tmp_path: Path) -> None:
    command = [sys.executable, "-c", MAIN, "generate", "chain", "--tasks", "9000", "-o", "-"]
    writer = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path, bufsize=0
    )
    assert writer.stdout is not None
    assert writer.stderr is not None
    writer.stdout.read(1)
    writer.stdout.close()
    assert writer.stderr.read() == b""
    assert writer.wait() == 0
    writer.stderr.close()


def test_a_descriptor_that_is_not_open(tmp_path: Path) -> None:
    (tmp_path / "x.dag").write_text(DAG)
    command = [sys.executable, "-c", MAIN, *PRIORITIZE, "/dev/fd/99"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("foreplan: error: /dev/fd/99: cannot write it: ")
