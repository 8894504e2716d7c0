"""What of a workflow is up to date: known before a run begins, or as soon as it can be.

A task is up to date if some result has its key, and its outputs are on disk with the contents of
that result. Where they are missing, the result still tells their contents: nothing is made again
for that, unless it is asked for or is read by what runs. A task that reads what is being made again
is unsure: once the contents of its inputs are known, its key is, and the store is asked again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import NamedTuple

from foreplan.errors import InputError, unknown_name
from foreplan.garbage import no_collection
from foreplan.model.call import Call, Calls, refs
from foreplan.model.filenames import Holders, find_matches, is_many, is_pattern, is_tree
from foreplan.model.growth import adder_of
from foreplan.model.workflow import Workflow
from foreplan.store.content import CONTENT, Entry, Status
from foreplan.store.graph import WorkflowGraph
from foreplan.store.keys import (
    NamedFiles,
    Recipe,
    differences,
    differences_of_call,
    recipe_of_call,
    recipe_of_command,
)
from foreplan.store.making import Making, adopted_line
from foreplan.store.programs import CallDigests
from foreplan.store.store import KeptResult, Result, Store, file_lines

EVERY_RUN = "it has no outputs: it is run by every run"
FORCED = "forced"
NO_RESULT = "it has no earlier result here"
WILL_BE_REPLACED = " will be replaced"
NOT_KNOWN = "what it takes is not known"


class State(Enum):
    """What is known of a task before it runs."""

    UP_TO_DATE = "up to date"
    STALE = "stale"
    UNSURE = "unsure"  # until what it reads has been made
    DONE = "done"  # in this run
    LEFT_OUT = "left out"  # nothing that was asked for needs it


OUTDATED = (State.STALE, State.UNSURE)  # what will run, or may


class Decided(NamedTuple):
    """Tasks that were unsure, and are not any more."""

    up_to_date: list[int]
    stale: list[int]


class Edited(NamedTuple):
    """An output that somebody has changed by hand."""

    file: str
    task: str


class Foreign(NamedTuple):
    """A file that is not foreplan's, and would have to be deleted for a directory or pattern."""

    file: str
    output: str
    task: str
    changed: bool = False  # foreplan has made it, but not as it is


@dataclass(frozen=True)
class Asked:
    """What is asked of a survey."""

    targets: Collection[str] = ()  # tasks or files; none: all
    force: Collection[str] | bool = False  # tasks that are run whatever is known; True: all
    again: Mapping[str, str] = field(default_factory=dict)  # tasks that others need, and why
    waiting: Collection[str] = ()  # tasks that are left out: what they wait for is not there yet
    done: Collection[str] = ()  # tasks that this run has done: without outputs, they count, too
    after: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # see `keys_before`
    trust: str = CONTENT
    replaces: Collection[str] = ()  # tasks that may replace what is protected
    keeps_temp: bool = False  # others, which are no part of this, may read temporary outputs
    # temporary outputs of tasks that are no part of this, with their contents: see `unread_after`
    temp: Mapping[str, str] = field(default_factory=dict)
    anywhere: bool = False  # links may lead out of the data directory
    carried: bool = False  # what tasks make for each other is not in the directory
    every_result: bool = False  # those of functions that others take are asked for, too
    # whether the result of a function is where it was kept
    has_result: Callable[[KeptResult], bool] = field(default=lambda kept: False)


class Survey:
    """The tasks of a workflow in a data directory. Not for several threads."""

    def __init__(
        self,
        workflow: Workflow,
        data: str | os.PathLike[str],
        store: Store,
        asked: Asked | None = None,
        calls: Calls | None = None,
    ) -> None:
        self.workflow, self.store = workflow, store
        self.asked = asked = asked or Asked()
        self.memory = store.memory(asked.trust)
        self.edited: list[Edited] = []
        self.foreign: list[Foreign] = []
        _check_forced(workflow, asked)
        self._graph = WorkflowGraph(workflow, asked.targets)
        specs = workflow.specs
        self._graph.products |= {
            task
            for task, wanted in enumerate(self._graph.wanted)
            if wanted and (asked.every_result or (task in specs and specs[task].keep))
        }
        self.calls: Calls = (None,) * workflow.n_tasks if calls is None else calls
        self._digests = CallDigests()
        self.uncertain: dict[str, str] = {}  # calls that cannot be compared, each with the reason
        # the tasks whose results a call takes
        self._taken = [[] if call is None else refs(call) for call in self.calls]
        self._named = NamedFiles(os.fspath(data), asked.anywhere, self._graph.has_many)
        n, wanted, waiting = workflow.n_tasks, self._graph.wanted, {*asked.waiting}
        for task, name in enumerate(workflow.task_names) if asked.waiting else ():
            wanted[task] = wanted[task] and name not in waiting
        if waiting and not asked.targets:
            self._graph.asked_for = set()  # others may read what nobody seems to read
        self.states = [State.UNSURE if wanted[t] else State.LEFT_OUT for t in range(n)]
        self.reasons = [""] * n
        self.results: list[Result | None] = [None] * n  # of what is up to date
        self._recipes: list[Recipe | None] = [None] * n
        self._known: dict[str, str] = {}  # contents of what tasks make, if they are known
        self._disk: dict[str, str | None] = {}  # contents of files as they are
        self._given_up: dict[str, str | None] = {}  # what those patterns have that are forced
        self._needed = set[int]()  # tasks that run only because others need what is missing
        with no_collection():
            self._look()
            for task in workflow.order.tolist():
                if wanted[task]:
                    self._judge(task)
            self._find_edited()
            self._find_foreign()
            self._add_needed()

    # ---- what is asked of it

    def tasks(self, *states: State) -> list[int]:
        """The tasks in these states."""
        return [task for task, state in enumerate(self.states) if state in states]

    def certain_tasks(self) -> list[int]:
        """Return the tasks that run whatever those before them make; other outdated ones may."""
        specs, states = self.workflow.specs, self.states
        grows = any(spec.expand and states[task] in OUTDATED for task, spec in specs.items())
        return [task for task in self.tasks(State.STALE) if self._is_certain(task, grows)]

    def _is_certain(self, task: int, grows: bool) -> bool:
        if task in self._needed:  # when tasks are added, it may turn out that none needs it
            return not grows
        if self._is_forced(task) or not self._unknown(task):
            return True
        if self.calls[task] is not None:  # another task may have called the same
            return False
        known = self._graph.made[task] or self.workflow.spec(task).cache
        return not known or self._without_recipe(task, "")[0] is State.STALE

    def unneeded_files(self) -> list[str]:
        """Return the missing outputs that no task has to make again."""
        made = (name for task in self.tasks(State.UP_TO_DATE) for name in self._graph.made[task])
        missing = (name for name in made if self._disk.get(name) is None)
        return [] if self.asked.carried else [name for name in missing if not adder_of(name)]

    def names_around(self, task: int) -> set[str]:
        """Return the files that a task reads and makes, and the tasks before and behind it."""
        graph, names = self._graph, self.workflow.task_names
        others = (names[other] for other in (*graph.before[task], *graph.behind[task]))
        return {*graph.read[task], *graph.made[task], *others}

    def outputs(self, task: int) -> list[str]:
        """The files that a task makes."""
        return self._graph.made[task]

    def missing(self, task: int) -> list[str]:
        """The files that a task reads and no task makes, but that are not there."""
        graph = self._graph
        return [n for n in graph.read[task] if n not in graph.maker and self._disk.get(n) is None]

    def fed_by_files(self) -> list[int]:
        """The functions that read files, or take what comes of them: these may have changed."""
        fed = [call is not None and bool(self._graph.read[t]) for t, call in enumerate(self.calls)]
        for task in self.workflow.order.tolist():
            known = self.workflow.task_names[task] not in self.uncertain
            fed[task] = known and (fed[task] or any(fed[other] for other in self._taken[task]))
        return [task for task, is_fed in enumerate(fed) if is_fed]

    def making(self, task: int) -> Making:
        """What an attempt that is about to start is made from, as it is on disk now."""
        if self.calls[task] is not None:
            return self._making_of_call(task)
        graph, spec = self._graph, self.workflow.spec(task)
        self._named.forget()
        read = graph.read[task]
        names = [*read, *self._named.of(spec, {*read, *graph.made[task]})]
        statuses: dict[str, Status] = {}
        inner = {name: self._known[name] for name in read if self._is_elsewhere(name)}
        contents = self.memory.contents((n for n in names if n not in inner), statuses) | inner
        inputs = {name: content for name, content in contents.items() if content is not None}
        after = self._after(task)
        if len(inputs) < len(names):
            return Making(None, trust=self.asked.trust, note="one of its inputs is missing")
        if after is None:
            return Making(None, trust=self.asked.trust, note="what it comes after is not known")
        recipe = self._recipes[task]
        if recipe is None or recipe.inputs != inputs or recipe.after != after:
            recipe = self._recipes[task] = recipe_of_command(spec, inputs, graph.made[task], after)
        return Making(recipe, statuses, self.asked.trust, former=self._former_files(task))

    def _former_files(self, task: int) -> tuple[str, ...]:
        """What foreplan made before and matches patterns of a task's outputs: it goes with the new.

        What somebody has changed since it was surveyed stays.
        """
        patterns = filter(is_pattern, self._graph.made[task]) if self._graph.has_many else ()
        files = [file for pattern in patterns for file in self.memory.files_of(pattern)]
        contents = self.memory.contents(files)

        def goes(file: str, content: str) -> bool:
            own = self.store.is_own(file, content) or self._known.get(file) == content
            return own or self._given_up.get(file) == content

        return tuple(file for file, content in contents.items() if content and goes(file, content))

    def files_of(self, name: str) -> list[str]:
        """The files that a finished task has given under a pattern, or a directory; sorted."""
        return self.memory.files_of(name)

    def foreign_file(self, task: int, pattern: str, with_outputs: bool) -> str:
        """Return a file or folder that matches a pattern, but that no task made as it is.

        Files among the inputs of the task are passed by; with outputs, directories and patterns
        among its inputs must be as they were made, too.
        """
        read = self._graph.read[task]
        many = [name for name in read if is_many(name)]
        for name in many if with_outputs else ():
            content = self.memory.content(name)
            if content is not None and not self.store.is_own(name, content):
                return self.changed_file(name) or name
        listed, holders = {*read}, Holders(many)
        for name in sorted(find_matches(self.memory.data, pattern)):
            file = name.rstrip("/")
            if file in listed or any(holders.of(file)) or self._is_made(file):
                continue
            if not os.path.isdir(os.path.join(self.memory.data, file)):
                return file
            inner = self.memory.files_of(file)
            known = (f in listed or any(holders.of(f)) or self._is_made(f) for f in inner)
            if inner and not any(known):
                return file
        return ""

    def _is_made(self, file: str) -> bool:
        """Return whether foreplan made a file as it is, alone or with a directory."""
        if self.store.knows(file):
            return self.store.is_own(file, self.memory.content(file) or "")
        folder = file
        while folder:
            whole = f"{folder}/"
            if self.store.knows(whole):
                return self.store.is_own(whole, self.memory.content(whole) or "")
            folder = folder.rpartition("/")[0]
        return False

    def _making_of_call(self, task: int) -> Making:
        statuses: dict[str, Status] = {}
        if read := self._graph.read[task]:
            self._disk |= self.memory.contents(read, statuses)
            made = {name: content for name in read if (content := self._disk[name]) is not None}
            self._known |= {name: made[name] for name in made if name in self._graph.maker}
        recipe, note = self._recipe_of_call(task)
        self._recipes[task] = recipe
        if recipe is None:
            return Making(None, note=note or NOT_KNOWN)
        return Making(recipe, statuses, self.asked.trust)

    def keys_before(self) -> dict[str, dict[str, str]]:
        """The keys of what is up to date and only comes before what is not, by task and name.

        Whoever surveys that part alone must be told of them: they belong to its keys.
        """
        found: dict[str, dict[str, str]] = {}
        names = self.workflow.task_names
        for task in self.tasks(*OUTDATED):
            for other in self._only_after(task):
                recipe = self._recipes[other]
                if self.states[other] is State.UP_TO_DATE and recipe is not None:
                    found.setdefault(names[task], {})[names[other]] = recipe.key
        return found

    def _is_elsewhere(self, name: str) -> bool:
        """Whether an input was made in this run, and is handed on without the directory."""
        maker = self._graph.maker.get(name) if self.asked.carried else None
        return maker is not None and self.states[maker] is State.DONE and name in self._known

    def found(self, task: int, making: Making, run: str = "") -> Result | None:
        """What the recipe of an attempt has given before, if that is on disk; else it must run.

        What leaves no outputs counts only as the same task of the same run.
        """
        recipe, name = making.recipe, self.workflow.task_names[task]
        if recipe is None or self._is_forced(task):
            return None
        if self.calls[task] is not None:
            return self._kept_result(recipe)
        if recipe.outputs or self.workflow.spec(task).cache:
            return next(filter(self.is_there, self._by_key(task, recipe)), None)
        for result in self.store.of_task(name):
            if (result.run, result.key) == (run, recipe.key):
                return result
        return None

    def is_there(self, result: Result) -> bool:
        """Whether all outputs of a result are on disk now, as it has them."""
        contents = self.memory.contents(result.outputs)
        return all(contents[name] == entry[3] for name, entry in result.outputs.items())

    def _kept_result(self, recipe: Recipe) -> Result | None:
        for result in self.store.results(recipe.key):
            if result.call is not None and self.asked.has_result(result.call):
                return result
        return None

    def can_be_taken(self, task: int) -> bool:
        """Whether what is up to date is there, too: results of functions need not be kept."""
        result = self.results[task]
        return result is None or result.call is None or self.asked.has_result(result.call)

    def recall(self, task: int, run: str, number: int) -> None:
        """A run that is resumed has the result of a function itself, if it is where it was kept."""
        if (kept := self.own_result(task, run, number)) is not None:
            self._known[_result_name(task)] = kept.content

    def own_result(self, task: int, run: str, number: int) -> KeptResult | None:
        """Return the result that a run has kept of a task, which is `number` there."""
        for result in self.store.of_task(self.workflow.task_names[task]):
            kept = result.call
            if kept is not None and kept[:2] == (run, number) and self.asked.has_result(kept):
                return kept
        return None

    def is_result(self, task: int, content: str) -> bool:
        """Whether a function, as it is now, has given this."""
        recipe = self._recipes[task]
        found = [] if recipe is None else self.store.results(recipe.key)
        return any(result.call is not None and result.call.content == content for result in found)

    def content_of(self, task: int) -> str:
        """What a function's result is; empty if that is not known."""
        return self._known.get(_result_name(task), "")

    def take_as(self, task: int, content: str) -> None:
        """A task's result is this: it may have had several."""
        self._known[_result_name(task)] = content

    def finish(self, task: int, contents: Mapping[str, Entry], content: str = "") -> Decided:
        """A task has finished with these outputs, or a function with a result of this content."""
        for name, entry in contents.items():
            self.memory.learn(name, entry)
            self._disk[name] = self._known[name] = entry[3]
        for name in (*self._graph.made[task], *self._graph.within.get(task, ())):
            if name not in contents and (found := self.memory.content(name)) is not None:
                self._disk[name] = self._known[name] = found
        if self.calls[task] is not None:
            self._known[_result_name(task)] = content
        self.states[task] = State.DONE
        decided = Decided([], [])
        self._decide(task, decided)
        return decided

    def spent(self, task: int | None = None, run: Collection[int] = ()) -> list[str]:
        """The temporary outputs that a task has read, or any, and that nobody will read any more.

        A task of the run that is only known to be up to date looks at its inputs when it begins.
        """
        if self.asked.carried:
            return []
        graph, done, others = self._graph, self.asked.done, self.asked.temp
        names, states = self.workflow.task_names, self.states

        def is_over(reader: int) -> bool:
            if states[reader] is State.DONE:
                return True
            waits = reader in run and names[reader] not in done
            return states[reader] is State.UP_TO_DATE and not waits

        expanding = (t for t, spec in self.workflow.specs.items() if spec.expand)
        if self._temporary and not all(map(is_over, expanding)):
            return []  # what is added may read it
        found = list[str]()
        for name in self._temporary if task is None else graph.read[task]:
            readers = self._temporary.get(name, ())
            is_own = name in graph.maker
            if is_own and (not readers or self.asked.keeps_temp or name in graph.asked_for):
                continue
            around = (*readers, graph.maker[name]) if is_own else readers
            if not self._may_be_added(around) and all(map(is_over, readers)):
                content = self.memory.content(name)
                known = self._known.get(name) if is_own else others.get(name)
                if content is not None and content == known:
                    found.append(name)
        return found

    def unread_after(self, run: Collection[int]) -> dict[str, str]:
        """The temporary outputs of other tasks that nobody reads once a run is done.

        Each with its content. Whoever resumes the run surveys its tasks alone, and must be given
        them: the outputs of others would stay forever.
        """
        found = dict[str, str]()
        graph, states = self._graph, self.states
        for name, readers in self._temporary.items():
            others = [task for task in (*readers, graph.maker[name]) if task not in run]
            is_made = graph.maker[name] in others and bool(readers)
            is_over = all(states[task] is State.UP_TO_DATE for task in others)
            if not is_made or not is_over or name in graph.asked_for or self._may_be_added(others):
                continue
            content = self.memory.content(name)
            if content is not None and content == self._known.get(name):
                found[name] = content
        return found

    @cached_property
    def _temporary(self) -> dict[str, list[int]]:
        """Outputs that go when they are read, each with its readers, also of single files of it."""
        graph = self._graph
        found: dict[str, list[int]] = {
            name: [reader for reader in graph.behind[task] if name in graph.read[reader]]
            for task, spec in self.workflow.specs.items()
            for name in spec.temp
        }
        for name in self.asked.temp:
            found.setdefault(name, [t for t, files in enumerate(graph.read) if name in files])
        holders = Holders(found)
        for task, files in enumerate(graph.read) if holders else ():
            for name in {many for file in files for many in holders.of(file.rstrip("/"))}:
                found[name] += [task] if task not in found[name] else []
        return found

    def _may_be_added(self, around: Iterable[int]) -> bool:
        """Whether tasks that read an output may have yet to be added, by who makes or reads it."""
        specs, names = self.workflow.specs, self.workflow.task_names
        adders = {names[task] for task in around if self.workflow.spec(task).expand}
        return bool(adders) and adders.isdisjoint({spec.added_by for spec in specs.values()})

    def shielded(self, task: int, run: str = "") -> str:
        """A protected output that a task may not replace; nothing if there is none.

        What this very run has made may be replaced: it was killed before all outputs were there.
        """
        name = self.workflow.task_names[task]
        if name in self.asked.replaces:
            return ""
        for file in self.workflow.spec(task).protected:
            content = self.memory.content(file)
            made = [r.outputs[file][3] for r in self.store.made(file) if run and r.run == run]
            if content is not None and content not in made:
                return file
        return ""

    def take_news(self) -> bytes:
        """Lines of files that were read since, for the store: they need not be read again."""
        news, self.memory.news = self.memory.news, {}
        return file_lines(news, round(time.time(), 6))

    def _decide(self, done: int, decided: Decided) -> None:
        """Ask again for what has waited for a task that is done or turned out to be up to date."""
        todo = [done]
        while todo:
            for task in self._graph.behind[todo.pop()]:
                if self.states[task] is not State.UNSURE:
                    continue
                self._look_again(task)
                self._judge(task)
                if self.states[task] is State.UP_TO_DATE:
                    decided.up_to_date.append(task)
                    todo.append(task)
                elif self.states[task] is State.STALE:
                    decided.stale.append(task)

    def _look_again(self, task: int) -> None:
        """Read what a task reads and has made as it is now."""
        graph = self._graph
        self._named.forget()
        read = graph.read[task]
        names = [name for name in read if name not in graph.maker]
        names += self._named.of(self.workflow.spec(task), {*read, *graph.made[task]})
        names += [name for name in graph.made[task] if self.store.knows(name)]
        self._disk |= self.memory.contents(names)

    def makers(self, files: Iterable[str]) -> list[int]:
        """The tasks that make these files."""
        tasks: dict[int, None] = {}
        for file in files:
            if file not in self._graph.maker:
                raise InputError(unknown_name("output", file, self._graph.maker))
            tasks[self._graph.maker[file]] = None
        return list(tasks)

    def waited_for(self, task: int) -> list[int]:
        """The tasks right before a task that are not up to date."""
        before = self._graph.before[task]
        return [t for t in before if self.states[t] in OUTDATED]

    def adopt(self, files: Iterable[str]) -> list[bytes]:
        """Lines by which files count as what their tasks give from what is there now."""
        return [self._adopt(task) for task in self.makers(files)]

    def _adopt(self, task: int) -> bytes:
        """The line by which all outputs of a task count as what it gives from what is there now."""
        name, outputs = self.workflow.task_names[task], self._graph.made[task]
        missing = [file for file, content in self.memory.contents(outputs).items() if not content]
        if missing:
            raise InputError(f"its output {missing[0]!r} is missing", place=f"task {name!r}")
        making = self.making(task)
        if making.recipe is None:
            raise InputError(making.note, place=f"task {name!r}")
        found = {file: e for file in outputs if (e := self.memory.entries(file)) is not None}
        contents = {file: entry for file, (entry, _) in found.items()}
        inner = {file: files for file, (_, files) in found.items() if is_many(file)}
        return adopted_line(making.recipe, name, contents, inner)

    # ---- how it comes to its answers

    def _look(self) -> None:
        """Read the directory, each file once; outputs that foreplan never made need no reading."""
        graph = self._graph
        names: dict[str, None] = {}
        for task, wanted in enumerate(graph.wanted):
            if wanted:
                outer = (n for n in graph.read[task] if n not in graph.maker or n in graph.inner)
                names |= dict.fromkeys(outer)
                names |= dict.fromkeys(name for name in graph.made[task] if self.store.knows(name))
        self._disk = self.memory.contents(names)
        for name, content in self.asked.temp.items():
            readers = (t for t, files in enumerate(graph.read) if name in files)
            is_over = all(self.workflow.task_names[t] in self.asked.done for t in readers)
            if is_over and self._disk.get(name) is None:
                self._disk[name] = content  # it was deleted once its last reader was done

    def _judge(self, task: int) -> None:
        """Say what is known of a task, given what is known of those before it."""
        state, reason, result = self._verdict(task)
        self.states[task], self.reasons[task], self.results[task] = state, reason, result
        self._forget(task)
        if result is not None:
            self._known |= {name: entry[3] for name, entry in result.outputs.items()}
            for name in self._graph.within.get(task, ()):
                if content := self._inner_content(name, result):
                    self._known[name] = content
            if result.call is not None:
                self._known[_result_name(task)] = result.call.content

    def _inner_content(self, name: str, result: Result) -> str | None:
        """What a file was that is among a directory or pattern which is up to date."""
        whole = self._graph.inner[name]
        entry = result.matched.get(whole, {}).get(name)
        if entry is None and self._disk.get(whole) is None:  # it need not be there
            entry = self.store.files.get(name)
        return self._disk.get(name) if entry is None else entry[3]

    def _verdict(self, task: int) -> tuple[State, str, Result | None]:
        recipe, note = self._recipe(task)
        self._recipes[task] = recipe
        spec = self.workflow.spec(task)
        if self._is_forced(task):
            name = self.workflow.task_names[task]
            reason = FORCED if self._is_asked(name) else self.asked.again[name]
            return State.STALE, reason, None
        known = self.calls[task] is not None or self._graph.made[task] or spec.cache
        if not known and self.workflow.task_names[task] not in self.asked.done:
            return State.STALE, EVERY_RUN, None
        if recipe is None:
            return self._without_recipe(task, note)
        for find in (self._done_by_run, self._by_key):
            for result in find(task, recipe):
                if self._holds(task, result):
                    return State.UP_TO_DATE, "", result
        return State.STALE, self._reason(task, recipe), None

    def _by_key(self, task: int, recipe: Recipe) -> list[Result]:
        """What anybody's task has given from the same; what leaves no files, the task's last."""
        if self.calls[task] is None and not recipe.outputs:
            last = self.store.of_task(self.workflow.task_names[task])[:1]
            return [result for result in last if result.key == recipe.key]
        kept = self._kept_result(recipe) if self.calls[task] is not None else None
        return self.store.results(recipe.key) if kept is None else [kept]

    def _done_by_run(self, task: int, recipe: Recipe) -> list[Result]:
        """What a task of this run has given, by what it declares: a script is used as it is now."""
        name = self.workflow.task_names[task]
        if name not in self.asked.done or self.calls[task] is not None:
            return []
        declared = {file: recipe.inputs[file] for file in self._graph.read[task]}

        def agrees(result: Result) -> bool:
            then = result.recipe.get("inputs", {})
            made = sorted(result.outputs) == list(recipe.outputs)
            same = result.recipe.get("how") == recipe.how and made and result.task == name
            same = same and result.recipe.get("around", {}) == recipe.around
            return same and all(then.get(file) == now for file, now in declared.items())

        return [result for result in self.made_by(task) if agrees(result)]

    def _is_forced(self, task: int) -> bool:
        name = self.workflow.task_names[task]
        return name in self.asked.again or self._is_asked(name)

    def _is_asked(self, name: str) -> bool:
        force = self.asked.force
        return force is True or bool(force and name in force)

    def _without_recipe(self, task: int, note: str) -> tuple[State, str, Result | None]:
        """What can be said of a task whose inputs are not all known."""
        unknown = self._unknown(task)
        if not unknown:
            return State.STALE, note, None
        if (call := self.calls[task]) is not None:
            return self._without_results(task, call, unknown[0])
        partial, last, waits = self._partial(task), self.made_by(task), self._waits(task, unknown)
        if last and self.workflow.spec(task).gathers:  # what else it reads is not known, either
            return State.UNSURE, waits, None
        agreeing = [r for r in last if r.key and not differences(r.recipe, r.outputs, partial(r))]
        if any(self._holds(task, result) for result in agreeing):
            return State.UNSURE, waits, None
        if agreeing or not last:
            return State.STALE, self._reason(task, None), None
        return State.STALE, "; ".join(_told(last[0], partial(last[0]))), None

    def _without_results(
        self, task: int, call: Call, unknown: str
    ) -> tuple[State, str, Result | None]:
        """The same of a function: whether it and its arguments are what they were is known."""
        name, last = self.workflow.task_names[task], self.made_by(task)
        if name in self.uncertain:
            return State.STALE, self.uncertain[name], None
        if not last:
            return State.STALE, self._without_result(task), None
        how, arguments = self._digests.parts(call)
        told = differences_of_call(last[0].recipe, how, arguments) if last[0].key else []
        same = [r for r in last if not differences_of_call(r.recipe, how, arguments)]
        names = [self.workflow.task_names[other] for other in self._taken[task]]
        reads = "reads" if unknown in self._graph.read[task] else "comes after"
        waits = f"it {'takes the result of' if unknown in names else reads} {unknown}"
        if any(result.key and self._holds(task, result) for result in same):
            return State.UNSURE, f"{waits}, which is made again", None
        return State.STALE, "; ".join(told) or waits, None

    def _waits(self, task: int, unknown: list[str]) -> str:
        """What a task waits for that is not known, in words."""
        for name in unknown:
            if adder := self._adder(name):
                return f"it waits for what {adder} adds"
        reads = "reads" if unknown[0] in self._graph.read[task] else "comes after"
        return f"it {reads} {unknown[0]}, which is made again"

    def _adder(self, name: str) -> str:
        maker = self._graph.maker.get(name)
        return "" if maker is None or not adder_of(name) else self.workflow.task_names[maker]

    def _partial(self, task: int) -> Callable[[Result], Recipe]:
        """The recipe with what a result had where it is not known yet."""
        contents, keys = self._inputs(task), self._keys_of_those_before(task)
        unknown = [name for name, content in contents.items() if content is None]
        known = {name: content for name, content in contents.items() if content is not None}
        grows = any(map(self._adder, unknown))  # what it comes after is not all there yet

        def filled(result: Result) -> Recipe:
            then = result.recipe.get("inputs", {})
            inputs = known | {name: then.get(name, "") for name in unknown}
            past = result.recipe.get("after", {})
            before = {n: past.get(n, "") if key is None else key for n, key in keys.items()}
            before = past if grows else before
            return recipe_of_command(
                self.workflow.spec(task), inputs, self._graph.made[task], before
            )

        return filled

    def _holds(self, task: int, result: Result) -> bool:
        """Whether what came out is still there, as far as it is needed."""
        if result.call is not None:
            return self.calls[task] is not None and (
                task not in self._graph.products or self.asked.has_result(result.call)
            )
        for name, entry in result.outputs.items():
            content = self._disk.get(name)
            if content != entry[3] and (content is not None or name in self._graph.asked_for):
                return False
        return True

    def made_by(self, task: int, store: Store | None = None) -> list[Result]:
        """What a task, or another that made its outputs, has given before, the latest first."""
        store = store or self.store
        for name in self._graph.made[task]:
            if made := store.made(name):
                return made
        return store.of_task(self.workflow.task_names[task])

    def _reason(self, task: int, recipe: Recipe | None) -> str:
        """Why a task is stale."""
        last = self.made_by(task)
        if not last:
            return self._without_result(task)
        told = _told(last[0], recipe) if recipe is not None else []
        if told:
            return "; ".join(told)
        for name in self._graph.made[task]:
            if self._disk.get(name) is None and name in self._graph.asked_for:
                return f"its output {name} is missing"
        for name in self._graph.made[task]:
            content = self._disk.get(name)
            if content is not None and content != last[0].outputs.get(name, (0, 0, 0, ""))[3]:
                if self.store.is_own(name, content):
                    return f"its output {name} is of another attempt"
                if self._is_mixed(name):
                    return f"some files of its output {name} are missing, or of another attempt"
                return f"its output {name} was changed by hand"
        if self.calls[task] is not None:
            return "its result is not there any more"
        return "its outputs are not all of one attempt"

    @cached_property
    def _last_by_name(self) -> dict[str, Result]:
        """The last results, by the names that their tasks had."""
        return {result.task: result for result in self.store.latest_results()}

    def _without_result(self, task: int) -> str:
        """Return why a task runs of which the store has no result."""
        # another task may have had this name: what it made need not be what this one made
        last = self._last_by_name.get(self.workflow.task_names[task])
        if last is not None and last.outputs and self._graph.made[task]:
            why = "its outputs are new here: a task of this name made others before"
        else:
            why = NO_RESULT
        for name in self._graph.made[task]:
            if self.memory.status(name) is None:
                continue
            if is_many(name) or self.store.knows(name):  # else it is refused
                return f"{why}; its output {name} replaces what foreplan made there before"
            return (
                f"{why}; its output {name}, which foreplan did not make,{WILL_BE_REPLACED}; "
                f"`foreplan adopt {name}` keeps it"
            )
        return why

    # ---- recipes

    def _recipe(self, task: int) -> tuple[Recipe | None, str]:
        """The recipe of a task; or else why there is none, if not for what is being made again."""
        if self.calls[task] is not None:
            return self._recipe_of_call(task)
        inputs, after = self._inputs(task), self._after(task)
        known = {name: content for name, content in inputs.items() if content is not None}
        if len(known) < len(inputs) or after is None:
            missing = [n for n in inputs if n not in known and n not in self._graph.maker]
            return None, f"its input {missing[0]} is missing" if missing else ""
        spec = self.workflow.spec(task)
        return recipe_of_command(spec, known, self._graph.made[task], after), ""

    def _recipe_of_call(self, task: int) -> tuple[Recipe | None, str]:
        call = self.calls[task]
        assert call is not None
        if note := self._check_comparable(call, task):
            return None, note
        if missing := self.missing(task):
            return None, f"its input {missing[0]} is missing"
        taken, read, after = self._taken[task], self._graph.read[task], self._after(task)
        contents: dict[int | str, str] = {}
        for name in read:
            known = self._known if name in self._graph.maker else self._disk
            if (content := known.get(name)) is not None:
                contents[name] = content
        contents |= {t: c for t in taken if (c := self._known.get(_result_name(t))) is not None}
        if len(contents) < len(taken) + len(read) or after is None:
            return None, ""
        return recipe_of_call(call, self._digests, contents, self.workflow.task_names, after), ""

    def _check_comparable(self, call: Call, task: int) -> str:
        """Why a call cannot be compared with another program's, if so."""
        name = self.workflow.task_names[task]
        if name not in self.uncertain:
            try:
                self._digests.parts(call)
            except ValueError as error:
                why = f"its function or arguments cannot be compared: {error}"
                self.uncertain[name] = why
        return self.uncertain.get(name, "")

    def _inputs(self, task: int) -> dict[str, str | None]:
        """The contents of all files that belong to a task, None where they are not known."""
        graph, disk = self._graph, self._disk
        read = graph.read[task]
        named = self._named.of(self.workflow.spec(task), {*read, *graph.made[task]})
        if new := [name for name in named if name not in disk]:
            disk |= self.memory.contents(new)
        inputs = {name: disk.get(name) for name in named}
        for name in read:
            inputs[name] = self._known.get(name) if name in graph.maker else disk.get(name)
        return inputs

    def _after(self, task: int) -> dict[str, str] | None:
        """The keys of tasks that only come before, by name; None if one is not known."""
        found = self._keys_of_those_before(task)
        keys = {name: key for name, key in found.items() if key is not None}
        return keys if len(keys) == len(found) else None

    def _keys_of_those_before(self, task: int) -> dict[str, str | None]:
        names = self.workflow.task_names
        keys: dict[str, str | None] = dict(self.asked.after.get(names[task], {}))
        for other in self._only_after(task):
            recipe = self._recipes[other]
            keys[names[other]] = None if recipe is None else recipe.key
        return keys

    def _only_after(self, task: int) -> list[int]:
        """The tasks before a task that hand nothing on to it that could be known by its content."""
        others = self._graph.after[task]
        return [other for other in others if other not in self._taken[task]]

    def _unknown(self, task: int) -> list[str]:
        """What a task waits for to be known: files, or tasks."""
        graph, names = self._graph, self.workflow.task_names
        waits = [n for n in graph.read[task] if n in graph.maker and n not in self._known]
        waits += [names[t] for t in self._taken[task] if _result_name(t) not in self._known]
        return waits + [names[t] for t in self._only_after(task) if self._recipes[t] is None]

    # ---- what follows from it

    def _find_edited(self) -> None:
        """The outputs that are on disk as foreplan never made them."""
        for task in self.tasks(State.UP_TO_DATE, *OUTDATED):
            if self._is_asked(self.workflow.task_names[task]):
                continue
            for name in self._graph.made[task]:
                content = self._disk.get(name)
                if content is None and not self._is_in_changed_tree(name):
                    continue
                if content is not None and self.store.is_own(name, content):
                    continue
                if not self._is_mixed(name):
                    self.edited.append(Edited(name, self.workflow.task_names[task]))

    def changed_file(self, many: str) -> str:
        """Return a file of a directory or pattern that is not as it was last made."""
        listed = (file for file in self.files_of(many) if not is_tree(file))
        known, files = self.store.files, self.memory.contents(listed)
        odd = (file for file, now in files.items() if file not in known or known[file][3] != now)
        return next(odd, "")

    def _is_in_changed_tree(self, name: str) -> bool:
        """Whether a file is in a directory that foreplan once made whole, and is now another."""
        if self.store.knows(name) or is_many(name):
            return False
        folder = name.rpartition("/")[0]
        while folder and not self.store.knows(f"{folder}/"):
            folder = folder.rpartition("/")[0]
        if not folder or self.memory.status(name) is None:
            return False
        return not self.store.is_own(f"{folder}/", self.memory.content(f"{folder}/") or "")

    def _is_mixed(self, name: str) -> bool:
        """Whether each file of a pattern is as foreplan once made it, if not all at once."""
        if not is_pattern(name):
            return False
        by_file = self.memory.contents(self.memory.files_of(name))
        return all(self.store.is_own(file, content or "") for file, content in by_file.items())

    def _find_foreign(self) -> None:
        """What foreplan never made, and would have to delete for a directory or pattern."""
        names = self.workflow.task_names
        for task, wanted in enumerate(self._graph.wanted):
            for output in filter(is_many, self._graph.made[task]) if wanted else ():
                files = self.memory.files_of(output)
                if is_pattern(output) and self._is_forced(task):
                    self._given_up |= self.memory.contents(files)
                if self._is_forced(task) and names[task] in self.asked.replaces:
                    continue
                if is_pattern(output):
                    files = self._not_own(output, files)
                elif self.store.knows(output):
                    files = []
                if files:
                    changed = self.store.knows(files[0])
                    self.foreign.append(Foreign(files[0], output, names[task], changed))

    def _not_own(self, pattern: str, files: list[str]) -> list[str]:
        """The files that a pattern never had, and that are not as a task has made them."""
        own = {f for made in self.store.made(pattern) for f in made.matched.get(pattern, ())}
        others = [file for file in files if file not in own]
        contents = self.memory.contents(filter(self.store.knows, others))
        return [f for f in others if not self.store.has_made(f, contents.get(f) or "")]

    def _add_needed(self) -> None:
        """Make again what is missing and read by what runs, or may run; and so on from there."""
        graph, names = self._graph, self.workflow.task_names
        todo = self.tasks(*OUTDATED)
        while todo:
            task = todo.pop()
            for other, file in self._missing_inputs(task):
                if self.states[other] in (State.UP_TO_DATE, State.UNSURE):
                    reason = f"its {file} is missing, and {names[task]} needs it"
                    self._make_again(other, State.STALE, reason)
                    self._needed.add(other)
                    todo.append(other)
            for other in graph.behind[task]:
                if self.states[other] is State.UP_TO_DATE and self._is_fed(other, task):
                    reason = f"it reads what {names[task]} makes again"
                    self._make_again(other, State.UNSURE, reason)
                    todo.append(other)

    def _make_again(self, task: int, state: State, reason: str) -> None:
        self.states[task], self.reasons[task], self.results[task] = state, reason, None
        self._forget(task)

    def _forget(self, task: int) -> None:
        """What a task gives is not known any more."""
        graph = self._graph
        for name in (*graph.made[task], *graph.within.get(task, ()), _result_name(task)):
            self._known.pop(name, None)

    def _missing_inputs(self, task: int) -> list[tuple[int, str]]:
        """The tasks whose outputs a task would read, but that are not there."""
        graph = self._graph
        files = (n for n in graph.read[task] if n in graph.maker and self._disk.get(n) is None)
        found = [(graph.maker[name], f"output {name}") for name in files]
        for other in self._taken[task]:
            result = self.results[other]
            if result is not None and result.call and not self.asked.has_result(result.call):
                found.append((other, "result"))
        return found

    def _is_fed(self, reader: int, task: int) -> bool:
        """Whether a task reads what another makes, rather than only coming after it."""
        if task in self._taken[reader]:
            return True
        return any(self._graph.maker.get(name) == task for name in self._graph.read[reader])


def _told(result: Result, recipe: Recipe) -> list[str]:
    """What has changed since a result was made."""
    if result.key is None:
        return [result.note or "what it was made from is not known"]
    return differences(result.recipe, result.outputs, recipe)


def _check_forced(workflow: Workflow, asked: Asked) -> None:
    for name in asked.force if isinstance(asked.force, Collection) else ():
        if name not in workflow.task_names:
            raise InputError(unknown_name("task", name, workflow.task_names))


def _result_name(task: int) -> str:
    """What stands for a function's result where others have the names of files."""
    return f"\0{task}"
