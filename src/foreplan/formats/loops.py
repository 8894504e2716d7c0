"""What a `foreach` goes over: lists, parameters, ranges, files by pattern, rows of tables."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from math import prod
from pathlib import Path

from foreplan.errors import InputError, place_of
from foreplan.files import read_text
from foreplan.formats.fields import as_placeholder, mapping, named, shown, string, wrong
from foreplan.model.filenames import find_matches, is_pattern
from foreplan.quantities import shortened

MOST = 1_000_000  # rows of a loop
ZIP = "zip"  # among the variables: those that go side by side

_CALL = re.compile(r"(glob|csv)\((.*)\)", re.DOTALL)
_RANGE = re.compile(r"(-?\d{1,18})\.\.(-?\d{1,18})", re.ASCII)
_WILD = re.compile(r"[*?]|\[[^]]+\]")

Loop = dict[str, Sequence[object]]  # the values of each variable, row by row
Place = str | int
# what a call (`glob` or `csv`) of an argument goes over; None: as it is in the directory
Find = Callable[[str, str], Sequence[object] | None]


class Cell(str):
    """A cell of a table: a text, and where a number is wanted, that number."""

    __slots__ = ()


class PathPart(str):
    """A part of a path that a pattern has found."""

    __slots__ = ()


class MatchedPath(str):
    """A file that a pattern has found, with what is often wanted of its name."""

    pattern: str

    def __new__(cls, path: str, pattern: str) -> MatchedPath:
        """The path itself is the text."""
        found = super().__new__(cls, path)
        found.pattern = pattern
        return found

    @property
    def fields(self) -> dict[str, str]:
        """The parts of the path, and what the pattern's wildcards stand for, from first to last."""
        folder, _, name = self.rpartition("/")
        wild, match = [*_WILD.finditer(self.pattern)], str(self)
        if wild:
            match = self[wild[0].start() : len(self) + wild[-1].end() - len(self.pattern)]
        parts = {"name": name, "stem": Path(name).stem, "folder": folder or ".", "match": match}
        return {called: PathPart(part) for called, part in parts.items()}


class PathPattern(MatchedPath):
    """The pattern of files that are yet to be made, in their place; so are its fields."""

    @property
    def fields(self) -> dict[str, str]:
        """As of a file; the stem is anything where it is not known which suffix is taken off."""
        found = super().fields
        _, dot, suffix = found["name"].rpartition(".")
        known = dot and not _WILD.search(suffix)
        return found if known else {**found, "stem": "*"}


def matched_paths(paths: Iterable[str], pattern: str) -> list[MatchedPath]:
    """Paths that a pattern has found, sorted, as values of a loop."""
    return [MatchedPath(path, pattern) for path in sorted(paths)]


def rows_of(loop: Mapping[str, Sequence[object]]) -> int:
    """How many rows a loop has."""
    return len(next(iter(loop.values())))


def product_of(groups: Sequence[Loop], *place: Place) -> Loop:
    """Every row of each with every row of the others; the first varies slowest."""
    sizes = [rows_of(group) for group in groups]
    if prod(sizes) > MOST:
        raise wrong(f"the loop has {prod(sizes):,} values, more than {MOST:,}", *place)
    if len(groups) == 1:
        return groups[0]
    rows = list(product(*map(range, sizes)))
    return {
        name: [column[row[k]] for row in rows]
        for k, group in enumerate(groups)
        for name, column in group.items()
    }


def side_by_side(group: Loop, *place: Place) -> Loop:
    """Variables that go together, row by row: their lists are of one length."""
    lengths = {name: len(column) for name, column in group.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name} has {n:,}" for name, n in lengths.items())
        raise wrong(f"variables that are zipped have as many values each, but {told}", *place)
    return group


def values_of(
    value: object, directory: Path, *place: Place, find: Find | None = None
) -> Sequence[object]:
    """The values that a variable goes through, parameters replaced before: one at least."""
    if isinstance(value, str):
        return _named_values(value.strip(), directory, *place, find=find)
    if text := as_placeholder(value):
        how = f"for the value of a parameter write ${text[1:-1]}"
        raise wrong(f"expected a list, {_FORMS}, not {text}: {how}", *place)
    if not isinstance(value, list | tuple):
        raise wrong(f"expected a list, {_FORMS}, not {shown(value)}", *place)
    if not value:
        raise wrong("the list is empty: there is nothing to loop over", *place)
    for i, entry in enumerate(value):
        check_value(entry, *place, i)
    return value


_FORMS = "$parameter, 1..9, glob(pattern) or csv(table)"


def check_value(entry: object, *place: Place) -> None:
    """Refuse what is neither a text, a number, true or false, nor a record of these."""
    if isinstance(entry, Mapping):
        for field, inner in named(entry, "the field", *place).items():
            _check_scalar(inner, *place, field)
    else:
        _check_scalar(entry, *place)


def _check_scalar(value: object, *place: Place) -> None:
    if not isinstance(value, str | int | float):
        raise wrong(f"a value is a text, a number, true or false, not {shown(value)}", *place)
    if isinstance(value, str):
        string(value, *place)


def _named_values(
    text: str, directory: Path, *place: Place, find: Find | None = None
) -> Sequence[object]:
    if call := _CALL.fullmatch(text):
        argument = call[2].strip().strip("'\"")
        if not argument or "\0" in argument:
            raise wrong(f"{call[1]}(...) needs a name, not {shown(argument)}", *place)
        if find is not None and (given := find(call[1], argument)) is not None:
            return given
        is_glob = call[1] == "glob"
        read = _files if is_glob else _table
        found = read(argument, directory, *place)
        if not found:
            what = "no file matches" if is_glob else "there are no rows in"
            where = shortened(argument) + _in_directory(directory)
            raise wrong(f"{what} {where}: there is nothing to loop over", *place)
        return found
    if ends := _RANGE.fullmatch(text):
        return _range(ends[1], ends[2], *place)
    raise wrong(f"expected a list, {_FORMS}, not {shown(text)}", *place)


def _range(first: str, last: str, *place: Place) -> list[object]:
    """Whole numbers from first to last; `01..20` has two digits each."""
    begin, end = int(first), int(last)
    if begin > end:
        raise wrong(f"the range {first}..{last} is empty: there is nothing to loop over", *place)
    if end - begin >= MOST:
        raise wrong(f"the range has more than {MOST:,} values", *place)
    numbers = range(begin, end + 1)
    padded = any(len(text.lstrip("-")) > 1 and text.lstrip("-")[0] == "0" for text in (first, last))
    if not padded:
        return list(numbers)
    width = max(len(first), len(last))
    return [f"{number:0{width}}" for number in numbers]


def _files(pattern: str, directory: Path, *place: Place) -> list[MatchedPath]:
    """Return the files of the data directory that match."""
    try:
        found = matched_paths({*find_matches(str(directory), pattern)}, pattern)
    except InputError as error:
        raise error.at(place_of(*place)) from None
    if odd := next(filter(is_pattern, found), None):
        problem = f"the file {shown(odd)} has * or ? in its name, and would mean others, too"
        raise wrong(f"{problem}: rename it", *place)
    return found


def _in_directory(directory: Path) -> str:
    return "" if directory == Path() else f" in {directory}"


_SEPARATORS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars"}


def _table(name: str, directory: Path, *place: Place) -> list[dict[str, Cell]]:
    """The rows of a table, each with its columns as fields; `.tsv` is separated by tabs."""
    path = directory / name
    try:
        text = read_text(path)
    except InputError as error:
        problem = ": ".join(filter(None, (error.place, error.problem)))
        if not os.path.exists(path):
            problem = f"there is no such file{_in_directory(directory)}"
            problem += "; its path must be relative to the data directory (--dir)"
        raise wrong(f"csv({shortened(name)}): {problem}", *place) from None
    if not text.strip():
        problem = f"csv({shortened(name)}): the table is empty"
        raise wrong(f"{problem}: its first row names its columns", *place)
    try:
        return _rows(path, text)
    except InputError as error:
        problem = f"csv({shortened(name)}): {error.place}: {error.problem}"
        raise wrong(problem, *place) from None


def _rows(path: Path, text: str) -> list[dict[str, Cell]]:
    """Return the rows of a table; the place of an error is the line of the table."""
    tabs = path.suffix.lower() in (".tsv", ".tab")
    delimiter = "\t" if tabs else ","
    reader = csv.reader(
        io.StringIO(text, newline=""),
        delimiter=delimiter,
        skipinitialspace=True,  # before quotes, too
        strict=True,
    )
    try:
        rows = [(reader.line_num, [cell.strip() for cell in row]) for row in reader if row]
    except csv.Error as error:
        raise InputError(f"{error}", place=f"line {reader.line_num}") from None
    header = rows[0][1]
    if len(header) == 1 or any(len(row) != len(header) for _, row in rows):
        _check_separator(path, text, rows[0][0], delimiter)
    if "" in header or len(set(header)) < len(header):
        raise InputError("every column needs a name of its own", place=f"line {rows[0][0]}")
    for line, row in rows[1:]:
        if len(row) != len(header):
            problem = f"expected {len(header)} cells, one for each column, not {len(row)}"
            raise InputError(problem, place=f"line {line}")
    return [dict(zip(header, map(Cell, row), strict=True)) for _, row in rows[1:]]


def _check_separator(path: Path, text: str, line: int, delimiter: str) -> None:
    """Refuse a table whose first row is separated by something else."""
    first = next(filter(str.strip, text.splitlines()))
    other = next((s for s in _SEPARATORS if s != delimiter and s in first), "")
    if not other:
        return
    wanted = _SEPARATORS[delimiter]
    problem = f"the columns are separated by {_SEPARATORS[other]}, not by {wanted}"
    how = f"write {wanted} (foreplan reads .csv with commas, .tsv with tabs)"
    if other == "\t":
        how = f"write commas, or call the file {path.stem}.tsv"
    elif delimiter == "\t" and other == ",":
        how = f"write tabs, or call the file {path.stem}.csv"
    raise InputError(f"{problem}: {how}", place=f"line {line}")


_IN = re.compile(r"(\w+) in (.+)", re.ASCII)


def groups_of(section: object, *place: Place) -> list[tuple[dict[str, object], bool]]:
    """The variables of a `foreach` and what each goes over; with those that are zipped together."""
    groups: list[tuple[dict[str, object], bool]] = []
    is_dashed = isinstance(section, list) and section and isinstance(section[0], Mapping)
    if not isinstance(section, Mapping) and not is_dashed:
        found = _IN.fullmatch(section) if isinstance(section, str) else None
        pair = f"{found[1]}: {shortened(found[2])}" if found else "sample: [a, b]"
        problem = f"expected variables and their values, not {shown(section)}"
        raise wrong(f"{problem}: write {{{pair}}}", *place)
    for key, value in named(mapping(section, *place), "the variable", *place).items():
        if key == ZIP and isinstance(value, Mapping):
            groups.append((named(value, "the variable", *place, ZIP), True))
        else:
            groups.append(({key: value}, False))
    if not groups or any(not group for group, _ in groups):
        raise wrong("a loop needs a variable: foreach: {sample: [a, b]}", *place)
    return groups
