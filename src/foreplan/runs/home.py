"""The home of a run: `.foreplan/runs/<id>/` in its data directory, for its owner's eyes only."""

from __future__ import annotations

import importlib.util
import os
import re
import secrets
import stat
import sys
import unicodedata
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from foreplan.durable import (
    DIRECTORY_MODE,
    check_owner,
    make_directory,
    open_file,
    read_file,
    reason,
    sync,
    write_all,
    write_new,
)
from foreplan.errors import InputError, unknown_name
from foreplan.quantities import first_few
from foreplan.runs.journal import JournalError

# locks that end with their process, owners of files, processes that end as a group
CAN_RUN = importlib.util.find_spec("fcntl") is not None and all(
    hasattr(os, name) for name in ("fork", "geteuid", "killpg")
)


def check_system() -> None:
    """Refuse to drive a run, or to look at one, where that cannot be done safely."""
    if not CAN_RUN:
        raise InputError(
            f"real runs need file locks, file owners and process groups of Linux or macOS, which "
            f"this Python ({sys.platform}) does not have: drive them there, in WSL or in a Linux "
            "container; plan, simulate, compare and what-if work here"
        )


LAST = "last"
_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*-(\d{8}-\d{6})(-[0-9a-f]+)?")
_ORDER = "order"  # in .foreplan: the ids of all runs, in the order of their starts
_LONGEST = 40  # of a workflow's name in an id


@dataclass(frozen=True)
class RunHome:
    """Where a run keeps its journal, its scratch directories, its logs and its results."""

    path: Path

    @property
    def id(self) -> str:
        """The run's name: workflow and time of creation."""
        return self.path.name

    @property
    def data(self) -> Path:
        """The run's data directory, where inputs are read and outputs published."""
        return self.path.parents[2]

    @property
    def journal(self) -> Path:
        """What happened, line by line."""
        return self.path / "journal.jsonl"

    @property
    def lock(self) -> Path:
        """Held by the process that drives the run."""
        return self.path / "lock"

    @property
    def log(self) -> Path:
        """What the command line told of the run, in lines."""
        return self.path / "run.log"

    @property
    def attempts(self) -> Path:
        """A scratch directory per attempt."""
        return self.path / "attempts"

    @property
    def logs(self) -> Path:
        """What attempts wrote to stdout and stderr."""
        return self.path / "logs"

    @property
    def results(self) -> Path:
        """What Python functions gave back."""
        return self.path / "results"

    @property
    def requests(self) -> Path:
        """What is asked of the process that drives the run."""
        return self.path / "requests"

    @staticmethod
    def create(
        directory: Path | str, workflow_name: str, moment: datetime | None = None
    ) -> RunHome:
        """A new home in a data directory; two runs never get the same."""
        data = Path(directory).absolute()
        if not data.is_dir():
            raise InputError("there is no such directory for the run's data", source=str(data))
        try:
            runs_directory = _prepare(data)
            home = RunHome(_make_home(runs_directory, _base(workflow_name, moment)))
            _note_start(home)
            for inner in (home.attempts, home.logs, home.results):
                make_directory(inner, synced=False)  # the journal syncs the home when it begins
        except OSError as error:
            raise JournalError(
                f"{data}: cannot make a home for the run in .foreplan there: {reason(error)}; "
                "mend that, or choose another --dir"
            ) from None
        return home

    @staticmethod
    def find(directory: Path | str, wanted: str) -> RunHome:
        """The run with this id, the only one whose id begins so, or the last one.

        What is wanted is compared with the runs that exist; it never becomes part of a path.
        """
        home = _match({home.id: home for home in runs(directory)}, directory, wanted)
        check_private(home.path)
        return home


def _match(known: dict[str, RunHome], directory: Path | str, wanted: str) -> RunHome:
    if wanted in known:
        return known[wanted]
    if wanted == LAST and known:
        return next(iter(known.values()))
    near = [home for home in known.values() if wanted and home.id.startswith(wanted)]
    if len(near) == 1:
        return near[0]
    if near:
        listed = first_few((home.id for home in near), 10)
        raise InputError(
            f"{len(near)} runs begin with {wanted!r}: {listed}; give more of the id, or `last`"
        )
    if not known:
        place = Path(directory).absolute() / ".foreplan" / "runs"
        raise InputError(f"there is no run {wanted!r}, nor any other, in {place}: see --dir")
    raise InputError(unknown_name("run", wanted, known))


def runs(directory: Path | str) -> list[RunHome]:
    """All runs that have begun a journal, the one that started last first."""
    top = Path(directory).absolute() / ".foreplan"
    try:
        for place in (top, top / "runs"):
            check_private(place)
        with os.scandir(top / "runs") as listing:
            order = _read_order(top)
            found = [key for inner in listing if (key := _sort_key(inner, order))]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise JournalError(f"{top}: cannot read the runs: {reason(error)}") from None
    return [RunHome(top / "runs" / name) for *_, name in sorted(found, reverse=True)]


def _note_start(home: RunHome) -> None:
    """Add a run to the list of runs in the order of their starts: clocks may be set back.

    A line begins with its line break, as the one before may have been cut off by a kill.
    """
    from foreplan.runs.lock import hold_alone  # which imports this

    top = home.path.parents[1]
    with hold_alone(top / "claims.lock"):  # NFS does not append for two hosts at once
        descriptor = open_file(top / _ORDER, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            write_all(descriptor, f"\n{home.id}".encode())
            sync(descriptor)
        finally:
            os.close(descriptor)


def _read_order(top: Path) -> dict[str, int]:
    """The place of each run in the order of their starts."""
    try:
        lines = read_file(top / _ORDER).decode("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return {}
    return {name: place for place, name in enumerate(lines)}


def _sort_key(
    place: os.DirEntry[str], order: Mapping[str, int]
) -> tuple[int, str, int, str] | None:
    """When a run started, and its id; None if this is none.

    One that is not listed was copied here: it comes before the others, by the time in its id.
    """
    match = _ID.fullmatch(place.name)
    if match is None or not place.is_dir(follow_symlinks=False):
        return None
    if not RunHome(Path(place.path)).journal.is_file():
        return None
    try:  # among runs of the same second: a home changes little after it was made
        listed = order.get(place.name, -1)
        return listed, match[1], place.stat(follow_symlinks=False).st_mtime_ns, place.name
    except FileNotFoundError:  # removed while we look
        return None


def _base(workflow_name: str, moment: datetime | None) -> str:
    """The id that a run should have: the name as far as any file system takes it, and UTC."""
    text = unicodedata.normalize("NFKD", workflow_name).encode("ascii", "ignore").decode()
    slug = re.sub(r"[^A-Za-z0-9_.]+", "-", text)[:_LONGEST].strip("-.") or "run"
    moment = datetime.now(UTC) if moment is None else moment.astimezone(UTC)
    return f"{slug}-{moment:%Y%m%d-%H%M%S}"


def _make_home(runs_directory: Path, base: str) -> Path:
    home = runs_directory / base
    while True:
        try:
            make_directory(home)
        except FileExistsError:
            home = runs_directory / f"{base}-{secrets.token_hex(2)}"
        else:
            return home


def _prepare(data: Path) -> Path:
    """The runs directory, made and private."""
    top = data / ".foreplan"
    for place in (top, top / "runs"):
        with suppress(FileExistsError):
            make_directory(place)
        check_private(place)
        if stat.S_IMODE(place.stat().st_mode) != DIRECTORY_MODE:
            place.chmod(DIRECTORY_MODE)
    with suppress(FileExistsError):
        write_new(top / ".gitignore", b"*\n")
    return top / "runs"


def check_private(place: Path) -> None:
    """Refuse a place that others may have written to, and a system that cannot say whose it is."""
    place.stat()
    check_system()
    check_owner(place)
