"""A platform with machines more, and what is expected of them.

A machine like a known one has its speed, price, billing unit and costs, and a host of its own with
the links of the known one's host. Between two that are alike, and to the host that they are like,
the link (its price too) is the median of that host's links; the network's default where it has
none. A machine that is described has the network's default to everyone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from foreplan.arrays import BoolArray, FloatArray
from foreplan.errors import InputError, unknown_name
from foreplan.model import Estimates, Platform, Workflow
from foreplan.model.platform import Link
from foreplan.model.resources import Host
from foreplan.whatif.changes import Change, Machine

DESCRIBED = -1  # the host that a described machine is like


@dataclass(frozen=True, eq=False)
class Park:
    """The machines before the change, and how more of them are reckoned with."""

    workflow: Workflow
    platform: Platform
    estimates: Estimates
    measured: bool = False  # the estimates know more than the workflow's file
    one_host: bool = False  # more like one are on its host: all is one machine

    def grown(self, change: Change, at: float) -> tuple[Platform, Estimates]:
        """The platform with what is added, at its end, and the estimates for it."""
        asked = [machine for machine, count in change.add for _ in range(count)]
        if not asked:
            return self.platform, self.estimates
        old = self.platform
        hosts, origins, on = list(old.host_names), list(range(old.n_hosts)), list[int]()
        new, names = list[Machine](), list[str]()
        for machine, name in zip(asked, _new_names(asked, old), strict=True):
            home = self._home(machine)
            if home is None:
                home = len(hosts)
                hosts.append(name)
                like = machine.template
                origins.append(DESCRIBED if like is None else int(old.host[like]))
            for p, core in _cores(machine, name):
                new.append(replace(machine, template=p))
                names.append(core)
                on.append(home)
        links = self._links(np.array(origins))
        platform = Platform(
            processor_names=(*old.processor_names, *names),
            host_names=tuple(hosts),
            host=np.concatenate([old.host, np.array(on, dtype=np.int32)]),
            speed=np.concatenate([old.speed, [self._value(m, "speed") for m in new]]),
            price=np.concatenate([old.price, [self._value(m, "price") for m in new]]),
            joins=np.concatenate([old.joins, np.full(len(new), at)]),
            leaves=np.concatenate([old.leaves, np.full(len(new), np.inf)]),
            startup=links["startup"],
            time_per_unit=links["time_per_unit"],
            network=old.network,
            billing=np.concatenate([old.billing, [self._value(m, "billing") for m in new]]),
            link_price=links["price"],
            hosts=self._have(hosts, origins),
            pools=old.pools,
        )
        columns = np.stack([self._costs(machine) for machine in new], axis=1)
        cost = np.concatenate([self.estimates.cost, columns], axis=1)
        return platform, replace(self.estimates, cost=cost)

    def hosts(self) -> dict[str, tuple[int, ...]]:
        """The hosts that are called otherwise than any processor, with the numbers of theirs."""
        pf, found = self.platform, dict[str, tuple[int, ...]]()
        for p, host in enumerate(pf.host.tolist()):
            found[pf.host_names[host]] = (*found.get(pf.host_names[host], ()), p)
        return {host: cores for host, cores in found.items() if host not in pf.processor_names}

    def _have(self, hosts: list[str], origins: list[int]) -> tuple[Host, ...]:
        """What each host has beside its processors: as those that they are like."""
        known = self.platform.hosts
        if not known:
            return ()
        return tuple(
            Host(host) if like == DESCRIBED else replace(known[like], name=host)
            for host, like in zip(hosts, origins, strict=True)
        )

    def _home(self, machine: Machine) -> int | None:
        """The host that is there and takes the machine; None: a new one."""
        names = self.platform.host_names
        if machine.host is not None:
            if machine.host not in names:
                place = f"--add {machine.spec!r}"
                raise InputError(unknown_name("host", machine.host, names), place=place)
            return names.index(machine.host)
        if self.one_host:
            return int(self.platform.host[machine.template or 0])
        if machine.template is not None and not machine.cores:
            self._check_whole(machine, int(self.platform.host[machine.template]))
        return None

    def _check_whole(self, machine: Machine, host: int) -> None:
        """A core of a larger host has no amounts of its own to take along."""
        pf = self.platform
        if pf.hosts and pf.hosts[host].amounts and (pf.host == host).sum() > 1:
            name = pf.host_names[host]
            raise InputError(
                f"{machine.name!r} is a core of the host {name!r}, whose memory and other amounts "
                f"belong to all of it: add the host (--add {name}), or a core to one "
                f"(--add '{machine.name}[host={name}]')"
            )

    def _value(self, machine: Machine, name: str) -> float:
        """Its speed, price or billing unit: its own, or the template's."""
        given: float | None = getattr(machine, name)
        if given is not None or machine.template is None:
            return (given or 0.0) / (self._sharers(machine) if name == "price" else 1)
        return float(getattr(self.platform, name)[machine.template])

    def _sharers(self, machine: Machine) -> int:
        """The cores that share the price of a machine."""
        pf, like = self.platform, machine.template
        whole = like is not None and bool(pf.hosts) and pf.hosts[pf.host[like]].whole_price
        return len(machine.cores) if whole and machine.cores else 1

    def _costs(self, machine: Machine) -> FloatArray:
        """What every task takes there: as on the template, by relative speed."""
        cost, speeds, speed = (
            self.estimates.cost,
            self.platform.speed,
            self._value(machine, "speed"),
        )
        if machine.template is not None:
            scaled: FloatArray = cost[:, machine.template] * (speeds[machine.template] / speed)
            return scaled
        # nothing but costs by processor: scaled from their mean by relative speed
        mean: FloatArray = cost.mean(axis=1) * (float(speeds.mean()) / speed)
        if self.measured:
            return mean
        base = self.workflow.base_cost
        return np.where(np.isnan(base), mean, base / speed)

    def _links(self, origins: np.ndarray) -> dict[str, FloatArray]:
        """The fields of the links between all hosts, each of which is like an old one."""
        pf, known = self.platform, origins >= 0
        like = np.where(known, origins, 0)
        one, other = np.meshgrid(like, like, indexing="ij")
        alike = (one == other) & ~np.eye(len(origins), dtype=np.bool_)
        described: BoolArray = ~known[:, None] | ~known[None, :]
        typical = {host: self._typical(host) for host in set(like[pf.n_hosts :].tolist())}
        default = self._default() if described.any() else pf.network
        result = {}
        for name, table in _tables(pf).items():
            values = table[one, other]
            for host, link in typical.items():
                values[alike & (one == host)] = getattr(link, name)
            values[described] = getattr(default, name)
            np.fill_diagonal(values, 0.0)
            result[name] = values
        return result

    def _typical(self, host: int) -> Link:
        """The median of a host's links."""
        pf, others = self.platform, np.arange(self.platform.n_hosts) != host
        if not others.any():
            return self._default()
        return _median(pf, host, others)

    def _default(self) -> Link:
        """The network's default; where that is no connection, the median of all links."""
        pf, between = self.platform, ~np.eye(self.platform.n_hosts, dtype=np.bool_)
        if np.isfinite(pf.network.time_per_unit):
            return pf.network
        if not between.any():
            raise InputError(
                "nothing is known of the link to a new host: the network's bandwidth is 0; "
                "put the new processor on a host that is there, with [host=...]"
            )
        return _median(pf, between)


def _tables(platform: Platform) -> dict[str, FloatArray]:
    """Every field of the links, by pair of hosts."""
    return {
        "time_per_unit": platform.time_per_unit,
        "startup": platform.startup,
        "price": platform.link_price,
    }


def _median(platform: Platform, *where: Any) -> Link:
    """The median, field by field, of some links."""
    return Link(**{name: float(np.median(t[where])) for name, t in _tables(platform).items()})


def _cores(machine: Machine, name: str) -> list[tuple[int | None, str]]:
    """The processors that come with a machine of a name, and which each is like."""
    if not machine.cores:
        return [(machine.template, name)]
    return [(p, f"{name}-{k}") for k, p in enumerate(machine.cores, start=1)]


def _new_names(new: list[Machine], platform: Platform) -> Iterator[str]:
    """fast+1, fast+2, ...: names that no processor and no host has."""
    taken = {*platform.processor_names, *platform.host_names}
    last: Counter[str] = Counter()
    for machine in new:
        name = machine.name
        while name in taken or any(core in taken for _, core in _cores(machine, name)):
            last[machine.name] += 1
            name = f"{machine.name}+{last[machine.name]}"
        taken |= {name, *(core for _, core in _cores(machine, name))}
        yield name
