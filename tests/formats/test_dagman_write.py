"""Priorities written into DAGMan files: the lines that come, the lines that go, all others stay."""

from pathlib import Path

import pytest

from foreplan.errors import InputError
from foreplan.formats.dagman import read_dag
from foreplan.formats.dagman_dag import DagmanDag
from foreplan.formats.dagman_write import Written, with_priorities

JOBS = b"JOB a a.sub\nJOB b b.sub\nPARENT a CHILD b\n"


def numbers(dag: DagmanDag) -> dict[str, int]:
    """What the PRIORITY lines of a dag say."""
    return {dag.nodes[i].name: number for i, (number, _) in dag.priorities.items()}


def written(path: Path, raw: bytes, **options: object) -> bytes:
    """The file after a gets 2 and b gets 1."""
    path.write_bytes(raw)
    with_priorities(path, {"a": 2, "b": 1}, **options)  # type: ignore[arg-type]
    return path.read_bytes()


ENDS = [
    (JOBS, b"PRIORITY a 2\nPRIORITY b 1\n"),
    (JOBS.replace(b"\n", b"\r\n"), b"PRIORITY a 2\r\nPRIORITY b 1\r\n"),
    (JOBS.rstrip(), b"\nPRIORITY a 2\nPRIORITY b 1"),
    (JOBS.replace(b"\n", b"\r\n").rstrip(), b"\r\nPRIORITY a 2\r\nPRIORITY b 1"),
    (JOBS + b"  \t ", b"\nPRIORITY a 2\nPRIORITY b 1"),
    (JOBS + b"\n\n", b"PRIORITY a 2\nPRIORITY b 1\n"),
    (b"\xef\xbb\xbf" + JOBS + b"# caf\xe9\n", b"PRIORITY a 2\nPRIORITY b 1\n"),
    # a last line that goes on must not go on with ours
    (JOBS + b"RETRY a 3 \\\n", b"\nPRIORITY a 2\nPRIORITY b 1\n"),
    (JOBS + b"RETRY a 3 \\", b"\n\nPRIORITY a 2\nPRIORITY b 1"),
    (JOBS + b"# so \\ \n", b"\nPRIORITY a 2\nPRIORITY b 1\n"),
    (JOBS + b"RETRY a 3 \\\n\n", b"PRIORITY a 2\nPRIORITY b 1\n"),
]


@pytest.mark.parametrize(("raw", "added"), ENDS)
def test_lines_are_added_at_the_end(tmp_path: Path, raw: bytes, added: bytes) -> None:
    path = tmp_path / "x.dag"
    assert written(path, raw) == raw + added
    assert numbers(read_dag(path)) == {"a": 2, "b": 1}


def test_in_the_style_of_the_prio_tool(tmp_path: Path) -> None:
    path = tmp_path / "x.dag"
    added = b'VARS a JobPriority="2"\nVARS b JobPriority="1"\n'
    assert written(path, JOBS, style="vars") == JOBS + added
    assert written(path, JOBS + added, style="vars") == JOBS + added
    assert written(path, JOBS + added, style="vars", replace=True) == JOBS + added


KEPT = [b"PRIORITY b -7\n", b"priority ALL_NODES 0\n", b'Vars b x="1" JOBPRIORITY = "4"\n']


@pytest.mark.parametrize("line", KEPT)
@pytest.mark.parametrize("style", ["priority", "vars"])
def test_what_is_there_is_kept(tmp_path: Path, line: bytes, style: str) -> None:
    path = tmp_path / "x.dag"
    new = b"PRIORITY a 2\n" if style == "priority" else b'VARS a JobPriority="2"\n'
    expected = JOBS + line + (b"" if b"ALL" in line else new)
    assert written(path, JOBS + line, style=style) == expected
    assert written(path, expected, style=style) == expected


REPLACED = [
    (b"PRIORITY b -7\n", b""),
    (b"PRIORITY b \\\n# why \\\n  3\n# after\n", b"# why \\\n# after\n"),
    (b"Priority a 1\nRETRY a 3\nPRIORITY b 2\nPRIORITY a 3\n", b"RETRY a 3\n"),
    (b"PRIORITY ALL_NODES 4\n", b""),
    (b'VARS b JOBPRIORITY="3"\n', b""),
    (b'VARS all_nodes jobPriority="3"\n', b""),
    (b'VARS b x="1" jobpriority="3"\n', b'VARS b x="1" jobpriority="3"\n'),
    (b"JOB c c.sub DONE\nPRIORITY c 5\nFINAL f f.sub\n",) * 2,
    (
        b"JOB c c.sub DONE\nFINAL f f.sub\nPRIORITY ALL_NODES 5\n",
        b"JOB c c.sub DONE\nFINAL f f.sub\n",
    ),
    (b"JOB d {\nPRIORITY a 3\n} DONE\n",) * 2,
]


@pytest.mark.parametrize(("lines", "left"), REPLACED)
def test_what_is_there_is_replaced(tmp_path: Path, lines: bytes, left: bytes) -> None:
    path = tmp_path / "x.dag"
    for style, added in (
        ("priority", b"PRIORITY a 2\nPRIORITY b 1\n"),
        ("vars", b'VARS a JobPriority="2"\nVARS b JobPriority="1"\n'),
    ):
        end = b"\n" if left.endswith(b"\\\n") else b""
        result = written(path, JOBS + lines, replace=True, style=style)
        assert result == JOBS + left + end + added
        assert written(path, result, replace=True, style=style) == result


def test_a_last_line_without_an_end_is_replaced(tmp_path: Path) -> None:
    raw = JOBS + b"PRIORITY b 3"
    assert written(tmp_path / "x.dag", raw, replace=True) == JOBS + b"PRIORITY a 2\nPRIORITY b 1\n"


def test_only_some_jobs(tmp_path: Path) -> None:
    """A line about all jobs stays for those that get no other number; the last line holds."""
    path = tmp_path / "x.dag"
    path.write_bytes(JOBS + b"PRIORITY ALL_NODES 4\n")
    report = with_priorities(path, {"b": 9}, replace=True)
    assert path.read_bytes() == JOBS + b"PRIORITY ALL_NODES 4\nPRIORITY b 9\n"
    assert numbers(read_dag(path)) == {"a": 4, "b": 9}
    assert report == Written((path,), {"b": 9}, (), (), ())


def splices(folder: Path) -> Path:
    """A dag with a file that is spliced in twice, another once, and an included one."""
    (folder / "top.dag").write_bytes(
        b"JOB p p.sub\nSPLICE S x.dag\nSPLICE T x.dag\nSPLICE U y.dag\nINCLUDE i.dag\n"
    )
    (folder / "x.dag").write_bytes(JOBS.replace(b"\n", b"\r\n"))
    (folder / "y.dag").write_bytes(b"JOB c c.sub\nPRIORITY c 3")
    (folder / "i.dag").write_bytes(b"JOB q q.sub\nJOB r r.sub\nPRIORITY r 8\n")
    return folder / "top.dag"


NUMBERS = {"p": 8, "q": 7, "r": 6, "S+a": 5, "S+b": 4, "T+a": 3, "T+b": 1, "U+c": 2}


def test_splices_and_includes(tmp_path: Path) -> None:
    path = splices(tmp_path)
    before = {f.name: f.read_bytes() for f in tmp_path.iterdir()}
    report = with_priorities(path, NUMBERS)
    after = {f.name: f.read_bytes() for f in tmp_path.iterdir()}
    assert after == before | {
        "top.dag": before["top.dag"] + b"PRIORITY p 8\nPRIORITY q 7\n",
        "x.dag": before["x.dag"] + b"PRIORITY a 4\r\nPRIORITY b 3\r\n",
    }
    assert report.files == (tmp_path / "x.dag", path)
    assert report.priorities == {"p": 8, "q": 7, "S+a": 4, "T+a": 4, "S+b": 3, "T+b": 3}
    assert sorted(report.kept) == ["U+c", "r"]
    assert report.notes == (
        f"{tmp_path}/x.dag is used more than once: its jobs get the mean priority",
    )
    assert numbers(read_dag(path)) == report.priorities | {"U+c": 3, "r": 8}


def test_splices_and_includes_replaced(tmp_path: Path) -> None:
    path = splices(tmp_path)
    included = (tmp_path / "i.dag").read_bytes()
    report = with_priorities(path, NUMBERS, replace=True)
    assert (tmp_path / "y.dag").read_bytes() == b"JOB c c.sub\nPRIORITY c 2\n"
    assert (tmp_path / "i.dag").read_bytes() == included
    assert path.read_bytes().endswith(b"PRIORITY p 8\nPRIORITY q 7\nPRIORITY r 6\n")
    assert "priorities of included files are overruled (1)" in report.notes
    assert numbers(read_dag(path)) == report.priorities
    assert report.priorities["r"] == 6


def test_with_an_output_nothing_else_is_written(tmp_path: Path) -> None:
    path = splices(tmp_path)
    before = {f.name: f.read_bytes() for f in tmp_path.iterdir()}
    output = tmp_path / "out.dag"
    report = with_priorities(path, NUMBERS, output=output)
    assert {f.name: f.read_bytes() for f in tmp_path.iterdir()} == before | {
        "out.dag": before["top.dag"] + b"PRIORITY p 8\nPRIORITY q 7\n"
    }
    assert report.files == (output,)
    assert sorted(report.left) == ["S+a", "S+b", "T+a", "T+b"]
    assert len(report.notes) == 1
    assert report.notes[0].startswith("jobs inside splices and SUBDAGs get none (4)")


def test_an_output_is_written_even_if_nothing_changes(tmp_path: Path) -> None:
    path, output = tmp_path / "x.dag", tmp_path / "y.dag"
    path.write_bytes(JOBS)
    assert with_priorities(path, {}).files == ()
    assert with_priorities(path, {}, output=output).files == (output,)
    assert output.read_bytes() == JOBS


def test_what_cannot_be_written(tmp_path: Path) -> None:
    path = splices(tmp_path)
    before = {f.name: f.read_bytes() for f in tmp_path.iterdir()}
    for options, reason in (
        ({"output": tmp_path / "x.dag"}, "x.dag: cannot write the priorities to it: it is a part"),
        ({"output": tmp_path / "i.dag"}, "i.dag: cannot write the priorities to it: it is a part"),
        ({"output": tmp_path / "none" / "x.dag"}, "there is no such file or directory"),
        ({"replace": True, "style": "vars"}, "i.dag: line 3: VARS cannot overrule this PRIORITY"),
    ):
        with pytest.raises(InputError) as caught:
            with_priorities(path, NUMBERS, **options)
        assert reason in str(caught.value)
    for wrong, reason in (({"a": 1}, "unknown job 'a'"), ({"p": 2**31}, "is out of range")):
        with pytest.raises(InputError, match=reason):
            with_priorities(path, wrong)
    (tmp_path / "top.dag").write_bytes(before["top.dag"] + b"SPLICE V i.dag\n")
    with pytest.raises(InputError, match=r"i\.dag: priorities would count twice in it"):
        with_priorities(path, {"p": 1})
    assert with_priorities(path, {"p": 1}, output=tmp_path / "out").priorities == {"p": 1}
    (tmp_path / "out").unlink()
    (tmp_path / "top.dag").write_bytes(before["top.dag"])
    assert {f.name: f.read_bytes() for f in tmp_path.iterdir()} == before


def test_all_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the last of the files cannot be written, the others are as they were."""
    path = splices(tmp_path)
    before = {f.name: f.read_bytes() for f in tmp_path.iterdir()}
    real = Path.replace

    def replace(self: Path, target: Path) -> Path:
        if target.name == "top.dag":
            raise PermissionError
        return real(self, target)

    monkeypatch.setattr(Path, "replace", replace)
    with pytest.raises(InputError, match=r"top\.dag: cannot write it: permission denied"):
        with_priorities(path, NUMBERS)
    assert {f.name: f.read_bytes() for f in tmp_path.iterdir()} == before
