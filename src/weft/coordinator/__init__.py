"""The decision core, sans I/O: events in, commands out."""

from weft.coordinator.coordinator import Coordinator, IllegalEventError

__all__ = ["Coordinator", "IllegalEventError"]
