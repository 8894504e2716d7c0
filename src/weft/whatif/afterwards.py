"""After a run: what if is asked about the next one like it.

The same workflow and strategy on the machines that were there at the end, with what the history
lets expect now, this run included.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from weft import registry
from weft.arrays import BoolArray
from weft.contracts import Order
from weft.coordinator import Coordinator
from weft.coordinator.purse import CONTINUE
from weft.journal.log import read
from weft.journal.places import RunHome
from weft.journal.summary import summarise
from weft.live.beforehand import in_words
from weft.live.deadlines import within_limits
from weft.live.estimating import Estimating
from weft.live.replay import Replayed, replay
from weft.live.switching import chosen_strategy
from weft.model import Estimates, Expectation, Platform
from weft.model.events import EventKind
from weft.policies.static import Static
from weft.whatif.machines import Park
from weft.whatif.stage import FINISHED, Stage, in_progress


def of_run(home: RunHome, planner: str | None = None, use_history: bool = True) -> Stage:
    """A run as its journal tells it; of one that is all done, the next one like it."""
    status = summarise(home).status
    contents = read(home.journal)
    replayed = replay(contents, home.data)
    if replayed.progress.coordinator.n_done == replayed.header.workflow.n_tasks:
        return _next_like(replayed, planner, use_history)
    return in_progress(home, contents, replayed, status, planner)


def _next_like(replayed: Replayed, planner: str | None, use_history: bool) -> Stage:
    header, over = replayed.header, replayed.progress.coordinator
    expected = _expected(replayed, use_history)
    platform, estimates = expected.platform, expected.estimates
    # what is simulated goes on over its budget, as for a run in progress
    budget = over.purse.budget if over.purse.kept else None
    options = replace(header.options, budget=budget, over_budget=CONTINUE)
    strategy = chosen_strategy(options, expected.blind)
    policy, own = registry.strategy(strategy)
    just_in_time = isinstance(policy, Order)
    coordinator = Coordinator(
        header.workflow,
        platform,
        estimates,
        policy if just_in_time else Static(),
        purse=options.purse(),
        deadline=over.deadline.at,
    )
    own = own and within_limits(own, coordinator)
    return Stage(
        coordinator,
        own if planner is None else registry.planner(planner),
        Park(header.workflow, platform, estimates, measured=True, one_host=expected.one_host),
        header.id,
        strategy if just_in_time else None,
        begun=False,
        status=FINISHED,
        notes=tuple(expected.message.splitlines()),
    )


def _expected(replayed: Replayed, use_history: bool) -> Expectation:
    """The machines of the end, and what is known of the tasks there."""
    header, over = replayed.header, replayed.progress.coordinator
    said: list[str] = []
    estimating = Estimating.look_back(
        header.workflow, header.options.directory, use_history, said.append
    )
    names = _machines(replayed)
    _recall(replayed, names, estimating)
    there = _there(over)
    known = [name or over.platform.processor_names[p] for p, name in enumerate(names)]
    prediction = estimating.expected(over.platform, known)
    unnamed = [name is None for name in names]
    cost = np.where(unnamed, over.estimates.cost, prediction.estimates.cost)  # as the run knew them
    return Expectation(
        _only(over.platform, there),
        Estimates(cost[:, there]),
        "\n".join([*said, in_words(estimating, prediction)]),
        prediction.blind,
        header.options.place,
    )


def _machines(replayed: Replayed) -> list[str | None]:
    """The machine of every processor; None where it came later, from who knows where."""
    known, header = replayed.progress.coordinator.platform, replayed.header
    here = header.machines[0] if header.options.place.startswith("local") else None
    came = known.n_processors - len(header.machines)
    return [*header.machines, *[here] * came]


def _recall(replayed: Replayed, machines: list[str | None], estimating: Estimating) -> None:
    """Add what the history does not have of this run: the sizes of its files, perhaps all."""
    run, board = replayed.header.id, replayed.progress.coordinator.board
    recorded = estimating.history.has_run(run)
    for event in replayed.progress.events or ():
        if event.kind == EventKind.TASK_FINISHED and event.detail:
            task, p = int(board.attempt_task[event.which]), int(board.attempt_on[event.which])
            estimating.recall(task, None if recorded else machines[p], event.detail, run)


def _there(coordinator: Coordinator) -> BoolArray:
    """The processors that were there at the end, and not about to leave."""
    board = coordinator.board
    there: BoolArray = board.present & np.isinf(board.leaves)
    return there if there.any() else np.ones(len(there), dtype=np.bool_)


def _only(platform: Platform, there: BoolArray) -> Platform:
    """Some of the processors, from the start on; hosts stay, with their links."""
    names = zip(platform.processor_names, there.tolist(), strict=True)
    n = int(there.sum())
    return replace(
        platform,
        processor_names=tuple(name for name, kept in names if kept),
        host=platform.host[there],
        speed=platform.speed[there],
        price=platform.price[there],
        billing=platform.billing[there],
        joins=np.zeros(n),
        leaves=np.full(n, np.inf),
    )
