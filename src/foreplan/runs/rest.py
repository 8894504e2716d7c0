"""What of a workflow is left to do in its directory: the rest is up to date."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from foreplan.durable import reason
from foreplan.errors import ForeplanError, InputError
from foreplan.executors.results import KeptResults, NoResultError, load_result
from foreplan.model import Estimates, Workflow
from foreplan.model.call import (
    FAR,
    Call,
    Calls,
    Ref,
    ReturnedTasks,
    calls_of_part,
    part_of,
    replaced,
)
from foreplan.model.growth import check_gathered, files_of, grow
from foreplan.model.resources import asks_by_inputs
from foreplan.quantities import first_few, many
from foreplan.runs.entries import Header
from foreplan.runs.expansions import (
    Regrown,
    calls_of,
    calls_of_rest,
    with_added,
    with_printed,
    with_returned,
)
from foreplan.runs.growing import check_loops
from foreplan.runs.home import RunHome
from foreplan.runs.lock import is_driven
from foreplan.runs.options import Options
from foreplan.runs.reasons import LISTED, ReasonGroup, group_reasons
from foreplan.runs.surveys import (
    check_edited,
    check_protected,
    kept_results,
    named_by_force,
    still_forced,
    survey_of,
    uses_store,
)
from foreplan.store.digests import PYTHON
from foreplan.store.graph import WorkflowGraph
from foreplan.store.parts import encode, folder_of, make_folder, put
from foreplan.store.run import RunStore
from foreplan.store.store import KeptResult, ResultOrigin, Store
from foreplan.store.survey import EVERY_RUN, NO_RESULT, OUTDATED, State, Survey

if TYPE_CHECKING:
    from foreplan.runs.replay import Replayed


@dataclass(frozen=True)
class Rest:
    """The tasks that a run has to do, each with the reason; and those that are up to date."""

    workflow: Workflow  # these alone
    numbers: tuple[int, ...]  # of each task, in the whole workflow
    reasons: dict[str, str]  # why each runs
    up_to_date: tuple[str, ...]
    left_out: tuple[str, ...] = ()  # what is asked for does not need them
    survey: Survey | None = None  # None: the store is not asked
    calls: tuple[Call | None, ...] | None = None  # of these tasks, if there are functions
    # results of other tasks that these take, by their names, in the order of their numbers
    taken: Mapping[str, KeptResult] = field(default_factory=dict)
    kept: KeptResults | None = None  # results of functions, of all runs of the directory
    # what tasks have printed that are up to date, and have added tasks before anything was run
    expansions: Mapping[str, Workflow] = field(default_factory=dict)
    set_out: tuple[Call | None, ...] | None = None  # its calls before any tasks were added
    cautions: tuple[str, ...] = ()  # warnings about protected outputs
    notes: tuple[str, ...] = ()  # what was done to the directory before

    @property
    def complete(self) -> Workflow:
        """The workflow that these are a part of, or all."""
        return self.workflow if self.survey is None else self.survey.workflow

    @property
    def outer(self) -> list[int]:
        """The tasks whose results are taken of others, by their numbers in the whole."""
        names = () if self.survey is None else self.survey.workflow.task_names
        index = {name: task for task, name in enumerate(names)} if self.taken else {}
        return [index[name] for name in self.taken]

    @property
    def first(self) -> int:
        """The first number of these among the results of the run."""
        return FAR if self.complete.grows else len(self.numbers)

    @staticmethod
    def whole(workflow: Workflow, calls: Calls | None = None) -> Rest:
        """All of it."""
        of_tasks = None if calls is None else tuple(calls)
        return Rest(workflow, tuple(range(workflow.n_tasks)), {}, (), calls=of_tasks)

    @staticmethod
    def to_plan(
        workflow: Workflow, options: Options, otherwise: str = "", source: str | None = None
    ) -> Rest:
        """What a plan of a directory is about: what its store leaves to do, else all of it.

        `otherwise` is what else can be done where somebody has changed an output by hand.
        """
        commands = all(workflow.spec(task).run is not None for task in range(workflow.n_tasks))
        known = commands and folder_of(options.directory).is_dir() and uses_store(None, options)
        if not known:
            return Rest.whole(workflow)
        return Rest.find(workflow, options, otherwise, source=source)

    @staticmethod
    def find(
        workflow: Workflow,
        options: Options,
        otherwise: str = "",
        calls: Calls | None = None,
        source: str | None = None,
    ) -> Rest:
        """Return the tasks that the directory and its store leave to do; begin nothing.

        `source` is the workflow's file, for advice.
        """
        kept = None if calls is None else kept_results(options.directory)
        expansions = dict[str, Workflow]()
        if calls is None and workflow.grows:
            survey = with_printed(workflow, options, expansions)
        else:
            survey = survey_of(workflow, options, calls=calls, kept=kept)
        if kept is not None and workflow.grows:
            survey, options = with_returned(survey, options, kept, expansions)
            calls = survey.calls
        workflow = survey.workflow
        added = {name for name, more in expansions.items() if more.n_tasks}
        for task, spec in workflow.specs.items() if added and calls is None else ():
            if spec.gathers and survey.states[task] is not State.LEFT_OUT:
                check_gathered(workflow, task, added)
        check_edited(survey, options, source, otherwise, of_flow=calls is not None)
        check_loops(survey)
        cautions = check_protected(survey, options, source)
        names = workflow.task_names
        runs = [state in OUTDATED for state in survey.states]
        numbers = tuple(t for t, is_run in enumerate(runs) if is_run)
        part, outer = (
            (None, ()) if calls is None else calls_of_rest(workflow, calls, numbers, expansions)
        )
        return Rest(
            workflow.part(np.array(runs, dtype=np.bool_)),
            numbers,
            {names[t]: survey.reasons[t] for t in numbers},
            tuple(names[t] for t in survey.tasks(State.UP_TO_DATE)),
            tuple(names[t] for t in survey.tasks(State.LEFT_OUT)),
            survey,
            part,
            {names[t]: _result_of(survey, t) for t in outer},
            kept,
            expansions,
            cautions=cautions,
        )

    @staticmethod
    def resumed(
        workflow: Workflow, options: Options, done: Collection[str], header: Header
    ) -> Rest:
        """All of a run that is resumed, of which these tasks are done."""
        known = {*workflow.task_names, *WorkflowGraph(workflow).maker}  # others were up to date
        targets = tuple(target for target in options.targets if target in known)
        replaces = named_by_force(workflow, options)
        options = replace(options, targets=targets, force=still_forced(workflow, options, done))
        survey = survey_of(workflow, options, done, header, replaces=replaces)
        cautions = check_protected(survey, options, header.source, header.id)
        otherwise = "if it is deleted, the run makes it again"
        check_edited(survey, options, header.source, otherwise)
        numbers = tuple(range(workflow.n_tasks))
        return Rest(workflow, numbers, {}, header.up_to_date, (), survey, cautions=cautions)

    def grown(self, workflow: Workflow, done: Collection[str], header: Header) -> Rest:
        """The same with tasks that were added to what is run, of which these are done.

        They may not write over what somebody has made by hand, as nobody may.
        """
        numbers = tuple(range(workflow.n_tasks))
        if self.survey is None:
            return replace(self, workflow=workflow, numbers=numbers)
        asked, names = self.survey.asked, {*workflow.task_names}
        known = {*names, *WorkflowGraph(workflow).maker}
        force = names if asked.force is True else names.intersection(asked.force or ())
        asked = replace(
            asked,
            targets=tuple(target for target in asked.targets if target in known),
            force=force.difference(done),
            done={*done},
            after=header.after,
            temp=header.temp,
        )
        data = self.survey.memory.data
        survey = Survey(workflow, data, Store.read(data), asked)
        added = names.difference(self.workflow.task_names)  # others may be making their files now
        check_edited(survey, header.options, header.source, tasks=added)
        return replace(self, workflow=workflow, numbers=numbers, survey=survey)

    def with_returned(
        self, task: int, returned: ReturnedTasks, workflow: Workflow, done: Collection[str]
    ) -> Rest:
        """The same with what a function of it adds, which makes it this workflow."""
        survey, by = self.survey, self.numbers[task]
        assert self.calls is not None
        if survey is None:
            calls = calls_of(self.calls, by, returned, workflow.task_names[task])
            return replace(
                self, workflow=workflow, numbers=tuple(range(len(calls))), calls=tuple(calls)
            )
        whole, more = survey.workflow, returned.workflow
        name, n = whole.task_names[by], whole.n_tasks
        calls = calls_of(survey.calls, by, returned, name)
        whole = whole if more is None else grow(whole, by, more)
        numbers = (*self.numbers, *range(n, whole.n_tasks))
        names, asked = {*whole.task_names}, survey.asked
        force = names if asked.force is True else {*(asked.force or ())}
        asked = replace(
            asked,
            targets=with_added(asked.targets, name, more),
            force=force.difference(done),
            done={*done},
        )
        data = survey.memory.data
        again = Survey(whole, data, Store.read(data), asked, calls)
        for k, other in enumerate(survey.workflow.task_names):
            if other in done and (content := survey.content_of(k)):
                again.take_as(k, content)  # it may be in memory only
        for k, result in zip(self.outer, self.taken.values(), strict=True):
            again.take_as(k, result.content)
        part, _ = calls_of_part(calls, numbers, self.first, self.outer)
        return replace(self, workflow=workflow, numbers=numbers, survey=again, calls=part)

    def others(self) -> dict[str, str]:
        """Where tasks may be added: files of tasks that are no part of this, and their makers."""
        if self.survey is None or not self.workflow.grows:
            return {}
        own = files_of(self.workflow)
        whole = files_of(self.survey.workflow)
        return {file: task for file, task in whole.items() if own.get(file) != task}

    def sizes_taken(self) -> dict[int, float]:
        """Of tasks that ask by the size of inputs, the bytes of results of others, by task."""
        if not self.taken or self.survey is None:
            return {}
        whole, taken = self.survey.workflow, dict(zip(self.outer, self.taken.values(), strict=True))
        found = dict[int, float]()
        for task in asks_by_inputs(self.workflow):
            first, end = whole.in_ptr[self.numbers[task] : self.numbers[task] + 2].tolist()
            makers = whole.item_producer[whole.in_item[first:end]].tolist()
            found[task] = float(sum(taken[maker].file[0] for maker in makers if maker in taken))
        return found

    def outdated(self) -> set[int]:
        """The tasks whose results the store knows, but which do not hold any more."""
        survey = self.survey
        if survey is None:
            return set()
        stale = survey.tasks(*OUTDATED)
        known = {task for task in stale if any(map(survey.store.knows, survey.outputs(task)))}
        known |= {task for task in survey.fed_by_files() if survey.states[task] in OUTDATED}
        own = {number: task for task, number in enumerate(self.numbers)}
        # nobody could make what has lost its inputs
        return {own[task] for task in known if task in own and not survey.missing(task)}

    def of(self, estimates: Estimates) -> Estimates:
        """What is known of these tasks, out of what is known of all."""
        if len(self.numbers) == len(estimates.cost):
            return estimates
        if max(self.numbers, default=0) >= len(estimates.cost):
            raise InputError(
                "the estimates are of the declared tasks, but there are others that were added by "
                "a run before: leave the estimates out"
            )
        return estimates.part(list(self.numbers))

    @staticmethod
    def resumed_calls(
        workflow: Workflow,
        options: Options,
        calls: Calls,
        done: Collection[str],
        header: Header,
        replayed: Replayed,
        home: RunHome,
    ) -> Rest:
        """The same of functions, of which `workflow` and `calls` are all that is declared."""
        set_out = None
        if workflow.grows:
            grown = Regrown(workflow, calls, options, home)
            set_out = grown.add_all(header, replayed, done)
            workflow, calls, options = grown.workflow, grown.calls, grown.options
        kept, replaces = kept_results(options.directory), named_by_force(workflow, options)
        options = replace(options, force=still_forced(workflow, options, done))
        survey = survey_of(workflow, options, done, header, calls, kept, replaces)
        check_edited(survey, options, header.source, of_flow=True)
        cautions = check_protected(survey, options, header.source, header.id)
        names = workflow.task_names
        own = {*header.workflow.task_names}
        numbers = tuple(t for t, name in enumerate(names) if name in own)
        part, outer = calls_of_rest(workflow, calls, numbers, header.expansions)
        taken = {names[t]: header.taken[names[t]] for t in outer}
        changed = [n for n, r in taken.items() if not survey.is_result(names.index(n), r.content)]
        if changed and header.python == PYTHON:
            raise InputError(
                f"the function or the arguments of {first_few(map(repr, changed))} have changed "
                f"since run {header.id} began, and what came out of them then would be used beside "
                "what comes out now: undo the change, or begin a new run (without resume)"
            )
        for task, result in zip(outer, taken.values(), strict=True):
            survey.take_as(task, result.content)
        for number, task in enumerate(numbers):
            survey.recall(task, header.id, number)
        more = (header.up_to_date, header.left_out)
        rest = Rest(header.workflow, numbers, {}, *more, survey, part, taken, kept)
        return replace(rest, set_out=set_out, cautions=cautions)

    def open_store(self, home: RunHome) -> RunStore | None:
        """The store, as a run asks it; it is made, and mended if it must be."""
        if self.survey is None:
            return None
        store = Store.open(home.data, lambda run: _is_live(home.data, run), self.survey.store)
        if store.warnings:  # now also where what is damaged went
            self.survey.store.warnings[:] = store.warnings
        outer = self.outer
        opened = RunStore(self.survey, home.id, self.numbers, self.kept, outer, self.first)
        self._bring_results(home, opened, outer)
        return opened

    def _bring_results(self, home: RunHome, store: RunStore, tasks: Sequence[int]) -> None:
        """Have the results of other runs that are needed among those of this run."""
        assert self.survey is not None
        first = self.first
        for k, (name, result) in enumerate(self.taken.items()):
            number = first + k
            assert self.kept is not None
            if self.kept.has(result._replace(run=home.id, number=number)):
                continue
            try:
                file = self.kept.bring(result, str(home.results), number)
            except OSError as error:
                raise ForeplanError(
                    f"the result of {name!r}, which run {result.run} has made, cannot be had: "
                    f"{reason(error)}: begin a new run, which makes it again"
                ) from None
            making = self.survey.making(tasks[k])
            store.add_call(making, name, KeptResult(home.id, number, result.content, file))

    def load(self, home: Path, task: int, name: str) -> Any:
        """The result of a function, by the number of its task in the whole: of whichever run.

        Of one that has added tasks, it is made of theirs.
        """
        whole = self.complete
        found = self._load(home, task, name)
        if not whole.spec(task).expand:
            return found
        inner = () if found.workflow is None else found.workflow.task_names

        def result(ref: Ref) -> Any:
            other = f"{name}/{inner[ref.task]}"
            return part_of(self._load(home, whole.task_names.index(other), other), ref.path, other)

        return replaced(found.value, Ref, result)

    def _load(self, home: Path, task: int, name: str) -> Any:
        if task in self.numbers:
            return load_result(home / "results", self.numbers.index(task), name)
        if name in self.left_out or self.survey is None or self.kept is None:
            raise NoResultError(f"task {name!r} has no result: it was not asked for")
        result = self.survey.results[task]
        if result is None or result.call is None or not self.kept.has(result.call):
            raise NoResultError(
                f"the result of task {name!r} is up to date, but not there any more: "
                f"foreplan.run(..., targets=[{name!r}]) makes it again"
            )
        return load_result(self.kept.folder(result.call.run), result.call.number, name)

    @property
    def uncertain(self) -> list[str]:
        """What cannot be known by its key, in a sentence or none."""
        found = {} if self.survey is None else self.survey.uncertain
        tasks = {name: found[name] for name in self.workflow.task_names if name in found}
        if not tasks:
            return []
        why = next(iter(tasks.values()))
        one = f"{next(iter(tasks))!r}: {why}" if len(tasks) == 1 else ""
        return [
            f"{one}: it is run by every run"
            if one
            else f"{first_few(map(repr, tasks))} are run by every run: their functions or "
            f"arguments cannot be compared (of the first: {why.partition(': ')[2]})"
        ]

    def remember(self, origin: ResultOrigin | None) -> None:
        """Keep what was found out on the way, and that the workflow of this origin counts here."""
        if self.survey is None:
            return
        writer = f"noted-{secrets.token_hex(4)}"
        lines = self.survey.take_news()
        if origin is not None and origin not in self.survey.store.origins.values():
            lines += encode(origin.line([writer]))
        with suppress(OSError):  # then it is found out again
            if lines:
                put(make_folder(self.survey.memory.data), writer, [lines])

    @property
    def warnings(self) -> list[str]:
        """Return what is wrong with the store, and which protected outputs are in the way."""
        return [] if self.survey is None else [*self.survey.store.warnings, *self.cautions]

    @property
    def certain(self) -> set[str]:
        """The tasks that run whatever those before them make; the others may be up to date then."""
        if self.survey is None:
            return {*self.workflow.task_names}
        names = self.survey.workflow.task_names
        return {names[task] for task in self.survey.certain_tasks()}.intersection(self.reasons)

    @property
    def adders(self) -> list[str]:
        """The tasks that may add others: how many there will be is not known."""
        names = self.workflow.task_names
        return [names[task] for task, spec in self.workflow.specs.items() if spec.expand]

    @property
    def extent(self) -> str:
        """How many tasks run, in words: `at least 40, at most 123 tasks`."""
        least, most = len(self.certain), len(self.numbers)
        text = many(most, "task")
        if least < most:
            text = f"at least {least:,}, at most {text}"
        if not (adders := self.adders):
            return text
        text = text if least < most else f"at least {text}"
        adds = "adds" if len(adders) == 1 else "add"
        return f"{text}, and those that {first_few(adders, 3)} {adds}"

    @property
    def summary(self) -> str:
        """How much is left to do, in a line."""
        done, left = len(self.up_to_date), len(self.numbers)
        if not left:
            return f"nothing to do: {many(done, 'task')} up to date"
        text = f"{done:,} of {many(done + left, 'task')} up to date"
        if unsure := left - len(self.certain):
            text += f", {unsure:,} may turn out to be"
        return f"{text}; to run: {self.extent}"

    def groups(self, by_category: bool = True) -> list[ReasonGroup]:
        """Return the tasks that run, in groups with like reasons, within categories or not."""
        survey, names = self.survey, self.workflow.task_names
        number = {name: task for task, name in enumerate(names)}

        def category_of(name: str) -> str | None:
            return self.workflow.spec(number[name]).category if by_category else None

        def names_around(name: str) -> set[str]:
            return set() if survey is None else survey.names_around(self.numbers[number[name]])

        reasons = {name: self.reasons.get(name, "") for name in names}
        return group_reasons(reasons, category_of, names_around)

    def in_words(self) -> list[str]:
        """Return which tasks run and why, in a few lines; none if all of them are new."""
        if not self.up_to_date and {*self.reasons.values()} <= {NO_RESULT, EVERY_RUN}:
            return []
        groups = self.groups()
        if len(groups) > LISTED:
            groups = self.groups(by_category=False)
        lines = [f"  {group}" for group in groups[:LISTED]]
        if others := groups[LISTED:]:
            tasks = many(sum(len(group.tasks) for group in others), "task")
            lines.append(f"  {tasks} for {many(len(others), 'other reason')}")
        return [self.summary, *lines]


def _result_of(survey: Survey, task: int) -> KeptResult:
    result = survey.results[task]
    assert result is not None
    assert result.call is not None
    return result.call


def _is_live(data: Path, run: str) -> bool:
    home = RunHome(data / ".foreplan" / "runs" / run)
    return home.path.is_dir() and is_driven(home)
