"""The decision core, sans I/O: events in, commands out."""

from weft.coordinator.coordinator import Coordinator, Evaluation, IllegalEventError

__all__ = ["Coordinator", "Evaluation", "IllegalEventError"]
