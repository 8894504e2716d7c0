"""Random and mangled input at every reader: an InputError, or a workflow; never anything else."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foreplan.errors import InputError
from foreplan.files import decode
from foreplan.formats import (
    FORMATS,
    platform_from_dict,
    platform_to_dict,
    workflow_from_dict,
    workflow_from_wfformat,
    workflow_to_dict,
)
from foreplan.formats.texts import parse_yaml
from foreplan.model import Platform, Workflow

SOME = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.differing_executors]
)

SAMPLES = {
    "yaml": "name: x\ntasks:\n  a: {cost: {r1: 14}, outputs: [f]}\n  b: {cost: 20, inputs: [f]}\n"
    "  c: {run: 'ls x', category: k}\n"
    "  d-{i}: {foreach: {i: 1..2}, if: $n > 1, run: 'cat {n} \"{output}\"', outputs: ['g{i}']}\n"
    "  e: {inputs: [{all: 'g{i}', only: $i != 3}]}\n"
    "params: {n: 2}\nedges:\n  - [a, c, 18]\nfiles: {f: 10}\n",
    "json": '{"tasks": {"a": {"cost": 1, "outputs": ["f"]}, "b": {"inputs": ["f"]}},\n'
    ' "edges": [["a", "b", 1.5e3]], "files": {"f": 3}}',
    "wfformat": json.dumps(
        {
            "name": "w",
            "workflow": {
                "specification": {
                    "tasks": [
                        {"id": "a", "name": "a_ID1", "children": ["b"], "outputFiles": ["f"]},
                        {"id": "b", "parents": ["a"], "inputFiles": ["f"]},
                    ],
                    "files": [{"id": "f", "sizeInBytes": 4}],
                },
                "execution": {
                    "tasks": [
                        {"id": "a", "runtimeInSeconds": 1, "command": {"program": "p"}},
                        {"id": "b", "runtimeInSeconds": 2},
                    ]
                },
            },
        }
    ),
    "stg": "2\n0 0 0\n1 5 1 0\n2 7 1 0\n3 0 2 1 2\n# end\n",
    "dagman": 'JOB a a.sub\nJOB b {\n x = 1\n}\nPARENT a \\\n CHILD b\nVARS a x="1"\n'
    "RETRY b 2\nCATEGORY b k\nSCRIPT PRE a run.sh\nPRIORITY ALL_NODES 3\n# end\n",
    "dot": 'digraph G {\n 1 [size="20", alpha="0.2"]\n 1 -> 2 [size ="5"]\n 2 [size="1"]\n}\n',
}
PLATFORM: dict[str, Any] = {
    "processors": {"r1": {"speed": 2, "host": "a"}, "r2": None, "r3": {"joins": 1, "leaves": 2}},
    "network": {"bandwidth": 2, "startup": 1},
    "links": [["a", "r2", {"time_per_unit": 1}]],
}


def _read(format: str, raw: bytes) -> Workflow | None:
    try:
        return FORMATS[format].read(decode(raw), "name")
    except InputError as error:
        _check_message(error)
        return None


def _check_message(error: InputError) -> None:
    """It says something, not too much, and can be printed."""
    assert 0 < len(str(error).encode()) < 3000


def test_there_is_a_sample_of_every_format() -> None:
    assert SAMPLES.keys() == FORMATS.keys()
    for format, sample in SAMPLES.items():
        assert _read(format, sample.encode()) is not None


@pytest.mark.parametrize("format", FORMATS)
@SOME
@given(raw=st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode)))
def test_random_bytes(format: str, raw: bytes) -> None:
    workflow = _read(format, raw)
    assert workflow is None or workflow.n_tasks > 0


@st.composite
def mangled(draw: st.DrawFn, text: str) -> bytes:
    """The text with pieces cut, doubled, swapped or overwritten."""
    raw = text.encode()
    for _ in range(draw(st.integers(1, 4))):
        a, b = sorted((draw(st.integers(0, len(raw))), draw(st.integers(0, len(raw)))))
        words = [b"-", b"1e999", b"NaN", b"null", b"true", b"&x", b"*x", b"[", b"{", b'"', b"a"]
        words += [b"9" * 400, b"\xff", b"\0", b"#", b"!!int", b"\n", b"1", b"\\ud800"]
        new = draw(st.one_of(st.sampled_from(words), st.binary(max_size=3)))
        inserted = raw[:a] + new + raw[a:]
        raw = draw(st.sampled_from([raw[:a], raw[:a] + raw[b:], raw[:b] + raw[a:], inserted]))
    return raw


@pytest.mark.parametrize("format", FORMATS)
@SOME
@given(data=st.data())
def test_mangled_text(format: str, data: st.DataObject) -> None:
    workflow = _read(format, data.draw(mangled(SAMPLES[format])))
    assert workflow is None or workflow_to_dict(workflow)["tasks"]


HUGE = st.sampled_from([10**400, -(10**400)])
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 5),
    st.floats(),
    HUGE,
    st.text(max_size=4),
    st.sampled_from(["a", "b", "r1", "f", "\ud800"]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(SCALARS.filter(bool), inner, max_size=3)
    ),
    max_leaves=6,
)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path to every value inside a document."""
    inner: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value))
    return [path] + [p for key, child in inner for p in _places(child, (*path, key))]


@st.composite
def altered(draw: st.DrawFn, document: Any) -> Any:
    """The document with some values replaced, left out, or added."""
    copy = json.loads(json.dumps(document))
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(_places(copy)))
        if not path:
            return draw(VALUES)
        holder = copy
        for key in path[:-1]:
            holder = holder[key]
        action = draw(st.sampled_from(["replace", "remove", "add"]))
        if action == "replace":
            holder[path[-1]] = draw(VALUES)
        elif action == "remove":
            del holder[path[-1]]
        elif isinstance(holder, dict):
            holder[draw(SCALARS)] = draw(VALUES)
        else:
            holder.append(draw(VALUES))
    return copy


@SOME
@given(altered(parse_yaml(SAMPLES["yaml"])))
def test_altered_workflows(content: Any) -> None:
    _only_input_errors(workflow_from_dict, content)


@SOME
@given(altered(json.loads(SAMPLES["wfformat"])))
def test_altered_traces(content: Any) -> None:
    _only_input_errors(workflow_from_wfformat, content)


@SOME
@given(altered(PLATFORM))
def test_altered_platforms(content: Any) -> None:
    _only_input_errors(platform_from_dict, content)


def _only_input_errors(read: Any, content: Any) -> None:
    try:
        result = read(content)
    except InputError as error:
        _check_message(error)
    else:
        assert isinstance(result, Workflow | Platform)
        if isinstance(result, Platform):
            assert platform_to_dict(result)["processors"]
