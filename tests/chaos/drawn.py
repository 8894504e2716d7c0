"""Random workflows whose correct files are computed here, without foreplan.

A workflow has sources, which are files of the data directory, and tasks. A file that a task makes
holds the name of the task, its own name and a digest of all inputs, so that it is correct for one
content of the inputs only. Two kinds of tasks make something else: `cut` copies each line of
a source to a file, and `grow` prints a task for each line.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from functools import partial
from typing import Any

import yaml

from chaos.runs import MARK

# Draw tasks that print tasks and read, perhaps through others, from a task with temporary outputs.
# Now a later run may do some of these again, as with temporary files of loops (docs/limits.md).
TEMP_ABOVE_PRINTED = False
# Draw loops over the files of a directory that a task makes, and over those of several folders.
LOOPS_OVER_FOLDERS = True
# Resume after an edit of lines that a loop goes over.
RESUME_EDITED_LOOPS = True

SAMPLES = ("u", "v")
LINGER = 30  # seconds that a command continues when its coordinator is dead
USE_TOOLS = f'. "${MARK}/tools.sh"; '
TOOLS = f"""\
export LC_ALL=C
read -ra stat < /proc/$$/stat
me=$$:${{stat[21]}}  # with its start time, for process ids are used again

record() {{ echo "$1 $FOREPLAN_TASK $me $PPID ${{2-}}" >> "${MARK}/log"; }}

is_alive() {{
  {{ read -ra stat < "/proc/${{1%:*}}/stat"; }} 2> /dev/null &&
    [ "${{stat[21]}}" = "${{1#*:}}" ] && [[ ${{stat[2]}} != [ZX] ]]
}}

begin() {{  # seconds, whether it lingers, inputs
  record start
  local -A others=()
  local what task who rest
  while read -r what task who rest; do
    if [ "$task" != "$FOREPLAN_TASK" ] || [ "$who" = "$me" ]; then continue; fi
    if [ "$what" = start ]; then others[$who]=1; else unset "others[$who]"; fi
  done < "${MARK}/log"
  for who in "${{!others[@]}}"; do
    if is_alive "$who"; then record beside "$who"; fi
  done
  sleep "$1"
  if [ "$2" = yes ] && ! kill -0 "$PPID" 2> /dev/null; then sleep {LINGER}; fi
  shift 2
  digest=$( ([ $# = 0 ] || find -L $* -type f | sort -u | xargs grep -H "") | md5sum)
  digest=${{GROWN-}}${{digest:0:12}}
}}

file() {{
  local name
  for name; do
    if [[ $name = */* ]]; then mkdir -p "${{name%/*}}"; fi
    echo "$FOREPLAN_TASK $name $digest" > "$name"
  done
}}

cut() {{  # folder, source
  mkdir -p "$1"
  while read -r word rest; do echo "$word $rest" > "$1/$word"; done < "$2"
}}

grow() {{  # source, input of the tasks
  echo tasks:
  local word rest made
  while read -r word rest; do
    made=$FOREPLAN_TASK/$word.txt
    echo "  $FOREPLAN_TASK-$word:"
    echo "    env: {{GROWN: '$digest'}}"
    echo "    run: . \\"\\${MARK}/tools.sh\\"; begin 0.05 yes $2; file $made; finish"
    echo "    inputs: [$2]"
    echo "    outputs: [$made]"
  done < "$1"
}}

finish() {{ record end; }}
"""

Lines = tuple[tuple[str, int], ...]  # the words of a source, each with its version
Sources = Mapping[str, Lines]


@dataclass(frozen=True)
class Output:
    """A file, pattern or directory that a task makes."""

    name: str
    files: tuple[str, ...]
    temp: bool = False


@dataclass(frozen=True)
class Task:
    """A task that runs a command: one of the workflow file, or one that was added."""

    name: str
    reads: tuple[str, ...]  # names of files, patterns and directories
    outputs: tuple[Output, ...]
    copied: Mapping[str, str] = field(default_factory=dict)  # contents without a digest
    added: tuple[str, ...] = ()  # words of the tasks that it prints
    added_by: str = ""


Step = Callable[[Sources], list[Task]]  # the tasks of a part of the workflow file


@dataclass(frozen=True)
class Graph:
    """All tasks for one content of the sources, makers first, and the correct files."""

    tasks: dict[str, Task]
    contents: Mapping[str, str]
    readers: Mapping[str, Collection[str]]  # tasks that read an output or a part, by its name
    proofs: Mapping[str, Collection[str]]  # those that read all of it

    def is_there(self, found: Mapping[str, str], output: Output) -> bool:
        """Return whether an output is there, with the correct files and no others."""
        files = [file for file in found if _means(output.name, file)]
        return {*files} == {*output.files} and all(found[f] == self.contents[f] for f in files)

    def find_needed(self, found: Mapping[str, str]) -> set[str]:
        """Return the tasks that a run may start in a directory with these files.

        A task is done if its outputs are there and correct. A temporary output is deleted once
        its readers are done, so one that has read all of it and is done proves that it was made.
        It is made again if a reader may have to run: one that is not done, or comes after a task
        that is started, whose outputs nobody knows before they are there.
        """
        done = set[str]()
        missing = dict[str, list[Output]]()
        for name, task in reversed(self.tasks.items()):
            missing[name] = [o for o in task.outputs if not self.is_there(found, o)]
            if all(o.temp and done.intersection(self.proofs[o.name]) for o in missing[name]):
                done.add(name)
        needed = self.tasks.keys() - done
        while True:
            uncertain = self.find_later(needed)
            more = {
                name
                for name, outputs in missing.items()
                if any(uncertain.intersection(self.readers[output.name]) for output in outputs)
            }
            if more <= needed:
                return needed
            needed |= more

    def find_later(self, tasks: Collection[str]) -> set[str]:
        """Return these tasks, and all that read what they make or are added by them, and so on."""
        later = {*tasks}
        for name, task in self.tasks.items():
            if name in later or task.added_by in later:
                later.add(name)
                later.update(r for output in task.outputs for r in self.readers[output.name])
        return later


@dataclass(frozen=True)
class Drawn:
    """A random workflow."""

    text: str  # of the workflow file
    sources: Sources  # as they are at first
    steps: Sequence[Step]

    def graph(self, sources: Sources) -> Graph:
        """Return the tasks and the correct files for sources with these lines."""
        tasks = {task.name: task for step in self.steps for task in step(sources)}
        contents = {name: text_of(lines) for name, lines in sources.items()}
        digests = dict[str, str]()
        for name, task in tasks.items():
            digests[name] = digests.get(task.added_by, "") + _digest(task, contents)
            contents |= _make(task, digests[name])
        outputs = [output for task in tasks.values() for output in task.outputs]
        readers = {
            output.name: [name for name, task in tasks.items() if _is_reader(task, output)]
            for output in outputs
        }
        proofs = {
            name: [reader for reader in found if name in tasks[reader].reads or not _is_many(name)]
            for name, found in readers.items()
        }
        return Graph(tasks, contents, readers, proofs)


def text_of(lines: Lines) -> str:
    """Return the content of a source."""
    return "".join(f"{word} {version}\n" for word, version in lines)


def change(sources: Sources, rng: random.Random, version: int) -> tuple[Sources, str]:
    """Edit, add or remove a line of a source; also say so in words."""
    name = rng.choice(sorted(sources))
    lines = list(sources[name])
    how = rng.choice(("edit", "edit", "add", "remove" if len(lines) > 1 else "add"))
    at = rng.randrange(len(lines))
    if how == "edit":
        lines[at] = (lines[at][0], version)
    elif how == "add":
        lines.append((f"v{version}", version))
    else:
        del lines[at]
    return {**sources, name: tuple(lines)}, f"{how} a line of {name}"


def can_continue(old: Graph, new: Graph) -> bool:
    """Return whether a run that began with the old graph can be resumed with the new one.

    It cannot if other tasks are to be added than those that were.
    """
    added = [
        {
            file: graph.contents[file]
            for task in graph.tasks.values()
            if task.added or (task.copied and not RESUME_EDITED_LOOPS)
            for output in task.outputs
            for file in output.files
        }
        for graph in (old, new)
    ]
    return old.tasks.keys() == new.tasks.keys() and added[0] == added[1]


def _digest(task: Task, contents: Mapping[str, str]) -> str:
    """Return the digest of all that a task reads."""
    read = sorted(file for file in contents if any(_means(name, file) for name in task.reads))
    lines = (f"{file}:{line}\n" for file in read for line in contents[file].splitlines())
    return hashlib.md5("".join(lines).encode()).hexdigest()[:12]


def _make(task: Task, digest: str) -> dict[str, str]:
    """Return the files that a task makes from inputs with this digest."""
    made = {f: f"{task.name} {f} {digest}\n" for output in task.outputs for f in output.files}
    if task.added:
        return dict.fromkeys(made, _print_tasks(task, digest))
    return made | dict(task.copied)


def _print_tasks(task: Task, digest: str) -> str:
    """Return what `grow` prints."""
    text = "tasks:\n"
    read = task.reads[-1]
    for word in task.added:
        file = f"{task.name}/{word}.txt"
        text += f"  {task.name}-{word}:\n    env: {{GROWN: '{digest}'}}\n"
        text += f"    run: {USE_TOOLS}begin 0.05 yes {read}; file {file}; finish\n"
        text += f"    inputs: [{read}]\n    outputs: [{file}]\n"
    return text


def _means(name: str, file: str) -> bool:
    """Return whether an input of this name includes a file."""
    if name.endswith("/"):
        return file.startswith(name)
    return fnmatch(file, name)


def _is_many(name: str) -> bool:
    return name.endswith("/") or "*" in name


def _is_reader(task: Task, output: Output) -> bool:
    return any(_means(name, file) for name in task.reads for file in output.files)


def draw(seed: int) -> Drawn:
    """Return the random workflow of a seed."""
    return _Drawing(random.Random(seed)).draw()


class _Drawing:
    """A workflow that gets its parts one by one; each reads what earlier ones make."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.sources = {
            f"x{k}.txt": tuple((f"w{i}", 0) for i in range(rng.randint(1, 4))) for k in range(2)
        }
        self.fields = dict[str, dict[str, Any]]()  # of the workflow file, by task
        self.steps: list[Step] = []
        self.readable = dict.fromkeys(self.sources, False)  # and whether each is temporary
        self.read = set[str]()
        self.below_temp = set[str]()  # made by tasks with temporary outputs, or from these
        self.has_costs = rng.random() < 0.5

    def draw(self) -> Drawn:
        """Return the workflow with all its parts."""
        growing: list[Callable[[int], None]] = [self.add_loop, self.add_loop, self.add_growing]
        if LOOPS_OVER_FOLDERS:
            growing += [partial(self.add_loop, is_tree=True), self.add_loops_of_samples]
        parts: list[Callable[[int], None]] = [self.add_task] * self.rng.randint(5, 8)
        parts += self.rng.sample(growing, self.rng.choice((0, 1, 1, 2)))
        self.rng.shuffle(parts)
        for number, add in enumerate([self.add_task, *parts]):
            add(number)
        # what added tasks ask for, a declared task must ask for, too
        self.fields["t0"] |= {"pools": {"tokens": 1}, "memory": "100MB", "cores": 2}
        unread = [name for name in self.readable if name not in self.read]
        kept = [name for name in unread if self.readable[name] or self.rng.random() < 0.6]
        self.add("total", kept or unread, [Output("total.txt", ("total.txt",))])
        content = {
            "name": "drawn",
            "params": {},
            "pools": {"tokens": 2},
            "tasks": self.fields,
        }
        text = yaml.safe_dump(content, sort_keys=False, width=1000)
        return Drawn(text, self.sources, self.steps)

    def add_task(self, number: int) -> None:
        """Add a task with one or two outputs that reads up to three."""
        kinds = self.rng.sample(("file", "file", "pattern", "folder"), self.rng.choice((1, 1, 2)))
        outputs = [self.draw_output(number, kind) for kind in dict.fromkeys(kinds)]
        count = min(len(self.readable), self.rng.choice((0, 1, 1, 2, 3)))
        self.add(f"t{number}", self.rng.sample(list(self.readable), count), outputs)

    def add_loop(self, number: int, is_tree: bool = False) -> None:
        """Add a loop over files that a task makes, and perhaps another over what that makes."""
        is_double = not is_tree and self.rng.random() < 0.3
        parts = _Parts(self.draw_source(), f"g{number}")
        made = f"{parts.folder}/" if is_tree else f"{parts.folder}/*"
        # loops of loops do some tasks again where their files are temporary (docs/limits.md)
        may_be_temp = not is_double
        self.add_cut(f"cut{number}", parts, made, may_be_temp and self.is_temp())
        reads = ["{p}", f"{parts.folder}/"] if is_tree else ["{p}"]
        name = f"n{number}"
        part = f"l{number}/{{p.name}}.txt"
        self.add_each(f"{name}-{{p.name}}", parts, reads, part, may_be_temp and self.is_temp())
        if is_double:
            name = f"o{number}"
            last = f"m{number}/{{p.name}}.txt"
            self.add_each(f"{name}-{{p.name}}", parts, [part], last, self.is_temp())
            part = last
        self.add_file(f"t{number}", [part.replace("{p.name}", "*")], f"f{number}.txt")
        if self.rng.random() < 0.5:
            self.fields[f"t{number}"]["inputs"] = {"all": part}
        else:
            self.fields[f"t{number}"]["after"] = [f"{name}-*"]

    def add_loops_of_samples(self, number: int) -> None:
        """Add a loop over files that the tasks of another loop make, each in its own folder."""
        parts = _Parts(self.draw_source(), f"g{number}-{{s}}", SAMPLES)
        self.add_cut(f"cut{number}-{{s}}", parts, f"{parts.folder}/*", self.is_temp())
        part = f"l{number}-{{s}}/{{p.name}}.txt"
        self.add_each(f"n{number}-{{s}}-{{p.name}}", parts, ["{p}"], part, self.is_temp())
        made = [f"l{number}-{sample}/*.txt" for sample in SAMPLES]
        self.add_file(f"t{number}", made, f"f{number}.txt")
        self.fields[f"t{number}"]["inputs"] = {"all": part}

    def add_growing(self, number: int) -> None:
        """Add a task that prints a task for each line of a source, and one that waits for these."""
        name = f"e{number}"
        source = self.draw_source()
        # a file that goes while the tasks are not there yet is not made again for them
        lasting = [other for other, temp in self.readable.items() if not temp]
        lasting = [r for r in lasting if TEMP_ABOVE_PRINTED or r not in self.below_temp]
        read = self.rng.choice(lasting)
        reads = [*dict.fromkeys((source, read))]
        self.read.add(read)
        self.fields[name] = {
            "run": self.command(f"grow {source} '{read}'", reads),
            "expand": True,
            "inputs": reads,
            **self.request(),
        }
        printed = f".foreplan/added/{name}.yaml"

        def step(sources: Sources) -> list[Task]:
            words = tuple(word for word, _ in sources[source])
            made = {f"{name}-{word}": f"{name}/{word}.txt" for word in words}
            return [
                Task(name, tuple(reads), (Output(printed, (printed,)),), added=words),
                *(
                    Task(added, (read,), (Output(file, (file,)),), added_by=name)
                    for added, file in made.items()
                ),
            ]

        self.steps.append(step)
        self.add_file(f"t{number}", [f"{name}/*.txt"], f"f{number}.txt")
        self.fields[f"t{number}"]["after"] = [name]

    def add_cut(self, name: str, parts: _Parts, output: str, temp: bool) -> None:
        """Add tasks that copy each line of a source to a file."""
        self.fields[name] = {
            **parts.foreach(with_files=False),
            "run": self.command(f"cut {parts.folder} {parts.source}", [parts.source]),
            "inputs": [parts.source],
            "outputs": [output],
            "temp": temp,
            **self.request(),
        }

        def step(sources: Sources) -> list[Task]:
            made = []
            for sample in parts.samples:
                texts = {
                    f"{parts.folder}/{word}".replace("{s}", sample): f"{word} {version}\n"
                    for word, version in sources[parts.source]
                }
                outputs = (Output(output.replace("{s}", sample), tuple(texts), temp),)
                made.append(Task(name.replace("{s}", sample), (parts.source,), outputs, texts))
            return made

        self.steps.append(step)

    def add_each(self, name: str, parts: _Parts, reads: list[str], output: str, temp: bool) -> None:
        """Add a task for each file that a loop goes over."""
        self.fields[name] = {
            **parts.foreach(),
            "run": self.command(f"file {output}", reads),
            "inputs": reads,
            "outputs": [output],
            "temp": temp,
            **self.request(),
        }

        def step(sources: Sources) -> list[Task]:
            made = []
            for sample in parts.samples:
                for word, _ in sources[parts.source]:
                    fill = partial(_fill, sample=sample, word=word, folder=parts.folder)
                    file = fill(output)
                    outputs = (Output(file, (file,), temp),)
                    made.append(Task(fill(name), tuple(map(fill, reads)), outputs))
            return made

        self.steps.append(step)

    def add_file(self, name: str, reads: list[str], file: str) -> None:
        """Add a task that makes a file, which stays."""
        self.add(name, reads, [Output(file, (file,))])

    def add(self, name: str, reads: list[str], outputs: list[Output]) -> None:
        """Add a task of these inputs and outputs."""
        files = " ".join(file for output in outputs for file in output.files)
        self.fields[name] = {
            "run": self.command(f"file {files}", reads),
            "inputs": reads,
            "outputs": [{"path": o.name, "temp": True} if o.temp else o.name for o in outputs],
            **self.request(),
        }
        task = Task(name, tuple(reads), tuple(outputs))
        self.steps.append(lambda sources: [task])
        self.read.update(reads)
        self.readable |= {output.name: output.temp for output in outputs}
        if self.below_temp.intersection(reads) or any(output.temp for output in outputs):
            self.below_temp.update(output.name for output in outputs)

    def command(self, what: str, reads: Collection[str]) -> str:
        """Return a command that takes its time, reads these files, and then does something."""
        pause = self.rng.choice(("0", "0", "0.03", "0.1", "0.2"))
        lingers = self.rng.choice(("yes", "yes", "no"))
        # a pattern means the same files with quotes and without
        words = [f"'{r}'" if "*" in r and self.rng.random() < 0.5 else r for r in reads]
        return f"{USE_TOOLS}begin {' '.join([pause, lingers, *words])}; {what}; finish"

    def request(self) -> dict[str, Any]:
        """Choose what a task needs, and how often it is tried again."""
        fields: dict[str, Any] = {}
        if self.rng.random() < 0.2:
            fields["cores"] = 2
        if self.rng.random() < 0.3:
            fields["memory"] = "100MB"
        if self.rng.random() < 0.3:
            fields["pools"] = {"tokens": self.rng.choice((1, 1, 2))}
        if self.rng.random() < 0.2:
            fields["retries"] = 9
            fields["wait"] = 0.02
        if self.has_costs:
            fields["cost"] = self.rng.choice((0.05, 0.1, 0.2))
        return fields

    def draw_output(self, number: int, kind: str) -> Output:
        temp = self.is_temp()
        letters = "abcd"[: self.rng.randint(1, 4)]
        if kind == "pattern":
            files = [f"p{number}/{letter}.txt" for letter in letters]
            return Output(f"p{number}/*.txt", tuple(files), temp)
        if kind == "folder":
            files = [*(f"d{number}/{letter}" for letter in letters), f"d{number}/in/e"]
            return Output(f"d{number}/", tuple(files), temp)
        return Output(f"f{number}.txt", (f"f{number}.txt",), temp)

    def draw_source(self) -> str:
        return self.rng.choice(list(self.sources))

    def is_temp(self) -> bool:
        return self.rng.random() < 0.4


@dataclass(frozen=True)
class _Parts:
    """Files with the lines of a source, which a loop goes over."""

    source: str
    folder: str
    samples: tuple[str, ...] = ("",)

    def foreach(self, with_files: bool = True) -> dict[str, Any]:
        """Return the field of the workflow file."""
        over: dict[str, Any] = {"s": list(self.samples)} if self.samples != ("",) else {}
        if with_files:
            over["p"] = f"glob({self.folder}/*)"
        return {"foreach": over} if over else {}


def _fill(text: str, sample: str, word: str, folder: str) -> str:
    """Replace the variables of a loop."""
    text = text.replace("{p}", f"{folder}/{word}").replace("{p.name}", word)
    return text.replace("{s}", sample)
