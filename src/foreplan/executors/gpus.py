"""The GPUs that a process may use, by what CUDA calls them."""

from __future__ import annotations

import os
from itertools import takewhile
from pathlib import Path

from foreplan.errors import InputError

VISIBLE = "CUDA_VISIBLE_DEVICES"


def visible_gpus(root: Path = Path("/")) -> tuple[str, ...]:
    """The GPUs that CUDA would show to this process."""
    if (said := os.environ.get(VISIBLE)) is not None:
        names = [name.strip() for name in said.split(",")]
        return tuple(takewhile(lambda name: name and not name.startswith("-"), names))  # as CUDA
    try:
        found = os.listdir(root / "proc/driver/nvidia/gpus")
    except OSError:
        return ()
    return tuple(str(k) for k in range(len(found)))


def gpu_names(count: int) -> tuple[str, ...]:
    """What so many GPUs are called; where none is found, people are taken at their word."""
    names = visible_gpus()
    if not names and VISIBLE not in os.environ:
        names = tuple(str(k) for k in range(count))
    if count > len(names):
        found = f"{VISIBLE} names" if VISIBLE in os.environ else "this machine has"
        raise InputError(f"the run counts on {count} GPUs, but {found} {len(names)}")
    return names[:count]
