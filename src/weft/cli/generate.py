"""`weft generate`: seeded workflows and platforms, one command per family."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from weft.cli.generating import app as app
from weft.cli.generating import declare, family, result, write_platform

Depth = Annotated[int, typer.Option(help="Levels of the full tree.")]
Arity = Annotated[int, typer.Option(help="Branches of a task.")]
TreeTasks = Annotated[int, typer.Option(help="This many tasks exactly; 0: the full tree.")]
Tasks = Annotated[int, typer.Option(help="Number of tasks.")]
Levels = Annotated[int, typer.Option(help="Levels of the mesh; the widest has as many tasks.")]
Probability = Annotated[float, typer.Option(help="Of an edge between two tasks.")]
Predecessors = Annotated[float, typer.Option(help="Of a task, in the mean over all tasks.")]
Layers = Annotated[int, typer.Option(help="Number of layers; 0: one for every ten tasks.")]
Dummies = Annotated[
    bool, typer.Option("--dummies", help="One entry task and one exit task more, of cost 0.")
]
Parallelism = Annotated[int, typer.Option(help="Jobs side by side in a parallel step.")]


def _join_option(text: str) -> Any:
    return typer.Option(help=text, rich_help_panel="Processors that join later")


JoinEvery = Annotated[float, _join_option("Some join every so many seconds; 0: none ever do.")]
JoinShare = Annotated[
    float, _join_option("So many each time, as a share of --processors; rounded, at least 1.")
]
JoinUntil = Annotated[float, _join_option("The last time at which some may join.")]


@family
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


@family
def sameprob(tasks: Tasks = 100, probability: Probability = 0.12, dummies: Dummies = False) -> None:
    """Standard task graph: every two tasks have an edge with the same probability.

    Example: `weft generate sameprob --tasks 300 --probability 0.1 --ccr 0.5 -o stg.yaml`
    """


@family
def samepred(
    tasks: Tasks = 100, predecessors: Predecessors = 10.0, dummies: Dummies = False
) -> None:
    """Standard task graph: likewise, by the mean number of predecessors.

    Example: `weft generate samepred --tasks 300 --predecessors 5 -o stg.yaml`
    """


@family
def layrprob(
    tasks: Tasks = 100,
    probability: Probability = 0.12,
    layers: Layers = 0,
    dummies: Dummies = False,
) -> None:
    """Standard task graph in layers, with edges of one probability between any two layers.

    Example: `weft generate layrprob --tasks 300 --layers 30 --dummies -o stg.yaml`
    """


@family
def layrpred(
    tasks: Tasks = 100,
    predecessors: Predecessors = 10.0,
    layers: Layers = 0,
    dummies: Dummies = False,
) -> None:
    """Standard task graph in layers: likewise, by the mean number of predecessors.

    Example: `weft generate layrpred --tasks 300 --predecessors 5 -o stg.yaml`
    """


@family
def fft(points: Annotated[int, typer.Option(help="Points, a power of two.")] = 16) -> None:
    """Fast Fourier transform: a tree of calls, then rows of butterflies.

    Example: `weft generate fft --points 16 --ccr 1 --seed 7 -o fft.yaml`
    """


@family
def laplace(size: Annotated[int, typer.Option(help="Side of the grid.")] = 10) -> None:
    """Laplace equation: a square grid, solved in diagonal wavefronts.

    Example: `weft generate laplace --size 10 --processors 3 --beta 1 -o laplace.yaml`
    """


@family
def gaussian(size: Annotated[int, typer.Option(help="Size of the matrix.")] = 10) -> None:
    """Gaussian elimination: a pivot per step, and updates that get fewer.

    Example: `weft generate gaussian --size 5 --processors 4 -o gaussian.yaml`
    """


@family
def fork_join(
    stages: Annotated[int, typer.Option(help="How often it forks and joins.")] = 3,
    width: Annotated[int, typer.Option(help="Tasks side by side in a stage.")] = 8,
) -> None:
    """Fork-join: one task, many, one, many, one.

    Example: `weft generate fork_join --stages 5 --width 20 -o fork-join.yaml`
    """


@family
def out_tree(depth: Depth = 4, arity: Arity = 2, tasks: TreeTasks = 0) -> None:
    """Out-tree: grows from one task.

    Example: `weft generate out_tree --depth 6 --arity 2 -o tree.yaml`
    """


@family
def in_tree(depth: Depth = 4, arity: Arity = 2, tasks: TreeTasks = 0) -> None:
    """In-tree: shrinks to one task.

    Example: `weft generate in_tree --tasks 100 --arity 3 -o reduce.yaml`
    """


@family
def butterfly(
    rows: Annotated[int, typer.Option(help="Of butterflies: 2^rows points.")] = 4,
) -> None:
    """FFT dag: rows of butterflies alone, without the recursive calls of `fft`.

    Example: `weft generate butterfly --rows 5 -o butterfly.yaml`
    """


@family
def evolving_mesh(levels: Levels = 10) -> None:
    """Mesh that grows: every task feeds two of the next level.

    Example: `weft generate evolving_mesh --levels 20 -o mesh.yaml`
    """


@family
def reduction_mesh(levels: Levels = 10) -> None:
    """Mesh that shrinks: every task reads two of the level before.

    Example: `weft generate reduction_mesh --levels 20 -o mesh.yaml`
    """


@family
def composition(
    blocks: Annotated[
        str, typer.Option(help="`w`, `m`, `wnm` (W, then N, then M) or `q2`.")
    ] = "wnm",
    tasks: Annotated[int, typer.Option(help="Number of tasks, about.")] = 300,
) -> None:
    """Random composition of building blocks, with an IC-optimal schedule for sure.

    Example: `weft generate composition --blocks w --tasks 500 --seed 3 -o composed.yaml`
    """


@family
def chain(tasks: Tasks = 10) -> None:
    """Chain: one task after the other.

    Example: `weft generate chain --tasks 20 -o chain.yaml`
    """


@family
def independent(tasks: Tasks = 10) -> None:
    """Independent tasks: no edges; --ccr means nothing here.

    Example: `weft generate independent --tasks 1000 --processors 8 -o bag.yaml`
    """


@family
def montage(images: Annotated[int, typer.Option(help="Sky images in the mosaic.")] = 20) -> None:
    """Montage-like mosaic of sky images: real-looking seconds, and files in MB.

    Example: `weft generate montage --images 50 -o mosaic.yaml`
    """


@family
def blast(parallelism: Parallelism = 200) -> None:
    """BLAST: split, many chains of four jobs, merge; the jobs of a step cost alike.

    Example: `weft generate blast --parallelism 200 --ccr 5 -o blast.yaml`
    """


@family
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
    billing: Annotated[
        float, typer.Option(help="Prices are paid per begun unit of so many seconds; 0: each.")
    ] = 0.0,
    transfer_price: Annotated[
        float, typer.Option(help="Price of a unit of data sent to another host.")
    ] = 0.0,
    join_every: JoinEvery = 0,
    join_share: JoinShare = 0.0,
    join_until: JoinUntil = 0,
) -> None:
    """Random platform: processors of unlike speed and price, and their network.

    Example: `weft generate platform --processors 8 --cores 2 --heterogeneity 1 -o cluster.yaml`

    Paid by the hour, and for data that moves: `--price 0.001 --billing 3600 --transfer-price 0.01`

    From 10 processors to 30, two more every 400 s (costs per processor must be for all 30):
    `weft generate platform --processors 10 --join-every 400 --join-share 0.2 --join-until 4000`
    """


def _make_platform(output: Path | None, **options: Any) -> None:
    from weft.generators import generate_platform

    write_platform(generate_platform(**options), output)


declare(_make_platform, _platform, result)
app.command("platform")(_make_platform)
