"""The first entry of a journal: what the run is about, and what was known when it began."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from weft.errors import InputError
from weft.formats.weft_platform import platform_from_dict, platform_to_dict
from weft.formats.weft_workflow import workflow_from_dict, workflow_to_dict
from weft.journal.packed import pack, unpack
from weft.live.options import Options
from weft.model import Estimates, Platform, Workflow
from weft.version import __version__

VERSION = 1


@dataclass(frozen=True)
class Header:
    """A run as it set out."""

    id: str
    workflow: Workflow
    platform: Platform
    machines: tuple[str, ...]  # the names of the processors in the history
    estimates: Estimates
    strategy: str  # the one that was chosen
    rest: float  # see the Coordinator
    options: Options
    functions: bool  # Python functions, which are not in the journal
    blind: bool
    source: str | None  # the workflow's file
    created: str

    def to_dict(self) -> dict[str, Any]:
        """The header as the journal has it."""
        return {
            "type": "run",
            "version": VERSION,
            "weft": __version__,
            "id": self.id,
            "name": self.workflow.name,
            "tasks": self.workflow.n_tasks,
            "created": self.created,
            "strategy": self.strategy,
            "rest": self.rest,
            "on": self.options.place,
            "options": self.options.to_dict(),
            "functions": self.functions,
            "blind": self.blind,
            "source": self.source,
            "workflow": workflow_to_dict(self.workflow),
            "platform": platform_to_dict(self.platform),
            "machines": list(self.machines),
            "estimates": pack(self.estimates.cost),
        }

    @staticmethod
    def from_dict(content: dict[str, Any], directory: Path) -> Header:
        """The header of a journal that this version can read."""
        if content.get("version") != VERSION:
            raise InputError(
                f"this journal is of version {content.get('version')}, written by weft "
                f"{content.get('weft', '?')}; this weft reads version {VERSION}"
            )
        return Header(
            id=content["id"],
            workflow=workflow_from_dict(content["workflow"]),
            platform=platform_from_dict(content["platform"]),
            machines=tuple(content["machines"]),
            estimates=Estimates(unpack(content["estimates"])),
            strategy=content["strategy"],
            rest=content["rest"],
            options=Options.from_dict(content["options"], directory),
            functions=content["functions"],
            blind=content["blind"],
            source=content["source"],
            created=content["created"],
        )


def now_in_words() -> str:
    """This moment, as headers say it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def settle(workflow: Workflow) -> Workflow:
    """The workflow as a journal gives it back: what has no number of its own may get another."""
    return workflow_from_dict(workflow_to_dict(workflow))


def check_same(journalled: Workflow, given: Workflow, run: str) -> None:
    """Refuse to go on with another workflow, and say what is different."""
    old, new = workflow_to_dict(journalled), workflow_to_dict(given)
    if old == new:
        return
    before, after = old["tasks"], new["tasks"]
    assert isinstance(before, dict)
    assert isinstance(after, dict)
    added = [task for task in after if task not in before]
    removed = [task for task in before if task not in after]
    changed = [task for task in before if task in after and before[task] != after[task]]
    parts = [
        f"{what}: {', '.join(tasks[:5])}{', ...' if len(tasks) > 5 else ''}"
        for what, tasks in (("new", added), ("gone", removed), ("changed", changed))
        if tasks
    ]
    raise InputError(
        f"the workflow has changed since run {run} began ("
        + ("; ".join(parts) or "its edges, files or name differ")
        + "): undo the change, go on with the workflow as it was (`weft resume --as-started`), "
        "or begin a new run (`weft run`)"
    )
