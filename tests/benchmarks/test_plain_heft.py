"""Our HEFT gives what the plain one in C++ gives, to the bit; and figures beside their goals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import foreplan
from foreplan.errors import InputError
from foreplan.generators import generate, generate_platform
from foreplan.model import Estimates, Platform, Processor, Workflow
from foreplan_benchmarks import plain_heft
from foreplan_benchmarks.goals import Goal
from foreplan_benchmarks.plain_heft import Pairs, PlainHeft, load_plain_heft, same_plans

needs_compiler = pytest.mark.skipif(plain_heft.compiler() is None, reason="no C++ compiler")
PAIRS = Pairs(1_000, 8, "alike", 5_000, 0.3, 0.2, 1.5, 1.55, 0.4, same=True)


@pytest.fixture(scope="module")
def library() -> Iterator[Path]:
    with plain_heft.built() as made:
        yield made


@pytest.fixture(scope="module")
def plain(library: Path) -> PlainHeft:
    return load_plain_heft(library)


def compare(workflow: Workflow, platform: Platform, plain: PlainHeft) -> None:
    schedule = foreplan.plan(workflow, platform, "heft")
    foreplan.check_schedule(schedule)
    given = plain(workflow, platform, Estimates.declared(workflow, platform))
    assert same_plans(schedule, given)


@needs_compiler
@pytest.mark.parametrize("spread", [0.0, 0.7], ids=["alike", "differ"])
@pytest.mark.parametrize("cores", [1, 3])
@pytest.mark.parametrize("seed", range(4))
def test_the_plans_are_the_same(spread: float, cores: int, seed: int, plain: PlainHeft) -> None:
    platform = generate_platform(
        3 + 2 * seed, cores=cores, bandwidth_spread=spread, startup=0.1 * seed, seed=seed
    )
    for tasks, ccr in ((1, 1.0), (40, 0.1), (150, 2.0)):
        made = generate("random_layered", seed=seed, tasks=tasks, ccr=ccr, processors=3 + 2 * seed)
        compare(made, platform, plain)
    compare(generate("montage", seed=seed, images=9), platform, plain)


@needs_compiler
def test_ties_and_tasks_that_take_no_time(plain: PlainHeft) -> None:
    # all ranks of a level are equal, and gaps are filled to the last second
    made = generate("random_layered", seed=3, tasks=120)
    whole = replace(made, base_cost=np.floor(made.base_cost) % 4, item_size=made.item_size // 8)
    compare(whole, Platform.build([Processor(f"p{k}") for k in range(4)]), plain)


def test_goals() -> None:
    assert PAIRS.verdict == "reached"
    assert replace(PAIRS, ratio=1.7, first_ratio=9.0).verdict == "missed"
    assert replace(PAIRS, first_ratio=9.0).verdict == "reached, at first missed"
    assert replace(PAIRS, tasks=10_000).verdict == "missed"
    assert replace(PAIRS, same=False).verdict == "the plans differ"
    assert str(Goal(1_500, at_least=True)) == ">= 1,500"
    assert [Goal(5, at_least=True).verdict(x) for x in (4.9, 5)] == ["missed", "reached"]


def test_without_a_compiler_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(InputError, match="no C\\+\\+ compiler"), plain_heft.built():
        pass


@needs_compiler
def test_a_row_of_the_table(library: Path) -> None:
    row = plain_heft.beside_plain(20, 2, "differ", library, firsts=1)
    assert row.same
    assert min(row.ratio, row.first_ratio, row.foreplan_milliseconds, row.first_milliseconds) > 0
