"""Words in the details of how attempts end: why they failed, what they used, what was not kept."""

from __future__ import annotations

# Why an attempt has failed, where the machines know.
CAUSE = "cause"
OUT_OF_MEMORY, TIME_OUT, EXIT = "out-of-memory", "time-out", "exit"
KILLED = "killed"  # by a signal, and nobody knows who sent it
MISSING_OUTPUT = "missing-output"
SYSTEM = "system"  # the system refused something: a full disk, a shell that is not there
LOST = "lost"  # the machine, or the worker process of a function
EXPANSION = "expansion"  # what it has printed cannot be added to the workflow
PROGRAM = "program"  # a function's worker has another program than the one that drives the run
PROTECTED = "protected"  # an output that may not be replaced; no retry helps
# those that `retry` may name
CAUSES = (OUT_OF_MEMORY, TIME_OUT, EXIT, KILLED, MISSING_OUTPUT, SYSTEM, LOST, EXPANSION)
PERMANENT = frozenset({PROGRAM, PROTECTED})  # a task that fails for one of these is not tried again
USED = "used"  # what an attempt used: memory (bytes), cpu (seconds), read and written (bytes)
UNDECLARED = "undeclared"  # files beside its outputs, see foreplan.executors.undeclared
# In the detail of the loss of a processor: the worker that it was a part of, and whether it was to
# go. Then what it ran is not counted as lost, for it is not what ended the worker.
WORKER, EXPECTED = "worker", "expected"
