"""`foreplan logs`: what tasks have printed, of runs that are over and of one under way."""

from __future__ import annotations

from pathlib import Path

from .commands import foreplan, refuse, succeed
from .live_runs import Gate, failed, started, the_id, write_workflow

QUIET = ("run", "wf.yaml", "--on", "local:1", "-q")


def ran(folder: Path) -> str:
    """A run in which one task fails twice, and another needs it."""
    write_workflow(
        folder,
        {
            "good": {"run": "echo out; echo err >&2; echo 1 > a", "outputs": ["a"]},
            "silent": {"run": "true"},
            "bad": {"run": "echo try >&2; exit 3", "inputs": ["a"], "outputs": ["b"], "retries": 1},
            "last": {"run": "cat b", "inputs": ["b"]},
        },
    )
    failed(*QUIET, "-k", cwd=folder)
    return the_id(folder)


def test_both_streams_by_their_names(folder: Path) -> None:
    run = ran(folder)
    lines = succeed("logs", "good", cwd=folder).splitlines()
    assert lines[0].startswith("good: on local-1, finished after ")
    place = f".foreplan/runs/{run}/logs/0-good"
    assert lines[1:] == [f"-- stdout: {place}.out", "out", f"-- stderr: {place}.err", "err"]
    assert succeed("logs", "good", run, "--dir", folder).splitlines()[2] == "out"


def test_of_the_last_run_of_a_workflow_file(folder: Path) -> None:
    ran(folder)
    (folder / "other.yaml").write_text(
        "name: other\ntasks:\n  good: {run: echo another}\n  wf.yaml: {run: echo third}\n"
    )
    assert foreplan("run", "other.yaml", *QUIET[2:], cwd=folder).returncode == 0
    assert "another\n" in succeed("logs", "good", cwd=folder)
    assert "another\n" in succeed("logs", "other.yaml", "good", cwd=folder)
    assert "\nout\n" in succeed("logs", folder / "wf.yaml", "good", cwd=folder)
    assert "third\n" in succeed("logs", "wf.yaml", cwd=folder)  # alone it is a task
    assert "third\n" in succeed("logs", "other.yaml", "wf.yaml", cwd=folder)
    assert "name one of them" in refuse("logs", "wf.yaml", "good", "last", cwd=folder)
    assert "too many" in refuse("logs", "good", "last", "more", cwd=folder)
    assert "name a task after it" in refuse("logs", "other.yml", cwd=folder)
    assert "before the task, `wf.yaml good`" in refuse("logs", "good", "wf.yaml", cwd=folder)
    assert "x.yaml: it was not run in " in refuse("logs", "x.yaml", "good", cwd=folder)


def test_the_last_attempt_or_all(folder: Path) -> None:
    ran(folder)
    text = succeed("logs", "bad", cwd=folder)
    assert text.startswith("bad: attempt 2 of 2, on local-1, failed after ")
    assert text.splitlines()[0].endswith(": it exited with code 3")
    assert text.count("\ntry\n") == 1
    (kept,) = (
        x.split(": ")[1] for x in text.splitlines() if x.startswith("its directory was kept")
    )
    assert kept.endswith("attempts/2-bad.failed")
    assert (folder / kept / "command.sh").exists()
    text = succeed("logs", "bad", "--all", cwd=folder)
    assert text.count("\ntry\n") == 2
    assert text.index("attempt 1 of 2") < text.index("attempt 2 of 2")


def test_nothing_to_print(folder: Path) -> None:
    run = ran(folder)
    assert succeed("logs", "silent", cwd=folder).splitlines()[1] == "it has printed nothing"
    blocked = f"last has not run in {run}: a task that it needs has failed\n"
    assert succeed("logs", "last", cwd=folder) == blocked
    assert succeed("logs", "last", "-f", cwd=folder) == blocked


def test_a_task_that_was_up_to_date_has_the_log_of_an_earlier_run(folder: Path) -> None:
    first = ran(folder)
    second = failed(*QUIET, "-k", cwd=folder)[0].split()[1]
    for words in (("good",), ("wf.yaml", "good")):
        lines = succeed("logs", *words, cwd=folder).splitlines()
        assert lines[0] == f"good did not have to run in {second}: this is of run {first}"
        assert lines[1].startswith("good: on local-1, finished after ")
    assert f"good did not run in {second}: it was" in refuse("logs", "good", "last", cwd=folder)


def test_an_unknown_task_names_the_nearest(folder: Path) -> None:
    ran(folder)
    assert "unknown task 'goood' (did you mean 'good'?)" in refuse("logs", "goood", cwd=folder)
    assert "unknown run 'x'" in refuse("logs", "good", "x", cwd=folder)


def test_a_task_under_way(folder: Path, gate: Gate) -> None:
    """Driven by another process: what it prints comes at once, and the end of it, too."""
    write_workflow(
        folder,
        {
            "a": {"run": f"echo before; {gate.command}; echo after; echo 1 > a", "outputs": ["a"]},
            "b": {"run": "echo of b; cat a", "inputs": ["a"]},
        },
    )
    with started(*QUIET, cwd=folder) as run:
        gate.wait()
        text = succeed("logs", "a", cwd=folder)
        assert text.splitlines()[0] == "a: on local-1, running"
        assert text.splitlines()[2] == "before"
        assert succeed("logs", "b", cwd=folder) == f"b has not run in {the_id(folder)} yet\n"
        with (
            started("logs", "a", "-f", cwd=folder) as look,
            started("logs", "b", "-f", cwd=folder) as other,
        ):
            assert look.process.stdout is not None
            for line in ("a: on local-1, running\n", "-- stdout\n", "before\n"):
                assert look.process.stdout.readline() == line
            other.wait_for("b has not started; waiting for it")
            gate.open()
            rest, _ = look.process.communicate()
            assert rest == "after\na: finished\n"
            said, _ = other.process.communicate()
            assert "of b\n" in said
            assert other.process.returncode == 0
        run.process.communicate()
        assert run.process.returncode == 0
