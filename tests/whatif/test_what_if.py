"""What-if before the start: cases by hand, and what must hold of every answer."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import foreplan
from foreplan.engine.driver import Driver
from foreplan.errors import InputError
from foreplan.model import Expectation, Platform, Situation, Workflow
from foreplan.whatif import answer, before_start
from foreplan.whatif.answer import knee
from foreplan.whatif.changes import Change, question
from foreplan.whatif.machines import Park

pytestmark = pytest.mark.usefixtures("checked")


def alike(n: int, cost: float = 6) -> Workflow:
    """Tasks that do not know of each other."""
    return foreplan.load({"tasks": {f"t{i}": {"cost": cost} for i in range(n)}})


def machines(**processors: dict[str, Any]) -> Platform:
    return foreplan.load_platform({"processors": processors})


def test_adding_by_hand() -> None:
    told = foreplan.what_if(alike(4), machines(p={"price": 2}), add="p:1..4")
    assert (told.present.makespan, told.present.cost) == (24, 48)
    assert [row.makespan for row in told.alternatives] == [12, 12, 6, 6]
    assert [row.saves for row in told.alternatives] == [12, 12, 18, 18]
    assert {row.cost for row in told.alternatives} == {48}
    assert [row.add for row in told.alternatives] == [{"p": k} for k in (1, 2, 3, 4)]
    assert all(row.taken for row in told.alternatives)
    assert told.knee == 1  # 7.5 below the chord from (0, 24) to (4, 6); the next, 3, is 4.5 below


def test_adding_in_the_middle() -> None:
    # p runs one until 6; the new one takes the second from 3 to 9 and the fourth from 9 to 15
    told = foreplan.what_if(alike(4), machines(p={"price": 2}), add=["p:1"], at=3)
    assert (told.now, told.at) == (0, 3)
    assert told.present.makespan == 24
    (row,) = told.alternatives
    assert (row.makespan, row.cost, row.saves, row.taken) == (15, 48, 9, True)


def test_money_by_the_hour_and_for_transfers() -> None:
    hourly = {"price": 2, "billing": 10}
    told = foreplan.what_if(alike(4), machines(p=hourly), "p:1..3")
    assert (told.present.makespan, told.present.cost) == (24, 3 * 20)
    assert [row.cost for row in told.alternatives] == [2 * 40, 2 * 40, 4 * 20]
    # in the middle of it: p from 0 to 12, the new one from 3 to 15
    (row,) = foreplan.what_if(alike(4), machines(p=hourly), "p:1", at=3).alternatives
    assert (row.makespan, row.cost) == (15, 40 + 40)
    (row,) = foreplan.what_if(alike(4), machines(p=hourly), "p[price=1,billing=0]:1").alternatives
    assert row.cost == 40 + 12
    # q is lost at 3: its begun unit is paid, and p works until 24
    (row,) = foreplan.what_if(alike(4), machines(p=hourly, q=hourly), remove="q", at=3).alternatives
    assert (row.makespan, row.cost) == (24, 60 + 20)


def test_what_was_sent_is_not_paid_again() -> None:
    chain: dict[str, Any] = {
        "tasks": {"a": {"cost": {"p": 1, "q": 99}}, "b": {"cost": {"p": 99, "q": 1}}},
        "edges": [["a", "b", 4]],
    }
    content = {"processors": {"p": None, "q": {"price": 3}}, "network": {"price": 0.5}}
    wf, pf = foreplan.load(chain), foreplan.load_platform(content)
    for at in (0.0, 0.5, 1.0, 3.0, 5.5, 6.0):  # before it is sent, on its way, there, all done
        told = foreplan.what_if(wf, pf, "q:1", at=at)
        assert (told.present.makespan, told.present.cost) == (6, 3 + 2)
        assert told.alternatives[0].cost == 3 + 2
    # what is on its way to q when that is lost was paid in vain; the new one is sent it again
    (row,) = foreplan.what_if(wf, pf, "q:1", "q", at=3).alternatives
    assert (row.makespan, row.cost) == (3 + 4 + 1, 2 + 3 + 2)


def test_losing_one_with_what_it_runs() -> None:
    told = foreplan.what_if(alike(4), machines(p={"price": 2}, q={"price": 2}), remove="q", at=3)
    assert (told.present.makespan, told.present.cost) == (12, 48)
    (row,) = told.alternatives
    assert row.makespan == 24  # three more on p from 6 on
    assert row.cost == 48 + 3 * 2  # what it had done comes to nothing, but was paid for
    assert (row.saves, row.taken, row.change) == (-12, True, "remove q")


def test_losing_the_data_on_its_host() -> None:
    chain: dict[str, Any] = {
        "tasks": {name: {"cost": {"p": 10, "q": 2, "r": 20}} for name in "ab"},
        "edges": [["a", "b", 100]],
    }
    wf = foreplan.load(chain)
    told = foreplan.what_if(wf, machines(p={}, q={}, r={}), remove="q", at=3)
    assert told.present.makespan == 4
    assert told.alternatives[0].makespan == 3 + 10 + 10  # `a` was done, but must be made again
    # with another processor on its host the data stay, and need not even move
    pf = machines(p={"host": "x"}, q={"host": "x"}, r={})
    assert foreplan.what_if(wf, pf, remove="q", at=3).alternatives[0].makespan == 3 + 10


def test_losing_each() -> None:
    pf = machines(p={}, q={}, idle={"speed": 0.001})
    told = foreplan.what_if(alike(4), pf, remove="each")
    assert [row.remove for row in told.alternatives] == [("p",), ("q",), ("idle",)]
    assert [row.makespan for row in told.alternatives] == [24, 24, 12]
    assert [row.taken for row in told.alternatives] == [True, True, False]
    assert (told.knee, told.counts) == (None, None)


def test_nothing_left() -> None:
    told = foreplan.what_if(alike(2), machines(p={}), remove="p", at=7)
    (row,) = told.alternatives
    assert math.isinf(row.makespan)
    assert told.to_dict()["alternatives"][0]["makespan"] is None
    # but one that is added takes over
    (row,) = foreplan.what_if(alike(2), machines(p={}), "p[speed=2]:1", "p", 7).alternatives
    assert (row.makespan, row.change) == (10, "add 1 p[speed=2], remove p")  # one was done


def test_nothing_left_that_is_large_enough() -> None:
    wide = foreplan.load({"tasks": {"a": {"cost": 10, "cores": 2}}})
    pf = foreplan.load_platform({"hosts": {"h": {"cores": 2}, "small": {"cores": 1}}})
    told = foreplan.what_if(wide, pf, remove="h-1")
    assert (told.present.makespan, told.alternatives[0].makespan) == (10, math.inf)


def test_beyond_the_end() -> None:
    told = foreplan.what_if(alike(4), machines(p={}, q={}), "p:1..3", ["q"], at=12.5)
    assert {row.makespan for row in told.alternatives} == {12}
    assert not any(row.taken for row in told.alternatives)
    assert told.knee is None


def test_all_combinations() -> None:
    told = foreplan.what_if(alike(8), machines(p={}, q={"speed": 2}), ["p:0..2", "q:1..2"], "each")
    assert len(told.alternatives) == 3 * 2 * 2
    assert told.alternatives[0].change == "add 1 q, remove p"
    assert told.alternatives[0].add == {"p": 0, "q": 1}
    assert told.knee is None


def test_the_knee() -> None:
    assert knee([0, 1, 2, 3, 4], [100, 50, 40, 35, 34]) == 1
    assert knee([0, 1, 2, 3, 4], [100, 75, 50, 25, 0]) is None  # a straight line has none
    assert knee([0, 1, 2], [100, 100, 100]) is None  # nothing improves
    assert knee([0, 1, 2], [100, 100, 50]) is None  # all above the chord
    assert knee([0, 1], [100, 50]) is None


def park(**processors: dict[str, Any]) -> Park:
    content = {
        "processors": processors,
        "network": {"time_per_unit": 9, "startup": 2, "price": 0.5},
        "links": [
            ["a", "b", {"time_per_unit": 1, "price": 2}],
            ["a", "c", {"time_per_unit": 3, "price": 4}],
        ],
    }
    wf = foreplan.load(
        {"tasks": {"s": {"cost": {"a": 4, "b": 8, "c": 12, "d": 1}}, "t": {"cost": 6}}}
    )
    pf = foreplan.load_platform(content)
    return Park(wf, pf, Situation.at_start(wf, pf).estimates)


def test_what_a_new_one_is_like() -> None:
    known = park(a={"speed": 2, "price": 5, "billing": 60}, b={"billing": 7}, c={})
    texts = ["a:2", "b[speed=4,price=1,billing=9]:1", "new[speed=2]:1", "c[host=a]:1"]
    (change,) = question(texts, [], known.platform.processor_names).changes
    pf, estimates = known.grown(change, at=7)
    assert pf.processor_names[3:] == ("a+1", "a+2", "b+1", "new", "c+1")
    assert pf.host_names[3:] == ("a+1", "a+2", "b+1", "new")
    assert pf.host[-1] == 0  # on the host that it was put on
    assert pf.speed[3:].tolist() == [2, 2, 4, 2, 1]
    assert pf.price[3:].tolist() == [5, 5, 1, 0, 0]
    assert pf.billing.tolist() == [60, 7, 0, 60, 60, 9, 0, 0]
    assert set(pf.joins[3:].tolist()) == {7}
    # `s` has costs by processor only: the mean 8 at the mean speed 4 / 3; `t` has a base cost
    assert estimates.cost[0, 3:] == pytest.approx([4, 4, 2, 8 * (4 / 3) / 2, 12])
    assert estimates.cost[1, 3:] == pytest.approx([3, 3, 1.5, 3, 6])
    link = pf.time_per_unit
    assert np.array_equal(link, link.T)
    assert not link.diagonal().any()
    assert link[3].tolist() == [2, 1, 3, 0, 2, 1, 9]  # to its like: the median of 1 and 3
    assert link[5].tolist() == [1, 5, 9, 1, 1, 0, 9]  # b's: 1 and 9
    assert set(link[6, :6].tolist()) == {9}
    assert pf.startup[3, 0] == 2
    price = pf.link_price
    assert np.array_equal(price, price.T)
    assert price[3].tolist() == [3, 2, 4, 0, 3, 2, 0.5]  # to its like: the median of 2 and 4
    assert price[5].tolist() == [2, 1.25, 0.5, 2, 2, 0, 0.5]  # b's: 2 and 0.5
    assert price[6].tolist() == [0.5] * 6 + [0]


def test_names_that_are_taken() -> None:
    known = park(**{name: {} for name in ("a", "b", "c")}, d={"host": "a+1"})
    (change,) = question(["a:2"], [], known.platform.processor_names).changes
    assert known.grown(change, 0)[0].processor_names[4:] == ("a+2", "a+3")


def test_a_name_with_a_colon() -> None:
    asked = question(["tcp://x:80"], [], ["tcp://x:80"])
    assert asked.changes[0].add[0][1] == 1
    assert len(question(["tcp://x:80:2..3"], [], ["tcp://x:80"]).changes) == 2


def test_the_present_is_left_alone() -> None:
    wf = alike(4)
    expected = Expectation.declared(wf, machines(p={}, q={}))
    stage = before_start(wf, expected, "heft")
    stage.advance(3.0)
    arrays = {k: np.copy(v) for k, v in stage.coordinator.state.arrays._asdict().items()}
    judge = answer.Judge(stage, 3.0)
    for texts, gone in (["p:2"], ()), ([], ("q",)):
        (change,) = question(texts, gone, ("p", "q")).changes
        judge.after(change)
        judge._to_the_end(judge._changed(change))
    for name, value in stage.coordinator.state.arrays._asdict().items():
        np.testing.assert_array_equal(value, arrays[name], err_msg=name)
    stage.coordinator.check_state()
    assert Driver(stage.coordinator, None).coordinator.plan is stage.plan()


@pytest.mark.parametrize(
    ("add", "remove", "at", "problem"),
    [
        ((), (), None, "nothing is to be changed"),
        (("z:1",), (), None, r"unknown processor 'z'; known: p, q; .*'z\[speed=2\]:1'"),
        (("z[price=2]:1",), (), None, "unknown processor 'z'"),
        (("p:x",), (), None, "'x' in --add 'p:x' is not a number"),
        (("p:0",), (), None, "adds nothing"),
        (("p:3..2",), (), None, "adds nothing"),
        (("p[speed=0]:1",), (), None, "the speed in"),
        (("p[price=nan]:1",), (), None, "the price in"),
        (("p[billing=-60]:1",), (), None, "the billing in"),
        (("p[billing=1e-310]:1",), (), None, "the billing in"),
        (("p[biling=60]:1",), (), None, "did you mean 'billing'"),
        (("p[colour=3]:1",), (), None, "unknown option 'colour'"),
        (("p[host=x]:1",), (), None, "unknown host 'x'"),
        (("p:1", "p:2"), (), None, "twice"),
        (("p:1..40", "q:1..40"), (), None, "1,600 alternatives; at most 1,000"),
        (("p:5000",), (), None, "at most 1,000 processors"),
        ((), ("z",), None, "unknown processor 'z'; known: p, q; --remove each"),
        ((), ("p", "p"), None, "removed twice"),
        (("p:1",), (), -1.0, "at 0 s or later, not -1"),
        (("p:1",), (), math.nan, "or later"),
        ((), ("late",), 1.0, "it is not there at 1 s"),
    ],
)
def test_bad_questions(add: Any, remove: Any, at: float | None, problem: str) -> None:
    processors: dict[str, Any] = {"p": {}, "q": {}}
    if "late" in remove:
        processors["late"] = {"joins": 5}
    with pytest.raises(InputError, match=problem):
        foreplan.what_if(alike(3), machines(**processors), add, remove, at)


def test_neither_nor_both() -> None:
    with pytest.raises(InputError, match="or a run"):
        foreplan.what_if(alike(1), add="p:1")
    with pytest.raises(InputError, match="not both"):
        foreplan.what_if(alike(1), machines(p={}), add="p:1", run="last")


def test_nobody_must_use_all() -> None:
    assert str(Change()) == "nothing"
    told = foreplan.what_if(alike(3), machines(p={"price": 1}), "p[price=100,speed=0.01]:1..2")
    assert [row.makespan for row in told.alternatives] == [18, 18]
    assert [row.cost for row in told.alternatives] == [18, 18]
    assert not any(row.taken for row in told.alternatives)


def with_hosts() -> Park:
    content = {
        "hosts": {
            "big": {"cores": 2, "memory": "8GB", "price": 4, "price_of": "host", "labels": ["x"]},
            "small": {"cores": 1, "gpus": 1},
        },
        "pools": {"licence": 1},
    }
    wf, pf = (
        foreplan.load({"tasks": {"t": {"cost": 6, "memory": "1GB"}}}),
        foreplan.load_platform(content),
    )
    return Park(wf, pf, Situation.at_start(wf, pf).estimates)


def test_a_new_host_has_what_the_one_has_that_it_is_like() -> None:
    known = with_hosts()
    names, hosts = known.platform.processor_names, known.hosts()
    (change,) = question(["big[price=6]:2", "small-1:1", "new[speed=2]"], [], names, hosts).changes
    pf, estimates = known.grown(change, at=7)
    assert pf.host_names[2:] == ("big+1", "big+2", "small-1+1", "new")
    assert pf.processor_names[3:] == (
        "big+1-1",
        "big+1-2",
        "big+2-1",
        "big+2-2",
        "small-1+1",
        "new",
    )
    assert pf.host_amounts("memory")[2:].tolist() == [8e9, 8e9, math.inf, math.inf]
    assert pf.host_amounts("gpus")[2:].tolist() == [0, 0, 1, 0]
    assert pf.labels(2) == ("x",)
    assert pf.price[3:].tolist() == [3, 3, 3, 3, 0, 0]
    assert pf.pools == known.platform.pools
    assert estimates.needs is known.estimates.needs
    assert estimates.cost.shape == (1, 9)


def test_a_core_of_a_host_with_amounts_comes_with_its_host_only() -> None:
    known = with_hosts()
    names, hosts = known.platform.processor_names, known.hosts()
    (change,) = question(["big-1"], [], names, hosts).changes
    with pytest.raises(InputError, match=r"core of the host 'big'.*--add big"):
        known.grown(change, 0)
    (change,) = question(["big-1[host=big]"], [], names, hosts).changes
    assert known.grown(change, 0)[0].host[-1] == 0
    with pytest.raises(InputError, match="is a host, and cannot be on another"):
        question(["big[host=small]"], [], names, hosts)
