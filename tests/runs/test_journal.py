"""The journal: what was appended is read, and a bad end is found, set aside and reported."""

import stat
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foreplan.errors import ForeplanError, InputError
from foreplan.runs.journal import RULES, Contents, Journal, encode, read, real

HEADER = {"type": "run", "rules": RULES, "id": "x"}
ENTRIES: list[dict[str, Any]] = [
    {"t": "event", "kind": "task_finished", "which": 0, "time": 1.5, "value": 0.0},
    {"t": "plan", "note": 'ümlaut, newline\nand quote"'},
    {},
    {"t": "end", "status": "finished", "time": 2},
]
MORE = [{"t": "more", "n": n} for n in range(3)]

_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
_entry = st.dictionaries(st.text(max_size=5).filter(lambda key: key != "seq"), _values, max_size=4)
_batches = st.lists(st.lists(_entry, max_size=3), max_size=5)


def written(path: Path, batches: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    with Journal.create(path, HEADER) as journal:
        for batch in batches:
            journal.append(batch)
    return [entry for batch in batches for entry in batch]


def check_reading(path: Path, appended: list[dict[str, Any]]) -> Contents | None:
    """A prefix of what was appended, and damage if and only if there is more in the file."""
    raw = path.read_bytes()
    if not raw.startswith(encode(0, HEADER)):
        with pytest.raises(ForeplanError, match="foreplan run"):
            read(path)
        return None
    contents = read(path)
    assert path.read_bytes() == raw
    assert contents.header == HEADER
    assert contents.entries == appended[: len(contents.entries)]
    told = b"".join(encode(n, line) for n, line in enumerate([HEADER, *contents.entries]))
    assert raw.startswith(told)
    assert (contents.damage is None) == (raw == told)
    if contents.damage is not None:
        assert contents.damage.line == len(contents.entries) + 2
        assert contents.damage.bytes == len(raw) - len(told)
        assert f"line {contents.damage.line} " in contents.damage.message
    return contents


def check_going_on(path: Path, appended: list[dict[str, Any]]) -> None:
    """Opening sets the bad bytes aside; appending works; all is there."""
    raw = path.read_bytes()
    before = check_reading(path, appended)
    if before is None:
        with pytest.raises(ForeplanError, match="foreplan run"):
            Journal.open(path)
        assert path.read_bytes() == raw
        return
    journal, contents = Journal.open(path)
    with journal:
        assert (contents.header, contents.entries) == (before.header, before.entries)
        assert (contents.damage is None) == (before.damage is None)
        kept = path.with_name("journal.damaged")
        assert kept.exists() == (contents.damage is not None)
        if contents.damage is not None:
            assert path.read_bytes() + kept.read_bytes() == raw
            assert "journal.damaged" in contents.damage.message
        journal.append(MORE[:2])
        journal.append(MORE[2:])
    assert read(path) == Contents(HEADER, before.entries + MORE, None)


@given(batches=_batches)
@settings(max_examples=50, deadline=None)
def test_reads_what_was_appended(batches: list[list[dict[str, Any]]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "journal.jsonl"
        appended = written(path, batches)
        assert read(path) == Contents(HEADER, appended, None)
        check_going_on(path, appended)


@given(batches=_batches, data=st.data())
@settings(max_examples=100, deadline=None)
def test_cut_anywhere(batches: list[list[dict[str, Any]]], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "journal.jsonl"
        appended = written(path, batches)
        raw = path.read_bytes()
        path.write_bytes(raw[: data.draw(st.integers(0, len(raw)))])
        check_going_on(path, appended)


@given(batches=_batches, data=st.data())
@settings(max_examples=150, deadline=None)
def test_bytes_replaced_anywhere(batches: list[list[dict[str, Any]]], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "journal.jsonl"
        appended = written(path, batches)
        raw = path.read_bytes()
        begin = data.draw(st.integers(0, len(raw)))
        end = data.draw(st.integers(begin, min(len(raw), begin + 40)))
        path.write_bytes(raw[:begin] + data.draw(st.binary(max_size=40)) + raw[end:])
        check_going_on(path, appended)


@given(batches=_batches, data=st.data())
@settings(max_examples=60, deadline=None)
def test_lines_in_another_order(batches: list[list[dict[str, Any]]], data: st.DataObject) -> None:
    """Every line has a right checksum; that some are gone, doubled or moved is found too."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "journal.jsonl"
        appended = written(path, batches)
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join(data.draw(st.lists(st.sampled_from(lines), max_size=12))))
        check_going_on(path, appended)


def test_every_cut_and_every_flipped_bit(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    written(path, [ENTRIES])
    raw = path.read_bytes()
    for cut in range(len(raw)):
        path.write_bytes(raw[:cut])
        check_reading(path, ENTRIES)
    for place in range(len(raw)):
        for bit in range(8):
            path.write_bytes(raw[:place] + bytes([raw[place] ^ 1 << bit]) + raw[place + 1 :])
            contents = check_reading(path, ENTRIES)
            assert contents is None or contents.damage is not None


def test_a_bad_line_in_the_middle_is_not_skipped(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    written(path, [ENTRIES])
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b"plan", b"Plan")
    path.write_bytes(b"".join(lines))
    journal, contents = Journal.open(path)
    journal.close()
    assert contents.entries == ENTRIES[:1]
    assert contents.damage is not None
    assert (contents.damage.line, contents.damage.entries_after) == (3, 2)
    for part in ("line 3", "2 readable entries", "journal.damaged", "nothing finished is lost"):
        assert part in contents.damage.message
    assert (tmp_path / "journal.damaged").read_bytes() == b"".join(lines[2:])


def test_each_damage_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    written(path, [])
    for n in range(3):
        with path.open("ab") as file:
            file.write(b"half a line %d" % n)
        journal, contents = Journal.open(path)
        journal.close()
        assert contents.damage is not None
        assert "is cut" in contents.damage.message
    kept = sorted(path.name for path in tmp_path.glob("journal.damaged*"))
    assert kept == ["journal.damaged", "journal.damaged.2", "journal.damaged.3"]
    assert (tmp_path / "journal.damaged.3").read_bytes() == b"half a line 2"
    assert stat.S_IMODE((tmp_path / "journal.damaged").stat().st_mode) == 0o600


def test_no_journal(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with pytest.raises(ForeplanError, match="no such file"):
        read(path)
    with pytest.raises(ForeplanError, match="cannot begin the journal"):
        Journal.create(tmp_path / "none" / "journal.jsonl", HEADER)
    path.mkdir()
    with pytest.raises(ForeplanError, match="is a directory"):
        Journal.open(path)


def test_an_existing_journal_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    written(path, [ENTRIES])
    with pytest.raises(ForeplanError, match="exists"):
        Journal.create(path, HEADER)
    assert read(path).entries == ENTRIES


def test_a_journal_of_another_version(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    Journal.create(path, {**HEADER, "rules": RULES + 1}).close()
    with pytest.raises(ForeplanError, match=rf"another version of foreplan.*\(rules {RULES + 1};"):
        read(path)


def test_numbers_that_json_does_not_know(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    strange = {"inf": float("inf"), "in": [float("nan"), (-np.inf, np.float64(0.1))]}
    more = {"n": np.int64(7), "b": np.bool_(True), "p": Path("a/b"), "k": {np.int32(3): 1, 4: 2}}
    with Journal.create(path, HEADER) as journal:
        journal.append([strange, more, {"text": "\udc80 is no UTF-8"}])
    first, second, third = read(path).entries
    assert first == {"inf": "inf", "in": ["nan", ["-inf", 0.1]]}
    assert second == {"n": 7, "b": True, "p": "a/b", "k": {"3": 1, "4": 2}}
    assert third == {"text": "\udc80 is no UTF-8"}
    assert real("inf") == float("inf")
    assert real("-inf") == -float("inf")
    assert np.isnan(real("nan"))
    assert real(3) == 3.0
    wrong: list[Any] = ["1", None, True, [], {}]
    for bad in wrong:
        with pytest.raises(InputError):
            real(bad)


@pytest.mark.parametrize("bad", [{"x": np.zeros(3)}, {"x": b"bytes"}, {"x": {1, 2}}])
def test_what_is_not_plain_is_refused_and_nothing_written(
    tmp_path: Path, bad: dict[str, Any]
) -> None:
    path = tmp_path / "journal.jsonl"
    with Journal.create(path, HEADER) as journal:
        with pytest.raises(TypeError, match="plain"):
            journal.append([ENTRIES[0], bad])
        with pytest.raises(ValueError, match="seq"):
            journal.append([ENTRIES[0], {"seq": 1}])
        journal.append(ENTRIES)
    assert read(path) == Contents(HEADER, ENTRIES, None)
    with pytest.raises(ValueError, match="closed"):
        journal.append(ENTRIES)


def test_a_line_is_a_checksum_and_json(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    written(path, [[{"t": "x"}]])
    assert path.read_text() == (
        'a81db79f {"seq":0,"type":"run","rules":3,"id":"x"}\nf616cfe1 {"seq":1,"t":"x"}\n'
    )
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
