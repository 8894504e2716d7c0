"""Functions that fork: a child that returns from a function ends there.

Otherwise two processes would answer for one task. Workers import this, so it imports little.
"""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections.abc import Iterator


@contextlib.contextmanager
def ending_children() -> Iterator[None]:
    """While this lasts, a child that was forked inside and leaves the block ends at its end."""
    own = os.getpid()
    try:
        yield
    except BaseException as error:
        if os.getpid() != own:
            _end_child(error)
        raise
    if os.getpid() != own:
        _end_child(None)


def _end_child(error: BaseException | None) -> None:
    """End this process as Python would, but run no handlers: they belong to its parent."""
    code = 0 if error is None else 1
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    elif error is not None:
        with contextlib.suppress(Exception):
            traceback.print_exception(error)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # closed, or replaced by something odd
            stream.flush()
    os._exit(code & 0xFF)
