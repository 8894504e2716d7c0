"""What a run tells of how it adapted: tasks moved, copies used, work done again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.cli.wording import many, took

if TYPE_CHECKING:
    from weft.model import Run


def recovery_of(run: Run) -> str:
    """In words; empty if nothing was moved or lost."""
    said, figures = [], run.recovery()
    if figures["migrations"]:
        running = f" ({many(figures['restarts'], 'running task')})" if figures["restarts"] else ""
        said.append(many(figures["migrations"], "migration") + running)
    if figures["copies_used"]:
        said.append(f"{many(figures['copies_used'], 'transfer')} from copies")
    if figures["rewound"]:
        levels = many(figures["rewound_levels"], "level")
        said.append(f"{many(figures['rewound'], 'finished task')} rewound, on {levels}")
    if figures["lost_seconds"] > 0:
        said.append(f"{took(figures['lost_seconds'])} of processors lost")
    return ", ".join(said)
