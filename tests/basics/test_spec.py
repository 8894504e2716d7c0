"""Spec strings: `name[key=value,...]`, read and written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreplan.errors import InputError
from foreplan.spec import parse_spec, spec_of, split_specs


@dataclass(frozen=True)
class Thing:
    """Something with options of every kind."""

    name: ClassVar[str] = "thing"
    on: bool = True
    count: int = 3
    share: float = 0.5
    label: str = "x"


@dataclass(frozen=True)
class Plain:
    """Something without options."""

    name: ClassVar[str] = "plain"


@pytest.mark.parametrize(
    ("text", "name", "options"),
    [
        ("heft", "heft", {}),
        ("  gtp/c ", "gtp/c", {}),
        ("heft[]", "heft", {}),
        ("heft[insertion=false]", "heft", {"insertion": "false"}),
        (" gtp/c [ period = 30 , x = a b ] ", "gtp/c", {"period": "30", "x": "a b"}),
        ("slack[planner=dls[k=v,l=w],p=1]", "slack", {"planner": "dls[k=v,l=w]", "p": "1"}),
        ("a[b=c[d=e[f=g]]]", "a", {"b": "c[d=e[f=g]]"}),
        ("a[b=c=d]", "a", {"b": "c=d"}),
    ],
)
def test_parse(text: str, name: str, options: dict[str, str]) -> None:
    assert parse_spec(text) == (name, options)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "names nothing"),
        ("   ", "names nothing"),
        ("[a=b]", "names nothing"),
        ("heft]", "not of the form"),
        ("insertion=false", "not of the form"),
        ("heft[a=b", "lacks its closing bracket"),
        ("heft[a=b]x", "lacks its closing bracket"),
        ("heft[a=b]]", "a ] too many"),
        ("heft[a=b[c]", "lacks a closing bracket"),
        ("heft[a]", "'a' in 'heft[a]' is not of the form key=value"),
        ("heft[=b]", "not of the form key=value"),
        ("heft[a=]", "not of the form key=value"),
        ("heft[a=b,a=c]", "'a' stands twice"),
    ],
)
def test_bad_specs(text: str, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_spec(text)
    assert problem in caught.value.problem
    assert repr(text) in caught.value.problem


@given(st.text("ab[],= ", max_size=12))
def test_any_text_is_a_spec_or_an_input_error(text: str) -> None:
    try:
        name, options = parse_spec(text)
    except InputError:
        return
    assert name == name.strip() != ""
    assert all(key.strip() and value.strip() for key, value in options.items())


def test_a_list_of_specs() -> None:
    assert split_specs("heft, slack[planner=dls,x=1] ,gtp/c") == [
        "heft",
        "slack[planner=dls,x=1]",
        "gtp/c",
    ]
    assert split_specs("heft") == ["heft"]
    with pytest.raises(InputError, match="lacks a closing bracket"):
        split_specs("heft[a=b,dls")


def test_only_what_differs_is_written() -> None:
    assert spec_of(Plain()) == "plain"
    assert spec_of(Thing()) == "thing"
    assert spec_of(Thing(on=False)) == "thing[on=false]"
    assert spec_of(Thing(label="y", count=4, share=0.25)) == "thing[count=4,share=0.25,label=y]"


@given(st.booleans(), st.integers(), st.floats(allow_nan=False), st.sampled_from(["x", "dls[k=v]"]))
def test_what_is_written_reads_back(on: bool, count: int, share: float, label: str) -> None:
    name, options = parse_spec(spec_of(Thing(on, count, share, label)))
    read = Thing(
        options.get("on", "true") == "true",
        int(options.get("count", "3")),
        float(options.get("share", "0.5")),
        options.get("label", "x"),
    )
    assert (name, read) == ("thing", Thing(on, count, share, label))
