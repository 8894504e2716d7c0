"""Planners where tasks need more than one core: every event time is tried, sums by brute force."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf, isfinite, isnan
from statistics import median

from foreplan.errors import PlanningError
from foreplan.model import Freedom, Reuse, Situation

EQUAL = 1e-12  # of the largest rank: what differs by less is a tie
ROOM = 1e-9  # of a capacity


@dataclass(frozen=True)
class Use:
    """Cores and amounts of a host that are taken from one time to another."""

    task: int
    cores: tuple[int, ...]
    host: int
    start: float
    finish: float


@dataclass(frozen=True)
class Choice:
    """Where a task would go."""

    host: int
    width: int
    most: float
    start: float
    finish: float
    key: float


class Fits:
    """A situation as dicts and lists; what runs is in use from ever to its expected end."""

    def __init__(
        self,
        situation: Situation,
        insertion: bool,
        efficiency: float = 0.5,
        freedom: Freedom = Freedom.NOT_STARTED,
    ) -> None:
        s, demand = situation, situation.demand
        assert demand is not None
        self.s, self.insertion, self.now = s, insertion, float(s.now)
        self.needs, self.allowed = demand.needs, demand.allowed
        wf, pf = s.workflow, s.platform
        here = s.usable()
        self.cores = {
            h: [p for p in range(pf.n_processors) if here[p] and pf.host[p] == h]
            for h in range(pf.n_hosts)
        }
        self.usable = [p for p in range(pf.n_processors) if here[p]]
        self.cost = s.cost.tolist()
        self.order = wf.order.tolist()
        self.inputs: dict[int, list[tuple[int, int]]] = {t: [] for t in range(wf.n_tasks)}
        for item, producer, consumer in zip(*(c.tolist() for c in wf.dependencies()), strict=True):
            self.inputs[consumer].append((item, producer))
        self.uses: list[Use] = []
        self.runs: dict[int, Use] = {}
        self.placed: dict[int, tuple[tuple[int, ...], float, float]] = {}
        self.made: dict[int, tuple[int, float]] = {}
        self.barred: set[int] = set()
        self._facts(freedom)
        self.widths = {t: self._widths(t, efficiency) for t in range(wf.n_tasks)}
        gone = set() if s.given_up is None else {t for t in self.order if s.given_up[t]}
        self.todo = [t for t in self.order if t not in self.placed and t not in gone]

    def _facts(self, freedom: Freedom) -> None:
        s, a = self.s, self.s.attempts
        ends = s.expected_finish().tolist()
        for k, task in enumerate(a.task.tolist()):
            cores = (int(a.processor[k]),) if a.cores is None else tuple(a.cores.of(k).tolist())
            host = int(s.platform.host[cores[0]])
            until = max(self.now, ends[k])
            if isnan(a.finish[k]):
                use = Use(task, cores, host, -inf, until)
                self.uses.append(use)
                if freedom == Freedom.RESTART and set(cores) <= set(self.usable):
                    self.runs[task] = use
                    continue
            self.placed[task] = cores, float(a.start[k]), ends[k]
            self.made[task] = host, until

    def _widths(self, task: int, efficiency: float) -> dict[int, float]:
        first, end = self.needs.width_ptr[task], self.needs.width_ptr[task + 1]
        rows = list(
            zip(
                self.needs.width[first:end].tolist(),
                self.needs.factor[first:end].tolist(),
                strict=True,
            )
        )
        work = rows[0][0] * rows[0][1]
        return {w: f for w, f in rows if work >= efficiency * (w * f) * (1 - ROOM)}

    # When data are there -----------------------------------------------------------------

    def arrival(self, item: int, producer: int, host: int) -> float:
        """When an item is on a host, or could be."""
        s = self.s
        known = [
            t
            for i, h, t in zip(*(c.tolist() for c in s.known_arrivals()), strict=True)
            if i == item and h == host
        ]
        if known:
            return float(min(known))
        astray = s.astray is not None and bool(s.astray[item])
        made_on, made = self.made[producer]
        ways = [] if astray else [(made_on, made)]
        if astray or s.reuse == Reuse.ANYWHERE:
            copies = zip(s.copies.item.tolist(), s.copies.host.tolist(), strict=True)
            ways += [(h, self.now) for i, h in copies if i == item]
        return min([t + self.transfer(item, h, host) for h, t in ways], default=inf)

    def transfer(self, item: int, source: int, target: int) -> float:
        """What an item takes from one host to another."""
        if source == target:
            return 0.0
        size = float(self.s.workflow.item_size[item])
        return float(
            self.s.platform.startup[source, target] + size * self.s.time_per_unit[source, target]
        )

    def data_ready(self, task: int, host: int) -> float:
        """When all inputs are there."""
        return max([0.0, *(self.arrival(i, p, host) for i, p in self.inputs[task])])

    # What is free -----------------------------------------------------------------------

    def intervals(self, p: int) -> list[tuple[float, float]]:
        """When a core is in use."""
        return [(u.start, u.finish) for u in self.uses if p in u.cores]

    def is_idle(self, p: int, start: float, end: float) -> bool:
        """Whether nothing stands in the way of a task on this core."""
        if p in self.barred or start < self.now or end > self.s.platform.leaves[p]:
            return False
        taken = self.intervals(p)
        if not self.insertion:
            return all(f <= start for _, f in taken)
        return all(f <= start or b >= end for b, f in taken)

    def is_enough(self, task: int, host: int, start: float, end: float) -> bool:
        """Whether amounts and tokens suffice at every instant of the time, or from then on."""
        if start >= end:
            return True
        end = end if self.insertion else inf
        moments = [start, *(u.start for u in self.uses if start < u.start < end)]
        return all(self._is_enough_at(task, host, x) for x in moments)

    def _is_enough_at(self, task: int, host: int, moment: float) -> bool:
        demand, kinds = self.s.demand, len(self.needs.kinds)
        assert demand is not None
        now = [u for u in self.uses if u.start <= moment < u.finish]
        for k, amount in enumerate(self.needs.amount[task].tolist()):
            users = [u for u in now if k >= kinds or u.host == host]
            at = host * kinds + k if k < kinds else self.s.platform.n_hosts * kinds + k - kinds
            total = sum(float(self.needs.amount[u.task, k]) for u in users)
            if amount > 0 and total + amount > demand.capacity[at] * (1 + ROOM):
                return False
        return True

    def idle_cores(self, task: int, host: int, most: float, start: float, end: float) -> list[int]:
        """The cores that are idle then, and on which the task costs no more than that."""
        return [
            p
            for p in self.cores[host]
            if self.cost[task][p] <= most and self.is_idle(p, start, end)
        ]

    def start(self, task: int, host: int, width: int, most: float, duration: float) -> float:
        """The first of all event times at which everything is free."""
        ready = self.data_ready(task, host)
        if ready == inf:
            return inf
        times = {ready, self.now, *(u.finish for u in self.uses)}
        for t in sorted(t for t in times if t >= ready):
            idle = self.idle_cores(task, host, most, t, t + duration)
            if len(idle) >= width and self.is_enough(task, host, t, t + duration):
                return t
        return inf

    def choices(self, task: int, bias: dict[int, float] | None = None) -> list[Choice]:
        """All hosts, widths and paces, in the order in which equals are taken."""
        found = []
        for host, cores in self.cores.items():
            if not self.allowed[task, host]:
                continue
            extra = 0.0 if bias is None else bias[host]
            for width, factor in self.widths[task].items():
                for most in sorted({self.cost[task][p] for p in cores}):
                    if sum(self.cost[task][p] <= most for p in cores) < width:
                        continue
                    start = self.start(task, host, width, most, most * factor)
                    finish = start + most * factor
                    if finish < inf:
                        found.append(Choice(host, width, most, start, finish, finish + extra))
        return found

    def best(self, task: int, bias: dict[int, float] | None = None) -> Choice | None:
        """The one that ends first."""
        return min(self.choices(task, bias), key=lambda c: c.key, default=None)

    def tightness(self, p: int, start: float, end: float) -> tuple[float, float, int]:
        """How long the gap around a time is on a core, and how long it has been idle then."""
        taken = self.intervals(p)
        since = max([self.now, *(f for _, f in taken if f <= start)])
        until = min([float(self.s.platform.leaves[p]), *(b for b, _ in taken if b >= end)])
        return until - since, start - since, p

    def place(self, task: int, choice: Choice) -> None:
        """Put a task down on the tightest cores."""
        idle = self.idle_cores(task, choice.host, choice.most, choice.start, choice.finish)
        idle.sort(key=lambda p: self.tightness(p, choice.start, choice.finish))
        chosen = sorted(idle[: choice.width])
        slowest = max(chosen, key=lambda p: (self.cost[task][p], -p))
        cores = (slowest, *(p for p in chosen if p != slowest))
        self.put(task, cores, choice.host, choice.start, choice.finish)
        self.uses.append(Use(task, cores, choice.host, choice.start, choice.finish))

    def put(self, task: int, cores: tuple[int, ...], host: int, start: float, end: float) -> None:
        """Write down where a task is."""
        self.placed[task] = cores, start, end
        self.made[task] = host, end

    def place_all(
        self,
        order: Iterable[int],
        pins: dict[int, int] | None = None,
        bias: dict[int, dict[int, float]] | None = None,
    ) -> None:
        """Each where it ends first; pinned ones on their hosts, if they fit there."""
        for task in order:
            extra = None if bias is None else bias[task]
            on = [c for c in self.choices(task, extra) if pins and c.host == pins.get(task)]
            choice = min(on, key=lambda c: c.key) if on else self.best(task, extra)
            if choice is None:
                raise PlanningError(f"task {task} fits nowhere")
            self.place(task, choice)

    # Ranks -----------------------------------------------------------------------------

    def least(self, task: int, host: int, cost: list[list[float]] | None = None) -> float:
        """The least that a task takes on an idle host."""
        rows = sorted((cost or self.cost)[task][p] for p in self.cores[host])
        fits = {w: f for w, f in self.widths[task].items() if w <= len(rows)}
        if not self.allowed[task, host]:
            return inf
        return min([rows[w - 1] * f for w, f in fits.items()], default=inf)

    def times(self, task: int, cost: list[list[float]] | None = None) -> list[tuple[float, int]]:
        """What a task takes on every host where it may run, with the cores of the host."""
        rows = [(self.least(task, h, cost), len(cores)) for h, cores in self.cores.items()]
        return [(takes, cores) for takes, cores in rows if isfinite(takes)]

    def mean(self, task: int, cost: list[list[float]] | None = None) -> float:
        """Over the cores of the hosts where it may run."""
        rows = self.times(task, cost)
        count = sum(cores for _, cores in rows)
        return sum(takes * cores for takes, cores in rows) / count if count else 0.0

    def rank_up(self, weight: dict[int, float], link: tuple[float, float]) -> dict[int, float]:
        """The longest way down."""
        rank: dict[int, float] = {}
        for task in reversed(self.todo):
            below = [
                link[0] + float(self.s.workflow.item_size[i]) * link[1] + rank[c]
                for c in rank
                for i, producer in self.inputs[c]
                if producer == task
            ]
            rank[task] = weight[task] + max(below, default=0.0)
        return rank

    def mean_link(self) -> tuple[float, float]:
        """Of all pairs of usable processors."""
        link = self.s.platform.mean_link_among(self.s.usable().nonzero()[0].astype("int32"))
        return link.startup, link.time_per_unit

    def by_rank(self, rank: dict[int, float]) -> list[int]:
        """Highest first, then by position; what differs by rounding only is a tie."""
        quantum = max(rank.values(), default=0.0) * EQUAL
        if quantum == 0:
            return list(self.todo)
        return sorted(self.todo, key=lambda t: round(rank[t] / -quantum))

    def ready(self) -> list[int]:
        """Whose producers are all placed."""
        return [t for t in self.todo if t not in self.made and self._may(t)]

    def _may(self, task: int) -> bool:
        return all(p in self.made or p not in self.todo for _, p in self.inputs[task])

    def ready_order(self, rank: dict[int, float]) -> list[int]:
        """Of those ready always the first ranked."""
        ranked, done = self.by_rank(rank), list[int]()
        while len(done) < len(ranked):
            for t in ranked:
                needs = [p for _, p in self.inputs[t] if p in ranked]
                if t not in done and all(p in done for p in needs):
                    done.append(t)
                    break
        return done


Plan = dict[int, tuple[tuple[int, ...], float, float]]


def heft(situation: Situation, insertion: bool = True) -> Plan:
    """By falling upward rank."""
    fits = Fits(situation, insertion)
    rank = fits.rank_up({t: fits.mean(t) for t in fits.todo}, fits.mean_link())
    fits.place_all(fits.by_rank(rank))
    return fits.placed


def cpop(situation: Situation) -> Plan:
    """The critical path on one host."""
    fits = Fits(situation, True)
    link = fits.mean_link()
    weight = {t: fits.mean(t) for t in fits.todo}
    up, down = fits.rank_up(weight, link), dict[int, float]()
    for t in fits.todo:
        before = [
            down[p] + weight[p] + (link[0] + float(situation.workflow.item_size[i]) * link[1])
            for i, p in fits.inputs[t]
            if p in down
        ]
        down[t] = max([0.0, *before])
    order = fits.ready_order({t: up[t] + down[t] for t in fits.todo})
    pins: dict[int, int] = {}
    if order:
        path = _path(fits, order[0], up, link)
        hosts = [h for h, cores in fits.cores.items() if cores]
        sums = {h: sum(_or_mean(fits, t, h, weight) for t in path) for h in hosts}
        host = min(hosts, key=lambda h: sums[h])
        pins = {t: host for t in path if isfinite(fits.least(t, host))}
    fits.place_all(order, pins)
    return fits.placed


def _or_mean(fits: Fits, task: int, host: int, mean: dict[int, float]) -> float:
    least = fits.least(task, host)
    return least if isfinite(least) else mean[task]


def _path(fits: Fits, entry: int, rank: dict[int, float], link: tuple[float, float]) -> list[int]:
    path, task = [entry], entry
    position = fits.s.workflow.position
    while True:
        below = [
            (
                link[0] + float(fits.s.workflow.item_size[i]) * link[1] + rank[c],
                -int(position[c]),
                c,
            )
            for c in rank
            for i, producer in fits.inputs[c]
            if producer == task
        ]
        if not below:
            return path
        task = max(below)[2]
        path.append(task)


def peft(situation: Situation) -> Plan:
    """By the optimistic cost table, over hosts."""
    fits, link = Fits(situation, True), Fits(situation, True).mean_link()
    rest: dict[int, dict[int, float]] = {}
    for task in reversed(fits.todo):
        rest[task] = dict.fromkeys(fits.cores, 0.0)
        for c in list(rest):
            for item, producer in fits.inputs[c]:
                if producer != task:
                    continue
                takes = {g: rest[c][g] + fits.least(c, g) for g in fits.cores}
                moved = link[0] + float(situation.workflow.item_size[item]) * link[1]
                for h in fits.cores:
                    least = min(takes[h], min(takes.values()) + moved)
                    if isfinite(least):
                        rest[task][h] = max(rest[task][h], least)
    count = len(fits.usable)
    rank = {
        t: sum(rest[t][h] * len(cores) for h, cores in fits.cores.items()) / count
        for t in fits.todo
    }
    fits.place_all(fits.ready_order(rank), bias=rest)
    return fits.placed


def dls(situation: Situation) -> Plan:
    """The greatest dynamic level first."""
    fits = Fits(situation, False)
    usual = {
        t: median([x for x, cores in fits.times(t) for _ in range(cores)] or [0.0])
        for t in fits.todo
    }
    level = fits.rank_up(usual, (0.0, 0.0))
    return _by_pairs(fits, {t: level[t] + usual[t] for t in fits.todo}, 1.0)


def min_min(situation: Situation) -> Plan:
    """The earliest finish first."""
    fits = Fits(situation, False)
    return _by_pairs(fits, dict.fromkeys(fits.todo, 0.0), 1.0)


def max_min(situation: Situation) -> Plan:
    """The latest of the earliest finishes first."""
    fits = Fits(situation, False)
    return _by_pairs(fits, dict.fromkeys(fits.todo, 0.0), -1.0)


def _by_pairs(fits: Fits, bonus: dict[int, float], sign: float) -> Plan:
    order = fits.by_rank(fits.rank_up({t: fits.mean(t) for t in fits.todo}, fits.mean_link()))
    while ready := set(fits.ready()):
        found = {t: fits.best(t) for t in order if t in ready}
        ends = {t: inf if c is None else c.finish for t, c in found.items()}
        task = min(found, key=lambda t: sign * (ends[t] - bonus[t]))
        choice = found[task]
        if choice is None:
            raise PlanningError(f"task {task} fits nowhere")
        fits.place(task, choice)
    return fits.placed


def gtp(situation: Situation, freedom: Freedom = Freedom.NOT_STARTED) -> Plan:
    """What runs stays, or begins from scratch where it ends earlier."""
    fits = Fits(situation, False, freedom=freedom)
    full = situation.estimates.cost.tolist()
    rank = fits.rank_up({t: fits.mean(t, full) for t in fits.todo}, fits.mean_link())
    for task in fits.by_rank(rank):
        use = fits.runs.get(task)
        if use is None:
            fits.place_all([task])
        else:
            _move_or_stay(fits, task, use)
    return fits.placed


def _move_or_stay(fits: Fits, task: int, use: Use) -> None:
    leaves = fits.s.platform.leaves
    stays = use.finish if all(use.finish <= leaves[p] for p in use.cores) else inf
    fits.uses.remove(use)
    fits.barred = set(use.cores)
    choice = fits.best(task)
    if choice is not None and choice.finish < stays:
        fits.place(task, choice)
    else:
        fits.uses.append(use)
        fits.put(task, use.cores, use.host, fits.now, use.finish)
    fits.barred = set()


WIDE_TWINS = {
    "heft": heft,
    "cpop": cpop,
    "peft": peft,
    "dls": dls,
    "min-min": min_min,
    "max-min": max_min,
    "gtp": gtp,
}
