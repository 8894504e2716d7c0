"""The library: the same names and spec strings as the command line."""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

import numpy as np

from foreplan import formats, registry
from foreplan.errors import InputError, UnaffordableError
from foreplan.files import in_file
from foreplan.model import Estimates, Expectation, Platform, Schedule, Situation, Workflow
from foreplan.model.resources import check_fits
from foreplan.scheduling.limits import check_limits, plan_within
from foreplan.simulation.scenario import EVENT_RATE, Scenario

if TYPE_CHECKING:
    from foreplan.contracts import Order, Planner, Policy
    from foreplan.flow import Flow
    from foreplan.model import Run
    from foreplan.model.call import Calls
    from foreplan.runs import Listener, Outcome
    from foreplan.runs.rest import Rest
    from foreplan.scheduling.frontier import Frontier
    from foreplan.whatif import WhatIf

Source = str | PathLike[str] | Mapping[str, Any]
Work = Union[Workflow, "Flow", Source]
Machines = Platform | Source
Price = float | Mapping[str, float | tuple[float, float]]


def load(
    source: Source,
    *,
    params: Mapping[str, Any] | None = None,
    dir: str | PathLike[str] = "",
    resources: bool = True,
) -> Workflow:
    """A workflow from a file (YAML, JSON, WfFormat, STG, DOT, DAGMan), or a dict of the same.

    `params` are values of its parameters; the files that its loops go over are looked for in `dir`.
    Without `resources` every task takes one core and nothing else, as in the papers.
    """
    return formats.load(source, resources=resources, params=params, directory=dir)


def load_platform(source: Source) -> Platform:
    """A platform from a YAML or JSON file, or a dict of the same content."""
    return formats.load_platform(source)


def workflow_of(work: Any) -> Workflow:
    """A workflow, however it is given."""
    if isinstance(work, Workflow):
        return work
    if isinstance(work, str | PathLike | Mapping):
        return load(work)
    if hasattr(work, "build"):  # a Flow, which need not be imported for that
        workflow: Workflow = work.build()[0]
        return workflow
    raise InputError(f"expected a workflow, a flow, a file or a dict, not {type(work).__name__}")


def platform_of(machines: Any) -> Platform:
    """A platform, however it is given."""
    if isinstance(machines, Platform):
        return machines
    if isinstance(machines, str | PathLike | Mapping):
        return load_platform(machines)
    raise InputError(f"expected a platform, a file or a dict, not {type(machines).__name__}")


def plan(
    workflow: Work,
    platform: Machines,
    planner: str | Planner | None = None,
    budget: float | None = None,
    deadline: float | None = None,
    *,
    estimates: Estimates | None = None,
    reserve: float = 0.0,
    dir: str | PathLike[str] | None = None,
) -> Schedule:
    """A schedule of the whole workflow, before anything has started.

    Both may also be files or dicts as `load` and `load_platform` take them; or a Flow.
    With a `budget`, the fastest plan found that costs at most that; with a `deadline`, the cheapest
    one that ends by then; with both, the fastest within the budget, if it ends by then. Else by
    `heft`. The `planner` is a spec string, as on the command line, or a planner of one's own; one
    that knows no budget is where `best-affordable` starts. It goes by the
    declared costs, unless there are `estimates` (see `estimate`). The plan leaves a share of the
    budget, the `reserve`, for surprises. With `dir` it is only of what is not up to date there.
    """
    check_limits(budget, deadline, reserve)
    workflow, platform = workflow_of(workflow), platform_of(platform)
    if dir is not None:
        rest = _rest(workflow, dir)
        workflow = rest.workflow
        estimates = None if estimates is None else rest.of(estimates)
    situation = _at_start(workflow, platform, estimates)
    money = None if budget is None else budget * (1 - reserve)
    try:
        return plan_within(situation, planner, money, deadline)
    except UnaffordableError as error:
        if money is None or not reserve:
            raise
        cheapest = error.cheapest
        raise UnaffordableError(money, error.cost, cheapest.makespan, cheapest, budget) from None


def _at_start(workflow: Workflow, platform: Platform, estimates: Estimates | None) -> Situation:
    """Nothing has begun, and every task fits somewhere."""
    situation = Situation.at_start(workflow, platform, estimates)
    check_fits(workflow, platform, situation.estimates.needs)
    return situation


def _rest(workflow: Workflow, dir: str | PathLike[str]) -> Rest:
    """What is left to do in a directory, if anything is."""
    from foreplan.runs import Options
    from foreplan.runs.rest import Rest

    rest = Rest.to_plan(workflow, Options(directory=Path(dir)))
    if not rest.numbers:
        raise InputError(f"{rest.summary}: there is nothing to plan", source=str(dir))
    return rest


def pareto(
    workflow: Work,
    platform: Machines,
    planner: str | Planner | None = None,
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
    from foreplan.scheduling.frontier import frontier

    check_limits(budget, None)
    chosen = None if planner is None else registry.planner(planner)
    situation = _at_start(workflow_of(workflow), platform_of(platform), estimates)
    return frontier(situation, chosen, points, progress, budget)


def estimate(
    workflow: Work,
    platform: Machines | None = None,
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
    from foreplan.runs.estimates import expect

    known = None if platform is None else platform_of(platform)
    return expect(workflow_of(workflow), known, on, dir, use_history, price, warn)


def simulate(
    workflow: Work,
    platform: Machines,
    strategy: str | Policy | Order = "static",
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
    from foreplan.engine.budget import BudgetTracker
    from foreplan.simulation import reality, scenarios
    from foreplan.simulation.simulate import simulate_run

    workflow, platform = workflow_of(workflow), platform_of(platform)
    policy, planner = registry.strategy(strategy, budgeted=budget is not None)
    if estimates is None:
        estimates = Estimates.declared(workflow, platform)
    check_fits(workflow, platform, estimates.needs)
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
        actual = replace(estimates, cost=truth.work)
        lasts = planned if world is None else _lasts(workflow, platform, actual)
        truth = scenarios.with_scenario(truth, platform, scenario, planned, seed, lasts)
    tracker = BudgetTracker(math.inf if budget is None else budget, over_budget, reserve)
    return simulate_run(workflow, platform, estimates, policy, planner, truth, by_events, tracker)


def _lasts(workflow: Workflow, platform: Platform, actual: Estimates) -> float:
    """What HEFT makes of the actual durations, which may be far from the estimates."""
    stay = replace(platform, leaves=np.full(platform.n_processors, np.inf))
    return registry.planner("heft").plan(Situation(workflow, stay, actual)).makespan


def what_if(
    workflow: Work | None = None,
    platform: Machines | None = None,
    add: str | Sequence[str] = (),
    remove: str | Sequence[str] = (),
    at: float | None = None,
    planner: str | Planner | None = None,
    *,
    run: str | None = None,
    dir: str | PathLike[str] | None = None,
    expected: Expectation | None = None,
    use_history: bool = True,
) -> WhatIf:
    """What to expect if processors came or went: of a workflow before its start, or of a run.

    `add` is like `fast:2`, `fast:1..10` or `new[speed=2]:1`, `remove` names, or `each`; `at` is a
    time of the run, now if it is not given. New plans are made by `planner`: `heft`, or for a run
    its own. Instead of a platform, what is `expected` may be given (see `estimate`). With `dir` a
    workflow is what is not up to date there; a run is looked for in the present directory without.
    Of a run that has finished, it is about the next one like it, by the history.
    """
    from foreplan import whatif

    added = [add] if isinstance(add, str) else list(add)
    removed = [remove] if isinstance(remove, str) else list(remove)
    up_to_date: tuple[str, ...] | None = None
    if run is not None:
        if workflow is not None or platform is not None or expected is not None:
            raise InputError("give a workflow and a platform, or a run, not both")
        from foreplan.runs.home import RunHome

        stage = whatif.of_run(RunHome.find(Path(dir or "."), run), planner, use_history)
    elif workflow is None or (platform is None) == (expected is None):
        raise InputError("give a workflow and a platform, or a run")
    else:
        workflow = workflow_of(workflow)
        if platform is not None:
            expected = Expectation.declared(workflow, platform_of(platform))
        assert expected is not None
        if dir is not None:
            rest = _rest(workflow, dir)
            workflow, up_to_date = rest.workflow, rest.up_to_date
            expected = replace(expected, estimates=rest.of(expected.estimates))
        check_fits(workflow, expected.platform, expected.estimates.needs)
        stage = whatif.before_start(workflow, expected, "heft" if planner is None else planner)
    return replace(whatif.ask(stage, added, removed, at), up_to_date=up_to_date)


def run(
    work: Work,
    on: Any = None,
    strategy: str | Policy | Order = "auto",
    *,
    dir: str | PathLike[str] = ".",
    shared: bool = False,
    retries: int = 0,
    timeout: float | None = None,
    limit: bool = False,
    keep_going: bool = False,
    absolute: bool = False,
    use_history: bool = True,
    targets: Sequence[str] = (),
    force: bool | Sequence[str] = False,
    trust: str = "content",
    keep_results: bool | None = None,
    tasks_per_worker: int | None = None,
    mismatch: str = "fail",
    resume: str | None = None,
    listener: Listener | None = None,
    price: Price | None = None,
    transfer_price: float = 0.0,
    budget: float | None = None,
    over_budget: str | None = None,
    reserve: float = 0.0,
    deadline: float | None = None,
    progress: bool | None = None,
    params: Mapping[str, Any] | None = None,
) -> Outcome:
    """Run a workflow of commands, or a Flow of functions, on real machines, and wait for its end.

    `on` is `local` (the default), `local:4`, `local:cores=4,memory=8GB`, `dask://host:port`,
    `tls://host:port`, a Client of Dask or a pool of one's own. Files are read and written in `dir`,
    where `.foreplan/runs` keeps the run's journal.
    `resume` names a run there, which goes on as it was asked for then, and there too unless `on` is
    given. The `strategy` is a spec string or a strategy of one's own. With `limit` tasks are held
    to the cores and memory that they ask for.
    What is up to date, commands by the content of their files and functions by their program and
    arguments, is not run, unless `force` says so: True, or names of tasks. If nothing is to do,
    what comes back is finished and has no id. `targets` are tasks or files to make, with what they
    need; `trust` is "content", or "mtime" where files are too large to be read.
    On Dask, results of functions that other tasks read are kept if they have less than 1 MB, for a
    resume and for later runs; with `keep_results=True` all are, with False only those of tasks that
    say `keep=True`.
    `price` is money per second of use: a number, or a dict from names of processors, hosts or
    machines (`fast*`) to numbers or to pairs with a billing unit in seconds; `transfer_price` is
    for a unit of data. With a `budget` every plan is affordable; if none is any more, the run is
    finished the cheapest way (`over_budget="continue"`), or stops ("stop") and can be resumed with
    a larger one, or what runs is cancelled when the money is gone, too ("cut"). Plans leave a share
    of what is left, the `reserve`, for surprises. With a `deadline`, in seconds of the run's time,
    the cheapest plans that end by then are followed; a run that is late goes on.
    Worker processes of functions on this machine are kept for the next run of this process, up to a
    minute; `tasks_per_worker` replaces each after that number of tasks, 1 after every task.
    Where the program of a function cannot be what it is here, the task fails; with
    `mismatch="warn"` the function is called all the same, its result is not kept, and a
    RuntimeWarning tells of it.
    What takes longer than two seconds is shown while it goes on, on standard error or in the
    notebook; with `progress=True` from the start, with False not at all.
    `params` are values of the parameters of a workflow that is given as a file or a dict.
    A run that fails does not raise: look at `.status` and `.failures`. Ctrl-C lets what runs finish
    and then raises `RunInterrupted`, a KeyboardInterrupt whose `.outcome` tells how far it came.
    """
    asked = dict(locals())
    from foreplan.display.display import showing

    with showing(progress, listener) as shown:
        outcome = _run(work, asked, shown)
    _warn_of_mismatches(outcome)
    return outcome


def _warn_of_mismatches(outcome: Outcome) -> None:
    """Tell on standard error, or whoever else handles warnings, of calls with another program."""
    from foreplan.store.bindings import WITH_OTHER_PROGRAM

    for message in outcome.warnings:
        if WITH_OTHER_PROGRAM in message:
            warnings.warn(message, RuntimeWarning, stacklevel=3)


def _run(work: Work, asked: dict[str, Any], listener: Listener | None) -> Outcome:
    """What `run` was asked for, shown by the listener."""
    from foreplan import runs
    from foreplan.flow import Flow

    calls: Calls | None = None
    source, params = None, asked["params"]
    flow = work if isinstance(work, Flow) else None
    if params and isinstance(work, Flow | Workflow):
        raise InputError("params are for a file: foreplan.load(file, params=...) takes them, too")
    if isinstance(work, Flow):
        workflow, calls = work.build()
        if not any(calls):  # `foreplan resume` knows what to do with commands
            calls = None
    elif isinstance(work, Workflow):
        workflow = work
    else:
        if asked["resume"] is not None and params is None:
            params = runs.kept_params(runs.RunHome.find(Path(asked["dir"]), asked["resume"]))
        workflow = load(work, params=params, dir=asked["dir"])
        source = None if isinstance(work, Mapping) else str(Path(work).absolute())
    if asked["resume"] is not None:
        changes = {name: asked[name] for name in runs.flags(resuming=True)}
        home = runs.RunHome.find(Path(asked["dir"]), asked["resume"])
        session = runs.reopen_run(home, workflow, calls, listener=listener, **changes)
    else:
        options = runs.Options.from_keywords(asked)
        rest = runs.find_rest(workflow, options, calls, source=source)
        if not rest.numbers:
            outcome = runs.nothing_to_do(rest, options, source)
            if listener is not None:
                listener.said("\n".join((*rest.notes, *outcome.warnings, rest.summary)))
            return replace(outcome, flow=flow)
        session = runs.open_run(workflow, options, calls, source, listener, rest)
    with session:
        outcome = replace(session.drive(), flow=flow)
    if session.interrupted:
        raise runs.RunInterrupted(outcome)
    return outcome


def compute(
    *collections: Any,
    client: Any = None,
    strategy: str | Policy | Order = "auto",
    **options: Any,
) -> Any:
    """Compute Dask's delayed objects (or other collections) with a plan of foreplan's.

    Without a client they run on this machine. Gives back the value of one collection, or a tuple
    of several, as `dask.compute` does. It takes the options of `run`, but for those on results of
    other runs: all is computed, and nothing is left behind.
    """
    from foreplan.delayed import flow_of
    from foreplan.flow import Task
    from foreplan.model.call import replaced

    flow, outputs = flow_of(list(collections))
    if not len(flow):
        values = tuple(outputs)
    else:
        wanted: list[Task] = []
        replaced(outputs, Task, wanted.append)
        asked = inspect.signature(run).bind(flow, client, strategy, **options)
        asked.apply_defaults()
        with _leaving_nothing(flow, asked.arguments, {t.index for t in wanted}) as outcome:
            values = tuple(replaced(outputs, Task, outcome.result))
    return values[0] if len(values) == 1 else values


@contextmanager
def _leaving_nothing(
    flow: Flow, asked: Mapping[str, Any], wanted: Collection[int]
) -> Iterator[Outcome]:
    """All of a flow, run without the store; what the run keeps is gone in the end.

    So only the results of `wanted` tasks are kept.

    It is kept in the directory, not where temporary files are: that may be memory.
    """
    from shutil import rmtree
    from tempfile import mkdtemp

    from foreplan import runs
    from foreplan.display.display import showing

    for name in ("resume", "targets", "force", "keep_results"):
        if asked[name]:
            raise InputError(f"foreplan.compute has no {name}: it computes all, and keeps nothing")
    options, (workflow, calls) = runs.Options.from_keywords(asked), flow.build()
    specs = {t: replace(spec, keep=t in wanted) for t, spec in workflow.specs.items()}
    workflow = replace(workflow, specs=specs)
    rest = runs.find_rest(workflow, options, calls, ask_store=False)
    if not options.directory.is_dir():
        raise InputError("there is no such directory", source=str(options.directory.absolute()))
    try:
        place = mkdtemp(prefix=".foreplan-compute-", dir=options.directory.absolute())
    except OSError:  # nothing can be written there
        place = mkdtemp(prefix="foreplan-compute-")
    try:
        with (
            showing(asked["progress"], asked["listener"]) as listener,
            runs.open_run(
                workflow, options, calls, listener=listener, rest=rest, place=Path(place)
            ) as session,
        ):
            outcome = session.drive()
        _warn_of_mismatches(outcome)
        if session.interrupted:
            raise runs.RunInterrupted(outcome, can_resume=False)
        if not outcome.ok:
            logless = (replace(failure, log=None) for failure in outcome.failures)
            raise runs.RunFailedError(replace(outcome, failures=tuple(logless)))
        yield replace(outcome, flow=flow)
    finally:
        rmtree(place, ignore_errors=True)
