"""DAGMan files within files: splices, their pins, and includes."""

from pathlib import Path

import pytest

from foreplan.errors import InputError
from foreplan.formats import dagman, load
from foreplan.formats.dagman import parse_dagman
from foreplan.model import Workflow
from foreplan.model.amounts import Amount
from foreplan.model.resources import Request

X = "JOB A a.sub\nJOB B b.sub\nJOB C c.sub\nPARENT A B CHILD C\n"


def write(folder: Path, **files: str) -> Path:
    """Files by their names without the suffix; the first is the one to load."""
    for name, text in files.items():
        (folder / f"{name}.dag").write_text(text)
    return folder / f"{next(iter(files))}.dag"


def arcs(workflow: Workflow) -> list[str]:
    """Every dependency as text, sorted."""
    _, parents, children = workflow.dependencies()
    names = workflow.task_names
    pairs = zip(parents.tolist(), children.tolist(), strict=True)
    return sorted(f"{names[p]}>{names[c]}" for p, c in pairs)


def test_a_splice_between_two_jobs(tmp_path: Path) -> None:
    top = "JOB P p.sub\nSPLICE S x.dag\nJOB Q q.sub\nPARENT P CHILD S\nPARENT S CHILD Q\n"
    workflow = load(write(tmp_path, top=top, x=X))
    assert workflow.task_names == ("P", "S+A", "S+B", "S+C", "Q")
    assert arcs(workflow) == ["P>S+A", "P>S+B", "S+A>S+C", "S+B>S+C", "S+C>Q"]
    assert workflow.spec(1).category == "a.sub"


def test_a_file_spliced_twice_and_a_splice_in_a_splice(tmp_path: Path) -> None:
    s1 = "JOB A a.sub\nSPLICE X1 x.dag\nSPLICE X2 x.dag\nPARENT A CHILD X1\nPARENT X1 CHILD X2\n"
    top = "SPLICE S s1.dag\nJOB Z z.sub\nPARENT S CHILD Z\nSPLICE T x.dag\nPARENT T CHILD S\n"
    workflow = load(write(tmp_path, top=top, s1=s1, x=X))
    names = ["S+A", "S+X1+A", "S+X1+B", "S+X1+C", "S+X2+A", "S+X2+B", "S+X2+C", "Z"]
    assert workflow.task_names == (*names, "T+A", "T+B", "T+C")
    found = arcs(workflow)
    inner = ["S+A>S+X1+A", "S+A>S+X1+B", "S+X1+C>S+X2+A", "S+X1+C>S+X2+B"]
    assert set(inner) < set(found)
    # the ends of a splice are those that it has itself, whatever is said of it later
    assert [a for a in found if a.startswith("T+C")] == ["T+C>S+A"]
    assert [a for a in found if a.endswith(">Z")] == ["S+X2+C>Z"]


def test_what_is_said_of_all_jobs_stays_in_its_file(tmp_path: Path) -> None:
    top = "JOB P p.sub\nSPLICE S x.dag\nRETRY ALL_NODES 2\n"
    workflow = load(write(tmp_path, top=top, x=X + "CATEGORY ALL_NODES k\nDONE B\n"))
    assert workflow.task_names == ("P", "S+A", "S+C")
    assert [workflow.spec(t).retries for t in range(3)] == [2, None, None]
    assert [workflow.spec(t).category for t in range(3)] == ["p.sub", "k", "k"]


def test_an_included_file_is_read_as_if_it_stood_there(tmp_path: Path) -> None:
    top = "JOB P p.sub\nPARENT P CHILD A\nINCLUDE x.dag\nJOB Q q.sub\nPARENT C CHILD Q\n"
    said = "RETRY ALL_NODES 3\nRETRY Q 1\nPARENT P CHILD Q\n"
    workflow = load(write(tmp_path, top=top + "INCLUDE said.dag\n", x=X, said=said))
    assert workflow.task_names == ("P", "A", "B", "C", "Q")
    assert arcs(workflow) == ["A>C", "B>C", "C>Q", "P>A", "P>Q"]
    assert [workflow.spec(t).retries for t in range(5)] == [3, 3, 3, 3, 1]


def test_an_include_inside_a_splice_and_a_splice_inside_an_include(tmp_path: Path) -> None:
    files = {"top": "INCLUDE one.dag\nPARENT S CHILD P\nJOB P p.sub\n", "one": "SPLICE S two.dag\n"}
    workflow = load(write(tmp_path, **files, two="INCLUDE x.dag\nRETRY C 4\n", x=X))
    assert workflow.task_names == ("S+A", "S+B", "S+C", "P")
    assert arcs(workflow) == ["S+A>S+C", "S+B>S+C", "S+C>P"]
    assert workflow.spec(2).retries == 4


def test_pins(tmp_path: Path) -> None:
    a = "JOB A1 a.sub\nJOB A2 a.sub\nPIN_OUT A1 1\nPIN_OUT A2 2\n"
    b = "JOB B1 b.sub\nJOB B2 b.sub\nJOB B3 b.sub\nPIN_IN B1 1\nPIN_IN B2 1\nPIN_IN B3 2\n"
    b += "PIN_OUT B1 1\nPIN_OUT B3 1\n"
    c = "JOB C1 c.sub\nJOB C2 c.sub\nPARENT C1 CHILD C2\nPIN_IN C1 1\nPIN_IN C2 1\n"
    top = "SPLICE A a.dag\nSPLICE B b.dag\nSPLICE C c.dag\nCONNECT A B\nCONNECT B C\n"
    expected = ["A+A1>B+B1", "A+A1>B+B2", "A+A2>B+B3", "B+B1>C+C1", "B+B1>C+C2"]
    expected += ["B+B3>C+C1", "B+B3>C+C2", "C+C1>C+C2"]
    assert arcs(load(write(tmp_path, top=top, a=a, b=b, c=c))) == expected


def test_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths are relative to the first file; DIR changes that for all that is inside."""
    inner = tmp_path / "dags" / "inner"
    inner.mkdir(parents=True)
    (inner / "s.dag").write_text("JOB A a.sub\nSPLICE T t.dag\nINCLUDE i.dag\n")
    (inner / "t.dag").write_text("JOB B b.sub\n")
    (inner / "i.dag").write_text("JOB C c.sub\n")
    (tmp_path / "dags" / "t.dag").write_text("JOB OTHER o.sub\n")
    top = tmp_path / "dags" / "top.dag"
    top.write_text("SPLICE S s.dag DIR inner\nSPLICE U inner/t.dag\n")
    assert load(top).task_names == ("S+A", "S+T+B", "S+C", "U+B")
    top.write_text(f"SPLICE U {inner / 't.dag'}\n")
    assert load(top).task_names == ("U+B",)
    # submitted from elsewhere: what is not beside the file is looked for here
    top.write_text("SPLICE U dags/inner/t.dag\nSPLICE V t.dag\n")
    monkeypatch.chdir(tmp_path)
    assert load("dags/top.dag").task_names == ("U+B", "V+OTHER")


WRONG = [
    ({"top": "SPLICE S none.dag\n"}, "top", 1, "'none.dag' cannot be read: there is no "),
    ({"top": "\nINCLUDE none.dag\n"}, "top", 2, "'none.dag' cannot be read: there is no "),
    ({"top": "INCLUDE top.dag\n"}, "top", 1, "'top.dag' is part of itself"),
    ({"top": "SPLICE S x.dag\n", "x": "\n\nSPLICE T top.dag\n"}, "x", 3, "is part of itself"),
    ({"top": "SPLICE S x.dag\n", "x": "JOB A a.sub\nJOB A a.sub\n"}, "x", 2, "job 'A' already"),
    ({"top": "SPLICE S x.dag\n", "x": "FINAL A a.sub\n"}, "x", 1, "a splice cannot have a FINAL"),
    ({"top": "JOB A a.sub\nINCLUDE x.dag\n", "x": "\nJOB A a.sub\n"}, "x", 2, "a job 'A' already"),
    ({"top": "SPLICE S x.dag\nSPLICE S x.dag\n", "x": X}, "top", 2, "a splice 'S' already"),
    ({"top": "SPLICE S x.dag\nJOB S a.sub\n", "x": X}, "top", 2, "a splice 'S' already"),
    ({"top": "JOB S a.sub\nSPLICE S x.dag\n", "x": X}, "top", 2, "a job 'S' already"),
    ({"top": "SPLICE S+T x.dag\n", "x": X}, "top", 1, "a splice cannot be called 'S+T'"),
    ({"top": "SPLICE S x.dag\nPRIORITY S 3\n", "x": X}, "top", 2, "'S' is a splice"),
    ({"top": "SPLICE S x.dag\nRETRY S+A 3\n", "x": X}, "top", 2, "'S+A' is inside a splice: only"),
    ({"top": "JOB P p.sub\nSPLICE S x.dag\nPARENT P CHILD S+A\n", "x": X}, "top", 3, "inside a"),
    ({"top": "JOB P p.sub\nSPLICE S x.dag\nPARENT P CHILD S\n", "x": "#\n"}, "top", 3, "no jobs"),
    ({"top": "SPLICE S x.dag\nPARENT S CHILD S\n", "x": X}, "top", 2, "the jobs form a cycle"),
    ({"top": "SPLICE S x.dag\nCONNECT S T\n", "x": X}, "top", 2, "unknown splice 'T'"),
    ({"top": "SPLICE S x.dag\nSPLICE T x.dag\nCONNECT S T\n", "x": X}, "top", 3, "are []"),
]
PINS = [
    ("PIN_OUT A 2\nPIN_IN B 1\n", "PIN_OUTs of the splice 'S' must be 1, 2, 3, ... without a gap"),
    ("PIN_OUT A 1\nPIN_IN B 2\nPIN_IN B 3\n", "PIN_INs of the splice 'T'"),
    ("PIN_OUT A 1\nPIN_IN A 1\nPIN_IN B 2\n", "there are 1 PIN_OUTs and 2 PIN_INs"),
    ("PIN_OUT C 1\nPIN_IN A 1\n", "the job 'T+B' has neither a parent nor a PIN_IN"),
]


@pytest.mark.parametrize(("files", "file", "line", "reason"), WRONG)
def test_what_is_wrong(
    tmp_path: Path, files: dict[str, str], file: str, line: int, reason: str
) -> None:
    path = write(tmp_path, **files)
    with pytest.raises(InputError) as caught:
        load(path)
    assert str(caught.value).startswith(f"{tmp_path / file}.dag: line {line}: ")
    assert reason in caught.value.problem


@pytest.mark.parametrize(("pins", "reason"), PINS)
def test_pins_that_do_not_match(tmp_path: Path, pins: str, reason: str) -> None:
    top = "SPLICE S x.dag\nSPLICE T x.dag\nCONNECT S T\n"
    with pytest.raises(InputError) as caught:
        load(write(tmp_path, top=top, x=X + pins))
    assert caught.value.place == "line 3"
    assert reason in caught.value.problem


def test_a_text_alone_names_no_files() -> None:
    for text in ("INCLUDE x.dag\n", "SPLICE S x.dag\n"):
        with pytest.raises(InputError, match="line 1: a text alone cannot name other files"):
            parse_dagman(text)


def test_files_that_double_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small files that would make more jobs, or be read more often, than any machine can bear."""
    monkeypatch.setattr(dagman, "_MOST_FILES", 1000)
    for two in ("SPLICE A s{0}.dag\nSPLICE B s{0}.dag\n", "INCLUDE s{0}.dag\nINCLUDE s{0}.dag\n"):
        for i in range(60):
            (tmp_path / f"s{i}.dag").write_text(two.format(i + 1))
        (tmp_path / "s60.dag").write_text("MAXJOBS x 1\n")
        with pytest.raises(
            InputError, match="at most 100 files can be inside each other, and 1,000"
        ):
            load(tmp_path / "s0.dag")
    (tmp_path / "s59.dag").write_text(X)
    (tmp_path / "s58.dag").write_text("SPLICE S s59.dag\nSPLICE T s59.dag\n")
    monkeypatch.setattr(dagman, "MOST_JOBS", 5)
    with pytest.raises(InputError, match=r"s59.dag: line 3: there are more than 5 jobs"):
        load(tmp_path / "s58.dag")


def test_files_inside_each_other_to_a_depth(tmp_path: Path) -> None:
    for i in range(150):
        (tmp_path / f"s{i}.dag").write_text(f"SPLICE S s{i + 1}.dag\n")
    (tmp_path / "s150.dag").write_text("JOB A a.sub\n")
    assert load(tmp_path / "s50.dag").task_names == ("S+" * 100 + "A",)
    with pytest.raises(InputError, match=r"s149.dag: line 1: at most 100 files"):
        load(tmp_path / "s49.dag")


def test_submit_descriptions_say_what_jobs_ask_for(tmp_path: Path) -> None:
    (tmp_path / "a.sub").write_text(
        "executable = x\nRequest_CPUs = 4\nrequest_memory = 2 GB\nqueue\n"
    )
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b.sub").write_text("request_memory = \\\n 512\nrequest_gpus=1\n")
    (tmp_path / "odd.sub").write_text("request_cpus = $(n)\nrequest_memory = 1 + 2\n")
    top = """JOB A a.sub
JOB A2 a.sub
JOB B b.sub DIR sub
JOB C not-there.sub
JOB D {
  request_cpus = 2
}
SUBMIT-DESCRIPTION shared @=end
  request_memory = 1024K
@end
JOB E shared
JOB F odd.sub
SPLICE S x.dag
"""
    workflow = load(write(tmp_path, top=top, x="JOB A a.sub\n"))
    asked = {name: workflow.spec(t).request for t, name in enumerate(workflow.task_names)}
    large = Request(cores=(4,), memory=Amount("2GiB"))
    assert asked == {
        "A": large,
        "A2": large,
        "B": Request(memory=Amount("512MiB"), gpus=1),
        "C": None,
        "D": Request(cores=(2,)),
        "E": Request(memory=Amount("1024KiB")),
        "F": None,
        "S+A": large,
    }
    assert workflow.notes == (
        "odd.sub: request_cpus = '$(n)' is no plain number: it is left out",
        "odd.sub: request_memory = '1 + 2' is no plain number: it is left out",
    )
