"""Journals of runs that are known to the last second: they are run in a simulated world."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from foreplan import load, registry
from foreplan.arrays import FloatArray
from foreplan.engine.coordinator import Coordinator
from foreplan.engine.driver import Driver
from foreplan.model import Estimates, Platform, Workflow
from foreplan.model.events import CancelTask, Command, Event, StartTask, TaskFailed, TaskFinished
from foreplan.model.platform import Processor
from foreplan.runs.entries import Header, JournalRecorder
from foreplan.runs.home import RunHome
from foreplan.runs.journal import Journal
from foreplan.runs.options import Options
from foreplan.simulation.reality import Reality
from foreplan.simulation.simulated import SimulatedExecutor
from model.told import whom

TAIL = "cannot open x\nno such file"


class Machines:
    """Simulated machines that measure seconds, and on which attempts may fail."""

    def __init__(
        self, simulated: SimulatedExecutor, fails: dict[int, str], used: dict[str, Any]
    ) -> None:
        self.simulated, self.fails, self.used = simulated, fails, used  # reasons by attempt
        self.started: dict[int, float] = {}
        self.failed: list[int] = []

    def perform(self, command: Command) -> None:
        if isinstance(command, StartTask):
            if command.attempt in self.fails:
                self.failed.append(command.attempt)
            self.started[command.attempt] = command.time
        self.simulated.perform(command)

    def flush(self) -> None:
        self.simulated.flush()

    def next_event(self, wait: bool = True) -> Event | None:
        if not wait:
            return None
        if self.failed:  # at once
            attempt = self.failed.pop(0)
            time = self.started[attempt]
            self.simulated.perform(CancelTask(attempt, time))
            detail = {"reason": self.fails[attempt], "log": f"logs/{attempt}", "tail": TAIL}
            return TaskFailed(attempt, time, 0.0, detail=detail)
        event = self.simulated.next_event(wait)
        if event is None or not isinstance(event, TaskFinished):
            return event
        # what the machine measures is a little less than what the coordinator sees
        seconds = (event.time - self.started[whom(event)]) * 0.9
        used = {"used": self.used} if self.used else {}
        return replace(event, detail={"seconds": seconds, **used})


def local(processors: int) -> Platform:
    return Platform.build([Processor(f"local-{p}", host="here") for p in range(processors)])


def write_run(
    directory: Path,
    content: dict[str, Any],
    *,
    strategy: str = "slack",
    processors: int = 2,
    factor: float | FloatArray = 1.0,  # or one for each task and processor
    stop_after: int | None = None,
    fails: dict[int, str] | None = None,
    retries: int = 0,
    ended: str | None = "finished",
    platform: Platform | None = None,
    asked_for: bool = False,
    used: dict[str, Any] | None = None,  # by every attempt that finishes
) -> RunHome:
    """The home of a run that took `factor` times what it expected."""
    workflow: Workflow = load(content)
    platform = platform or local(processors)
    estimates = Estimates.declared(workflow, platform)
    home = RunHome.create(directory, workflow.name)
    on, spec = f"local:{processors}", strategy if asked_for else "auto"
    options = Options(on=on, strategy=spec, retries=retries, keep_going=True)
    header = Header(
        id=home.id,
        workflow=workflow,
        platform=platform,
        machines=platform.processor_names,
        estimates=estimates,
        rest=0.0,
        strategy=strategy,
        options=options,
        functions=False,
        blind=False,
        source=None,
        created="2026-01-31T12:00:00+00:00",
    )
    policy, planner = registry.strategy(strategy)
    journal = Journal.create(home.journal, header.to_dict())
    recorder = JournalRecorder(journal)
    coordinator = Coordinator(workflow, platform, estimates, policy, options.retry_policy())
    simulated = SimulatedExecutor(workflow, platform, Reality(estimates.cost * factor))
    driver = Driver(
        coordinator, planner, Machines(simulated, fails or {}, used or {}), recorder, events=[]
    )
    most = workflow.n_tasks if stop_after is None else stop_after
    driver.drive(is_over=lambda: coordinator.done or coordinator.n_done >= most)
    if ended is not None:
        recorder.note("end", status=ended, time=coordinator.now)
    recorder.sync([])
    journal.close()
    return home


def forks(n: int, cost: float = 2.0) -> dict[str, Any]:
    """A task, n that wait for it, and one that waits for those."""
    tasks: dict[str, Any] = {"split": {"cost": 1, "category": "split"}}
    tasks |= {f"part-{i}": {"cost": cost, "category": "part"} for i in range(n)}
    tasks["join"] = {"cost": 1}
    edges = [["split", f"part-{i}"] for i in range(n)] + [[f"part-{i}", "join"] for i in range(n)]
    return {"name": "forks", "tasks": tasks, "edges": edges}
