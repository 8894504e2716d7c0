"""Decisions within the kernels: for which strategies, and what became of them, for the record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from foreplan.arrays import pieces, sealed
from foreplan.contracts import Notice
from foreplan.engine.coordinator import Coordinator
from foreplan.engine.event_numbers import event_of
from foreplan.engine.kernels.arrays import RunArrays
from foreplan.engine.kernels.decisions import EVALUATED, Conduct, Taken, Ways
from foreplan.engine.triggers import reason_of
from foreplan.model import Evaluation, Freedom, Schedule
from foreplan.scheduling.kernels.list_planners import GTP
from foreplan.simulation.kernels.drive import drive_deciding
from foreplan.simulation.kernels.world import NO_EVENT, World
from foreplan.spec import spec_of

ROOM = 16  # plans until Python takes them over


class Deciding:
    """A run whose plans are made, judged and taken by the kernels."""

    def __init__(self, coordinator: Coordinator, planner: Any, conduct: Conduct) -> None:
        self.coordinator, self.conduct, self.planner = coordinator, conduct, spec_of(planner)
        self._planner = planner.kernel
        n = coordinator.workflow.n_tasks
        self._taken = _nothing_taken(n)
        self._followed: Schedule | None = None
        self._ways: Ways | None = None

    @staticmethod
    def of(coordinator: Coordinator, planner: Any) -> Deciding | None:
        """Where policy and planner are also written as kernels, and no limit has a say."""
        policy = coordinator.policy
        if policy is None or planner is None or policy.learn or coordinator.rest:
            return None
        if getattr(policy, "second", False):  # two plans are weighed in Python
            return None
        if coordinator.tracker.kept or coordinator.deadline.kept or coordinator.delays.usual:
            return None
        if coordinator.estimates.needs is not None:  # cores and amounts are planned in Python
            return None
        # a class that changes one of these in part must not be taken for it
        if "conduct" not in vars(type(policy)) or "kernel" not in vars(type(planner)):
            return None
        conduct: Conduct = policy.conduct()  # type: ignore[attr-defined]
        restart = policy.freedom == Freedom.RESTART
        if restart and (conduct.compares or planner.kernel != GTP):
            return None
        return Deciding(coordinator, planner, conduct)

    def drive(
        self, arrays: RunArrays, world: World, first: bool, late: int
    ) -> tuple[int, int, int, int]:
        """Run until done, or until something must be decided elsewhere; see the kernel."""
        self._note_plan()
        ways = self._ways_now(arrays)
        return drive_deciding(arrays, world, self.conduct, ways, self._taken, first, late)

    def _note_plan(self) -> None:
        """What is followed may have been planned elsewhere."""
        plan = self.coordinator.plan
        if plan is not None and plan is not self._followed:
            self._taken.plan_on[:] = plan.processor
            self._taken.plan_start[:] = plan.start
            self._taken.plan_finish[:] = plan.finish
            self._followed = plan

    def _ways_now(self, arrays: RunArrays) -> Ways:
        usable = arrays.present & (arrays.leaves > arrays.clock[0])
        if self._ways is None or not np.array_equal(self._ways.usable, usable):
            pf, policy = self.coordinator.platform, self.coordinator.policy
            assert policy is not None
            link = pf.mean_link
            if not usable.all():
                link = pf.mean_link_among(np.flatnonzero(usable).astype(np.int32))
            self._ways = Ways(
                planner=self._planner,
                restart=policy.freedom == Freedom.RESTART,
                stays=policy.stays,
                links_alike=pf.links_alike,
                startup=link.startup,
                per_unit=link.time_per_unit,
                usable=usable,
                billing=pf.billing,
            )
        return self._ways

    def take_decided(self) -> Iterator[tuple[Evaluation, Schedule | None]]:
        """What was decided since it was last asked, and the plans that were taken."""
        coordinator, taken = self.coordinator, self._taken
        n = coordinator.workflow.n_tasks
        for k in range(int(taken.counts[EVALUATED])):
            plan = None
            if taken.accepted[k]:
                row = slice(k * n, (k + 1) * n)
                plan = self._followed = Schedule(
                    self.planner,
                    coordinator.workflow,
                    coordinator.platform,
                    sealed(taken.on[row].copy()),
                    sealed(taken.start[row].copy()),
                    sealed(taken.finish[row].copy()),
                )
            yield self._evaluation(k), plan
        taken.counts[:] = 0

    def _evaluation(self, k: int) -> Evaluation:
        taken = self._taken
        time, late, forced = float(taken.time[k]), int(taken.late[k]), False
        if late >= 0:
            reason = self._reason(Notice(late))
        elif taken.kind[k] == NO_EVENT:
            reason, forced = "start", True
        else:
            reason = self._reason(Notice(event=event_of(taken.kind[k], taken.which[k], time)))
        return Evaluation(
            time,
            reason,
            forced,
            bool(taken.accepted[k]),
            float(taken.makespan[k]),
            float(taken.projected[k]),
            int(taken.migrated[k]),
            float(taken.seconds[k]),
        )

    def _reason(self, notice: Notice) -> str:
        coordinator = self.coordinator
        return reason_of(notice, coordinator.state, coordinator.workflow, coordinator.platform)


def _nothing_taken(n: int) -> Taken:
    """Room for some plans of so many tasks."""
    numbers = pieces(
        np.zeros(4 * ROOM + n, dtype=np.int32),
        late=ROOM, kind=ROOM, which=ROOM, migrated=ROOM, plan_on=n,
    )  # fmt: skip
    times = pieces(
        np.zeros(4 * ROOM + 2 * n),
        time=ROOM, makespan=ROOM, projected=ROOM, seconds=ROOM, plan_start=n, plan_finish=n,
    )  # fmt: skip
    return Taken(
        counts=np.zeros(2, dtype=np.int64),
        accepted=np.empty(ROOM, dtype=np.bool_),
        on=np.empty(ROOM * n, dtype=np.int32),
        start=np.empty(ROOM * n),
        finish=np.empty(ROOM * n),
        **numbers,
        **times,
    )
