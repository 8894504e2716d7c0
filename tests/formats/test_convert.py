"""`foreplan convert`: one line of what was written, and nothing lost on an error."""

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from foreplan.cli.convert import convert
from foreplan.errors import InputError
from foreplan.formats import load

app = typer.Typer()
app.command()(convert)


def _run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0
    return result.output


def test_convert_says_what_it_wrote(tmp_path: Path) -> None:
    source, target = tmp_path / "w.yaml", tmp_path / "w.json"
    source.write_text("tasks: {a: {cost: 1}, b: {cost: 2}}\nedges: [[a, b, 3]]\n")
    assert _run(source, target) == f"wrote {target}: 2 tasks, 1 dependency, 1 data item\n"
    assert load(target).task_names == ("a", "b")
    _run(target, tmp_path / "trace.json", "--to", "wfformat")
    assert load(tmp_path / "trace.json", "wfformat").item_size.tolist() == [3]
    _run(tmp_path / "trace.json", tmp_path / "w.txt", "--from", "wfformat", "--to", "stg")
    assert (tmp_path / "w.txt").read_text() == "2\n0 1 0\n1 2 1 0 3\n"


def test_an_error_leaves_the_target(tmp_path: Path) -> None:
    source, target = tmp_path / "w.yaml", tmp_path / "w.stg"
    source.write_text("tasks: {a: }\n")
    target.write_text("old")
    with pytest.raises(InputError, match="STG needs one cost"):
        _run(source, target)
    with pytest.raises(InputError, match=r"unknown format 'sgt' .*'stg'"):
        _run(source, target, "--to", "sgt")
    with pytest.raises(InputError, match="no such file"):
        _run(tmp_path / "none.yaml", target)
    assert target.read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["w.stg", "w.yaml"]


def test_the_help_teaches(tmp_path: Path) -> None:
    assert "foreplan convert montage.json montage.yaml" in _run("--help")
