"""What runs again after a change of a program: 122 tasks that are functions, by foreplan alone."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from foreplan.errors import InputError
from foreplan_benchmarks.again import Again, Tool

HELPERS = '''"""What the pipeline uses."""

DEPTH = 3


def tally(numbers):
    counts = {}
    for number in numbers:
        counts[number] = counts.get(number, 0) + 1
    return sorted(counts.items())


def unused(numbers):
    return numbers[0]
'''
PROGRAM = '''"""Six steps of twenty samples, and two for all; each notes that it was run."""

import os

import helpers
import foreplan


def note():
    with open(os.environ["RAN"], "a") as file:
        file.write("x\\n")


def trim(reads, length):
    note()
    return reads[:length]


def align(reads, reference):
    note()
    return reads + reference


def arrange(reads):
    note()
    return sorted(reads)


def count(reads):
    note()
    return helpers.tally(reads)


def quality(reads):
    note()
    return len(reads) // helpers.DEPTH


def join(counts, quality):
    note()
    return [*counts, quality]


def merge(samples):
    note()
    return [row for sample in samples for row in sample]


def report(rows):
    note()
    return len(rows)


flow, joined = foreplan.Flow("again"), []
for k in range(20):
    length = 150
    reads = flow.task(trim, [(k * 7 + j * 13) % 101 for j in range(200)], length)
    ordered = flow.task(arrange, flow.task(align, reads, [3, 5, 7]))
    joined.append(flow.task(join, flow.task(count, ordered), flow.task(quality, reads)))
flow.task(report, flow.task(merge, joined))

if __name__ == "__main__":
    assert len(flow) == 122
    assert foreplan.run(flow, "local:2", progress=False).ok
'''
# the file, what stands there, and what then does
CHANGES = {
    "functions: nothing": ("pipeline.py", "", ""),
    "functions: lines are moved": ("pipeline.py", "import os\n", "\n# more\nimport os\n"),
    "functions: the code of one, another result (20 tasks)": (
        "pipeline.py", "return sorted(reads)", "return sorted(reads, reverse=True)",
    ),
    "functions: the code of one, the same result (20 tasks)": (
        "pipeline.py", "return sorted(reads)", "return list(sorted(reads))",
    ),
    "functions: the code of a helper, another result": (
        "helpers.py", "return sorted(counts.items())", "return sorted(counts.items())[1:]",
    ),
    "functions: the code of a helper, the same result": (
        "helpers.py", "counts.get(number, 0) + 1", "1 + counts.get(number, 0)",
    ),
    "functions: a helper that nobody calls": ("helpers.py", "numbers[0]", "numbers[1]"),
    "functions: a global of a helper's module": ("helpers.py", "DEPTH = 3", "DEPTH = 4"),
    "functions: the arguments of one task": (
        "pipeline.py", "length = 150", "length = 150 if k else 140",
    ),
}  # fmt: skip


class ForeplanFlow(Tool):
    """A program that runs a flow."""

    name = "foreplan"

    def command(self, place: Path) -> list[str]:
        """This Python."""
        return [sys.executable, "-B", str(place.parent / "pipeline.py")]


def measure(changes: list[str], progress: Callable[[float], None]) -> Iterator[Again]:
    """Each change, in a directory in which all was done before."""
    for number, change in enumerate(changes):
        with tempfile.TemporaryDirectory(prefix="foreplan-again-") as folder:
            place, tool = Path(folder, "data"), ForeplanFlow()
            place.mkdir()
            for name, text in (("pipeline.py", PROGRAM), ("helpers.py", HELPERS)):
                Path(folder, name).write_text(text)
            first, code, _ = tool.run(place)
            if code or first != 122:
                raise InputError(f"{first} functions were run at first")
            name, old, new = CHANGES[change]
            text = Path(folder, name).read_text()
            assert old in text, f"{old!r} is not in {name}"
            Path(folder, name).write_text(text.replace(old, new, 1) if old else text)
            yield Again(change, tool.name, *tool.run(place))
        progress((number + 1) / len(changes))
