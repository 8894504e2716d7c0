"""Journals of runs that are known to the last second: they are run in a simulated world."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from weft import load, registry
from weft.coordinator import Coordinator
from weft.executors.reality import Reality
from weft.executors.simulated import SimulatedExecutor
from weft.journal.log import Journal
from weft.journal.places import RunHome
from weft.live.header import Header
from weft.live.options import Options
from weft.live.recorder import JournalRecorder
from weft.model import Estimates, Platform, Workflow
from weft.model.events import CancelTask, Command, Event, EventKind, StartTask
from weft.model.platform import Processor
from weft.wiring import Progress, perform

TAIL = "cannot open x\nno such file"


class Machines:
    """Simulated machines that measure seconds, and on which attempts may fail."""

    def __init__(self, simulated: SimulatedExecutor, fails: dict[int, str]) -> None:
        self.simulated, self.fails = simulated, fails  # reasons by attempt
        self.started: dict[int, float] = {}
        self.failed: list[int] = []

    def perform(self, command: Command) -> None:
        if isinstance(command, StartTask):
            if command.attempt in self.fails:
                self.failed.append(command.attempt)
            self.started[command.attempt] = command.time
        self.simulated.perform(command)

    def next_event(self, wait: bool = True) -> Event | None:
        if self.failed:  # at once
            attempt = self.failed.pop(0)
            time = self.started[attempt]
            self.simulated.perform(CancelTask(attempt, time))
            detail = {"reason": self.fails[attempt], "log": f"logs/{attempt}", "tail": TAIL}
            return Event(EventKind.TASK_FAILED, attempt, time, 0.0, detail)
        event = self.simulated.next_event(wait)
        if event is None or event.kind != EventKind.TASK_FINISHED:
            return event
        # what the machine measures is a little less than what the coordinator sees
        seconds = (event.time - self.started[event.which]) * 0.9
        return replace(event, detail={"seconds": seconds})


def local(processors: int) -> Platform:
    return Platform.build([Processor(f"local-{p}", host="here") for p in range(processors)])


def write_run(
    directory: Path,
    content: dict[str, Any],
    *,
    strategy: str = "slack",
    processors: int = 2,
    factor: float = 1.0,
    stop_after: int | None = None,
    fails: dict[int, str] | None = None,
    retries: int = 0,
    ended: str | None = "finished",
    platform: Platform | None = None,
    asked_for: bool = False,
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
    coordinator = Coordinator(workflow, platform, estimates, policy, options.tolerance())
    progress = Progress(coordinator, planner, recorder, events=[])
    simulated = SimulatedExecutor(workflow, platform, Reality(estimates.cost * factor))
    _drive(progress, Machines(simulated, fails or {}), stop_after)
    if ended is not None:
        recorder.note("end", status=ended, time=coordinator.now)
    recorder.sync([])
    journal.close()
    return home


def _drive(progress: Progress, machines: Machines, stop_after: int | None) -> None:
    commands, coordinator = progress.settled(progress.coordinator.begin()), progress.coordinator
    while not coordinator.done:
        perform(progress, machines, commands)
        if stop_after is not None and coordinator.n_done >= stop_after:
            return
        event = machines.next_event()
        assert event is not None
        commands = progress.hear(event)


def forks(n: int, cost: float = 2.0) -> dict[str, Any]:
    """A task, n that wait for it, and one that waits for those."""
    tasks: dict[str, Any] = {"split": {"cost": 1, "category": "split"}}
    tasks |= {f"part-{i}": {"cost": cost, "category": "part"} for i in range(n)}
    tasks["join"] = {"cost": 1}
    edges = [["split", f"part-{i}"] for i in range(n)] + [[f"part-{i}", "join"] for i in range(n)]
    return {"name": "forks", "tasks": tasks, "edges": edges}
