"""What a user may ask of a run."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

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

    def tolerance(self) -> Tolerance:
        """How many failures the run puts up with."""
        return Tolerance(retries=self.retries, keep_going=self.keep_going)

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
