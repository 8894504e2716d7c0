"""`weft`: one small module per command, imported when it is asked for."""

from __future__ import annotations

import atexit
import gc
import importlib
import io
import sys
from collections.abc import Iterable
from typing import Annotated, Any

import typer

from weft.errors import WeftError

ABOUT = "Plan, run, simulate and compare workflows (DAGs of tasks) on the machines you have."
# in the order of `weft --help`; each is the command of that name in weft.cli.<name>, or its `app`
COMMANDS = (
    "run",
    "resume",
    "attach",
    "runs",
    "machines",
    "report",
    "history",
    "plan",
    "simulate",
    "what-if",
    "compare",
    "reproduce",
    "planners",
    "strategies",
    "generate",
    "convert",
    "prioritize",
    "ic",
    "bench",
    "doctor",
)


def build_app(names: Iterable[str] = COMMANDS) -> typer.Typer:
    """The command line with these commands."""
    app = typer.Typer(
        name="weft",
        help=ABOUT,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(help=ABOUT)(_options)
    for name in names:
        own = name.replace("-", "_")
        module = importlib.import_module(f"weft.cli.{own}")
        if hasattr(module, "app"):
            app.add_typer(module.app, name=name)
        else:
            app.command(name)(getattr(module, own))
    return app


def _version(wanted: bool) -> None:
    if wanted:
        from weft import __version__

        print(f"weft {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None: ...


def main() -> None:
    """Run the command line; an error that the user can mend is one message and exit code 2."""
    asked = sys.argv[1] if len(sys.argv) > 1 else ""
    gc.set_threshold(50_000, 10, 10)  # most of what a command makes is there until its end,
    atexit.register(gc.freeze)  # and then goes with the process: nobody need look through it
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")  # a Windows pipe lacks most letters
    try:
        build_app([asked] if asked in COMMANDS else COMMANDS)()
    except WeftError as error:
        print(f"weft: error: {error}", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:  # the reader of a pipe (head, less) has seen enough
        sys.stderr.close()
        sys.exit(1)


def __getattr__(name: str) -> Any:
    """The whole command line as `app`, for tools that look for it."""
    if name == "app":
        return build_app()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
