"""`foreplan reproduce` as the tests call it."""

from __future__ import annotations

import typer
from typer.testing import CliRunner

from foreplan.errors import InputError
from foreplan_reproductions.command import reproduce


def run_command(*arguments: str) -> tuple[int, str]:
    """The exit code and what was printed; bad input is raised."""
    app = typer.Typer()
    app.command()(reproduce)
    done = CliRunner().invoke(app, list(arguments))
    if isinstance(done.exception, InputError):
        raise done.exception
    return done.exit_code, done.output
