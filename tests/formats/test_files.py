"""Files: chosen by suffix, read with a limit, written whole or not at all."""

import os
from pathlib import Path
from typing import Any

import pytest

from foreplan.errors import InputError
from foreplan.files import MAX_BYTES
from foreplan.formats import FORMATS, load, load_platform, read_document, save, save_platform
from foreplan.formats import workflow_from_dict as from_dict

WORKFLOW: dict[str, object] = {"tasks": {"a": {"cost": 1}, "b": {"cost": 2}}, "edges": [["a", "b"]]}


def _problem(path: Path, *, platform: bool = False) -> InputError:
    with pytest.raises(InputError) as caught:
        load_platform(path) if platform else load(path)
    assert caught.value.source == str(path)
    return caught.value


def test_missing_file(tmp_path: Path) -> None:
    assert "no such file" in str(_problem(tmp_path / "none.yaml"))


def test_directory(tmp_path: Path) -> None:
    (tmp_path / "d.json").mkdir()
    assert "it is a directory" in str(_problem(tmp_path / "d.json"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_permission(tmp_path: Path) -> None:
    path = tmp_path / "secret.json"
    path.write_text("{}")
    path.chmod(0)
    assert "permission denied" in str(_problem(path))


def test_a_path_with_a_zero_byte() -> None:
    with pytest.raises(InputError, match="not a path"):
        load("a\0b.yaml")
    with pytest.raises(InputError, match="not a path"):
        save(from_dict(WORKFLOW), "a\0b.yaml")


def test_a_path_that_is_not_utf_8_can_be_printed() -> None:
    for path in ("\ud800.yaml", "\udcff.yaml"):
        with pytest.raises(InputError) as caught:
            load(path)
        assert str(caught.value).encode().startswith(b"\\ud")


def test_not_a_path_at_all() -> None:
    nonsense: Any = 3
    with pytest.raises(InputError, match="expected a path or a mapping, not 3"):
        load(nonsense)
    with pytest.raises(InputError, match="expected a path or a mapping, not 3"):
        load_platform(nonsense)


def test_a_mistake_in_a_platform_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text("processors:\n  a: {speed: 1}\n  b: {spede: 2}\n")
    with pytest.raises(InputError, match=r"p\.yaml: line 3: processors\.b: unknown field 'spede'"):
        load_platform(path)


def test_broken_encoding(tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    path.write_bytes(b"tasks: {a\xff}")
    error = _problem(path)
    assert (error.place, "0xff" in error.problem) == ("byte 9", True)
    path.write_bytes(b"\xef\xbb\xbftasks: {a\xff}")
    assert _problem(path).place == "byte 12"


@pytest.mark.parametrize("suffix", [".json", ".yaml"])
def test_a_byte_order_mark_is_fine(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"w{suffix}"
    path.write_bytes(b'\xef\xbb\xbf{"tasks": {"a": {}}}')
    assert load(path).task_names == ("a",)


@pytest.mark.parametrize("suffix", [".json", ".yaml", ".yml", ".stg", ".dot"])
def test_an_empty_file(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"w{suffix}"
    path.write_bytes(b"")
    assert "the file is empty" in _problem(path).problem


def test_large_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sparse = tmp_path / "huge.json"
    with sparse.open("wb") as file:
        file.truncate(MAX_BYTES + 1)  # takes no room on the disk
    assert "more than 1,073,741,824 bytes" in _problem(sparse).problem
    monkeypatch.setattr("foreplan.files.MAX_BYTES", 10)
    path = tmp_path / "w.json"
    path.write_text("[" + " " * 9)
    assert "not JSON" in _problem(path).problem
    path.write_text("[" + " " * 10)
    assert "too large: more than 10 bytes" in _problem(path).problem


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no /dev/zero here")
def test_an_endless_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foreplan.files.MAX_BYTES", 1 << 20)
    with pytest.raises(InputError, match="too large"):
        read_document("/dev/zero")


def test_unknown_suffix_and_format(tmp_path: Path) -> None:
    assert "unknown suffix '.jsn' (did you mean '.json'?)" in _problem(tmp_path / "w.jsn").problem
    with pytest.raises(InputError, match="unknown format 'yml'"):
        load(tmp_path / "w.yaml", format="yml")


def test_a_workflow_is_no_platform_and_a_platform_no_workflow(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("tasks: {a: {cost: 1}}")
    assert "this is a workflow, not a platform" in _problem(path, platform=True).problem
    path.write_text("processors: {a: {}}")
    assert "this is a platform, not a workflow" in _problem(path).problem
    assert ".yaml, .yml or .json" in _problem(tmp_path / "x.stg", platform=True).problem


@pytest.mark.parametrize("content", ["3", "[1]", "text", "null", "true"])
def test_a_file_that_is_no_mapping(tmp_path: Path, content: str) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(content)
    for platform in (False, True):
        problem = _problem(path, platform=platform).problem
        assert "expected a mapping" in problem or "empty" in problem


def test_a_cycle_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("tasks: {a: , b: }\nedges: [[a, b], [b, a]]")
    assert str(_problem(path)) == f"{path}: line 1: tasks.a: the tasks form a cycle: a -> b -> a"


def test_places_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("tasks:\n  n3: {cost: {r1: fast}}\n")
    assert str(_problem(path)) == f"{path}: line 2: tasks.n3.cost.r1: expected a number, not 'fast'"


def test_every_format_names_itself_by_suffix_or_option(tmp_path: Path) -> None:
    workflow = from_dict(WORKFLOW)
    for name, format in FORMATS.items():
        assert format.about
        path = tmp_path / f"x{(format.suffixes or ('.json',))[0]}"
        if format.write is None:
            with pytest.raises(InputError, match="writes none"):
                save(workflow, path, name)
            assert not path.exists()
            continue
        save(workflow, path, name)
        assert load(path).n_tasks == load(path, format=name).n_tasks == 2


def test_writing_replaces_the_file_and_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "w.json"
    path.write_text("old")
    path.chmod(0o640)
    link = tmp_path / "link.json"
    link.symlink_to(path)
    save(from_dict(WORKFLOW), link)
    assert link.is_symlink()
    assert load(path).n_tasks == 2
    assert path.stat().st_mode & 0o777 == 0o640
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link.json", "w.json"]


def test_an_error_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "w.json"
    path.write_text("old")

    def fail(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(InputError, match="cannot write it: No space left on device"):
        save(from_dict(WORKFLOW), path)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["w.json"]


def test_writing_where_nothing_can_be_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file or directory"):
        save(from_dict(WORKFLOW), tmp_path / "none" / "w.json")
    (tmp_path / "d.json").mkdir()
    with pytest.raises(InputError, match="it is a directory"):
        save(from_dict(WORKFLOW), tmp_path / "d.json")
    with pytest.raises(InputError, match=r"\.yaml, \.yml or \.json"):
        save_platform(load_platform({"processors": {"a": None}}), tmp_path / "p.stg")


@pytest.mark.skipif(not Path("/dev/null").exists(), reason="no /dev/null here")
def test_a_device_is_written_to_and_not_replaced() -> None:
    save(from_dict(WORKFLOW), "/dev/null", "json")
    assert Path("/dev/null").is_char_device()
