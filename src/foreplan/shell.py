"""Commands as text: their shell, the files that they name, and inputs that were forgotten."""

from __future__ import annotations

import glob
import os
import re
import shlex
from bisect import bisect_left
from collections.abc import Callable, Container, Iterable, Iterator
from functools import cached_property, lru_cache
from sys import maxunicode
from typing import NamedTuple

from foreplan.errors import InputError
from foreplan.model.filenames import (
    Holders,
    adders,
    check_overlaps,
    covers,
    find_matches,
    is_many,
    is_match,
    suggest_pattern,
)
from foreplan.model.surroundings import Surroundings
from foreplan.model.workflow import Workflow
from foreplan.quantities import shortened
from foreplan.redirections import SHELL, redirection_targets

_TAKES_C = re.compile(r"(|a|ba|da|fi|k|mk|z)sh|(python|pypy)[\d.]*")
_C_OPTION = re.compile(r"-[A-Za-z]*c")
_ENDS = r"\s;&|<>()`"  # what ends a word
_GAPS = re.compile(rf"[{_ENDS}]+")
_PARTS = re.compile(rf"[{_ENDS}=]+")
_TOKENS = re.compile(
    rf"""(?P<gap>[{_ENDS}]+)|(?P<comment>(?<![^{_ENDS}])\#[^\n]*)
    |'(?P<single>[^']*)'|"(?P<double>(?:\\.|[^"\\])*)"|\\(?P<escaped>.)
    |(?P<open>['"\\])|[^{_ENDS}'"\\]+""",
    re.DOTALL | re.VERBOSE,
)
_UNTIDY = re.compile(r"^\.|//|/\.|/$")  # what `normpath` may change
_SPECIAL = re.compile(r"[\"'\\#]")
_WILD = re.compile(r"[*?]|\[[^]]+\]")
_ASSIGNED = re.compile(r"^[A-Za-z_]\w*=")
_ARITHMETIC = re.compile(r"\(\(.*?\)\)", re.DOTALL)
_COMPARISONS = ("=", "==", "!=", "=~")
_NEXT_COMMAND = re.compile(r"[;&|(\n]")
_AFTER_O = re.compile(rf"(?<!\S)-o\s+([^{_ENDS}]+)")  # within quotes


def shell_words(shell: str) -> list[str]:
    """The words before a command; shells and Python take it after -c, which may be left out."""
    try:
        words = shlex.split(shell)
    except ValueError as error:
        raise InputError(f"{shortened(shell)!r} is no shell: {str(error).lower()}") from None
    if not words or not words[0] or "\0" in shell:
        example = "say, for example, 'bash -e' or 'perl -e'"
        raise InputError(f"{shortened(shell)!r} is no shell: {example}")
    known = _TAKES_C.fullmatch(os.path.basename(words[0])) is not None
    if known and not any(_C_OPTION.fullmatch(word) for word in words[1:]):
        words.append("-c")
    return words


def text_of(command: str, shell: str | None, around: Surroundings | None = None) -> str:
    """What of a task may name files: its command, the words of its shell, and its container."""
    text = f"{shell}\n{command}" if shell else command
    image = None if around is None else around.image_file
    return text if image is None else f"{shlex.quote(image)}\n{text}"


def named_files(command: str) -> list[str]:
    """What in a command may be the name of a file of the data directory."""
    return sorted(name for name in named_paths(command) if is_inner(name))


@lru_cache(maxsize=1 << 14)  # a workflow is looked through when it is read, and before it is run
def named_paths(command: str) -> frozenset[str]:
    """What in a command may be the name of a file.

    Whole words, what stands after a `=`, and the words within quotes, which may be a command too.
    Most programs write to the file after `-o`: such a word is left out wherever it stands.
    """
    written: set[str] = set()
    if _SPECIAL.search(command) is None and "-o" not in command:
        parts = set(_GAPS.split(command))
        if "=" in command:
            parts.update(_PARTS.split(command))
    else:
        parts = set()
        before = ""
        for word in _words(command):
            if before == "-o" and not word.gap.strip():
                written.add(word.text)
            parts.update((word.text, word.text.partition("=")[2]), _PARTS.split(word.text))
            written.update(_AFTER_O.findall(word.text))
            before = word.text
    return _tidy(parts) - _tidy(written)


def _tidy(parts: Iterable[str]) -> frozenset[str]:
    return frozenset(
        os.path.normpath(part) if _UNTIDY.search(part) else part
        for part in parts
        if part and "\0" not in part
    )


def touched_files(command: str) -> frozenset[str]:
    """Return the files that a command only touches: they show that it has run."""
    touched: set[str] = set()
    others: set[str] = set()
    program = ""
    for word in _words(command):
        if not program or _NEXT_COMMAND.search(word.gap):
            program = word.text
        elif program == "touch" and ">" not in word.gap:
            touched.add(word.text)
        else:
            others.add(word.text)
    return _tidy(touched) - _tidy(others)


def redirected_files(command: str, shell: str | None) -> frozenset[str]:
    """Return the names in the data directory that a command redirects output to."""
    if ">" not in command:
        return frozenset()
    if shell and not any(SHELL.fullmatch(os.path.basename(w)) for w in shell_words(shell)):
        return frozenset()
    return frozenset(name for name in redirection_targets(command) if is_inner(name))


def named_patterns(command: str) -> list[str]:
    """The words that a shell replaces by the files that match them, as `glob` wants them."""
    if _WILD.search(command) is None:
        return []
    found, before = set(), ""
    for word in _words(_ARITHMETIC.sub(" ", command)):
        # `case x in *.csv)` and `[[ x == *.csv ]]` match other things than files
        is_case = word.after == ")" and (before == "in" or word.gap.strip() in (";;", "|"))
        if word.is_wild and not is_case and before not in (*_COMPARISONS, "-o"):
            found.add(os.path.normpath(_ASSIGNED.sub("", word.pattern)))
        before = word.text
    return sorted(pattern for pattern in found if "$" not in pattern and "\0" not in pattern)


def there(command: str, data: str, ignores: Container[str] = ()) -> list[str]:
    """What a command names that is in the data directory, folders before what is in them.

    A pattern names all that it matches there, but for what the task ignores.
    """
    names = {*named_files(command)}
    for _, matched in matching(command, data, ignores):
        names.update(matched)
    return sorted(name for name in names if os.path.exists(os.path.join(data, name)))


def matching(
    command: str, data: str, ignores: Container[str] = ()
) -> Iterator[tuple[str, list[str]]]:
    """The patterns of a command, and what they match in the data directory."""
    for pattern in named_patterns(command):
        if pattern not in ignores and is_inner(pattern):
            found = find_matches(data, pattern)
            yield pattern, [name for name in found if name not in ignores and is_inner(name)]


def is_inner(name: str) -> bool:
    """Whether a path stays in the directory, and out of what is foreplan's own there."""
    return name[0] not in "-/" and name.split("/", 1)[0] not in (".", "..", ".foreplan")


class _Word(NamedTuple):
    """A word of a command, without its quotes."""

    text: str
    pattern: str  # the same for `glob`: what was quoted means itself
    is_wild: bool  # a wildcard stands outside of quotes
    gap: str  # what stands before it
    after: str  # the character after it


def _words(command: str) -> Iterator[_Word]:
    """The words of a command; a quote that is never closed, which the shell refuses, is a gap."""
    text = pattern = gap = ""
    is_word = is_wild = False
    for token in _TOKENS.finditer(command.replace("\\\n", "") + "\n"):
        kind, part = token.lastgroup, token[0]
        if kind in ("gap", "comment", "open"):
            if is_word:
                yield _Word(text, pattern, is_wild, gap, part.lstrip(" \t")[:1])
                text = pattern = gap = ""
                is_word = is_wild = False
            gap += part
            continue
        is_word = True
        if kind is None:
            text, pattern = text + part, pattern + part
            is_wild = is_wild or _WILD.search(part) is not None
        else:
            text, pattern = text + token[kind], pattern + glob.escape(token[kind])


_PATTERN_BEGINS = re.compile(r"[*?[]")
BY_ITS_FOLDER = re.compile(r"^\$(FOREPLAN_DIR|\{FOREPLAN_DIR\})/")  # the data directory


@lru_cache(maxsize=1)  # a workflow is checked where it is read, and where it is begun
def check_listed(workflow: Workflow) -> None:
    """An InputError where a command names what another task makes, but its task does not list it.

    It would read the file of an earlier run. What stands under `ignores` is passed by, and what
    tasks make that the command adds: it may print their commands to the letter.
    """
    check_overlaps(workflow)
    check_redirections(workflow)
    made = _Made(workflow)
    if not made.by:
        return
    files_of = listed_files_of(workflow)
    for task, spec in workflow.specs.items():
        if not spec.run:
            continue
        listed: list[str] | None = None
        for word, name in made.named(text_of(spec.run, spec.shell, spec.around)):
            if word in spec.ignores or name in spec.ignores:
                continue
            maker = made.by[made.file(name)] if spec.expand else -1
            if maker >= 0 and workflow.task_names[task] in adders(workflow, maker):
                continue
            if listed is None:
                listed = files_of(task)
            # of a folder with files of its own, a task sees those alone; what is written within
            # quotes may be a part of a name with blanks
            if name not in listed and not any(
                file.startswith(name + "/")
                or (is_many(file) and covers(file, name))
                or name in _PARTS.split(file)
                for file in listed
            ):
                raise workflow.task_error(task, made.forgotten(task, word, name), "run")


IS_INPUT = "is one of its inputs: write to another file"
IS_THERE = (
    "is in the data directory but not among its outputs: list it under outputs, or write to "
    "another file (or list it under ignores, if it is a file of the command's own)"
)


def check_redirections(workflow: Workflow, directory: str | None = None) -> None:
    """Raise an InputError if a command redirects output to a file that its task does not make.

    The file would be written through a link, also by an attempt that fails. Refused are inputs of
    the task and files that other tasks make; with a directory, also files that are there.
    """
    writers = {
        task: files
        for task, spec in workflow.specs.items()
        if spec.run and (files := redirected_files(spec.run, spec.shell))
    }
    if not writers:
        return
    listed, own = listed_files_of(workflow), listed_files_of(workflow, outputs_only=True)
    made = _Made(workflow)
    for task, files in writers.items():
        outputs = own(task)
        for name in sorted(files):
            if is_among(name, outputs):
                continue
            problem = ""
            if is_among(name, listed(task)):
                problem = IS_INPUT
            elif name in workflow.spec(task).ignores:
                continue
            elif (file := made.file(name)) in made.by:
                problem = f"{workflow.name_task(made.by[file])} makes: write to another file"
            elif directory is not None and os.path.isfile(os.path.join(directory, name)):
                problem = IS_THERE
            if problem:
                by = shortened(workflow.task_names[task])
                message = f"{by} redirects output to {shortened(name)}, which {problem}"
                raise workflow.task_error(task, message, "run")


def is_among(name: str, files: Iterable[str]) -> bool:
    """Return whether a file is listed, by itself or by a directory or pattern."""
    return any(name == file or (is_many(file) and covers(file, name)) for file in files)


def listed_files_of(workflow: Workflow, outputs_only: bool = False) -> Callable[[int], list[str]]:
    """Return a function that gives the files that a task lists, as inputs and as outputs."""
    names = workflow.item_names or ()
    pairs = ((workflow.in_ptr, workflow.in_item), (workflow.out_ptr, workflow.out_item))
    columns = [(ptr.tolist(), items.tolist()) for ptr, items in pairs[outputs_only:]]

    def listed(task: int) -> list[str]:
        items = [item for ptr, of in columns for item in of[ptr[task] : ptr[task + 1]]]
        return [name for item in items if (name := names[item]) is not None] if names else []

    return listed


class _Made:
    """The files that tasks make, and the folders that they are in."""

    def __init__(self, workflow: Workflow) -> None:
        self._workflow = workflow
        names = workflow.item_names or ()
        makers = workflow.item_producer.tolist()
        self.by = {n: makers[i] for i, n in enumerate(names) if n is not None and makers[i] >= 0}
        self._holders = Holders(self.by)
        self._inside: dict[str, str] = {}  # a file of each folder
        for name in self.by:
            folder = name.rpartition("/")[0]
            while folder and folder not in self._inside:
                self._inside[folder] = name
                folder = folder.rpartition("/")[0]

    def named(self, command: str) -> Iterator[tuple[str, str]]:
        """The words of a command that mean one of these, and which."""
        words = {w: BY_ITS_FOLDER.sub("", w) if w[0] == "$" else w for w in named_paths(command)}
        for word in sorted(w for w, n in words.items() if self._is_made(n)):
            yield word, words[word]
        for word in named_patterns(command):
            for name in self._matches(word):
                yield word, name

    def _is_made(self, name: str) -> bool:
        if name in self.by or name in self._inside:
            return True
        return bool(self._holders) and is_inner(name) and self._holder(name) is not None

    def _holder(self, name: str) -> str | None:
        """The directory or pattern that has a file, if a task makes one."""
        return next(self._holders.of(name), None)

    @cached_property
    def _sorted(self) -> list[str]:
        return sorted({*self.by, *self._inside})

    def _matches(self, pattern: str) -> Iterator[str]:
        prefix = _PATTERN_BEGINS.split(pattern, maxsplit=1)[0]
        begin, end = (bisect_left(self._sorted, prefix + last) for last in ("", chr(maxunicode)))
        wanted = pattern.replace("[^", "[!").split("/")
        near = self._sorted[begin:end]
        return (name for name in near if is_match(wanted, name.split("/")))

    def file(self, name: str) -> str:
        """What a task makes that is meant by a name: it may be of a folder, or in a directory."""
        return name if name in self.by else self._inside.get(name) or self._holder(name) or name

    def forgotten(self, task: int, word: str, name: str) -> str:
        """Return which file a task does not list, and what to do."""
        file = self.file(name)
        files = shortened(word) if word == file else f"{shortened(word)}, and so {shortened(file)}"
        maker = self._workflow.name_task(self.by[file])
        how = "list it under inputs (or under ignores, if it is not meant)"
        added_by = [*adders(self._workflow, self.by[file])]
        if added_by and self._workflow.spec(task).added_by is None:
            by, pattern = map(shortened, (added_by[-1], suggest_pattern(file)))
            how = (
                f"as {by} adds {maker}, write `after: [{by}]` and a pattern under inputs, such as "
                f'"{pattern}" (or list the file under ignores, if it is not meant)'
            )
        name = shortened(self._workflow.task_names[task])
        return f"{name} names {files}, which {maker} makes: {how}"
