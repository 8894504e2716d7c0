"""What an attempt holds of its host, what its environment says of it, and what it is held to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from foreplan.executors.gpus import VISIBLE
from foreplan.executors.limits import Limit
from foreplan.model.events import StartTask
from foreplan.model.resources import MEMORY, NOTHING, kinds_and_pools
from foreplan.model.workflow import Workflow

OF_CORES, OF_MEMORY = "FOREPLAN_CORES", "FOREPLAN_MEMORY"
# by which libraries for numbers are told how many threads to use
THREADS = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS",
    "RAYON_NUM_THREADS", "JULIA_NUM_THREADS",
)  # fmt: skip

Variables = Mapping[str, str | None]  # None: it is not to be set


@dataclass(frozen=True)
class Allotment:
    """What an attempt holds, and what it is told and held to."""

    cores: int = 1
    memory: int | None = None  # bytes, as asked for or learnt; None: nobody knows
    gpus: tuple[str, ...] | None = None  # what they are called; None: nobody counts them
    counts_cores: bool = False  # some task of the workflow asks for cores
    limit: Limit | None = None

    @property
    def variables(self) -> dict[str, str | None]:
        """What its environment says of it."""
        memory = None if self.memory is None else str(self.memory)
        return {OF_CORES: str(self.cores), OF_MEMORY: memory, **self.fixed}

    @property
    def fixed(self) -> dict[str, str | None]:
        """What of that libraries look at only when a process begins to use them."""
        threads = dict.fromkeys(THREADS, str(self.cores)) if self.counts_cores else {}
        return {**threads, **({} if self.gpus is None else {VISIBLE: ",".join(self.gpus)})}


class Allotting:
    """Reads what commands say in numbers, by the names that the workflow gives to them."""

    def __init__(self, workflow: Workflow, limit: bool) -> None:
        self._workflow, self._limit = workflow, limit
        self._kinds, _ = kinds_and_pools(workflow)
        requests = [s.request for s in workflow.specs.values() if s.request is not None]
        self.asks = bool(requests)  # some task does, for whatever it is
        self.counts_cores = any(request.cores != NOTHING.cores for request in requests)
        self.counts_gpus = any(request.gpus for request in requests)

    def amounts(self, command: StartTask) -> dict[str, float]:
        """What an attempt holds of its host, by kind, beside cores."""
        return dict(zip(self._kinds, command.amounts, strict=False))

    def allot(
        self, command: StartTask, gpus: Sequence[str] = (), cpus: Sequence[int] = ()
    ) -> Allotment:
        """What an attempt is given: these GPUs, and these processors if it is held to some."""
        cores, memory = max(1, len(command.cores)), int(self.amounts(command).get(MEMORY, 0.0))
        limit = None
        if self._limit:
            request = self._workflow.spec(command.task).request or NOTHING
            asked = memory if request.memory else 0  # else it is learnt
            held = cores if self.counts_cores else None
            limit = Limit(asked or None, held, tuple(cpus) if held else ())
        return Allotment(
            cores,
            memory or None,
            tuple(gpus) if self.counts_gpus else None,
            self.counts_cores,
            limit if limit else None,
        )
