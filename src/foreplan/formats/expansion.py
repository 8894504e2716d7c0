"""A workflow's file, those that it includes, and its parameters: expanded to plain documents."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from foreplan.errors import InputError
from foreplan.files import printable, read_text
from foreplan.formats.deferred import LaterLoop, deferred, let_wait, loops_over
from foreplan.formats.fields import (
    check_fields,
    mapping,
    named,
    shown,
    string,
    unknown,
    wrong,
)
from foreplan.formats.loops import Cell, check_value
from foreplan.formats.origins import SourceText
from foreplan.formats.parts import (
    FOREACH,
    IF,
    INCLUDE,
    PARAMS,
    Expansion,
    Fields,
    SourceFile,
    gathers,
)
from foreplan.formats.templates import (
    Body,
    Makers,
    Template,
    Variables,
    check_names,
    check_variable,
    files_of,
    fill,
    finish,
    prepare,
    prepare_later,
)
from foreplan.formats.texts import parse_json, parse_yaml, plain_scalar


def expand(
    content: Fields,
    origin: SourceText,
    given: Mapping[str, object],
    directory: Path,
    known: tuple[Sequence[str], Sequence[str]],
) -> Expansion:
    """A document and those that it includes, expanded; known are the fields of files and tasks."""
    fields, task_fields = known
    parts = _with_included(content, origin, fields, {})
    params = _parameters(parts, given)
    expansion, makers = Expansion(parts, []), Makers()
    waiting: list[tuple[SourceFile, dict[str, Body | Template], str | None]] = []
    for part in parts:
        with part.reading():
            entries = _entries(part.content, params, directory, task_fields, makers)
            if is_template(part.content):
                part.content = _filled(part.content, params)
        part.inherit()
        shell = part.content.get("shell")
        waiting.append((part, entries, shell if isinstance(shell, str) else None))
        expansion.templates += [(part, t) for t in entries.values() if isinstance(t, Template)]
    let_wait(makers.later)
    _check_names(waiting)
    for part, entries, shell in waiting:
        with part.reading():
            for key, entry in entries.items():
                if isinstance(entry, Template):
                    part.tasks.update(zip(entry.names, finish(entry, makers, shell), strict=True))
                else:
                    part.tasks[key] = entry
    return expansion


def is_template(document: Fields) -> bool:
    """Whether names are replaced in a file: it has parameters, or a loop."""
    tasks = document.get("tasks")
    bodies = tasks.values() if isinstance(tasks, Mapping) else ()
    return PARAMS in document or any(isinstance(b, Mapping) and FOREACH in b for b in bodies)


def _filled(document: Fields, params: Mapping[str, object]) -> Fields:
    """What a file says beside its tasks, with the values of parameters."""
    scope = Variables(params)
    return {
        key: value if key in ("tasks", PARAMS, INCLUDE) else fill(value, scope, str(key))
        for key, value in document.items()
    }


def _entries(
    document: Fields,
    params: Mapping[str, object],
    directory: Path,
    known: Sequence[str],
    makers: Makers,
) -> dict[str, Body | Template]:
    """The tasks of a file: as they are, or as templates, whose loops are known to makers then."""
    entries: dict[str, Body | Template] = {}
    templated = is_template(document)
    for key, value in named(document.get("tasks"), "the task", "tasks").items():
        body = mapping({} if value is None else value, "tasks", key)
        check_fields(body, known, "tasks", key)
        if FOREACH in body and (patterns := loops_over(body[FOREACH], document)):
            made = {v: str(fill(p, Variables(params), "tasks", key)) for v, p in patterns.items()}
            called, entry = _later(key, body, document, params, directory, made, makers)
            entries[called] = entry
            continue
        if not templated and IF not in body and not gathers(body.get("inputs")):
            entries[key] = body
            continue
        template = entries[key] = prepare(key, body, params, directory, letters=not templated)
        makers.add(template)
    return entries


def _later(
    key: str,
    body: Body,
    document: Fields,
    params: Mapping[str, object],
    directory: Path,
    made: Mapping[str, str],
    makers: Makers,
) -> tuple[str, Body]:
    """The task that adds those of a loop over files yet to be made; its template is checked now."""
    if gathers(body.get("inputs")):
        problem = "a loop over files that a task makes cannot gather files: list them, or a pattern"
        raise wrong(problem, "tasks", key, "inputs")
    called, entry = deferred(key, body, document, params, list(made.values()))
    template = prepare_later(key, body, made, params, directory)
    rows = finish(template, makers)
    makers.add_later(template, called)
    read, written = (
        {file for row in rows for file in files_of(row.get(field))}
        for field in ("inputs", "outputs")
    )
    makers.later.append(LaterLoop(called, entry, read, written))
    return called, entry


def _check_names(
    waiting: Sequence[tuple[SourceFile, dict[str, Body | Template], str | None]],
) -> None:
    """An InputError where two tasks have one name, in whichever file."""
    taken: dict[str, str] = {}
    several = len(waiting) > 1
    for part, entries, _ in waiting:
        with part.reading():
            if not several and not any(isinstance(t, Template) for t in entries.values()):
                return  # the keys of one mapping
            for key, entry in entries.items():
                names = entry.names if isinstance(entry, Template) else [key]
                check_names(key, names, taken)


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
