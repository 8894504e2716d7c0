"""A program `foreplan` that costs a fork: a process that has loaded it serves each caller.

Unlike cli/forked.py it is called by shells: many at once, in the background, and killed.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

from cli.commands import MAIN
from cli.forked import become, preload

_SERVE = "import sys; sys.path.insert(0, {!r}); from docs.served import serve; serve({!r})"


@contextmanager
def served(folder: Path) -> Iterator[Path]:
    """A folder with the program; it works as long as this lasts."""
    place, program = folder / "socket", folder / "bin" / "foreplan"
    program.parent.mkdir(parents=True)
    client = Path(__file__).with_name("client.py")
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -IS {client} {place} "$@"\n')
    program.chmod(0o755)
    code = _SERVE.format(str(Path(__file__).parents[1]), str(place))
    server = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.DEVNULL)
    try:
        while not place.exists():
            assert server.poll() is None, "the server has ended"
            time.sleep(0.02)
        yield program.parent
    finally:
        server.terminate()
        server.wait()


def serve(place: str) -> None:
    """Fork for everyone who connects."""
    preload()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{place}.new")
        listener.listen()
        os.rename(f"{place}.new", place)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        while True:
            client, _ = listener.accept()
            if not os.fork():
                listener.close()
                _attend(client)
            client.close()


def _attend(client: socket.socket) -> NoReturn:
    """One command: it is killed with who asked for it, who hears how it ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    head, descriptors, _, _ = socket.recv_fds(client, 8, 3)
    length, request = int.from_bytes(head, "little"), b""
    while len(request) < length:
        request += client.recv(length - len(request))
    child = os.fork()
    if not child:
        client.close()
        become(MAIN, request, dict(enumerate(descriptors)))
    for descriptor in descriptors:
        os.close(descriptor)

    def watch() -> None:
        with suppress(OSError):
            client.recv(1)  # until who asked is gone
            os.kill(child, signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        client.sendall(str(code if code >= 0 else 128 - code).encode())
    finally:
        os._exit(0)
