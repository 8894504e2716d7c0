"""`foreplan convert`: a workflow from one format to another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from foreplan.cli.shared.options import ParamOptions, with_groups


@with_groups
def convert(
    source: Annotated[Path, typer.Argument(metavar="IN", help="The workflow to read; - is stdin.")],
    target: Annotated[
        Path, typer.Argument(metavar="OUT", help="The file to write; - is standard output.")
    ],
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            help="The format: yaml, json, wfformat, stg. Default: by the suffix; yaml for -.",
        ),
    ] = None,
    source_format: Annotated[
        str | None,
        typer.Option(
            "--from", help="The format to read: as --to, and dot. Default: by suffix and content."
        ),
    ] = None,
    *,
    params: ParamOptions,
) -> None:
    """Convert a workflow: foreplan YAML and JSON, WfCommons traces, STG graphs, DOT.

    Turn a WfCommons trace into a foreplan file that you can edit, and back:

        foreplan convert montage.json montage.yaml

        foreplan convert montage.yaml trace.json --to wfformat

    STG keeps neither names nor commands, nor cores and memory: tasks become numbers there.
    """
    from foreplan.files import is_stdout, label, output_label, printable
    from foreplan.formats import load, save
    from foreplan.quantities import many

    workflow = load(source, source_format, params=params.values())
    for note in workflow.notes:
        typer.echo(f"foreplan: {label(source)}: {note}", err=True)
    save(workflow, target, to)
    asking = sum(spec.request is not None for spec in workflow.specs.values())
    if asking and (to or target.suffix[1:]) == "stg":
        left = f"what {many(asking, 'task')} asked for (cores, memory and the like) is left out"
        typer.echo(f"foreplan: {printable(target)}: {left}: STG cannot say it", err=True)
    counts = [
        many(workflow.n_tasks, "task"),
        many(workflow.n_edges, "dependency", "dependencies"),
        many(workflow.n_items, "data item"),
    ]
    typer.echo(f"wrote {output_label(target)}: {', '.join(counts)}", err=is_stdout(target))
