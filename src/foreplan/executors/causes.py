"""Why an attempt has failed: what can be told for sure, and what only perhaps."""

from __future__ import annotations

import re
import signal

from foreplan.model.causes import EXIT, KILLED, OUT_OF_MEMORY

_BY_SHELL = 128  # a shell that passes on the signal of its last command adds this to its number
# the last words of programs whose memory was not enough; a traceback or a report may come before
_LAST_WORDS = re.compile(
    r"^(\w+\.)*_?(Array)?MemoryError\b"  # Python, NumPy
    r"|^Exception in thread .*java\.lang\.OutOfMemoryError\b|^java\.lang\.OutOfMemoryError\b"
    r"|^Error: cannot allocate vector of size\b"  # R
)
_BAD_ALLOC = re.compile(r"^terminate called after throwing an instance of 'std::bad_alloc'", re.M)


def signal_of(code: int) -> int:
    """The signal that has killed a command, or the last one of its shell; 0 if none has."""
    number = -code if code < 0 else code - _BY_SHELL
    return number if is_signal(number) else 0


def is_signal(number: int) -> bool:
    """Whether there is a signal of this number."""
    return number in (s.value for s in signal.valid_signals() if isinstance(s, signal.Signals))


def cause_of_exit(code: int, tail: str, oom_kills: int) -> str:
    """The cause by an exit code or a signal, the last lines, and how many were killed meanwhile.

    Many commands may run at a time: who was not killed by SIGKILL was not killed for its memory.
    """
    number = signal_of(code)
    if number == signal.SIGKILL:
        return OUT_OF_MEMORY if oom_kills > 0 else KILLED
    if number == signal.SIGABRT and _BAD_ALLOC.search(tail):
        return OUT_OF_MEMORY
    if number:
        return KILLED
    last = tail.rstrip().rpartition("\n")[2]
    return OUT_OF_MEMORY if _LAST_WORDS.search(last) else EXIT
