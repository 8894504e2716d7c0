"""Runs at the same time in one directory: never two that make the same file."""

from __future__ import annotations

from pathlib import Path

from .commands import foreplan, refuse
from .live_runs import Gate, started

ONE = ("--on", "local:1", "--no-history", "--quiet")


def write(folder: Path, name: str, command: str, *outputs: str) -> None:
    made = "; ".join([command, *(f"echo {name} > {output}" for output in outputs)])
    listed = ", ".join(outputs)
    (folder / f"{name}.yaml").write_text(
        f"name: {name}\ntasks:\n  make: {{run: '{made}', outputs: [{listed}]}}\n"
    )


def files(folder: Path) -> set[Path]:
    """All that is in the directory, folders too."""
    return set(folder.rglob("*"))


def the_run(folder: Path, name: str) -> str:
    (home,) = (folder / ".foreplan" / "runs").glob(f"{name}-*")
    return home.name


def test_the_second_is_refused(folder: Path, gate: Gate) -> None:
    write(folder, "first", gate.command, "x.txt", "sub/y.txt")
    write(folder, "second", ":", "z.txt", "sub/y.txt")
    write(folder, "third", ":", "z.txt")
    with started("run", "first.yaml", *ONE, cwd=folder) as first:
        gate.wait()
        before = files(folder)
        said = refuse("run", "second.yaml", *ONE, cwd=folder)
        assert said.startswith(
            f"run {the_run(folder, 'first')} (process {first.process.pid} on host "
        )
        assert "is making 'sub/y.txt' now: wait for its end" in said
        assert files(folder) == before
        assert foreplan("run", "third.yaml", *ONE, cwd=folder).returncode == 0
        gate.open()
        assert first.end()[0] == 0
    assert foreplan("run", "second.yaml", *ONE, cwd=folder).returncode == 0
    assert (folder / "sub" / "y.txt").read_text() == "second\n"


def test_a_killed_run_has_no_claim_until_it_is_resumed(folder: Path, gate: Gate) -> None:
    write(folder, "first", gate.command, "x.txt")
    write(folder, "second", gate.command, "x.txt")
    with started("run", "first.yaml", *ONE, cwd=folder) as first:
        gate.wait()
        first.process.kill()
        first.process.wait()
        with started("run", "second.yaml", *ONE, cwd=folder) as second:
            gate.wait()
            run = the_run(folder, "first")
            journal = folder / ".foreplan" / "runs" / run / "journal.jsonl"
            before = journal.read_bytes()
            said = refuse("resume", run, cwd=folder)
            assert f"run {the_run(folder, 'second')} (process {second.process.pid} " in said
            assert journal.read_bytes() == before
            gate.open()  # for the task that the first has left behind, or the second's
            gate.open()
            assert second.end()[0] == 0
    assert (folder / "x.txt").read_text() == "second\n"
    gate.open()
    assert foreplan("resume", run, cwd=folder).returncode == 0
    assert (folder / "x.txt").read_text() == "first\n"
