"""Runs on real machines: journalled, resumable, and learning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from foreplan.lazy import lazily
from foreplan.runs.options import Options, flags

if TYPE_CHECKING:
    from foreplan.runs.home import RunHome
    from foreplan.runs.opening import find_rest, open_run, reopen_run
    from foreplan.runs.outcome import (
        Failure,
        Outcome,
        RunFailedError,
        RunInterrupted,
        nothing_to_do,
    )
    from foreplan.runs.rest import Rest
    from foreplan.runs.session import Listener, Session
    from foreplan.runs.summary import kept_params

# imported when first used: the command line reads the options before it does anything
__getattr__ = lazily(
    __name__,
    home="RunHome",
    opening="find_rest open_run reopen_run",
    outcome="Failure Outcome RunFailedError RunInterrupted nothing_to_do",
    rest="Rest",
    session="Listener Session",
    summary="kept_params",
)

__all__ = [
    "Failure",
    "Listener",
    "Options",
    "Outcome",
    "Rest",
    "RunFailedError",
    "RunHome",
    "RunInterrupted",
    "Session",
    "find_rest",
    "flags",
    "kept_params",
    "nothing_to_do",
    "open_run",
    "reopen_run",
]
