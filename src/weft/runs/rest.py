"""What of a workflow is left to do in its directory: the rest is up to date."""

from __future__ import annotations

import fnmatch
import os
import secrets
import shlex
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from weft.durable import reason
from weft.errors import InputError, WeftError, unknown_name
from weft.executors.results import KeptResults, NoResultError, load_result
from weft.model import Estimates, Workflow
from weft.model.call import Call, Calls, calls_of_part
from weft.model.filenames import is_there
from weft.model.growth import expansion_file, files_of, grow
from weft.quantities import first_few, many
from weft.runs.entries import Header
from weft.runs.former import NOTHING_FORMER, FormerTaken, take_former
from weft.runs.growing import check_added, printed_by
from weft.runs.home import RunHome, check_private, check_system, runs
from weft.runs.journal import decode
from weft.runs.lock import is_driven
from weft.runs.options import Options
from weft.store.content import CONTENT
from weft.store.digests import PYTHON
from weft.store.graph import WorkflowGraph
from weft.store.parts import Part, folder_of, make_folder, parse, put
from weft.store.run import RunStore
from weft.store.store import KeptResult, Store, StoreError
from weft.store.survey import EVERY_RUN, NEVER_RUN, Asked, State, Survey

_LISTED = 5
_OUTDATED = (State.STALE, State.UNSURE)


@dataclass(frozen=True)
class Rest:
    """The tasks that a run has to do, each with the reason; and those that are up to date."""

    workflow: Workflow  # these alone
    numbers: tuple[int, ...]  # of each task, in the whole workflow
    reasons: dict[str, str]  # why each runs
    up_to_date: tuple[str, ...]
    left_out: tuple[str, ...] = ()  # what is asked for does not need them
    survey: Survey | None = None  # None: the store is not asked
    former: FormerTaken = NOTHING_FORMER  # what runs of before there was a store have made
    calls: tuple[Call | None, ...] | None = None  # of these tasks, if there are functions
    # results of other tasks that these take, by their names, in the order of their numbers
    taken: Mapping[str, KeptResult] = field(default_factory=dict)
    kept: KeptResults | None = None  # results of functions, of all runs of the directory
    # what tasks have printed that are up to date, and have added tasks before anything was run
    expansions: Mapping[str, Workflow] = field(default_factory=dict)

    @staticmethod
    def whole(workflow: Workflow, calls: Calls | None = None) -> Rest:
        """All of it."""
        of_tasks = None if calls is None else tuple(calls)
        return Rest(workflow, tuple(range(workflow.n_tasks)), {}, (), calls=of_tasks)

    @staticmethod
    def to_plan(workflow: Workflow, options: Options, otherwise: str = "") -> Rest:
        """What a plan of a directory is about: what its store leaves to do, else all of it.

        `otherwise` is what else can be done where somebody has changed an output by hand.
        """
        commands = all(workflow.spec(task).run is not None for task in range(workflow.n_tasks))
        known = commands and folder_of(options.directory).is_dir() and uses_store(None, options)
        return Rest.find(workflow, options, otherwise) if known else Rest.whole(workflow)

    @staticmethod
    def find(
        workflow: Workflow,
        options: Options,
        otherwise: str = "",
        calls: Calls | None = None,
    ) -> Rest:
        """What the directory and its store leave to do; nothing is begun."""
        kept = None if calls is None else _kept_results(options.directory)
        survey, former = _survey(workflow, options, calls=calls, kept=kept)
        expansions = dict[str, Workflow]()
        while calls is None and (news := _known_expansions(survey, expansions)):
            workflow, options = _with_known(workflow, options, news, expansions)
            survey, former = _survey(workflow, options)
        _check_edited(survey, options.directory, otherwise, of_flow=calls is not None)
        _check_protected(survey)
        names = workflow.task_names
        runs = [state in (State.STALE, State.UNSURE) for state in survey.states]
        numbers = tuple(t for t, is_run in enumerate(runs) if is_run)
        part, outer = (None, ()) if calls is None else calls_of_part(calls, numbers)
        return Rest(
            workflow.part(np.array(runs, dtype=np.bool_)),
            numbers,
            {names[t]: survey.reasons[t] for t in numbers},
            tuple(names[t] for t in survey.tasks(State.UP_TO_DATE)),
            tuple(names[t] for t in survey.tasks(State.LEFT_OUT)),
            survey,
            former,
            part,
            {names[t]: _result_of(survey, t) for t in outer},
            kept,
            expansions,
        )

    @staticmethod
    def resumed(
        workflow: Workflow, options: Options, done: Collection[str], header: Header
    ) -> Rest:
        """All of a run that is resumed, of which these tasks are done."""
        known = {*workflow.task_names, *WorkflowGraph(workflow).maker}  # others were up to date
        targets = tuple(target for target in options.targets if target in known)
        replaces = _replaces(workflow, options)
        options = replace(options, targets=targets, force=_still_forced(workflow, options, done))
        survey, former = _survey(workflow, options, done, header, replaces=replaces)
        _check_protected(survey, header.id)
        _check_edited(survey, options.directory, "if it is deleted, the run makes it again")
        return Rest(workflow, tuple(range(workflow.n_tasks)), {}, (), (), survey, former)

    def grown(self, workflow: Workflow, done: Collection[str], header: Header) -> Rest:
        """The same with tasks that were added to what is run, of which these are done."""
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
        )
        data = self.survey.memory.data
        survey = Survey(workflow, data, Store.read(data), asked)
        return replace(self, workflow=workflow, numbers=numbers, survey=survey)

    def others(self) -> dict[str, str]:
        """Where tasks may be added: files of tasks that are no part of this, and their makers."""
        if self.survey is None or not any(spec.expand for spec in self.workflow.specs.values()):
            return {}
        own = files_of(self.workflow)
        whole = files_of(self.survey.workflow)
        return {file: task for file, task in whole.items() if own.get(file) != task}

    def outdated(self) -> set[int]:
        """The tasks whose results the store knows, but which do not hold any more."""
        survey = self.survey
        if survey is None:
            return set()
        stale = survey.tasks(*_OUTDATED)
        known = {task for task in stale if any(map(survey.store.knows, survey.outputs(task)))}
        known |= {task for task in survey.fed_by_files() if survey.states[task] in _OUTDATED}
        own = {number: task for task, number in enumerate(self.numbers)}
        # nobody could make what has lost its inputs
        return {own[task] for task in known if task in own and not survey.missing(task)}

    def check_needed(self, directory: Path) -> None:
        """Refuse to resume a run if what it has to do needs files that nobody makes any more."""
        survey, graph = self.survey, WorkflowGraph(self.workflow)
        assert survey is not None
        data, names = directory.absolute(), self.workflow.task_names
        gone = {file for file in graph.maker if not is_there(str(data), file)}
        todo = [t for t, name in enumerate(names) if name not in survey.asked.done]
        todo += [graph.maker[file] for file in gone & graph.unread]
        needed, missing = dict.fromkeys(todo), dict[str, None]()
        while todo:
            task = todo.pop()
            outside = (file for file in graph.read[task] if file not in graph.maker)
            missing |= dict.fromkeys(file for file in outside if not (data / file).exists())
            more = [graph.maker[f] for f in graph.read[task] if f in gone]
            todo += [other for other in more if other not in needed]
            needed |= dict.fromkeys(more)
        if missing:
            raise InputError(
                f"what is left of the run needs {first_few(missing)}, which is not there: put it "
                "there; if an earlier run has made it, `weft run` makes it again",
                source=str(data),
            )

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
    ) -> Rest:
        """The same of functions, of which `workflow` and `calls` are the whole."""
        kept, replaces = _kept_results(options.directory), _replaces(workflow, options)
        options = replace(options, force=_still_forced(workflow, options, done))
        survey, former = _survey(workflow, options, done, header, calls, kept, replaces)
        _check_edited(survey, options.directory, of_flow=True)
        _check_protected(survey, header.id)
        names = workflow.task_names
        own = {*header.workflow.task_names}
        numbers = tuple(t for t, name in enumerate(names) if name in own)
        part, outer = calls_of_part(calls, numbers)
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
        return Rest(header.workflow, numbers, {}, *more, survey, former, part, taken, kept)

    def open_store(self, home: RunHome) -> RunStore | None:
        """The store, as a run asks it; it is made, and mended if it must be."""
        if self.survey is None:
            return None
        store = Store.open(home.data, lambda run: _is_live(home.data, run))
        self.warnings[:] = store.warnings or self.warnings  # now also where what is damaged went
        self._keep([self.former.lines])
        index = {name: task for task, name in enumerate(self.survey.workflow.task_names)}
        outer = [index[name] for name in self.taken]
        opened = RunStore(self.survey, home.id, self.numbers, self.kept, outer)
        self._bring_results(home, opened, outer)
        return opened

    def _bring_results(self, home: RunHome, store: RunStore, tasks: Sequence[int]) -> None:
        """Have the results of other runs that are needed among those of this run."""
        assert self.survey is not None
        for k, (name, result) in enumerate(self.taken.items()):
            number = len(self.numbers) + k
            assert self.kept is not None
            if self.kept.has(result._replace(run=home.id, number=number)):
                continue
            try:
                file = self.kept.bring(result, str(home.results), number)
            except OSError as error:
                raise WeftError(
                    f"the result of {name!r}, which run {result.run} has made, cannot be had: "
                    f"{reason(error)}: begin a new run, which makes it again"
                ) from None
            making = self.survey.making(tasks[k])
            store.add_call(making, name, KeptResult(home.id, number, result.content, file))

    def load(self, home: Path, task: int, name: str) -> Any:
        """The result of a function, by the number of its task in the whole: of whichever run."""
        if task in self.numbers:
            return load_result(home / "results", self.numbers.index(task), name)
        if name in self.left_out or self.survey is None or self.kept is None:
            raise NoResultError(f"task {name!r} has no result: it was not asked for")
        result = self.survey.results[task]
        if result is None or result.call is None or not self.kept.has(result.call):
            raise NoResultError(
                f"the result of task {name!r} is up to date, but not there any more: "
                f"weft.run(..., targets=[{name!r}]) makes it again"
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

    def remember(self) -> None:
        """Have kept what was found out on the way, so that it need not be again."""
        if self.survey is not None:
            self._keep([self.former.lines, self.survey.take_news()])

    def _keep(self, lines: list[bytes]) -> None:
        assert self.survey is not None
        with suppress(OSError):  # then it is found out again
            if any(lines):
                folder = make_folder(self.survey.memory.data)
                put(folder, f"noted-{secrets.token_hex(4)}", lines)

    @property
    def messages(self) -> list[str]:
        """What is wrong with the store, and what it has just learned."""
        return [*self.warnings, *filter(None, [self.former.message])]

    @property
    def warnings(self) -> list[str]:
        """What is wrong with the store."""
        return [] if self.survey is None else self.survey.store.warnings

    @property
    def summary(self) -> str:
        """How much is left to do, in a line."""
        done, left = len(self.up_to_date), len(self.numbers)
        if not left:
            return f"nothing to do: {many(done, 'task')} up to date"
        return f"{done:,} of {many(done + left, 'task')} up to date; to run: {many(left, 'task')}"

    def in_words(self) -> list[str]:
        """What runs and why, in a few lines; nothing where all of it is new."""
        if not self.up_to_date and {*self.reasons.values()} <= {NEVER_RUN, EVERY_RUN}:
            return []
        by_reason: dict[str, list[str]] = {}
        for task, why in self.reasons.items():
            by_reason.setdefault(why, []).append(task)
        lines = [_of_reason(why, tasks) for why, tasks in by_reason.items()]
        more = [f"and for {len(lines) - _LISTED} other reasons"] if lines[_LISTED:] else []
        return [self.summary, *lines[:_LISTED], *more]


def _of_reason(why: str, tasks: list[str]) -> str:
    """A line on tasks that run for one reason."""
    listed = first_few(tasks, _LISTED)
    count = f" ({len(tasks):,} tasks)" if len(tasks) > _LISTED else ""
    return f"  {listed}{count}: {why}"


def uses_store(calls: Calls | None, options: Options) -> bool:
    """Whether results are known by their keys: not by times of files that were made elsewhere."""
    return calls is not None or not _is_carried(options) or options.trust == CONTENT


def _is_carried(options: Options) -> bool:
    """Whether the files of commands travel to the machines and back."""
    from weft.executors.base import find_scheme

    return not (find_scheme(options.on).here or options.shared)


def _survey(
    workflow: Workflow,
    options: Options,
    done: Collection[str] = (),
    header: Header | None = None,
    calls: Calls | None = None,
    kept: KeptResults | None = None,
    replaces: Collection[str] | None = None,
) -> tuple[Survey, FormerTaken]:
    """What is known of a directory; and what of it comes from runs of earlier versions."""
    data = options.directory.absolute()
    store = Store.read(data)
    asked = Asked(
        options.targets,
        _forced(workflow, options.force),
        done,
        {} if header is None else header.after,
        trust=options.trust,
        replaces=_replaces(workflow, options) if replaces is None else replaces,
        keeps_temp=header is not None and bool(header.left_out),
        anywhere=options.absolute,
    )
    if kept is not None:
        asked = replace(asked, after={}, every_result=options.keep_results, has_result=kept.has)
        return Survey(workflow, data, store, asked, calls), NOTHING_FORMER
    asked = replace(asked, carried=_is_carried(options))
    survey = Survey(workflow, data, store, asked)
    former = take_former(survey, "" if header is None else header.id)
    if former.tasks:
        store.add_lines(parse(former.lines).lines)
        survey = Survey(workflow, data, store, asked)
    return survey, former


def with_expansions(workflow: Workflow, options: Options) -> Workflow:
    """The workflow with the tasks that are added by what is up to date, as a run would begin."""
    known = dict[str, Workflow]()
    while any(spec.expand for spec in workflow.specs.values()):
        news = _known_expansions(_survey(workflow, options)[0], known)
        if not news:
            break
        workflow, options = _with_known(workflow, options, news, known)
    return workflow


def _known_expansions(survey: Survey, known: Mapping[str, Workflow]) -> list[int]:
    """The tasks that add others and are up to date, but for those that are known."""
    names, specs, data = survey.workflow.task_names, survey.workflow.specs, survey.memory.data
    up_to_date = [t for t in specs if specs[t].expand and survey.states[t] is State.UP_TO_DATE]
    new = (t for t in up_to_date if names[t] not in known)
    return [t for t in new if os.path.exists(os.path.join(data, expansion_file(names[t])))]


def _with_known(
    workflow: Workflow, options: Options, news: Collection[int], known: dict[str, Workflow]
) -> tuple[Workflow, Options]:
    """The workflow with what tasks have printed before; one that cannot be added is made again."""
    for task in news:
        name = workflow.task_names[task]
        try:
            known[name] = printed_by(name, options.directory)
            grown = grow(workflow, task, known[name])
            check_added(grown, workflow.n_items, options.directory, options.absolute)
            workflow = grown
        except WeftError:  # it says so when it is run
            known[name] = Workflow.from_items("", [], [], [])
            if options.force is not True:
                options = replace(options, force=(*(options.force or ()), name))
    return workflow, options


def _kept_results(directory: Path) -> KeptResults:
    """The results of a directory's runs; they are pickles, which run code."""
    data = directory.absolute()
    for place in (data / ".weft", data / ".weft" / "runs"):
        if place.exists():
            check_private(place)
    return KeptResults(data)


def _result_of(survey: Survey, task: int) -> KeptResult:
    result = survey.results[task]
    assert result is not None
    assert result.call is not None
    return result.call


def _still_forced(workflow: Workflow, options: Options, done: Collection[str]) -> tuple[str, ...]:
    """The tasks that a run which is resumed has still to run, whatever is known of them."""
    force = _forced(workflow, options.force)
    names = {*workflow.task_names} if force is True else force or set[str]()
    return tuple(names - {*done})


def _forced(workflow: Workflow, wanted: bool | Sequence[str]) -> bool | set[str]:
    """The tasks that are meant by names and patterns."""
    if isinstance(wanted, bool):
        return wanted
    names, found = workflow.task_names, set[str]()
    for pattern in wanted:
        meant = {pattern} if pattern in names else set(fnmatch.filter(names, pattern))
        if not meant:
            raise InputError(unknown_name("task", pattern, names))
        found |= meant
    return found


def _replaces(workflow: Workflow, options: Options) -> set[str]:
    """The tasks that may replace what is protected: those that are named, not just all."""
    named = () if isinstance(options.force, bool) else options.force
    forced = _forced(workflow, tuple(pattern for pattern in named if pattern != "*"))
    return set() if isinstance(forced, bool) else forced


def _check_protected(survey: Survey, run: str = "") -> None:
    """Refuse to make again what is protected."""
    names = survey.workflow.task_names
    for task in survey.tasks(State.STALE):
        if file := survey.shielded(task, run):
            why = survey.reasons[task]
            told = f" ({why})" if why else ""
            raise InputError(
                f"{file} is protected, and {names[task]} would make it again{told}: "
                f"`--force {names[task]}` does"
            )


def _is_live(data: Path, run: str) -> bool:
    home = RunHome(data / ".weft" / "runs" / run)
    return home.path.is_dir() and is_driven(home)


def _check_edited(
    survey: Survey, directory: Path, otherwise: str = "", of_flow: bool = False
) -> None:
    """Refuse to write over what somebody has changed by hand, or to delete what weft never made."""
    for file, output, task in survey.foreign:
        raise InputError(
            f"weft did not make {file}, but it is among {output}, which {task} makes and replaces "
            f"whole: move it elsewhere, or `weft adopt {shlex.quote(output)}` takes all of it as "
            f"what {task} gives"
        )
    if not survey.edited:
        return
    listed = ", ".join(f"{file} (of {task})" for file, task in survey.edited[:_LISTED])
    more = f" and {len(survey.edited) - _LISTED} more" if survey.edited[_LISTED:] else ""
    first, where = survey.edited[0], "" if directory == Path() else f" --dir {directory}"
    if of_flow:
        again = f"weft.run(..., force=[{first.task!r}]) makes it again"
        raise InputError(f"somebody has changed what weft has made: {listed}{more}: {again}")
    name = shlex.quote(first.file)
    raise InputError(
        f"somebody has changed what weft has made: {listed}{more}: "
        f"`weft adopt {name}{where}` keeps it as it is, `--force {first.task}` makes it again"
        + (f"; {otherwise}" if otherwise else "")
    )


def adopt_files(workflow: Workflow, directory: Path, files: Sequence[str]) -> list[str]:
    """Have outputs count as what their tasks give from what is there now; the tasks."""
    check_system()
    survey, former = _survey(workflow, Options(directory=directory))
    lines, tasks = [former.lines, *survey.adopt(files)], survey.makers(files)
    make_folder(directory)
    part = Part(survey.store.folder, f"adopted-{secrets.token_hex(4)}")
    try:
        part.append(b"".join(lines))
    except OSError as error:
        raise StoreError(f"{survey.store.folder}: {reason(error)}: nothing is adopted") from None
    finally:
        part.close()
    return [workflow.task_names[task] for task in tasks]


def last_source(directory: Path) -> tuple[str, dict[str, Any]]:
    """The file of the workflow that was run last in a directory, and its parameters."""
    for home in runs(directory):
        if source := _header(home).get("source"):
            return str(source), kept_params(home)
    raise InputError("no workflow was run here yet: name its file with --workflow")


def kept_params(home: RunHome) -> dict[str, Any]:
    """The parameters that a run was given."""
    params: dict[str, Any] = _header(home).get("options", {}).get("params", {})
    return params


def _header(home: RunHome) -> dict[str, Any]:
    with home.journal.open("rb") as file:
        header: dict[str, Any] = decode(file.readline().partition(b" ")[2])
    return header
