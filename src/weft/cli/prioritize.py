"""`weft prioritize`: priorities for the jobs of a DAGMan file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli.shared.options import json_option
from weft.errors import InputError, unknown_name
from weft.quantities import many

if TYPE_CHECKING:
    from weft.formats.dagman_dag import DagmanDag
    from weft.formats.dagman_write import Style, Written


ORDERS = ("ico", "hops")


def prioritize(
    dag: Annotated[Path, typer.Argument(metavar="FILE.dag", help="The DAGMan file.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="Write a copy (- is standard output); the file and its splices stay as they are.",
        ),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace the priorities that are there already.")
    ] = False,
    as_vars: Annotated[
        bool,
        typer.Option(
            "--vars",
            help='Write `VARS job JobPriority="n"` for submit files that say '
            "`priority = $(JobPriority)`, in place of `PRIORITY job n`.",
        ),
    ] = False,
    order: Annotated[
        str,
        typer.Option(help="`ico`: many jobs ready early. `hops`: the longest path first."),
    ] = "ico",
    as_json: Annotated[bool, json_option("what was done")] = False,
) -> None:
    """Write priorities into an HTCondor DAGMan file, so that idle machines find work.

    The order is that of `weft ic`: at every step as many jobs as can be are ready to be handed out,
    if there is an IC-optimal schedule, and else nearly so. It needs no times, nor does `hops`.

    Of the jobs that are ready, DAGMan submits the one with the highest number first. The numbers
    run from the number of jobs that are not done down to 1. They are added at the end; all other
    lines stay as they are, byte for byte. A job inside a splice gets its number in the splice's own
    file, which is written too unless there is an output; included files are never written.

    Example: `weft prioritize my.dag -o my-prioritized.dag`
    """
    from weft.files import in_file, is_stdout, printable
    from weft.formats.dagman import read_dag
    from weft.formats.dagman_write import with_priorities

    if order not in ORDERS:
        raise InputError(unknown_name("order", order, ORDERS), source="--order")
    aside = is_stdout(output)  # what is said then goes to stderr
    read = read_dag(dag)
    with in_file(dag):
        numbers = _numbers(read, order)
        style: Style = "vars" if as_vars else "priority"
        written = with_priorities(read, numbers, replace=replace, style=style, output=output)
    if as_json:
        typer.echo(json.dumps(_document(dag, read, written, style), indent=1), err=aside)
        return
    for path in written.files:
        typer.echo(f"wrote {printable(path)}", err=aside)
    typer.echo(_summary(read, written), err=aside)
    for note in written.notes:
        typer.echo(f"note: {note}", err=aside)


def _numbers(dag: DagmanDag, order: str) -> dict[str, int]:
    """The jobs that are not done by their names; the first in the order has the highest number."""
    from weft import registry
    from weft.contracts import Order
    from weft.formats.dagman import dag_workflow

    if not dag.waiting() and dag.done:
        return {}
    workflow = dag_workflow(dag, final=False)  # DAGMan itself keeps the FINAL job for the end
    chosen, _ = registry.strategy(order)
    assert isinstance(chosen, Order)  # and its ranks are places
    places, n = chosen.priority(workflow).rank.tolist(), workflow.n_tasks
    return {name: n - place for name, place in zip(workflow.task_names, places, strict=True)}


def _summary(dag: DagmanDag, written: Written) -> str:
    parts = [f"priorities of {many(len(written.priorities), 'job')} written"]
    if written.kept:
        parts.append(f"{len(written.kept):,} kept")
    if dag.done:
        parts.append(f"{many(len(dag.done), 'job')} done already")
    return ", ".join(parts)


def _document(path: Path, dag: DagmanDag, written: Written, style: str) -> dict[str, object]:
    from weft.files import printable

    return {
        "dag": printable(path),
        "written": [printable(file) for file in written.files],
        "style": style,
        "jobs": len(dag.waiting()),
        "done": len(dag.done),
        "priorities": written.priorities,
        "kept": list(written.kept),
        "left": list(written.left),
        "notes": list(written.notes),
    }
