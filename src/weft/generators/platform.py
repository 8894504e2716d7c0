"""Random platforms: hosts of unlike speed, price and links."""

from __future__ import annotations

import numpy as np

from weft.arrays import FloatArray, IntArray
from weft.errors import InputError
from weft.generators.limits import number, positive, whole
from weft.model import Link, Platform

MAX_HOSTS = 5_000  # the links are a matrix of hosts x hosts


def generate_platform(
    processors: int = 4,
    *,
    cores: int = 1,
    speed: float = 1.0,
    heterogeneity: float = 0.5,
    bandwidth: float = 1.0,
    bandwidth_spread: float = 0.0,
    startup: float = 0.0,
    price: float = 1.0,
    price_noise: float = 0.2,
    seed: int = 0,
) -> Platform:
    """A random platform of processors p0, p1, ...; the cores of one host are alike.

    - A host's speed is uniform in speed (1 - heterogeneity/2) .. speed (1 + heterogeneity/2).
    - A link's bandwidth is uniform in the same way around `bandwidth`, by `bandwidth_spread`;
      it is the same in both directions. A transfer takes `startup` + size / bandwidth.
    - A host's price per second of a processor is price x speed / mean speed, times a factor
      uniform in 1 - price_noise/2 .. 1 + price_noise/2: without noise, the same work costs the
      same money on every host, and a faster one is no dearer in the end.

    `cores` processors share a host (the last host may have fewer); without, a processor is its
    own host.
    """
    n = whole("processors", processors, 1)
    per_host = whole("cores", cores, 1)
    hosts = -(-n // per_host)
    if hosts > MAX_HOSTS:
        raise InputError(f"{hosts:,} hosts; the most is {MAX_HOSTS:,}", place="processors")
    rng = np.random.Generator(np.random.PCG64(whole("seed", seed, 0, 2**128)))
    speed = positive("speed", speed)
    speeds = speed * _around_one(rng, hosts, number("heterogeneity", heterogeneity, 0, 2))
    noise = _around_one(rng, hosts, number("price_noise", price_noise, 0, 2))
    prices = number("price", price) * speeds / speed * noise
    network = Link(1.0 / positive("bandwidth", bandwidth), number("startup", startup))
    width = number("bandwidth_spread", bandwidth_spread, 0, 2)
    per_unit = network.time_per_unit / _symmetric(rng, hosts, width)
    np.fill_diagonal(per_unit, 0.0)  # inside a host a transfer takes no time
    return _assemble(np.arange(n, dtype=np.int32) // per_host, speeds, prices, per_unit, network)


def _assemble(
    host: IntArray, speeds: FloatArray, prices: FloatArray, per_unit: FloatArray, network: Link
) -> Platform:
    """The platform from its hosts' speeds and prices; host says where each processor is."""
    n, hosts = len(host), len(speeds)
    names = tuple(f"p{i}" for i in range(n))
    startup = np.full((hosts, hosts), network.startup)
    np.fill_diagonal(startup, 0.0)
    return Platform(
        processor_names=names,
        host_names=names if hosts == n else tuple(f"h{i}" for i in range(hosts)),
        host=host,
        speed=speeds[host],
        price=prices[host],
        joins=np.zeros(n),
        leaves=np.full(n, np.inf),
        startup=startup,
        time_per_unit=per_unit,
        network=network,
    )


def _around_one(rng: np.random.Generator, count: int, width: float) -> FloatArray:
    """Uniform in 1 - width/2 .. 1 + width/2, the lower end excluded: no speed is 0."""
    factors: FloatArray = 1.0 + width * (0.5 - rng.random(count))
    return factors


def _symmetric(rng: np.random.Generator, hosts: int, width: float) -> FloatArray:
    """One factor per pair of hosts; exactly 1 where there is no spread."""
    factors = np.ones((hosts, hosts))
    if width > 0:
        a, b = np.triu_indices(hosts, 1)
        factors[a, b] = factors[b, a] = _around_one(rng, len(a), width)
    return factors
