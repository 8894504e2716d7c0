"""What the commands of `weft generate` share: their group, common options, and the writing."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from weft.model import Platform, Workflow

app = typer.Typer(
    help="Generate a workflow of a family, or a platform. Same seed, same bytes.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

OUTPUT = "Output"
STDOUT = Path("-")

Seed = Annotated[int, typer.Option(help="Same seed, same result.", rich_help_panel=OUTPUT)]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        help="The file to write, in the format of its suffix; without, or -: YAML to stdout.",
        rich_help_panel=OUTPUT,
    ),
]


def _cost_option(text: str) -> Any:
    return typer.Option(help=text, rich_help_panel="Costs and volumes")


MeanCost = Annotated[
    float | None,
    _cost_option("Mean cost of a task in seconds; without, 10, or the family's own."),
]
Ccr = Annotated[
    float | None,
    _cost_option(
        "Mean transfer time of an edge (bandwidth 1) over mean cost of a task; "
        "without, 1, or the family's own."
    ),
]
Beta = Annotated[
    float,
    _cost_option(
        "A task's costs lie within 1 - beta/2 .. 1 + beta/2 of its mean; needs --processors."
    ),
]
Processors = Annotated[
    int, _cost_option("Give costs per processor p0, p1, ...; 0: one cost at speed 1.")
]
Spread = Annotated[
    float | None,
    _cost_option(
        "Tasks' mean costs differ by this width: 2 is 0 .. twice the mean, 0 all alike; "
        "without, 2, or the family's own."
    ),
]
VolumeSpread = Annotated[float | None, _cost_option("Likewise for the data volumes.")]


def result(seed: Seed = 0, output: Output = None) -> None:
    """The options that every command has."""


def _costs(
    mean_cost: MeanCost = None,
    ccr: Ccr = None,
    beta: Beta = 0.5,
    processors: Processors = 0,
    spread: Spread = None,
    volume_spread: VolumeSpread = None,
) -> None:
    """The options that every family has."""


def family(own: Callable[..., None]) -> Callable[..., None]:
    """Make a command of a function that declares a family's own options: add the common ones.

    A dash instead of the underscore in the name works too.
    """

    def command(output: Path | None, **options: Any) -> None:
        from weft.generators import generate

        _write(generate(own.__name__, **options), output)

    declare(command, own, _costs, result)
    if "_" in own.__name__:
        app.command(own.__name__.replace("_", "-"), hidden=True)(command)
    app.command(own.__name__)(command)
    return own


def declare(command: Callable[..., None], own: Callable[..., None], *common: Any) -> None:
    """Give the command the options that these functions declare, as typer reads them."""
    declared = [signature(f, eval_str=True).parameters.values() for f in (own, *common)]
    parameters = [parameter for group in declared for parameter in group]
    vars(command)["__signature__"] = Signature(parameters)
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    command.__doc__ = own.__doc__


def _write(made: Workflow, output: Path | None) -> None:
    """The workflow to the file, in the format of its suffix, or to standard output."""
    from weft.formats import save

    save(made, output or STDOUT)


def write_platform(made: Platform, output: Path | None) -> None:
    """The platform to the file, in the format of its suffix, or to standard output."""
    from weft.formats import save_platform

    save_platform(made, output or STDOUT)
