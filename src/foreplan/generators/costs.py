"""From a graph to a workflow: costs, heterogeneity and data volumes; and what they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from foreplan.arrays import FloatArray, IntArray, csr
from foreplan.generators.graph import Graph, Profile
from foreplan.generators.limits import MAX_COSTS, MAX_TASKS, check_size, number, positive, whole
from foreplan.model import TaskSpec, Workflow

DEFAULT_MEAN_COST, DEFAULT_CCR, DEFAULT_SPREAD = 10.0, 1.0, 2.0
CATEGORY_NOISE = 0.2  # the jobs of one category take its mean cost, 10% more or less


@dataclass(frozen=True)
class Costs:
    """The options that every family has (Topcuoglu, Hariri, Wu, section 5.2).

    - mean_cost: the mean w of the tasks' costs. A task's own mean w_i is uniform in
      w (1 - spread/2) .. w (1 + spread/2); spread 2 is the paper's 0 .. 2w, spread 0 makes all
      tasks alike.
    - processors: P columns of costs p0 .. p{P-1}; 0 is one cost at speed 1.
    - beta: w_ij is uniform in w_i (1 - beta/2) .. w_i (1 + beta/2): beta is the full width of
      the range, relative to w_i, from 0 (homogeneous) to 2. Nothing without processors.
    - ccr: see measured_ccr; the volumes are drawn like the costs, with volume_spread, and then
      scaled so that the workflow's CCR is exactly this. Nothing without edges.

    Where a family names categories (BLAST, WIEN2K), a mean cost is drawn for each category
    instead of each task, and a mean volume for each pair of categories that has edges; from
    these, single tasks and edges differ by 10% at most, and by nothing where the spread is 0.

    None is the family's own: 10, 1, 2 and 2, or what its profile says, in seconds and MB.
    """

    mean_cost: float | None = None
    ccr: float | None = None
    beta: float = 0.5
    processors: int = 0
    spread: float | None = None
    volume_spread: float | None = None

    def __post_init__(self) -> None:
        if self.mean_cost is not None:
            positive("mean_cost", self.mean_cost)
        if self.ccr is not None:
            number("ccr", self.ccr)
        number("beta", self.beta, 0, 2)
        whole("processors", self.processors, 0, MAX_TASKS)
        for name in ("spread", "volume_spread"):
            if getattr(self, name) is not None:
                number(name, getattr(self, name), 0, 2)


def to_workflow(name: str, graph: Graph, costs: Costs, rng: np.random.Generator) -> Workflow:
    """The graph with costs and volumes.

    The draws come in a fixed order (means, volumes, then one column per processor), so a seed
    gives the same tasks whatever the CCR, beta and number of processors.
    """
    check_size("costs (tasks x processors)", len(graph.tasks) * costs.processors, MAX_COSTS)
    task_cost = _task_costs(graph, costs, rng)
    volumes = _drawn_volumes(graph, costs, rng)
    if graph.dummies:
        last = len(graph.tasks) - 1
        task_cost[[0, last]] = 0.0
        volumes[(graph.producers == 0) | (graph.consumers == last)] = 0.0
    by_processor = {
        f"p{p}": task_cost * _factors(rng, len(task_cost), costs.beta)
        for p in range(costs.processors)
    }
    base_cost = np.full(len(task_cost), np.nan) if by_processor else task_cost
    volumes = _scaled(graph, costs, volumes, mean_computation(base_cost, by_processor))
    if graph.profile is not None:
        return _with_files(name, graph, graph.profile, base_cost, volumes, by_processor)
    return Workflow.from_edges(
        name,
        graph.tasks,
        graph.producers,
        graph.consumers,
        volumes,
        base_cost=base_cost,
        processor_cost=by_processor,
        specs=_specs(graph.categories or []),
    )


def _factors(rng: np.random.Generator, count: int, width: float) -> FloatArray:
    """Uniform in 1 - width/2 .. 1 + width/2; the lower end excluded, so that no cost is 0."""
    factors = rng.random(count)
    factors -= 0.5
    factors *= -width
    factors += 1.0
    return factors


def _alike(rng: np.random.Generator, group: IntArray, width: float) -> FloatArray:
    """One factor per group, and around it those of its members; all above 0."""
    means = _factors(rng, int(group.max(initial=-1)) + 1, width)
    members: FloatArray = means[group] * _factors(rng, len(group), min(width, CATEGORY_NOISE))
    return members


def _category_numbers(categories: list[str]) -> IntArray:
    """Each task's category as a number, in order of appearance."""
    index = {category: i for i, category in enumerate(dict.fromkeys(categories))}
    return np.array([index[category] for category in categories], dtype=np.int32)


def _task_costs(graph: Graph, costs: Costs, rng: np.random.Generator) -> FloatArray:
    """The mean cost w_i of every task over the processors."""
    n, profile = len(graph.tasks), graph.profile
    if profile is None:
        mean = DEFAULT_MEAN_COST if costs.mean_cost is None else costs.mean_cost
        spread = DEFAULT_SPREAD if costs.spread is None else costs.spread
        if graph.categories is not None:
            return mean * _alike(rng, _category_numbers(graph.categories), spread)
        return mean * _factors(rng, n, spread)
    spread = profile.spread if costs.spread is None else costs.spread
    seconds: FloatArray = profile.seconds * _factors(rng, n, spread)
    return seconds if costs.mean_cost is None else seconds * (costs.mean_cost / seconds.mean())


def _drawn_volumes(graph: Graph, costs: Costs, rng: np.random.Generator) -> FloatArray:
    """The volumes before they are scaled: one per edge, or one per task with a profile."""
    profile, spread = graph.profile, costs.volume_spread
    if profile is None:
        spread = DEFAULT_SPREAD if spread is None else spread
        if graph.categories is not None:
            return _alike(rng, _category_pairs(graph, graph.categories), spread)
        return _factors(rng, len(graph.producers), spread)
    noise = _factors(rng, len(graph.tasks), profile.spread if spread is None else spread)
    sizes: FloatArray = profile.size * noise
    return sizes


def _category_pairs(graph: Graph, categories: list[str]) -> IntArray:
    """Each edge's pair of categories (the producer's, the consumer's) as a number."""
    category = _category_numbers(categories).astype(np.int64)
    pairs = category[graph.producers] * len(category) + category[graph.consumers]
    numbers: IntArray = np.unique(pairs, return_inverse=True)[1].astype(np.int32)
    return numbers


def _scaled(graph: Graph, costs: Costs, volumes: FloatArray, computation: float) -> FloatArray:
    """The volumes scaled so that the mean over the edges is CCR x the mean computation cost."""
    if len(graph.producers) == 0 or (graph.profile is not None and costs.ccr is None):
        return volumes
    ccr = DEFAULT_CCR if costs.ccr is None else costs.ccr
    per_edge = volumes if graph.profile is None else volumes[graph.producers]
    mean = float(per_edge.mean())  # 0 where all edges are those of dummies
    scaled: FloatArray = volumes * (ccr * computation / mean) if mean > 0 else volumes
    return scaled


def _with_files(
    name: str,
    graph: Graph,
    profile: Profile,
    base_cost: FloatArray,
    sizes: FloatArray,
    by_processor: dict[str, FloatArray],
) -> Workflow:
    """A workflow whose items are files: a task's output is one item, with all its readers."""
    pointers, readers = csr(graph.producers, graph.consumers, len(graph.tasks))
    # the last task's output has no reader
    read = np.flatnonzero(np.diff(pointers)).astype(np.int32)
    return Workflow(
        name=name,
        task_names=tuple(graph.tasks),
        base_cost=base_cost,
        item_size=sizes[read],
        item_producer=read,
        use_ptr=np.append(pointers[read], pointers[-1]),
        use_task=readers,
        processor_cost=by_processor,
        item_names=tuple(profile.files[task] for task in read),
        specs=_specs(profile.categories),
    )


def _specs(categories: list[str]) -> dict[int, TaskSpec]:
    """The categories of the tasks, for the workflow."""
    kinds = {category: TaskSpec(category=category) for category in dict.fromkeys(categories)}
    return {task: kinds[category] for task, category in enumerate(categories)}


def measured_ccr(workflow: Workflow) -> float:
    """CCR: the mean transfer time of an edge over the mean computation cost.

    An edge's transfer time is its volume, as on the unit network (bandwidth 1, startup 0); the
    computation cost is averaged over tasks and processors (Topcuoglu, Hariri, Wu, section 5.2).
    A file that several tasks read counts once per reader. Without edges the CCR is 0.
    """
    items, _, _ = workflow.dependencies()
    if len(items) == 0:
        return 0.0
    computation = mean_computation(workflow.base_cost, workflow.processor_cost)
    communication = float(workflow.item_size[items].mean())
    return communication / computation if computation > 0 else float("inf")


def measured_beta(workflow: Workflow) -> float:
    """Beta: the width of the uniform distribution of w_ij / w_i over the processors j.

    With w_ij uniform in w_i (1 - beta/2) .. w_i (1 + beta/2), the variance over j is
    w_i^2 beta^2 / 12. Neither w_i nor the variance is known, but per task, over P processors,
    the sample variance s^2 (divisor P - 1) estimates the variance without bias, and
    m^2 - s^2 / P, with m the sample mean, estimates w_i^2 without bias. Summing both over the
    tasks before dividing keeps the estimate right for P = 2 already, where dividing task by
    task would not. NaN where it cannot be told: fewer than two processors' costs.
    """
    if len(workflow.processor_cost) < 2:
        return float("nan")
    columns = list(workflow.processor_cost.values())
    p = len(columns)
    mean = np.zeros(workflow.n_tasks)
    for column in columns:
        mean += column / p
    variance = np.zeros(workflow.n_tasks)
    for column in columns:
        variance += (column - mean) ** 2 / (p - 1)
    known = ~np.isnan(mean)  # tasks that give a cost on every processor
    squares = float((mean**2 - variance / p)[known].sum())
    return float(np.sqrt(12 * variance[known].sum() / squares)) if squares > 0 else float("nan")


def mean_computation(base_cost: FloatArray, processor_cost: Mapping[str, FloatArray]) -> float:
    """The mean over tasks of a task's mean cost: over the processors it names, else at speed 1."""
    total = np.zeros(len(base_cost))
    named = np.zeros(len(base_cost), dtype=np.int64)
    for column in processor_cost.values():
        known = ~np.isnan(column)
        total += np.where(known, column, 0.0)
        named += known
    cost = np.where(named > 0, total / np.maximum(named, 1), base_cost)
    return float(np.nanmean(cost)) if not np.isnan(cost).all() else 0.0
