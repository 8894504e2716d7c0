"""DAGMan files: what each command means for the workflow, and how lines are put together."""

from pathlib import Path

import numpy as np
import pytest

from foreplan.errors import InputError
from foreplan.formats import load, save
from foreplan.formats.dagman import dag_workflow, parse_dagman, read_dag
from foreplan.formats.dagman_syntax import statements
from foreplan.model import Workflow

DIAMOND = """\
# a diamond
JOB A a.sub
JOB B b.sub
JOB C b.sub
JOB D d.sub
PARENT A CHILD B C
PARENT B C CHILD D
"""
JOBS = "JOB a a.sub\nJOB b b.sub\nJOB c c.sub\n"


def arcs(workflow: Workflow) -> set[tuple[str, str]]:
    """Every dependency by the names of its ends."""
    _, parents, children = workflow.dependencies()
    names = workflow.task_names
    return {(names[p], names[c]) for p, c in zip(parents.tolist(), children.tolist(), strict=True)}


def test_a_diamond() -> None:
    workflow = parse_dagman(DIAMOND, "w")
    assert workflow.name == "w"
    assert workflow.task_names == ("A", "B", "C", "D")
    assert arcs(workflow) == {("A", "B"), ("A", "C"), ("B", "D"), ("C", "D")}
    assert workflow.item_size.tolist() == [0, 0, 0, 0]
    assert np.isnan(workflow.base_cost).all()
    assert [workflow.spec(t).category for t in range(4)] == ["a.sub", "b.sub", "b.sub", "d.sub"]
    assert [workflow.spec(t).retries for t in range(4)] == [None] * 4


EVERYTHING = """\
CONFIG dagman.config
SET_JOB_ATTR Group = "my group"
ENV SET A=1;B=2
DOT dag.dot UPDATE DONT-OVERWRITE INCLUDE header.dot
NODE_STATUS_FILE status 30 ALWAYS-UPDATE
JOBSTATE_LOG jobstate.log
SUBMIT-DESCRIPTION shared {
    executable = x   # PARENT a CHILD a
    PRIORITY a 7
}
Job a shared DIR "a folder" NOOP
JOB b {
    executable = y
    arguments = {1}
} DIR there
job c @=end
    }
    JOB inside it.sub
@end NOOP
SUBDAG EXTERNAL d inner.dag DIR sub
FINAL last last.sub
PROVISIONER before prov.sub
SERVICE beside serv.sub
Parent a b Child c d
vars a PREPEND x="1" y = "a \\"b\\"" +My='z'
VARS last code="$(DAG_STATUS)"
RETRY b 4 UNLESS-EXIT 2
retry ALL_NODES 1
RETRY c 3
SCRIPT DEFER 4 60 PRE a wait.sh "two words"
SCRIPT DEBUG post ALL POST all_nodes check.sh $JOB $RETURN
SCRIPT HOLD b tell.sh
PRE_SKIP a 2
PRE-SKIP b 2
ABORT-DAG-ON a 3 RETURN 1
PRIORITY a 5
CATEGORY b heavy
CATEGORY c +light
MAXJOBS heavy 2
SAVE_POINT_FILE a
SAVE_POINT_FILE b there.save
REJECT
"""


def test_every_command() -> None:
    workflow = parse_dagman(EVERYTHING)
    assert workflow.task_names == ("a", "b", "c", "d", "last")
    inner = {("a", "c"), ("a", "d"), ("b", "c"), ("b", "d")}
    assert arcs(workflow) == inner | {("c", "last"), ("d", "last")}
    specs = [workflow.spec(t) for t in range(5)]
    assert [s.category for s in specs] == ["shared", "heavy", "light", "inner.dag", "last.sub"]
    assert [s.retries for s in specs] == [1, 1, 3, 1, None]


def test_the_last_statement_holds() -> None:
    text = JOBS + "RETRY a 1\nRETRY a 2\nCATEGORY ALL_NODES k\nCATEGORY b m\nCATEGORY ALL_NODES n\n"
    workflow = parse_dagman(text + "CATEGORY c o\nRETRY c 5\nRETRY all_nodes 0\n")
    assert [workflow.spec(t).category for t in range(3)] == ["n", "n", "o"]
    assert [workflow.spec(t).retries for t in range(3)] == [0, 0, 0]


def test_jobs_may_be_named_before_they_are_given() -> None:
    text = "PARENT a CHILD b\nRETRY b 2\nJOB b b.sub\nJOB a a.sub\n"
    workflow = parse_dagman(text)
    assert workflow.task_names == ("b", "a")
    assert arcs(workflow) == {("a", "b")}
    assert workflow.spec(0).retries == 2


def test_what_is_done_is_no_task_and_nobody_waits_for_it() -> None:
    text = "JOB a a.sub\nJOB b b.sub DONE\nJOB c c.sub\nJOB d d.sub\nDONE d\n"
    workflow = parse_dagman(text + "PARENT a CHILD b\nPARENT b CHILD c\nPARENT c CHILD d\n")
    assert workflow.task_names == ("a", "c")
    assert arcs(workflow) == set()
    with pytest.raises(InputError, match="every job is done already"):
        parse_dagman("JOB a a.sub DONE\n")


def test_the_final_job_waits_for_all_others() -> None:
    text = "FINAL z z.sub\n" + JOBS + "PARENT a CHILD b\n"
    assert arcs(parse_dagman(text)) == {("a", "b"), ("b", "z"), ("c", "z")}
    assert parse_dagman("FINAL z z.sub\nJOB a a.sub DONE\n").task_names == ("z",)


def test_without_the_final_job(tmp_path: Path) -> None:
    path = tmp_path / "x.dag"
    path.write_text("FINAL z z.sub\n" + JOBS)
    assert dag_workflow(read_dag(path), final=False).task_names == ("a", "b", "c")


def test_an_arc_that_is_given_twice_is_one() -> None:
    text = JOBS + "PARENT a a CHILD b b\nPARENT a CHILD c b\n"
    workflow = parse_dagman(text)
    assert workflow.n_edges == 2
    assert arcs(workflow) == {("a", "b"), ("a", "c")}


CONTINUED = [
    ("JOB a \\\n a.sub\n", ["a", "a.sub", ""]),
    ("JOB a\\\n b a.sub\n", ["ab", "a.sub", ""]),  # no blank in between, none comes
    ("JOB \\\n\\\n   a \\ \t\n\ta.sub DONE", ["a", "a.sub", "DONE"]),
    ("JOB a \\\r\n a.sub \\\r\n", ["a", "a.sub", ""]),
    ("JOB a \\\n# a comment \\\na.sub\n", ["a", "a.sub", ""]),
    ("JOB a a.sub \\\n# a comment\n", ["a", "a.sub", ""]),
    ("JOB a a.sub \\", ["a", "a.sub", ""]),
    ("# a comment \\\nJOB a a.sub\n", ["a", "a.sub", ""]),
    ("// another \\\n\t JOB\ta\t a.sub\v\n", ["a", "a.sub", ""]),
    ('JOB a "a file.sub" NOOP\n', ["a", "a file.sub", ""]),
]


@pytest.mark.parametrize(("text", "words"), CONTINUED)
def test_lines_that_go_on(text: str, words: list[str]) -> None:
    (statement,) = statements(text)
    assert (statement.command, statement.words) == ("JOB", words)


def test_where_a_statement_stands() -> None:
    found = statements("# 1\n\nJOB a \\\n a.sub\nJOB b {\n x\n}\nDONE \\\n# 9 \\\n b\n")

    assert [(s.line, s.end) for s in found] == [(3, 4), (5, 7), (8, 10)]


def test_blanks_of_other_kinds_are_letters() -> None:
    name = "a\u00a0\u2003b"
    assert parse_dagman(f"JOB {name} a.sub\nRETRY {name} 1\n").task_names == (name,)


def test_loading_and_converting(tmp_path: Path) -> None:
    path = tmp_path / "my.dag"
    path.write_bytes(
        b"\xef\xbb\xbf" + DIAMOND.encode() + "# caf\xe9\nRETRY A 2\n".encode("latin-1")
    )
    workflow = load(path)
    assert workflow.name == "my"
    save(workflow, tmp_path / "my.yaml")
    again = load(tmp_path / "my.yaml")
    assert again.task_names == workflow.task_names
    assert arcs(again) == arcs(workflow)
    assert again.specs == workflow.specs
    assert np.isnan(again.base_cost).all()
    other = tmp_path / "my.txt"
    other.write_text(DIAMOND)
    assert load(other, format="dagman").n_tasks == 4
    with pytest.raises(InputError, match="writes none"):
        save(workflow, tmp_path / "out.dag")
