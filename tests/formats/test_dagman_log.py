"""Event logs of DAGMan runs: what each job took."""

from pathlib import Path

import pytest

from foreplan.errors import InputError
from foreplan.formats.dagman import read_dag
from foreplan.formats.dagman_log import logged_seconds, read_log

GOOD = "\t(1) Normal termination (return value 0)\n\t\tUsr 0 00:00:01  -  Run Remote Usage\n"
BAD = "\t(1) Normal termination (return value 1)\n"
KILLED = "\t(0) Abnormal termination (signal 9)\n"


def event(code: str, job: int, at: str, what: str = "Something.", more: str = "") -> str:
    """One event of a log."""
    proc = f"{job:03d}.000" if job < 1000 else f"{job // 1000:03d}.{job % 1000:03d}"
    return f"{code} ({proc}.000) {at} {what}\n{more}...\n"


def submitted(job: int, node: str, at: str = "2026-01-31 09:00:00") -> str:
    """A job of a node enters the queue."""
    return event("000", job, at, "Job submitted from host: <1.2.3.4:5>", f"    DAG Node: {node}\n")


def ran(job: int, node: str, begin: str, end: str, how: str = GOOD) -> str:
    """A job of a node, from its beginning to its end."""
    return (
        submitted(job, node)
        + event("001", job, begin, "Job executing on host: <1.2.3.4:5>")
        + event("005", job, end, "Job terminated.", how)
    )


def log(folder: Path, text: str, name: str = "x.dag.nodes.log") -> Path:
    """A file with that text."""
    (folder / name).write_text(text)
    return folder / name


@pytest.mark.parametrize(
    ("begin", "end", "seconds"),
    [
        ("2026-01-31 10:00:00", "2026-02-01 10:00:30", 86430),
        ("01/31 10:00:00", "01/31 10:01:00", 60),
        ("12/31 23:59:00", "01/01 00:01:00", 120),
        ("2026-01-31 10:00:00.250Z", "2026-01-31 10:00:01.750Z", 1.5),
    ],
)
def test_how_times_are_written(tmp_path: Path, begin: str, end: str, seconds: float) -> None:
    assert read_log(log(tmp_path, ran(7, "A", begin, end))) == {"A": seconds}


def test_only_the_last_try_that_ended_well_counts(tmp_path: Path) -> None:
    def at(minute: int) -> str:
        return f"2026-01-31 10:{minute:02d}:00"

    text = submitted(1, "A") + event("001", 1, at(0)) + event("004", 1, at(5), "Job was evicted.")
    text += event("001", 1, at(10)) + event("006", 1, at(11)) + event("005", 1, at(12), more=GOOD)
    assert read_log(log(tmp_path, text)) == {"A": 120}
    text += ran(2, "A", at(20), at(23)) + ran(3, "A", at(30), at(39), BAD)
    text += ran(4, "B", at(20), at(23), KILLED) + event("009", 5, at(50), "Job was aborted.")
    assert read_log(log(tmp_path, text)) == {"A": 180}
    # a job that is running still, and an event that is being written
    text += submitted(6, "B") + event("001", 6, at(40)) + "005 (006.000.000) 2026-01-31 11:00:00 J"
    assert read_log(log(tmp_path, text)) == {"A": 180}


def test_a_cluster_of_several_jobs_takes_as_long_as_the_longest(tmp_path: Path) -> None:
    begin = "2026-01-31 10:00:00"
    text = submitted(7000, "A")
    for proc, minute in enumerate((3, 9, 4)):
        text += event("001", 7000 + proc, begin)
        text += event("005", 7000 + proc, f"2026-01-31 10:{minute:02d}:00", more=GOOD)
    assert read_log(log(tmp_path, text)) == {"A": 540}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("nothing\n", "line 1: expected an event such as"),
        ("<c>\n", "line 1: expected an event such as .* logs in XML or JSON are not read"),
        (submitted(1, "A", "13/31 10:00:00"), "line 1: there is no such date and time: 13/31"),
        (submitted(1, "A") + "\nrest\n", "line 5: expected an event"),
    ],
)
def test_what_is_no_log_names_its_line(tmp_path: Path, text: str, reason: str) -> None:
    path = log(tmp_path, text)
    with pytest.raises(InputError, match=rf"^{path}: {reason}"):
        read_log(path)


def test_logs_of_sub_dags(tmp_path: Path) -> None:
    (tmp_path / "x.dag").write_text(
        "JOB A a.sub\nSUBDAG EXTERNAL S y.dag\nSUBDAG EXTERNAL T y.dag\n"
    )
    (tmp_path / "y.dag").write_text("JOB A a.sub\nJOB B b.sub\n")
    dag = read_dag(tmp_path / "x.dag")
    begin = "2026-01-31 10:00:00"
    outer = log(tmp_path, ran(1, "A", begin, "2026-01-31 10:00:09") + ran(2, "other", begin, begin))
    assert logged_seconds(dag, [outer]) == {"A": 9}
    inner = log(tmp_path, ran(3, "A", begin, "2026-01-31 10:00:05"), "y.dag.nodes.log")
    assert logged_seconds(dag, [outer]) == {"A": 9, "S+A": 5, "T+A": 5}
    assert logged_seconds(dag, [inner]) == {"S+A": 5, "T+A": 5}
    with pytest.raises(InputError, match=r"z\.log: no job of the dag ended well in it"):
        logged_seconds(dag, [log(tmp_path, ran(2, "other", begin, begin), "z.log")])
