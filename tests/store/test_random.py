"""Random workflows, and random sequences of what people do, against the slow twin."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foreplan.store.store import Store
from foreplan.store.survey import Asked
from store.tiny import Job, Tiny, Twin, changed, from_nothing

EXTERNAL = ("in0", "in1", "in2")
SCRIPTS = ("script0", "script1")
Draw = Callable[[st.SearchStrategy[int]], int]


def number(draw: Draw, most: int) -> int:
    return draw(st.integers(0, most))


def draw_jobs(draw: Draw) -> list[Job]:
    """Jobs in a topological order; each reads what is there before it."""
    jobs: list[Job] = []
    for k in range(1 + number(draw, 6)):
        there = [*EXTERNAL, *(name for job in jobs for name in job.outputs)]
        inputs = {there[number(draw, len(there) - 1)] for _ in range(number(draw, 3))}
        outputs = [f"f{k}_{i}" for i in range(1 + number(draw, 1))]
        scripts = SCRIPTS[: number(draw, 2)] if number(draw, 3) == 0 else ()
        jobs.append(
            Job(f"t{k}", number(draw, 2), tuple(sorted(inputs)), tuple(outputs), 0, scripts)
        )
    return jobs


def draw_change(draw: Draw, tiny: Tiny, jobs: list[Job]) -> list[Job]:
    """Something that people do between runs; edits by hand apart."""
    files = sorted(tiny.contents())
    made = [name for job in jobs for name in job.outputs if name in files]
    k = number(draw, len(jobs) - 1)
    what = number(draw, 9)
    if what <= 1:
        (tiny.data / files[number(draw, len(files) - 1)]).touch()
    elif what <= 3 and made:
        (tiny.data / made[number(draw, len(made) - 1)]).unlink()
    elif what == 4:
        return changed(jobs, k, salt=number(draw, 4))
    elif what == 5:
        return changed(jobs, k, comment=number(draw, 2))
    elif what == 6:
        return changed(jobs, k, name=f"r{jobs[k].name}"[:6])
    elif what == 7:
        there = {*EXTERNAL, *(name for job in jobs[:k] for name in job.outputs)}
        other = sorted(there)[number(draw, len(there) - 1)]
        return changed(jobs, k, inputs=tuple(sorted({*jobs[k].inputs} ^ {other})))
    elif what == 8 and made:  # copied away and back: another inode and time, the same content
        path = tiny.data / made[number(draw, len(made) - 1)]
        shutil.copy(path, tiny.data / ".foreplan" / "copy")
        os.replace(tiny.data / ".foreplan" / "copy", path)
    else:
        outer = (*EXTERNAL, *SCRIPTS)[number(draw, len(EXTERNAL) + len(SCRIPTS) - 1)]
        (tiny.data / outer).write_text(str(number(draw, 4)))
    return jobs


def draw_end(draw: Draw, jobs: list[Job]) -> tuple[int, str] | None:
    if number(draw, 2):
        return None
    return number(draw, len(jobs)), ("before", "line", "half")[number(draw, 2)]


def check_run(tiny: Tiny, jobs: list[Job], asked: Asked, end: tuple[int, str] | None) -> None:
    """One run, beside what the twin expects."""
    targets, force = asked.targets, asked.force if isinstance(asked.force, tuple) else ()
    twin = Twin(jobs, tiny, targets, force)
    assert twin.edited() == []
    expected = twin.expected()
    ran = tiny.run(jobs, asked, end)
    if end is None or end[0] >= len(expected):
        assert ran == expected
        right, disk = from_nothing(jobs, tiny.contents()), tiny.contents()
        for name in twin.products:
            assert disk.get(name) == right[name]
        for job in twin.wanted:
            for name in job.outputs:
                assert disk.get(name, right[name]) == right[name]
    else:
        assert ran == expected[: end[0] + 1]


def begin(folder: str) -> Tiny:
    tiny = Tiny(Path(folder))
    for k, name in enumerate((*EXTERNAL, *SCRIPTS)):
        (tiny.data / name).write_text(str(k))
    return tiny


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_what_runs_is_what_must(data: st.DataObject) -> None:
    draw: Draw = data.draw
    with tempfile.TemporaryDirectory() as folder:
        tiny, jobs = begin(folder), draw_jobs(draw)
        for _ in range(1 + number(draw, 5)):
            for _ in range(number(draw, 2)):
                jobs = draw_change(draw, tiny, jobs)
            names = [job.name for job in jobs]
            files = [name for job in jobs for name in job.outputs]
            asked = Asked(
                targets=([*names, *files][number(draw, len(names + files) - 1)],)
                if number(draw, 4) == 0
                else (),
                force=(names[number(draw, len(names) - 1)],) if number(draw, 5) == 0 else (),
            )
            check_run(tiny, jobs, asked, draw_end(draw, jobs))
        check_run(tiny, jobs, Asked(), None)
        assert tiny.run(jobs) == []  # once all is done, nothing is to do


@settings(deadline=None, max_examples=80, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_what_is_edited_by_hand_is_named_and_nothing_else(data: st.DataObject) -> None:
    draw: Draw = data.draw
    with tempfile.TemporaryDirectory() as folder:
        tiny, jobs = begin(folder), draw_jobs(draw)
        tiny.run(jobs, end=draw_end(draw, jobs))
        for _ in range(number(draw, 2)):
            jobs = draw_change(draw, tiny, jobs)
        files = [name for job in jobs for name in job.outputs]
        name = files[number(draw, len(files) - 1)]
        (tiny.data / name).write_text(str(number(draw, 9)))  # 3 to 9: never made
        twin = Twin(jobs, tiny)
        survey = tiny.survey(jobs)
        assert survey.edited == twin.edited()
        if survey.edited:
            task = survey.edited[0].task
            forced = Asked(force=(task,))
            assert tiny.survey(jobs, forced).edited == []
            check_run(tiny, jobs, forced, None)
        else:
            check_run(tiny, jobs, Asked(), None)


def test_trusting_times_reads_nothing_and_sees_a_touch(tmp_path: Path) -> None:
    tiny = begin(str(tmp_path))
    jobs = [Job("a", 1, ("in0",), ("x",)), Job("b", 1, ("x",), ("y",))]
    asked = Asked(trust="mtime")
    time.sleep(0.05)  # what has only just changed is not remembered
    assert tiny.run(jobs, asked) == ["a", "b"]
    assert tiny.run(jobs, asked) == []
    assert tiny.run(jobs) == []  # what is known by its time is known so until it changes
    os.utime(tmp_path / "in0", (time.time() + 5, time.time() + 5))
    assert tiny.run(jobs, asked) == ["a", "b"]


def test_what_was_read_is_known_by_its_time_too(tmp_path: Path) -> None:
    tiny = begin(str(tmp_path))
    jobs = [Job("a", 1, ("in0",), ("x",)), Job("b", 1, ("x",), ("y",))]
    time.sleep(0.05)
    assert tiny.run(jobs) == ["a", "b"]
    assert tiny.run(jobs, Asked(trust="mtime")) == []


@pytest.mark.parametrize("times", [1, 3])
def test_a_store_that_is_gone_costs_time_alone(tmp_path: Path, times: int) -> None:
    tiny = begin(str(tmp_path))
    jobs = [Job("a", 1, ("in0",), ("x",)), Job("b", 1, ("x",), ("y",))]
    for _ in range(times):
        assert tiny.run(jobs) == ["a", "b"]
        shutil.rmtree(Store.read(tmp_path).folder)
