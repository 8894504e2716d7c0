"""Whatever is asked, plans and projections are checked."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from foreplan import registry
from foreplan.checks.schedules import check_schedule
from foreplan.contracts import Planner
from foreplan.model import Schedule, Situation
from foreplan.scheduling.projection import project
from foreplan.whatif import answer
from simulation.worlds import Checked


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every plan and every projection is checked against the situation it was made for."""

    def checked_projection(plan: Schedule, situation: Situation) -> Schedule | None:
        kept = project(plan, situation)
        if kept is not None:
            check_schedule(kept, situation)
        return kept

    real: Callable[[str], Planner] = registry.planner
    monkeypatch.setattr(answer, "project", checked_projection)
    monkeypatch.setattr(registry, "planner", lambda spec: Checked(real(spec)))
