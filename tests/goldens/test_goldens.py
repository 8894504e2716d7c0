"""The papers' worked examples: exact times, ranks, and the optimum they are measured against."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import foreplan
from foreplan import registry
from foreplan.model import Schedule, Situation
from foreplan.scheduling.margins import plan_to_dict
from foreplan.scheduling.planning import Planning
from twins.optimal import optimal

HERE = Path(__file__).parent
MAKESPANS = {"topcuoglu": 80, "selective-figure1": 67.5, "budget-figure1": 99.14}
LATE = HERE / "topcuoglu-r4-joins-at-15.platform.yaml"


def files(example: str) -> tuple[Path, Path]:
    return HERE / f"{example}.workflow.yaml", HERE / f"{example}.platform.yaml"


def expected(example: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((HERE / f"{example}.expected.json").read_text())
    return content


def planned(workflow: Path, platform: Path, planner: str) -> Schedule:
    schedule = foreplan.plan(
        foreplan.load(workflow), foreplan.load_platform(platform), planner=planner
    )
    foreplan.check_schedule(schedule)
    return schedule


def start(example: str) -> Situation:
    workflow, platform = files(example)
    return Situation.at_start(foreplan.load(workflow), foreplan.load_platform(platform))


def assert_same_plan(ours: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert ours["makespan"] == pytest.approx(wanted["makespan"], rel=1e-12)
    assert list(ours["tasks"]) == list(wanted["tasks"])
    for task, run in wanted["tasks"].items():
        ours_of_it = {key: ours["tasks"][task][key] for key in ("processor", "start", "finish")}
        assert ours_of_it == {
            "processor": run["processor"],
            "start": pytest.approx(run["start"], rel=1e-12, abs=1e-12),
            "finish": pytest.approx(run["finish"], rel=1e-12),
        }


@pytest.mark.parametrize(("example", "makespan"), MAKESPANS.items())
def test_heft_gives_the_printed_times(example: str, makespan: float) -> None:
    wanted = expected(example)["heft"]
    assert wanted["makespan"] == makespan  # the file holds what the paper prints
    assert_same_plan(planned(*files(example), "heft").to_dict(), wanted)


def test_heft_by_the_command() -> None:
    workflow, platform = files("topcuoglu")
    code = "from foreplan.cli import main; main()"
    command = [sys.executable, "-c", code, "plan", str(workflow), "-p", str(platform), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    printed = json.loads(done.stdout)
    assert printed["planner"] == "heft"
    assert printed == plan_to_dict(planned(workflow, platform, "heft"))
    assert_same_plan(printed, expected("topcuoglu")["heft"])


def test_upward_ranks() -> None:
    situation = start("topcuoglu")
    ranks = dict(
        zip(situation.workflow.task_names, Planning(situation).upward_rank.tolist(), strict=True)
    )
    assert ranks == pytest.approx(expected("topcuoglu")["rank_u"], abs=5e-7)


def test_dls() -> None:
    schedule = planned(*files("topcuoglu"), "dls")
    assert schedule.makespan == expected("topcuoglu")["dls"]["makespan"] == 91


def test_the_optimum() -> None:
    situation = start("topcuoglu")
    best = optimal(situation)
    tasks = range(situation.workflow.n_tasks)
    schedule = Schedule(
        "optimal",
        situation.workflow,
        situation.platform,
        np.array([best[t][0] for t in tasks], dtype=np.int32),
        np.array([best[t][1] for t in tasks]),
        np.array([best[t][2] for t in tasks]),
    )
    foreplan.check_schedule(schedule)
    assert schedule.makespan == expected("topcuoglu")["optimum"] == 73


def test_a_processor_that_joins_later_is_not_planned_for() -> None:
    workflow, platform = files("topcuoglu")
    schedule = planned(workflow, LATE, "heft")
    tasks = schedule.to_dict()["tasks"]
    assert tasks == planned(workflow, platform, "heft").to_dict()["tasks"]
    assert schedule.makespan == 80
    assert schedule.busy[schedule.platform.processor_names.index("r4")] == 0


def test_a_processor_that_has_joined_is_planned_for() -> None:
    # the same platform once r4 is there: its costs and its links count
    workflow, platform = foreplan.load(files("topcuoglu")[0]), foreplan.load_platform(LATE)
    late = Situation(workflow, platform, Situation.at_start(workflow, platform).estimates, now=15)
    assert Planning(late).usable.tolist() == [0, 1, 2, 3]
    schedule = registry.planner("heft").plan(late)
    foreplan.check_schedule(schedule, late)
    assert schedule.start.min() == 15
    assert (schedule.processor == 3).any()
