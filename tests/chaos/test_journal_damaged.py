"""The journal of a half-finished run is cut, overwritten, or killed in the middle of a commit."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable

import pytest

from chaos.runs import (
    CLI,
    Place,
    Sums,
    after_entries,
    check_nothing_repeated,
    ended,
    killed,
    rebuilt,
    sums,
    until,
    write,
)
from repeated import repetitions

Damage = Callable[[bytes, random.Random], bytes]


def cut_in_a_line(journal: bytes, rng: random.Random) -> bytes:
    last = journal.rstrip(b"\n").rpartition(b"\n")[2]
    return journal[: -rng.randint(1, len(last))]


def cut_far_back(journal: bytes, rng: random.Random) -> bytes:
    header = journal.index(b"\n") + 1
    return journal[: rng.randint(header + 200, len(journal) - 1)]


def only_the_header(journal: bytes, rng: random.Random) -> bytes:
    return journal[: journal.index(b"\n") + 1 + rng.randint(1, 30)]


def zeros_at_the_end(journal: bytes, rng: random.Random) -> bytes:
    """As some file systems leave a file after a loss of power."""
    return journal[: -rng.randint(1, 300)] + b"\0" * 512


def flipped_in_the_middle(journal: bytes, rng: random.Random) -> bytes:
    header = journal.index(b"\n") + 1
    at = rng.randint(header, (header + len(journal)) // 2)
    return journal[:at] + bytes([journal[at] ^ 0x04]) + journal[at + 1 :]


def half_done(place: Place, work: Sums, entries: int = 60) -> dict[str, int]:
    """A run that was killed; how often what is finished was executed."""
    driver = place.foreplan("run", write(place, work), "--on", "local:2")
    after_entries(entries)(place, driver)
    assert driver.poll() is None, "it was over before it could be killed"
    killed(driver)
    until(lambda: not place.processes(), "the end of what still ran")
    executed = place.executions()
    return {task: executed[task] for task in place.finished()}


DAMAGES = (cut_in_a_line, zeros_at_the_end, flipped_in_the_middle, cut_far_back, only_the_header)


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("seed", repetitions(few=1, share=0.1))
def test_damaged(place: Place, damage: Damage, seed: int) -> None:
    """Resume says so and completes; what has finished is found again, not done again."""
    work = sums(60, seed)
    before = half_done(place, work)
    assert len(before) >= 10
    home = place.the_home()
    whole = home.journal.read_bytes()
    damaged = damage(whole, random.Random(seed))
    home.journal.write_bytes(damaged)
    code, output = ended(place.foreplan("resume", "last"))
    assert code == 0, output
    said = " ".join(output.split())
    if not damaged.endswith(b"\n") or len(damaged) >= len(whole):
        assert "journal.jsonl: line" in said
        assert "nothing finished is lost" in said
        assert list(home.path.glob("journal.damaged*"))
    work.check(place)
    rebuilt(place)
    after = place.executions()
    repeated = sorted(task for task, count in before.items() if after[task] != count)
    assert not repeated, f"{len(repeated)} of {len(before)} finished tasks were repeated"
    check_nothing_repeated(place, [], renumbered=True)


COMMIT = f"""
import os, signal
count, write = int(os.environ["DIES_AT"]), os.write
def fake(fd, content):
    global count
    if os.readlink(f"/proc/self/fd/{{fd}}").endswith("journal.jsonl"):
        count -= 1
        if count == 0:
            write(fd, content[: len(content) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
    return write(fd, content)
os.write = fake
{CLI}
"""


@pytest.mark.parametrize(
    "at", [2, 3, 20, *random.Random(7).sample(range(4, 60), len(repetitions(0)))]
)
def test_killed_in_the_middle_of_a_commit(place: Place, at: int) -> None:
    work = sums(60, at)
    place.environment["DIES_AT"] = str(at)
    code, output = ended(place.begin(sys.executable, "-c", COMMIT, "run", write(place, work)))
    assert code == -9, output
    until(lambda: not place.processes(), "the end of what still ran")
    before, executed = place.finished(), place.executions()
    code, output = ended(place.foreplan("resume", "last"))
    assert code == 0, output
    assert "nothing finished is lost" in " ".join(output.split())
    work.check(place)
    check_nothing_repeated(place, [{task: executed[task] for task in before}])
    rebuilt(place)


def test_killed_in_the_middle_of_the_header(place: Place) -> None:
    """Nothing has been started yet: that is said, and a new run does not mind."""
    work = sums(10)
    file = write(place, work)
    place.environment["DIES_AT"] = "1"
    code, output = ended(place.begin(sys.executable, "-c", COMMIT, "run", file))
    assert code == -9, output
    code, output = ended(place.foreplan("resume", "last"))
    assert code == 2
    assert "foreplan run" in output
    assert not place.executions()
    code, output = ended(place.foreplan("run", file))
    assert code == 0, output
    work.check(place)
