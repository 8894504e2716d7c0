"""Runs on real machines: journalled, resumable, and learning."""

from weft.live.options import Options
from weft.live.outcome import Failure, Outcome
from weft.live.session import Listener, Session
from weft.live.sittings import resume, start

__all__ = ["Failure", "Listener", "Options", "Outcome", "Session", "resume", "start"]
