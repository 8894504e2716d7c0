"""One attempt at a shell command: in a directory of its own, its outputs published whole.

Usable wherever the data directory can be reached, so on a Dask worker too.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache

from weft.executors.desk import Desk
from weft.executors.gate import WAIT, Gate
from weft.executors.logs import opened_logs, tail_of
from weft.executors.processes import GRACE, OF_ATTEMPT, OF_RUN, Stop, end_group, wait_exit
from weft.executors.progress import VARIABLE
from weft.executors.scratch import AttemptError, Scratch, done_line, note_done, there
from weft.model.shell import shell_words, text_of
from weft.quantities import duration

# whoever asks the terminal for a password gets an error; a group in the background would stop
_NO_TERMINAL = "trap '' TTIN TTOU; "
_HINTS = {126: "not executable?", 127: "command not found?"}
_SIGNAL_HINTS = {
    signal.SIGKILL.value: "perhaps out of memory",
    signal.SIGPIPE.value: "its reader ended first, as `head` does",
}


@dataclass(frozen=True)
class CommandJob:
    """All that an attempt needs to know, as plain data. Paths are absolute."""

    task: str
    command: str
    dir: str  # the data directory
    scratch: str  # the attempt's own directory; what is done is noted in this path + ".done"
    log: str  # stdout and stderr are kept as this path + ".out" and ".err"
    inputs: tuple[str, ...] = ()  # names of files, relative to the data directory
    outputs: tuple[str, ...] = ()
    attempt: int = 0
    home: str = ""  # the run's home, the mark of its processes
    timeout: float | None = None
    keep_scratch: bool = False  # of a failed attempt, as it is
    anywhere: bool = False  # links may lead, and absolute paths go, out of the data directory
    progress: str = ""  # the file that it may write its progress to
    shell: str = ""  # the words that the command is given to; none: `usual_shell`
    ignores: tuple[str, ...] = ()  # names that patterns of the command leave out

    @property
    def text(self) -> str:
        """What of it may name files."""
        return text_of(self.command, self.shell)


@dataclass(frozen=True)
class CommandOutcome:
    """How an attempt ended; it has succeeded if there is no problem."""

    seconds: float
    exit: int | None = None
    signal: int | None = None
    timed_out: bool = False
    stopped: bool = False  # from outside
    sizes: Mapping[str, int] = field(default_factory=dict)  # the outputs', in bytes
    problem: str | None = None
    tail: str = ""  # the end of what it has printed
    log: str | None = None  # the file with all of it


def run_command(
    job: CommandJob,
    stop: Stop | None = None,
    environment: Mapping[bytes, bytes] | None = None,
    desk: Desk | None = None,
    gate: Gate | None = None,
) -> CommandOutcome:
    """Run a command to its end; whatever happens is told by the outcome.

    The outputs of an attempt that is asked to stop are not published. The environment is this
    process's if none is given. At a desk the scratch directory is the desk's, and only logs that
    hold something are kept. At a gate the shell waits, and the time of the command begins when it
    is open.
    """
    stop = stop or Stop()
    scratch = Scratch(job.scratch, job.dir, job.anywhere)
    ran = _Ran(time.perf_counter())
    sizes: dict[str, int] = {}
    try:
        if desk is None or not desk.take():
            scratch.make()
        scratch.fill(job.inputs, job.outputs, job.text, job.ignores)
        _execute(job, ran, stop, environment, desk, gate)
        problem = _problem(job, ran, stop)
        if problem is None:
            sizes = _publish(job, ran, scratch, desk)
    except AttemptError as error:
        problem = str(error)
    except (OSError, ValueError) as error:
        problem = explain(error)
    if desk is not None:
        desk.keep_logs(job.log)
    if problem is None:
        scratch.clear() if desk is None else desk.leave(scratch)
        return CommandOutcome(ran.seconds, exit=0, sizes=sizes)
    if not job.keep_scratch:
        scratch.clear()
    return _failed(job, ran, problem, stop)


@dataclass
class _Ran:
    """What is known of the process so far."""

    begin: float
    seconds: float = 0.0
    code: int | None = None
    timed_out: bool = False


def _execute(
    job: CommandJob,
    ran: _Ran,
    stop: Stop,
    environment: Mapping[bytes, bytes] | None,
    desk: Desk | None,
    gate: Gate | None,
) -> None:
    given = own_environment() if environment is None else environment
    variables = {**given, **marks(job.dir, job.home, job.task, job.attempt)}
    variables[VARIABLE.encode()] = os.fsencode(job.progress)
    ran.begin = time.perf_counter()
    if desk is not None:
        process = _begin(job, variables, desk.streams(), gate)
    else:
        with opened_logs(job.log) as (out, err):
            process = _begin(job, variables, (subprocess.DEVNULL, out, err), gate)
    in_time = False
    try:
        with stop.over(process.pid):
            try:
                in_time = wait_exit(process, job.timeout)
            finally:
                # also when the shell has exited: whoever of its group lingers could still write
                end_group(process, 0.0 if in_time else GRACE)
    finally:
        ran.code = process.wait()
        begin = ran.begin if gate is None else max(ran.begin, gate.opened or ran.begin)
        ran.seconds = time.perf_counter() - begin
        ran.timed_out = not in_time


def _begin(
    job: CommandJob,
    variables: Mapping[bytes, bytes],
    streams: tuple[int, int, int],
    gate: Gate | None,
) -> subprocess.Popen[bytes]:
    stdin, stdout, stderr = streams
    return subprocess.Popen(
        _arguments(job, "" if gate is None else WAIT),
        stdin=stdin if gate is None else gate.build(),
        stdout=stdout,
        stderr=stderr,
        cwd=job.scratch,
        env=variables,
        # a session of its own would do as well, but can take as long to make as a short command
        process_group=0,
    )


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


def _arguments(job: CommandJob, first: str) -> list[str]:
    if job.shell:
        words = find_shell(job.shell, job.dir)
        return ["/bin/sh", "-c", first + _NO_TERMINAL + 'exec "$@"', "sh", *words, job.command]
    program, strict = usual_shell()
    return [program, "-c", first + strict + _NO_TERMINAL + job.command]


def unlisted(job: CommandJob) -> list[str]:
    """The files of the data directory that a command names, but that are not among its inputs."""
    listed = {*job.inputs, *job.outputs}
    named = (name for name in there(job.text, job.dir, job.ignores) if name not in listed)
    return [name for name in named if os.path.isfile(os.path.join(job.dir, name))]


def _publish(job: CommandJob, ran: _Ran, scratch: Scratch, desk: Desk | None) -> dict[str, int]:
    outputs = scratch.publish(job.outputs)
    line = done_line(job.task, job.attempt, ran.seconds, outputs)
    with suppress(OSError):  # without the note the attempt is only repeated
        if desk is None:
            note_done(job.scratch + ".done", line)
        else:
            desk.note(line)
    return {name: size for name, (size, _) in outputs.items()}


def _failed(job: CommandJob, ran: _Ran, problem: str, stop: Stop) -> CommandOutcome:
    tail, log = tail_of(job.log)
    exited = ran.code is not None and ran.code >= 0
    return CommandOutcome(
        seconds=ran.seconds,
        exit=ran.code if exited else None,
        signal=None if exited or ran.code is None else -ran.code,
        timed_out=ran.timed_out,
        stopped=stop.asked,
        problem=problem,
        tail=tail,
        log=log,
    )


def own_environment() -> dict[bytes, bytes]:
    """The environment of this process, in the form in which it is passed on fastest."""
    return {os.fsencode(name): os.fsencode(value) for name, value in os.environ.items()}


def marks(data: str, home: str, task: str, attempt: int) -> dict[bytes, bytes]:
    """What the environment of an attempt's processes says of it."""
    return {
        b"WEFT_DIR": os.fsencode(data),
        b"WEFT_TASK": os.fsencode(task),
        OF_ATTEMPT.encode(): b"%d" % attempt,
        OF_RUN.encode(): os.fsencode(home),
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
        hint = _HINTS.get(code) or (killed_by(code - 128) if _is_signal(code - 128) else "")
        hint = hint or ("no space left on device" if _is_full(job.dir) else "")
        return f"it exited with code {code}" + (f" ({hint})" if hint else "")
    return None


def _is_full(place: str) -> bool:
    """Whether a command may have failed without being able to say why: its log is there, too."""
    try:
        return os.statvfs(place).f_bavail == 0
    except OSError:
        return False


def _is_signal(number: int) -> bool:
    return number in (s.value for s in signal.valid_signals() if isinstance(s, signal.Signals))


def killed_by(number: int) -> str:
    """A signal that killed, in words."""
    hint = _SIGNAL_HINTS.get(number)
    name = signal.Signals(number).name if _is_signal(number) else f"signal {number}"
    return f"killed by {name}" + (f" ({hint})" if hint else "")


def explain(error: OSError | ValueError) -> str:
    """What the system refused, in a line."""
    if isinstance(error, OSError):
        place = f" {os.fsdecode(error.filename)!r}" if error.filename else ""
        return f"the system refused{place}: {error.strerror or error}"
    return f"it cannot be run: {error}"
