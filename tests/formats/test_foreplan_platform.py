"""The foreplan platform file: what it means, and what is wrong with a wrong one."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from foreplan.errors import InputError
from foreplan.formats import load_platform, platform_from_dict, platform_to_dict
from foreplan.model import Link, Platform, Processor


def test_the_example_of_the_design() -> None:
    platform = platform_from_dict(
        {
            "processors": {
                "r1": {"speed": 1.0, "price": 0.5, "host": "a"},
                "r2": {"host": "b"},
                "r4": {"joins": 15},
                "r5": None,
            },
            "network": {"bandwidth": 4.0, "startup": 2},
            "links": [["a", "b", {"time_per_unit": 1.5}], ["r5", "a", {"startup": 0}]],
        }
    )
    assert platform.processor_names == ("r1", "r2", "r4", "r5")
    assert platform.host_names == ("a", "b", "r4", "r5")
    assert platform.price.tolist() == [0.5, 0, 0, 0]
    assert platform.joins.tolist() == [0, 0, 15, 0]
    assert platform.leaves.tolist() == [math.inf] * 4
    assert platform.time_per_unit[0].tolist() == [0, 1.5, 0.25, 0.25]
    assert platform.startup[0].tolist() == [0, 2, 2, 0]
    assert np.array_equal(platform.time_per_unit, platform.time_per_unit.T)
    assert np.array_equal(platform.startup, platform.startup.T)


def test_the_network_defaults_to_one_unit_per_second() -> None:
    platform = load_platform({"processors": {"a": None, "b": None}})
    assert platform.network == Link(1.0, 0.0)
    assert platform.time_per_unit.tolist() == [[0, 1], [1, 0]]


def test_prices_are_per_second_or_by_billing_unit_and_links_have_theirs() -> None:
    content = {
        "processors": {
            "a": {"price": 2, "billing": 3600},
            "b": {"price": 1, "billing": 0},
            "c": None,
        },
        "network": {"price": 0.5, "startup": 1},
        "links": [
            ["a", "b", {"price": 0}],
            ["b", "c", {"time_per_unit": 3}],  # silent on the price: the network's
        ],
    }
    platform = platform_from_dict(content)
    assert platform.billing.tolist() == [3600, 0, 0]
    assert platform.network == Link(1.0, 1.0, 0.5)
    assert platform.link_price.tolist() == [[0, 0, 0.5], [0, 0, 0.5], [0.5, 0.5, 0]]
    assert platform_to_dict(platform) == {
        "processors": {"a": {"price": 2, "billing": 3600}, "b": {"price": 1}, "c": {}},
        "network": {"time_per_unit": 1, "startup": 1, "price": 0.5},
        "links": [
            ["a", "b", {"time_per_unit": 1, "price": 0}],
            ["b", "c", {"time_per_unit": 3}],
        ],
    }


def test_nothing_is_said_of_money_where_all_is_free() -> None:
    platform = platform_from_dict({"processors": {"a": None, "b": None}})
    assert not platform.billing.any()
    assert not platform.link_price.any()
    assert platform_to_dict(platform) == {
        "processors": {"a": {}, "b": {}},
        "network": {"time_per_unit": 1},
    }


def test_bandwidth_zero_is_fine_where_nothing_uses_it() -> None:
    one_host = {"r1": {"host": "a"}, "r2": {"host": "a"}}
    platform = load_platform({"processors": one_host, "network": {"bandwidth": 0}})
    assert math.isinf(platform.network.time_per_unit)
    linked = {
        "processors": {"a": None, "b": None},
        "network": {"bandwidth": 0},
        "links": [["b", "a", {"bandwidth": 2}]],
    }
    assert load_platform(linked).time_per_unit.tolist() == [[0, 0.5], [0.5, 0]]
    assert platform_to_dict(load_platform(linked))["network"] == {"bandwidth": 0}


AB: dict[str, Any] = {"a": None, "b": None, "c": {"host": "a"}}
WRONG: list[tuple[Any, str, str]] = [
    (3, "", "expected a mapping, not 3"),
    ({}, "", "'processors' is missing, or 'hosts'"),
    ({"processors": {}}, "processors", "no processors"),
    ({"processors": None}, "processors", "no processors"),
    ({"tasks": {"a": None}}, "", "this is a workflow, not a platform"),
    ({"workflow": {}}, "", "this is a workflow, not a platform"),
    ({"processor": {"a": None}}, "", "did you mean 'processors'?"),
    ({"processors": {"a": {"sped": 1}}}, "processors.a", "did you mean 'speed'?"),
    ({"processors": {"a": 2}}, "processors.a", "expected a mapping, not 2"),
    ({"processors": {"1": None, 1: None}}, "processors", "'1' is given twice"),
    ({"processors": {"a": {"speed": 0}}}, "processors.a.speed", "more than 0"),
    ({"processors": {"a": {"speed": True}}}, "processors.a.speed", "not true"),
    ({"processors": {"a": {"price": -1}}}, "processors.a.price", "must not be negative"),
    ({"processors": {"a": {"billing": -60}}}, "processors.a.billing", "must not be negative"),
    ({"processors": {"a": {"billing": "hour"}}}, "processors.a.billing", "expected a number"),
    ({"processors": {"a": {"billing": math.inf}}}, "processors.a.billing", "finite"),
    ({"processors": {"a": {"billing": 1e-310}}}, "processors.a.billing", "out of range"),
    ({"processors": {"a": {"biling": 60}}}, "processors.a", "did you mean 'billing'?"),
    ({"processors": {"a": {"joins": -1}}}, "processors.a.joins", "must not be negative"),
    ({"processors": {"a": {"leaves": math.inf}}}, "processors.a.leaves", "finite"),
    ({"processors": {"a": {"joins": 5, "leaves": 5}}}, "processors.a.leaves", "not after"),
    ({"processors": {"a": {"leaves": 0}}}, "processors.a.leaves", "not after"),
    ({"processors": {"a": {"host": 1.5}}}, "processors.a.host", "quote it"),
    ({"processors": AB, "network": 3}, "network", "expected a mapping"),
    ({"processors": AB, "network": {"latency": 3}}, "network", "unknown field 'latency'"),
    ({"processors": AB, "network": {"startup": -3}}, "network.startup", "negative"),
    ({"processors": AB, "network": {"price": -0.1}}, "network.price", "negative"),
    ({"processors": AB, "network": {"billing": 60}}, "network", "unknown field 'billing'"),
    ({"processors": AB, "links": [["a", "b", {"price": -1}]]}, "links[0].price", "negative"),
    ({"processors": AB, "links": [["a", "b", {"price": "1"}]]}, "links[0].price", "a number"),
    (
        {"processors": AB, "network": {"bandwidth": 1, "time_per_unit": 1}},
        "network",
        "bandwidth or time_per_unit, not both",
    ),
    (
        {"processors": AB, "network": {"bandwidth": 0}},
        "network.bandwidth",
        "the bandwidth is 0, and 'a' and 'b' have no other link",
    ),
    ({"processors": AB, "network": {"bandwidth": 1e-310}}, "network.bandwidth", "out of range"),
    ({"processors": AB, "links": {}}, "links", "expected a list"),
    ({"processors": AB, "links": [["a", "b"]]}, "links[0]", "expected [host, host, {fields}]"),
    ({"processors": AB, "links": [["a", "x", {}]]}, "links[0]", "unknown host 'x'"),
    (
        {"processors": AB, "links": [["b", "c", {}]]},
        "links[0]",
        "'c' is a processor, on the host 'a'",
    ),
    ({"processors": AB, "links": [["a", "a", {}]]}, "links[0]", "both ends are the host 'a'"),
    (
        {"processors": AB, "links": [["a", "b", {}], ["b", "a", {}]]},
        "links[1]",
        "given twice",
    ),
    (
        {"processors": AB, "links": [["a", "b", {"bandwidth": 0}]]},
        "links[0]",
        "the bandwidth between 'a' and 'b' is 0",
    ),
    (
        {
            "processors": AB,
            "network": {"bandwidth": 0},
            "links": [["a", "b", {"startup": 1}]],
        },
        "links[0]",
        "the bandwidth between 'a' and 'b' is 0",
    ),
    ({"processors": AB, "links": [["a", "b", {"speed": 1}]]}, "links[0]", "unknown field"),
    (
        {"processors": AB, "links": [["a", "b", {"time_per_unit": 10**400}]]},
        "links[0].time_per_unit",
        "too large",
    ),
    ({"processors": dict.fromkeys(range(10001))}, "processors", "10,001 hosts"),
]


@pytest.mark.parametrize(("content", "place", "problem"), WRONG)
def test_wrong_content_says_what_and_where(content: Any, place: str, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        platform_from_dict(content)
    assert caught.value.place == place
    assert problem in caught.value.problem


def test_prices_that_differ_by_direction_cannot_be_written() -> None:
    built = Platform.build([Processor("a"), Processor("b")])
    uneven = replace(built, link_price=np.array([[0.0, 1.0], [2.0, 0.0]]))
    with pytest.raises(InputError, match="differs by direction"):
        platform_to_dict(uneven)


def test_links_that_differ_by_direction_cannot_be_written() -> None:
    built = Platform.build([Processor("a"), Processor("b")])
    uneven = Platform(
        built.processor_names,
        built.host_names,
        built.host,
        built.speed,
        built.price,
        built.joins,
        built.leaves,
        built.startup,
        np.array([[0.0, 1.0], [2.0, 0.0]]),
    )
    with pytest.raises(InputError, match="differs by direction"):
        platform_to_dict(uneven)
