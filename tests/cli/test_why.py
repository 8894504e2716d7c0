"""`foreplan why`: of real runs, of one under way, and of what is there with no run at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import foreplan as library

from .commands import refuse, succeed
from .live_runs import Gate, chain, failed, started, the_id, write_workflow

QUIET = ("run", "wf.yaml", "--on", "local:1", "-q")


def why(*arguments: str, cwd: Path) -> dict[str, Any]:
    told = json.loads(succeed("why", *arguments, "--json", cwd=cwd))
    assert isinstance(told, dict)
    return told


def ran(folder: Path) -> str:
    from .commands import foreplan

    done = foreplan(*QUIET, cwd=folder)
    assert done.returncode == 0, done.stderr
    return str(done.stdout.split()[1])


def test_with_no_run_at_all(folder: Path) -> None:
    write_workflow(folder, chain(folder))
    said = refuse("why", "a", cwd=folder)
    assert said.startswith("nothing was run in ")
    assert "`foreplan why FILE a`" in said
    assert "`foreplan why wf.yaml TASK`" in refuse("why", "wf.yaml", cwd=folder)
    told = why("wf.yaml", "a", cwd=folder)
    assert (told["run"], told["state"]) == (None, "stale")
    assert told["known"]["reason"] == "it has no earlier result here"
    assert "unknown task 'aa' (did you mean 'a'?)" in refuse("why", "wf.yaml", "aa", cwd=folder)
    assert "name one of them" in refuse("why", "wf.yaml", "a", "last", cwd=folder)


def test_why_it_ran_again_from_what_to_what(folder: Path) -> None:
    write_workflow(folder, chain(folder))
    first = ran(folder)
    assert why("wf.yaml", "a", cwd=folder)["state"] == "up to date"
    tasks = chain(folder)
    tasks["a"]["run"] = tasks["a"]["run"].replace("echo 1", "echo 2")
    write_workflow(folder, tasks)
    text = succeed("why", "wf.yaml", "a", cwd=folder)
    assert text.startswith("a: it would run\n")
    assert "because:  its command has changed" in text
    assert "echo 1 > a.txt\n" in text
    assert "echo 2 > a.txt\n" in text
    told = why("wf.yaml", "b", cwd=folder)
    assert told["state"] == "unsure"
    second = ran(folder)
    told = why("a", cwd=folder)
    assert (told["run"], told["because"]) == (second, "its command has changed")
    (change,) = told["known"]["changed"]
    assert (change["what"], change["before"][-14:]) == ("command", "echo 1 > a.txt")
    assert change["after"].endswith("echo 2 > a.txt")
    assert (told["known"]["since"], told["known"]["now"]) == (first, "up to date")
    (change,) = why("b", cwd=folder)["known"]["changed"]
    assert (change["what"], change["name"], change["made_by"]) == ("input", "a.txt", second)
    assert change["before"] != change["after"]
    (folder / "a.txt").write_text("by hand\n")
    assert why("a", cwd=folder)["known"]["edited"] == "a.txt"
    text = succeed("why", "a", cwd=folder)
    assert "foreplan adopt a.txt" in text
    assert "`foreplan run wf.yaml --on local:1 --force a` makes it again" in text


def test_what_was_replaced_is_told_as_past(folder: Path) -> None:
    write_workflow(folder, chain(folder))
    (folder / "a.txt").write_text("old\n")
    ran(folder)
    told = (
        "it has no earlier result here; its output a.txt, which foreplan did not make, was replaced"
    )
    assert why("a", cwd=folder)["because"] == told


def test_what_was_up_to_date_is_no_part_of_a_run(folder: Path) -> None:
    write_workflow(folder, chain(folder))
    first = ran(folder)
    (folder / "c.txt").unlink()
    second = ran(folder)
    told = why("a", cwd=folder)
    assert (told["run"], told["state"]) == (second, "up to date")
    assert told["known"]["made_by"] == first
    assert "it was up to date when that run began" in refuse("logs", "a", "last", cwd=folder)
    assert why("c", cwd=folder)["because"] == "its output c.txt is missing"


def test_a_task_that_was_found_up_to_date_while_it_ran(folder: Path) -> None:
    write_workflow(folder, chain(folder))
    first = ran(folder)
    tasks = chain(folder)
    tasks["a"]["run"] += " "  # another command, the same content
    write_workflow(folder, tasks)
    ran(folder)
    told = why("b", cwd=folder)
    assert told["state"] == "up to date"
    (tried,) = told["attempts"]
    assert (tried["end"], tried["reason"]) == (
        "up to date",
        f"what it reads is as it was: made by run {first}",
    )


def test_a_run_under_way(folder: Path, gate: Gate) -> None:
    write_workflow(folder, chain(folder, gate))
    with started(*QUIET, cwd=folder) as run:
        gate.wait()
        told = why("c", cwd=folder)
        assert (told["status"], told["state"]) == ("running", "waiting")
        assert told["waits"] == "waits for b (running)"
        assert told["place"]["processor"] is None
        told = why("b", cwd=folder)
        assert told["state"] == "running"
        assert [tried["end"] for tried in told["attempts"]] == ["running"]
        gate.open()
        assert run.end()[0] == 0


def test_a_failure_and_what_it_blocks(folder: Path) -> None:
    tasks = chain(folder)
    tasks["b"] |= {"run": "exit 3", "retries": 1}
    write_workflow(folder, tasks)
    failed(*QUIET, cwd=folder)
    text = succeed("why", "b", cwd=folder)
    assert "given up: it failed 2 times, with 1 retry" in text
    assert f"foreplan shell b {the_id(folder)}" in text
    assert "it will not run: b was given up" in succeed("why", "c", cwd=folder)


def double(x: int) -> int:
    return 2 * x


def test_a_run_of_functions(folder: Path) -> None:
    flow = library.Flow("calls")
    flow.task(double, 1, name="one")
    library.run(flow, dir=folder, on="local:1")
    told = why("one", cwd=folder)
    assert (told["state"], [t["end"] for t in told["attempts"]]) == ("done", ["finished"])
    assert refuse("shell", "one", cwd=folder).endswith("or see `foreplan logs one`")
