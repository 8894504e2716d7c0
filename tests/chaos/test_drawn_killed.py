"""Random workflows are killed anywhere, then run again or resumed: correct files, nothing twice.

`make test` kills three times. `make chaos` kills six times for each repetition that FOREPLAN_CHAOS
asks for (two workflows with three kills each), so 300 times for the usual 50, and prints how many
kills of each kind there were.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple, NoReturn

import pytest

from chaos.drawn import TOOLS, Graph, Sources, can_continue, change, draw, text_of
from chaos.runs import CLI, LIMIT, Place
from cli.forked import Forked, start_forked
from foreplan.runs.home import runs
from repeated import repetitions

KILLS = 3  # of each workflow
COORDINATOR = "coordinator"
COMMAND = "a command"
COMMANDS = "all commands"
# who is killed, in this order
TARGETS = (
    (COORDINATOR,),
    (COORDINATOR,),
    (COMMAND,),
    (COORDINATOR, COMMAND),
    (COMMAND, COORDINATOR),
    (COORDINATOR, COMMANDS),
)
STRATEGIES = ("auto", "slack", "static", "fifo")
MACHINE = "local:cores=3,memory=4GB"
GRACE = 5.0  # seconds for killed processes to disappear: much less than commands linger


class Entry(NamedTuple):
    """A line that a command has recorded."""

    what: str  # start, end, or beside: another process of the task is alive
    task: str
    process: str  # its id and start time
    coordinator: int
    other: str = ""


@dataclass(frozen=True)
class Session:
    """The life of a coordinator."""

    arguments: list[str]
    process: Forked
    needed: set[str]  # tasks that it may start
    killed: Counter[str] = field(default_factory=Counter)  # commands that were killed, by task


class Case:
    """A random workflow in its directory."""

    def __init__(self, place: Place, seed: int) -> None:
        self.place = place
        self.seed = seed
        self.rng = random.Random(seed)
        self.drawn = draw(seed)
        self.strategy = self.rng.choice(STRATEGIES)
        self.kills = Counter[str]()  # by kind
        self.actions: list[str] = []
        self.sessions: list[Session] = []
        self.begun = dict[str, Graph]()  # by run, when it began
        self.ended = set[str]()  # runs that were not killed
        self.log = place.records / "log"
        self.log.touch()
        self.output = place.records / "output"
        (place.records / "tools.sh").write_text(TOOLS)
        (place.data / "drawn.yaml").write_text(self.drawn.text)
        self.sources: Sources = {}
        self.graphs: list[Graph] = []  # for all contents that the sources had, the latest last
        self.set_sources(self.drawn.sources)

    @property
    def graph(self) -> Graph:
        return self.graphs[-1]

    def play(self) -> None:
        """Kill as often as is asked for, do the rest, and find nothing to do."""
        while self.kills.total() < KILLS:
            has_ended = self.drive(KILLS - self.kills.total())
            if has_ended or self.rng.random() < 0.3:
                sources, how = change(self.sources, self.rng, len(self.graphs))
                self.actions.append(how)
                self.set_sources(sources)
        assert self.drive(0)
        printed = self.output.stat().st_size
        assert self.drive(0, is_new=True)
        if "nothing to do" not in self.output.read_text()[printed:]:
            self.fail("there was something to do after the end")

    def set_sources(self, sources: Sources) -> None:
        for name, lines in sources.items():
            if lines != self.sources.get(name):
                (self.place.data / name).write_text(text_of(lines))
        self.sources = sources
        self.graphs.append(self.drawn.graph(sources))

    # One coordinator

    def drive(self, kills: int, is_new: bool = False) -> bool:
        """Start a coordinator, and kill it or its commands at most so many times.

        Return whether it ended by itself; then all must be done.
        """
        arguments = ["run", "drawn.yaml", "--on", MACHINE, "--retries", "9"]
        arguments += ["--strategy", self.strategy]
        if not is_new and self.can_resume() and self.rng.random() < 0.5:
            arguments = ["resume", "last"]
        self.actions.append(" ".join(arguments[:2]))
        with open(self.output, "a") as output:
            output.write(f"$ foreplan {' '.join(arguments)}\n")
        needed = self.graph.find_needed(self.read_files())
        variables = self.place.variables
        process = start_forked(CLI, arguments, self.place.data, variables, self.output)
        session = Session(arguments, process, needed)
        self.sessions.append(session)
        try:
            is_killed = self.kill_some(session, kills)
            if not is_killed:
                self.wait_for("the end", lambda: process.poll() is not None)
        finally:
            if process.poll() is None:
                os.kill(process.pid, signal.SIGKILL)
                process.wait()
        for home in runs(self.place.data):
            self.begun.setdefault(home.id, self.graph)
        self.check_starts()
        if not is_killed:
            self.check_end(session)
        return not is_killed

    def can_resume(self) -> bool:
        """Return whether a run was killed that can continue with the sources as they are now."""
        homes = runs(self.place.data)
        if not homes or homes[0].id in self.ended or b"\n" not in homes[0].journal.read_bytes():
            return False
        begun = self.begun[homes[0].id]
        # tasks that were up to date when the run began are not part of it, whatever changes
        is_whole = len(homes) == 1
        return begun is self.graph or (is_whole and can_continue(begun, self.graph))

    def kill_some(self, session: Session, kills: int) -> bool:
        """Kill at random moments; return whether the coordinator is dead."""
        done = 0
        while done < kills:
            moment = self.wait_for_moment(session)
            if session.process.poll() is not None:
                return False
            killed = self.kill(session)
            if killed:
                done += 1
                kind = ", then ".join(killed)
                self.kills[kind] += 1
                self.actions.append(f"kill {kind} after {moment}")
            if COORDINATOR in killed:
                return True
        return False

    def kill(self, session: Session) -> list[str]:
        """Kill whom chance chooses; return who could be killed."""
        process = session.process
        targets = self.rng.choice(TARGETS)
        if targets != (COORDINATOR,):

            def has_command() -> bool:
                return bool(self.find_running(session)) or process.poll() is not None

            self.wait_for("a command", has_command)
        killed = []
        for target in targets if process.poll() is None else ():
            if target == COORDINATOR:
                os.kill(process.pid, signal.SIGKILL)
                process.wait()
                killed.append(target)
                continue
            running = self.find_running(session)
            chosen = int(self.rng.random() * len(running))
            for entry in running if target == COMMANDS else running[chosen : chosen + 1]:
                with suppress(ProcessLookupError):
                    os.killpg(int(entry.process.partition(":")[0]), signal.SIGKILL)
                    session.killed[entry.task] += 1
                    killed.append(target)
        return [*dict.fromkeys(killed)]

    def find_running(self, session: Session) -> list[Entry]:
        """Find the commands of a coordinator that run."""
        entries = self.find_entries(session)
        ended = {entry.process for entry in entries if entry.what == "end"}
        started = [entry for entry in entries if entry.what == "start"]
        return [e for e in started if e.process not in ended and _is_alive(e.process)]

    def find_entries(self, session: Session) -> list[Entry]:
        """Find what the commands of a coordinator have recorded."""
        return [e for e in self.read_log() if e.coordinator == session.process.pid]

    # Moments

    def wait_for_moment(self, session: Session) -> str:
        """Wait for a random moment, or the end of the coordinator; return the moment in words."""
        moment, has_come = self.draw_moment(session)
        self.wait_for(moment, lambda: has_come() or session.process.poll() is not None)
        time.sleep(self.rng.choice((0.0, self.rng.uniform(0.0, 0.01))))
        return moment

    def draw_moment(self, session: Session) -> tuple[str, Callable[[], bool]]:
        """Return a moment that may come while the coordinator lives, in words and as a test."""
        most = max(1, len(session.needed))
        count = self.rng.randint(1, 2 * most)
        match self.rng.choice(("start", "record", "record", "journal", "store", "file", "gone")):
            case "start":
                homes = len(runs(self.place.data))
                return "its first steps", lambda: len(runs(self.place.data)) > homes
            case "record":
                lines = len(self.read_log()) + count
                return f"{count} records", lambda: len(self.read_log()) >= lines
            case "journal":
                length = self.measure_journals() + count
                return f"{count} journal lines", lambda: self.measure_journals() >= length
            case "store":
                size = self.measure_store() + self.rng.randint(1, 1000 * most)
                return f"{size} bytes in the store", lambda: self.measure_store() >= size
            case "file":
                before = self.list_files()
                count = self.rng.randint(1, most)
                return f"{count} outputs", lambda: len(self.list_files() - before) >= count
            case _:
                seen = self.list_files()

                def has_deleted() -> bool:
                    now = self.list_files()
                    seen.update(now)
                    return {path for path, _ in now} < {path for path, _ in seen}

                return "a deleted file", has_deleted

    def wait_for(self, what: str, holds: Callable[[], bool], limit: float = LIMIT) -> None:
        """Wait for something, or fail with all that is known."""
        end = time.monotonic() + limit
        while not holds():
            if time.monotonic() > end:
                self.fail(f"{what} has not come after {limit:g} seconds")
            time.sleep(0.001)

    def measure_journals(self) -> int:
        return sum(home.journal.read_bytes().count(b"\n") for home in runs(self.place.data))

    def measure_store(self) -> int:
        size = 0
        for path in (self.place.data / ".foreplan" / "store").glob("*"):
            with suppress(FileNotFoundError):
                size += path.stat().st_size
        return size

    # The directory

    def list_files(self) -> set[tuple[str, int]]:
        """Return the paths of all files that tasks may have made, each with its inode."""
        found = set()
        added = self.place.data / ".foreplan" / "added"
        for top, folders, names in chain(os.walk(self.place.data), os.walk(added)):
            with suppress(ValueError):
                folders.remove(".foreplan")
            for name in names:
                path = os.path.join(top, name)
                with suppress(FileNotFoundError):
                    found.add((os.path.relpath(path, self.place.data), os.stat(path).st_ino))
        return found

    def read_files(self) -> dict[str, str]:
        """Return all files that tasks may have made, by path."""
        return {path: (self.place.data / path).read_text() for path, _ in self.list_files()}

    def read_log(self) -> list[Entry]:
        lines = (line.split() for line in self.log.read_text().splitlines())
        return [Entry(what, task, who, int(by), *more) for what, task, who, by, *more in lines]

    # Checks

    def check_starts(self) -> None:
        """Check that no task was started that was done, nor twice, nor beside itself."""
        for entry in self.read_log():
            if entry.what == "beside":
                self.fail(f"{entry.task} was started while its process {entry.other} was alive")
        for number, session in enumerate(self.sessions, 1):
            entries = self.find_entries(session)
            started = Counter(entry.task for entry in entries if entry.what == "start")
            for task, times in started.items():
                if task not in session.needed:
                    self.fail(f"coordinator {number} has started {task}, which was done")
                if times > 1 + session.killed[task]:
                    self.fail(f"coordinator {number} has started {task} {times} times")

    def check_end(self, session: Session) -> None:
        """Check what a coordinator that ended by itself has left."""
        if code := session.process.wait():
            self.fail(f"{' '.join(session.arguments)} has ended with code {code}")
        self.wait_for("the end of all commands", lambda: not self.place.processes(), GRACE)
        found = self.read_files()
        for output in (o for task in self.graph.tasks.values() for o in task.outputs):
            if not output.temp and not self.graph.is_there(found, output):
                self.fail(f"{output.name} is not correct")
        # a run with nothing to do deletes nothing
        if self.find_entries(session) or session.arguments[0] == "resume":
            self.check_no_others(found)
        self.ended |= {home.id for home in runs(self.place.data)}

    def check_no_others(self, found: Mapping[str, str]) -> None:
        """Check that no file is there but those of now, and of tasks that are no longer added."""
        makers = {
            file: (task, output)
            for graph in self.graphs
            for task in graph.tasks.values()
            for output in task.outputs
            for file in output.files
        }
        for file in found.keys() - self.sources.keys() - {"drawn.yaml"}:
            if "%2A" in file:  # what a loop has added
                continue
            if file not in makers:
                self.fail(f"{file} is there, which no task makes")
            task, output = makers[file]
            if task.name not in self.graph.tasks:
                if not any(graph.contents.get(file) == found[file] for graph in self.graphs):
                    self.fail(f"{file} was never correct")
            elif file not in self.graph.contents:
                self.fail(f"{file} is left of earlier lines")
            elif output.temp:
                self.fail(f"the temporary {file} is left")

    def fail(self, message: str) -> NoReturn:
        """Fail with all that is needed to see why."""
        actions = "\n".join(f"  {action}" for action in self.actions)
        pytest.fail(
            f"seed {self.seed}: {message}\n{actions}\n"
            f"directory: {self.place.data.parent}\n"
            f"printed:\n{self.output.read_text()[-3000:]}\n"
            f"recorded:\n{self.log.read_text()[-3000:]}",
            pytrace=False,
        )


def _is_alive(process: str) -> bool:
    """Return whether a process, given by its id and start time, is alive."""
    pid, _, start = process.partition(":")
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(") ")[2].split()
    except OSError:
        return False
    return fields[19] == start and fields[0] not in "ZX"


@pytest.mark.parametrize("seed", repetitions(few=1, share=2.0))
def test_killed(place: Place, seed: int, record_property: Callable[[str, object], None]) -> None:
    case = Case(place, seed)
    try:
        case.play()
    finally:
        record_property("kills", dict(case.kills))
