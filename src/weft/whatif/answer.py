"""Judging: what is expected of each alternative, by the better of the old plan and a new one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from weft.coordinator import Coordinator
from weft.errors import InputError, PlanningError
from weft.model import Schedule, Situation, Usage, forecast
from weft.model.events import MORE_TO_COME, Event, EventKind, NewEstimates
from weft.projection import ends_earlier, project
from weft.quantities import amount, duration
from weft.spec import spec_of
from weft.whatif.changes import Change, Question, question
from weft.whatif.outlook import Alternative, Outlook, WhatIf, knee
from weft.whatif.stage import Stage, expected_world, follow, pass_time, twin
from weft.wiring import Progress, StuckError, record, run_natively

NOTHING = Change()


def ask(
    stage: Stage, add: Sequence[str] = (), remove: Sequence[str] = (), at: float | None = None
) -> WhatIf:
    """The alternatives, if they happen at a time (now, if it is not given)."""
    at = stage.now if at is None else at
    if not math.isfinite(at) or at < stage.now:
        raise InputError(f"the change must be at {amount(stage.now)} s or later, not {amount(at)}")
    asked = question(add, remove, stage.park.platform.processor_names)
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
        makespan=outlook.makespan,
        cost=outlook.cost,
        saves=present.makespan - outlook.makespan,
        taken=outlook.taken,
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
        if self.over or self.plan is None:
            return self._to_the_end(twin(self.stage.coordinator))
        kept = self._kept(self.stage.coordinator.situation())
        if kept is None:  # a processor leaves too early for it: a new plan is made then
            return self._to_the_end(twin(self.stage.coordinator))
        return replace(_outlook(kept, self.stage.coordinator.situation()), taken=False)

    def after(self, change: Change) -> Outlook:
        """What is expected after the change: by the better of the present plan and a new one."""
        if self.over:
            return self.present()
        if self.simulated:
            return self._to_the_end(self._changed(change))
        situation = self._situation(change)
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
        present = self.stage.coordinator.board.present
        away = [name for name in change.remove if not present[names.index(name)]]
        return not away  # one that is asked for by name is there, see _check_there

    def _situation(self, change: Change) -> Situation:
        """What is known after the change.

        One that hears of new machines only learns that they are there, so it need not be asked.
        """
        if change.remove:
            return self._changed(change).situation()
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
            more = MORE_TO_COME if p + 1 < len(names) else 0.0
            coordinator.handle(Event(EventKind.JOINED, p, at, more))
        if change.remove and self.stage.begun:
            self._let_end(coordinator)
        for name in change.remove:
            coordinator.handle(Event(EventKind.GONE, names.index(name), at))
        return coordinator

    def _let_end(self, coordinator: Coordinator) -> None:
        """What ends just when a processor goes has ended, as in any simulation."""
        progress = Progress(coordinator, self.stage.planner)
        follow(progress, expected_world(coordinator), lambda w: w.happens_by(self.at, True))

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
        progress = Progress(coordinator, self.stage.planner)
        try:
            if not coordinator.done:
                self._run(progress)
        except (StuckError, PlanningError):
            return Outlook(math.inf, math.inf)
        run = record(progress, "", [])
        return Outlook(run.makespan, run.cost, None if coordinator.policy is None else False)

    def _run(self, progress: Progress) -> None:
        coordinator = progress.coordinator
        if not self.stage.begun:
            progress.settled(coordinator.begin())
        pass_time(coordinator, self.at)
        executor = expected_world(coordinator)
        if coordinator.policy is None:
            run_natively(progress, executor)
            return
        follow(progress, executor)


def _outlook(plan: Schedule, situation: Situation, taken: bool = False) -> Outlook:
    return Outlook(plan.makespan, forecast(plan, situation).projected, taken)


def _check_there(stage: Stage, remove: Sequence[str], at: float) -> None:
    """What is to go must be there then."""
    names, present = stage.park.platform.processor_names, stage.coordinator.board.present
    for name in remove:
        if name in names and not present[names.index(name)] and not stage.coordinator.done:
            raise InputError(
                f"processor {name!r} cannot be removed: it is not there at {duration(at)}"
            )


def _with_new(usage: Usage, n: int) -> Usage:
    """The usage where there are new processors, which nobody has used."""
    new = Usage.none(n - len(usage.seconds))
    return Usage(
        np.concatenate([usage.seconds, new.seconds]),
        np.concatenate([usage.first, new.first]),
        np.concatenate([usage.last, new.last]),
        usage.transfers,
    )


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
