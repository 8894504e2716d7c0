"""`foreplan run`: real commands on this machine, what is printed, and the exit codes."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from html import escape
from pathlib import Path

import pytest

from .commands import foreplan, refuse, succeed
from .live_runs import Gate, chain, failed, started, the_id, write_workflow

ON = ("--on", "local:2")
INTERNAL = ("ico", "adaptive", "blind", "strategy", "typical", "migration", "new plan", "(planned")


def test_a_workflow_is_run(folder: Path) -> None:
    write_workflow(folder, chain(folder))
    done = foreplan("run", "wf.yaml", *ON, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert (folder / "c.txt").read_text() == "1\n1\n1\n1\n"
    lines, run = done.stdout.splitlines(), the_id(folder)
    assert lines[0].startswith(f"run {run} finished: 3 tasks done in ")
    assert lines[1:] == [f"more about it: foreplan report {run}"]
    said = done.stderr.splitlines()
    assert said[0] == f"run {run}: 3 tasks on 2 processors (local:2)"
    for number, task in enumerate("abc", 1):
        assert sum(f" {number}/3 {task} done on local" in line for line in said) == 1


def test_a_second_run_is_planned_with_what_the_first_has_taught(folder: Path) -> None:
    write_workflow(folder, chain(folder))
    unknown = "estimates: none: no task had a history or a declared cost\n"
    first = foreplan("run", "wf.yaml", *ON, cwd=folder)
    assert "estimated" not in first.stdout
    told = succeed("report", "last", cwd=folder)
    assert unknown in told
    assert "strategy:  ico, blind " in told
    again = foreplan("run", "wf.yaml", *ON, "--quiet", "--force", cwd=folder)
    assert ", estimated " in again.stdout.splitlines()[0]
    assert "done on" not in again.stderr
    for run in (first, again):
        assert not [word for word in INTERNAL if word in run.stdout + run.stderr]
    told = succeed("report", "last", cwd=folder)
    assert "strategy:  adaptive " in told
    assert "estimates: 3 measured here before\n" in told
    for more in ([], ["--strategy", "slack"]):
        without = foreplan("run", "wf.yaml", *ON, "--no-history", "--force", *more, cwd=folder)
        assert "estimated" not in without.stdout
        assert ("strategy slack" in without.stderr) == bool(more)
        assert unknown in succeed("report", "last", cwd=folder)


def test_json_is_alone_on_standard_output(folder: Path) -> None:
    write_workflow(folder, chain(folder))
    done = foreplan("run", "wf.yaml", *ON, "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    assert (printed["run"], printed["status"]) == (the_id(folder), "finished")
    assert list(printed["tasks"]) == ["a", "b", "c"]
    assert printed["not_done"] == printed["failures"] == []
    assert "done on local" in done.stderr


def test_files_are_in_the_directory_that_is_asked_for(folder: Path) -> None:
    (folder / "data").mkdir()
    write_workflow(folder, chain(folder))
    done = foreplan("run", "wf.yaml", "--dir", "data", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert (folder / "data" / "c.txt").exists()
    assert not (folder / ".foreplan").exists()
    run = the_id(folder / "data")
    assert done.stdout.splitlines()[-1] == f"more about it: foreplan report {run} --dir data"


def test_a_failure_is_told_with_its_log(folder: Path) -> None:
    tasks = chain(folder)
    tasks["b"]["run"] = "echo first; echo why >&2; exit 3"
    write_workflow(folder, tasks)
    printed, said = failed("run", "wf.yaml", *ON, cwd=folder)
    run = the_id(folder)
    assert f"run {run} failed: 1 task done, 1 failed, 1 not run, in " in printed
    lines = printed.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("failed: b: "))
    assert "3" in lines[at]
    log = folder / lines[at + 1].removeprefix("  log: ")
    assert log.read_text() == "why\n"
    assert lines[at + 2] == "  | why"
    assert lines[-4:] == [
        "left to do: b (failed), c",
        f"more about it: foreplan report {run}",
        f"all that b printed: foreplan logs b {run}",
        "fix it, then do what is left: " + shlex.join(["foreplan", "run", "wf.yaml", *ON]),
    ]
    assert "first\n" in succeed(*lines[-2].partition("foreplan ")[2].split(), cwd=folder)
    assert (
        sum("] b failed: it exited with code 3 (log: " in line for line in said.splitlines()) == 1
    )


def test_a_command_that_fails_is_shown_with_what_it_does_not_list(folder: Path) -> None:
    for name in ("table.csv", "other.csv"):
        (folder / name).write_text("1\n")
    command = "wc -l < table.csv > n.txt\ntest $(cat n.txt) = 2\necho never > n.txt\n"
    write_workflow(folder, {"use": {"run": command, "outputs": ["n.txt"]}})
    shown = [
        "  command: wc -l < table.csv > n.txt",
        "           test $(cat n.txt) = 2",
        "           echo never > n.txt",
        "  it names table.csv, which is in the data directory but not among its inputs: list it "
        "under inputs",
    ]
    printed, _ = failed("run", "wf.yaml", *ON, cwd=folder)
    assert "\n".join(shown) in printed
    # as it was then, not as it is now
    (folder / "table.csv").unlink()
    told = foreplan("report", "last", "--html", "page.html", cwd=folder).stdout
    page = (folder / "page.html").read_text()
    for line in shown:
        assert line[2:] in told
        assert escape(line[2:]) in page
    (failure,) = json.loads(foreplan("report", "last", "--json", cwd=folder).stdout)["failures"]
    assert (failure["command"], failure["unlisted"]) == (command, ["table.csv"])


def test_what_would_read_an_old_file_is_refused_before_it_begins(folder: Path) -> None:
    (folder / "table.csv").write_text("last week's\n")
    make = {"run": "echo new > table.csv", "outputs": ["table.csv"], "cost": 1}
    use = {"run": "cat table.csv > out.txt", "outputs": ["out.txt"], "cost": 1}
    write_workflow(folder, {"make": make, "use": use})
    (folder / "cluster.yaml").write_text("processors: {p: {}}")
    for command in (("run", "wf.yaml"), ("plan", "wf.yaml", "-p", "cluster.yaml")):
        said = refuse(*command, cwd=folder)
        assert re.search(
            r"line \d: tasks.use.run: use names table.csv, which make \(line \d\)", said
        )
    assert not (folder / ".foreplan").exists()
    write_workflow(folder, {"make": make, "use": {**use, "inputs": ["table.csv"]}})
    assert foreplan("run", "wf.yaml", *ON, cwd=folder).returncode == 0
    assert (folder / "out.txt").read_text() == "new\n"


def test_the_shell_of_a_workflow_and_of_a_task(folder: Path) -> None:
    content = """
shell: python3 -c
tasks:
  a: {run: "open('a.txt', 'w').write('a')", outputs: [a.txt]}
  b: {run: "false; cat a.txt > b.txt", shell: sh, inputs: [a.txt], outputs: [b.txt]}
"""
    (folder / "wf.yaml").write_text(content)
    assert foreplan("run", "wf.yaml", *ON, cwd=folder).returncode == 0
    assert (folder / "b.txt").read_text() == "a"
    shutil.rmtree(folder / ".foreplan")
    (folder / "wf.yaml").write_text(content.replace("shell: sh,", "shell: nosh -x,"))
    said = refuse("run", "wf.yaml", cwd=folder)
    assert "b cannot be run: its shell 'nosh' is not on this machine" in said
    assert not (folder / ".foreplan").exists()


def test_keep_going_does_what_does_not_depend_on_it(folder: Path) -> None:
    tasks = chain(folder) | {"bad": {"run": "exit 1"}}
    order = {name: tasks[name] for name in ("bad", "a", "b", "c")}
    write_workflow(folder, order)
    printed, _ = failed("run", "wf.yaml", "--on", "local:1", "-k", cwd=folder)
    assert "failed: 3 tasks done, 1 failed, in " in printed
    assert (folder / "c.txt").exists()


def test_retries_and_time_limits(folder: Path) -> None:
    marker = folder / "tried"
    again = f"test -e {marker} || {{ touch {marker}; exit 1; }}"
    write_workflow(folder, {"again": {"run": again}})
    done = foreplan("run", "wf.yaml", *ON, "--retries", "1", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "failed attempts: 1\n" in done.stdout
    assert "] again failed (attempt 1): it exited with code 1; trying again\n" in done.stderr
    write_workflow(folder, {"rests": {"run": "exit 1", "wait": 0.05}})
    _, said = failed("run", "wf.yaml", *ON, "--retries", "1", cwd=folder)
    assert "] rests failed (attempt 1): it exited with code 1; trying again in 50 ms\n" in said
    assert "] rests failed (attempt 2): it exited with code 1\n" in said
    write_workflow(folder, {"slow": {"run": "sleep 1000"}})
    printed, _ = failed("run", "wf.yaml", *ON, "--timeout", "0.2", cwd=folder)
    assert "failed: slow: " in printed
    assert "its time-out of 200 ms" in printed


def test_what_a_task_writes_cannot_steer_the_terminal(folder: Path) -> None:
    write_workflow(folder, {"rude": {"run": r"printf '\033[2Jred\n' >&2; exit 1"}})
    printed, said = failed("run", "wf.yaml", *ON, cwd=folder)
    assert "red" in printed
    assert "\x1b" not in printed + said


def test_ctrl_c_once_finishes_what_runs(folder: Path, gate: Gate) -> None:
    write_workflow(folder, chain(folder, gate))
    with started("run", "wf.yaml", *ON, cwd=folder) as command:
        gate.wait()
        command.interrupt()
        assert "1 running task will finish first" in command.wait_for("stopping")
        gate.open()
        code, printed = command.end()
    assert code == 130
    assert f"run {the_id(folder)} stopped: 2 tasks done, 1 not run, in " in printed
    assert f"foreplan resume {the_id(folder)}" in printed
    assert (folder / "ran").read_text().split() == ["a", "b"]
    assert (folder / "b.txt").exists()


def test_ctrl_c_twice_stops_now(folder: Path, gate: Gate) -> None:
    write_workflow(folder, chain(folder, gate))
    with started("run", "wf.yaml", *ON, "--json", cwd=folder) as command:
        gate.wait()
        command.interrupt()
        command.wait_for("stopping")
        command.interrupt()
        code, printed = command.end()
    assert code == 130
    content = json.loads(printed)
    assert (content["status"], content["not_done"]) == ("stopped", ["b", "c"])
    assert list(content["tasks"]) == ["a"]
    assert not (folder / "b.txt").exists()
    (log,) = folder.glob(".foreplan/runs/*/run.log")
    assert " stopped: 1 task done, 1 not finished, 1 not run, in " in log.read_text()


BAD: list[tuple[list[str], list[str]]] = [
    (["none.yaml"], ["none.yaml: ", "no such file"]),
    (["wf.yaml", "--strategy", "slakc"], ["unknown strategy 'slakc'", "'slack'"]),
    (["wf.yaml", "--on", "loca"], ["'loca' is no place to run", "dask://"]),
    (["wf.yaml", "--on", "local:0"], ["'0'", "local:4"]),
    (["wf.yaml", "--dir", "nowhere"], ["nowhere"]),
    (["mute.yaml"], ["mute.yaml: line 1: tasks.x: ", "run"]),
    (["out.yaml"], ["out.yaml: line 1: tasks.x.outputs: the file '/etc/x': ", "absolute"]),
]


@pytest.mark.parametrize(("arguments", "told"), BAD, ids=lambda x: " ".join(x)[:40])
def test_bad_input(folder: Path, arguments: list[str], told: list[str]) -> None:
    write_workflow(folder, chain(folder))
    (folder / "mute.yaml").write_text("tasks: {x: {}}")
    (folder / "out.yaml").write_text("tasks: {x: {run: 'true', outputs: [/etc/x]}}")
    message = refuse("run", *arguments, cwd=folder)
    assert all(word in message for word in told), message
    assert not (folder / ".foreplan").exists()


def test_force_alone_means_all(folder: Path) -> None:
    write_workflow(folder, chain(folder))
    assert foreplan("run", "wf.yaml", *ON, cwd=folder).returncode == 0
    assert (
        foreplan("run", "wf.yaml", *ON, cwd=folder).stdout == "nothing to do: 3 tasks up to date\n"
    )
    for words in (("--force", "wf.yaml"), ("wf.yaml", "--force"), ("wf.yaml", "--force", "-q")):
        assert " finished: 3 tasks done in " in foreplan("run", *words, *ON, cwd=folder).stdout
    one = foreplan(
        "run", "wf.yaml", "--force", "a", *ON, "--dry-run", cwd=folder
    ).stdout.splitlines()
    assert (
        one[0]
        == "0 of 3 tasks up to date, 2 may turn out to be; to run: at least 1, at most 3 tasks"
    )
    told = "\n".join(" ".join(line.split()) for line in one)
    assert "local-1 forced" in told
    assert "local-1 it reads a.txt, which is made again" in told


def test_a_damaged_store_is_said_to_be_and_moved_aside(folder: Path) -> None:
    write_workflow(folder, chain(folder))
    foreplan("run", "wf.yaml", *ON, cwd=folder)
    (part,) = (folder / ".foreplan/store").glob("*.jsonl")
    origin, first, *others = part.read_bytes().splitlines(keepends=True)
    part.write_bytes(origin + first[:20] + b"?" + first[21:] + b"".join(others))
    again = foreplan("run", "wf.yaml", *ON, cwd=folder)
    assert f"it was moved to {part.parent / 'damaged' / part.name}" in again.stderr
    assert (folder / "ran").read_text().split() == ["a", "b", "c", "a"]  # it came out as before
    assert "nothing to do" in foreplan("run", "wf.yaml", *ON, cwd=folder).stdout


def test_what_turns_out_to_be_up_to_date_is_counted_apart(folder: Path) -> None:
    """In the summary, the report and its page, and the log; `foreplan attach` reads the same."""
    write_workflow(folder, chain(folder))
    assert foreplan("run", "wf.yaml", *ON, "-q", cwd=folder).returncode == 0
    tasks = chain(folder)
    tasks["a"]["run"] += " "  # another command that gives the same
    write_workflow(folder, tasks)
    done = foreplan("run", "wf.yaml", *ON, "--json", cwd=folder)
    told = json.loads(done.stdout)
    assert (told["status"], told["reused"]) == ("finished", ["b", "c"])
    text = succeed("report", "last", cwd=folder)
    assert "tasks:     1 of 3 done, 2 up to date\n" in text
    report = json.loads(succeed("report", "last", "--json", cwd=folder))
    assert (report["done"], report["reused"]) == (3, ["b", "c"])
    assert {t["task"]: t["state"] for t in report["task_list"]} == {
        "a": "done",
        "b": "up to date",
        "c": "up to date",
    }
    tasks["a"]["run"] += " "
    write_workflow(folder, tasks)
    first = foreplan("run", "wf.yaml", *ON, "-q", cwd=folder).stdout.splitlines()[0]
    assert " finished: 1 task done, 2 up to date, in " in first


@pytest.mark.parametrize("stopped", [False, True])
def test_after_a_failure_the_advice_is_to_run_and_after_a_stop_to_resume(
    folder: Path, gate: Gate, stopped: bool
) -> None:
    tasks = chain(folder, gate if stopped else None)
    if not stopped:
        tasks["c"]["run"] = "exit 3"
    write_workflow(folder, tasks)
    (folder / "sub").mkdir()
    if stopped:
        with started("run", "wf.yaml", *ON, cwd=folder) as run:
            gate.wait()
            run.interrupt()
            run.wait_for("stopping: 1 running task will finish first")
            gate.open()
            code, printed = run.end()
        assert code == 130
        assert printed.splitlines()[-1] == f"resume it: foreplan resume {the_id(folder)}"
        return
    printed, _ = failed("run", "wf.yaml", "c", "--trust", "mtime", cwd=folder)
    again = printed.splitlines()[-1].partition("do what is left: ")[2]
    assert again == "foreplan run wf.yaml c --trust mtime"
    printed, _ = failed(*again.split()[1:], cwd=folder)
    assert "run again" not in printed
    assert (folder / "ran").read_text() == "a\nb\n"  # what is done was not done again
    counts = " failed: 0 tasks done, 2 up to date, 1 failed, in "
    assert counts in printed
    assert counts in failed("resume", "last", cwd=folder)[0]
    printed, _ = failed("run", "../wf.yaml", "c", "--dir", "..", cwd=folder / "sub")
    again = printed.splitlines()[-1].partition("do what is left: ")[2]
    assert again.endswith(" c --dir ..")
    failed(*again.split()[1:], cwd=folder / "sub")


def test_the_home_of_a_run_is_removed(folder: Path) -> None:
    tasks = chain(folder)
    tasks["a"]["run"] += "; rm -rf $FOREPLAN_DIR/.foreplan"
    write_workflow(folder, tasks)
    done = foreplan("run", "wf.yaml", *ON, "--quiet", cwd=folder)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    errors = done.stderr.splitlines()[1:]  # after its name
    assert len(errors) == 1
    assert errors[0].endswith(
        "what it has published is there, and `foreplan run` does what is left"
    )


def test_what_a_killed_run_left_behind_is_told(folder: Path) -> None:
    gate = Gate(folder)
    write_workflow(folder, {"a": {"run": f"{gate.command}; echo old > a", "outputs": ["a"]}})
    with started("run", "wf.yaml", *ON, cwd=folder) as first:
        gate.wait()
        first.process.kill()
        first.end()
    killed = the_id(folder)
    write_workflow(folder, {"a": {"run": "echo new > a", "outputs": ["a"]}})
    dry = succeed("run", "wf.yaml", "-n", *ON, cwd=folder)
    assert dry.startswith("would end 1 process that the killed run ")
    data = json.loads(succeed("run", "wf.yaml", "-n", "--json", *ON, cwd=folder))
    assert data["notes"] == dry.splitlines()[:1]
    done = foreplan("run", "wf.yaml", *ON, "--quiet", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert f"ended 1 process that the killed run {killed} left behind" in done.stderr.splitlines()
    gate.open()  # for nobody
    gate.close()
    assert (folder / "a").read_text() == "new\n"
    again = foreplan("run", "wf.yaml", *ON, cwd=folder)
    assert "ended" not in again.stdout + again.stderr
