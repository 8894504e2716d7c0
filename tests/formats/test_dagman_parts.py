"""Sub-DAGs and rescue files: what is read with a DAGMan file, and what is written into them."""

from pathlib import Path

import pytest

from foreplan.errors import InputError
from foreplan.formats import load
from foreplan.formats.dagman import read_dag
from foreplan.formats.dagman_write import with_priorities
from foreplan.model import Workflow

TOP = "JOB P p.sub\nSUBDAG EXTERNAL S x.dag\nJOB Q q.sub\nPARENT P CHILD S\nPARENT S CHILD Q\n"
X = "JOB A a.sub\nJOB B b.sub\nJOB C c.sub\nPARENT A B CHILD C\n"


def write(folder: Path, **files: str) -> Path:
    """Files by their names, `_` for a dot; the first is the one to load."""
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    return folder / next(iter(files)).replace("_", ".")


def arcs(workflow: Workflow) -> list[str]:
    """Every dependency as text, sorted."""
    _, parents, children = workflow.dependencies()
    names = workflow.task_names
    pairs = zip(parents.tolist(), children.tolist(), strict=True)
    return sorted(f"{names[p]}>{names[c]}" for p, c in pairs)


def test_a_sub_dag_is_read_like_a_splice(tmp_path: Path) -> None:
    s1 = "JOB A a.sub\nSUBDAG EXTERNAL X1 x.dag\nSUBDAG EXTERNAL X2 x.dag\nPARENT A CHILD X1\n"
    s1 += "PARENT X1 CHILD X2\nJOB alone b.sub\n"
    top = TOP.replace("x.dag", "s1.dag") + "SPLICE T s1.dag\nPARENT S CHILD T\nRETRY S 3\n"
    path = write(tmp_path, top_dag=top, s1_dag=s1, x_dag=X)
    found = load(path)
    for file in tmp_path.iterdir():
        file.write_text(file.read_text().replace("SUBDAG EXTERNAL", "SPLICE").replace("RETRY", "#"))
    spliced = load(path)
    assert arcs(found) == arcs(spliced)
    assert sorted(found.task_names) == sorted(spliced.task_names)
    assert "S+X2+C" in found.task_names


def test_a_sub_dag_has_a_final_job_and_a_folder_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    write(tmp_path / "in", x_dag=X + "FINAL F f.sub\n")
    path = write(tmp_path, top_dag=TOP.replace("x.dag", "x.dag DIR in") + "FINAL F f.sub\n")
    found = arcs(load(path))
    inner = ["S+A>S+C", "S+A>S+F", "S+B>S+C", "S+B>S+F", "S+C>S+F"]
    assert found == sorted(["P>S+A", "P>S+B", *inner, "S+F>Q", "Q>F"])


def test_a_sub_dag_that_is_not_there_yet_is_one_task(tmp_path: Path) -> None:
    found = load(write(tmp_path, top_dag=TOP))
    assert found.task_names == ("P", "S", "Q")
    assert found.notes == ("the SUBDAG 'S' is one task: its file 'x.dag' is not there",)


def test_the_newest_rescue_file_counts(tmp_path: Path) -> None:
    old, new = "# of a run\nDONE P\n", "DONE P\nDONE S\nRETRY Q 2\n"
    path = write(tmp_path, top_dag=TOP, x_dag=X, top_dag_rescue001=old, top_dag_rescue010=new)
    found = load(path)
    assert (found.task_names, found.spec(0).retries) == (("Q",), 2)
    assert found.notes == (f"{path}.rescue010 is read: 2 jobs done",)
    assert len(load(f"{path}.rescue001").task_names) == 4  # which DAGMan is told by a number
    assert load(f"{path}.rescue001").name == "top"


def test_a_rescue_file_of_a_sub_dag(tmp_path: Path) -> None:
    files = {"top_dag": TOP, "x_dag": X, "x_dag_rescue001": "DONE A\nDONE B\n"}
    path = write(tmp_path, **files)
    assert arcs(load(path)) == ["P>S+C", "S+C>Q"]
    write(tmp_path, x_dag_rescue002="DONE A\nDONE B\nDONE C\n")  # and yet its turn comes
    assert arcs(load(path)) == ["P>S", "S>Q"]


def test_a_rescue_file_names_jobs_inside_splices(tmp_path: Path) -> None:
    top = TOP.replace("SUBDAG EXTERNAL", "SPLICE")
    path = write(tmp_path, top_dag=top, x_dag=X, top_dag_rescue001="DONE P\nDONE S+B\n")
    assert load(path).task_names == ("S+A", "S+C", "Q")


def test_a_rescue_file_that_is_a_whole_dag(tmp_path: Path) -> None:
    path = write(tmp_path, top_dag_rescue001="JOB P p.sub DONE\nJOB Q q.sub\n", top_dag=TOP)
    assert load(path).task_names == ("Q",)
    with pytest.raises(InputError, match=r"rescue001: line 1: JOB cannot stand in a rescue file"):
        load(tmp_path / "top.dag")


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"x_dag": X + "JOB A a.sub\n"}, r"x\.dag: line 5: there is a job 'A' already"),
        ({"x_dag": TOP}, r"x\.dag: line 2: the file 'x.dag' is part of itself"),
        ({"top_dag_rescue001": "\nDONE R\n"}, r"rescue001: line 2: unknown job 'R'"),
        ({"top_dag_rescue001": "DONE S+A\n", "x_dag": X}, r"rescue001: line 1: unknown job"),
        ({"top_dag_rescue001": "DONE\n"}, r"rescue001: line 1: expected 'DONE JOB'"),
    ],
)
def test_mistakes_name_the_file_and_the_line(
    tmp_path: Path, files: dict[str, str], reason: str
) -> None:
    with pytest.raises(InputError, match=reason):
        load(write(tmp_path, top_dag=TOP, **files))


def test_priorities_of_a_sub_dag_add_up(tmp_path: Path) -> None:
    path = write(tmp_path, top_dag=TOP, x_dag="SUBDAG EXTERNAL D y.dag\nJOB A a.sub\n", y_dag=X)
    numbers = {"P": 9, "S+A": 8, "S+D+A": 7, "S+D+B": 5, "S+D+C": 3, "Q": 1}
    report = with_priorities(path, numbers)
    assert {file.name for file in report.files} == {"top.dag", "x.dag", "y.dag"}
    assert {name: report.effective[name] for name in numbers} == numbers
    assert (report.priorities["S"], report.priorities["S+D"]) == (8, -1)
    assert "PRIORITY B -2\n" in (tmp_path / "y.dag").read_text()
    again = with_priorities(path, {name: 2 * n for name, n in numbers.items()}, replace=True)
    assert {name: again.effective[name] for name in numbers} == {
        k: 2 * n for k, n in numbers.items()
    }


def test_a_priority_of_a_sub_dag_that_is_kept(tmp_path: Path) -> None:
    path = write(tmp_path, top_dag=TOP + "PRIORITY S 100\n", x_dag=X)
    report = with_priorities(path, {"P": 4, "S+A": 3, "S+B": 2, "S+C": 1}, dry=True)
    assert {name: report.effective[f"S+{name}"] for name in "ABC"} == {"A": 3, "B": 2, "C": 1}
    assert "PRIORITY" not in (tmp_path / "x.dag").read_text()
    copy = with_priorities(path, {"P": 4, "S+A": 3}, output=tmp_path / "out.dag")
    assert (copy.left, copy.effective["S+A"]) == (("S+A",), 100)


def test_a_dag_whose_sub_dags_are_opened_is_read_twice_alike(tmp_path: Path) -> None:
    path = write(tmp_path, top_dag=TOP, x_dag=X)
    first, second = read_dag(path), read_dag(path)
    assert [node.name for node in first.nodes] == [node.name for node in second.nodes]
    assert first.opened == dict.fromkeys(range(3, 6), 1) == second.opened
