"""A process that calls Python functions, one after another, as a socket on its stdin asks it to.

It is started as a script and imports only what it needs: the functions bring the rest.
A message is a length and JSON, a request has a second part with the pickled call.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import socket
import struct
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

if __name__ == "__main__":  # foreplan may be where only the program's own path leads to
    sys.path.append(
        os.path.dirname(__file__).removesuffix(os.path.join("foreplan", "executors", "local"))
    )

from foreplan.executors import packing
from foreplan.executors.calls import await_result, load_call
from foreplan.executors.forking import ending_children

_LENGTH = struct.Struct("!Q")
_TRACE_LINES, _LONGEST_LINE = 20, 500
_PR_SET_PDEATHSIG, _SIGKILL = 1, 9


def send(channel: socket.socket, message: Mapping[str, Any], payload: bytes | None = None) -> None:
    """Send a message, and with a request what is pickled."""
    text = json.dumps(message).encode()
    channel.sendall(_LENGTH.pack(len(text)) + text)
    if payload is not None:
        channel.sendall(_LENGTH.pack(len(payload)))
        channel.sendall(payload)


def receive(channel: socket.socket) -> dict[str, Any] | None:
    """The next message; None if the other side is gone."""
    text = receive_part(channel)
    if text is None:
        return None
    message: dict[str, Any] = json.loads(text)
    return message


def receive_part(channel: socket.socket) -> bytearray | None:
    """The next length and what follows; None if the other side is gone."""
    head = _exactly(channel, _LENGTH.size)
    return None if head is None else _exactly(channel, _LENGTH.unpack(head)[0])


def _exactly(channel: socket.socket, size: int) -> bytearray | None:
    whole = bytearray(size)
    view, at = memoryview(whole), 0
    while at < size:
        try:
            count = channel.recv_into(view[at:])
        except ConnectionError:
            return None
        if not count:
            return None
        at += count
    return whole


def serve(channel: socket.socket) -> None:
    """Answer the requests of one run after another until the other side is gone."""
    hello = receive(channel)
    if hello is None:
        return
    _die_with(hello["parent"])
    worker = _Worker(channel)
    while hello is not None:
        worker.begin_run(hello)
        worker.serve_run()
        hello = receive(channel)


class _Worker:
    """This process, which calls functions for one run after another."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel, self._measure = channel, _meter()
        self._mark, self._modules = _Mark(), _Modules()
        self._environment = dict(os.environ)
        self._runs = 0
        self._dir = ""
        self._is_changed = False  # files of its modules have changed since it imported them
        self._fitting = set[str]()  # tokens of programs that are here what this run has
        self._ended: float = 0

    def begin_run(self, hello: Mapping[str, Any]) -> None:
        """Be as a new process would be, as far as that can be: tasks of other runs ran here."""
        self._runs += 1
        self._dir = hello["dir"]
        self._fitting.clear()
        self._mark.set(hello["home"])
        self._ended = _count_ended()
        sys.path[:] = hello["path"]
        if self._runs > 1:
            self._is_changed = not self._modules.are_unchanged()
            _reset_environment(self._environment)
            importlib.invalidate_caches()
            if (bindings := sys.modules.get("foreplan.store.bindings")) is not None:
                bindings.HERE.begin_run()
            try:
                os.chdir(self._dir)
            except OSError:
                self._is_changed = True

    def serve_run(self) -> None:
        """Answer requests until the run is over, or the other side is gone."""
        while (request := receive(self._channel)) is not None:
            if "rest" in request:
                self._mark.set("")
                is_alone = _is_alone()
                is_quiet = is_alone and self._ended == _count_ended()
                send(self._channel, {"rests": is_alone, "quiet": is_quiet})
                return
            call = receive_part(self._channel)
            if call is None:
                return
            if self._runs > 1 and not self._can_serve(request["program"]):
                send(self._channel, {"attempt": request["attempt"], "unfit": True})
                return
            send(self._channel, self._call(request, call))

    def _can_serve(self, program: dict[str, Any] | None) -> bool:
        """Return whether tasks of other runs have left the program as a new process would have it.

        What tasks of this run change is put right before each call.
        """
        token = "" if program is None else program["token"]
        if self._is_changed or (token not in self._fitting and not _fits(program)):
            return False
        self._fitting.add(token)
        return True

    def _call(self, request: Mapping[str, Any], call: bytearray) -> dict[str, Any]:
        begin = time.time_ns()
        _forget_classes()
        with _print_to(request["log"]):
            meter = self._measure()
            agree = partial(_agree, self._channel, request["program"])
            with ending_children():  # what is pickled may fork, too
                reply = answer(request, call, self._dir, agree)
            reply["attempt"] = request["attempt"]
            reply["used"] = {} if meter is None else meter.read()
        self._modules.note(begin)
        os.chdir(self._dir)
        return reply


class _Modules:
    """The files of the modules that this process has imported, as they were then."""

    def __init__(self) -> None:
        self._files: dict[str, tuple[int, ...] | None] = {}
        self._count = 0
        self.note(time.time_ns())

    def note(self, begin: int) -> None:
        """Note the files of new modules, which were imported since a moment."""
        if len(sys.modules) == self._count:
            return
        self._count = len(sys.modules)
        for module in list(sys.modules.values()):
            file = getattr(module, "__file__", None)
            if isinstance(file, str) and file not in self._files:
                status = _status(file)
                # one that was written meanwhile may have been imported before or after that
                self._files[file] = None if status and status[0] >= begin else status

    def are_unchanged(self) -> bool:
        """Return whether all files are as they were."""
        return all(status and _status(file) == status for file, status in self._files.items())


def _status(file: str) -> tuple[int, ...] | None:
    try:
        status = os.stat(file)
    except OSError:  # in an archive, or removed
        return (0,)
    return status.st_mtime_ns, status.st_size, status.st_ino


class _Mark:
    """The run that this process is of, as others see it in the first environment of a process.

    That is never changed by Python or the C library, so it is written over: children that tasks
    have forked show it, too.
    """

    _variable = "FOREPLAN_RUN"

    def __init__(self) -> None:
        self._size = len(os.environb.get(self._variable.encode(), b""))
        self._place = None
        with contextlib.suppress(Exception):  # not on every system
            import ctypes

            find = ctypes.CDLL(None).getenv
            find.restype = ctypes.c_void_p
            self._place = find(self._variable.encode())

    def set(self, home: str) -> None:
        """Be of the run with this home; of none, if that is empty."""
        content = os.fsencode(home)
        if self._place and len(content) <= self._size:
            import ctypes

            ctypes.memmove(self._place, content.ljust(self._size, b"\0"), self._size)


def _reset_environment(wanted: Mapping[str, str]) -> None:
    for name in os.environ.keys() - wanted.keys():
        del os.environ[name]
    for name, value in wanted.items():
        if os.environ.get(name) != value:
            os.environ[name] = value


def _is_alone() -> bool:
    """Return whether tasks have left neither threads nor children in this process."""
    threads = sys.modules.get("threading")
    if threads is not None and threads.active_count() > 1:
        return False
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return True
    except AttributeError:  # not on every system
        return False
    return False


def _count_ended() -> float:
    """A number that grows with every child of this process that ends; NaN if nobody counts."""
    with contextlib.suppress(Exception):  # not on every system
        import resource
        import signal

        if signal.getsignal(signal.SIGCHLD) == signal.SIG_DFL:  # else the system forgets them
            return resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt
    return float("nan")


def _forget_classes() -> None:
    """Have classes of a script that come with a call be made anew.

    cloudpickle takes the class of an earlier call, with all attributes that tasks have set.
    """
    if (pickling := sys.modules.get("cloudpickle.cloudpickle")) is not None:
        for name in ("_DYNAMIC_CLASS_TRACKER_BY_ID", "_DYNAMIC_CLASS_TRACKER_BY_CLASS"):
            getattr(pickling, name, {}).clear()


def _fits(program: dict[str, Any] | None) -> bool:
    """Return whether the program is here what a call counts on, after tasks of other runs."""
    if program is None:
        return True
    try:
        from foreplan.store.bindings import HERE

        return not HERE.compare(HERE.bindings(program["token"], program["digests"]))
    except BaseException:  # of a module that is imported, too: the next worker reports it
        return False


def _meter() -> Callable[[], Any]:
    """What measures a call: foreplan's own, as far as it can be had here."""
    try:
        from foreplan.executors.usage import UsageMeter
    except Exception:  # whatever the user's path leads to
        return lambda: None
    return UsageMeter


def _agree(channel: socket.socket, program: dict[str, Any] | None, is_loaded: bool) -> str:
    """Have the program be here what a call counts on; return what differs all the same."""
    if program is None:
        return ""
    from foreplan.executors.local.agreement import agree

    return agree(channel, program, is_loaded)


def answer(
    request: Mapping[str, Any],
    call: bytes | bytearray,
    folder: str,
    agree: Callable[[bool], str],
) -> dict[str, Any]:
    """Make a call and return how it ended.

    `agree` makes sure that the program is here what the call counts on, before and after the call
    is loaded, and returns what differs all the same.
    """
    for name, value in request["environment"].items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    begin = time.perf_counter()
    doing = "its arguments cannot be unpickled"
    try:
        with _held_to(request["data_limit"]):
            results = {int(task): path for task, path in request["results"].items()}
            names = {int(task): name for task, name in request["names"].items()}

            def load_result(task: int) -> Any:
                return packing.load(results[task])

            other = agree(False)
            function, args, kwargs = load_call(call, load_result, names, folder)
            other = other or agree(True)
            doing, begin = "", time.perf_counter()
            with ending_children():
                result = await_result(function(*args, **kwargs))
            seconds = time.perf_counter() - begin
            doing = "its result cannot be kept"
            same = (*results.values(), *request["former"])
            size = packing.write(request["result"], result, same)
            content = _content(result) if request["is_kept"] else None
    except BaseException as error:  # whatever it is, it must be told, not end the process
        if isinstance(error, Exception) and request["error"]:
            with contextlib.suppress(Exception):  # the reason is reported in words anyway
                packing.write(request["error"], error)
        seconds = time.perf_counter() - begin
        return {"seconds": seconds, **_tell_error(error, doing)}
    return {"seconds": seconds, "size": size, "content": content, "other": other}


def _content(result: Any) -> str | None:
    try:
        from foreplan.store.programs import content_of
    except ImportError:  # the function has changed where modules are found
        return None
    return content_of(result)


@contextlib.contextmanager
def _held_to(memory: int | None) -> Iterator[None]:
    """While this lasts, this process may allocate so many bytes for itself; None: any."""
    if memory is None:
        yield
        return
    import resource

    before, most = resource.getrlimit(resource.RLIMIT_DATA)
    unlimited = most == resource.RLIM_INFINITY
    resource.setrlimit(resource.RLIMIT_DATA, (memory if unlimited else min(memory, most), most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (before, most))


def _tell_error(error: BaseException, doing: str) -> dict[str, str]:
    inner = error.__traceback__.tb_next if error.__traceback__ else None  # below this file
    lines = "".join(traceback.format_exception(type(error), error, inner)).splitlines()
    last = traceback.format_exception_only(type(error), error)[-1].strip()[:_LONGEST_LINE]
    name = type(error).__name__
    if name in ("NoPartError", "ProgramError"):  # it says all itself
        doing, last = "", str(error)
    if __name__ == "__main__":  # a process of this file, whose stderr is the attempt's log
        print("\n".join(lines), file=sys.stderr)
    cause = "program" if name == "ProgramError" else "exit"
    return {
        "error": f"{doing}: {last}" if doing else last,
        "traceback": "" if name == "ProgramError" else "\n".join(lines[-_TRACE_LINES:]),
        "cause": "out-of-memory" if isinstance(error, MemoryError) else cause,
    }


@contextlib.contextmanager
def _print_to(log: str) -> Iterator[None]:
    mode = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND
    for number, end in ((1, ".out"), (2, ".err")):
        _put(os.open(log + end, mode, 0o600), number)
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):  # closed, or replaced by something odd
                stream.flush()
        for number in (1, 2):
            _put(os.open(os.devnull, os.O_WRONLY), number)


def _put(fd: int, number: int) -> None:
    os.dup2(fd, number)
    os.close(fd)


def _die_with(parent: int) -> None:
    """Die when the parent does, also in the middle of a call (where the system can do that)."""
    with contextlib.suppress(Exception):
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def main() -> None:
    """Serve the socket that is this process's stdin."""
    channel = socket.socket(fileno=os.dup(0))
    _put(os.open(os.devnull, os.O_RDONLY), 0)
    with channel:
        serve(channel)


if __name__ == "__main__":
    main()
