"""The registry: specs become planners, and a planner's file is all it takes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import foreplan
from foreplan import registry
from foreplan.errors import InputError
from foreplan.spec import spec_of

NAMES = registry.planner_names()

TOY = '''"""A planner of a test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from foreplan.model import Freedom, Schedule, Situation
from foreplan.scheduling.planning import Planning


@dataclass(frozen=True)
class ToyPlanner:
    """Everything on the first processor, one task after the other.

    More to say.
    """

    name: ClassVar[str] = "first-one"
    on: bool = True
    count: int = 3
    share: float = 0.5
    label: str = "x"

    def plan(self, situation: Situation, freedom: Freedom = Freedom.NOT_STARTED) -> Schedule:
        """A schedule of a test."""
        planning = Planning(situation, freedom)
        order = situation.workflow.order
        return planning.schedule(self, planning.place(order, pinned=0 * order))
'''

# Runs in a copy of the package: prints what each spec of the command line gives.
TRY = """
import json, sys
import foreplan
from foreplan import registry
from foreplan.errors import InputError

results = {"home": foreplan.__file__, "names": registry.planner_names()}
for spec in sys.argv[1:]:
    try:
        results[spec] = repr(registry.planner(spec))
    except InputError as error:
        results[spec] = str(error)
wf = foreplan.load({"tasks": {"a": {"cost": 3}, "b": {"cost": 2}}})
pf = foreplan.load_platform({"processors": {"p": {}, "q": {}}})
schedule = foreplan.plan(wf, pf, planner="first-one[count=4]")
foreplan.check_schedule(schedule)
results["plan"] = schedule.to_dict()
print(json.dumps(results))
"""
SPECS = [
    "first-one",
    "first-one[on=no,count=-2,share=1e-3,label=some text]",
    "first-one[on=YES]",
    "first-one[on=maybe]",
    "first-one[count=2.5]",
    "first-one[share=much]",
    "first-one[cuont=2]",
    "first-two",
]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with one more file among the planners, and a private one."""
    home = tmp_path_factory.mktemp("copy")
    source = Path(foreplan.__file__).parent
    shutil.copytree(source, home / "foreplan", ignore=shutil.ignore_patterns("__pycache__"))
    (home / "foreplan" / "scheduling" / "planners" / "first_one.py").write_text(TOY)
    (home / "foreplan" / "scheduling" / "planners" / "_helper.py").write_text(
        "raise SystemExit(9)\n"
    )
    return home


def run(copy: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(copy)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def tried(copy: Path) -> dict[str, Any]:
    results: dict[str, Any] = json.loads(run(copy, TRY, *SPECS))
    assert Path(results["home"]).parent == copy / "foreplan"
    return results


def test_a_file_dropped_in_is_a_planner(tried: dict[str, Any]) -> None:
    assert tried["names"] == sorted([*NAMES, "first-one"])
    assert tried["plan"] == {
        "planner": "first-one[count=4]",
        "makespan": 5.0,
        "cost": 0.0,
        "tasks": {
            "a": {
                "processor": "p",
                "host": "p",
                "cores": 1,
                "memory": 0.0,
                "start": 0.0,
                "finish": 3.0,
            },
            "b": {
                "processor": "p",
                "host": "p",
                "cores": 1,
                "memory": 0.0,
                "start": 3.0,
                "finish": 5.0,
            },
        },
    }


def test_options_by_type(tried: dict[str, Any]) -> None:
    assert tried[SPECS[0]] == "ToyPlanner(on=True, count=3, share=0.5, label='x')"
    assert tried[SPECS[1]] == "ToyPlanner(on=False, count=-2, share=0.001, label='some text')"
    assert tried[SPECS[2]] == tried[SPECS[0]]
    assert tried[SPECS[3]] == "first-one[on]: 'maybe' is not true or false"
    assert tried[SPECS[4]] == "first-one[count]: '2.5' is not a whole number"
    assert tried[SPECS[5]] == "first-one[share]: 'much' is not a number"


def test_unknown_names_in_the_copy(tried: dict[str, Any]) -> None:
    assert tried[SPECS[6]] == (
        "unknown option of first-one 'cuont' (did you mean 'count'?); "
        "known: count, label, on, share"
    )
    assert "did you mean 'first-one'?" in tried[SPECS[7]]


def test_the_commands_know_it_too(copy: Path) -> None:
    code = "from foreplan.cli import main; main()"
    rows = {row["name"]: row for row in json.loads(run(copy, code, "planners", "--json"))}
    assert rows["first-one"] == {
        "name": "first-one",
        "options": {"on": True, "count": 3, "share": 0.5, "label": "x"},
        "about": "Everything on the first processor, one task after the other.",
    }


def test_the_planners_of_the_issue_are_there() -> None:
    wanted = {"heft", "cpop", "peft", "dls", "fcp", "lmt", "hbmct", "min-min", "max-min"}
    assert wanted <= set(NAMES)
    assert sorted(NAMES) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_planner_says_what_it_does(name: str) -> None:
    cls = registry.planner_class(name)
    about = (cls.__doc__ or "").strip().splitlines()[0]
    assert about.endswith(".") or about.endswith(":")
    assert not about.startswith(cls.__name__ + "(")  # what a dataclass says of itself


@pytest.mark.parametrize("name", NAMES)
def test_a_planner_and_its_spec(name: str) -> None:
    made = registry.planner(name)
    assert made.name == name
    assert spec_of(made) == name
    assert registry.planner(spec_of(made)) == made


def test_a_spec_with_options_round_trip() -> None:
    made = registry.planner(" heft[ insertion = No ] ")
    assert spec_of(made) == "heft[insertion=false]"
    assert registry.planner(spec_of(made)) == made != registry.planner("heft")
    assert spec_of(registry.planner("heft[insertion=true]")) == "heft"


def test_an_unknown_planner_lists_the_known_and_the_nearest() -> None:
    with pytest.raises(InputError) as caught:
        registry.planner("hetf[insertion=false]")
    assert str(caught.value) == (
        f"unknown planner 'hetf' (did you mean 'heft'?); known: {', '.join(NAMES)}"
    )
    with pytest.raises(InputError) as caught:
        registry.planner("zzzzzz")
    assert "did you mean" not in str(caught.value)


@pytest.mark.parametrize("name", ["__init__", "_helper", "min_min", "HEFT", "../heft", "heft.py"])
def test_only_planners_are_found(name: str) -> None:
    with pytest.raises(InputError, match="unknown planner"):
        registry.planner(name)


def test_an_unknown_option() -> None:
    with pytest.raises(InputError) as caught:
        registry.planner("heft[insertoin=false]")
    assert "unknown option of heft 'insertoin' (did you mean 'insertion'?)" in str(caught.value)
    with pytest.raises(InputError, match="unknown option of fcp 'k'; known: none"):
        registry.planner("fcp[k=1]")
    with pytest.raises(InputError, match="'maybe' is not true or false") as caught:
        registry.planner("heft[insertion=maybe]")
    assert caught.value.place == "heft[insertion]"


def test_a_planner_is_imported_alone() -> None:
    code = (
        "import sys; from foreplan import registry; registry.planner('heft');"
        "print(sorted(m for m in sys.modules if m.startswith('foreplan.scheduling.planners.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['foreplan.scheduling.planners.heft']"


def test_planners_of_one_paper_share_a_file() -> None:
    for name, file in (("cpop", "heft"), ("max-min", "min_min"), ("gain2", "loss_gain")):
        assert registry.planner_class(name).__module__ == f"foreplan.scheduling.planners.{file}"
    for names in (NAMES, registry.strategy_names()):
        assert len(set(names)) == len(names)


def test_aliases_of_strategies_say_so() -> None:
    for alias, of in (("gtp/r", "gtp"), ("gtp/c/r", "gtp/c")):
        assert (registry.strategy_class(alias).__doc__ or "").startswith(f"An alias of {of}:")
