"""Malformed DAGMan files: each gets its line and a reason."""

from pathlib import Path

import pytest

from foreplan.errors import InputError
from foreplan.formats import load
from foreplan.formats.dagman import parse_dagman

JOBS = "JOB a a.sub\nJOB b b.sub\n"
SPECIAL = JOBS + "FINAL f f.sub\nSERVICE s s.sub\nPROVISIONER p p.sub\n"
NODE = "NAME SUBMIT-FILE [DIR DIRECTORY] [NOOP] [DONE]"

WRONG = [
    # lines
    ("JUB a a.sub", 1, "unknown command 'JUB' (did you mean 'JOB'?); known: ABORT-DAG-ON, "),
    ("# fine\n\nDATA a a.dat", 3, "unknown command 'DATA'"),
    ("JOB a a.sub\0", 1, "this is not text: it holds a zero byte"),
    ("JOB a\n\\\n", 1, f"expected 'JOB {NODE}', not 'JOB a'"),
    ("VARS", 1, "expected 'VARS JOB NAME=\"VALUE\" ...', not 'VARS'"),
    # nodes
    ("JOB", 1, f"expected 'JOB {NODE}', not 'JOB'"),
    ("JOB a", 1, f"expected 'JOB {NODE}', not 'JOB a'"),
    ("JOB a a.sub DONE NOPE", 1, f"expected 'JOB {NODE}', not 'JOB a a.sub DONE NOPE'"),
    ("JOB a a.sub DIR", 1, "expected 'JOB"),
    ('JOB a "a.sub', 1, "the quotation mark before 'a.sub' has no other"),
    ("JOB Parent a.sub", 1, "a job cannot be called 'Parent': the word is reserved"),
    ("JOB all_nodes a.sub", 1, "a job cannot be called 'all_nodes'"),
    ("JOB a+b a.sub", 1, "a job cannot be called 'a+b': '+' stands between a splice and its jobs"),
    ('JOB "a b" a.sub', 1, "a job cannot be called 'a b': a name has no blanks"),
    ('JOB "" a.sub', 1, "a job cannot be called '': a name has no blanks"),
    ("JOB a\udce9 a.sub", 1, "is not UTF-8 text"),
    ("JOB a a\udce9.sub", 1, "is not UTF-8 text"),
    (JOBS + "PARENT a CHILD x\udcff", 3, r"unknown job 'x\xff'"),
    (JOBS + "JOB a c.sub", 3, "there is a job 'a' already"),
    ("JOB a {\n x = 1\n", 1, "the inline description of 'a' has no end: a line with '}'"),
    ("JOB a @=end\n x = 1\n}\n @ends\n", 1, "has no end: a line with '@end'"),
    ("JOB a { x = 1 }\n}\n", 1, f"expected 'JOB {NODE}'"),
    ("JOB a {\n} DIR x DUNE\n", 1, f"expected 'JOB {NODE}'"),
    ("SUBMIT-DESCRIPTION x y.sub", 1, "expected an inline description after 'x': { ... }"),
    ("SUBMIT-DESCRIPTION x", 1, "expected 'SUBMIT-DESCRIPTION NAME {'"),
    ("SUBDAG a a.dag", 1, "expected 'SUBDAG EXTERNAL NAME DAG-FILE [DIR DIRECTORY] [NOOP] [DONE]'"),
    ("SUBDAG INLINE a a.dag", 1, "expected 'SUBDAG EXTERNAL"),
    ("SUBDAG EXTERNAL a", 1, "expected 'SUBDAG EXTERNAL"),
    ("FINAL f f.sub DONE", 1, "expected 'FINAL NAME SUBMIT-FILE [DIR DIRECTORY] [NOOP]', not"),
    (SPECIAL + "FINAL g g.sub", 6, "there is a FINAL job already"),
    (SPECIAL + "PROVISIONER g g.sub", 6, "there is a PROVISIONER job already"),
    # dependencies
    (JOBS + "PARENT a b", 3, "expected 'PARENT JOB ... CHILD JOB ...', not 'PARENT a b'"),
    (JOBS + "PARENT CHILD b", 3, "expected 'PARENT JOB ... CHILD JOB ...'"),
    (JOBS + "PARENT a CHILD", 3, "expected 'PARENT JOB ... CHILD JOB ...'"),
    (JOBS + "PARENT a CHILD b CHILD a", 3, "expected 'PARENT JOB ... CHILD JOB ...'"),
    (JOBS + "WEAK a CHILD b", 3, "expected 'WEAK PARENT JOB ... CHILD JOB ...', not 'WEAK a CHI"),
    (JOBS + "WEAK PARENT a b", 3, "expected 'WEAK PARENT JOB ... CHILD JOB ...', not 'WEAK PARENT"),
    (JOBS + "WEAK PARENT a CHILD b", 3, "WEAK PARENT is not supported: a task never starts after"),
    (JOBS + "PARENT a CHILD c", 3, "unknown job 'c'"),
    ("JOB job1 a\nPARENT jab1 CHILD job1", 2, "unknown job 'jab1' (did you mean 'job1'?)"),
    (JOBS + "PARENT a CHILD A", 3, "unknown job 'A'"),
    (JOBS + "PARENT a CHILD a", 3, "the jobs form a cycle: a -> a"),
    (JOBS + "PARENT b CHILD a\n#\nPARENT a CHILD b\n", 5, "the jobs form a cycle: a -> b -> a"),
    (SPECIAL + "PARENT a CHILD f", 6, "'f' has no place among the others: it is a FINAL job"),
    (SPECIAL + "PARENT s CHILD a", 6, "'s' has no place among the others: it is a SERVICE job"),
    # what is said of jobs
    (JOBS + "RETRY a", 3, "expected 'RETRY JOB TIMES [UNLESS-EXIT CODE]', not 'RETRY a'"),
    (JOBS + "RETRY a three", 3, "not 'RETRY a three'"),
    (JOBS + "RETRY a -1", 3, "not 'RETRY a -1'"),
    (JOBS + "RETRY a 3 UNLESS-EXIT", 3, "not 'RETRY a 3 UNLESS-EXIT'"),
    (JOBS + "RETRY a 3 4", 3, "not 'RETRY a 3 4'"),
    (JOBS + "RETRY c 3", 3, "unknown job 'c'; known: a, b"),
    (SPECIAL + "RETRY f 3", 6, "RETRY cannot be said of 'f': it is a FINAL job"),
    (JOBS + "TOLERANCE a", 3, "expected 'TOLERANCE JOB FAILURES[%] [FAIL-FAST|WAIT]', not "),
    (JOBS + "TOLERANCE a -1", 3, "expected 'TOLERANCE JOB"),
    (JOBS + "TOLERANCE a 1 NOW", 3, "expected 'TOLERANCE JOB"),
    (JOBS + "TOLERANCE a 1", 3, "TOLERANCE is not supported: a job is one task"),
    (JOBS + "PRIORITY a", 3, "expected 'PRIORITY JOB NUMBER'"),
    (JOBS + "PRIORITY a 1.5", 3, "expected 'PRIORITY JOB NUMBER', not 'PRIORITY a 1.5'"),
    (JOBS + "PRIORITY a 1 2", 3, "expected 'PRIORITY JOB NUMBER'"),
    (JOBS + "PRIORITY a 2147483648", 3, "the number '2147483648' is out of range"),
    (JOBS + f"PRIORITY a {'9' * 5000}", 3, "is out of range"),
    (JOBS + "PRIORITY a \u0663", 3, "expected 'PRIORITY JOB NUMBER'"),
    (SPECIAL + "PRIORITY s 3", 6, "PRIORITY cannot be said of 's': it is a SERVICE job"),
    (SPECIAL + "ABORT-DAG-ON f 3", 6, "ABORT-DAG-ON cannot be said of 'f'"),
    (SPECIAL + "CATEGORY f x", 6, "CATEGORY cannot be said of 'f'"),
    (SPECIAL + "DONE f", 6, "DONE cannot be said of 'f'"),
    (JOBS + "DONE ALL_NODES", 3, "unknown job 'ALL_NODES'"),
    (JOBS + "DONE c", 3, "unknown job 'c'"),
    (JOBS + "CATEGORY a", 3, "expected 'CATEGORY JOB CATEGORY'"),
    (JOBS + "MAXJOBS x -1", 3, "expected 'MAXJOBS CATEGORY NUMBER'"),
    (JOBS + "ABORT-DAG-ON a", 3, "expected 'ABORT-DAG-ON JOB CODE [RETURN CODE]'"),
    (JOBS + "PRE_SKIP a x", 3, "expected 'PRE_SKIP JOB CODE'"),
    (JOBS + "SCRIPT BEFORE a x.sh", 3, "expected 'SCRIPT [DEFER STATUS SECONDS]"),
    (JOBS + "SCRIPT PRE a", 3, "expected 'SCRIPT "),
    (JOBS + "SCRIPT PRE c x.sh", 3, "unknown job 'c'"),
    (JOBS + "VARS a", 3, "expected 'VARS JOB NAME=\"VALUE\" ...', not 'VARS a'"),
    (JOBS + "VARS a APPEND ", 3, "expected"),
    (JOBS + 'VARS a x="1', 3, 'expected NAME="VALUE", not \'x="1\''),
    (JOBS + 'VARS a x="1" y', 3, "expected NAME=\"VALUE\", not 'y'"),
    (JOBS + 'VARS a queued="1"', 3, "a macro cannot be called 'queued'"),
    (JOBS + 'VARS c x="1"', 3, "unknown job 'c'"),
    (JOBS + "PIN_IN a 0", 3, "expected 'PIN_IN JOB NUMBER'"),
    (JOBS + "PIN_OUT c 1", 3, "unknown job 'c'"),
    (JOBS + "SAVE_POINT_FILE c", 3, "unknown job 'c'"),
    # files
    ("SPLICE s", 1, "expected 'SPLICE NAME FILE [DIR DIRECTORY]', not 'SPLICE s'"),
    ("SPLICE s s.dag DUR x", 1, "expected 'SPLICE NAME FILE [DIR DIRECTORY]'"),
    ("INCLUDE", 1, "expected 'INCLUDE FILE', not 'INCLUDE'"),
    ("INCLUDE a b", 1, "expected 'INCLUDE FILE'"),
    ("CONNECT a", 1, "expected 'CONNECT SPLICE SPLICE'"),
    ("CONFIG", 1, "expected 'CONFIG FILE'"),
    ("DOT a.dot SOMETIMES", 1, "expected 'DOT FILE [[DONT-]UPDATE]"),
    ("NODE_STATUS_FILE a soon", 1, "expected 'NODE_STATUS_FILE FILE [SECONDS] [ALWAYS-UPDATE]'"),
    ("JOBSTATE_LOG a b", 1, "expected 'JOBSTATE_LOG FILE'"),
    ("SET_JOB_ATTR a", 1, "expected 'SET_JOB_ATTR NAME = VALUE'"),
    ("ENV PUT a", 1, "expected 'ENV SET|GET VARIABLES'"),
    ("REJECT now", 1, "expected 'REJECT', not 'REJECT now'"),
]


@pytest.mark.parametrize(("text", "line", "reason"), WRONG)
def test_what_is_wrong(tmp_path: Path, text: str, line: int, reason: str) -> None:
    path = tmp_path / "x.dag"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(InputError) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}: line {line}: ")
    assert reason in caught.value.problem
    # the same, put two lines further down and ended as on Windows
    further = "# one\r\n\r\n" + text.replace("\n", "\r\n")
    with pytest.raises(InputError) as caught:
        parse_dagman(further)
    assert caught.value.place == f"line {line + 2}"


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n", "MAXJOBS x 3\n"])
def test_no_jobs(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.dag"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        load(path)
    assert str(caught.value) == f"{path}: the file has no jobs"


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for name, reason in (("none.dag", "there is no such file or directory"), (".", "directory")):
        with pytest.raises(InputError, match=reason):
            load(tmp_path / name, format="dagman")


def test_too_many_arcs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foreplan.formats.dagman_dag.MOST_ARCS", 3)
    jobs = "".join(f"JOB {name} x.sub\n" for name in "abcd")
    assert parse_dagman(jobs + "PARENT a CHILD b c d\n").n_edges == 3
    with pytest.raises(InputError, match="line 5: these are more than 3 arcs; a NOOP job in"):
        parse_dagman(jobs + "PARENT a b CHILD c d\n")


def test_a_long_cycle_is_cut_short() -> None:
    jobs = "".join(f"JOB j{i} x.sub\n" for i in range(50))
    links = "".join(f"PARENT j{i} CHILD j{(i + 1) % 50}\n" for i in range(50))
    with pytest.raises(InputError) as caught:
        parse_dagman(jobs + links)
    assert caught.value.place == "line 100"
    assert "j0 -> j1 -> " in caught.value.problem
    assert "(39 more)" in caught.value.problem
