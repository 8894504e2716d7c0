"""Claims on outputs: of the runs that are under way, only one makes a file.

A claim holds as long as its run is driven, so what a killed run has claimed is free at once.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from weft.errors import InputError
from weft.files import write_text
from weft.journal.lock import alone, driver, is_driven
from weft.journal.places import RunHome, check_private


def claim(home: RunHome, outputs: Iterable[str]) -> None:
    """Claim the outputs of a run that this process drives; refuse what another run is making."""
    files = _places(os.path.realpath(home.data), outputs)
    if not files:
        return
    top = home.path.parents[1]
    with alone(top / "claims.lock"):  # of two that begin at once, one is first
        theirs = dict(_held(top, home))
        _check_apart(theirs, files)
        known = {other.id: claimed for other, claimed in theirs.items()}
        write_text(top / "claims.json", json.dumps({**known, home.id: sorted(files)}))
    # a directory above or below has another lock: there, of two at once both may be refused
    for other_top in _around(home, files):
        _check_apart(dict(_held(other_top, home)), files)


def release(home: RunHome) -> None:
    """Forget the claims of a run that did not begin."""
    top = home.path.parents[1]
    if not (top / "claims.json").exists():
        return
    with alone(top / "claims.lock"), suppress(OSError, ValueError, AttributeError):
        content: dict[str, Any] = json.loads((top / "claims.json").read_bytes())
        if content.pop(home.id, None) is not None:
            write_text(top / "claims.json", json.dumps(content))


def _places(data: str, outputs: Iterable[str]) -> dict[str, str]:
    """Where outputs will be, whatever links lead there, and what they are called."""
    folders: dict[str, str] = {}
    places = {}
    for name in outputs:
        if os.path.isabs(name):  # which the command opens itself, through a link too
            places[os.path.realpath(name)] = name
            continue
        folder, base = os.path.split(name)
        if folder not in folders:
            folders[folder] = os.path.realpath(os.path.join(data, folder))
        places[os.path.join(folders[folder], base)] = name
    return places


def _around(home: RunHome, files: Iterable[str]) -> Iterator[Path]:
    """Where runs of this user in other directories may have claimed one of these files."""
    folders = {Path(folder) for folder in {os.path.dirname(file) for file in files}}
    around = {place for folder in folders for place in (folder, *folder.parents)}
    around.discard(Path(os.path.realpath(home.data)))
    for place in sorted(around):
        with suppress(OSError, InputError):  # there is none, or it is not ours alone
            check_private(place / ".weft")
            yield place / ".weft"


def _held(top: Path, home: RunHome) -> Iterator[tuple[RunHome, list[str]]]:
    """The other runs under way that have claims in a `.weft`, and what they claim."""
    try:
        content: dict[str, Any] = json.loads((top / "claims.json").read_bytes())
        runs = [(RunHome(top / "runs" / name), list(files)) for name, files in content.items()]
    except FileNotFoundError:
        return
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise InputError(
            f"this should say which files are being made: {error}; if no run is under way, "
            "remove it",
            source=str(top / "claims.json"),
        ) from None
    yield from ((other, files) for other, files in runs if other != home and is_driven(other))


def _check_apart(theirs: dict[RunHome, list[str]], files: dict[str, str]) -> None:
    for other, claimed in theirs.items():
        both = [files[file] for file in claimed if file in files]
        if both:
            raise InputError(_refusal(other, both))


def _refusal(other: RunHome, both: list[str]) -> str:
    found, who, how = driver(other), "", ""
    if found is not None:
        pid, words = found
        who, how = f" ({words})", f", or stop it with `kill -INT {pid}` there"
    more = f" and {len(both) - 1} more of these outputs" if both[1:] else ""
    return (
        f"run {other.id}{who} is making {both[0]!r}{more} now: wait for its end{how}; "
        "only runs with other outputs go side by side"
    )
