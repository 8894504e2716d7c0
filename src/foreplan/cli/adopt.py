"""`foreplan adopt`: files count as what their tasks make, though foreplan has not made them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from foreplan.cli.shared.options import ParamOptions, RunDirectory, with_groups

_HELP = "The workflow that makes them; if not given, that of the last run in the directory."


@with_groups
def adopt(
    files: Annotated[list[str], typer.Argument(help="Outputs, as the workflow names them.")],
    workflow: Annotated[Path | None, typer.Option("--workflow", "-w", help=_HELP)] = None,
    directory: RunDirectory = Path(),
    *,
    params: ParamOptions,
) -> None:
    """Keep outputs as they are: edited by hand, or made elsewhere.

    They then count as what their tasks give from the inputs that are there now, so `foreplan run`
    does not make them again until something changes. All outputs of a task are adopted together.

    Example: `foreplan adopt report.txt --workflow pipeline.yaml`
    """
    from foreplan import api
    from foreplan.quantities import first_few, many
    from foreplan.runs.adopting import adopt_files
    from foreplan.runs.summary import last_source

    if workflow is None:
        source, values = last_source(directory)
        values = {**values, **params.values()}
    else:
        source, values = str(workflow), params.values()
    tasks = adopt_files(api.load(source, params=values, dir=directory), directory, files)
    print(f"adopted {many(len(files), 'file')}: what {first_few(tasks)} gives")
