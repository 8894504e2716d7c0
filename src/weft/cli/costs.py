"""Whether planning and simulating have costs to go by."""

from __future__ import annotations

import sys
from pathlib import Path

from weft.files import in_file
from weft.model import Estimates, Platform, Workflow


def check_costs(workflow: Workflow, platform: Platform, source: str | Path) -> None:
    """Refuse a task without a cost; if no task has one, say that all count alike."""
    with in_file(source):  # a task without a cost is found only with the platform at hand
        Estimates.declared(workflow, platform)
    if not workflow.has_costs:
        print(
            f"weft: {source}: no task has a cost, so all count alike: a second at speed 1",
            file=sys.stderr,
        )
