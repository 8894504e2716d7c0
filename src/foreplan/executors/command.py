"""One attempt at a shell command: in a directory of its own, its outputs published whole.

Usable wherever the data directory can be reached, so on a Dask worker too.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Container, Mapping
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from foreplan.errors import InputError
from foreplan.executors.causes import cause_of_exit, is_signal, signal_of
from foreplan.executors.containers import (
    end_container,
    more_variables,
    words_inside,
    wrapped,
    wrapped_script,
)
from foreplan.executors.kept import VARIABLES, Script, keep
from foreplan.executors.limits import Fence, Limit, fenced, is_refused
from foreplan.executors.open_files import is_shortage, restoring_prefix
from foreplan.executors.processes import GRACE, OF_ATTEMPT, OF_RUN, Stop, end_group, wait_exit
from foreplan.executors.progress import VARIABLE
from foreplan.executors.publishing import Publication
from foreplan.executors.usage import Used, oom_kills, reap
from foreplan.executors.workspace import (
    AttemptError,
    Scratch,
    Workspace,
    done_line,
    tail_of,
)
from foreplan.model.causes import OUT_OF_MEMORY, SYSTEM, TIME_OUT
from foreplan.model.filenames import covers, is_many
from foreplan.model.surroundings import Surroundings
from foreplan.quantities import duration
from foreplan.shell import redirected_files, shell_words, text_of, there
from foreplan.store.content import Entry
from foreplan.store.making import Making, made
from foreplan.store.parts import append

# whoever asks the terminal for a password gets an error; a group in the background would stop
_NO_TERMINAL = "trap '' TTIN TTOU; "
_HINTS = {126: "not executable?", 127: "command not found?"}
PERHAPS = "perhaps out of memory"
_SIGNAL_HINTS = {
    signal.SIGKILL.value: PERHAPS,
    signal.SIGPIPE.value: "its reader ended first, as `head` does",
}


@dataclass(frozen=True)
class CommandJob:
    """All that an attempt needs to know, as plain data. Paths are absolute."""

    task: str
    command: str
    dir: str  # the data directory
    scratch: str  # the attempt's own directory; without a store, see `making`, what is done is
    # noted in this path + ".done"
    log: str  # stdout and stderr are kept as this path + ".out" and ".err"
    inputs: tuple[str, ...] = ()  # names of files, relative to the data directory
    outputs: tuple[str, ...] = ()
    attempt: int = 0
    home: str = ""  # the run's home, the mark of its processes
    timeout: float | None = None
    keep: str = ""  # where the directory of a failed attempt is put, with its command as a script
    anywhere: bool = False  # links may lead, and absolute paths go, out of the data directory
    progress: str = ""  # the file that it may write its progress to
    shell: str = ""  # the words that the command is given to; none: `usual_shell`
    ignores: Container[str] = ()  # names that patterns of the command leave out
    making: Making | None = None  # what it is made from; None: the store is not told of it
    store: str = ""  # the store's folder
    variables: Mapping[str, str | None] = field(default_factory=dict)  # None: not to be set
    limit: Limit | None = None  # what it is held to
    protected: tuple[str, ...] = ()  # outputs that become read-only
    around: Surroundings | None = None  # its environment, a container or a conda environment
    printed: str = ""  # the output that has what it prints; none: that is a log

    @property
    def text(self) -> str:
        """What of it may name files."""
        return text_of(self.command, self.shell, self.around)

    @property
    def redirected(self) -> frozenset[str]:
        """The files that its command redirects output to."""
        return redirected_files(self.command, self.shell)

    @property
    def own_variables(self) -> dict[str, str | None]:
        """What its environment has beside the marks; what the task says itself counts most."""
        return {**self.variables, **dict(() if self.around is None else self.around.env)}


@dataclass(frozen=True)
class CommandOutcome:
    """How an attempt ended; it has succeeded if there is no problem."""

    seconds: float
    exit: int | None = None
    signal: int | None = None
    timed_out: bool = False
    stopped: bool = False  # from outside
    sizes: Mapping[str, int] = field(default_factory=dict)  # the outputs', in bytes
    contents: Mapping[str, Entry] = field(default_factory=dict)  # the outputs', for the store
    warning: str = ""
    undeclared: Mapping[str, Any] | None = None  # see foreplan.executors.undeclared
    problem: str | None = None
    tail: str = ""  # the end of what it has printed
    log: str | None = None  # the file with all of it
    kept: str | None = None  # where its directory is now
    cause: str = ""  # of the problem, see foreplan.model.causes
    used: Mapping[str, Any] = field(default_factory=dict)  # see foreplan.executors.usage
    shortage: OSError | None = None  # of descriptors or processes, which is the problem


def run_command(
    job: CommandJob,
    stop: Stop | None = None,
    environment: Mapping[bytes, bytes] | None = None,
    workspace: Workspace | None = None,
) -> CommandOutcome:
    """Run a command to its end; whatever happens is told by the outcome.

    The outputs of an attempt that is asked to stop are not published. The environment is this
    process's if none is given. A workspace is used again, by one attempt after another.
    """
    if workspace is None:
        with closing(Workspace(job.scratch, job.scratch + ".done", job.log)) as own:
            return run_command(job, stop, environment, own)
    stop = stop or Stop()
    scratch = Scratch(job.scratch, job.dir, job.anywhere)
    ran = _Ran(time.perf_counter())
    published = _Published()
    try:
        if not workspace.take():
            scratch.make()
        scratch.fill(job.inputs, job.outputs, job.text, job.ignores, job.redirected)
        _execute(job, ran, stop, environment, workspace)
        problem = _problem(job, ran, stop)
        if problem is None:
            _publish(job, ran, scratch, workspace, published)
    except AttemptError as error:
        problem, ran.cause = str(error), error.cause
    except InputError as error:  # a pattern of too many files
        problem, ran.cause = str(error), SYSTEM
    except (OSError, ValueError) as error:
        problem, ran.cause = explain(error), SYSTEM
        if isinstance(error, OSError) and is_shortage(error):
            ran.shortage = error
    workspace.keep_logs(job.log)
    if problem is None:
        workspace.leave(scratch)
        return CommandOutcome(ran.seconds, exit=0, used=ran.used, **vars(published))
    keeps = job.keep and not stop.asked and ran.shortage is None
    kept = None if not keeps else _keep(job, problem, environment)
    if kept is None:
        scratch.clear()
    return _failed(job, ran, problem, stop, kept)


@dataclass
class _Ran:
    """What is known of the process so far."""

    begin: float
    seconds: float = 0.0
    code: int | None = None
    timed_out: bool = False
    oom_kills: int = 0  # of this machine's, while it ran
    used: Used = field(default_factory=dict)
    cause: str = ""  # why it cannot have succeeded
    refused: str = ""  # if it is held to some memory: what it asked for and used
    killed: bool = False  # because that was used up
    shortage: OSError | None = None


def _execute(
    job: CommandJob,
    ran: _Ran,
    stop: Stop,
    environment: Mapping[bytes, bytes] | None,
    workspace: Workspace,
) -> None:
    variables = dict(own_environment() if environment is None else environment)
    own = marks(job.dir, job.home, job.task, job.attempt, job.progress)
    more = {} if job.around is None else more_variables(job.around)
    for name, value in {**own, **job.own_variables, **more}.items():
        if value is None:
            variables.pop(name.encode(), None)
        else:
            variables[name.encode()] = os.fsencode(value)
    with fenced(job.limit) as fence:
        _execute_within(fence, job, ran, stop, variables, workspace)


def _execute_within(
    fence: Fence | None,
    job: CommandJob,
    ran: _Ran,
    stop: Stop,
    variables: Mapping[bytes, bytes],
    workspace: Workspace,
) -> None:
    before = oom_kills()
    ran.begin = time.perf_counter()
    stdin, stdout, stderr = workspace.open_streams()
    with ExitStack() as stack:
        if job.printed:
            output = os.path.join(job.scratch, job.printed)
            stdout = stack.enter_context(open(output, "wb")).fileno()
        if fence is not None:
            stack.enter_context(fence.pin())
        process = subprocess.Popen(
            _arguments(job, restoring_prefix() + ("" if fence is None else fence.prefix)),
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            cwd=job.scratch,
            env=variables,
            # a session of its own would do as well, but can take as long to make as a short command
            process_group=0,
        )
    in_time = False
    try:
        with stop.aim_at(process.pid):
            try:
                in_time = wait_exit(process, job.timeout)
            finally:
                # also when the shell has exited: whoever of its group lingers could still write
                end_group(process, 0.0 if in_time else GRACE)
    finally:
        ran.used = reap(process, stop.memory)
        ran.code = process.returncode
        if ran.code and job.around is not None and job.around.container:
            end_container(job.around, job.home, job.attempt)
        ran.seconds = time.perf_counter() - ran.begin
        ran.timed_out = not in_time
        if ran.code and signal_of(ran.code) == signal.SIGKILL:
            ran.oom_kills = oom_kills() - before
        if fence is not None:
            ran.used = fence.measure(ran.used)
            ran.killed = fence.has_killed
            ran.refused = fence.explain(ran.used)


@cache
def usual_shell() -> tuple[str, str]:
    """The shell of commands that choose none, and what makes it stop at the first error.

    Not by options, which would hold for what BASH_ENV names, too.
    """
    bash = shutil.which("bash")
    return ("/bin/sh", "set -eu; ") if bash is None else (bash, "set -euo pipefail; ")


def find_shell(shell: str, data: str) -> list[str]:
    """The words that a command is given to, with a shell that is there; else an AttemptError."""
    words = shell_words(shell)
    program = os.path.join(data, words[0]) if "/" in words[0] else words[0]
    found = shutil.which(program)
    if found is None:
        raise AttemptError(f"its shell {words[0]!r} is not on this machine")
    return [found, *words[1:]]


def _arguments(job: CommandJob, first: str = "") -> list[str]:
    if job.around is not None and job.around.is_wrapped:
        words = wrapped(
            job.around, words_inside(job.shell, job.command, job.dir), data=job.dir,
            place=job.scratch, variables=_named(job), mark=(job.home, job.attempt),
        )  # fmt: skip
        return ["/bin/sh", "-c", first + _NO_TERMINAL + 'exec "$@"', "sh", *words]
    if job.shell:
        words = find_shell(job.shell, job.dir)
        return ["/bin/sh", "-c", first + _NO_TERMINAL + 'exec "$@"', "sh", *words, job.command]
    program, strict = usual_shell()
    return [program, "-c", strict + first + _NO_TERMINAL + job.command]


def _named(job: CommandJob) -> list[str]:
    """The variables that a command must have wherever it runs."""
    own = marks(job.dir, job.home, job.task, job.attempt, job.progress)
    return [*own, *(name for name, value in job.own_variables.items() if value is not None)]


def unlisted(job: CommandJob) -> list[str]:
    """The files of the data directory that a command names, but that are not among its inputs."""
    listed = {*job.inputs, *job.outputs}
    many = list(filter(is_many, listed))
    known = listed | job.redirected  # what is only written is no input
    named = (name for name in there(job.text, job.dir, job.ignores) if name not in known)
    return [
        name
        for name in named
        if os.path.isfile(os.path.join(job.dir, name))
        and not any(covers(other, name) for other in many)
    ]


@dataclass
class _Published:
    """What an attempt has brought to the data directory."""

    sizes: dict[str, int] = field(default_factory=dict)
    contents: Mapping[str, Entry] = field(default_factory=dict)
    warning: str = ""
    undeclared: Mapping[str, Any] | None = None


def _publish(
    job: CommandJob, ran: _Ran, scratch: Scratch, workspace: Workspace, published: _Published
) -> None:
    def note(matched: Mapping[str, list[str]]) -> None:
        """The store has a line of it before anybody sees it: what is on disk is known as ours."""
        if job.making is None:
            return
        run = os.path.basename(job.home)
        told = made(
            job.making, data=job.dir, scratch=job.scratch, outputs=job.outputs, task=job.task,
            run=run, attempt=job.attempt, seconds=ran.seconds, matched=matched,
        )  # fmt: skip
        append(job.store, run, told.line)
        published.contents, published.warning = told.contents, told.warning

    former = () if job.making is None else job.making.former
    publication = Publication(scratch)
    outputs = publication.publish(job.outputs, note, job.protected, former)
    published.undeclared = publication.undeclared
    if job.making is None:  # else the store's line says it
        line = done_line(job.task, job.attempt, ran.seconds, outputs)
        with suppress(OSError):  # without the note the attempt is only repeated
            workspace.note(line)
    published.sizes = {name: size for name, (size, _) in outputs.items()}


def _keep(job: CommandJob, problem: str, environment: Mapping[bytes, bytes] | None) -> str | None:
    """Keep the directory; its script does what the attempt did, but is no process of the run."""
    about = f"attempt {job.attempt}: {' '.join(problem.split())}"
    return keep(job.scratch, job.keep, script_of(job, about, environment))


def script_of(
    job: CommandJob, about: str, environment: Mapping[bytes, bytes] | None = None
) -> Script:
    """The command as a script that does what an attempt does."""
    given = own_environment() if environment is None else environment
    known = {name: os.fsdecode(given[k]) for name in VARIABLES if (k := name.encode()) in given}
    variables = known | marks(job.dir, "", job.task, job.attempt, os.devnull)
    variables |= {name: v for name, v in job.own_variables.items() if v is not None}
    del variables[OF_RUN]
    program, strict = usual_shell()
    lines = [strict.rstrip("; "), job.command]
    if job.around is not None and job.around.is_wrapped:
        program = "/bin/sh"
        variables |= more_variables(job.around)
        names = [name for name in _named(job) if name != OF_RUN]
        words = words_inside(job.shell, job.command, job.dir)
        lines = [f"exec {wrapped_script(job.around, words, job.dir, names)}"]
    elif job.shell:
        program = "/bin/sh"
        lines = [f"exec {' '.join(map(shlex.quote, [*shell_words(job.shell), job.command]))}"]
    return Script(f"#!{program}\n# task {job.task!r}, {about}", lines, variables)


def _failed(
    job: CommandJob, ran: _Ran, problem: str, stop: Stop, kept: str | None
) -> CommandOutcome:
    tail, log = tail_of(job.log)
    exited = ran.code is not None and ran.code >= 0
    cause = ran.cause
    if not cause:
        exit_cause = cause_of_exit(ran.code or 0, tail, ran.oom_kills)
        if ran.refused and ran.code and (ran.killed or is_refused(tail)):
            exit_cause = OUT_OF_MEMORY
        cause = TIME_OUT if ran.timed_out else exit_cause
    if cause == OUT_OF_MEMORY:
        said = problem.replace(f" ({PERHAPS})", "")
        problem = ran.refused or f"{said}: out of memory"
    return CommandOutcome(
        seconds=ran.seconds,
        exit=ran.code if exited else None,
        signal=None if exited or ran.code is None else -ran.code,
        timed_out=ran.timed_out,
        stopped=stop.asked,
        problem=problem,
        tail=tail,
        log=log,
        kept=kept,
        cause=cause,
        used=ran.used,
        shortage=ran.shortage,
    )


def own_environment() -> dict[bytes, bytes]:
    """The environment of this process, in the form in which it is passed on fastest."""
    return dict(os.environb)


def marks(data: str, home: str, task: str, attempt: int, progress: str) -> dict[str, str]:
    """What the environment of an attempt's processes says of it."""
    return {
        "FOREPLAN_DIR": data,
        "FOREPLAN_TASK": task,
        OF_ATTEMPT: str(attempt),
        OF_RUN: home,
        VARIABLE: progress,
    }


def _problem(job: CommandJob, ran: _Ran, stop: Stop) -> str | None:
    code = ran.code or 0
    if stop.asked:
        return "it was stopped"
    if ran.timed_out:
        return f"it took longer than its time-out of {duration(job.timeout or 0.0)}"
    if code < 0:
        return f"it was {killed_by(-code)}"
    if code > 0:
        # a shell passes on the signal that killed its last command
        number = signal_of(code)
        hint = _HINTS.get(code) or (killed_by(number) if number else "")
        hint = hint or ("no space left on device" if _is_full(job.dir) else "")
        return f"it exited with code {code}" + (f" ({hint})" if hint else "")
    return None


def _is_full(place: str) -> bool:
    """Whether a command may have failed without being able to say why: its log is there, too."""
    try:
        return os.statvfs(place).f_bavail == 0
    except OSError:
        return False


def killed_by(number: int) -> str:
    """A signal that killed, in words."""
    hint = _SIGNAL_HINTS.get(number)
    name = signal.Signals(number).name if is_signal(number) else f"signal {number}"
    return f"killed by {name}" + (f" ({hint})" if hint else "")


def explain(error: OSError | ValueError) -> str:
    """What the system refused, in a line."""
    if isinstance(error, OSError):
        place = f" {os.fsdecode(error.filename)!r}" if error.filename else ""
        return f"the system refused{place}: {error.strerror or error}"
    return f"it cannot be run: {error}"
