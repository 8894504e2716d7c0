"""Budgets and deadlines, event by event: when a coordinator asks to be woken, and what it takes."""

from __future__ import annotations

from typing import Any

from foreplan import registry
from foreplan.engine.budget import CUT, BudgetTracker
from foreplan.engine.coordinator import Coordinator
from foreplan.engine.driver import Driver
from foreplan.formats.foreplan_workflow import workflow_from_dict
from foreplan.model import Estimates, Platform, Processor
from foreplan.model.events import Command, LimitsDue, Paused, SpeedChanged, StartTask, WakeAt


def begun(
    tasks: dict[str, float], machines: list[Processor], **limits: Any
) -> tuple[Coordinator, Driver, list[Command]]:
    """A planned run of independent tasks that has just begun."""
    content = {"name": "t", "tasks": {name: {"cost": cost} for name, cost in tasks.items()}}
    wf, pf = workflow_from_dict(content), Platform.build(machines)
    policy, planner = registry.strategy("static", budgeted="tracker" in limits)
    c = Coordinator(wf, pf, Estimates.declared(wf, pf), policy, **limits)
    driver = Driver(c, planner, events=[])
    return c, driver, driver.begin()


def alarms(commands: list[Command]) -> list[float]:
    asked = [command for command in commands if isinstance(command, WakeAt)]
    assert all(command.by is LimitsDue for command in asked)
    return [command.time for command in asked]


def test_a_run_that_is_held_back_is_not_woken_again_and_again() -> None:
    """Somebody has pressed Ctrl-C, and a task goes on past the moment of the next look."""
    _, driver, commands = begun({"a": 10.0}, [Processor("p", price=1.0)], deadline=12.0)
    (first,) = alarms(commands)
    driver.hear(Paused(1.0, True))
    now, woken = first, 0
    while now < 30:
        (then,) = alarms(driver.hear(LimitsDue(now)))
        assert then > now
        now, woken = then, woken + 1
    assert woken < 300


def test_a_resumed_run_has_no_alarm_of_before() -> None:
    """The money ends earlier than by the alarm that died with its process: another is asked for."""
    machines = [Processor(f"p{k}", price=1.0) for k in range(4)]
    tasks = {f"t{k}": 1000.0 for k in range(4)}
    c, driver, commands = begun(tasks, machines, tracker=BudgetTracker(8000, CUT))
    (first,) = alarms(commands)
    assert first == 2000
    assert not alarms(driver.hear(SpeedChanged(0, 10.0, 1.0)))
    c.forget_alarm()
    assert alarms(driver.hear(SpeedChanged(0, 20.0, 1.0))) == [2000]


def test_what_was_cut_off_a_moment_late_still_goes_on_for_nothing() -> None:
    """The cut comes two milliseconds after the money was gone; the free machine does the rest."""
    machines = [Processor("dear", price=1.0), Processor("free", speed=0.1)]
    c, driver, commands = begun({"a": 1.0}, machines, tracker=BudgetTracker(3, CUT))
    assert [s.processor for s in commands if isinstance(s, StartTask)] == [0]
    said = driver.hear(LimitsDue(3.002))
    assert [s.processor for s in said if isinstance(s, StartTask)] == [1]
    assert not c.tracker.holds
    assert c.money().spent > 3
