"""Trials of single changes give what placing the whole order anew gives, to the bit."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from foreplan.arrays import FloatArray, IntArray
from foreplan.errors import PlanningError
from foreplan.model import Freedom, Situation
from foreplan.scheduling.kernels.placement import place_in_order
from foreplan.scheduling.kernels.reassignment import SHORTER, makespans_after, makespans_along
from foreplan.scheduling.kernels.trials import HELPS, descend, workspace_for
from foreplan.scheduling.planners._reassigning import BudgetTable, Shortening
from twins.priced import any_priced

seeds = st.integers(0, 2**32 - 1)
some_leave = st.sampled_from([inf, inf, 1.0, 1.3])


def table_of(situation: Situation, later: float) -> BudgetTable:
    """What kernels are asked about; all machines leave at so many times HEFT's end."""
    try:
        table = BudgetTable(situation, Freedom.NOT_STARTED, inf)
        end = float(table.planning.place(table.order)[2].max(initial=0.0))
    except PlanningError:
        assume(False)
        raise
    if later == inf:
        return table
    leaves = np.minimum(situation.platform.leaves, max(end, situation.now + 1) * later)
    platform = replace(situation.platform, leaves=leaves)
    return BudgetTable(replace(situation, platform=platform), Freedom.NOT_STARTED, inf)


def assignment(table: BudgetTable, rng: np.random.Generator) -> IntArray:
    """Every task somewhere; often where it costs least, as searches begin."""
    anywhere = rng.integers(0, table.processors, len(table.runs_on)).astype(np.int32)
    return anywhere if rng.random() < 0.5 else table.cheapest_assignment


def ends(table: BudgetTable, on: IntArray) -> float:
    """When all is done, by the placement of the whole order."""
    where, _, finish = place_in_order(
        table.planning.problem, table.order, on, np.empty(0), table.shortest
    )
    late = np.where(where[table.order] >= 0, finish[table.order], inf)
    return float(late.max(initial=0.0))


def moved(on: IntArray, task: int, p: int) -> IntArray:
    changed = on.copy()
    changed[task] = p
    return changed


@settings(max_examples=60, deadline=None)
@given(situation=any_priced(), later=some_leave, seed=seeds)
def test_every_single_change(situation: Situation, later: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = table_of(situation, later)
    on, problem = assignment(table, rng), table.planning.problem
    work = workspace_for(problem)
    expected = np.full(len(table.money), inf)
    for pair in table.pairs(on).tolist():
        expected[pair] = ends(table, moved(on, *divmod(pair, table.processors)))
    found = makespans_after(problem, table.order, on, work, table.shortest, inf)
    assert found.tobytes() == expected.tobytes()
    limit = float(rng.choice([ends(table, on), *expected]))
    within = makespans_after(problem, table.order, on, work, table.shortest, limit)
    assert within.tobytes() == np.where(expected < limit, expected, inf).tobytes()
    moves = rng.permutation(table.pairs(on)).astype(np.int32)
    along = makespans_along(problem, table.order, on, work, table.shortest, moves)
    current = on.copy()
    for pair, end in zip(moves.tolist(), along[1:].tolist(), strict=True):
        current[pair // table.processors] = pair % table.processors
        assert end == ends(table, current)


@settings(max_examples=60, deadline=None)
@given(
    situation=any_priced(),
    later=some_leave,
    seed=seeds,
    rate=st.sampled_from([0.0, 1e-6, 0.1, 10.0]),
    sweeps=st.sampled_from([1, 3, 20]),
)
def test_a_descent(situation: Situation, later: float, seed: int, rate: float, sweeps: int) -> None:
    rng = np.random.default_rng(seed)
    table = table_of(situation, later)
    on = assignment(table, rng)
    spare = float(rng.choice([inf, 0.0, 1.0])) * float(table.money.mean())
    latest = float(rng.choice([inf, 1.0, 1.5])) * ends(table, on)
    assume(not np.isnan(spare) and not np.isnan(latest))
    found, count = descend(
        table.planning.problem, table.order, on, workspace_for(table.planning.problem),
        table.shortest, table.money, rate, spare, latest, sweeps,
    )  # fmt: skip
    expected, its = plain_descent(table, on, rate, spare, latest, sweeps)
    assert count == its
    assert found.tolist() == expected.tolist()


def plain_descent(
    table: BudgetTable, on: IntArray, rate: float, spare: float, latest: float, sweeps: int
) -> tuple[IntArray, int]:
    """Every change tried by placing all anew."""
    on, best, count, changed = on.copy(), ends(table, on), 0, True
    while changed and count < sweeps:
        changed, count = False, count + 1
        for task in table.order.tolist():
            for p in range(table.processors):
                extra = price(table, task, p) - price(table, task, int(on[task]))
                if p == on[task] or extra > spare or rate * extra >= best:
                    continue
                end = ends(table, moved(on, task, p))
                if end + rate * extra < best * (1 - HELPS) and (end <= latest or end < best):
                    on, best, spare, changed = moved(on, task, p), end, spare - extra, True
    return on, count


def price(table: BudgetTable, task: int, p: int) -> float:
    money: FloatArray = table.money
    return float(money[task * table.processors + p])


@settings(max_examples=60, deadline=None)
@given(situation=any_priced(), later=some_leave, seed=seeds)
def test_what_shortens(situation: Situation, later: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = table_of(situation, later)
    on = table.cheapest_assignment
    makespan, total = max(table.ends_anyhow, ends(table, on)), table.spent_on(on)
    pairs = rng.permutation(table.pairs(on)).astype(np.int32)
    shortening = Shortening(table, on, pairs, total, makespan)
    for share in rng.choice([100.0, 2.0, 1.5, 1.2, 1.1, 1.0], 6):  # less money, or more again
        limit = total * float(share)
        expected = plain_shortening(table, pairs, total, limit, makespan)
        assert shortening.take_within(limit).tolist() == expected


def plain_shortening(
    table: BudgetTable, pairs: IntArray, total: float, limit: float, makespan: float
) -> list[int]:
    """Every change tried in turn by placing all anew."""
    current, taken = table.cheapest_assignment.copy(), []
    for pair in pairs.tolist():
        task, p = divmod(pair, table.processors)
        extra = price(table, task, p) - price(table, task, int(current[task]))
        if total + extra > limit:
            continue
        end = max(table.ends_anyhow, ends(table, moved(current, task, p)))
        if end < makespan * (1 - SHORTER):
            current, makespan, total = moved(current, task, p), end, total + extra
            taken.append(pair)
    return taken
