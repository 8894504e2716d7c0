"""Requests as files: what is broken, foreign, old, or comes to nobody."""

from __future__ import annotations

import json
import os
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

import foreplan
from foreplan.errors import InputError
from foreplan.model.events import SpeedChanged
from foreplan.runs.home import RunHome
from foreplan.runs.lock import RunLock
from foreplan.runs.requests import RunRequest, ask
from runs.people import Somebody, checked, waiting


@pytest.fixture
def home(tmp_path: Path) -> RunHome:
    return RunHome.create(tmp_path, "small")


def listed(home: RunHome) -> list[str]:
    return sorted(path.name for path in home.requests.iterdir())


def test_nobody_drives_it(home: RunHome) -> None:
    with pytest.raises(InputError, match="is not running"):
        ask(home, RunRequest(add=1))
    assert not home.requests.exists()


def test_nobody_takes_it_up(home: RunHome) -> None:
    with RunLock(home), pytest.raises(InputError, match="withdrawn: nothing has changed"):
        ask(home, RunRequest(add=1), limit=0.2)
    assert listed(home) == []


def driven(home: RunHome, act: Any) -> str:
    """Ask a run whose driver does this with the request."""

    def drive() -> None:
        while not (found := list(home.requests.glob("*.json"))):
            looked.wait(0.01)
        act(found[0])

    looked, lock = threading.Event(), RunLock(home)
    home.requests.mkdir()
    lock.acquire()
    thread = threading.Thread(target=drive)
    thread.start()
    try:
        return ask(home, RunRequest(drain=("a",)), limit=0.5)
    finally:
        thread.join()
        lock.release()
        assert listed(home) == []


def test_taken_up_but_not_done(home: RunHome) -> None:
    with pytest.raises(InputError, match="has not done it yet: see `foreplan machines"):
        driven(home, lambda path: path.unlink())


@pytest.mark.parametrize(
    ("answer", "words"), [("[]", "broken answer"), ('{"error": "too late"}', "^too late$")]
)
def test_refused(home: RunHome, answer: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        driven(home, lambda path: path.with_suffix(".answer").write_text(answer))


def test_answered(home: RunHome) -> None:
    said = driven(home, lambda path: path.with_suffix(".answer").write_text('{"said": "done"}'))
    assert said == "done"


BROKEN = {
    "0" * 16: b"",
    "1" * 16: b'{"add": 1',
    "2" * 16: b"[" * 100_000,
    "3" * 16: b'{"add": "x", "drain": [], "after": 0}',
    "4" * 16: b'{"add": 1e400, "drain": [], "after": 0}',
    "5" * 16: b'{"add": 1, "drain": [], "after": NaN}',
    "6" * 16: b'{"add": 1, "drain": null, "after": 0}',
    "7" * 16: json.dumps(asdict(RunRequest(add=1))).encode().ljust(100_000) + b"x",
    "8" * 16: b"\xff\xfe",
}


def test_what_is_no_request_changes_nothing(tmp_path: Path) -> None:
    """Broken ones are answered with an error; what is not ours, or is older, is not looked at."""
    proper = json.dumps(asdict(RunRequest(add=1)))
    answers: dict[str, Any] = {}

    def act(me: Somebody) -> None:
        me.until_running({0})
        place = me.home.requests
        old = place / f"{'9' * 16}.json"
        (tmp_path / "made").write_text(proper)
        os.utime(tmp_path / "made", (1e9, 1e9))
        (tmp_path / "made").rename(old)
        (tmp_path / "elsewhere").write_text(proper)
        (place / f"{'a' * 16}.json").symlink_to(tmp_path / "elsewhere")
        (place / f"{'b' * 16}.json").mkdir()
        os.mkfifo(place / f"{'c' * 16}.json")
        (place / "request.json").write_text(proper)
        for name, content in BROKEN.items():
            (tmp_path / name).write_bytes(content)
            (tmp_path / name).rename(place / f"{name}.json")
        for name in BROKEN:
            path = place / f"{name}.answer"
            me.until(path.exists)
            answers[name] = json.loads(path.read_text())
            path.unlink()
        me.until(lambda: not old.exists())
        left = {"a" * 16 + ".json", "b" * 16 + ".json", "c" * 16 + ".json", "request.json"}
        assert set(listed(me.home)) == left
        (tmp_path / "go").touch()

    somebody = Somebody(act)
    work = {"name": "one", "tasks": {"t": waiting()}}
    options: dict[str, Any] = {"dir": tmp_path, "use_history": False}
    outcome = foreplan.run(work, "local:1", "fifo", listener=somebody, **options)
    assert somebody.error is None, somebody.error
    assert all("no request" in a["error"] or "0 or more" in a["error"] for a in answers.values())
    changes = checked(outcome).changes
    assert all(isinstance(e, SpeedChanged) for e in changes)  # it may be slow at any time
