"""How much delay a plan can take: slack and spare time of its tasks."""

from __future__ import annotations

import numpy as np

from weft.arrays import FloatArray
from weft.kernels.compiled import compiled, pays
from weft.kernels.slack import spare_times
from weft.model import Schedule

ROUNDING = 1e-9  # of the makespan: a delay below it is none


def slack_and_spare(
    schedule: Schedule, time_per_unit: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Slack and MinSpare of every task (Zhao, Sakellariou, section 2).

    Links are as fast as the platform says, unless another time per unit is known.
    """
    wf, pf = schedule.workflow, schedule.platform
    per_unit = pf.time_per_unit if time_per_unit is None else time_per_unit
    pointers, queue = schedule.queue
    following = np.full(wf.n_tasks, -1, dtype=np.int32)
    following[queue[:-1]] = queue[1:]
    ends = pointers[1:]
    following[queue[ends[ends > pointers[:-1]] - 1]] = -1  # nothing follows the last of a row
    kernel = compiled(spare_times) if pays(4 * len(wf.use_task), spare_times) else spare_times
    return kernel(
        schedule.in_time,
        following,
        wf.out_ptr,
        wf.out_item,
        wf.use_ptr,
        wf.use_task,
        wf.item_size,
        pf.startup.reshape(-1),
        per_unit.reshape(-1),
        pf.host[schedule.processor],
        pf.n_hosts,
        schedule.start,
        schedule.finish,
        schedule.makespan,
    )
