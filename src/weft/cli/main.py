"""`weft`: one small module per command; heavy imports happen inside the commands."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from weft.cli import bench, generate
from weft.cli.convert import convert
from weft.cli.plan import plan
from weft.cli.planners import planners
from weft.errors import WeftError

app = typer.Typer(
    name="weft",
    help="Plan a workflow (a DAG of tasks) on the machines you have.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(plan)
app.command()(planners)
app.command()(convert)
app.add_typer(generate.app, name="generate")
app.add_typer(bench.app, name="bench")


def _version(wanted: bool) -> None:
    if wanted:
        from weft import __version__

        print(f"weft {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Plan a workflow (a DAG of tasks) on the machines you have."""


def main() -> None:
    """Run the command line; an error that the user can mend is one message and exit code 2."""
    try:
        app()
    except WeftError as error:
        print(f"weft: error: {error}", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:  # the reader of a pipe (head, less) has seen enough
        sys.stderr.close()
        sys.exit(1)
