"""`weft generate`: seeded workflows and platforms, one command per family."""

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

Seed = Annotated[int, typer.Option(help="Same seed, same result.", rich_help_panel=OUTPUT)]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        help="The file to write, in the format of its suffix; without, YAML to standard output.",
        rich_help_panel=OUTPUT,
    ),
]
Depth = Annotated[int, typer.Option(help="Levels of the full tree.")]
Arity = Annotated[int, typer.Option(help="Branches of a task.")]
TreeTasks = Annotated[int, typer.Option(help="This many tasks exactly; 0: the full tree.")]
Tasks = Annotated[int, typer.Option(help="Number of tasks.")]


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
Parallelism = Annotated[int, typer.Option(help="Jobs side by side in a parallel step.")]


def _join_option(text: str) -> Any:
    return typer.Option(help=text, rich_help_panel="Processors that join later")


JoinEvery = Annotated[float, _join_option("Some join every so many seconds; 0: none ever do.")]
JoinShare = Annotated[
    float, _join_option("So many each time, as a share of --processors; rounded, at least 1.")
]
JoinUntil = Annotated[float, _join_option("The last time at which some may join.")]


def _result(seed: Seed = 0, output: Output = None) -> None:
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


def _family(own: Callable[..., None]) -> Callable[..., None]:
    """Make a command of a function that declares a family's own options: add the common ones.

    A dash instead of the underscore in the name works too.
    """

    def command(output: Path | None, **options: Any) -> None:
        from weft.generators import generate

        _write(generate(own.__name__, **options), output)

    _declare(command, own, _costs, _result)
    if "_" in own.__name__:
        app.command(own.__name__.replace("_", "-"), hidden=True)(command)
    app.command(own.__name__)(command)
    return own


def _declare(command: Callable[..., None], own: Callable[..., None], *common: Any) -> None:
    """Give the command the options that these functions declare, as typer reads them."""
    declared = [signature(f, eval_str=True).parameters.values() for f in (own, *common)]
    parameters = [parameter for group in declared for parameter in group]
    vars(command)["__signature__"] = Signature(parameters)
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    command.__doc__ = own.__doc__


@_family
def random_layered(
    tasks: Tasks = 100,
    alpha: Annotated[float, typer.Option(help="Shape: below 1 long, above 1 wide.")] = 1.0,
    out_degree: Annotated[int, typer.Option(help="Successors of a task.")] = 3,
    out_share: Annotated[
        float, typer.Option(help="Instead: from 1 to this share of all tasks; 0: not used.")
    ] = 0.0,
    jump: Annotated[int, typer.Option(help="Edges reach this many levels; 0: any.")] = 1,
    single_ends: Annotated[
        bool, typer.Option("--single-ends", help="One entry task and one exit task.")
    ] = False,
) -> None:
    """Random layered graph, as in the HEFT paper.

    Example: `weft generate random_layered --tasks 100 --alpha 0.5 --ccr 5 -o random.yaml`
    """


@_family
def fft(points: Annotated[int, typer.Option(help="Points, a power of two.")] = 16) -> None:
    """Fast Fourier transform: a tree of calls, then rows of butterflies.

    Example: `weft generate fft --points 16 --ccr 1 --seed 7 -o fft.yaml`
    """


@_family
def laplace(size: Annotated[int, typer.Option(help="Side of the grid.")] = 10) -> None:
    """Laplace equation: a square grid, solved in diagonal wavefronts.

    Example: `weft generate laplace --size 10 --processors 3 --beta 1 -o laplace.yaml`
    """


@_family
def gaussian(size: Annotated[int, typer.Option(help="Size of the matrix.")] = 10) -> None:
    """Gaussian elimination: a pivot per step, and updates that get fewer.

    Example: `weft generate gaussian --size 5 --processors 4 -o gaussian.yaml`
    """


@_family
def fork_join(
    stages: Annotated[int, typer.Option(help="How often it forks and joins.")] = 3,
    width: Annotated[int, typer.Option(help="Tasks side by side in a stage.")] = 8,
) -> None:
    """Fork-join: one task, many, one, many, one.

    Example: `weft generate fork_join --stages 5 --width 20 -o fork-join.yaml`
    """


@_family
def out_tree(depth: Depth = 4, arity: Arity = 2, tasks: TreeTasks = 0) -> None:
    """Out-tree: grows from one task.

    Example: `weft generate out_tree --depth 6 --arity 2 -o tree.yaml`
    """


@_family
def in_tree(depth: Depth = 4, arity: Arity = 2, tasks: TreeTasks = 0) -> None:
    """In-tree: shrinks to one task.

    Example: `weft generate in_tree --tasks 100 --arity 3 -o reduce.yaml`
    """


@_family
def chain(tasks: Tasks = 10) -> None:
    """Chain: one task after the other.

    Example: `weft generate chain --tasks 20 -o chain.yaml`
    """


@_family
def independent(tasks: Tasks = 10) -> None:
    """Independent tasks: no edges; --ccr means nothing here.

    Example: `weft generate independent --tasks 1000 --processors 8 -o bag.yaml`
    """


@_family
def montage(images: Annotated[int, typer.Option(help="Sky images in the mosaic.")] = 20) -> None:
    """Montage-like mosaic of sky images: real-looking seconds, and files in MB.

    Example: `weft generate montage --images 50 -o mosaic.yaml`
    """


@_family
def blast(parallelism: Parallelism = 200) -> None:
    """BLAST: split, many chains of four jobs, merge; the jobs of a step cost alike.

    Example: `weft generate blast --parallelism 200 --ccr 5 -o blast.yaml`
    """


@_family
def wien2k(parallelism: Parallelism = 200) -> None:
    """WIEN2K: a chain with two wide steps, whose jobs cost alike, and one job between.

    Example: `weft generate wien2k --parallelism 200 --processors 20 --beta 0.5 -o wien2k.yaml`
    """


def _platform(
    processors: Annotated[int, typer.Option(help="Number of processors: p0, p1, ...")] = 4,
    cores: Annotated[int, typer.Option(help="Processors on one host.")] = 1,
    speed: Annotated[float, typer.Option(help="Mean speed.")] = 1.0,
    heterogeneity: Annotated[
        float, typer.Option(help="Speeds lie within 1 - h/2 .. 1 + h/2 of the mean.")
    ] = 0.5,
    bandwidth: Annotated[float, typer.Option(help="Mean bandwidth of a link.")] = 1.0,
    bandwidth_spread: Annotated[float, typer.Option(help="As for speeds, per link.")] = 0.0,
    startup: Annotated[float, typer.Option(help="Seconds before a transfer begins.")] = 0.0,
    price: Annotated[float, typer.Option(help="Price per second at the mean speed.")] = 1.0,
    price_noise: Annotated[
        float, typer.Option(help="Prices follow speeds, within 1 - n/2 .. 1 + n/2.")
    ] = 0.2,
    join_every: JoinEvery = 0,
    join_share: JoinShare = 0.0,
    join_until: JoinUntil = 0,
) -> None:
    """Random platform: processors of unlike speed and price, and their network.

    Example: `weft generate platform --processors 8 --cores 2 --heterogeneity 1 -o cluster.yaml`

    From 10 processors to 30, two more every 400 s (costs per processor must be for all 30):
    `weft generate platform --processors 10 --join-every 400 --join-share 0.2 --join-until 4000`
    """


def _make_platform(output: Path | None, **options: Any) -> None:
    from weft.generators import generate_platform

    _write_platform(generate_platform(**options), output)


_declare(_make_platform, _platform, _result)
app.command("platform")(_make_platform)


def _write(made: Workflow, output: Path | None) -> None:
    """The workflow to the file, in the format of its suffix, or to standard output."""
    from weft.formats import save, workflow_to_dict

    if output is not None:
        save(made, output)
    else:
        _print(workflow_to_dict(made))


def _write_platform(made: Platform, output: Path | None) -> None:
    """The platform to the file, in the format of its suffix, or to standard output."""
    from weft.formats import platform_to_dict, save_platform

    if output is not None:
        save_platform(made, output)
    else:
        _print(platform_to_dict(made))


def _print(content: dict[str, object]) -> None:
    from weft.formats.yaml_text import dump_yaml

    typer.echo(dump_yaml(content), nl=False)
