"""A workflow's file, those that it includes, and its parameters: expanded to plain documents."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from foreplan.errors import InputError
from foreplan.files import printable, read_text
from foreplan.formats.deferred import (
    GlobLoop,
    Globs,
    LaterLoop,
    MadeFiles,
    deferred,
    let_wait,
    matched,
    names_in,
    with_waits,
)
from foreplan.formats.fields import (
    check_fields,
    mapping,
    named,
    shown,
    string,
    unknown,
    wrong,
)
from foreplan.formats.foreplan_workflow import unused_name
from foreplan.formats.loops import Cell, check_value
from foreplan.formats.origins import SourceText
from foreplan.formats.parts import (
    INCLUDE,
    PARAMS,
    Expansion,
    Fields,
    SourceFile,
    files_of,
    gathers,
    needs_expansion,
    task_body,
)
from foreplan.formats.placeholders import has_placeholders
from foreplan.formats.templates import (
    Body,
    Makers,
    Template,
    Variables,
    check_names,
    check_variable,
    fill,
    finish,
    join_rows,
    outputs_of,
    prepare,
    shared_name,
    split_rows,
)
from foreplan.formats.texts import parse_json, parse_yaml, plain_scalar
from foreplan.model.filenames import SharedFiles, covers, is_many
from foreplan.quantities import shortened

MOST_ADDING = 16  # tasks that add those of one loop

Entry = Body | Template | GlobLoop


def expand(
    content: Fields,
    origin: SourceText,
    given: Mapping[str, object],
    directory: Path,
    known: tuple[Sequence[str], Sequence[str]],
    others: Collection[str] = (),
    made: MadeFiles | None = None,
) -> Expansion:
    """A document and those that it includes, expanded; known are the fields of files and tasks.

    `others` are the outputs of tasks outside of it; `made` is what it loops over, if it was printed
    by a task.
    """
    fields, task_fields = known
    parts = _with_included(content, origin, fields, {})
    params = _parameters(parts, given)
    expansion, makers, globs = Expansion(parts, []), Makers(), Globs(directory, made)
    waiting: list[tuple[SourceFile, dict[str, Entry], str | None]] = []
    for part in parts:
        with part.reading():
            entries = _entries(part, params, globs, task_fields)
            if params or has_placeholders(_beside_tasks(part.content)):
                part.content = _filled(part.content, params)
        part.inherit()
        shell = part.content.get("shell")
        waiting.append((part, entries, shell if isinstance(shell, str) else None))
    loops = _Loops([entries for _, entries, _ in waiting], params, globs, others)
    loops.resolve(makers)
    for part, entries, _ in waiting:
        templates = (entry for entry in entries.values() if isinstance(entry, Template))
        expansion.templates += [(part, template.key, template.names) for template in templates]
    expansion.templates += loops.deferred
    let_wait(makers.later)
    _check_names(waiting)
    for part, entries, shell in waiting:
        with part.reading():
            for key, entry in entries.items():
                if isinstance(entry, Template):
                    part.tasks.update(zip(entry.names, finish(entry, makers, shell), strict=True))
                elif not isinstance(entry, GlobLoop):
                    part.tasks[key] = entry
            for name, body in part.tasks.items() if makers.later else ():
                part.tasks[name] = with_waits(body, makers.later, loops.fixed, name)
    return expansion


def _beside_tasks(document: Fields) -> Fields:
    return {key: v for key, v in document.items() if key not in ("tasks", PARAMS, INCLUDE)}


def _filled(document: Fields, params: Mapping[str, object]) -> Fields:
    """Return a document with values in the place of names, but for its tasks."""
    scope = Variables(params)
    filled = {key: fill(v, scope, str(key)) for key, v in _beside_tasks(document).items()}
    return {**document, **filled}


def _entries(
    part: SourceFile, params: Mapping[str, object], globs: Globs, known: Sequence[str]
) -> dict[str, Entry]:
    """The tasks of a file: as they are, as templates, or as loops over what globs match."""
    entries: dict[str, Entry] = {}
    for key, value in named(part.content.get("tasks"), "the task", "tasks").items():
        body = task_body(key, value, known)
        if not params and not needs_expansion(key, body):
            entries[key] = body
            continue
        own = replace(globs, patterns={}, tables=[])
        template = prepare(key, body, params, globs.directory, own)
        entries[key] = template
        if template.names and (own.patterns or own.tables):
            made = outputs_of(template)
            entries[key] = GlobLoop(part, key, body, template, own, made)
    return entries


class _Loops:
    """The loops over globs of all files, and which of them go over files that tasks make.

    Such a loop waits for these tasks. The others go over what is in the directory now.
    """

    def __init__(
        self,
        entries: Sequence[dict[str, Entry]],
        params: Mapping[str, object],
        globs: Globs,
        others: Collection[str],
    ) -> None:
        self._entries, self._params, self._globs = entries, params, globs
        every = [entry for of_file in entries for entry in of_file.values()]
        self._loops = [entry for entry in every if isinstance(entry, GlobLoop)]
        self._waiting: list[GlobLoop] = []
        self.deferred: list[tuple[SourceFile, str, list[str]]] = []  # loops that wait, as tasks
        self.fixed = dict.fromkeys(others)  # outputs of all tasks but those of loops that wait
        for entry in every if self._loops else ():
            if isinstance(entry, Template):
                self.fixed |= dict.fromkeys(outputs_of(entry))
            elif not isinstance(entry, GlobLoop):
                self.fixed |= dict.fromkeys(files_of(entry.get("outputs")))

    def resolve(self, makers: Makers) -> None:
        """Put templates, or tasks that wait, in the place of loops over globs."""
        self._choose()
        self._check_tables()
        self._expanding = set[str]()  # tasks that add tasks, as they say themselves
        for entries in self._entries if self._waiting else ():
            for key, entry in entries.items():
                body = entry if isinstance(entry, Mapping) else entry.body
                if body.get("expand") is True:
                    self._expanding |= {*entry.names} if isinstance(entry, Template) else {key}
        for entries in self._entries:
            every = dict(entries)
            entries.clear()
            for key, entry in every.items():
                if isinstance(entry, Template):
                    makers.add(entry)
                if not isinstance(entry, GlobLoop):
                    entries[key] = entry
                elif entry not in self._waiting:
                    makers.add(entry.template)
                    entries[key] = entry.template
                else:
                    with entry.part.reading():
                        self._defer(entry, makers, entries, every)

    def _choose(self) -> None:
        """Find the loops that wait: for tasks that are known, or for others that wait."""
        pending = [loop for loop in self._loops if loop.patterns]
        for loop in self._loops:
            if not loop.patterns:
                self.fixed |= dict.fromkeys(loop.outputs)
        known = SharedFiles(self.fixed if pending else ())
        chosen = True
        while chosen:
            chosen = False
            for loop in list(pending):
                others = SharedFiles(f for one in pending if one is not loop for f in one.outputs)
                if matched(loop.patterns, known):
                    self._waiting.append(loop)
                elif matched(loop.patterns, others):
                    continue
                else:
                    with loop.part.reading():
                        loop.template = self._prepare(loop, ())
                        loop.outputs = outputs_of(loop.template)
                        _check_own(loop)
                    self.fixed |= dict.fromkeys(loop.outputs)
                pending.remove(loop)
                known.add(loop.outputs)
                chosen = True
        self._waiting += pending  # each goes over what another makes: the tasks form a cycle

    def _check_tables(self) -> None:
        """Refuse loops over the rows of a table that a task makes."""
        tables = [(loop, *table) for loop in self._loops for table in loop.globs.tables]
        outputs = {*self.fixed, *(f for one in self._waiting for f in one.outputs)}
        many = list(filter(is_many, outputs)) if tables else []
        for loop, variable, table in tables:
            if table in outputs or any(covers(output, table) for output in many):
                made = f"a task makes {shortened(table)}"
                problem = f"{made}: its rows are not known before that task is done"
                how = "let a task with `expand: true` print the tasks of this loop"
                with loop.part.reading():
                    raise wrong(f"{problem}; {how}", *loop.place, variable)

    def _prepare(self, loop: GlobLoop, variables: Collection[str]) -> Template:
        """The template, with patterns in the place of files for these variables alone."""
        globs = replace(self._globs, only=variables, patterns={}, tables=[])
        return prepare(loop.key, loop.body, self._params, globs.directory, globs=globs)

    def _defer(
        self, loop: GlobLoop, makers: Makers, into: dict[str, Entry], taken: Collection[str]
    ) -> None:
        """Put tasks in the place of a loop: each adds the tasks for one set of patterns."""
        if gathers(loop.body.get("inputs")):
            problem = "a loop over files that a task makes cannot gather files"
            raise wrong(f"{problem}: list them, or a pattern", "tasks", loop.key, "inputs")
        others = [one for one in self._waiting if one is not loop]
        every = SharedFiles([*self.fixed, *(f for one in others for f in one.outputs)])
        variables = loop.variables_over(every)
        template = self._prepare(loop, variables)
        loop.outputs = outputs_of(template)
        _check_own(loop)
        fixed, own = SharedFiles(self.fixed), set[str]()
        for rows in _batches(template, variables):
            group = join_rows(rows)
            called = unused_name(shared_name(group, variables), own)
            own.add(called)
            if called in into or (called in taken and called != loop.key):
                raise wrong(f"two tasks are called {shown(called)}", "tasks", loop.key)
            over = {v: list(dict.fromkeys(map(str, group.scope.loop[v]))) for v in variables}
            patterns = [pattern for found in over.values() for pattern in found]
            inputs = matched(patterns, fixed)
            if outside := next(filter(os.path.isabs, inputs), None):
                problem = f"a task makes {shortened(outside)}, outside of the data directory"
                raise wrong(f"{problem}: a loop cannot go over such files", *loop.place)
            tasks = finish(group, makers)
            entry = deferred(loop, self._params, over, inputs, self._awaited(loop, tasks))
            makers.add(group, called)
            read, made = (
                {file for task in tasks for file in files_of(task.get(field))}
                for field in ("inputs", "outputs")
            )
            aliases = {loop.called, *(shared_name(one, variables) for one in rows)}
            later = LaterLoop(called, aliases, loop.key, entry, patterns, read, made)
            makers.later.append(later)
            into[called] = entry
            self.deferred.append((loop.part, loop.key, [called]))

    def _awaited(self, loop: GlobLoop, rows: Sequence[Body]) -> list[str]:
        """The tasks that a loop which waits names in `after`: it waits for what they add, too."""
        awaited = dict.fromkeys(name for row in rows for name in names_in(row.get("after")))
        loops = [one.called for one in self._waiting]  # also named with the values of some rows
        for name in awaited:
            of_loop = "*" in name and any(fnmatchcase(name, called) for called in loops)
            if name not in self._expanding and not of_loop:
                problem = f"a loop over files that a task makes cannot come after {shown(name)}"
                how = "which adds no tasks: list a file that it makes under `inputs`"
                raise wrong(f"{problem}, {how}", "tasks", loop.key, "after")
        return list(awaited)


def _batches(template: Template, variables: Sequence[str]) -> list[list[Template]]:
    """The rows of a loop by what they wait for, for as many tasks as may add some of them.

    Each of them is added when its own files are there. But to add tasks takes time in proportion to
    the whole workflow, so there are not many such tasks.
    """
    by_variable = [split_rows(template, variable) for variable in variables]
    groups = max(by_variable, key=len)
    size = -(-len(groups) // MOST_ADDING)
    return [groups[k : k + size] for k in range(0, len(groups), size)]


def _check_own(loop: GlobLoop) -> None:
    """Refuse a loop over files that its own tasks make."""
    if own := matched(loop.patterns, SharedFiles(loop.outputs)):
        patterns = shortened(", ".join(loop.patterns))
        made = f"its own tasks make {shortened(own[0])}, which matches"
        problem = f"the loop goes over {patterns}, and {made}"
        how = "write a pattern that does not match it, or another place for the outputs"
        raise wrong(f"{problem}: {how}", *loop.place)


def _check_names(
    waiting: Sequence[tuple[SourceFile, dict[str, Entry], str | None]],
) -> None:
    """An InputError where two tasks have one name, in whichever file."""
    taken: dict[str, tuple[SourceText, str]] = {}
    several = len(waiting) > 1
    for part, entries, _ in waiting:
        with part.reading():
            if not several and not any(isinstance(t, Template) for t in entries.values()):
                return  # the keys of one mapping
            for key, entry in entries.items():
                names = entry.names if isinstance(entry, Template) else [key]
                check_names(key, names, taken, part.origin)


def _with_included(
    content: Fields, origin: SourceText, known: Sequence[str], seen: dict[str, SourceFile | None]
) -> list[SourceFile]:
    """The documents that a document includes, and last itself; a file counts once."""
    found: list[SourceFile] = []
    part = SourceFile(origin, mapping(content))
    with part.reading():
        check_fields(part.content, known)
        section = part.content.get(INCLUDE, [])
        names = [section] if isinstance(section, str) else section
        if not isinstance(names, list | tuple):
            raise wrong(f"expected a file or a list of files, not {shown(section)}", INCLUDE)
        for i, listed in enumerate(names):
            at = (INCLUDE,) if isinstance(section, str) else (INCLUDE, i)
            path = origin.folder / string(listed, *at)
            whole = os.path.realpath(path)
            if whole not in seen:
                try:
                    inner = SourceText(printable(path), read_text(path), path.parent)
                except InputError as error:
                    raise wrong(f"{shown(listed)}: {error.problem}", *at) from None
                seen[whole] = None  # until it is read
                found += _with_included(_parsed(inner, path), inner, known, seen)
                seen[whole] = found[-1]
            if (other := seen[whole]) is None:
                raise wrong(f"{shown(listed)} is included by what it includes itself", *at)
            part.included.append(other)
    return [*found, part]


def _parsed(origin: SourceText, path: Path) -> Fields:
    try:
        text = origin.text or ""
        is_json = path.suffix.lower() == ".json"
        return mapping(parse_json(text) if is_json else parse_yaml(text))
    except InputError as error:
        raise origin.located(error) from None


# parameters


def _parameters(parts: Sequence[SourceFile], given: Mapping[str, object]) -> dict[str, object]:
    """The values of all parameters: as given, else as the outermost file says."""
    values: dict[str, object] = {}
    for part in parts:
        with part.reading():
            for called, value in named(part.content.get(PARAMS), "the name", PARAMS).items():
                check_variable(called, PARAMS)
                if value is not None:
                    _check_parameter(value, PARAMS, called)
                values[called] = value
    for called, value in given.items():
        if called not in values:
            problem = unknown("parameter", called, values)
            raise InputError(problem.problem, source=parts[-1].origin.name)
        values[called] = _given(called, value, values[called])
    return values


def _given(called: str, value: object, declared: object) -> object:
    """A value given for a parameter: of the kind that is declared; a text is read as such."""
    kind = _kind(declared)
    if isinstance(value, str) and kind != "a text":
        if kind == "":  # nothing is declared: a text, and a number where one is wanted
            return Cell(value)
        with suppress(InputError):
            value = parse_yaml(value) if kind == "a list" else plain_scalar(value)
    if kind not in ("", _kind(value)):
        quote = "; quote it" if kind == "a text" else ""
        problem = f"the parameter {called} is {kind} ({shown(declared)}), not {shown(value)}{quote}"
        raise InputError(problem)
    _check_parameter(value, PARAMS, called)
    return value


def _check_parameter(value: object, *place: str) -> None:
    """Refuse what is neither a value nor a list of values."""
    if isinstance(value, Mapping):
        raise wrong(f"expected a value or a list of them, not {shown(value)}", *place)
    for entry in value if isinstance(value, list | tuple) else [value]:
        check_value(entry, *place)


def _kind(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case list() | tuple():
            return "a list"
    return "something else"
