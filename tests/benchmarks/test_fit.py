"""`foreplan bench fit`: small versions of what it measures."""

from __future__ import annotations

import numpy as np
import pytest

from foreplan import registry
from foreplan.checks.schedules import check_schedule
from foreplan.generators import generate
from foreplan.model import Situation
from foreplan_benchmarks import fit, fit_optimum
from foreplan_benchmarks.budget_optimum_model import installed


def test_the_large_workflows_ask_for_cores_and_memory() -> None:
    for shape in ("layered", "bag"):
        plain, asking = fit.large(shape, 200)
        assert plain.estimates.needs is None
        assert asking.estimates.needs is not None
        assert set(asking.estimates.needs.width.tolist()) == {1, 2, 4, 8}
        assert asking.platform.n_processors == 512
        check_schedule(registry.planner("heft").plan(asking), asking)
    assert len(fit.speeds(["heft"], 100, 1)) == 2


def test_first_fit_takes_the_first_host_that_has_room() -> None:
    workflow = fit.with_cores(generate("montage", seed=1, images=4), 3)
    platform = fit.hosts(2, 8, 8e9, [1.0, 0.5])
    situation = Situation.at_start(workflow, platform)
    schedule = fit.first_fit(situation)
    check_schedule(schedule, situation)
    first = np.flatnonzero(schedule.start == 0.0)
    assert (platform.host[schedule.processor[first]] == 0).any()


def test_cores_go_by_category_and_a_seed() -> None:
    workflow = generate("montage", seed=1, images=4)
    drawn = fit.with_cores(workflow, 3)
    by_category: dict[str | None, set[tuple[int, ...]]] = {}
    for task, spec in drawn.specs.items():
        request = drawn.spec(task).request
        if request is not None:
            by_category.setdefault(spec.category, set()).add(request.cores)
    assert all(len(widths) == 1 for widths in by_category.values())
    assert fit.with_cores(workflow, 3).specs == drawn.specs
    gain = fit.gains([workflow], 3, 1)[0]
    assert 0 < gain.by_whole <= 1
    assert gain.by_first_fit > 0


@pytest.mark.skipif(not installed(), reason="needs OR-tools")
def test_no_plan_is_shorter_than_the_optimum() -> None:
    gaps, open_ones = fit_optimum.gaps(8, 2, 0, 5.0, lambda share: None)
    assert open_ones == 0
    assert {gap.planner for gap in gaps} == set(fit_optimum.PLANNERS)
    assert all(gap.mean >= 0 for gap in gaps)
