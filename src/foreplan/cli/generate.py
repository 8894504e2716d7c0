"""`foreplan generate`: seeded workflows and platforms, one command per family."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any, cast

import typer

app = typer.Typer(
    help="Generate a workflow of a family, or a platform. Same seed, same bytes.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

STDOUT = Path("-")
MAYBE: Any = float | None


def _options(panel: str | None = None, **options: tuple[Any, ...]) -> list[Parameter]:
    """Options as typer reads them: default, help, and the kind where it is not the default's."""
    result = []
    for name, (default, text, *kind) in options.items():
        flag = [f"--{name.replace('_', '-')}"] if default is False else []  # and no --no-...
        option = typer.Option(*flag, help=text, rich_help_panel=panel)
        annotation = cast(Any, Annotated)[kind[0] if kind else type(default), option]
        result.append(
            Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        )
    return result


COSTS = _options(
    "Costs and volumes",
    mean_cost=(None, "Mean cost of a task in seconds; without, 10, or the family's own.", MAYBE),
    ccr=(
        None,
        "Mean transfer time of an edge (bandwidth 1) over mean cost of a task; "
        "without, 1, or the family's own.",
        MAYBE,
    ),
    beta=(
        0.5,
        "A task's costs lie within 1 - beta/2 .. 1 + beta/2 of its mean; needs --processors.",
    ),
    processors=(0, "Give costs per processor p0, p1, ...; 0: one cost at speed 1."),
    spread=(
        None,
        "Tasks' mean costs differ by this width: 2 is 0 .. twice the mean, 0 all alike; "
        "without, 2, or the family's own.",
        MAYBE,
    ),
    volume_spread=(None, "Likewise for the data volumes.", MAYBE),
)
REQUESTS = _options(
    "Resources",
    cores=("", "Tasks take so many cores: one of `1,2,4,8` each, drawn by category."),
    memory=("", "Tasks need so much memory: `2GB`, or drawn from `1GB..8GB`, by category."),
    parallel=(
        None,
        "Instead: every task may take any of --cores, and this share of its work is parallel.",
        MAYBE,
    ),
)
_FILE = typer.Option(
    "--output",
    "-o",
    help="The file to write, in the format of its suffix; without, or -: YAML to stdout.",
    rich_help_panel="Output",
)
RESULT = [
    *_options("Output", seed=(0, "Same seed, same result.")),
    Parameter(
        "output", Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[Path | None, _FILE]
    ),
]


def _command(name: str, about: str, make: Callable[..., None], options: list[Parameter]) -> None:
    """Add a command; a dash instead of the underscore in its name works too."""

    def command(**given: Any) -> None:
        make(output=given.pop("output") or STDOUT, **given)

    every = [*options, *RESULT]
    vars(command)["__signature__"] = Signature(every)
    command.__annotations__ = {p.name: p.annotation for p in every}
    command.__doc__ = about
    if "_" in name:
        app.command(name.replace("_", "-"), hidden=True)(command)
    app.command(name)(command)


def _family(name: str, about: str, example: str, **own: tuple[Any, str]) -> None:
    """A family of workflows by its own options; the common ones are added."""

    def make(output: Path, **options: Any) -> None:
        from foreplan.formats import save
        from foreplan.generators import generate

        save(generate(name, **options), output)

    words = f"{about}\n\nExample: `foreplan generate {name} {example}`"
    _command(name, words, make, [*_options(None, **own), *COSTS, *REQUESTS])


TASKS = "Number of tasks."
PROBABILITY = "Of an edge between two tasks."
DUMMIES = "One entry task and one exit task more, of cost 0."
PREDECESSORS = "Of a task, in the mean over all tasks."
LAYERS = "Number of layers; 0: one for every ten tasks."
DEPTH = "Levels of the full tree."
ARITY = "Branches of a task."
TREE_TASKS = "This many tasks exactly; 0: the full tree."
LEVELS = "Levels of the mesh; the widest has as many tasks."
PARALLELISM = "Jobs side by side in a parallel step."

_family(
    "random_layered",
    "Random layered graph, as in the HEFT paper.",
    "--tasks 100 --alpha 0.5 --ccr 5 -o random.yaml",
    tasks=(100, TASKS),
    alpha=(1.0, "Shape: below 1 long, above 1 wide."),
    out_degree=(3, "Successors of a task."),
    out_share=(0.0, "Instead: from 1 to this share of all tasks; 0: not used."),
    jump=(1, "Edges reach this many levels; 0: any."),
    single_ends=(False, "One entry task and one exit task."),
)
_family(
    "sameprob",
    "Standard task graph: every two tasks have an edge with the same probability.",
    "--tasks 300 --probability 0.1 --ccr 0.5 -o stg.yaml",
    tasks=(100, TASKS),
    probability=(0.12, PROBABILITY),
    dummies=(False, DUMMIES),
)
_family(
    "samepred",
    "Standard task graph: likewise, by the mean number of predecessors.",
    "--tasks 300 --predecessors 5 -o stg.yaml",
    tasks=(100, TASKS),
    predecessors=(10.0, PREDECESSORS),
    dummies=(False, DUMMIES),
)
_family(
    "layrprob",
    "Standard task graph in layers, with edges of one probability between any two layers.",
    "--tasks 300 --layers 30 --dummies -o stg.yaml",
    tasks=(100, TASKS),
    probability=(0.12, PROBABILITY),
    layers=(0, LAYERS),
    dummies=(False, DUMMIES),
)
_family(
    "layrpred",
    "Standard task graph in layers: likewise, by the mean number of predecessors.",
    "--tasks 300 --predecessors 5 -o stg.yaml",
    tasks=(100, TASKS),
    predecessors=(10.0, PREDECESSORS),
    layers=(0, LAYERS),
    dummies=(False, DUMMIES),
)
_family(
    "fft",
    "Fast Fourier transform: a tree of calls, then rows of butterflies.",
    "--points 16 --ccr 1 --seed 7 -o fft.yaml",
    points=(16, "Points, a power of two."),
)
_family(
    "laplace",
    "Laplace equation: a square grid, solved in diagonal wavefronts.",
    "--size 10 --processors 3 --beta 1 -o laplace.yaml",
    size=(10, "Side of the grid."),
)
_family(
    "gaussian",
    "Gaussian elimination: a pivot per step, and updates that get fewer.",
    "--size 5 --processors 4 -o gaussian.yaml",
    size=(10, "Size of the matrix."),
)
_family(
    "fork_join",
    "Fork-join: one task, many, one, many, one.",
    "--stages 5 --width 20 -o fork-join.yaml",
    stages=(3, "How often it forks and joins."),
    width=(8, "Tasks side by side in a stage."),
)
_family(
    "out_tree",
    "Out-tree: grows from one task.",
    "--depth 6 --arity 2 -o tree.yaml",
    depth=(4, DEPTH),
    arity=(2, ARITY),
    tasks=(0, TREE_TASKS),
)
_family(
    "in_tree",
    "In-tree: shrinks to one task.",
    "--tasks 100 --arity 3 -o reduce.yaml",
    depth=(4, DEPTH),
    arity=(2, ARITY),
    tasks=(0, TREE_TASKS),
)
_family(
    "butterfly",
    "FFT dag: rows of butterflies alone, without the recursive calls of `fft`.",
    "--rows 5 -o butterfly.yaml",
    rows=(4, "Of butterflies: 2^rows points."),
)
_family(
    "evolving_mesh",
    "Mesh that grows: every task feeds two of the next level.",
    "--levels 20 -o mesh.yaml",
    levels=(10, LEVELS),
)
_family(
    "reduction_mesh",
    "Mesh that shrinks: every task reads two of the level before.",
    "--levels 20 -o mesh.yaml",
    levels=(10, LEVELS),
)
_family(
    "composition",
    "Random composition of building blocks, with an IC-optimal schedule for sure.",
    "--blocks w --tasks 500 --seed 3 -o composed.yaml",
    blocks=("wnm", "`w`, `m`, `wnm` (W, then N, then M) or `q2`."),
    tasks=(300, "Number of tasks, about."),
)
_family(
    "chain",
    "Chain: one task after the other.",
    "--tasks 20 -o chain.yaml",
    tasks=(10, TASKS),
)
_family(
    "independent",
    "Independent tasks: no edges; --ccr means nothing here.",
    "--tasks 1000 --processors 8 -o bag.yaml",
    tasks=(10, TASKS),
)
_family(
    "montage",
    "Montage-like mosaic of sky images: real-looking seconds, and files in MB.",
    "--images 50 -o mosaic.yaml",
    images=(20, "Sky images in the mosaic."),
)
_family(
    "blast",
    "BLAST: split, many chains of four jobs, merge; the jobs of a step cost alike.",
    "--parallelism 200 --ccr 5 -o blast.yaml",
    parallelism=(200, PARALLELISM),
)
_family(
    "wien2k",
    "WIEN2K: a chain with two wide steps, whose jobs cost alike, and one job between.",
    "--parallelism 200 --processors 20 --beta 0.5 -o wien2k.yaml",
    parallelism=(200, PARALLELISM),
)


def _make_platform(output: Path, **options: Any) -> None:
    from foreplan.formats import save_platform
    from foreplan.generators import generate_platform

    save_platform(generate_platform(**options), output)


_command(
    "platform",
    """Random platform: processors of unlike speed and price, and their network.

    Example: `foreplan generate platform --processors 8 --cores 2 --heterogeneity 1 -o cluster.yaml`

    Hosts with memory: `--processors 32 --cores 8 --memory 16GB..64GB --gpus 1`

    Paid by the hour, and for data that moves: `--price 0.001 --billing 3600 --transfer-price 0.01`

    From 10 processors to 30, two more every 400 s (costs per processor must be for all 30):
    `foreplan generate platform --processors 10 --join-every 400 --join-share 0.2 --join-until 4000`
    """,
    _make_platform,
    [
        *_options(
            processors=(4, "Number of processors: p0, p1, ..."),
            cores=(1, "Processors on one host."),
            memory=("", "Memory of a host: `64GB`, or drawn from `16GB..64GB`."),
            gpus=(0, "GPUs of a host."),
            speed=(1.0, "Mean speed."),
            heterogeneity=(0.5, "Speeds lie within 1 - h/2 .. 1 + h/2 of the mean."),
            bandwidth=(1.0, "Mean bandwidth of a link."),
            bandwidth_spread=(0.0, "As for speeds, per link."),
            startup=(0.0, "Seconds before a transfer begins."),
            price=(1.0, "Price per second at the mean speed."),
            price_noise=(0.2, "Prices follow speeds, within 1 - n/2 .. 1 + n/2."),
            billing=(0.0, "Prices are paid per begun unit of so many seconds; 0: each."),
            transfer_price=(0.0, "Price of a unit of data sent to another host."),
        ),
        *_options(
            "Processors that join later",
            join_every=(0, "Some join every so many seconds; 0: none ever do.", float),
            join_share=(
                0.0,
                "So many each time, as a share of --processors; rounded, at least 1.",
            ),
            join_until=(0, "The last time at which some may join.", float),
        ),
    ],
)
