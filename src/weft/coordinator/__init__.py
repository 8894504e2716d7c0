"""The decision core, sans I/O: events in, commands out."""

from weft.coordinator.check_board import BrokenStateError, check_board
from weft.coordinator.coordinator import Coordinator
from weft.coordinator.legality import IllegalEventError

__all__ = ["BrokenStateError", "Coordinator", "IllegalEventError", "check_board"]
