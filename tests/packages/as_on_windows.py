"""The command line without what Windows lacks: `python as_on_windows.py < commands > outcomes`.

Read are the commands as JSON, a list of arguments each; written are the exit code, the output and
the errors of each, as JSON.
"""

import asyncio
import concurrent.futures.process
import contextlib
import ctypes
import io
import json
import multiprocessing
import os
import select
import signal
import socket
import sqlite3
import subprocess
import sys
import traceback

import numpy as np  # it asks `os` for more when it is imported than Windows has

# what uses POSIX here is imported before
READY = (asyncio, concurrent.futures.process, ctypes, np, sqlite3, subprocess)
MODULES = (
    "_curses crypt curses fcntl grp nis ossaudiodev posix pty pwd readline resource spwd syslog "
    "termios tty"
)
OF_OS = """
    chown chroot ctermid fchdir fchmod fchown fdatasync fork forkpty fpathconf fstatvfs get_blocking
    getegid geteuid getgid getgrouplist getgroups getloadavg getpgid getpgrp getpriority getresgid
    getresuid getsid getuid initgroups killpg lchown lockf mkfifo mknod nice openpty pathconf
    pidfd_open pipe2 posix_fadvise posix_fallocate posix_spawn posix_spawnp pread preadv pwrite
    pwritev readv register_at_fork sched_getaffinity sched_setaffinity sched_yield sendfile
    set_blocking setegid seteuid setgid setgroups setpgid setpgrp setpriority setsid setuid statvfs
    sync sysconf tcgetpgrp tcsetpgrp ttyname uname wait wait3 wait4 waitid writev
    O_CLOEXEC O_DIRECTORY O_DSYNC O_NDELAY O_NOCTTY O_NOFOLLOW O_NONBLOCK O_SYNC
    P_ALL P_PGID P_PID WCONTINUED WEXITED WNOHANG WNOWAIT WUNTRACED
"""
SIGNALS = {"SIGABRT", "SIGFPE", "SIGILL", "SIGINT", "SIGSEGV", "SIGTERM", "SIG_DFL", "SIG_IGN"}
OF_SIGNAL = "alarm getitimer pause pidfd_send_signal pthread_kill pthread_sigmask setitimer sigwait"


def hide() -> None:
    """Take away what Windows lacks."""
    for name in MODULES.split():
        sys.modules[name] = None  # type: ignore[assignment]
    _take(os, OF_OS.split())
    _take(select, ["poll", "epoll", "POLLIN"])
    _take(socket, ["AF_UNIX"])
    _take(signal, OF_SIGNAL.split())
    _take(signal, [name for name in vars(signal) if name.startswith("SIG") and name not in SIGNALS])
    multiprocessing.get_all_start_methods = lambda: ["spawn"]


def _take(module: object, names: list[str]) -> None:
    for name in names:
        if hasattr(module, name):
            delattr(module, name)


def outcome(arguments: list[str]) -> tuple[int, str, str]:
    """The exit code of foreplan with these arguments, what it wrote, and its errors."""
    from foreplan.cli import main

    sys.argv = ["foreplan", *arguments]
    code: object = 0
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        try:
            main()
        except SystemExit as exit:
            code = exit.code or 0
        except Exception:
            code = 1
            traceback.print_exc()
    assert isinstance(code, int)
    return code, out.getvalue(), errors.getvalue()


if __name__ == "__main__":
    hide()
    print(json.dumps([outcome(arguments) for arguments in json.load(sys.stdin)]))
