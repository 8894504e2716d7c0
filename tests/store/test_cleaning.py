"""A store that is folded says the same of what is there; what can never hold again is dropped."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foreplan.store import parts
from foreplan.store.changes import KeyChange, changes
from foreplan.store.cleaning import fold_store, foldable
from foreplan.store.store import Store, StoreError
from store.test_random import Draw, begin, draw_change, draw_end, draw_jobs, number
from store.tiny import Job


def never(run: str) -> bool:
    return False


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_what_is_up_to_date_is_so_before_and_after(data: st.DataObject) -> None:
    draw: Draw = data.draw
    with tempfile.TemporaryDirectory() as folder:
        tiny, jobs = begin(folder), draw_jobs(draw)
        for _ in range(1 + number(draw, 4)):
            for _ in range(number(draw, 2)):
                jobs = draw_change(draw, tiny, jobs)
            tiny.run(jobs, end=draw_end(draw, jobs))
        jobs = draw_change(draw, tiny, jobs)
        before = tiny.survey(jobs)
        found = foldable(folder, never, never)
        fold_store(found)
        after = tiny.survey(jobs)
        assert after.states == before.states
        assert after.edited == before.edited
        assert len(parts.list_parts(found.folder)) <= 1
        again = foldable(folder, never, never)
        assert again.dropped == 0
        assert again.after == again.before == found.after


def test_parts_of_runs_under_way_are_left_alone(tmp_path: Path) -> None:
    tiny = begin(str(tmp_path))
    tiny.run([Job("a", 1, ("in0",), ("x",))])
    (name,) = parts.list_parts(parts.folder_of(tmp_path))
    found = foldable(tmp_path, lambda run: True, never, everything=True)
    assert (found.live, found.whole) == (1, [])
    fold_store(found)
    assert parts.list_parts(found.folder) == [name]


def test_a_writer_that_was_taken_to_be_over_loses_nothing(tmp_path: Path) -> None:
    folder = parts.make_folder(tmp_path)
    part = parts.Part(folder, "run")
    line = parts.encode({"files": {}, "at": 1.0})
    part.append(line)
    found = foldable(tmp_path, never, never, everything=True)
    part.append(line)  # while it is being cleaned
    fold_store(found)
    part.append(line)  # and after
    part.close()
    assert sum(len(p.lines) for p in parts.read_parts(folder)) >= 2


@pytest.mark.parametrize("marked", [True, False])
def test_a_store_of_another_format_goes_whole_or_stays(marked: bool, tmp_path: Path) -> None:
    begin(str(tmp_path)).run([Job("a", 1, ("in0",), ("x",))])
    folder = parts.folder_of(tmp_path)
    if marked:
        (folder / f"format-{parts.FORMAT}").rename(folder / f"format-{parts.FORMAT + 1}")
    else:
        parts.append(str(folder), "r", parts.encode({"later": 1}))
    with pytest.raises(StoreError, match="another version of foreplan wrote this store"):
        foldable(tmp_path, never, never)
    fold_store(foldable(tmp_path, never, never, everything=True))
    assert parts.list_parts(folder) == []
    begin(str(tmp_path)).run([Job("a", 1, ("in0",), ("x",))])
    assert Store.read(tmp_path).made("x")


def test_changes_from_what_to_what() -> None:
    old = {"how": "h1", "inputs": {"a": "1", "b": "2", "gone": "3"}, "after": {"t": "k1"}}
    new = {"how": "h2", "inputs": {"a": "1", "b": "4", "new": "5"}, "after": {"t": "k2"}}
    assert changes(old, ["x", "y"], new, ["x", "z"]) == [
        KeyChange("command", "", "h1", "h2"),
        KeyChange("input", "b", "2", "4"),
        KeyChange("input", "gone", "3", None),
        KeyChange("input", "new", None, "5"),
        KeyChange("output", "y", "", None),
        KeyChange("output", "z", None, ""),
        KeyChange("after", "t", "k1", "k2"),
    ]
    assert changes(old, ["x"], old, ["x"]) == []
    call = {"how": "f", "inputs": {}, "arguments": "1"}
    assert changes(call, [], call | {"arguments": "2"}, []) == [
        KeyChange("arguments", "", "1", "2")
    ]
