"""A budget as a limit: what runs is cancelled when the money is gone, and never more is spent."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from engine.priced import cheapest_cost, priced, run_with
from foreplan.engine.budget import CUT
from foreplan.formats.foreplan_workflow import workflow_from_dict
from foreplan.model import ENDS, Platform, Processor, Run, affordable
from foreplan.model.money import MONEY_GONE
from foreplan.simulation.reality import Reality
from simulation.worlds import Case, random_case, same_record

pytestmark = pytest.mark.usefixtures("light_searches")


@pytest.mark.parametrize(
    ("spec", "units"), [("static[planner=loss3]", True), ("gtp/c/r", False), ("aheft", False)]
)
def test_never_more_than_the_budget(spec: str, units: bool) -> None:
    """Things take about four times as long as expected; machines change and are lost."""
    cuts = 0
    for seed in range(6):
        case = priced(random_case(seed, stops=False), seed, plain=not units)
        pf = case.platform
        case = replace(case, platform=replace(pf, link_price=np.zeros_like(pf.link_price)))
        slow = Reality(case.reality.work * 4, case.reality.changes)
        case = replace(case, reality=slow)
        budget = 1.05 * cheapest_cost(case)
        run = run_with(case, spec, budget, CUT)
        same_record(run, run_with(case, spec, budget, CUT, by_events=True))
        assert affordable(run.cost, budget)
        assert (run.final_attempts() >= 0).all() or not math.isnan(run.over_budget_at)
        cuts += any(e.reason == MONEY_GONE for e in run.evaluations)
    assert cuts


def one_machine(tasks: dict[str, tuple[float, float]], billing: float = 0.0, **more: float) -> Case:
    """Tasks one after another on a machine of price 1, each as (expected, actual) seconds."""
    names = list(tasks)
    entries = {name: {"cost": tasks[name][0], "run": "true", **more} for name in names}
    edges = [list(pair) for pair in pairwise(names)]
    wf = workflow_from_dict({"name": "t", "tasks": entries, "edges": edges})
    pf = Platform.build([Processor("p", price=1.0, billing=billing)])
    actual = np.array([[real] for _, real in tasks.values()])
    return Case(wf, pf, Reality(actual, []))


def ends(run: Run) -> list[tuple[float, str]]:
    log = run.attempts
    return [(round(float(f), 9), ENDS[e]) for f, e in zip(log.finish, log.end, strict=True)]


def test_at_the_very_moment() -> None:
    run = run_with(one_machine({"a": (1, 25)}), "static", 3, CUT)
    assert ends(run) == [(3, "cancelled")]
    assert run.over_budget_at == pytest.approx(3)
    assert run.cost == pytest.approx(3)


def test_a_unit_that_cannot_be_paid_is_not_begun() -> None:
    """Units of 10 are paid when they begin: the third would cost more than there is."""
    run = run_with(one_machine({"a": (5, 50)}, billing=10), "static", 29, CUT)
    ((at, how),) = ends(run)
    assert (how, run.cost) == ("cancelled", 20)
    assert 18 < at < 20


def test_a_time_out_must_be_payable() -> None:
    """The second is begun after the first only if all of its time-out can be paid."""
    tasks = {"a": (2.0, 2.0), "b": (2.0, 2.0)}
    case = one_machine(tasks, timeout=5.0)
    enough = run_with(case, "static", 7, CUT)
    assert ends(enough) == [(2, "finished"), (4, "finished")]
    short = run_with(case, "static", 6.9, CUT)
    assert ends(short) == [(2, "finished")]
    assert short.over_budget_at == 2
    assert ends(run_with(one_machine(tasks), "static", 6.9, CUT)) == ends(enough)


def test_what_costs_nothing_goes_on() -> None:
    """When the money is gone, the rest is done on the machine that is free."""
    wf = workflow_from_dict({"name": "t", "tasks": {"a": {"cost": 1.0}}})
    pf = Platform.build([Processor("dear", price=1.0), Processor("free", speed=0.25)])
    case = Case(wf, pf, Reality(np.array([[9.0, 5.0]]), []))
    run = run_with(case, "slack", 2, CUT)
    assert ends(run) == [(2, "cancelled"), (7, "finished")]
    assert run.within_budget
