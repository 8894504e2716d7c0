"""The library: the same names and spec strings as the command line."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from weft import formats, registry
from weft.errors import InputError, UnaffordableError
from weft.executors.scenario import EVENT_RATE, Scenario
from weft.files import in_file
from weft.limits import check_limits, plan_within
from weft.model import Estimates, Expectation, Platform, Schedule, Situation, Workflow

if TYPE_CHECKING:
    from weft.flow import Flow, Task
    from weft.frontier import Frontier
    from weft.live import Listener, Outcome
    from weft.model import Run
    from weft.whatif import WhatIf

Source = str | PathLike[str] | Mapping[str, Any]
Price = float | Mapping[str, float | tuple[float, float]]


def load(source: Source) -> Workflow:
    """A workflow from a file (YAML, JSON, WfFormat, STG, DOT, DAGMan), or a dict of the same."""
    return formats.load(source)


def load_platform(source: Source) -> Platform:
    """A platform from a YAML or JSON file, or a dict of the same content."""
    return formats.load_platform(source)


def plan(
    workflow: Workflow,
    platform: Platform,
    planner: str | None = None,
    budget: float | None = None,
    deadline: float | None = None,
    *,
    estimates: Estimates | None = None,
    reserve: float = 0.0,
) -> Schedule:
    """A schedule of the whole workflow, before anything has started.

    With a `budget`, the fastest plan found that costs at most that; with a `deadline`, the cheapest
    one that ends by then; with both, the fastest within the budget, if it ends by then. Else by
    `heft`. A named planner that knows no budget is where `best-affordable` starts. It goes by the
    declared costs, unless there are `estimates` (see `estimate`). The plan leaves a share of the
    budget, the `reserve`, for surprises.
    """
    check_limits(budget, deadline, reserve)
    situation = Situation.at_start(workflow, platform, estimates)
    money = None if budget is None else budget * (1 - reserve)
    try:
        return plan_within(situation, planner, money, deadline)
    except UnaffordableError as error:
        if money is None or not reserve:
            raise
        cheapest = error.cheapest
        raise UnaffordableError(money, error.cost, cheapest.makespan, cheapest, budget) from None


def pareto(
    workflow: Workflow,
    platform: Platform,
    planner: str | None = None,
    points: int = 25,
    budget: float | None = None,
    progress: Callable[[float], None] | None = None,
    *,
    estimates: Estimates | None = None,
) -> Frontier:
    """What more money would buy: plans from the cheapest to the fastest, none better than another.

    Each has the `budget` with which `plan` gives it. They are by `best-affordable`, unless a
    planner is named. So many budgets (`points`) are tried, and the one that is given.
    """
    from weft.frontier import frontier

    check_limits(budget, None)
    chosen = None if planner is None else registry.planner(planner)
    situation = Situation.at_start(workflow, platform, estimates)
    return frontier(situation, chosen, points, progress, budget)


def estimate(
    workflow: Workflow,
    platform: Platform | None = None,
    on: Any = None,
    *,
    dir: str | PathLike[str] = ".",
    use_history: bool = True,
    price: Price | None = None,
    warn: Callable[[str], None] = lambda text: None,
) -> Expectation:
    """What tasks are expected to take, by the history too: for `plan`, `simulate` and others.

    On a platform declared costs hold, and the history tells of tasks without one. Without a
    platform: the machines of `on` (`local`), with their `price`, and the estimates with which `run`
    would begin there in `dir`. The answer has `platform`, `estimates` and a `message`.
    """
    from weft.live.beforehand import expect

    return expect(workflow, platform, on, dir, use_history, price, warn)


def simulate(
    workflow: Workflow,
    platform: Platform,
    strategy: str = "static",
    world: Source | None = None,
    qoi: float = 0.0,
    seed: int = 0,
    per_processor: bool = False,
    by_events: bool = False,
    *,
    variability: float = 0.0,
    event_rate: float = EVENT_RATE,
    failures: int = 0,
    failure_rate: float = 0.0,
    return_after: float = math.inf,
    budget: float | None = None,
    over_budget: str = "continue",
    reserve: float = 0.0,
    estimates: Estimates | None = None,
) -> Run:
    """A run in a simulated world, whose durations are drawn within +-qoi or given by `world`.

    With a `variability` of 0.4 processors and links change at random to 60% to 100% of their peak,
    each `event_rate` times in a planned makespan (that of HEFT at full speed) on average. So many
    different processors (`failures`) die in that time, or each at a rate (`failure_rate`), for good
    or for `return_after` seconds; one is always left. The same seed draws the same for every
    strategy. A world may be combined with what it does not give. `by_events` keeps every event.
    With a `budget` every plan is affordable; if none is any more, the run is finished the cheapest
    way, or stops (`over_budget="stop"`). Plans leave a share of what is left, the `reserve`, for
    surprises.
    """
    from weft import wiring
    from weft.coordinator import Purse
    from weft.executors import reality, scenarios

    policy, planner = registry.strategy(strategy, budgeted=budget is not None)
    if estimates is None:
        estimates = Estimates.declared(workflow, platform)
    scenario = Scenario(variability, event_rate, failures, failure_rate, return_after)
    scenarios.check_failures(scenario, platform)
    if world is None:
        truth = reality.draw(workflow, platform, estimates, qoi, seed, per_processor)
    else:
        given = formats.load_world(world)
        # names that the workflow or the platform does not have are found only here
        with nullcontext() if isinstance(world, Mapping) else in_file(world):
            scenarios.check_world(scenario, given)
            truth = reality.from_world(
                workflow, platform, estimates, given, qoi, seed, per_processor
            )
    if not scenario.calm:
        planned = plan(workflow, platform, "heft", estimates=estimates).makespan
        lasts = planned if world is None else _lasts(workflow, platform, Estimates(truth.work))
        truth = scenarios.with_scenario(truth, platform, scenario, planned, seed, lasts)
    purse = Purse(math.inf if budget is None else budget, over_budget, reserve)
    return wiring.simulate(workflow, platform, estimates, policy, planner, truth, by_events, purse)


def _lasts(workflow: Workflow, platform: Platform, actual: Estimates) -> float:
    """What HEFT makes of the actual durations, which may be far from the estimates."""
    stay = replace(platform, leaves=np.full(platform.n_processors, np.inf))
    return registry.planner("heft").plan(Situation(workflow, stay, actual)).makespan


def what_if(
    workflow: Workflow | None = None,
    platform: Platform | None = None,
    add: str | Sequence[str] = (),
    remove: str | Sequence[str] = (),
    at: float | None = None,
    planner: str | None = None,
    *,
    run: str | None = None,
    dir: str | PathLike[str] = ".",
    expected: Expectation | None = None,
    use_history: bool = True,
) -> WhatIf:
    """What to expect if processors came or went: of a workflow before its start, or of a run.

    `add` is like `fast:2`, `fast:1..10` or `new[speed=2]:1`, `remove` names, or `each`; `at` is a
    time of the run, now if it is not given. New plans are made by `planner`: `heft`, or for a run
    its own. Instead of a platform, what is `expected` may be given (see `estimate`). Of a run that
    has finished, it is about the next one like it, by the history. Nothing is changed.
    """
    from weft import whatif

    added = [add] if isinstance(add, str) else list(add)
    removed = [remove] if isinstance(remove, str) else list(remove)
    if run is not None:
        if workflow is not None or platform is not None or expected is not None:
            raise InputError("give a workflow and a platform, or a run, not both")
        from weft.journal.places import RunHome

        stage = whatif.of_run(RunHome.find(Path(dir), run), planner, use_history)
    elif workflow is None or (platform is None) == (expected is None):
        raise InputError("give a workflow and a platform, or a run")
    else:
        if platform is not None:
            expected = Expectation.declared(workflow, platform)
        assert expected is not None
        stage = whatif.before_start(workflow, expected, planner or "heft")
    return whatif.ask(stage, added, removed, at)


def run(
    work: Workflow | Flow | Source,
    on: Any = None,
    strategy: str = "auto",
    *,
    dir: str | PathLike[str] = ".",
    shared: bool = False,
    retries: int = 0,
    timeout: float | None = None,
    keep_going: bool = False,
    absolute: bool = False,
    use_history: bool = True,
    keep_results: bool = False,
    resume: str | None = None,
    listener: Listener | None = None,
    price: Price | None = None,
    transfer_price: float = 0.0,
    budget: float | None = None,
    over_budget: str | None = None,
    reserve: float = 0.0,
    deadline: float | None = None,
) -> Outcome:
    """Run a workflow of commands, or a Flow of functions, on real machines, and wait for its end.

    `on` is `local` (the default), `local:4`, `dask://host:port` or a Client of Dask. Files are read
    and written in `dir`, where `.weft/runs` keeps the run's journal. `resume` names a run there to
    go on with, as it was asked for then, and there too unless `on` is given.
    `price` is money per second of use: a number, or a dict from names of processors, hosts or
    machines (`fast*`) to numbers or to pairs with a billing unit in seconds; `transfer_price` is
    for a unit of data. With a `budget` every plan is affordable; if none is any more, the run is
    finished the cheapest way (`over_budget="continue"`), or stops ("stop") and can be resumed with
    a larger one, or what runs is cancelled when the money is gone, too ("cut"). Plans leave a share
    of what is left, the `reserve`, for surprises. With a `deadline`, in seconds of the run's time,
    the cheapest plans that end by then are followed; a run that is late goes on.
    A run that fails does not raise: look at `.status` and `.failures`.
    """
    from weft import live
    from weft.flow import Flow

    calls, fetch, source = None, None, None
    if isinstance(work, Flow):
        workflow, calls = work.build()
        fetch = partial(_result_of, work)
    elif isinstance(work, Workflow):
        workflow = work
    else:
        workflow = load(work)
        source = None if isinstance(work, Mapping) else str(Path(work).absolute())
    directory = Path(dir)
    if resume is not None:
        from weft.journal.places import RunHome

        home = RunHome.find(directory, resume)
        return live.resume(
            home, workflow, calls, on, listener, fetch,
            budget=budget, over_budget=over_budget, deadline=deadline,
        )  # fmt: skip
    options = live.Options(
        on="local" if on is None else on,
        strategy=strategy,
        directory=directory,
        shared=shared,
        retries=retries,
        timeout=timeout,
        keep_going=keep_going,
        absolute=absolute,
        use_history=use_history,
        keep_results=keep_results,
        price=price,
        transfer_price=transfer_price,
        budget=budget,
        over_budget=over_budget or "continue",
        reserve=reserve,
        deadline=deadline,
    )
    return live.start(workflow, options, calls, source, listener, fetch)


def _result_of(flow: Flow, results: Path, task: Any) -> Any:
    """A result that the run has kept."""
    from weft.executors.results import load_result

    return load_result(results, flow.index(task), task.name)


def compute(*collections: Any, client: Any = None, strategy: str = "auto", **options: Any) -> Any:
    """Compute Dask's delayed objects (or other collections) with a plan of weft's.

    Without a client they run on this machine. Gives back the value of one collection, or a tuple
    of several, as `dask.compute` does.
    """
    from weft.delayed import flow_of
    from weft.flow import replaced
    from weft.live.outcome import RunFailedError
    from weft.model.call import refs

    flow, outputs = flow_of(list(collections))
    if not len(flow):
        values = tuple(outputs)
    else:
        wanted: list[Task] = []
        replaced(outputs, wanted.append)
        read = {index for call in flow.build()[1] for index in refs(call)}
        options["keep_results"] = any(flow.index(task) in read for task in wanted)
        outcome = run(flow, "local" if client is None else client, strategy, **options)
        if not outcome.ok:
            raise RunFailedError(outcome)
        values = tuple(replaced(output, outcome.result) for output in outputs)
    return values[0] if len(values) == 1 else values
