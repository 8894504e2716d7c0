"""What is left to do in a directory: `foreplan plan` and `foreplan what-if` are about that."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from foreplan.cli.shared.options import ParamOptions, PlaceOptions, load_workflow
from foreplan.executors.base import DEFAULT
from foreplan.quantities import many

if TYPE_CHECKING:
    from foreplan.model import Workflow

Everything = Annotated[
    bool,
    typer.Option(
        "--all", help="All of the workflow, also what is up to date in --dir and would not be run."
    ),
]


class Left(NamedTuple):
    """The tasks that are left, and the names of those that take no time."""

    workflow: Workflow
    up_to_date: tuple[str, ...] | None = None  # None: nobody has asked the directory
    summary: str = ""  # in a line, if anything is up to date


def find_left(
    source: str | Path, params: ParamOptions, place: PlaceOptions, everything: bool
) -> Left:
    """Return the tasks of a workflow's file that a run would still have to do.

    These are all of them where the directory has no store.
    """
    workflow = load_workflow(source, params, place)
    if everything or not Path(place.directory, ".foreplan", "store").is_dir():
        return Left(workflow)  # nothing more need be imported
    from foreplan import runs

    options = runs.Options(
        on=place.on or DEFAULT, directory=place.directory, params=params.values()
    )
    rest = runs.Rest.to_plan(workflow, options, "`--all` plans everything", str(source))
    if rest.survey is None:
        return Left(workflow)
    return Left(rest.workflow, rest.up_to_date, _told(rest.up_to_date, len(rest.numbers)))


def _told(up_to_date: tuple[str, ...], left: int) -> str:
    if not up_to_date:
        return ""
    if not left:
        return f"nothing to do: {many(len(up_to_date), 'task')} up to date; --all plans everything"
    whole = many(len(up_to_date) + left, "task")
    return (
        f"{len(up_to_date):,} of {whole} up to date; planning the other {left:,}; "
        "--all plans everything"
    )
