"""Templates: tasks with `foreach`, `if` and `{name}` become plain tasks, before they are read.

This works on plain documents (dicts and lists as YAML holds them) and knows no field of a task but
`foreach`, `if`, `inputs`, `outputs`, `run` and `shell`: in every other field, placeholders are
replaced in texts, whatever the field means. `placeholders` has their rules.

Values come from parameters and, row by row, from a loop. All rows of a loop are made at once, field
by field, so that a template is looked at once, however many tasks it gives.

For values that are known only later (of files that a task has made, say):

    loop = {"part": matched_paths(["parts/1.txt", "parts/2.txt"], "parts/*.txt")}
    tasks = expand_template("count-{part.stem}", body, loop, params)

gives plain entries of `tasks:` by name, as `workflow_from_dict` reads them; `body` is the fields of
the template (its `foreach` does not count), `params` the values of parameters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import compress, repeat
from pathlib import Path
from typing import Any, NamedTuple

from foreplan.errors import InputError
from foreplan.formats.conditions import conditions_of
from foreplan.formats.deferred import Globs, LaterLoop
from foreplan.formats.fields import (
    as_list,
    check_fields,
    command,
    name,
    shown,
    string,
    unknown,
    wrong,
)
from foreplan.formats.loops import (
    MOST,
    Cell,
    Find,
    Loop,
    MatchedPath,
    PathPattern,
    groups_of,
    product_of,
    rows_of,
    side_by_side,
    values_of,
)
from foreplan.formats.origins import NOWHERE, SourceText
from foreplan.formats.parts import ALL, FOREACH, IF, files_of
from foreplan.formats.placeholders import (
    FILES,
    LITERAL_FIELDS,
    Placeholder,
    lone_reference,
    references_in,
    replace_references,
    split_text,
    unescape_lone,
)
from foreplan.formats.quoting import quoter, spots_of
from foreplan.formats.texts import plain_scalar
from foreplan.model.filenames import SharedFiles
from foreplan.quantities import first_few, shortened

ONLY = "only"

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)

Place = str | int
Body = Mapping[Any, Any]


class Column(list[Any]):
    """A value for each row of a loop."""


@dataclass
class Variables:
    """What names mean: parameters, and variables of a loop with their values row by row."""

    params: Mapping[str, object]
    loop: Mapping[str, Sequence[object]] = field(default_factory=dict)
    files: Mapping[str, object] = field(default_factory=dict)  # of a command: lists, or Columns
    _found: dict[str, object] = field(default_factory=dict)  # by reference

    def __contains__(self, called: str) -> bool:
        return called in self.loop or called in self.params or called in self.files

    def value(self, called: str, more: str, *place: Place) -> object:
        """What a reference means: a value, or a Column of them."""
        if called not in self:
            raise self._unknown(called, *place)
        reference = called + more
        if reference not in self._found:
            whole: object
            if called in self.loop:
                whole = Column(self.loop[called])
            elif called in self.files:
                whole = self._listed(called, more, *place)
            else:
                whole = self.params[called]
            self._found[reference] = _each(lambda v: _part(v, called, more, *place), whole)
        return self._found[reference]

    def _unknown(self, called: str, *place: Place) -> InputError:
        """Return the error for a name that stands for nothing in its place."""
        if called in FILES:
            return wrong(f"{{{called}}} stands for files of the task in `run` only", *place)
        if known := [*self.loop, *self.params, *self.files]:
            return unknown("parameter or loop variable", called, known, *place)
        problem = f"{called!r} is neither a parameter (`params:`) nor a loop variable (`foreach:`)"
        return wrong(f"{problem}; for the text itself, double the braces or the $", *place)

    def _listed(self, called: str, more: str, *place: Place) -> object:
        """The files of a task; `input` and `output` alone are the only one."""
        listed = self.files[called]
        if called.endswith("s") or more:
            return listed
        kind = called + "s"

        def only(files: list[str]) -> str:
            if len(files) == 1:
                return files[0]
            n = len(files) or "no"
            problem = f"{{{called}}} needs a task with one {called}, and this one has {n} {kind}"
            how = f"write {{{kind}}} for all of them, {{{kind}[0]}} for the first"
            if not files:
                how = f"list it, or write {{{{{called}}}}} for the text {{{called}}}"
            raise wrong(f"{problem}: {how}", *place)

        return _each(only, listed)


def _each(function: Callable[[Any], object], value: object) -> object:
    """A function of a value, or of each of a Column."""
    return Column(map(function, value)) if isinstance(value, Column) else function(value)


def _part(value: object, called: str, more: str, *place: Place) -> object:
    """A value, one of its fields, or one entry of a list."""
    if not more:
        return value
    if more[0] == "[":
        index = more[1:-1]
        if not isinstance(value, list | tuple):
            raise wrong(f"{called} is no list: {{{called}{more}}} means nothing", *place)
        if not index.isdecimal() or int(index) >= len(value):
            problem = f"{{{called}{more}}} is not there: {called} has {len(value)}"
            raise wrong(f"{problem}, counted from 0", *place)
        return value[int(index)]
    fields = value.fields if isinstance(value, MatchedPath) else value
    if called in FILES and isinstance(value, list):
        kind = called.rstrip("s") + "s"
        raise wrong(f"{kind} have no names: write {{{kind}[0]}}, not {{{called}{more}}}", *place)
    if not isinstance(fields, Mapping):
        raise wrong(f"{shown(value)} has no fields: {{{called}{more}}} means nothing", *place)
    if more[1:] not in fields:
        raise unknown(f"field of {called}", more[1:], map(str, fields), *place)
    return fields[more[1:]]


def text_of(value: object, reference: str, *place: Place) -> str:
    """A value as it stands in a text."""
    if isinstance(value, str):
        return value if type(value) is str else str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if value is None:
        problem = f"the parameter {reference} has no value: give it one, --set {reference}=VALUE"
    elif isinstance(value, Mapping):
        names = first_few(f"{{{reference}.{shortened(str(key))}}}" for key in value)
        problem = f"{reference} has fields: write {names}"
    else:
        how = f"loop over it (foreach), or write ${reference} alone"
        problem = f"{reference} is a list, and no text: {how}"
    raise wrong(problem, *place)


def fill(
    value: object, scope: Variables, *place: Place, keep_unknown: bool = False, first: int = 0
) -> object:
    """A value with the names in it replaced; a Column, if it differs from row to row.

    With `keep_unknown`, other names stay as they are. `first` is the number of the first entry.
    """
    if isinstance(value, str):
        return _fill_text(value, scope, *place, keep_unknown=keep_unknown)
    if isinstance(value, list | tuple):
        entries: list[object] = []
        for i, entry in enumerate(value, first):
            filled = fill(entry, scope, *place, i, keep_unknown=keep_unknown)
            is_list = isinstance(entry, str) and isinstance(filled, list | tuple)
            if is_list and not isinstance(filled, Column):  # `$files` among others: each of them
                entries.extend(filled)  # type: ignore[arg-type]
            else:
                entries.append(filled)
        return _in_rows(entries, list)
    if isinstance(value, Mapping):
        keys = [_fill_key(key, scope, *place, keep_unknown=keep_unknown) for key in value]
        parts = [
            fill(entry, scope, *place, str(key), keep_unknown=keep_unknown or key in LITERAL_FIELDS)
            for key, entry in value.items()
        ]
        return _in_rows([*keys, *parts], lambda row: _mapping(row, *place))
    return value


def _fill_key(key: object, scope: Variables, *place: Place, keep_unknown: bool) -> object:
    """A key, which is a text, with the names in it replaced."""
    if not isinstance(key, str):
        return key
    return _fill_text(key, scope, *place, keep_unknown=keep_unknown)


def _mapping(row: Sequence[Any], *place: Place) -> dict[object, object]:
    """Keys and then their values as a mapping; no two keys may have become the same."""
    n = len(row) // 2
    whole = dict(zip(row[:n], row[n:], strict=True))
    if len(whole) < n:
        twice = next(key for i, key in enumerate(row[:n]) if key in row[:i])
        raise wrong(f"the key {shown(twice)} is given twice", *place)
    return whole


def _in_rows(parts: Sequence[object], make: Callable[[Any], object]) -> object:
    """What is made of parts: once, or where one is a Column, for each row."""
    if not any(isinstance(part, Column) for part in parts):
        return make(parts)
    columns = [part if isinstance(part, Column) else repeat(part) for part in parts]
    return Column(map(make, zip(*columns, strict=False)))


def _fill_text(text: str, scope: Variables, *place: Place, keep_unknown: bool) -> object:
    is_known = scope.__contains__ if keep_unknown else _any_name
    alone = lone_reference(text)
    if alone and is_known(alone.name):
        value = scope.value(*alone, *place)
        if value is None:
            text_of(value, alone.name, *place)
        return _each(_itself, value)
    if "{" not in text:
        return unescape_lone(text, is_known)
    texts, references = split_text(text, is_known)
    values = [
        _each(lambda v, r=str(one): text_of(v, r, *place), scope.value(*one, *place))  # type: ignore[misc]
        for one in references
    ]
    return _joined(texts, values)


def _any_name(name: str) -> bool:
    return True


def _itself(value: object) -> object:
    """A value where it stands alone; the cell of a table may be meant as a number."""
    if isinstance(value, Cell):
        return plain_scalar(value)
    return str(value) if isinstance(value, str) else value


def _joined(texts: Sequence[str], values: Sequence[object]) -> object:
    """Texts with values between them: one text, or a Column of them."""
    if not values:
        return texts[0]
    form = "%s".join(text.replace("%", "%%") for text in texts)
    return _in_rows(values, lambda row: form % tuple(row))


def fill_command(text: str, scope: Variables, shell: str | None, *place: Place) -> object:
    """A command with the known names in it replaced, their values quoted for the shell."""
    texts, references = split_text(text, scope.__contains__)
    command = texts[0]
    spans: list[tuple[int, int]] = []
    for one, after in zip(references, texts[1:], strict=True):
        start = len(command)
        command += f"{{{one}}}"
        spans.append((start, len(command)))
        command += after
    values: list[object] = []
    for one, spot in zip(references, spots_of(command, spans, shell), strict=True):
        reference = str(one)
        quote = quoter(spot, reference, *place, patterns=one.name in FILES)

        def quoted(value: object, reference: str = reference, quote: Any = quote) -> str:
            if isinstance(value, list | tuple):
                return " ".join(quote(text_of(one, reference, *place)) for one in value)
            return quote(text_of(value, reference, *place))  # type: ignore[no-any-return]

        values.append(_each(quoted, scope.value(*one, *place)))
    return _joined(texts, values)


def check_variable(called: str, *place: Place) -> None:
    """Refuse what cannot be a parameter or a variable."""
    if not _NAME.fullmatch(called):
        raise wrong(f"{shown(called)} is no name for a value: letters, digits and _", *place)
    if called in FILES:
        raise wrong(f"{called!r} means a task's files: choose another name", *place)


# files that loops make, for `all`


class _Maker(NamedTuple):
    """An output of a loop, as its template says it, and what names mean there."""

    entry: str
    scope: Variables
    adder: str = ""  # the task that adds the tasks of the loop; none: they are known


class Makers:
    """The outputs of loops, by the text that stands for them: `bam/{sample}.bam`."""

    def __init__(self) -> None:
        self._made: dict[str, list[_Maker]] = {}
        self.later: list[LaterLoop] = []

    def add(self, template: Template, adder: str = "") -> None:
        """Note the outputs of a loop, and the task that adds its tasks, if one does."""
        if template.scope.loop:
            for entry in files_of(template.body.get("outputs")):
                if references_in(entry):
                    wanted = _without_params(entry, template.scope)
                    maker = _Maker(entry, template.scope, adder)
                    self._made.setdefault(wanted, []).append(maker)

    def adders(self, section: object, scope: Variables, *place: Place) -> object:
        """The tasks that add those who make what inputs gather; a Column, if rows differ."""
        texts = (
            entry[ALL] for entry in as_list(section) if isinstance(entry, Mapping) and ALL in entry
        )
        parts: list[object] = []  # lists, or Columns of lists
        for text in dict.fromkeys(text for text in texts if isinstance(text, str)):
            bound, groups = self._bound(text, scope), dict[tuple[str, ...], list[str]]()
            makers = self._made.get(_without_params(text, scope), ())
            for maker in makers if any(maker.adder for maker in makers) else ():
                n = rows_of(maker.scope.loop)
                for key, _ in zip(_keys(bound, maker.scope, *place), range(n), strict=False):
                    groups.setdefault(key, []).append(maker.adder)
            if groups:
                own = [_texts(one, scope, *place) for one in bound]
                parts.append(_in_rows(own, lambda row, known=groups: known.get(tuple(row), [])))  # type: ignore[misc]
        return _in_rows(parts, lambda row: [*filter(None, {n: 0 for names in row for n in names})])

    def _bound(self, text: str, scope: Variables) -> list[str]:
        """The references in a text that each row of a loop has fixed."""
        return [str(one) for one in references_in(text) if one.name in scope.loop]

    def gather(self, section: Body, scope: Variables, *place: Place) -> object:
        """The files that `{all: text, only: condition}` means; a Column, if rows have their own."""
        check_fields(section, (ALL, ONLY), *place)
        entry = string(section[ALL], *place, ALL)
        bound = self._bound(entry, scope)
        wanted = _without_params(entry, scope)
        if wanted not in self._made:
            raise unknown("output of a loop", wanted, self._made, *place, ALL)
        if len(bound) == len(references_in(entry)):
            problem = f"{shortened(wanted)} names one file of each task's own loop: list it"
            raise wrong(problem, *place, ALL)
        makers = self._made[wanted]
        if any(maker.adder for maker in makers):
            self._check_patterns(wanted, section, bound, *place)
        groups: dict[tuple[str, ...], dict[str, None]] = {}
        for maker in makers:
            files = fill(maker.entry, maker.scope, *place, ALL)
            kept = kept_rows(section.get(ONLY, True), maker.scope, *place, ONLY)
            keys = _keys(bound, maker.scope, *place)
            for key, file, keep in zip(keys, files, kept, strict=False):  # type: ignore[call-overload]
                if keep:
                    groups.setdefault(key, {})[file] = None
        own = [_texts(one, scope, *place, ALL) for one in bound]
        return _in_rows(own, lambda row: _group(groups, tuple(row), wanted, *place))

    def _check_patterns(
        self, wanted: str, section: Body, bound: Sequence[str], *place: Place
    ) -> None:
        """Refuse to gather files yet to be made, if their patterns could mean others, too."""
        later = [maker for maker in self._made[wanted] if maker.adder]
        how = f'write `after: ["{later[0].adder}"]` and a pattern of the files among the inputs'
        unknown = [one for one in bound if any(_is_later(m.scope.loop, one) for m in later)]
        if ONLY in section or unknown:
            why = "`only`" if ONLY in section else f"{{{unknown[0]}}} of this loop"
            raise wrong(f"which files it means by {why} is known only later: {how}", *place)
        # by adder and pattern: for which group it is meant, or which other text gives it
        meant: dict[str, dict[str, set[tuple[str, ...] | str]]] = {}
        adders = {maker.adder for maker in later}
        for text, makers in self._made.items():
            for maker in (one for one in makers if one.adder in adders):
                files = fill(maker.entry, maker.scope, *place, ALL)
                keys = _keys(bound, maker.scope, *place) if text == wanted else repeat(text)
                for key, file in zip(keys, files, strict=False):  # type: ignore[call-overload]
                    meant.setdefault(maker.adder, {}).setdefault(file, set()).add(key)
        for of_adder in meant.values():
            every = SharedFiles(of_adder)
            for file, whose in of_adder.items():
                is_wanted = any(isinstance(one, tuple) for one in whose)
                for other in every.with_any_of(file) if is_wanted else ():
                    if len(of_adder[other] | whose) > 1:
                        both = f"{shortened(wanted)} may mean {shortened(other)}, too"
                        raise wrong(f"{both}: {how}", *place, ALL)


def _keys(bound: Sequence[str], scope: Variables, *place: Place) -> Iterable[tuple[str, ...]]:
    """The values of what a gathering loop has fixed, in each row of the loop that makes files."""
    keys = [_texts(one, scope, *place, ALL) for one in bound]
    return zip(*keys, strict=True) if keys else repeat(())


def _is_later(loop: Mapping[str, Sequence[object]], reference: str) -> bool:
    """Return whether a reference is of files that are yet to be made."""
    column = loop.get(_split(reference)[0], ())
    return any(isinstance(value, PathPattern) for value in column)


def _texts(reference: str, scope: Variables, *place: Place) -> Any:
    """What a reference of a loop is in each row, as text."""
    value = scope.value(*_split(reference), *place)
    return _each(lambda v: text_of(v, reference, *place), value)


def _group(
    groups: Mapping[tuple[str, ...], Iterable[str]],
    key: tuple[str, ...],
    wanted: str,
    *place: Place,
) -> list[str]:
    if key not in groups:
        values = f" for {shortened(', '.join(key))}" if key else ""
        problem = f"no task makes {shortened(wanted)}{values}: there is nothing to gather"
        raise wrong(problem, *place)
    return list(groups[key])


def _split(reference: str) -> tuple[str, str]:
    called = _NAME.match(reference)[0]  # type: ignore[index]
    return called, reference[len(called) :]


def _without_params(entry: str, scope: Variables) -> str:
    """A text whose parameters are replaced, the variables of loops not."""
    plain = Variables({called: v for called, v in scope.params.items() if called not in scope.loop})
    return str(_fill_text(entry, plain, keep_unknown=True))


def kept_rows(section: object, scope: Variables, *place: Place) -> list[bool]:
    """For each row of a loop (or once) whether the conditions hold."""
    n = rows_of(scope.loop) if scope.loop else 1
    kept = [True] * n
    for condition in conditions_of(section, [*scope.loop, *scope.params], *place):
        values = [_compared(one, scope, *place) for one in condition.references]
        condition.check([_all_values(value) for value in values])
        found = _in_rows(values, condition.holds)
        results = found if isinstance(found, Column) else repeat(found, n)
        kept = [k and bool(one) for k, one in zip(kept, results, strict=True)]
    return kept


def _compared(reference: str, scope: Variables, *place: Place) -> object:
    """Return the value of a reference in a condition: a Column, if it differs from row to row."""
    value = scope.value(*_split(reference), *place)
    if value is None:
        text_of(value, reference, *place)
    return value


def _all_values(value: object) -> Sequence[object]:
    """Return a value in all rows; a parameter of any kind is not a cell of a table."""
    if isinstance(value, Column):
        return value
    return [str(value) if isinstance(value, Cell) else value]


# tasks


@dataclass
class Template:
    """A task of a file, which its loop makes several; or none, if its condition does not hold."""

    key: str
    body: Body
    scope: Variables
    names: list[str]

    @property
    def place(self) -> tuple[Place, ...]:
        """Where it stands in its file."""
        return "tasks", self.key


def prepare(
    key: str,
    body: Body,
    params: Mapping[str, object],
    directory: Path,
    globs: Globs | None = None,
) -> Template:
    """A template with the rows of its loop for which its condition holds.

    Where `globs` has patterns in the place of files, only conditions on other values count.
    """
    loop: Loop = {}
    globs = globs or Globs(directory, only=())
    if FOREACH in body:
        loop = _loop(key, body[FOREACH], params, globs, "tasks", key)
        if not rows_of(loop):  # these are of another task that adds some
            return Template(key, body, Variables(params), [])
    if globs.patterns and IF in body:
        section = body[IF]
        conditions = conditions_of(section, [*loop, *params], "tasks", key, IF)
        known = [
            text
            for text, condition in zip(as_list(section), conditions, strict=True)
            if globs.patterns.keys().isdisjoint(_split(one)[0] for one in condition.references)
        ]
        body = {**body, IF: known}
    return with_loop(key, body, loop, params)


def split_rows(template: Template, variable: str) -> list[Template]:
    """The template for each of the values of a variable, with the rows that have it."""
    groups: dict[object, list[bool]] = {}
    columns, n = template.scope.loop, len(template.names)
    for row, value in enumerate(columns[variable]):
        groups.setdefault(value, [False] * n)[row] = True
    return [_with_rows(template, kept) for kept in groups.values()]


def join_rows(templates: Sequence[Template]) -> Template:
    """Parts of one template as one, with all of their rows."""
    first = templates[0]
    columns = {
        called: [value for one in templates for value in one.scope.loop[called]]
        for called in first.scope.loop
    }
    names = [name for one in templates for name in one.names]
    return replace(first, scope=Variables(first.scope.params, columns), names=names)


def _with_rows(template: Template, kept: Sequence[bool]) -> Template:
    columns = template.scope.loop.items()
    scope = Variables(template.scope.params, {v: list(compress(c, kept)) for v, c in columns})
    return replace(template, scope=scope, names=list(compress(template.names, kept)))


def shared_name(template: Template, variables: Collection[str]) -> str:
    """The name of a template's tasks, with `*` for all that these variables do not depend on."""
    fixed = {name for v in variables for name in _names_in(template.body[FOREACH].get(v))}

    def value(reference: Placeholder) -> str:
        if reference.name not in fixed or reference.name not in template.scope.loop:
            return "*"
        texts = {*_texts(str(reference), template.scope, *template.place)}
        return str(texts.pop()) if len(texts) == 1 else "*"

    return replace_references(template.key, value)


def outputs_of(template: Template) -> list[str]:
    """The outputs of all tasks of a template."""
    entries = template.body.get("outputs")
    if template.names:
        entries = fill(entries, template.scope, *template.place, "outputs")
    rows = entries if isinstance(entries, Column) else [entries] if template.names else []
    return list(dict.fromkeys(file for row in rows for file in files_of(row)))


def with_loop(
    key: str,
    body: Body,
    loop: Mapping[str, Sequence[object]],
    params: Mapping[str, object],
) -> Template:
    """A template with those of these rows for which its condition holds."""
    scope, place = Variables(params, loop), ("tasks", key)
    if IF in body:
        kept = kept_rows(body[IF], scope, *place, IF)
        if not any(kept):
            return Template(key, body, Variables(params), [])
        if loop and not all(kept):
            scope = Variables(
                params, {v: list(compress(column, kept)) for v, column in loop.items()}
            )
    names = fill(key, scope, *place)
    listed = names if isinstance(names, Column) else [names]
    return Template(key, body, scope, [name(one, *place) for one in listed])


def _loop(
    key: str, section: object, params: Mapping[str, object], globs: Globs, *place: Place
) -> Loop:
    """The rows of a `foreach`; a variable may depend on those before it."""
    at = (*place, FOREACH)
    in_name = {reference.name for reference in references_in(key)}
    groups = groups_of(section, *at)
    names = [variable for group, _ in groups for variable in group]
    if len(set(names)) < len(names):
        raise wrong("a variable is given twice", *at)
    loops = list[Loop]()
    for group, zipped in groups:
        before = {variable for loop in loops for variable in loop}
        loop: Loop = {}
        for variable, value in group.items():
            check_variable(variable, *at)
            where = (*at, "zip", variable) if zipped else (*at, variable)
            find = partial(_find, globs, variable, where)
            used = _names_in(value)
            if late := (used & {*names}) - before - params.keys() - {variable}:
                problem = f"{variable} depends on {min(late)}, which must stand before it"
                raise wrong(f"{problem} in `foreach`", *where)
            if not used & before:
                ready = _ready(value, Variables(params), *where)
                loop[variable] = values_of(ready, globs.directory, *where, find=find)
            elif zipped:
                problem = f"{variable} depends on {min(used & before)}"
                raise wrong(f"{problem}: what is zipped cannot depend on another variable", *where)
            else:
                rows = product_of(loops, *at)
                ready = _ready(value, Variables(params, rows), *where)
                loops, loop = [], _nested(rows, variable, ready, globs, find, *where)
        if zipped:
            loop = side_by_side(_with_repeated(loop), *at)
        loops.append(loop)
        if in_name.isdisjoint(group):
            braced = " or ".join(f"{{{variable}}}" for variable in group)
            raise wrong(f"the name of a loop's task must hold {braced}, so that names differ", *at)
    return product_of(loops, *at)


def _with_repeated(group: Loop) -> Loop:
    """Variables that are zipped, with patterns of files yet to be made as often as needed."""
    longest = max(map(len, group.values()))
    return {
        variable: [*column] * longest if isinstance(column[0], PathPattern) else column
        for variable, column in group.items()
    }


def _find(
    globs: Globs, variable: str, place: tuple[Place, ...], kind: str, argument: str
) -> Sequence[object] | None:
    return globs.find(variable, kind, argument, *place)


def _nested(
    rows: Loop, variable: str, ready: object, globs: Globs, find: Find, *place: Place
) -> Loop:
    """Rows with a variable that has values of its own in each of them."""
    known: dict[str, Sequence[object]] = {}
    nested: dict[str, list[object]] = {called: [] for called in (*rows, variable)}
    for row, value in enumerate(ready if isinstance(ready, Column) else [ready] * rows_of(rows)):
        values = known.get(value) if isinstance(value, str) else None
        if values is None:
            values = values_of(value, globs.directory, *place, find=find)
            if isinstance(value, str):
                known[value] = values
        for called, column in rows.items():
            nested[called] += [column[row]] * len(values)
        nested[variable] += values
        if len(nested[variable]) > MOST:
            raise wrong(f"the loop has more than {MOST:,} values", *place)
    return {**nested}


def _names_in(value: object) -> set[str]:
    """The names that stand in what a variable goes over."""
    if isinstance(value, str):
        alone = lone_reference(value)
        ends = (found[0].lstrip("$") for found in _RANGE_END.finditer(value))
        return {alone.name} if alone else {*ends, *(one.name for one in references_in(value))}
    if isinstance(value, Mapping):
        return {called for entry in value.values() for called in _names_in(entry)}
    if isinstance(value, list | tuple):
        return {called for entry in value for called in _names_in(entry)}
    return set()


_RANGE_END = re.compile(r"\$[A-Za-z_]\w*(?=\.\.)|(?<=\.\.)\$[A-Za-z_]\w*", re.ASCII)


def _ready(value: object, scope: Variables, *place: Place) -> object:
    """What a variable goes over, its parameters replaced: also `1..$n`."""
    if isinstance(value, str):
        value = _RANGE_END.sub(lambda found: f"{{{found[0][1:]}}}", value)
    return fill(value, scope, *place)


def finish(template: Template, makers: Makers, shell: str | None = None) -> list[Body]:
    """The plain tasks of a template, one for each of its names."""
    if not template.names:
        return []
    scope, place, filled = template.scope, template.place, dict[object, object]()
    for key, value in template.body.items():
        at = (*place, key if isinstance(key, str | int) else shown(key))
        if key == "inputs":
            filled[key] = _gathered(value, makers, template, *at)
        elif key == "run":
            filled[key] = value
        elif key not in (FOREACH, IF):
            filled[key] = fill(value, scope, *at, keep_unknown=key in LITERAL_FIELDS)
    filled.pop(IF, None)
    if scope.loop and (alike := _category_of(template.key)):
        filled.setdefault("category", alike)
    if adders := makers.adders(template.body.get("inputs"), scope, *place):
        parts = [filled.get("after"), adders]
        filled["after"] = _in_rows(parts, lambda row: [*dict.fromkeys([*as_list(row[0]), *row[1]])])
    if "run" in filled:
        text = command(filled["run"], *place, "run")
        used = filled.get("shell", shell)
        listed = {
            called: filled.get(called.rstrip("s") + "s", [])
            for called in FILES
            if f"{{{called}" in text
        }
        # a list with something else than files in it is refused when the task is read
        if all(map(_are_files, listed.values())):
            files = {called: _each(files_of, entries) for called, entries in listed.items()}
            within = Variables(scope.params, scope.loop, files)
            filled["run"] = fill_command(
                text, within, used if isinstance(used, str) else None, *place, "run"
            )
    order = list(filled)
    rows = _in_rows(list(filled.values()), lambda row: dict(zip(order, row, strict=True)))
    return rows if isinstance(rows, Column) else [rows] * len(template.names)  # type: ignore[list-item]


def _are_files(entries: object) -> bool:
    """Return whether a task lists files and nothing else; of a Column, whether each row does."""
    if isinstance(entries, Column):
        return all(map(_are_files, entries))
    return entries is not None and len(files_of(entries)) == len(as_list(entries))


def _category_of(key: str) -> str:
    """What the tasks of a loop are called together: `align-{sample}.{lane}` is align."""
    words = (word.strip(" -_./:") for word in split_text(key)[0])
    return "-".join(word for word in words if word)


def _gathered(value: object, makers: Makers, template: Template, *place: Place) -> object:
    """The inputs of a task, with all files of other loops that it asks for."""
    is_all = isinstance(value, Mapping) and ALL in value
    entries = [value] if is_all else value
    if not isinstance(entries, list | tuple):
        return fill(value, template.scope, *place)
    parts: list[object] = []  # lists, or Columns of lists
    for i, entry in enumerate(entries):
        if isinstance(entry, Mapping) and ALL in entry:
            at = place if is_all else (*place, i)
            parts.append(makers.gather(entry, template.scope, *at))
        else:
            parts.append(fill([entry], template.scope, *place, first=i))
    return _in_rows(parts, lambda row: [file for files in row for file in files])


def expand_template(
    key: str,
    body: Body,
    loop: Mapping[str, Sequence[object]],
    params: Mapping[str, object] | None = None,
    makers: Makers | None = None,
    shell: str | None = None,
) -> dict[str, Body]:
    """Plain tasks by name: a template with the rows of its loop, however these were found."""
    if loop and not rows_of(loop):
        return {}
    template = with_loop(key, body, loop, params or {})
    check_names(key, template.names, {})
    return dict(zip(template.names, finish(template, makers or Makers(), shell), strict=True))


def check_names(
    key: str,
    names: Sequence[str],
    taken: dict[str, tuple[SourceText, str]],
    origin: SourceText = NOWHERE,
) -> None:
    """Refuse tasks of a template that are called as others, and add their names to those taken."""
    if len(set(names)) < len(names):
        own = set[str]()
        twice = next(called for called in names if called in own or own.add(called))  # type: ignore[func-returns-value]
        raise wrong(f"two tasks of this loop are called {shown(twice)}", "tasks", key)
    if not taken.keys().isdisjoint(names):
        twice = next(called for called in names if called in taken)
        other, other_key = taken[twice]
        line = other.find_line("tasks", other_key, with_file=other is not origin)
        where = f"in {line}" if line else f"of {shown(other_key)}"
        raise wrong(f"two tasks are called {shown(twice)}: the other is {where}", "tasks", key)
    taken |= dict.fromkeys(names, (origin, key))
