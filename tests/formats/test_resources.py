"""What tasks ask for and what hosts have: what a file means, what is wrong, and what comes back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foreplan.errors import InputError
from foreplan.formats import (
    load,
    load_platform,
    platform_from_dict,
    platform_to_dict,
    save,
    save_platform,
    workflow_from_dict,
    workflow_to_dict,
)
from foreplan.formats.texts import parse_yaml
from foreplan.model import Platform, Processor, TaskSpec, Workflow
from foreplan.model.amounts import Amount
from foreplan.model.resources import Host, Request
from repeated import examples

PLATFORM = """
hosts:
  big:    {cores: 16, memory: 64GB, gpus: 2, speed: 2.0, price: 0.01, labels: [avx512]}
  laptop: {cores: 4, memory: 16GiB, resources: {scratch: 500GB}}
pools: {licence-x: 1, database: 3}
links: [[big, laptop, {bandwidth: 8}]]
"""
WORKFLOW = """
pools: {licence-x: 2}
defaults: {memory: 1GB, retries: 2}
tasks:
  align: {cores: 4, memory: 8GB, cost: 40, on: [big*, avx512], pools: {licence-x: 1}}
  train: {gpus: 1, memory: 2GB + 1.5 * inputs, not_on: laptop, retries: 0}
  sort:  {cores: [1, 2, 4, 8], parallel: 0.9}
  join:  {cores: [2, 4], parallel: {2: 30, "4": 20.5}, resources: {scratch: 1GB}}
  plain: {cost: 1}
"""


def document(text: str) -> Any:
    return parse_yaml(text)


def test_a_host_s_cores_are_processors() -> None:
    platform = load_platform(document(PLATFORM))
    assert platform.processor_names[:2] == ("big-1", "big-2")
    assert platform.processor_names[16:] == ("laptop-1", "laptop-2", "laptop-3", "laptop-4")
    assert platform.host_names == ("big", "laptop")
    assert platform.speed.tolist() == [2.0] * 16 + [1.0] * 4
    assert platform.host_amounts("memory").tolist() == [64e9, 16 * 1024.0**3]
    assert platform.host_amounts("gpus").tolist() == [2, 0]
    assert platform.host_amounts("scratch").tolist() == [0, 5e11]
    assert platform.labels(0) == ("avx512",)
    assert platform.pools == {"licence-x": 1, "database": 3}
    assert platform.time_per_unit[0, 1] == 0.125


def test_processors_stand_before_the_cores_of_hosts() -> None:
    content = {"hosts": {"b": {"cores": 2}}, "processors": {"a": {"speed": 3}}}
    assert load_platform(content).processor_names == ("a", "b-1", "b-2")
    assert load_platform(content).hosts == ()  # nothing but cores: as in the papers


def test_the_host_of_processors_may_have_something() -> None:
    content: dict[str, Any] = {
        "processors": {"a": None, "b": {"host": "h"}, "c": {"host": "h"}},
        "hosts": {"h": {"memory": "8GB"}, "a": {"gpus": 1}},
    }
    platform = load_platform(content)
    assert platform.host_amounts("memory").tolist() == [np.inf, 8e9]
    assert platform.host_amounts("gpus").tolist() == [1, 0]


def test_the_price_of_a_host_is_shared_by_its_cores() -> None:
    content = {"hosts": {"h": {"cores": 4, "price": 2, "price_of": "host"}}}
    platform = load_platform(content)
    assert platform.price.tolist() == [0.5] * 4
    assert platform.hosts[0].whole_price
    assert platform_to_dict(platform)["hosts"] == content["hosts"]


def test_what_tasks_ask_for() -> None:
    workflow = load(document(WORKFLOW))
    align, train, sort, join, plain = (workflow.spec(t).request for t in range(5))
    default = Amount("1GB")
    assert align == Request(
        cores=(4,), memory=Amount("8GB"), pools=(("licence-x", 1.0),), on=("big*", "avx512")
    )
    assert train == Request(gpus=1, memory=Amount("2GB + 1.5 * inputs"), not_on=("laptop",))
    assert sort == Request(cores=(1, 2, 4, 8), parallel=0.9, memory=default)
    assert join is not None
    assert join.seconds == (30.0, 20.5)
    assert join.resources == (("scratch", Amount("1GB")),)
    assert plain == Request(memory=default)
    assert [workflow.spec(t).retries for t in range(5)] == [2, 0, 2, 2, 2]
    assert workflow.pools == {"licence-x": 2}
    assert workflow.base_cost[3] == 30.0  # the seconds of the smallest width


def test_one_core_and_nothing_else_is_no_request() -> None:
    workflow = load({"tasks": {"a": {"cost": 1, "cores": 1, "gpus": 0, "on": []}}})
    assert workflow.spec(0).request is None


def test_a_default_share_goes_with_the_default_cores() -> None:
    content = {
        "defaults": {"cores": [1, 2], "parallel": 0.5},
        "tasks": {"a": {"cores": 3}, "b": {}},
    }
    workflow = load(content)
    assert workflow.spec(0).request == Request(cores=(3,))
    assert workflow.spec(1).request == Request(cores=(1, 2), parallel=0.5)


def test_without_resources_a_workflow_is_that_of_the_papers() -> None:
    workflow = load(document(WORKFLOW), resources=False)
    assert all(spec.request is None for spec in workflow.specs.values())
    assert workflow.pools == {}
    plain = load({"tasks": {"a": {"cost": 1, "memory": "3GB"}}}, resources=False)
    assert dict(plain.specs) == {}


WRONG_TASKS = [
    ({"cores": 0}, ".cores", "1 to"),
    ({"cores": 2.5}, ".cores", "whole number"),
    ({"cores": []}, ".cores", "no number of cores"),
    ({"cores": [2, 1], "parallel": 1}, ".cores", "ascend"),
    ({"cores": [1, 2]}, "", "must say its parallel share"),
    ({"cores": 2, "parallel": 1.5}, ".parallel", "from 0 to 1"),
    ({"cores": [1, 2], "parallel": {"1": 4}}, ".parallel", "seconds are needed"),
    ({"cores": [1, 2], "parallel": {"1": 4, "x": 2}}, ".parallel", "whole number"),
    ({"cores": [1, 2], "parallel": {"1": 4, "2": 0}}, ".parallel", "more than 0"),
    ({"memory": "8Gb"}, ".memory", "unknown unit 'Gb'"),
    ({"memory": -1}, ".memory", "negative"),
    ({"memory": 8}, ".memory", "8 without a unit is 8 bytes: write 8GB, or 8B"),
    ({"memory": "0.5"}, ".memory", "write 0.5GB, or 0.5B"),
    ({"memory": "1 - 2"}, ".memory", "0 or more"),
    ({"memory": float("inf")}, ".memory", "finite"),
    ({"memory": "1e40GB"}, ".memory", "out of range"),
    ({"memory": "size * 2"}, ".memory", "'size' cannot stand there"),
    ({"memory": "__import__('os')"}, ".memory", "cannot stand there"),
    ({"memory": True}, ".memory", "expected a number"),
    ({"gpus": "1"}, ".gpus", "expected a number"),
    ({"resources": {"cores": 1}}, ".resources.cores", "a field of its own"),
    ({"resources": {"x": "2q"}}, ".resources.x", "unknown unit"),
    ({"pools": {"x": -1}}, ".pools.x", "negative"),
    ({"on": [1.5]}, ".on", "a name is a string"),
    ({"memry": 1}, "", "did you mean 'memory'"),
]


@pytest.mark.parametrize(("fields", "place", "problem"), WRONG_TASKS)
def test_a_wrong_request_says_what_and_where(fields: Any, place: str, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        workflow_from_dict({"tasks": {"a": {"cost": 1, **fields}}})
    assert caught.value.place == f"tasks.a{place}"
    assert problem in caught.value.problem


WRONG_HOSTS: list[tuple[Any, str, str]] = [
    ({"hosts": {"a": {"cores": 0}}}, "hosts.a.cores", "1 to"),
    ({"hosts": {"a": {"memory": "1GB"}}}, "hosts.a", "it has no cores"),
    ({"hosts": {"a": {"cores": 1, "memory": 64}}}, "hosts.a.memory", "write 64GB, or 64B"),
    ({"hosts": {"a": {"coers": 1}}}, "hosts.a", "did you mean 'cores'"),
    ({"hosts": {"a": {"cores": 1, "memory": "2 * inputs"}}}, "hosts.a.memory", "with a unit"),
    ({"hosts": {"a": {"cores": 1, "memory": "2XB"}}}, "hosts.a.memory", "unknown unit"),
    ({"hosts": {"a": {"cores": 1, "price_of": 3}}}, "hosts.a.price_of", "host or core"),
    (
        {"hosts": {"a": {"cores": 1, "price_of": "host", "billing": 60}}},
        "hosts.a.price_of",
        "leave out billing",
    ),
    ({"hosts": {"a": {"cores": 2}}, "processors": {"a-1": None}}, "hosts.a", "processor 'a-1'"),
    ({"hosts": {"a": {"cores": 2}}, "processors": {"a": None}}, "hosts.a", "is on this host"),
    (
        {"hosts": {"a": {"cores": 2}}, "processors": {"a": {"host": "b"}}},
        "hosts.a",
        "the name of this host",
    ),
    ({"hosts": {"a": {"cores": 2}, "a-1": {"cores": 1}}}, "hosts.a-1", "processor 'a-1'"),
    (
        {"hosts": {"b": {"speed": 2}}, "processors": {"x": {"host": "b"}}},
        "hosts.b.speed",
        "each processor",
    ),
    ({"hosts": {}}, "hosts", "no processors"),
    ({"hosts": {"a": {"cores": 1, "joins": 3, "leaves": 2}}}, "hosts.a.leaves", "host leaves"),
    ({"hosts": {"a": {"cores": 1}}, "pools": {"x": "1"}}, "pools.x", "expected a number"),
]


@pytest.mark.parametrize(("content", "place", "problem"), WRONG_HOSTS)
def test_a_wrong_host_says_what_and_where(content: Any, place: str, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        platform_from_dict(content)
    assert caught.value.place == place
    assert problem in caught.value.problem


def test_defaults_of_tries() -> None:
    content = {"defaults": {"retries": 2, "wait": "10s"}, "tasks": {"a": None, "b": {"wait": 1}}}
    workflow = load(content)
    assert [workflow.spec(t).wait for t in (0, 1)] == [10.0, 1.0]
    assert workflow.spec(1).retries == 2
    with pytest.raises(InputError, match=r"defaults\.wait"):
        load({"defaults": {"wait": "soon"}, "tasks": {"a": None}})


@pytest.mark.parametrize("defaults", [{"memry": 1}, {"run": "x"}])
def test_unknown_defaults(defaults: Any) -> None:
    with pytest.raises(InputError, match="defaults: unknown field"):
        workflow_from_dict({"defaults": defaults, "tasks": {"a": None}})


@pytest.mark.parametrize("suffix", ["yaml", "json"])
def test_the_examples_come_back_from_files(tmp_path: Path, suffix: str) -> None:
    workflow, platform = load(document(WORKFLOW)), load_platform(document(PLATFORM))
    save(workflow, tmp_path / f"w.{suffix}")
    save_platform(platform, tmp_path / f"p.{suffix}")
    again = load(tmp_path / f"w.{suffix}")
    assert dict(again.specs) == dict(workflow.specs)
    assert again.pools == workflow.pools
    assert_same(load_platform(tmp_path / f"p.{suffix}"), platform)
    assert platform_to_dict(platform)["hosts"] == {
        "big": {
            "cores": 16,
            "speed": 2,
            "price": 0.01,
            "memory": "64GB",
            "gpus": 2,
            "labels": ["avx512"],
        },
        "laptop": {"cores": 4, "memory": 16 * 1024**3, "resources": {"scratch": "500GB"}},
    }


def test_a_plain_platform_is_written_as_ever() -> None:
    """Cores alone make no entry of a host: files and journals of before stay as they were."""
    platform = load_platform({"hosts": {"h": {"cores": 2, "speed": 3}}})
    assert platform_to_dict(platform) == {
        "processors": {"h-1": {"speed": 3, "host": "h"}, "h-2": {"speed": 3, "host": "h"}},
        "network": {"time_per_unit": 1},
    }


def assert_same(one: Platform, other: Platform) -> None:
    assert one.processor_names == other.processor_names
    assert one.host_names == other.host_names
    for name in ("host", "speed", "price", "joins", "leaves", "billing", "time_per_unit"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    every = [other.hosts or tuple(map(Host, other.host_names)) for other in (one, other)]
    assert every[0] == every[1]
    assert one.pools == other.pools


WORDS = st.sampled_from(["a", "b", "yes", "1e3", "x: y", "8GB", "é", "h-1", "ssd"])
SIZES = st.one_of(
    st.floats(0, 1e25),
    st.integers(0, 10**14).map(float),
    st.integers(1, 900).map(lambda n: n * 1e9),
    st.integers(1, 900).map(lambda n: n * 1024.0**3),
)
TEXTS = st.sampled_from(
    [
        "8GB",
        "8 GiB",
        "2GB + 1.5 * inputs",
        "(1MB + inputs) * attempt",
        "0",
        "1500000",
        "1500B",
        "2.5e3kB",
    ]
)
SOME = settings(deadline=None, max_examples=examples(100))


@st.composite
def requests(draw: st.DrawFn) -> Request | None:
    widths = tuple(sorted(draw(st.sets(st.integers(1, 64), min_size=1, max_size=4))))
    share: float | None = draw(st.floats(0, 1))
    seconds: tuple[float, ...] = ()
    if draw(st.booleans()):
        share, n = None, len(widths)
        seconds = tuple(draw(st.lists(st.floats(1e-20, 1e20), min_size=n, max_size=n)))
    elif len(widths) == 1 and draw(st.booleans()):
        share = None
    amounts = st.dictionaries(WORDS, TEXTS.map(Amount), max_size=2)
    request = Request(
        cores=widths,
        parallel=share,
        seconds=seconds,
        memory=draw(st.none() | TEXTS.map(Amount)),
        gpus=draw(st.integers(0, 3)),
        resources=tuple(sorted(draw(amounts).items())),
        pools=tuple(sorted(draw(st.dictionaries(WORDS, st.floats(0, 9), max_size=2)).items())),
        on=tuple(draw(st.lists(WORDS, unique=True, max_size=2))),
        not_on=tuple(draw(st.lists(WORDS, unique=True, max_size=2))),
    )
    return None if request == Request() else request


@SOME
@given(asked=st.lists(requests(), min_size=1, max_size=3))
def test_requests_come_back(asked: list[Request | None]) -> None:
    specs = {t: TaskSpec(request=request) for t, request in enumerate(asked) if request}
    names = [f"t{t}" for t in range(len(asked))]
    workflow = Workflow.from_items("w", names, [1.0] * len(names), [], specs=specs)
    content = json.loads(json.dumps(workflow_to_dict(workflow)))
    assert dict(workflow_from_dict(content).specs) == specs


def test_few_bytes_are_written_with_their_unit() -> None:
    """Some formats have no units: what comes of them is read back."""
    asked = {0: TaskSpec(request=Request(memory=Amount("1500")))}
    workflow = Workflow.from_items("w", ["a"], [1.0], [], specs=asked)
    content: dict[str, Any] = workflow_to_dict(workflow)
    assert content["tasks"]["a"]["memory"] == "1500B"
    assert workflow_from_dict(content).spec(0).request == Request(memory=Amount("1500B"))


@st.composite
def platforms(draw: st.DrawFn) -> Platform:
    """Hosts with cores, some of them called and priced as files do, others any way."""
    processors: list[Processor] = []
    has: dict[str, Host] = {}
    for h in range(draw(st.integers(1, 3))):
        host, whole = f"h{h}", draw(st.booleans())
        alike = draw(st.booleans())
        kinds: dict[str, float] = dict(zip(["speed", "price"], [2.0, draw(SIZES)], strict=True))
        cores = range(1, draw(st.integers(1, 4)) + 1)
        for c in cores:
            name = f"{host}-{c}" if alike or draw(st.booleans()) else f"{host}+{c}"
            leaves = np.inf if alike else draw(st.sampled_from([np.inf, 9.0]))
            processors.append(Processor(name, host, **kinds, leaves=leaves))
        amounts = draw(st.dictionaries(st.sampled_from(["memory", "scratch"]), SIZES, max_size=2))
        gpus = draw(st.integers(0, 2))
        amounts |= {"gpus": float(gpus)} if gpus else {}
        labels = tuple(draw(st.lists(WORDS, unique=True, max_size=2)))
        has[host] = Host(host, amounts, labels, whole)
    if draw(st.booleans()):
        draw(st.randoms()).shuffle(processors)
    if draw(st.booleans()):
        processors.insert(0, Processor("alone"))
    return Platform.build(processors, has=has, pools={"x": draw(st.floats(0, 5))})


@SOME
@given(platform=platforms())
def test_platforms_come_back(platform: Platform) -> None:
    content = json.loads(json.dumps(platform_to_dict(platform)))
    assert_same(platform_from_dict(content), platform)
