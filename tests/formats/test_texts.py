"""YAML and JSON texts: the scalars, and what is wrong with a wrong one."""

import math
import subprocess
import sys
from typing import Any

import pytest
import yaml

from foreplan.errors import InputError
from foreplan.formats.texts import WrittenNumber, dump_json, dump_yaml, parse_json, parse_yaml

SCALARS: list[tuple[str, object]] = [
    ("true", True),
    ("false", False),
    ("null", None),
    ("~", None),
    ("", None),
    ("yes", "yes"),
    ("No", "No"),
    ("on", "on"),
    ("off", "off"),
    ("0", 0),
    ("-12", -12),
    ("+3", 3),
    ("007", "007"),
    ("0o17", "0o17"),
    ("0x1f", "0x1f"),
    ("1_000", "1_000"),
    ("1:30", "1:30"),
    ("2001-01-01", "2001-01-01"),
    ("1e3", 1000.0),
    ("1.5E-2", 0.015),
    (".5", 0.5),
    ("2.", 2.0),
    (".inf", math.inf),
    ("-.INF", -math.inf),
    ("'12'", "12"),
    ('"true"', "true"),
    ("!!str 12", "12"),
    ("<<", "<<"),
    ("=", "="),
]


@pytest.fixture(params=["C", "Python"])
def _parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both parsers: the fast one, and the one that is always there."""
    if request.param == "Python":
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    elif not hasattr(yaml, "CSafeLoader"):
        pytest.skip("PyYAML was built without libyaml")


@pytest.mark.usefixtures("_parser")
@pytest.mark.parametrize(("text", "value"), SCALARS)
def test_scalars_are_those_of_yaml_1_2(text: str, value: object) -> None:
    parsed = parse_yaml(f"k: {text}\n")
    assert parsed == {"k": value}
    assert isinstance(parsed, dict)
    found = parsed["k"]
    assert type(found) is type(value) or (isinstance(found, WrittenNumber) and str(found) == text)


def test_nan() -> None:
    parsed: Any = parse_yaml("[.nan, .NaN]")
    assert all(math.isnan(value) for value in parsed)


WRONG_YAML = [
    ("", "", "the file is empty"),
    ("# nothing\n", "", "the file is empty"),
    ("---\n", "", "the file is empty"),
    ("a: [1, 2", "line 1, column 4", "the [ that begins here is not closed"),
    ("a: 1\nb: {c: 1\nd: [", "line ", "that begins here is not closed"),
    ("a: 'x", "line 1, column 4", "the quote that begins here is not closed"),
    ("a: 1\n\tb: 2", "line 2", "indent with spaces"),
    ("a: 1\nb: 2\na: 3", "line 3", "the key 'a' is given twice"),
    ("é: 1\nrun: echo 'ü # b'", "line 2, column 6", "YAML ends this command before `# b'`"),
    ("a:\n  b: 1\n  b: 1", "line 3", "the key 'b' is given twice"),
    ("a: &x [1]\nb: *x", "line 1, column 4", "anchors (&a), aliases (*a)"),
    ("a: !!python/object:os.system {}", "line 1, column 4", "is not allowed"),
    ("a: !thing 3", "line 1, column 4", "the tag '!thing' is not allowed"),
    ("? [1]\n: 2", "line 1", "a key must be a name, not [1]"),
    ("a: 1\n---\nb: 2", "line 2", "second document"),
    ("[" * 5000, "line 1, column 101", "nested too deeply"),
    ("x: " + "9" * 5000, "line 1, column 4", "too many digits"),
    ("a: \0", "", "not YAML"),
]


@pytest.mark.usefixtures("_parser")
@pytest.mark.parametrize(("text", "place", "problem"), WRONG_YAML)
def test_wrong_yaml(text: str, place: str, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_yaml(text)
    assert caught.value.place.startswith(place)
    assert problem in caught.value.problem


def test_an_alias_bomb_is_refused_at_its_first_anchor() -> None:
    bomb = "a: &a [x, x]\n" + "".join(
        f"{b}: &{b} [*{a}, *{a}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    )
    with pytest.raises(InputError, match="line 1"):
        parse_yaml(bomb)


WRONG_JSON = [
    ("", "", "the file is empty"),
    (" \n", "", "the file is empty"),
    ('{"a": 1', "line 1, column 8", "the text ends too early"),
    ('{"a": 1,\n "b": [1, 2', "line 2, column 12", "the text ends too early"),
    ('{"a" 1}', "line 1, column 6", "expecting ':' delimiter"),
    ("{'a': 1}", "line 1, column 2", "not JSON"),
    ('{"a": 1} x', "line 1, column 10", "extra data"),
    ('{"t": {"a": 1, "b": 2, "a": 3}}', "line 1", "the key 'a' is given twice"),
    ("[" * 100_000, "", "nested too deeply"),
    ("9" * 5000, "", "too many digits"),
]


@pytest.mark.parametrize(("text", "place", "problem"), WRONG_JSON)
def test_wrong_json(text: str, place: str, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_json(text)
    assert caught.value.place == place
    assert problem in caught.value.problem


def test_the_yaml_written_is_quoted_for_both_versions_of_yaml() -> None:
    content = {"names": ["yes", "1e3", "007", "x", "1:30"], "amounts": [1e300, 1e-9, 3, 0.5]}
    assert parse_yaml(dump_yaml(content)) == content
    assert yaml.safe_load(dump_yaml(content)) == content


def test_a_value_used_twice_is_written_twice() -> None:
    shared = ["x"]
    assert parse_yaml(dump_yaml({"a": shared, "b": shared})) == {"a": ["x"], "b": ["x"]}


def test_the_json_written_has_a_line_per_entry() -> None:
    content = {"name": "é", "tasks": {"a": {"cost": 1}, "b": {}}, "edges": [["a", "b", 2]]}
    text = dump_json(content)
    assert parse_json(text) == content
    assert '    "a": {"cost": 1},\n    "b": {}\n' in text


def test_reading_yaml_is_left_to_those_who_need_it() -> None:
    code = "import sys, foreplan.formats; sys.exit('yaml' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
