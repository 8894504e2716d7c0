"""The command in a process of its own, for the price of a fork.

A process that has imported foreplan waits, and forks for each command: nothing is shared with the
tests, nor between commands. Arguments, directory, environment and streams are the command's own.
It ends as any program in Python does, but for freeing its memory bit by bit, which would take
longer than most commands. What is settled while Python and foreplan are loaded (the seed of hashes,
plain kernels) stays so: each such environment has a process of its own that waits.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NoReturn

_SETTLED = ("PYTHON", "FOREPLAN_PLAIN", "MPL", "OMP", "OPENBLAS")  # how such variables begin
_WAIT = "import sys; sys.path.insert(0, {!r}); from cli.forked import wait; wait({!r})"
_PRELOADED = (
    "matplotlib.backends.backend_agg",
    "foreplan.api",
    "foreplan.charts",
    "foreplan.comparison",
    "foreplan.runs.opening",
    "foreplan.scheduling.planners.heft",
    "yaml",
)


def run_forked(
    main: str, arguments: list[str], cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """The program `main` with these arguments, from its start to its end."""
    return _waiting_here(main).run(arguments, cwd or Path.cwd())


def start_forked(
    main: str, arguments: list[str], cwd: Path, environment: Mapping[str, str], output: Path
) -> Forked:
    """Start the program `main` and return at once; it prints to the end of the file `output`.

    One program runs at a time: wait for its end before the next one.
    """
    descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC)
    streams = (descriptor, os.dup(descriptor))
    return _waiting_here(main).start(arguments, cwd, environment, streams)


class Forked:
    """A program that was started and may still run."""

    def __init__(self, answers: socket.SocketIO) -> None:
        self._answers = answers
        self.pid = int(answers.readline())
        self.code: int | None = None

    def poll(self) -> int | None:
        """Return the exit code, or None while the program runs."""
        if self.code is None and select.select([self._answers], [], [], 0)[0]:
            self.wait()
        return self.code

    def wait(self) -> int:
        """Wait for the end and return the exit code, negative if a signal ended the program."""
        if self.code is None:
            self.code = int(self._answers.readline())
        return self.code


class _Waiting:
    """A process that waits for commands, as the tests see it."""

    def __init__(self, main: str) -> None:
        ours, theirs = socket.socketpair()
        code = _WAIT.format(str(Path(__file__).parents[1]), main)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", code, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
        self._socket = ours
        # nothing is read ahead, so that `select` knows whether an answer is there
        self._answers = ours.makefile("rb", buffering=0)

    def run(self, arguments: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
        """One command; its streams are read until nobody has them any more."""
        out, err = os.pipe(), os.pipe()
        started = self.start(arguments, cwd, os.environ, (out[1], err[1]))
        said: list[str] = []
        with open(out[0], encoding="utf-8") as printed, open(err[0], encoding="utf-8") as messages:
            reader = threading.Thread(target=lambda: said.append(messages.read()))
            reader.start()
            text = printed.read()
            reader.join()
        return subprocess.CompletedProcess(arguments, started.wait(), text, said[0])

    def start(
        self,
        arguments: list[str],
        cwd: Path,
        environment: Mapping[str, str],
        streams: tuple[int, int],
    ) -> Forked:
        """Start one command with these descriptors for its output and errors, and close them."""
        request = json.dumps([arguments, str(cwd), dict(environment)]).encode()
        head = len(request).to_bytes(8, "little")
        socket.send_fds(self._socket, [head], streams)
        self._socket.sendall(request)
        for descriptor in streams:
            os.close(descriptor)
        return Forked(self._answers)

    def end(self) -> None:
        """Nothing is asked for any more."""
        self._answers.close()
        self._socket.close()
        self._process.wait()


_all: list[_Waiting] = []


def end_all() -> None:
    """End what waits."""
    _waiting.cache_clear()
    while _all:
        _all.pop().end()


def _waiting_here(main: str) -> _Waiting:
    settled = {k: v for k, v in os.environ.items() if k.startswith(_SETTLED)}
    return _waiting(main, tuple(sorted(settled.items())))


@cache
def _waiting(main: str, settled: tuple[tuple[str, str], ...]) -> _Waiting:
    _all.append(_Waiting(main))
    return _all[-1]


def wait(main: str) -> None:
    """Serve the socket whose number is the argument: fork, and run `main`, for each request."""
    preload()
    with socket.socket(fileno=int(sys.argv[1])) as requests:
        while True:
            head, descriptors, _, _ = socket.recv_fds(requests, 8, 2)
            if not head:
                sys.exit()  # the tests are over
            length, request = int.from_bytes(head, "little"), b""
            while len(request) < length:
                request += requests.recv(length - len(request))
            child = os.fork()
            if not child:
                break
            for descriptor in descriptors:
                os.close(descriptor)
            requests.sendall(f"{child}\n".encode())
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            requests.sendall(f"{status}\n".encode())
    become(main, request, dict(enumerate(descriptors, 1)))


def preload() -> None:
    """Import what commands import, before the first is asked for."""
    del sys.path[0]  # the tests' folder, which the command does not have
    for name in _PRELOADED:
        importlib.import_module(name)
    importlib.import_module("foreplan.cli.main").build_app()  # with the modules of all commands


def become(main: str, request: bytes, streams: dict[int, int]) -> NoReturn:
    """Turn this process, which was just forked, into the program with what it was asked for."""
    arguments, directory, environment = json.loads(request)
    for stream, descriptor in streams.items():
        os.dup2(descriptor, stream)
        os.close(descriptor)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["-c", *arguments]
    try:
        exec(main, {"__name__": "__main__"})
    except SystemExit as ended:
        if isinstance(ended.code, str):
            raise
        _leave(ended.code or 0)
    _leave(0)


def _leave(code: int) -> NoReturn:
    """What Python does at its end: wait for threads, call who wants to be called, flush."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        if not stream.closed:
            stream.flush()
    os._exit(code)
