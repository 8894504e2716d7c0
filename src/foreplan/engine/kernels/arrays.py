"""The state of one run as flat arrays: what the coordinator knows, and nothing it does not."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from foreplan.arrays import BoolArray, ByteArray, FloatArray, IntArray, LongArray

# what a task is; up to RUNNING it is not over, from GIVEN_UP on it is no part of any plan
WAITING, RUNNING, DONE, GIVEN_UP, RESTING = 0, 1, 2, 3, 4
# where an item is, by host
ABSENT, MOVING, HERE = 0, 1, 2
# how an attempt ended
OPEN, FINISHED, FAILED, CANCELLED, REWOUND = 0, 1, 2, 3, 4
# events
TASK_FINISHED, ITEM_ARRIVED, JOINED, GONE, AVAILABILITY, BANDWIDTH, TASK_FAILED = range(7)
ITEM_LOST, PAUSED, LEAVING, WAKE, BUDGET, LIMITS, OVERDUE, RETRY = range(7, 15)
MORE_TO_COME = 1.0  # the value of a join: others join at the same moment
FOR_GOOD = 2.0  # the value of a failure or a loss that is one too many for the task
FOR_A_WHILE = 4.0  # the value of a failure after which the task rests
# commands
START, SEND, CANCEL, DROP, WAKE_AT = 0, 1, 2, 3, 4
# why the run must be looked at
NOTHING, LATE, CHANGED, ROOM, UNSETTLED = 0, 1, 2, 3, 4

# places in `counts`
N_DONE, N_ATTEMPTS, N_TRANSFERS, N_COMMANDS, GRACE, N_REWOUND, N_READY, TURN = range(8)
N_GIVEN_UP, HELD_BACK = 8, 9  # held back: nothing new is started
N_MIGRATED = 10  # tasks that a plan moved after they had begun to gather inputs, or to run
FOR_MONEY = 11  # the coordinator was woken for the sake of the budget only
N_RESTING = 12
LINE = 13  # the place of the next task in the line for amounts, just in time
COUNTS = 14
# how tasks come to their processors: by a plan, from the ready queue, mapped at once when ready
PLANNED, READY_QUEUE, MIN_MIN = 0, 1, 2
# which copies may be used
NEVER, IN_PLACE, ANYWHERE = 0, 1, 2

NO_FLOATS: FloatArray = np.zeros(0)
NO_INTS: IntArray = np.zeros(0, dtype=np.int32)
NO_BOOLS: BoolArray = np.zeros(0, dtype=np.bool_)


class RunArrays(NamedTuple):
    """One run. Attempts and transfers are logs that only grow; commands are emptied when read."""

    # the graph and the machines, which do not change
    n_tasks: int
    n_processors: int
    n_hosts: int
    dispatch: int  # how tasks come to their processors
    last_come: bool  # just in time: of equal rank, last ready, first served; else the first
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
    rests: FloatArray  # until when a task rests that has failed; infinite for all others
    latest: FloatArray  # the watch: a start later than this is first shown to the policy
    delay: FloatArray  # one number: so much later for each step
    steps: FloatArray  # tasks that end one after another until it can start, and itself
    variance: FloatArray  # one number: so is what is off its estimate by more than this share
    early: FloatArray  # one number: and what took so many seconds less than its estimate
    allowance: FloatArray  # one number: what tasks may cost beyond their estimates
    gated: BoolArray  # tasks that the rules do not begin: whether they can be paid is asked first
    rank: IntArray  # just in time: the lower ones first
    tie: IntArray  # among those of equal rank that became ready at once, the lower ones first
    turn: IntArray  # that in which the task became ready, -1: it is not
    unmade: IntArray  # inputs whose producers are not done
    ready: IntArray  # a heap of the ready tasks, the first to go first
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
    # what tasks take beside one core; where none takes any, all of this is empty
    most_cores: int = 0  # that one task can have; 0: each has one core, and nothing else
    n_kinds: int = 0  # of amounts that hosts have; then come the pools, which all of them share
    n_pools: int = 0
    need: FloatArray = NO_FLOATS  # tasks x (kinds, pools), flat: what an attempt would hold
    capacity: FloatArray = NO_FLOATS  # hosts x kinds, flat, then pools
    free: FloatArray = NO_FLOATS  # likewise: what nobody holds
    allowed: BoolArray = NO_BOOLS  # tasks x hosts, flat: where a task fits at all
    paid: FloatArray = NO_FLOATS  # tasks x hosts, flat: the least cores that it pays for there
    width_ptr: IntArray = NO_INTS  # the widths that each task may take, and its cost then
    width: IntArray = NO_INTS
    factor: FloatArray = NO_FLOATS
    host_ptr: IntArray = NO_INTS  # the processors of each host
    host_core: IntArray = NO_INTS
    wide: IntArray = NO_INTS  # by task, how many cores it is planned on, or has
    core: IntArray = NO_INTS  # tasks x most_cores, flat: which; the first is `on`
    core_key: FloatArray = NO_FLOATS  # by processor: cores with the lowest are chosen
    line: IntArray = NO_INTS  # by task, its place in the line for amounts
    claim: FloatArray = NO_FLOATS  # as `need`: what a ready task holds until it starts
    # the log of attempts, likewise
    attempt_wide: IntArray = NO_INTS  # how many cores it holds, or held
    attempt_core: IntArray = NO_INTS  # attempts x most_cores, flat: the first is `attempt_on`
    attempt_amount: FloatArray = NO_FLOATS  # attempts x (kinds, then pools), flat
    attempt_factor: FloatArray = NO_FLOATS  # the share of the cost that it takes on so many cores
    attempt_beyond: FloatArray = NO_FLOATS  # cores that it pays for beyond those that it holds
