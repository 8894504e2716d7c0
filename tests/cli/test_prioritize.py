"""`foreplan prioritize`: the files that it writes, what it says, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from foreplan.history.records import TaskRecord
from foreplan.history.repository import Repository

from .commands import foreplan, refuse, succeed

DIAMOND = (
    "JOB A a.sub\nJOB B b.sub\nJOB C c.sub\nJOB D d.sub\nPARENT A CHILD B C\nPARENT B C CHILD D\n"
)


def numbers(text: str) -> dict[str, int]:
    """The PRIORITY lines of a file."""
    lines = [line.split() for line in text.splitlines() if line.startswith("PRIORITY ")]
    return {job: int(number) for _, job, number in lines}


def test_into_the_file_itself(tmp_path: Path) -> None:
    path = tmp_path / "my.dag"
    path.write_text(DIAMOND)
    said = succeed("prioritize", "my.dag", cwd=tmp_path)
    assert said == "wrote my.dag\npriorities of 4 jobs written\n"
    text = path.read_text()
    assert text.startswith(DIAMOND)
    found = numbers(text.removeprefix(DIAMOND))
    assert sorted(found.values()) == [1, 2, 3, 4]
    assert (found["A"], found["D"]) == (4, 1)
    # once more: nothing to do
    assert succeed("prioritize", path) == "priorities of 0 jobs written, 4 kept\n"
    assert path.read_text() == text
    assert succeed("prioritize", path, "--replace").endswith("priorities of 4 jobs written\n")
    assert path.read_text() == text


def test_into_a_copy(tmp_path: Path) -> None:
    path, output = tmp_path / "my.dag", tmp_path / "out.dag"
    path.write_text(DIAMOND + "PRIORITY C 77\nFINAL F f.sub\n")
    said = succeed("prioritize", path, "-o", output)
    assert said == f"wrote {output}\npriorities of 3 jobs written, 1 kept\n"
    assert path.read_text() == DIAMOND + "PRIORITY C 77\nFINAL F f.sub\n"
    assert numbers(output.read_text())["C"] == 77
    assert "F" not in numbers(output.read_text())


def test_by_the_longest_path(tmp_path: Path) -> None:
    path = tmp_path / "my.dag"
    path.write_text(
        "JOB x x.sub\nJOB y y.sub\nJOB a a.sub\nJOB b b.sub\nJOB c c.sub\nPARENT a CHILD b\n"
        "PARENT b CHILD c\nPARENT x CHILD y\n"
    )
    succeed("prioritize", path, "--order", "hops")
    assert numbers(path.read_text()) == {"a": 5, "x": 4, "b": 3, "y": 2, "c": 1}
    told = refuse("prioritize", path, "--order", "hop")
    assert told.startswith("--order: unknown order 'hop' (did you mean 'hops'?); known: hops, ico,")


# two short chains, and a long job that a short one waits for: by hops the chains go first
CHAINS = "".join(f"JOB {job} {job}.sub\n" for job in ("a", "b", "c", "long", "short"))
CHAINS += "PARENT a CHILD b\nPARENT b CHILD c\nPARENT long CHILD short\n"


def log(**seconds: int) -> str:
    """An event log: jobs that began at ten o'clock, and took so long."""
    text = ""
    for cluster, (job, took) in enumerate(seconds.items(), 1):
        at, end = "2026-01-31 10:00:00", f"2026-01-31 10:{took // 60:02d}:{took % 60:02d}"
        text += f"000 ({cluster}.000.000) {at} Job submitted from host: <h>\n    DAG Node: {job}\n"
        text += f"...\n001 ({cluster}.000.000) {at} Job executing on host: <h>\n...\n"
        text += f"005 ({cluster}.000.000) {end} Job terminated.\n"
        text += "\t(1) Normal termination (return value 0)\n...\n"
    return text


def test_by_times_of_a_log(tmp_path: Path) -> None:
    (tmp_path / "my.dag").write_text(CHAINS)
    (tmp_path / "my.log").write_text(log(a=10, c=10, long=60, short=40))
    said = succeed("prioritize", "my.dag", "--order", "times", "--times", "my.log", cwd=tmp_path)
    assert "note: times: 4 jobs by the log, 1 by the median" in said
    # of b nothing is known: 25 s, the median
    found = numbers((tmp_path / "my.dag").read_text())
    assert found == {"long": 5, "a": 4, "short": 3, "b": 2, "c": 1}


def test_by_times_of_the_history(tmp_path: Path) -> None:
    (tmp_path / "my.dag").write_text(CHAINS)
    options = ("prioritize", "my.dag", "--order", "times", "--times", "history")
    told = refuse(*options, cwd=tmp_path)
    assert told.startswith("--times: the history knows no category of these jobs")
    records = [
        TaskRecord(1.0, "r", "other", f"{job}.sub", "m", seconds, directory=str(tmp_path))
        for job, seconds in {"a": 10.0, "b": 20.0, "c": 10.0, "long": 60.0, "short": 40.0}.items()
    ]
    with Repository() as repository:
        repository.add_new(records)
    succeed(*options, cwd=tmp_path)
    found = numbers((tmp_path / "my.dag").read_text())
    assert found == {"long": 5, "a": 4, "short": 3, "b": 2, "c": 1}


def test_a_preview_writes_nothing(tmp_path: Path) -> None:
    jobs = "".join(f"JOB {job} {job}.sub\n" for job in ("p", "q", "r", "long", "short"))
    (tmp_path / "my.dag").write_text(jobs + "PARENT long CHILD short\n")
    (tmp_path / "my.log").write_text(log(p=30, q=30, r=30, long=60, short=30))
    options = ("prioritize", "my.dag", "--preview", "--slots", "2", "--times", "my.log")
    said = succeed(*options, cwd=tmp_path).splitlines()
    assert [line.split()[:3] for line in said[1:3]] == [
        ["fifo", "3", "+0.0%"],
        ["ico", "3", "+0.0%"],
    ]
    assert said[5].startswith("simulated: 5 jobs on 2 slots; ")
    told = json.loads(succeed(*options, "--json", cwd=tmp_path))
    assert (told["slots"], told["jobs"]) == (2, 5)
    ends = {order: found["makespan"] for order, found in told["orders"].items()}
    assert ends == {"fifo": 120, "ico": 90, "hops": 90, "times": 90}
    blind = succeed("prioritize", "my.dag", "--preview", cwd=tmp_path)
    assert "makespan" not in blind.splitlines()[0]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["my.dag", "my.log"]
    assert "PRIORITY" not in (tmp_path / "my.dag").read_text()
    # what is there already is kept, and so no order can change it
    with (tmp_path / "my.dag").open("a") as file:
        file.write("PRIORITY p 9\nPRIORITY q 8\nPRIORITY r 7\n")
    told = json.loads(succeed(*options, "--json", cwd=tmp_path))
    assert told["orders"]["as it is"]["makespan"] == told["orders"]["times"]["makespan"] == 120
    told = json.loads(succeed(*options, "--json", "--replace", cwd=tmp_path))
    assert told["orders"]["times"]["makespan"] == 90


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--order", "times"], "--order: `times` needs times"),
        (["--times", "my.log"], "--times: the order 'ico' needs no times"),
        (["--slots", "4"], "--slots: slots are of the simulation alone"),
        (["--preview", "--times", "history", "--times", "my.log"], "--times: give logs or"),
        (["--preview", "--times", "my.log"], "my.log: cannot read it"),
        (["--preview", "--times", "my.dag"], "my.dag: line 1: expected an event"),
    ],
)
def test_options_that_do_not_fit(tmp_path: Path, options: list[str], reason: str) -> None:
    (tmp_path / "my.dag").write_text(DIAMOND)
    assert refuse("prioritize", "my.dag", *options, cwd=tmp_path).startswith(reason)
    assert (tmp_path / "my.dag").read_text() == DIAMOND


def test_the_final_job_of_a_sub_dag_gets_none(tmp_path: Path) -> None:
    (tmp_path / "my.dag").write_text("JOB A a.sub\nSUBDAG EXTERNAL S x.dag\nPARENT A CHILD S\n")
    (tmp_path / "x.dag").write_text("JOB B b.sub\nJOB C c.sub\nFINAL F f.sub\n")
    (tmp_path / "my.dag.rescue001").write_text("DONE A\n")
    said = succeed("prioritize", "my.dag", cwd=tmp_path)
    assert "wrote x.dag\nwrote my.dag\npriorities of 3 jobs written, 1 job done already\n" in said
    assert said.endswith("note: my.dag.rescue001 is read: 1 job done\n")
    assert numbers((tmp_path / "x.dag").read_text()) == {"B": 0, "C": -1}
    assert numbers((tmp_path / "my.dag").read_text()) == {"S": 3}


@pytest.mark.parametrize("output", ["-", "/dev/stdout"])
def test_to_standard_output(tmp_path: Path, output: str) -> None:
    path = tmp_path / "my.dag"
    path.write_text(DIAMOND)
    result = foreplan("prioritize", path, "-o", output, cwd=tmp_path)
    assert result.stdout.startswith(DIAMOND)
    assert sorted(numbers(result.stdout).values()) == [1, 2, 3, 4]
    assert "priorities of 4 jobs written" in result.stderr
    assert "wrote" not in result.stderr
    assert [found.name for found in tmp_path.iterdir()] == ["my.dag"]


@pytest.mark.parametrize("command", ["plan", "simulate"])
def test_other_commands_take_the_file_as_well(tmp_path: Path, command: str) -> None:
    (tmp_path / "my.dag").write_text(DIAMOND.replace("JOB", "NODE"))
    (tmp_path / "two.yaml").write_text("processors: {fast: {speed: 2}, slow: {speed: 1}}\n")
    result = foreplan(command, "my.dag", "-p", "two.yaml", "--json", cwd=tmp_path)
    assert json.loads(result.stdout)["makespan"] == 2.0  # C may go beside B, which gains nothing
    assert "my.dag: no task has a cost, so all count alike" in result.stderr


def test_what_is_done_gets_none(tmp_path: Path) -> None:
    path = tmp_path / "my.dag"
    path.write_text(DIAMOND + "DONE A\n")
    said = succeed("prioritize", path)
    assert said.endswith("priorities of 3 jobs written, 1 job done already\n")
    assert sorted(numbers(path.read_text())) == ["B", "C", "D"]
    path.write_text("JOB A a.sub DONE\n")
    assert succeed("prioritize", path) == "priorities of 0 jobs written, 1 job done already\n"


def test_the_order_keeps_machines_busy(tmp_path: Path) -> None:
    """First what most others wait for, and what they wait for together."""
    path = tmp_path / "my.dag"
    jobs = "".join(f"JOB {job} {job}.sub\n" for job in ("A", "B", "C", "D", "J", "X", "Y", "Z"))
    path.write_text(jobs + "PARENT A B CHILD J\nPARENT D CHILD X Y Z\nPARENT C CHILD Z\n")
    succeed("prioritize", path)
    found = numbers(path.read_text())
    first = sorted(found, key=lambda job: -found[job])
    assert first[:2] == ["D", "C"]
    assert sorted(first[2:4]) == ["A", "B"]
    path.write_text(jobs.replace("JOB D D.sub", "JOB D D.sub DONE") + "PARENT A B CHILD J\n")
    succeed("prioritize", path)
    found = numbers(path.read_text())
    assert {found["A"], found["B"]} == {7, 6}
    assert "D" not in found


def test_as_macros(tmp_path: Path) -> None:
    path = tmp_path / "my.dag"
    path.write_text(DIAMOND)
    said = succeed("prioritize", path, "--vars")
    assert said.endswith("note: the submit files must say: priority = $(JobPriority)\n")
    assert 'VARS A JobPriority="4"\n' in path.read_text()


def test_as_json(tmp_path: Path) -> None:
    (tmp_path / "my.dag").write_text(DIAMOND + "SPLICE S x.dag\nPRIORITY B 9\n")
    (tmp_path / "x.dag").write_text("JOB E e.sub\n")
    told = json.loads(succeed("prioritize", "my.dag", "--json", "-o", "out.dag", cwd=tmp_path))
    assert told.keys() == {
        *("dag", "written", "style", "jobs", "done", "priorities", "kept", "left", "notes"),
        "warnings",
    }
    assert (told["dag"], told["written"], told["style"]) == ("my.dag", ["out.dag"], "priority")
    assert (told["jobs"], told["done"], told["kept"], told["left"]) == (5, 0, ["B"], ["S+E"])
    assert told["priorities"] == {
        job: n for job, n in numbers((tmp_path / "out.dag").read_text()).items() if job != "B"
    }
    assert len(told["notes"]) == 1
    told = json.loads(succeed("prioritize", "my.dag", "--json", cwd=tmp_path))
    assert told["written"] == ["x.dag", "my.dag"]
    assert numbers((tmp_path / "x.dag").read_text()) == {"E": told["priorities"]["S+E"]}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("JOB A\n", "line 1: expected 'JOB NAME SUBMIT-FILE"),
        (DIAMOND + "PARENT D CHILD A\n", "line 7: the jobs form a cycle: A -> B -> D -> A"),
        (DIAMOND + "SPLICE S none.dag\n", "line 7: the file 'none.dag' cannot be read"),
        (DIAMOND + "INCLUDE my.dag\n", "line 7: the file 'my.dag' is part of itself"),
        ("# nothing\n", "the file has no jobs"),
    ],
)
def test_nothing_is_written_if_anything_is_wrong(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "my.dag"
    path.write_text(text)
    assert refuse("prioritize", path).startswith(f"{path}: {reason}")
    assert refuse("prioritize", path, "-o", tmp_path / "o").startswith(f"{path}: {reason}")
    assert path.read_text() == text
    assert [file.name for file in tmp_path.iterdir()] == ["my.dag"]


def test_a_splice_that_is_wrong_names_its_file(tmp_path: Path) -> None:
    path, inner = tmp_path / "my.dag", tmp_path / "x.dag"
    path.write_text("JOB A a.sub\nSPLICE S x.dag\n")
    inner.write_text("JOB B b.sub\nPARENT B CHILD C\n")
    assert refuse("prioritize", path).startswith(f"{inner}: line 2: unknown job 'C'")
    assert path.read_text() == "JOB A a.sub\nSPLICE S x.dag\n"


def test_a_dag_file_elsewhere_in_foreplan(tmp_path: Path) -> None:
    path = tmp_path / "my.dag"
    path.write_text(DIAMOND)
    said = succeed("convert", path, tmp_path / "my.yaml")
    assert said == f"wrote {tmp_path / 'my.yaml'}: 4 tasks, 4 dependencies, 4 data items\n"
    assert "A: {category: a.sub}" in (tmp_path / "my.yaml").read_text()
    done = foreplan("run", path, "--dir", tmp_path)
    assert done.returncode == 2
    assert "it has no command to run" in done.stderr


NEWER = (
    b"JOB a a.sub\r\nJOB b b.sub\r\nJOB c c.sub\r\nweak  Parent b \\\r\n  CHILD a\r\n"
    b"TOLERANCE all_nodes 25% Fail_Fast\r\nTOLERANCE b 3 %\r\ntolerance c 0 wait\r\n"
)
UNKNOWN = (
    b'  Fancy-New\tb  x="caf\xe9" \\\r\n more\r\n# fine\r\nfancy-new c\r\nBLOCK q {\r\n'
    b" PRIORITY = 5\r\n}\r\nPARNET a CHILD c\r\n"
)


def test_newer_and_unknown_commands(tmp_path: Path) -> None:
    (tmp_path / "outer.dag").write_bytes(NEWER + UNKNOWN + b"SPLICE s inner.dag\r\n")
    (tmp_path / "inner.dag").write_bytes(b"JOB x x.sub\nQQQ x\n")
    done = foreplan("prioritize", "outer.dag", "--order", "hops", "--json", cwd=tmp_path)
    assert done.returncode == 0
    found = json.loads(done.stdout)
    assert found["priorities"] == {"b": 4, "a": 3, "c": 2, "s+x": 1}
    assert found["warnings"] == [
        "outer.dag: line 9: unknown command 'Fancy-New' (and 1 more) is kept as it is and not "
        "considered",
        "outer.dag: line 13: unknown command 'BLOCK' is kept as it is and not considered",
        "outer.dag: line 16: unknown command 'PARNET' (did you mean 'PARENT'?) is kept as it is "
        "and not considered",
        "inner.dag: line 2: unknown command 'QQQ' is kept as it is and not considered",
    ]
    assert done.stderr == "".join(f"warning: {warning}\n" for warning in found["warnings"])
    for name, before in (("outer", NEWER + UNKNOWN + b"SPLICE s inner.dag\r\n"), ("inner", b"JOB")):
        assert (tmp_path / f"{name}.dag").read_bytes().startswith(before)


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (NEWER, "line 4: WEAK PARENT is not supported"),
        (b"JOB a a.sub\nTOLERANCE a 2\n", "line 2: TOLERANCE is not supported"),
        (b"JOB a a.sub\nFANCY a\n", "line 2: unknown command 'FANCY'"),
    ],
)
def test_other_commands_refuse_them(tmp_path: Path, raw: bytes, problem: str) -> None:
    (tmp_path / "x.dag").write_bytes(raw)
    for command in (("run", "x.dag"), ("convert", "x.dag", "x.yaml")):
        assert problem in refuse(*command, cwd=tmp_path)
    assert not (tmp_path / "x.yaml").exists()
