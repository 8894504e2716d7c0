"""What it takes to load a short workflow of many tasks, and the same one written out."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from foreplan import formats
from foreplan.formats.texts import parse_yaml
from foreplan_benchmarks.goals import Goal
from foreplan_benchmarks.survey_speed import Step, take

TASKS, SECONDS = 100_000, 5.0  # the whole load of so many
SHORT = """\
name: expand
params: {last: 24999, ref: ref.fa}
tasks:
  trim-{k}:
    foreach: {k: 0..$last}
    run: sort {input} > {output}
    inputs: ["in/{k}.txt"]
    outputs: ["trim/{k}.txt"]
  align-{k}:
    foreach: {k: 0..$last}
    category: align
    cores: 2
    run: bwa mem -t $FOREPLAN_CORES {ref} {inputs[1]} > {output}
    inputs: [ref.fa, "trim/{k}.txt"]
    outputs: ["bam/{k}.bam"]
  count-{k}:
    foreach: {k: 0..$last}
    run: awk '{print $1}' {input} | sort -u > {output}
    inputs: ["bam/{k}.bam"]
    outputs: ["count/{k}.txt"]
  qc-{k}:
    foreach: {k: 0..$last}
    run: wc -l < {input} > {output}
    inputs: ["trim/{k}.txt"]
    outputs: ["qc/{k}.txt"]
"""


def expand_times(tasks: int, tries: int, progress: Callable[[float], None]) -> list[Step]:
    """The short file, and the long one as YAML: only its text is parsed, and all of it is read."""
    params = {"last": tasks // 4 - 1}
    with tempfile.TemporaryDirectory() as folder:
        short, long = Path(folder, "short.yaml"), Path(folder, "long.yaml")
        short.write_text(SHORT)
        goal = Goal(SECONDS) if tasks <= TASKS else None
        found = [take("the short file", tries, lambda: formats.load(short, params=params), goal)]
        progress(0.3)
        formats.save(formats.load(short, params=params), long)
        progress(0.5)
        found.append(take("written out", tries, lambda: formats.load(long)))
        progress(0.8)
        text = long.read_text()
        found.append(take("written out, its YAML alone", tries, lambda: parse_yaml(text)))
    return found
