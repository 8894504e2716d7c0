"""The decision core, sans I/O: events in, commands out."""

from weft.coordinator.check_board import BrokenStateError, check_board
from weft.coordinator.coordinator import Coordinator
from weft.coordinator.legality import IllegalEventError
from weft.coordinator.purse import Purse

__all__ = ["BrokenStateError", "Coordinator", "IllegalEventError", "Purse", "check_board"]
