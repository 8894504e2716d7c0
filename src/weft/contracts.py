"""The Protocols: the architecture on one page."""

from __future__ import annotations

from typing import ClassVar, Protocol

from weft.model import Freedom, Schedule, Situation


class Planner(Protocol):
    """The same call plans at the start and replans at any later moment.

    A planner is a frozen dataclass; its fields are the options of its spec string.
    """

    name: ClassVar[str]

    def plan(self, situation: Situation, freedom: Freedom = ...) -> Schedule:
        """A valid schedule of everything the freedom lets move; the rest stays."""
        ...
