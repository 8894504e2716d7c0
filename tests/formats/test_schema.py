"""The JSON Schemas of the manual and the readers agree: on fields, and on good and bad files."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from foreplan import formats
from foreplan.errors import InputError
from foreplan.formats import foreplan_platform, foreplan_workflow, world
from foreplan.formats.texts import parse_yaml

ROOT = Path(__file__).parents[2]


@cache
def schema(kind: str) -> dict[str, Any]:
    """A schema of the manual."""
    content: dict[str, Any] = json.loads((ROOT / f"docs/schema/{kind}.json").read_text())
    return content


def accepts(kind: str, document: object) -> bool:
    """What the schema says of a document."""
    checker = jsonschema.Draft202012Validator(schema(kind))
    return bool(checker.is_valid(document))


def test_they_are_schemas() -> None:
    for path in (ROOT / "docs/schema").glob("*.json"):
        jsonschema.Draft202012Validator.check_schema(json.loads(path.read_text()))


def test_both_know_the_same_fields_of_a_workflow() -> None:
    whole = schema("workflow")
    assert set(whole["properties"]) == set(foreplan_workflow.FIELDS)
    assert set(whole["$defs"]["task"]["properties"]) == set(foreplan_workflow.TASK_FIELDS)
    defaults = dict(whole["properties"]["defaults"]["properties"])
    by_category = defaults.pop(foreplan_workflow.CATEGORIES)["additionalProperties"]["properties"]
    assert set(defaults) == set(by_category) == set(foreplan_workflow.DEFAULT_FIELDS)
    for fields in (whole["properties"], whole["$defs"]["task"]["properties"], defaults):
        assert all(field["description"].endswith(".") for field in fields.values())


def test_both_know_the_same_fields_of_platforms_and_worlds() -> None:
    whole = schema("platform")
    assert set(whole["properties"]) == set(foreplan_platform.FIELDS)
    for kind, fields in (
        ("processor", foreplan_platform.PROCESSOR_FIELDS),
        ("host", foreplan_platform.HOST_FIELDS),
        ("link", foreplan_platform.LINK_FIELDS),
    ):
        assert set(whole["$defs"][kind]["properties"]) == set(fields)
    assert set(schema("world")["properties"]) == set(world.FIELDS)


LOADS: dict[str, Callable[[Any], object]] = {
    "workflow": formats.load,
    "platform": formats.load_platform,
    "world": formats.load_world,
}
OTHERS = [
    ("platform", "{processors: {r1: {speed: 2, price: 1, host: a}, r2: {joins: 3}}}", True),
    ("platform", "{hosts: {a: {cores: 2, memory: 4GB, labels: x}, b: {cores: 1}}, "
     "network: {bandwidth: 2}, links: [[a, b, {startup: 1}]], pools: {db: 1}}", True),
    ("platform", "{network: {}}", False),
    ("platform", "{processors: {r1: {sped: 2}}}", False),
    ("platform", "{processors: {r1: {speed: 0}}}", False),
    ("platform", "{hosts: {a: {cores: 0}}}", False),
    ("platform", "{hosts: {a: {cores: 2, price_of: rack}}}", False),
    ("platform", "{processors: {r1: }, links: [[r1, r1]]}", False),
    ("world", "{durations: {a: 2}, failures: {r1: 3, r2: [1, 2]}, leaving: {r1: [1, 2]}}", True),
    ("world", "{availability: {r1: [[0, 1], [3, 0.5]]}, bandwidth: [[a, b, [[0, 2]]]]}", True),
    ("world", "{durations: {a: 0}}", False),
    ("world", "{availability: {r1: [[0, 2]]}}", False),
    ("world", "{failures: {r1: []}}", False),
    ("world", "{leaving: {r1: 3}}", False),
    ("world", "{duration: {a: 1}}", False),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "text", "good"), OTHERS)
def test_both_say_the_same_of_platforms_and_worlds(kind: str, text: str, good: bool) -> None:
    (document,) = documents(text)
    assert accepts(kind, document) is good
    try:
        LOADS[kind](document)
    except InputError:
        assert not good
    else:
        assert good


GOOD = """\
tasks: {a: {cost: 1}, b: }
---
tasks: {a: {cost: {r1: 3}}, 7: {category: x}}
edges: [[a, 7, 2.5]]
files: {x: 5}
---
name: n
shell: bash -e
pools: {db: 2}
defaults: {retries: 1, wait: 10s, memory: 1GB, categories: {big: {cores: 4}}}
tasks: {a: {run: echo, timeout: 3, retry: {exit: 1}, pools: {db: 1}, cache: true}, b: {}}
---
params: {n: 3, xs: [a, b], flag: true, none: , rows: [{x: 1, y: two}]}
tasks:
  a-{i}: {foreach: {i: $xs}, if: $n > 2 or ($n < 2 and $flag), cores: $n, run: "cat {i}"}
  b-{i}-{k}: {foreach: {k: 1..3, zip: {i: [1, 2], j: [x, y]}}, if: [not $flag, "$n in [3, 4]"]}
  c-{r.x}: {foreach: {r: $rows}, env: {A: 1, B: x}, container: {image: i, engine: docker}}
---
tasks:
  a-{i}: {foreach: {i: 1..3}, outputs: ["o{i}", {path: "p{i}", temp: true}]}
  b: {inputs: {all: "o{i}"}, outputs: [x], protected: true}
  c: {inputs: [ref, {all: "o{i}", only: $i != 2}], cores: [1, 2], parallel: 0.9}
  d: {cores: [1, 2], parallel: {1: 60, 2: 35}, memory: 2 * inputs, gpus: 1, on: fast*}
  e: {inputs: y z, outputs: {path: v, temp: true}, ignores: w, after: d}
  f: {outputs: 7, inputs: v}
"""
BAD = """\
{}
---
tasks: []
---
tasks: {a: 3}
---
taks: {a: {}}
---
tasks: {a: {cots: 1}}
---
tasks: {a: {cost: fast}}
---
tasks: {a: {cost: -1}}
---
tasks: {a: {run: [echo]}}
---
tasks: {a: {inputs: }}
---
tasks: {a: {after: }}
---
tasks: {a: {inputs: {al: x}}}
---
tasks: {a: {outputs: [{file: x}]}}
---
tasks: {a: {retries: 1.5}}
---
tasks: {a: {wait: 10 days}}
---
tasks: {a: {cache: 1}}
---
tasks: {a: {cores: 0}}
---
tasks: {a: {parallel: 2, cores: [1, 2]}}
---
tasks: {a: {}}
edges: [[a]]
---
defaults: {run: x}
tasks: {a: {}}
---
defaults: {categories: {x: {category: y}}}
tasks: {a: {}}
---
params: [a]
tasks: {a: {}}
---
params: {input: 3}
tasks: {a: {}}
---
params: {x: {y: 1}}
tasks: {a: {}}
---
tasks: {"a-{i}": {foreach: [1, 2]}}
---
tasks: {"a-{i}": {foreach: {i: []}}}
---
tasks: {"a-{i}": {foreach: {i: 5}}}
---
tasks: {"a-{i}": {foreach: {i: many}}}
---
params: {n: 1}
tasks: {a: {if: n > 2}}
---
include: {a: b}
tasks: {a: {}}
"""


def documents(text: str) -> list[Any]:
    """Documents, as JSON has them: names are strings there."""
    return [json.loads(json.dumps(parse_yaml(one))) for one in text.split("---\n")]


@pytest.mark.parametrize("document", documents(GOOD), ids=range(len(documents(GOOD))))
def test_both_accept_what_is_good(document: Any) -> None:
    assert accepts("workflow", document)
    formats.load(document)


@pytest.mark.parametrize("document", documents(BAD), ids=range(len(documents(BAD))))
def test_both_refuse_what_is_bad(document: Any) -> None:
    assert not accepts("workflow", document)
    with pytest.raises(InputError):
        formats.load(document)


def test_examples_are_accepted() -> None:
    found = [*(ROOT / "examples").rglob("*.yaml")]
    workflows = [path for path in found if "tasks:" in path.read_text()]
    assert len(workflows) >= 2
    for path in workflows:
        assert all(accepts("workflow", one) for one in documents(path.read_text())), path
