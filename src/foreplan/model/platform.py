"""A platform: processors on hosts, and the links between hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from foreplan.arrays import BoolArray, FloatArray, FrozenArrays, IntArray
from foreplan.errors import InputError
from foreplan.model.resources import UNLIMITED, Host
from foreplan.quantities import many


@dataclass(frozen=True)
class Processor:
    """One processor as a file gives it; the host defaults to its own name."""

    name: str
    host: str | None = None
    speed: float = 1.0
    price: float = 0.0
    joins: float = 0.0
    leaves: float = float("inf")
    billing: float = 0.0


@dataclass(frozen=True)
class Link:
    """The time of a transfer between two hosts: startup + size x time per unit; and its price."""

    time_per_unit: float = 1.0
    startup: float = 0.0
    price: float = 0.0  # per unit of data


@dataclass(frozen=True, eq=False)
class Platform(FrozenArrays):
    """Processors and hosts are indices here; the names are kept beside them.

    A transfer of size s from host a to host b takes startup[a, b] + s * time_per_unit[a, b];
    inside a host it takes no time. It costs s * link_price[a, b]; a second on a processor costs
    `price`, and where `billing` is above 0 that is paid for every begun unit of so many seconds
    from the processor's first use to its last. `hosts`, if any, says what each host has beside its
    processors, and `pools` what all of them share.
    """

    processor_names: tuple[str, ...]
    host_names: tuple[str, ...]
    host: IntArray  # processor -> host
    speed: FloatArray
    price: FloatArray
    joins: FloatArray
    leaves: FloatArray
    startup: FloatArray  # hosts x hosts
    time_per_unit: FloatArray
    network: Link = field(default_factory=Link)  # the default, kept for writing files
    billing: FloatArray = field(default_factory=lambda: np.empty(0))  # empty: all 0
    link_price: FloatArray = field(default_factory=lambda: np.empty(0))  # hosts x hosts, likewise
    hosts: tuple[Host, ...] = ()  # empty: none has anything
    pools: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(self.billing) == 0:
            object.__setattr__(self, "billing", np.zeros(self.n_processors))
        if len(self.link_price) == 0:
            object.__setattr__(self, "link_price", np.zeros((self.n_hosts, self.n_hosts)))
        super().__post_init__()

    def __repr__(self) -> str:
        hosts = many(self.n_hosts, "host")
        return f"<Platform: {many(self.n_processors, 'processor')} on {hosts}>"

    @property
    def n_processors(self) -> int:
        """The number of processors."""
        return len(self.processor_names)

    @property
    def n_hosts(self) -> int:
        """The number of hosts."""
        return len(self.host_names)

    def host_amounts(self, kind: str) -> FloatArray:
        """What each host has of a kind; of memory that it does not declare, enough."""
        otherwise = np.inf if kind in UNLIMITED else 0.0
        if not self.hosts:
            return np.full(self.n_hosts, otherwise)
        return np.array([host.amounts.get(kind, otherwise) for host in self.hosts])

    def labels(self, host: int) -> tuple[str, ...]:
        """The labels of a host."""
        return self.hosts[host].labels if self.hosts else ()

    def present(self, now: float) -> BoolArray:
        """Which processors may be used now: joined, and not yet gone."""
        here: BoolArray = (self.joins <= now) & (now < self.leaves)
        return here

    @cached_property
    def adds_up(self) -> bool:
        """Whether the cost of a schedule is the sum of what its tasks cost, each by itself."""
        return not (self.billing * self.price).any() and not self.link_price.any()

    @cached_property
    def fixed(self) -> bool:
        """Whether all processors are there from the start, to the end."""
        return not (self.joins > 0).any() and not np.isfinite(self.leaves).any()

    @cached_property
    def links_alike(self) -> bool:
        """Whether every two hosts are connected in the same way."""
        return self.n_hosts > 1 and _alike(self.startup) and _alike(self.time_per_unit)

    @cached_property
    def mean_link(self) -> Link:
        """The mean over all ordered pairs of distinct processors; those on one host count 0."""
        return self.mean_link_among(np.arange(self.n_processors, dtype=np.int32))

    def mean_link_among(self, processors: IntArray) -> Link:
        """The same among some processors."""
        hosts, n = self.host[processors].tolist(), len(processors)
        if self.links_alike and n > 1 and len(set(hosts)) == n:
            return Link(float(self.time_per_unit[0, 1]), float(self.startup[0, 1]))
        startup, per_unit, pairs = self.startup, self.time_per_unit, max(1, n * (n - 1))
        if hosts != list(range(self.n_hosts)):
            at = np.ix_(hosts, hosts)
            startup, per_unit = startup[at], per_unit[at]
        return Link(float(per_unit.sum() / pairs), float(startup.sum() / pairs))

    @staticmethod
    def build(
        processors: Sequence[Processor],
        network: Link | None = None,
        links: Mapping[tuple[str, str], Link] | None = None,
        has: Mapping[str, Host] | None = None,
        pools: Mapping[str, float] | None = None,
    ) -> Platform:
        """A platform from its processors, the default link, and links by pair of hosts.

        `has` says by host what it has beside its processors; of those that are silent, nothing.
        """
        network = network or Link()
        if not processors:
            raise InputError("the platform has no processors")
        hosts: dict[str, int] = {}
        for p in processors:
            hosts.setdefault(p.host or p.name, len(hosts))
        h = len(hosts)
        startup = np.full((h, h), network.startup)
        per_unit = np.full((h, h), network.time_per_unit)
        price = np.full((h, h), network.price)
        for (a, b), link in (links or {}).items():
            for x, y in ((hosts[a], hosts[b]), (hosts[b], hosts[a])):
                startup[x, y], per_unit[x, y] = link.startup, link.time_per_unit
                price[x, y] = link.price
        for matrix in (startup, per_unit, price):  # inside a host
            np.fill_diagonal(matrix, 0.0)
        return Platform(
            processor_names=tuple(p.name for p in processors),
            host_names=tuple(hosts),
            host=np.array([hosts[p.host or p.name] for p in processors], dtype=np.int32),
            speed=np.array([p.speed for p in processors]),
            price=np.array([p.price for p in processors]),
            joins=np.array([p.joins for p in processors]),
            leaves=np.array([p.leaves for p in processors]),
            startup=startup,
            time_per_unit=per_unit,
            network=network,
            billing=np.array([p.billing for p in processors]),
            link_price=price,
            hosts=tuple(has.get(name) or Host(name) for name in hosts) if has else (),
            pools=dict(pools or {}),
        )


def _alike(links: FloatArray) -> bool:
    """Whether all numbers off the diagonal are the same."""
    n = len(links)
    # row by row without the first one, the diagonal stands in the last column
    between = links.reshape(-1)[1:].reshape(n - 1, n + 1)[:, :-1]
    return bool((between == between[0, 0]).all())
