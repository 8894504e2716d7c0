"""Random platforms: hosts of unlike speed, price and links, and those that join later."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from foreplan.arrays import FloatArray, IntArray
from foreplan.errors import InputError
from foreplan.generators.limits import MAX_NUMBER, MAX_TASKS, check_size, number, positive, whole
from foreplan.generators.resources import with_amounts
from foreplan.model import Link, Platform

MAX_HOSTS = 5_000  # the links are a matrix of hosts x hosts


def generate_platform(
    processors: int = 4,
    *,
    cores: int = 1,
    memory: str = "",
    gpus: int = 0,
    speed: float = 1.0,
    heterogeneity: float = 0.5,
    bandwidth: float = 1.0,
    bandwidth_spread: float = 0.0,
    startup: float = 0.0,
    price: float = 1.0,
    price_noise: float = 0.2,
    billing: float = 0.0,
    transfer_price: float = 0.0,
    join_every: float = 0,
    join_share: float = 0.0,
    join_until: float = 0,
    seed: int = 0,
) -> Platform:
    """A random platform of processors p0, p1, ...; the cores of one host are alike.

    - A host's speed is uniform in speed (1 - heterogeneity/2) .. speed (1 + heterogeneity/2).
    - A link's bandwidth is uniform in the same way around `bandwidth`, by `bandwidth_spread`;
      it is the same in both directions. A transfer takes `startup` + size / bandwidth.
    - A host's price per second of a processor is price x speed / mean speed, times a factor
      uniform in 1 - price_noise/2 .. 1 + price_noise/2: without noise, the same work costs the
      same money on every host, and a faster one is no dearer in the end. It is paid for every
      begun unit of `billing` seconds, from a processor's first use to its last; 0: per second.
    - A unit of data that is sent to another host costs `transfer_price`.
    - At join_every, 2 join_every, ... up to join_until, join_share x processors more join
      (rounded, at least 1), drawn like the others; 0: nobody joins (Yu, Shi, section 4.2).

    `cores` processors share a host (the last host may have fewer); without, a processor is its
    own host. Those that join later bring their own hosts. A seed gives the same first processors
    and links between them, whoever joins later. With `memory` ("16GB", or a range like
    "16GB..64GB") or `gpus` of each host, processors are called after their hosts: h0-1, h0-2, ...
    """
    n, per_host = whole("processors", processors, 1), whole("cores", cores, 1)
    times, counts = _waves(n, *_checked_joins(join_every, join_share, join_until))
    host = _hosts(counts, per_host)
    first, hosts = -(-n // per_host), int(host[-1]) + 1
    rng = np.random.Generator(np.random.PCG64(whole("seed", seed, 0, 2**128)))
    later = rng.spawn(2)  # streams of their own, so that joins leave the first hosts as they are
    speed = positive("speed", speed)
    width = number("heterogeneity", heterogeneity, 0, 2)
    speeds = speed * _per_host(rng, later[0], first, hosts, width)
    width = number("price_noise", price_noise, 0, 2)
    prices = number("price", price) * speeds / speed * _per_host(rng, later[1], first, hosts, width)
    network = Link(
        1.0 / positive("bandwidth", bandwidth),
        number("startup", startup),
        number("transfer_price", transfer_price),
    )
    width = number("bandwidth_spread", bandwidth_spread, 0, 2)
    per_unit = network.time_per_unit / _symmetric(rng, first, hosts, width)
    made = _assemble(host, speeds, prices, per_unit, network, np.repeat(times, counts))
    made = with_amounts(made, memory, gpus, seed)
    unit = number("billing", billing)
    return replace(made, billing=np.full(made.n_processors, unit)) if unit else made


def growing_platform(processors: int, every: float, share: float, until: float) -> Platform:
    """Processors alike and free of charge, a host each, all links of bandwidth 1; more join.

    The pool of Yu, Shi (section 4.2): at every, 2 every, ... up to `until`, share x processors
    more join (rounded, at least 1). None join where one of the three is 0.
    """
    n = whole("processors", processors, 1)
    every, share = number("every", every), number("share", share)
    times, counts = _waves(n, every, share, number("until", until))
    host = _hosts(counts, 1)
    total = len(host)
    links = np.ones((total, total))
    joins = np.repeat(times, counts)
    return _assemble(host, np.ones(total), np.zeros(total), links, Link(), joins)


def _checked_joins(every: float, share: float, until: float) -> tuple[float, float, float]:
    """All three options or none: with some of them it is not said who joins."""
    every, share = number("join_every", every), number("join_share", share)
    until = number("join_until", until)
    given = {"join_share": share, "join_every": every, "join_until": until}
    used = [name for name, value in given.items() if value > 0]
    missing = [name for name in given if name not in used]
    if used and missing:
        problem = f"needs {' and '.join(missing)} too; all three say how many join, and when"
        raise InputError(problem, place=used[0])
    if until < every:
        raise InputError(f"must be at least join_every ({every:g})", place="join_until")
    return every, share, until


def _waves(n: int, every: float, share: float, until: float) -> tuple[FloatArray, IntArray]:
    """When processors come and how many: n at 0, then those that join each time."""
    each = max(1, round(share * n))
    # 3 x 0.1 is a little more than 0.3, and is meant to be as much
    joins = int(min(until / every + 1e-9, MAX_NUMBER)) if every > 0 and share > 0 else 0
    check_size("processors", n + joins * each, MAX_TASKS)
    times = np.minimum(every * np.arange(joins + 1), until)
    counts = np.append(n, np.full(joins, each)).astype(np.int32)
    return times, counts


def _hosts(counts: IntArray, cores: int) -> IntArray:
    """The host of each processor; those that come at different times share none."""
    needed = -(-counts // cores)
    hosts = int(needed.sum())
    if hosts > MAX_HOSTS:
        raise InputError(f"{hosts:,} hosts; the most is {MAX_HOSTS:,}", place="processors")
    before = np.cumsum(needed) - needed
    place = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    host: IntArray = (np.repeat(before, counts) + place // cores).astype(np.int32)
    return host


def _assemble(
    host: IntArray,
    speeds: FloatArray,
    prices: FloatArray,
    per_unit: FloatArray,
    network: Link,
    joins: FloatArray,
) -> Platform:
    """The platform from its hosts' speeds and prices; host says where each processor is."""
    n, hosts = len(host), len(speeds)
    names = tuple(f"p{i}" for i in range(n))
    startup = np.full((hosts, hosts), network.startup)
    price = np.full((hosts, hosts), network.price)
    for link in (startup, per_unit, price):
        np.fill_diagonal(link, 0.0)  # inside a host a transfer takes no time, and is free
    return Platform(
        processor_names=names,
        host_names=names if hosts == n else tuple(f"h{i}" for i in range(hosts)),
        host=host,
        speed=speeds[host],
        price=prices[host],
        joins=joins,
        leaves=np.full(n, np.inf),
        startup=startup,
        time_per_unit=per_unit,
        network=network,
        link_price=price,
    )


def _around_one(rng: np.random.Generator, count: int, width: float) -> FloatArray:
    """Uniform in 1 - width/2 .. 1 + width/2, the lower end excluded: no speed is 0."""
    factors: FloatArray = 1.0 + width * (0.5 - rng.random(count))
    return factors


def _per_host(
    rng: np.random.Generator, later: np.random.Generator, first: int, hosts: int, width: float
) -> FloatArray:
    """One factor per host; those of the hosts after the first come from a stream of their own."""
    return np.append(_around_one(rng, first, width), _around_one(later, hosts - first, width))


def _symmetric(rng: np.random.Generator, first: int, hosts: int, width: float) -> FloatArray:
    """One factor per pair of hosts, the first hosts first; exactly 1 where there is no spread."""
    factors = np.ones((hosts, hosts))
    if width > 0:
        a, b = np.triu_indices(first, 1)
        factors[a, b] = factors[b, a] = _around_one(rng, len(a), width)
    if width > 0 and hosts > first:
        a, b = np.tril_indices(hosts, -1)  # host by host, so that more hosts leave these alone
        a, b = a[a >= first], b[a >= first]
        factors[a, b] = factors[b, a] = _around_one(rng, len(a), width)
    return factors
