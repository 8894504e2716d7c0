"""What runs have left that nobody needs any more: told first, and then removed.

What is removed is moved aside whole, by one rename, and deleted there; what a kill has left of that
goes with the next cleaning. A run is moved only while its lock is held, so never one under way.
"""

from __future__ import annotations

import os
import secrets
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from foreplan.durable import make_directory
from foreplan.errors import ForeplanError
from foreplan.executors.kept import ENDING
from foreplan.executors.processes import find_left_behind
from foreplan.executors.workspace import remove
from foreplan.quantities import many
from foreplan.runs.home import RunHome, check_system, runs
from foreplan.runs.journal import read_header
from foreplan.runs.lock import RunLock, hold_alone, is_driven, release
from foreplan.runs.shells import closed_shells, open_shells
from foreplan.runs.summary import summarise
from foreplan.runs.unmade import KeptFile, empty_folders, find_leftovers, shield_of
from foreplan.store.cleaning import Foldable, fold_store, foldable
from foreplan.store.content import Memory, Status
from foreplan.store.store import Store

WEEK, DAY, MINUTE = 7 * 86400.0, 86400.0, 60.0
TRASH = "trash"  # in .foreplan: what is about to be deleted
RUN, SCRATCH, LEFT, OUTPUT, FOLDER = "run", "scratch", "left", "output", "empty"


@dataclass(frozen=True)
class Choice:
    """What is to be cleaned."""

    runs: bool = True
    scratch: bool = True
    store: bool = True
    older: float | None = None  # seconds since a run ended
    but_last: int | None = None  # so many runs are kept
    unfinished: bool = False  # also runs that failed, were stopped or killed
    whole_store: bool = False
    outputs: bool = False  # those that no task makes any more


@dataclass(frozen=True)
class Thing:
    """Something that can go."""

    kind: str  # RUN, SCRATCH, LEFT, OUTPUT or FOLDER
    name: str
    path: Path
    bytes: int
    about: str = ""
    home: RunHome | None = None  # the run whose lock is to be held meanwhile
    status: Status | None = None  # of an output: it is deleted if it is still so


@dataclass
class Cleaning:
    """What can go, what cannot, and why."""

    data: Path
    things: list[Thing] = field(default_factory=list)
    store: Foldable | None = None
    notes: list[str] = field(default_factory=list)
    kept: list[KeptFile] = field(default_factory=list)  # outputs that stay, and why
    folders: list[str] = field(default_factory=list)  # that are removed once they are empty

    @property
    def bytes(self) -> int:
        """What all of it frees."""
        of_store = 0 if self.store is None else self.store.before - self.store.after
        return sum(thing.bytes for thing in self.things) + of_store

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not self.things and self.store is None


def look(directory: Path, choice: Choice) -> Cleaning:
    """What can go; nothing is changed."""
    check_system()
    data = directory.absolute()
    found = Cleaning(data)
    every = runs(data)
    live = [home for home in every if is_driven(home)]
    over = (os.path.realpath(home.path) for home in every if home not in live)
    driven = bool(live)
    orphaned = {process.home for process in find_left_behind(over)}
    for home in every:
        if os.path.realpath(home.path) in orphaned:
            found.notes.append(
                f"run {home.id} has ended, but processes of it still run: "
                "the next `foreplan run` ends them"
            )
            live.append(home)
    found.things += _left(data)
    goes = _old_runs(found, every, live, choice) if choice.runs else []
    if choice.scratch:
        going = {thing.name for thing in goes}
        found.things += _scratch(found, [h for h in every if h.id not in going and h not in live])
    found.things += goes
    if choice.outputs:
        _look_at_outputs(found, live, driven)
    if choice.store:
        _look_at_store(found, {home.id for home in live}, choice)
    return found


def _old_runs(
    found: Cleaning, every: list[RunHome], live: list[RunHome], choice: Choice
) -> list[Thing]:
    """The runs that are over and old enough; the newest first."""
    older = choice.older
    if older is None and choice.but_last is None:
        older = WEEK
    used, things = _used_results(found.data), []
    for home in every[choice.but_last or 0 :]:
        age = time.time() - _changed(home.journal)
        if home in live or age < (older or 0.0):
            continue
        status = summarise(home).status
        if status == "running" or (status != "finished" and not choice.unfinished):
            continue
        about = status
        if count := used[home.id]:
            if any(_has_functions(other) for other in live):
                found.notes.append(f"{home.id} stays: a run under way may read its results")
                continue
            about += f"; {many(count, 'result')} of functions, which later runs make again"
        things.append(Thing(RUN, home.id, home.path, _size(home.path), about, home))
    return things


def _used_results(data: Path) -> Counter[str]:
    """By run, how many results of functions it has kept."""
    calls = (line["call"] for line in Store.read(data).lines() if line.get("call") is not None)
    kept = {(str(run), number) for run, number, _, file in calls if file[3]}
    return Counter(run for run, _ in kept)


def _has_functions(home: RunHome) -> bool:
    """Whether a run is of functions; True if nobody can tell."""
    try:
        return bool(read_header(home.journal).get("functions", True))
    except (OSError, ValueError):
        return True


def _scratch(found: Cleaning, homes: list[RunHome]) -> Iterator[Thing]:
    """Directories of failed attempts, and what attempts of killed runs have left."""
    looked_at = {place for _, place in open_shells(found.data)}
    for home in homes:
        kept, left = _directories(home.attempts)
        for path in kept:
            if os.path.realpath(path) in looked_at:
                found.notes.append(f"{path.name} stays: a `foreplan shell` is open in it")
            else:
                name = f"{home.id}/{path.name}"
                yield Thing(SCRATCH, name, path, _size(path), "of a failed attempt", home)
        for path in left:
            name = f"{home.id}/{path.name}"
            yield Thing(SCRATCH, name, path, _size(path), "of a run that was killed", home)


def _directories(attempts: Path) -> tuple[list[Path], list[Path]]:
    """Those that were kept, and others; files beside them tell what is done, and stay."""
    try:
        with os.scandir(attempts) as listing:
            inner = [Path(e.path) for e in listing if e.is_dir(follow_symlinks=False)]
    except OSError:
        return [], []
    kept = sorted(path for path in inner if path.name.endswith(ENDING))
    return kept, sorted(path for path in inner if not path.name.endswith(ENDING))


def _left(data: Path) -> Iterator[Thing]:
    """What foreplan itself has left when it was killed: always to go."""
    top = data / ".foreplan"
    for path in _inner(top / TRASH):
        yield Thing(LEFT, path.name, path, _size(path), "was being removed")
    for home in closed_shells(data):
        if time.time() - _changed(home.path) < MINUTE:  # one may just be beginning
            continue
        yield Thing(LEFT, home.id, home.path, _size(home.path), "of a `foreplan shell`", home)
    known = {home.path for home in runs(data)}
    for path in _inner(top / "runs"):
        # a run that is just beginning has no journal yet
        begun = path in known or (path / "journal.jsonl").exists() or not path.is_dir()
        if not begun and time.time() - _changed(path) > DAY:
            about = "of a run that did not begin"
            yield Thing(LEFT, path.name, path, _size(path), about, RunHome(path))


def _inner(folder: Path) -> list[Path]:
    try:
        return sorted(folder / name for name in os.listdir(folder))
    except OSError:
        return []


def _look_at_outputs(found: Cleaning, live: list[RunHome], driven: bool) -> None:
    """Find the outputs that no task makes any more, unless a run may be reading or making them.

    If no run is driven, those in `live` have ended, but some of their processes run.
    """
    if live:
        why = "is under way" if driven else "has left processes behind"
        found.notes.append(f"outputs stay: run {live[0].id} {why}")
        return
    left = find_leftovers(found.data)
    for file in left.files:
        path = found.data / file.name
        thing = Thing(OUTPUT, file.name, path, _size(path), file.about, status=file.status)
        found.things.append(thing)
    empty = empty_folders(found.data, left.folders)
    for name in empty:
        if os.path.dirname(name) not in empty:
            path = found.data / name
            about = "directory of outputs that are gone"
            found.things.append(Thing(FOLDER, f"{name}/", path, _size(path), about))
    found.kept = left.kept
    found.folders = left.folders
    found.notes += left.notes


def _look_at_store(found: Cleaning, live: set[str], choice: Choice) -> None:
    going = {thing.name for thing in found.things if thing.kind == RUN}

    def has_results(run: str) -> bool:
        return run not in going and (found.data / ".foreplan" / "runs" / run).is_dir()

    try:
        store = foldable(found.data, live.__contains__, has_results, choice.whole_store)
    except OSError as error:
        found.notes.append(f"the store cannot be read: {error}")
        return
    if store.is_worth_it or (choice.whole_store and store.whole):
        found.store = store
    if store.live and choice.whole_store:
        found.notes.append("what runs under way have written to the store stays")


def clean(found: Cleaning) -> tuple[int, list[str]]:
    """Remove it; how many bytes that has freed, and what was not removed after all."""
    freed, trouble = _clean_outputs(found)
    for thing in found.things:
        if thing.kind in (OUTPUT, FOLDER):
            continue
        try:
            _remove(found.data, thing)
            freed += thing.bytes
        except (OSError, ForeplanError) as error:
            trouble.append(f"{thing.name} stays: {error}")
    if found.store is not None:
        try:
            fold_store(found.store)
            freed += found.store.before - found.store.after
        except OSError as error:
            trouble.append(f"the store stays as it is: {error}")
    return freed, trouble


def _clean_outputs(found: Cleaning) -> tuple[int, list[str]]:
    """Delete outputs as they were listed, while no run is under way and none can begin."""
    freed, trouble = 0, list[str]()
    outputs = [thing for thing in found.things if thing.kind in (OUTPUT, FOLDER)]
    if not outputs:
        return freed, trouble
    with hold_alone(found.data / ".foreplan" / "claims.lock"):
        if live := [home.id for home in runs(found.data) if is_driven(home)]:
            return freed, [f"outputs stay: run {live[0]} is under way"]
        memory = Memory(found.data)
        for thing in outputs:
            try:
                if thing.kind == OUTPUT:
                    _remove_output(found.data, thing, memory)
                freed += thing.bytes
            except (OSError, ForeplanError) as error:
                trouble.append(f"{thing.name} stays: {error}")
        for folder in empty_folders(found.data, found.folders):
            with suppress(OSError):  # somebody has put something there
                os.rmdir(found.data / folder)
    return freed, trouble


def _remove_output(data: Path, thing: Thing, memory: Memory) -> None:
    if not os.path.lexists(thing.path):
        return
    if why := shield_of(data, thing.name):
        raise ForeplanError(why)
    if memory.status(thing.name) != thing.status:
        raise ForeplanError("it was changed meanwhile")
    if thing.path.is_dir():
        _delete(_aside(data, thing.path))
    else:
        thing.path.unlink()


def _remove(data: Path, thing: Thing) -> None:
    """Move it aside whole, and delete it there; a run, or what is of one, with its lock held."""
    if not os.path.lexists(thing.path):
        return
    if thing.home is None:
        _delete(thing.path)
        return
    with RunLock(thing.home):
        aside = _aside(data, thing.path)
        if thing.kind == RUN:
            with suppress(ForeplanError):
                release(RunHome(thing.path))
    _delete(aside)


def _aside(data: Path, path: Path) -> Path:
    trash = data / ".foreplan" / TRASH
    with suppress(FileExistsError):
        make_directory(trash)
    target = trash / f"{path.name}.{secrets.token_hex(4)}"
    os.rename(path, target)
    return target


def _delete(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        remove(os.fspath(path))
    else:
        path.unlink(missing_ok=True)
    if os.path.lexists(path):
        raise OSError(f"{path} could not be deleted")


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return time.time()


def _size(path: Path) -> int:
    """What a file, or all in a folder, takes on disk; links are not followed."""
    total = 0
    todo = [os.fspath(path)]
    while todo:
        place = todo.pop()
        with suppress(OSError):
            status = os.lstat(place)
            total += getattr(status, "st_blocks", status.st_size // 512) * 512
            if os.path.isdir(place) and not os.path.islink(place):
                todo += [os.path.join(place, name) for name in os.listdir(place)]
    return total
