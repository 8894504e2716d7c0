"""A plan and a run of tasks that take several cores, memory and GPUs."""

from __future__ import annotations

from typing import Any

import foreplan
from foreplan.model import Run, Schedule

WORKFLOW: dict[str, Any] = {
    "name": "fit",
    "files": {"a": 100, "b": 200, "c": 300},
    "tasks": {
        "a": {"cores": 4, "memory": "8GB", "cost": 20, "outputs": ["a"]},
        "b": {"cores": 2, "memory": "6GB", "cost": 20, "outputs": ["b"]},
        "c": {
            "cores": 8,
            "memory": "20GB",
            "cost": 20,
            "inputs": ["a", "b"],
            "outputs": ["c"],
        },
        "d": {"cores": [1, 2, 4, 8], "parallel": 0.9, "cost": 60, "memory": "4GB", "inputs": ["a"]},
        "e": {"gpus": 1, "memory": "10GB", "cost": 20, "inputs": ["b"]},
        "f": {"gpus": 2, "memory": "10GB", "cost": 20, "inputs": ["c"]},
        "g": {"memory": "1GB", "cost": 30, "inputs": ["c"]},
        "h": {"cost": 30, "inputs": ["c"]},
    },
}
PLATFORM: dict[str, Any] = {
    "hosts": {
        "big": {"cores": 8, "memory": "32GB", "gpus": 2, "speed": 2.0},
        "small": {"cores": 4, "memory": "8GB"},
    },
    "processors": {"solo": {"speed": 1.5}},
    "network": {"bandwidth": 100},
}


def planned(workflow: dict[str, Any], platform: dict[str, Any]) -> Schedule:
    return foreplan.plan(foreplan.load(workflow), foreplan.load_platform(platform))


def fitted_plan() -> Schedule:
    return planned(WORKFLOW, PLATFORM)


def fitted_run(strategy: str = "static") -> Run:
    return foreplan.simulate(
        foreplan.load(WORKFLOW), foreplan.load_platform(PLATFORM), strategy, qoi=0.3
    )
