"""What is expected of each alternative, by the better of the old plan and a new one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from foreplan.engine.coordinator import Coordinator
from foreplan.engine.driver import Driver, StuckError, record
from foreplan.errors import InputError, PlanningError
from foreplan.files import one_line
from foreplan.lazy import drawn_by
from foreplan.model import Schedule, Situation, Usage, forecast
from foreplan.model.events import NewEstimates, ProcessorGone, ProcessorJoined
from foreplan.quantities import amount, duration, many
from foreplan.scheduling.frontier import knee as knee_of
from foreplan.scheduling.projection import ends_earlier, project
from foreplan.simulation.simulate import run_natively
from foreplan.spec import spec_of
from foreplan.whatif.changes import Change, Question, question
from foreplan.whatif.stage import Stage, expected_world, pass_time, twin

FIGURES = ("makespan", "cost", "saves")


@dataclass(frozen=True)
class Outlook:
    """What is expected: when all is done, and the money; infinite if it cannot be done."""

    makespan: float
    cost: float
    taken: bool | None = None  # whether by another plan than the present one; None: there is none


@dataclass(frozen=True)
class Alternative:
    """A change, and what is expected then."""

    change: str
    add: dict[str, int]
    remove: tuple[str, ...]
    makespan: float
    cost: float
    saves: float  # seconds of the present makespan; negative: it takes longer
    taken: bool | None  # whether the plan would change; None: no plan is followed


@dataclass(frozen=True)
class WhatIf:
    """All alternatives beside what is expected if nothing changes."""

    name: str  # of the workflow, or the id of the run
    status: str | None  # of the run; None before its start
    by: str  # the planner, or the strategy that was simulated
    now: float
    at: float
    tasks: dict[str, int]  # how many are done, running, waiting, given up
    present: Outlook
    replanned: Outlook  # the best without a change: a new plan may help by itself
    alternatives: tuple[Alternative, ...]
    counts: tuple[int, ...] | None  # by alternative, where they are a range of one kind
    knee: int | None  # of the counts
    notes: tuple[str, ...] = ()
    up_to_date: tuple[str, ...] | None = None  # tasks that this is not about; None: not asked

    def __repr__(self) -> str:
        asked = many(len(self.alternatives), "alternative")
        now = f"{duration(self.present.makespan)} for {amount(self.present.cost)}"
        return f"<WhatIf of {one_line(self.name)}: {asked} to {now}>"

    _repr_html_ = drawn_by("foreplan.charts.html", "of_what_if")

    @property
    def is_next(self) -> bool:
        """Whether the run has finished, and this is about the next one like it."""
        return self.status == "finished"

    @property
    def before_start(self) -> bool:
        """Whether nothing of it has begun."""
        return self.status is None or self.is_next

    def to_dict(self) -> dict[str, Any]:
        """What `foreplan what-if --json` prints; figures that there are none of are null."""
        result = asdict(self, dict_factory=_plain)
        del result["counts"], result["present"]["taken"]
        if self.up_to_date is None:
            del result["up_to_date"]
        return result


def _plain(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    """The fields of a part of the answer as JSON has them."""
    result: dict[str, Any] = {name: list(v) if isinstance(v, tuple) else v for name, v in fields}
    infinite = [key for key in FIGURES if not math.isfinite(result.get(key, 0.0))]
    return result | dict.fromkeys(infinite)


def knee(counts: Sequence[int], makespans: Sequence[float]) -> int | None:
    """The count from which on more machines buy less time; None if there is none."""
    at = knee_of(counts, makespans)
    return None if at is None else counts[at]


NOTHING = Change()


def ask(
    stage: Stage, add: Sequence[str] = (), remove: Sequence[str] = (), at: float | None = None
) -> WhatIf:
    """The alternatives, if they happen at a time (now, if it is not given)."""
    at = stage.now if at is None else at
    if not math.isfinite(at) or at < stage.now:
        raise InputError(f"the change must be at {amount(stage.now)} s or later, not {amount(at)}")
    park = stage.park
    names, hosts = park.platform.processor_names, park.hosts()
    remove = [p for name in remove for p in ([names[c] for c in hosts.get(name, ())] or [name])]
    asked = question(add, remove, names, hosts)
    for change in asked.changes[-1:]:  # the largest: what cannot be added is told before the work
        stage.park.grown(change, at)
    stage.advance(at)
    _check_there(stage, remove, at)
    judge = Judge(stage, at)
    present = judge.present()
    replanned = judge.after(NOTHING)
    best = judge.all(asked)
    return WhatIf(
        name=stage.name,
        status=stage.status,
        by=judge.by,
        now=stage.now,
        at=at,
        tasks=stage.tasks,
        present=present,
        replanned=replanned,
        alternatives=tuple(_row(change, outlook, present) for change, outlook in best),
        counts=None if len(best) != len(asked.changes) else asked.counts,
        knee=_knee_of(asked, [outlook for _, outlook in best], replanned),
        notes=stage.notes,
    )


def _row(change: Change, outlook: Outlook, present: Outlook) -> Alternative:
    return Alternative(
        change=str(change),
        add={machine.spec: count for machine, count in change.add},
        remove=change.remove,
        saves=present.makespan - outlook.makespan,
        **vars(outlook),
    )


class Judge:
    """What is expected at a moment, after one change or another."""

    def __init__(self, stage: Stage, at: float) -> None:
        self.stage, self.at = stage, at
        self.plan = stage.plan()
        self.over = stage.coordinator.done
        # a strategy without a plan is simulated, unless it is to be planned from here on
        self.simulated = stage.planner is None
        self.by = stage.strategy or "" if stage.planner is None else spec_of(stage.planner)

    def present(self) -> Outlook:
        """What is expected if nothing changes and the present plan is kept."""
        coordinator = self.stage.coordinator
        shut = self.over or coordinator.shut_out().any()  # which plans give no time
        kept = None if shut else self._kept(coordinator.situation())
        if kept is None:  # or a processor leaves too early for it: a new plan is made then
            return self._to_the_end(twin(coordinator))
        return _outlook(kept, coordinator.situation())

    def after(self, change: Change) -> Outlook:
        """What is expected after the change: by the better of the present plan and a new one."""
        if self.over:
            return self.present()
        if self.simulated:
            return self._to_the_end(self._changed(change))
        situation = self._situation(change)
        if situation is None:
            return Outlook(math.inf, math.inf, False)
        kept = self._kept(situation)
        new = self._planned(situation)
        if new is None and kept is None:
            return Outlook(math.inf, math.inf, False)
        if kept is None or (new and ends_earlier(new.makespan, kept.makespan)):
            assert new is not None
            return _outlook(new, situation, taken=True)
        return _outlook(kept, situation)

    def all(self, asked: Question) -> list[tuple[Change, Outlook]]:
        """Every alternative; of a kind that is there nobody must use all."""
        best: dict[Change, Outlook] = {}
        for change in asked.changes:
            if not self._can(change):
                continue
            outlook = self.after(change)
            for fewer in () if self.simulated else _fewer(change, best):
                if ends_earlier(best[fewer].makespan, outlook.makespan):
                    outlook = best[fewer]
            best[change] = outlook
        return list(best.items())

    def _can(self, change: Change) -> bool:
        """Whether those that go are there; where each goes in turn, those that are not are left."""
        if self.over:
            return True
        names = self.stage.park.platform.processor_names
        present = self.stage.coordinator.state.present()
        # one that is asked for by name is there, see _check_there
        return all(present[names.index(name)] for name in change.remove)

    def _situation(self, change: Change) -> Situation | None:
        """What is known after the change; None if no host that is left can run one of the tasks.

        One that hears of new machines only learns that they are there, so it need not be asked.
        """
        if change.remove or self.stage.coordinator.shut_out().any():
            changed = self._changed(change)
            return None if changed.shut_out().any() else changed.situation()
        known = self.stage.coordinator.situation()
        platform, estimates = self.stage.park.grown(change, self.at)
        assert known.present is not None
        assert known.availability is not None
        new = np.ones(platform.n_processors - len(known.present))
        leaves = np.concatenate([known.platform.leaves, platform.leaves[len(known.present) :]])
        return replace(
            known,
            platform=replace(platform, leaves=leaves),
            estimates=estimates,
            present=np.concatenate([known.present, new.astype(np.bool_)]),
            availability=np.concatenate([known.availability, new]),
            usage=_with_new(known.used, platform.n_processors),
        )

    def _changed(self, change: Change) -> Coordinator:
        """The coordinator once it has heard of the change."""
        coordinator, at = twin(self.stage.coordinator), self.at
        platform, estimates = self.stage.park.grown(change, at)
        known, names = coordinator.platform.n_processors, platform.processor_names
        coordinator.learn(NewEstimates(at, estimates, platform))
        for p in range(known, len(names)):
            more = p + 1 < len(names)
            coordinator.handle(ProcessorJoined(p, at, more))
        if change.remove and self.stage.begun:
            self._let_end(coordinator)
        for name in change.remove:
            coordinator.handle(ProcessorGone(names.index(name), at))
        return coordinator

    def _let_end(self, coordinator: Coordinator) -> None:
        """What ends just when a processor goes has ended, as in any simulation."""
        world = expected_world(coordinator)
        driver = Driver(coordinator, self.stage.planner, world)
        driver.drive([], lambda: coordinator.done or not world.happens_by(self.at, True))

    def _kept(self, situation: Situation) -> Schedule | None:
        """The present plan from now on, if it can be followed."""
        if self.plan is None or not situation.usable().any():
            return None
        return project(self.plan, situation)

    def _planned(self, situation: Situation) -> Schedule | None:
        assert self.stage.planner is not None
        try:
            return self.stage.planner.plan(situation)
        except PlanningError:
            return None

    def _to_the_end(self, coordinator: Coordinator) -> Outlook:
        """Simulated until all is done, as the strategy does it."""
        driver = Driver(coordinator, self.stage.planner)
        try:
            if not coordinator.done:
                self._run(driver)
        except (StuckError, PlanningError):
            return Outlook(math.inf, math.inf)
        run = record(driver, "", [])
        return Outlook(run.makespan, run.cost, None if coordinator.policy is None else False)

    def _run(self, driver: Driver) -> None:
        coordinator = driver.coordinator
        if not self.stage.begun:
            driver.begin()
        pass_time(coordinator, self.at)
        driver.executor = executor = expected_world(coordinator)
        if coordinator.policy is None:
            run_natively(driver, executor)
        else:
            driver.drive([])


def _outlook(plan: Schedule, situation: Situation, taken: bool = False) -> Outlook:
    return Outlook(plan.makespan, forecast(plan, situation).projected, taken)


def _check_there(stage: Stage, remove: Sequence[str], at: float) -> None:
    """What is to go must be there then."""
    names, present = stage.park.platform.processor_names, stage.coordinator.state.present()
    for name in remove:
        if name in names and not present[names.index(name)] and not stage.coordinator.done:
            raise InputError(
                f"processor {name!r} cannot be removed: it is not there at {duration(at)}"
            )


def _with_new(usage: Usage, n: int) -> Usage:
    """The usage where there are new processors, which nobody has used."""
    new = Usage.none(n - len(usage.seconds))
    longer: dict[str, Any] = {
        name: np.concatenate([getattr(usage, name), getattr(new, name)])
        for name in ("seconds", "first", "last")
    }
    return replace(usage, **longer)


def _fewer(change: Change, known: dict[Change, Outlook]) -> list[Change]:
    """The known changes that add one less of one kind, and are else the same."""
    result = []
    for k, (machine, count) in enumerate(change.add):
        add = (*change.add[:k], (machine, count - 1), *change.add[k + 1 :])
        if (other := Change(add, change.remove)) in known:
            result.append(other)
    return result


def _knee_of(asked: Question, outlooks: list[Outlook], unchanged: Outlook) -> int | None:
    if asked.counts is None or len(asked.counts) != len(outlooks):
        return None
    points = [(k, o.makespan) for k, o in zip(asked.counts, outlooks, strict=True)]
    alone = len(asked.changes[0].add) == 1 and not asked.changes[0].remove
    if alone and asked.counts[0] > 0:  # none of them: known too, unless other things change
        points.insert(0, (0, unchanged.makespan))
    return knee([k for k, _ in points], [makespan for _, makespan in points])
