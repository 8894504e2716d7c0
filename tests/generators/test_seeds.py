"""Same seed, same bytes: in another process, with any hash seed."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from weft.generators import FAMILIES, generate, generate_platform
from weft.model import Workflow

DIGEST = """
import hashlib
from weft.generators import FAMILIES, generate, generate_platform
digest = hashlib.sha256()
for name in FAMILIES:
    w = generate(name, seed=11, processors=2)
    arrays = [w.item_size, w.item_producer, w.use_ptr, w.use_task, *w.processor_cost.values()]
    for array in arrays:
        digest.update(array.tobytes())
    digest.update(repr((w.name, w.task_names, w.item_names, list(w.specs.items()))).encode())
p = generate_platform(6, cores=2, bandwidth_spread=1.0, seed=11)
for array in (p.speed, p.price, p.host, p.startup, p.time_per_unit):
    digest.update(array.tobytes())
print(list(FAMILIES), digest.hexdigest())
"""


def contents(workflow: Workflow) -> list[bytes]:
    return [
        workflow.base_cost.tobytes(),
        workflow.item_size.tobytes(),
        workflow.item_producer.tobytes(),
        workflow.use_task.tobytes(),
    ]


@pytest.mark.parametrize("family", FAMILIES)
def test_same_seed_same_bytes(family: str) -> None:
    assert contents(generate(family, seed=4)) == contents(generate(family, seed=4))
    assert contents(generate(family, seed=4)) != contents(generate(family, seed=5))


def test_the_hash_seed_does_not_matter() -> None:
    printed = {
        subprocess.run(
            [sys.executable, "-c", DIGEST],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "12345")
    }
    assert len(printed) == 1


def test_platform_seeds() -> None:
    one, same, other = (generate_platform(8, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(one.speed, same.speed)
    assert np.array_equal(one.price, same.price)
    assert not np.array_equal(one.speed, other.speed)
