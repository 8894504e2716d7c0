"""`weft`: one small module per command; heavy imports happen inside the commands."""

from __future__ import annotations

import sys

import typer

from weft.errors import WeftError

app = typer.Typer(
    name="weft",
    help="Plan a workflow (a DAG of tasks) on the machines you have.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the command line; an error that the user can mend is one message and exit code 2."""
    try:
        app()
    except WeftError as error:
        print(f"weft: error: {error}", file=sys.stderr)
        sys.exit(2)
