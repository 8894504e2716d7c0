"""What machines cost, as people say it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foreplan.errors import InputError
from foreplan.model import Platform
from foreplan.model.platform import Processor
from foreplan.runs.money import in_words, price_rules, priced, read_price, unused
from foreplan.runs.options import Options


def platform() -> Platform:
    """Two workers, one of two threads."""
    named = (("fast#0", "h1"), ("fast#1", "h1"), ("slow", "h2"))
    return Platform.build([Processor(name, host) for name, host in named])


def machine(p: int) -> str:
    return ("fast@vm-1", "fast@vm-1", "slow@vm-2")[p]


def test_as_the_command_line_says_it() -> None:
    assert read_price("0.02") == ("*", 0.02, 0.0)
    assert read_price("fast*=0.02") == ("fast*", 0.02, 0.0)
    assert read_price("a=b=0.02/3600") == ("a=b", 0.02, 3600.0)


@pytest.mark.parametrize("text", ["", "x", "=1", "a=", "-1", "a=1/0", "a=1/", "nan", "a=inf"])
def test_what_is_no_price_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="--price"):
        read_price(text)


def test_as_code_says_it() -> None:
    assert price_rules(None) == ()
    assert price_rules(2) == (("*", 2.0, 0.0),)
    assert price_rules({"a": 1, "b*": (2, 60)}) == (("a", 1.0, 0.0), ("b*", 2.0, 60.0))
    assert price_rules([["a", 1.0, 60.0]]) == (("a", 1.0, 60.0),)


@pytest.mark.parametrize("price", ["x", -1, math.nan, {"a": "b"}, {"a": (1, 2, 3)}, {"a": ()}])
def test_what_is_no_price_in_code_is_refused(price: Any) -> None:
    with pytest.raises(InputError, match="price"):
        price_rules(price)


@pytest.mark.parametrize(
    ("price", "expected"),
    [
        ({"*": 1, "slow": 2}, [1, 1, 2]),
        ({"slow": 2, "*": 1}, [1, 1, 1]),  # the last that fits
        ({"fast": 1}, [1, 1, 0]),  # the worker
        ({"fast#1": 1}, [0, 1, 0]),
        ({"h2": 1}, [0, 0, 1]),  # the host
        ({"*@vm-1": 1}, [1, 1, 0]),  # the machine
        ({"FAST*": 1}, [0, 0, 0]),
    ],
)
def test_who_is_meant(price: dict[str, float], expected: list[float]) -> None:
    assert priced(platform(), machine, price_rules(price)).price.tolist() == expected


def test_billing_units_and_links() -> None:
    rules = price_rules({"*": (1, 60), "slow": 2})
    pf = priced(platform(), machine, rules, transfer_price=0.5)
    assert pf.billing.tolist() == [60, 60, 0]
    assert pf.link_price.tolist() == [[0, 0.5], [0.5, 0]]
    assert pf.network.price == 0.5
    assert in_words(pf) == "prices: 1 to 2 per second, some paid per begun 1 min; data 0.5 per unit"


def test_who_is_known_keeps_its_price() -> None:
    """Its machine may have no name any more, once it is gone."""
    rules = price_rules({"*@vm-*": 1})
    known = priced(platform(), machine, rules)
    more = Platform.build([Processor(n) for n in (*known.processor_names, "new")])
    now = priced(more, lambda p: "new@vm-3" if p == 3 else "?", rules, 0.0, known)
    assert now.price.tolist() == [1, 1, 1, 1]


def test_a_pattern_that_means_nobody() -> None:
    assert unused(platform(), machine, price_rules({"slow": 1, "slwo": 1})) == ["slwo"]


def test_options_are_kept_in_the_journal() -> None:
    options = Options(price={"a*": (1, 60)}, transfer_price=0.1, budget=7, over_budget="stop")
    back = Options.from_dict(json.loads(json.dumps(options.to_dict())), Path())
    assert back == options
    tracker = back.tracker()
    assert (tracker.budget, tracker.stops, tracker.reserve) == (7, True, 0)
    old = {k: v for k, v in options.to_dict().items() if k in ("on", "strategy")}
    assert not Options.from_dict(old, Path()).tracker().kept


@pytest.mark.parametrize(
    "wrong",
    [
        {"budget": -1.0},
        {"budget": math.nan},
        {"budget": math.inf},
        {"budget": 1.0, "reserve": 1.0},
        {"budget": 1.0, "over_budget": "maybe"},
        {"reserve": 0.1},
        {"over_budget": "stop"},
        {"transfer_price": -1.0},
    ],
)
def test_what_cannot_be_meant(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        Options(**wrong).tracker()


def test_without_prices_nothing_changes() -> None:
    assert not priced(platform(), machine, ()).price.any()
    assert np.array_equal(platform().link_price, priced(platform(), machine, ()).link_price)
