"""The state of one run as flat arrays: what the coordinator knows, and nothing it does not."""

from __future__ import annotations

from typing import NamedTuple

from weft.arrays import BoolArray, ByteArray, FloatArray, IntArray, LongArray

# what a task is; up to RUNNING it is not over
WAITING, RUNNING, DONE, GIVEN_UP = 0, 1, 2, 3
# where an item is, by host
ABSENT, MOVING, HERE = 0, 1, 2
# how an attempt ended
OPEN, FINISHED, FAILED, CANCELLED, REWOUND = 0, 1, 2, 3, 4
# events
TASK_FINISHED, ITEM_ARRIVED, JOINED, GONE, AVAILABILITY, BANDWIDTH, TASK_FAILED = range(7)
ITEM_LOST, PAUSED, LEAVING, WAKE = 7, 8, 9, 10
MORE_TO_COME = 1.0  # the value of a join: others join at the same moment
FOR_GOOD = 2.0  # the value of a failure or a loss that is one too many for the task
# commands
START, SEND, CANCEL, DROP, WAKE_AT = 0, 1, 2, 3, 4
# why the run must be looked at
NOTHING, LATE, CHANGED, ROOM, UNSETTLED = 0, 1, 2, 3, 4

# places in `counts`
N_DONE, N_ATTEMPTS, N_TRANSFERS, N_COMMANDS, GRACE, N_REWOUND, N_READY, IN_LINE = range(8)
N_GIVEN_UP, HELD_BACK = 8, 9  # held back: nothing new is started
N_MIGRATED = 10  # tasks that a plan moved after they had begun to gather inputs, or to run
FOR_MONEY = 11  # the coordinator was woken for the sake of the budget only
COUNTS = 12
# which copies may be used
NEVER, IN_PLACE, ANYWHERE = 0, 1, 2


class Board(NamedTuple):
    """One run. Attempts and transfers are logs that only grow; commands are emptied when read."""

    # the graph and the machines, which do not change
    n_tasks: int
    n_processors: int
    n_hosts: int
    just_in_time: bool  # else every task has its place in a plan
    last_come: bool  # just in time: of equal rank, last ready, first served; else the first
    min_min: bool  # just in time: what is ready is mapped at once, by Min-Min
    reuse: int  # which copies may be used
    burst: int  # the most commands that one event can give rise to, but for drops
    order: IntArray
    in_ptr: IntArray
    in_item: IntArray
    out_ptr: IntArray
    out_item: IntArray
    use_ptr: IntArray
    use_task: IntArray
    item_producer: IntArray
    host: IntArray
    startup: FloatArray  # hosts x hosts, flat
    per_unit: FloatArray  # likewise
    item_size: FloatArray
    # the moment
    clock: FloatArray  # one number
    counts: LongArray
    wake: FloatArray  # the next rescheduling point, and the time from one to the next
    # tasks
    status: ByteArray
    on: IntArray  # the processor planned, or taken; -1: none yet
    missing: IntArray  # inputs that are not yet on that processor's host
    attempt: IntArray  # the latest attempt, -1: none
    latest: FloatArray  # the watch: a start later than this is first shown to the policy
    delay: FloatArray  # one number: so much later for each step
    steps: FloatArray  # tasks that end one after another until it can start, and itself
    variance: FloatArray  # one number: so is what is off its estimate by more than this share
    early: FloatArray  # one number: and what took so many seconds less than its estimate
    allowance: FloatArray  # one number: what tasks may cost beyond their estimates
    gated: BoolArray  # tasks that the rules do not begin: whether they can be paid is asked first
    rank: IntArray  # just in time: the lower ones first
    tie: IntArray  # among those of equal rank that became ready at once, the lower ones first
    line: IntArray  # the turn in which the task became ready, -1: it is not
    unmade: IntArray  # inputs whose producers are not done
    ready: IntArray  # a heap of the ready tasks, first in line first
    # Min-Min: when a mapped task's inputs were expected, and what it works with while it chooses
    inputs_at: FloatArray
    candidate: IntArray
    best: IntArray
    done_at: FloatArray
    free_from: FloatArray  # by processor
    arrival: FloatArray  # by host
    row: IntArray  # by processor
    old_queue: IntArray
    estimate: FloatArray  # expected cost, tasks x processors, flat
    # processors
    present: BoolArray
    leaves: FloatArray  # when it will be gone, as far as that is announced
    price: FloatArray  # per second
    running: IntArray  # attempt, -1: idle
    queue: IntArray  # the plan: tasks in their order, processor by processor
    queue_at: IntArray  # next in the processor's row
    queue_end: IntArray
    availability: FloatArray
    reckoned: FloatArray  # the availability that the plan reckons with
    # items on hosts, flat
    held: ByteArray
    bandwidth: FloatArray  # hosts x hosts, flat: factor of the link's bandwidth now
    # logs
    attempt_task: IntArray
    attempt_on: IntArray
    attempt_start: FloatArray
    attempt_finish: FloatArray
    attempt_end: ByteArray
    worked: FloatArray  # seconds at full availability until `since`
    since: FloatArray
    transfer_item: IntArray
    transfer_from: IntArray
    transfer_to: IntArray
    transfer_sent: FloatArray
    transfer_arrival: FloatArray  # NaN while under way, infinite if dropped
    moved: FloatArray  # seconds of data at full bandwidth until `moved_since`
    moved_since: FloatArray
    transfer_forgotten: FloatArray  # when its copy was left behind, infinite if never
    commands: IntArray  # pairs (kind, attempt or transfer, or nothing)
