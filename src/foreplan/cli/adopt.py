"""`foreplan adopt`: files count as what their tasks make, though foreplan has not made them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from foreplan.cli.shared.options import ParamOptions, RunDirectory, with_groups
from foreplan.errors import InputError

if TYPE_CHECKING:
    from foreplan.model import Workflow


@with_groups
def adopt(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[WORKFLOW] OUTPUT...",
            help="Outputs, as the workflow names them; before them the workflow's file, if it is "
            "not that of the last run in the directory. The first of several words is that file if "
            "it ends in `.yaml` or another suffix of workflows, unless the workflow of the last "
            "run makes a file of this name.",
        ),
    ],
    directory: RunDirectory = Path(),
    *,
    params: ParamOptions,
) -> None:
    """Keep outputs as they are: edited by hand, or made elsewhere.

    They then count as what their tasks give from the inputs that are there now, so `foreplan run`
    does not make them again until something changes. All outputs of a task are adopted together.

    Example: `foreplan adopt report.txt`

    Example: `foreplan adopt pipeline.yaml report.txt`
    """
    from foreplan.quantities import first_few, many
    from foreplan.runs.adopting import adopt_files

    workflow, files = _read(words, directory, params)
    tasks = adopt_files(workflow, directory, files)
    outputs = "the output" if len(files) == 1 else "outputs"
    print(f"adopted {many(len(files), 'file')} as {outputs} of {first_few(tasks)}")


def _read(words: list[str], directory: Path, params: ParamOptions) -> tuple[Workflow, list[str]]:
    """Return the workflow and its outputs."""
    from foreplan import api
    from foreplan.formats import is_workflow_name
    from foreplan.runs.adopting import makes
    from foreplan.runs.summary import last_source

    first, *others = words
    may_be_workflow = bool(others) and is_workflow_name(first)
    try:
        source, values = last_source(directory)
        last = api.load(source, params={**values, **params.values()}, dir=directory)
        if not is_workflow_name(first) or makes(last, directory, first):
            return last, words
        if not others:
            raise InputError(f"if {first} is a workflow's file, name an output after it")
    except InputError:
        if not may_be_workflow:
            raise
    return api.load(first, params=params.values(), dir=directory), others
