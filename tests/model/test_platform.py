"""Platform: hosts, links, their mean, and who is there when."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields

import numpy as np
import pytest

from foreplan.errors import InputError
from foreplan.model import Link, Platform, Processor


def two_hosts() -> Platform:
    """Processors p and q on host a, r on a host of its own name."""
    processors = [Processor("p", "a"), Processor("q", "a", speed=2, price=3), Processor("r")]
    return Platform.build(processors, Link(9.0), {("a", "r"): Link(2.0, startup=3.0)})


def test_hosts() -> None:
    pf = two_hosts()
    assert (pf.n_processors, pf.n_hosts) == (3, 2)
    assert pf.host_names == ("a", "r")
    assert pf.host.tolist() == [0, 0, 1]
    assert pf.speed.tolist() == [1, 2, 1]
    assert pf.price.tolist() == [0, 3, 0]


def test_links_lead_both_ways_and_a_host_needs_none() -> None:
    pf = two_hosts()
    assert pf.time_per_unit.tolist() == [[0, 2], [2, 0]]
    assert pf.startup.tolist() == [[0, 3], [3, 0]]


def test_the_network_is_the_link_of_all_others() -> None:
    processors = [Processor(name) for name in "abc"]
    pf = Platform.build(processors, Link(5.0, 1.0), {("c", "a"): Link(2.0)})
    assert pf.time_per_unit.tolist() == [[0, 5, 2], [5, 0, 5], [2, 5, 0]]
    assert pf.startup.tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    assert pf.network == Link(5.0, 1.0)


def test_the_mean_link_is_over_ordered_pairs_of_processors() -> None:
    # of the 6 ordered pairs, 4 are between the hosts and 2 inside host a
    assert two_hosts().mean_link == Link(time_per_unit=4 * 2 / 6, startup=4 * 3 / 6)


def test_the_mean_link_of_unlike_links() -> None:
    links = {("a", "b"): Link(1.0, 6.0), ("a", "c"): Link(2.0), ("b", "c"): Link(6.0)}
    pf = Platform.build([Processor(name) for name in "abc"], None, links)
    assert pf.mean_link == Link(time_per_unit=3.0, startup=2.0)
    assert pf.mean_link_among(np.array([0, 2], dtype=np.int32)) == Link(2.0, 0.0)
    assert pf.mean_link_among(np.array([1], dtype=np.int32)) == Link(0.0, 0.0)


def test_the_mean_link_of_a_single_processor() -> None:
    assert Platform.build([Processor("p")], Link(5.0, 5.0)).mean_link == Link(0.0, 0.0)


def test_links_alike() -> None:
    abc = [Processor(name) for name in "abc"]
    assert Platform.build(abc).links_alike
    assert two_hosts().links_alike
    assert not Platform.build(abc, Link(1.0), {("a", "b"): Link(2.0)}).links_alike
    assert not Platform.build(abc, Link(1.0), {("b", "c"): Link(1.0, startup=1.0)}).links_alike
    assert not Platform.build([Processor("p", "h"), Processor("q", "h")]).links_alike


def test_present() -> None:
    processors = [Processor("p"), Processor("q", joins=2.0), Processor("r", joins=1.0, leaves=2.0)]
    pf = Platform.build(processors)
    assert pf.present(0.0).tolist() == [True, False, False]
    assert pf.present(1.0).tolist() == [True, False, True]
    assert pf.present(2.0).tolist() == [True, True, False]


def test_no_processors() -> None:
    with pytest.raises(InputError, match="no processors"):
        Platform.build([])


def test_nothing_can_be_written_to() -> None:
    pf = two_hosts()
    arrays = {f.name: getattr(pf, f.name) for f in fields(pf)}
    arrays = {name: value for name, value in arrays.items() if isinstance(value, np.ndarray)}
    assert len(arrays) == 9
    for name, array in arrays.items():
        assert not array.flags.writeable, name
    with pytest.raises(FrozenInstanceError):
        pf.network = Link()  # type: ignore[misc]


def test_what_data_and_begun_units_cost() -> None:
    processors = [Processor("a", price=1, billing=60), Processor("b"), Processor("c", host="b")]
    free = Platform.build([Processor("a", price=1)])
    assert (free.billing.tolist(), free.link_price.tolist()) == ([0], [[0]])
    assert free.adds_up
    pf = Platform.build(processors, Link(1.0, 0.0, 0.5), {("b", "a"): Link(price=2.0)})
    assert pf.billing.tolist() == [60, 0, 0]
    assert pf.link_price.tolist() == [[0, 2], [2, 0]]
    assert not pf.adds_up
