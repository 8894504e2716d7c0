"""The world file: what it means, and what is wrong with a wrong one."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foreplan.errors import InputError
from foreplan.formats import load_world
from foreplan.model.world import WorldFile

EXAMPLE: dict[str, Any] = {
    "durations": {"n3": 1.4, "n7": 0.8},
    "availability": {"r1": [[0, 1.0], [30, 0.6]]},
    "bandwidth": [["a", "b", [[0, 1.0], [40, 0.5]]]],
    "failures": {"r2": 55, "r3": [20, 90]},
}
YAML = """\
durations: {n3: 1.4, n7: 0.8}
availability: {r1: [[0, 1.0], [30, 0.6]]}
bandwidth: [[a, b, [[0, 1.0], [40, 0.5]]]]
failures: {r2: 55, r3: [20, 90]}
"""


def test_the_example_of_the_design() -> None:
    assert load_world(EXAMPLE) == WorldFile(
        durations={"n3": 1.4, "n7": 0.8},
        availability={"r1": ((0, 1.0), (30, 0.6))},
        bandwidth={("a", "b"): ((0, 1.0), (40, 0.5))},
        failures={"r2": (55,), "r3": (20, 90)},
    )


def test_yaml_json_and_a_dict_are_the_same(tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_text(YAML)
    (tmp_path / "w.JSON").write_text(json.dumps(EXAMPLE))
    assert load_world(tmp_path / "w.yaml") == load_world(str(tmp_path / "w.JSON"))
    assert load_world(tmp_path / "w.yaml") == load_world(EXAMPLE)


def test_what_is_silent_goes_as_estimated() -> None:
    empty: dict[str, Any] = {
        "durations": None,
        "availability": {},
        "bandwidth": [],
        "failures": None,
    }
    assert load_world({}) == load_world(empty) == WorldFile()


def test_numbers_may_be_names() -> None:
    world = load_world({"durations": {1: 2}, "failures": {2: [1, 2, 3]}})
    assert world == WorldFile(durations={"1": 2.0}, failures={"2": (1, 2, 3)})


WRONG: list[tuple[Any, str, str]] = [
    (3, "", "expected a path or a mapping"),
    ({"tasks": {}}, "", "this is a workflow, not a world"),
    ({"processors": {}}, "", "this is a platform, not a world"),
    ({"duration": {}}, "", "did you mean 'durations'?"),
    ({"durations": [1]}, "durations", "expected a mapping"),
    ({"durations": {"a": 0}}, "durations.a", "more than 0"),
    ({"durations": {"a": -1}}, "durations.a", "must not be negative"),
    ({"durations": {"a": "slow"}}, "durations.a", "expected a number, not 'slow'"),
    ({"durations": {"a": math.nan}}, "durations.a", "finite"),
    ({"durations": {"a": True}}, "durations.a", "not true"),
    ({"durations": {"a": 1e-40}}, "durations.a", "out of range"),
    ({"durations": {"a": 1e40}}, "durations.a", "out of range"),
    ({"durations": {"1": 1, 1: 2}}, "durations", "'1' is given twice"),
    ({"durations": {1.5: 2}}, "durations", "quote it"),
    ({"availability": {"p": 0.5}}, "availability.p", "expected a list, not 0.5"),
    ({"availability": {"p": [0, 1]}}, "availability.p[0]", "expected a list, not 0"),
    ({"availability": {"p": [[0, 1, 2]]}}, "availability.p[0]", "expected [time, value]"),
    ({"availability": {"p": [[0, 1.1]]}}, "availability.p[0]", "from 0 to 1, not 1.1"),
    ({"availability": {"p": [[0, -0.1]]}}, "availability.p[0]", "must not be negative"),
    ({"availability": {"p": [[-1, 1]]}}, "availability.p[0]", "must not be negative"),
    ({"availability": {"p": [[5, 1], [5, 0]]}}, "availability.p[1]", "5 comes after 5"),
    ({"bandwidth": {}}, "bandwidth", "expected a list"),
    ({"bandwidth": [["a", "b"]]}, "bandwidth[0]", "expected [host, host, [[time, factor]"),
    ({"bandwidth": [["a", "a", []]]}, "bandwidth[0]", "both ends are the host 'a'"),
    ({"bandwidth": [["a", "b", []], ["b", "a", []]]}, "bandwidth[1]", "given twice"),
    ({"bandwidth": [["a", "b", [[1, 2], [0, 2]]]]}, "bandwidth[0][1]", "must ascend"),
    ({"bandwidth": [["a", "b", [[1, -2]]]]}, "bandwidth[0][0]", "must not be negative"),
    ({"failures": {"p": "never"}}, "failures.p", "expected a number"),
    ({"failures": {"p": None}}, "failures.p", "not null"),
    ({"failures": {"p": []}}, "failures.p", "not an empty list"),
    ({"failures": {"p": [9, 3]}}, "failures.p[1]", "must ascend, but 3 comes after 9"),
    ({"failures": {"p": [9, 9]}}, "failures.p[1]", "must ascend"),
    ({"failures": {"p": [[1, 2]]}}, "failures.p[0]", "expected a number"),
]


@pytest.mark.parametrize(("content", "place", "problem"), WRONG)
def test_wrong_content_says_what_and_where(content: Any, place: str, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        load_world(content)
    assert caught.value.place == place
    assert problem in caught.value.problem


def test_errors_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    path.write_text("durations: {a: 0}")
    with pytest.raises(InputError) as caught:
        load_world(path)
    assert (caught.value.source, caught.value.place) == (str(path), "line 1: durations.a")
    with pytest.raises(InputError, match=r"w\.txt: a world is a \.yaml, \.yml or \.json file"):
        load_world(tmp_path / "w.txt")
    with pytest.raises(InputError, match="no such file"):
        load_world(tmp_path / "none.yaml")


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 60),
    st.floats(),
    st.sampled_from([10**400, -(10**400), "a", "b", "r1", "n3", "", "\ud800"]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(SCALARS.filter(bool), inner, max_size=3)
    ),
    max_leaves=8,
)


@st.composite
def altered(draw: st.DrawFn) -> Any:
    """The example with a few values replaced, left out or added, at any depth."""
    copy = json.loads(json.dumps(EXAMPLE))
    for _ in range(draw(st.integers(1, 3))):
        holder: Any = copy
        while True:
            keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            deeper = isinstance(holder[key], dict | list) and draw(st.booleans())
            if deeper:
                holder = holder[key]
                continue
            action = draw(st.sampled_from(["replace", "remove", "add"]))
            if action == "remove":
                del holder[key]
            elif action == "replace":
                holder[key] = draw(VALUES)
            elif isinstance(holder, dict):
                holder[draw(SCALARS)] = draw(VALUES)
            else:
                holder.append(draw(VALUES))
            break
    return copy


def check_message(error: InputError) -> None:
    """It says something, not too much, and can be printed."""
    assert 0 < len(str(error).encode()) < 3000


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.differing_executors])
@given(st.one_of(altered(), VALUES))
def test_altered_worlds_are_read_or_refused(content: Any) -> None:
    try:
        world = load_world(content)
    except InputError as error:
        check_message(error)
        return
    assert all(0 < factor < math.inf for factor in world.durations.values())
    traces = [*world.availability.values(), *world.bandwidth.values()]
    for trace in traces:
        times = [time for time, _ in trace]
        assert times == sorted(set(times))
        assert all(0 <= value < math.inf for _, value in trace)
    assert all(value <= 1 for trace in world.availability.values() for _, value in trace)
    for times_of in world.failures.values():
        assert times_of
        assert list(times_of) == sorted(set(times_of))
