"""`foreplan`: one small module per command, imported when it is asked for."""

from __future__ import annotations

import atexit
import gc
import importlib
import keyword
import sys
from collections.abc import Iterable
from itertools import zip_longest
from types import ModuleType
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup

from foreplan.cli.shared.streams import prepare_streams
from foreplan.errors import ForeplanError, InputError
from foreplan.files import unencodable
from foreplan.version import install_command

ABOUT = "Plan, run, simulate and compare workflows (DAGs of tasks) on the machines you have."
# in the order of `foreplan --help`; each is the command of that name in foreplan.cli.<name>, or its
# `app`, or that of a package beside foreplan
COMMANDS = (
    "run", "resume", "adopt", "attach", "runs", "machines", "show", "logs", "why", "shell",
    "report", "diff", "clean", "history", "plan", "simulate", "what-if", "compare", "reproduce",
    "planners", "strategies", "generate", "convert", "import", "prioritize", "ic", "bench",
    "doctor",
)  # fmt: skip


class Beside(NamedTuple):
    """A command of a package that stands beside foreplan; it is imported when it is called."""

    package: str  # its module `command` has it
    extra: str  # which brings what the package needs
    about: str  # for `foreplan --help`
    several: bool = False  # it has commands of its own


BESIDE = {
    "reproduce": Beside(
        "foreplan_reproductions",
        "reproductions",
        "Repeat a paper's experiments: tables, plots, and a verdict on each of its claims.",
    ),
    "bench": Beside(
        "foreplan_benchmarks", "bench", "Measure speed and quality, side by side in one run.", True
    ),
}


class _Commands(TyperGroup):
    """The commands; one that stands beside foreplan takes its place when it is called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """As any group does, but for a command that is not loaded yet."""
        if args and args[0] in BESIDE:
            self.commands[args[0]] = _loaded(args[0])
        return super().resolve_command(ctx, args)


def _loaded(name: str) -> Any:
    """A command that stands beside foreplan."""
    package = BESIDE[name].package
    try:
        module = importlib.import_module(f"{package}.command")
    except ModuleNotFoundError as error:
        raise _missing(name, error) from error
    app = _empty_app()
    _add(app, name, module)
    return typer.main.get_group(app).commands[name]


def _missing(name: str, error: ModuleNotFoundError) -> InputError:
    """What to do where a package beside foreplan, or something that it needs, is not installed."""
    package, extra, *_ = BESIDE[name]
    missing = (error.name or package).partition(".")[0]
    if missing == package:
        again = f"{install_command(extra)} --force-reinstall"
        return InputError(
            f"the package {package}, which has `foreplan {name}`, is missing: {again}"
        )
    return InputError(f"`foreplan {name}` needs {missing}: {install_command(extra)}")


def build_app(names: Iterable[str] = COMMANDS) -> typer.Typer:
    """The command line with these commands."""
    app = _empty_app()
    for name in names:
        if name not in BESIDE:
            # a module cannot be called `import`
            module = name.replace("-", "_") + "_" * keyword.iskeyword(name)
            _add(app, name, importlib.import_module(f"foreplan.cli.{module}"))
        elif BESIDE[name].several:
            app.add_typer(typer.Typer(help=BESIDE[name].about), name=name)
        else:
            app.command(name, help=BESIDE[name].about)(lambda: None)
    return app


def _empty_app() -> typer.Typer:
    app = typer.Typer(
        name="foreplan",
        cls=_Commands,
        help=ABOUT,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(help=ABOUT)(_options)
    return app


def _add(app: typer.Typer, name: str, module: ModuleType) -> None:
    """The command of this name in a module, or its `app`."""
    if hasattr(module, "app"):
        app.add_typer(module.app, name=name)
    else:
        app.command(name)(getattr(module, name.replace("-", "_")))


def _version(wanted: bool) -> None:
    if wanted:
        from foreplan import __version__

        print(f"foreplan {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None: ...


def main() -> None:
    """Run the command line; an error that the user can mend is one message and exit code 2."""
    prepare_streams()
    asked = sys.argv[1] if len(sys.argv) > 1 else ""
    gc.set_threshold(50_000, 10, 10)  # most of what a command makes is there until its end,
    atexit.register(gc.freeze)  # and then goes with the process: nobody need look through it
    try:
        sys.argv[1:] = with_values(sys.argv[1:])
        build_app([asked] if asked in COMMANDS else COMMANDS)()
    except (ForeplanError, ModuleNotFoundError) as error:
        if isinstance(error, ModuleNotFoundError):
            if asked not in BESIDE:
                raise
            error = _missing(asked, error)
        print(f"foreplan: error: {error}", file=sys.stderr)
        sys.exit(2)
    except UnicodeEncodeError as error:  # in a name of a file
        print(f"foreplan: error: {error.object!a}: {unencodable(error)}", file=sys.stderr)
        sys.exit(2)
    except RuntimeError as error:  # so Python 3.11 passes on what stops it while it makes a class
        if not isinstance(error.__cause__, KeyboardInterrupt):
            raise
        sys.exit(130)


def with_values(words: list[str]) -> list[str]:
    """`--force` alone, or before the workflow's file, means all tasks; click wants a value."""
    files = (".yaml", ".yml", ".json")
    return [
        "--force=*" if word == "--force" and (after[:1] == "-" or after.endswith(files)) else word
        for word, after in zip_longest(words, words[1:], fillvalue="-")
    ]


def __getattr__(name: str) -> Any:
    """The whole command line as `app`, for tools that look for it."""
    if name == "app":
        return build_app()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
