"""`foreplan clean`: old runs, scratch directories and the store, told first and then removed."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foreplan.cli.shared.options import RunDirectory, json_option
from foreplan.cli.shared.tables import say, table
from foreplan.errors import InputError
from foreplan.quantities import many

if TYPE_CHECKING:
    from foreplan.runs.cleaning import Cleaning

SHOWN = 20
UNITS = ("kB", "MB", "GB", "TB", "PB")


def clean(
    runs: Annotated[
        bool, typer.Option("--runs", help="Finished runs, by --older or --but-last.")
    ] = False,
    scratch: Annotated[
        bool,
        typer.Option(
            "--scratch", help="Directories kept of failed attempts, and left by killed runs."
        ),
    ] = False,
    store: Annotated[
        bool,
        typer.Option(
            "--store", help="Fold the store, without results that no file can have any more."
        ),
    ] = False,
    outputs: Annotated[
        bool,
        typer.Option(
            "--outputs",
            help="Outputs that no task makes any more, as foreplan made them, and the empty "
            "directories of temporary outputs.",
        ),
    ] = False,
    older: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Runs that ended at least this long ago: `7d`, `12h`.",
            show_default="7d",
        ),
    ] = None,
    but_last: Annotated[
        int | None,
        typer.Option(
            "--but-last", min=0, help="All runs except this number of the newest, of any age."
        ),
    ] = None,
    unfinished: Annotated[
        bool,
        typer.Option(
            "--unfinished", help="Also runs that failed, were stopped or killed: not to be resumed."
        ),
    ] = False,
    everything: Annotated[
        bool,
        typer.Option("--all", help="With --store: all of it. The next run makes everything again."),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")] = False,
    dry: Annotated[bool, typer.Option("--dry-run", "-n", help="Only list it.")] = False,
    as_json: Annotated[bool, json_option("what can go, and whether it went,")] = False,
    directory: RunDirectory = Path(),
) -> None:
    """Free what runs have left in `.foreplan`: old runs, scratch directories, the store.

    It lists what it would remove and asks before removing it. In a pipe it only lists, unless
    `--yes` is given. Without `--runs`, `--scratch`, `--store` or `--outputs` it does the first
    three. Runs under way are not touched, nor, without `--outputs`, is any file outside of
    `.foreplan`. A run that is removed has no report, logs or results of functions any more; the
    store still knows the outputs of its commands.

    With `--outputs` each workflow file that was run in the directory is read as it is now, with the
    parameters of each of its runs. An output is listed if a task of such a file made it, but no
    task of that file makes it now, and no task or command of these files reads it. Outputs that
    somebody has changed or adopted since are kept, as are protected ones and those behind a link.
    Outputs of flows and of workflows from standard input are not listed.

    Example: `foreplan clean` (lists, and asks)

    Example: `foreplan clean --runs --but-last 3 --yes`

    Example: `foreplan clean --store --all -n` (what would be forgotten)

    Example: `foreplan clean --outputs` (of tasks that were removed or renamed)
    """
    from foreplan.runs.cleaning import Choice, look
    from foreplan.runs.options import read_time

    if everything and not store:
        raise InputError("--all is for the whole store: `foreplan clean --store --all`")
    every = not (runs or scratch or store or outputs)
    if not (runs or every) and (older is not None or but_last is not None or unfinished):
        raise InputError("--older, --but-last and --unfinished choose among runs: add --runs")
    choice = Choice(
        runs or every,
        scratch or every,
        store or every,
        None if older is None else read_time(older),
        but_last,
        unfinished,
        everything,
        outputs,
    )
    if not directory.is_dir():
        raise InputError("there is no such directory", source=str(directory.absolute()))
    found = look(directory, choice)
    if not as_json:
        _tell(found, outputs)
    goes = not (dry or found.is_empty) and (yes or (not as_json and _agreed()))
    _do(found, goes, as_json, dry)


def _agreed() -> bool:
    """Whether the user says yes; where nobody can be asked, no."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    try:
        answer = input("remove this? [y/N] ")
    except EOFError:
        answer = ""
    return answer.strip().lower() in ("y", "yes")


def _do(found: Cleaning, goes: bool, as_json: bool, dry: bool) -> None:
    from foreplan.runs.cleaning import clean as remove

    freed, trouble = remove(found) if goes else (0, [])
    if as_json:
        print(json.dumps(_figures(found) | {"removed": goes, "freed": freed, "trouble": trouble}))
    elif goes:
        say(f"freed {size(freed)}")
        for line in trouble:
            say(line, "yellow")
    elif not found.is_empty and not dry:
        say("nothing was removed: `--yes` does it")
    raise typer.Exit(1 if trouble else 0)


def _figures(found: Cleaning) -> dict[str, Any]:
    store = found.store
    return {
        "things": [
            {
                "kind": t.kind,
                "name": t.name,
                "path": str(t.path),
                "bytes": t.bytes,
                "about": t.about,
            }
            for t in found.things
        ],
        "store": None
        if store is None
        else {
            "parts": len(store.whole),
            "dropped": store.dropped,
            "damaged": len(store.damaged),
            "before": store.before,
            "after": store.after,
        },
        "kept": [file._asdict() for file in found.kept],
        "bytes": found.bytes,
        "notes": found.notes,
    }


def _tell(found: Cleaning, outputs: bool) -> None:
    """Print what would be removed and what that frees; `outputs` may be among it."""
    if found.is_empty:
        say("nothing to clean")
    else:
        rows = [[t.kind, t.name, t.about, size(t.bytes)] for t in found.things[:SHOWN]]
        if found.store is not None:
            rows.append(_store_row(found))
        table(["what", "name", "<about", "frees"], rows, texts=2)
        if len(found.things) > SHOWN:
            say(f"and {len(found.things) - SHOWN:,} more, see --json", "dim")
        say(f"frees {size(found.bytes)} in all" + ("" if outputs else "; no output is touched"))
    for file in found.kept[:SHOWN]:
        say(f"kept: {file.name}: {file.reason}")
    if len(found.kept) > SHOWN:
        say(f"and {len(found.kept) - SHOWN:,} more are kept, see --json", "dim")
    for note in found.notes:
        say(note, "yellow")


def _store_row(found: Cleaning) -> list[str]:
    store = found.store
    assert store is not None
    said = []
    if store.dropped:
        said.append(f"{many(store.dropped, 'result')} forgotten")
    if store.whole and store.lines:
        said.append(f"{many(len(store.whole), 'part')} folded into one")
    if store.damaged:
        said.append(f"{many(len(store.damaged), 'damaged part')} removed")
    if not store.lines:
        said.append("all of it: everything is made again")
    return ["store", ".foreplan/store", ", ".join(said), size(store.before - store.after)]


def size(count: int) -> str:
    """Bytes as people read them."""
    value, unit = float(count), "bytes"
    for larger in UNITS:
        if value < 1000:
            break
        value, unit = value / 1000, larger
    return f"{value:.3g} {unit}"
