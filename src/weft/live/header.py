"""The first entry of a journal: what the run is about, and what was known when it began."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from weft.errors import InputError
from weft.formats.weft_platform import platform_from_dict, platform_to_dict
from weft.journal.packed import pack, unpack
from weft.live.options import Options
from weft.live.workflows import workflow_from_entry, workflow_to_entry
from weft.model import Estimates, Platform, Workflow
from weft.version import __version__

VERSION = 1
RULES = 6  # by which coordinators decide, and `ico` orders; see decision 028


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
    python: str = ""  # that the digests are of
    digests: tuple[str | None, ...] | None = None  # of the calls; None: not known

    def to_dict(self) -> dict[str, Any]:
        """The header as the journal has it."""
        return {
            "type": "run",
            "version": VERSION,
            "rules": RULES,
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
            "workflow": workflow_to_entry(self.workflow),
            "platform": platform_to_dict(self.platform),
            "machines": list(self.machines),
            "estimates": pack(self.estimates.cost),
            **({} if self.digests is None else {"python": self.python, "digests": self.digests}),
        }

    @staticmethod
    def from_dict(content: dict[str, Any], directory: Path) -> Header:
        """The header of a journal that this version can read."""
        version, rules = content.get("version"), rules_of(content)
        if version != VERSION or rules > RULES:
            raise InputError(
                f"this journal is of version {version}.{rules}, written by weft "
                f"{content.get('weft', '?')}; this weft reads versions up to {VERSION}.{RULES}: "
                "use the one that wrote it, or a newer one"
            )
        try:
            return Header._read(content, directory)
        except KeyError as error:
            raise InputError(f"the journal's header lacks {error}") from None

    @staticmethod
    def _read(content: dict[str, Any], directory: Path) -> Header:
        return Header(
            id=content["id"],
            workflow=workflow_from_entry(content["workflow"]),
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
            python=content.get("python", ""),
            digests=tuple(content["digests"]) if "digests" in content else None,
        )


def rules_of(content: dict[str, Any]) -> int:
    """The rules that a header, or an entry about a resumed run, was written under."""
    return int(content.get("rules", 1))


def now_in_words() -> str:
    """This moment, as headers say it."""
    return datetime.now(UTC).isoformat(timespec="seconds")
