"""The coordinator under any legal sequence of events."""

from __future__ import annotations

from typing import ClassVar

from hypothesis import HealthCheck, settings

from simulation.machine import Machine


class Migrating(Machine):
    """Strategies that move what runs, most often without any sense."""

    specs: ClassVar[list[str]] = ["gtp", "gtp/c", "gtp/r[period=3]", "gtp/c/r[period=3]"]
    scattered: ClassVar[float] = 0.9


TestMachine = Machine.TestCase
TestMachine.settings = settings(
    max_examples=80,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestMigrating = Migrating.TestCase
TestMigrating.settings = settings(TestMachine.settings, stateful_step_count=60)
