"""Killed in the middle of an append: whatever was acknowledged is there."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from foreplan.runs.journal import RULES, Journal, read

# every batch is large, so that some are killed half written; entry n says n
APPENDING = """
import os, sys
from pathlib import Path
from foreplan.runs.journal import Journal
journal, contents = Journal.open(Path(sys.argv[1]))
n = len(contents.entries)
while True:
    journal.append([{"n": n + i, "text": "x" * 50_000} for i in range(10)])
    n += 10
    os.write(1, b"%d\\n" % n)
"""


def test_killed_while_appending(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    Journal.create(path, {"type": "run", "rules": RULES}).close()
    chance = random.Random()
    for _ in range(6):
        child = subprocess.Popen(
            [sys.executable, "-c", APPENDING, str(path)], stdout=subprocess.PIPE
        )
        assert child.stdout is not None
        with child, child.stdout as told:
            lines = [told.readline() for _ in range(chance.randint(1, 4))]
            time.sleep(chance.uniform(0, 0.003))  # any moment of an append
            child.send_signal(signal.SIGKILL)
            lines += told.readlines()
            assert child.wait(60) == -signal.SIGKILL
        acknowledged = int([line for line in lines if line.endswith(b"\n")][-1])
        contents = read(path)
        assert len(contents.entries) >= acknowledged
        assert [entry["n"] for entry in contents.entries] == list(range(len(contents.entries)))
        if contents.damage is not None:
            assert contents.damage.entries_after == 0


# the system writes a part of the second batch, and then the process is dead
HALF = """
import os, signal, sys
from pathlib import Path
from foreplan.runs.journal import Journal
journal, contents = Journal.open(Path(sys.argv[1]))
n = len(contents.entries)
batch = [{"n": n + i, "text": "x" * 50} for i in range(5)]
journal.append(batch)
write, room = os.write, int(sys.argv[2])
def half(descriptor, content):
    write(descriptor, content[:room])
    os.kill(os.getpid(), signal.SIGKILL)
os.write = half
journal.append([{**entry, "n": entry["n"] + 5} for entry in batch])
"""


def test_killed_with_a_batch_half_written(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    Journal.create(path, {"type": "run", "rules": RULES}).close()
    chance = random.Random()
    expected = 0
    for round_ in range(4):
        room = chance.choice([1, 8, 60, 85, 200, 300])  # a line has about 85 bytes
        child = subprocess.run(
            [sys.executable, "-c", HALF, str(path), str(room)], capture_output=True, timeout=60
        )
        assert (child.returncode, child.stderr) == (-signal.SIGKILL, b"")
        contents = read(path)
        assert [entry["n"] for entry in contents.entries] == list(range(len(contents.entries)))
        assert expected + 5 <= len(contents.entries) < expected + 10, (round_, room)
        expected = len(contents.entries)
    journal, contents = Journal.open(path)
    with journal:
        journal.append([{"n": expected}])
    assert len(read(path).entries) == expected + 1
