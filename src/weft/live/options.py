"""What a user may ask of a run."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from weft.coordinator.purse import CONTINUE, Purse
from weft.errors import InputError
from weft.live.prices import price_rules
from weft.model import Tolerance


@dataclass(frozen=True)
class Options:
    """How a run is to be run; all but the directory is kept in its journal."""

    on: Any = "local"  # local, local:4, dask://host:port, or a Client of Dask
    strategy: str = "auto"  # auto: planned once anything is known of the tasks' times
    directory: Path = Path()  # the data directory
    shared: bool = False  # Dask: the workers see the data directory, too
    retries: int = 0
    timeout: float | None = None
    keep_going: bool = False
    absolute: bool = False  # whether files may lie outside the data directory
    use_history: bool = True
    keep_results: bool = False  # functions on Dask: keep the results between, too
    price: Any = None  # a number, or by names; kept as rules, see prices.py
    transfer_price: float = 0.0  # per unit of data between hosts
    budget: float | None = None
    over_budget: str = "continue"  # or stop, or cut
    deadline: float | None = None  # seconds of the run's time, by which it is to be over
    reserve: float = 0.0  # the share of what is left that plans leave for surprises

    def __post_init__(self) -> None:
        object.__setattr__(self, "price", price_rules(self.price))
        if not (math.isfinite(self.transfer_price) and self.transfer_price >= 0):
            raise InputError(
                f"the price of transfers must be a number from 0 on, not {self.transfer_price:g}"
            )
        if self.deadline is not None:
            check_deadline(self.deadline)

    @property
    def ends_by(self) -> float:
        """The deadline, as the coordinator keeps it."""
        return math.inf if self.deadline is None else self.deadline

    @property
    def limited(self) -> bool:
        """Whether there is a budget or a deadline to keep."""
        return self.budget is not None or self.deadline is not None

    def tolerance(self) -> Tolerance:
        """How many failures the run puts up with."""
        return Tolerance(retries=self.retries, keep_going=self.keep_going)

    def purse(self) -> Purse:
        """The budget, as the coordinator keeps it."""
        if self.budget is None:
            if self.reserve or self.over_budget != CONTINUE:
                raise InputError("`reserve` and `over budget` say how to keep a budget: give one")
            return Purse(timeout=self.timeout, learns=True)  # a resume may give it a budget
        check_budget(self.budget)
        return Purse(self.budget, self.over_budget, self.reserve, self.timeout, learns=True)

    def to_dict(self) -> dict[str, Any]:
        """What the journal keeps."""
        kept = {field.name: getattr(self, field.name) for field in fields(self)}
        del kept["directory"]
        return kept | {"on": self.place}

    @property
    def place(self) -> str:
        """Where it runs, in words that `--on` understands."""
        if isinstance(self.on, str):
            return self.on
        return f"dask://{str(self.on.scheduler.address).partition('://')[2]}"

    @staticmethod
    def from_dict(content: dict[str, Any], directory: Path) -> Options:
        """What the journal kept; what this version does not know is left out."""
        known = {field.name for field in fields(Options)}
        return Options(directory=directory, **{k: v for k, v in content.items() if k in known})


def check_deadline(deadline: float) -> None:
    """Refuse what is no time."""
    if not (math.isfinite(deadline) and deadline > 0):
        raise InputError(f"the deadline must be a number of seconds above 0, not {deadline:g}")


def check_budget(budget: float) -> None:
    """Refuse what is no amount of money."""
    if not (math.isfinite(budget) and budget >= 0):
        raise InputError(f"the budget must be a number from 0 on, not {budget:g}")
