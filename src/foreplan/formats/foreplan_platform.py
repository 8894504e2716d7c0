"""The foreplan platform: processors, hosts, the network and its links, as YAML and JSON hold them.

A host with `cores` has as many processors, called `big-1`, `big-2` and so on, which stand after
those of `processors`. A host without says what the host of some processors has beside them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from foreplan.errors import InputError
from foreplan.formats.fields import (
    check_fields,
    divisor,
    listed,
    mapping,
    name,
    named,
    number,
    plain,
    sequence,
    shown,
    unknown,
    whole_number,
    wrong,
)
from foreplan.formats.resources import (
    check_memory,
    fixed_amount,
    memory_field,
    named_amounts,
    names_of,
    pools_of,
    size_field,
)
from foreplan.model import Link, Platform, Processor
from foreplan.model.amounts import Amount
from foreplan.model.resources import GPUS, MEMORY, Host

FIELDS = ("processors", "hosts", "pools", "network", "links")
NUMBERS = ("speed", "price", "billing", "joins", "leaves")
PROCESSOR_FIELDS = (*NUMBERS, "host")
HOST_FIELDS = ("cores", MEMORY, GPUS, "resources", *NUMBERS, "price_of", "labels")
LINK_FIELDS = ("bandwidth", "time_per_unit", "startup", "price")
_MOST_HOSTS = 10_000  # the links are three tables of hosts x hosts
_MOST_PROCESSORS = 1_000_000

Pair = tuple[str, str]


def platform_from_dict(content: Mapping[str, object]) -> Platform:
    """A platform from the content of a foreplan file."""
    document = mapping(content)
    is_platform = "processors" in document or "hosts" in document
    if not is_platform and ("tasks" in document or "workflow" in document):
        raise InputError("this is a workflow, not a platform")
    check_fields(document, FIELDS)
    if not is_platform:
        raise wrong("the field 'processors' is missing, or 'hosts'")
    processors = _processors(document)
    has = _read_hosts(document.get("hosts"), processors)
    if not processors:
        empty = "processors" if "processors" in document else "hosts"
        raise wrong("the platform has no processors", empty)
    hosts = list(dict.fromkeys(p.host or p.name for p in processors))
    if len(hosts) > _MOST_HOSTS:
        raise wrong(f"there are {len(hosts):,} hosts; at most {_MOST_HOSTS:,}", "processors")
    network = _link(document.get("network"), Link(), "network")
    links = _links(document.get("links"), network, processors)
    if math.isinf(network.time_per_unit):
        _check_unlinked(hosts, links)
    return Platform.build(processors, network, links, has, pools_of(document))


def _processors(document: Mapping[object, object]) -> list[Processor]:
    return [
        _processor(processor, mapping({} if body is None else body, "processors", processor))
        for processor, body in named(
            document.get("processors"), "the processor", "processors"
        ).items()
    ]


def _processor(processor: str, fields: Mapping[object, object]) -> Processor:
    place = ("processors", processor)
    check_fields(fields, PROCESSOR_FIELDS, *place)
    given = _numbers(fields, "processor", *place)
    host = name(fields["host"], *place, "host") if "host" in fields else None
    return Processor(processor, host, **given)


def _numbers(fields: Mapping[object, object], what: str, *place: str) -> dict[str, float]:
    """Speed, price, billing and when it is there: those that are given."""
    given = {key: number(fields[key], *place, key) for key in NUMBERS if key in fields}
    if given.get("speed") == 0:
        raise wrong("the speed must be more than 0", *place, "speed")
    for key in ("speed", "billing"):  # a billing unit of 0 is paid per second
        divisor(given.get(key, 1.0), *place, key)
    joins, leaves = given.get("joins", 0.0), given.get("leaves", math.inf)
    if leaves <= joins:
        problem = f"the {what} leaves at {leaves:g}, not after it joins at {joins:g}"
        raise wrong(problem, *place, "leaves")
    return given


def _read_hosts(section: object, processors: list[Processor]) -> dict[str, Host] | None:
    """What hosts have, if any has something; their cores are added to the processors."""
    taken = {p.name for p in processors}
    named_by = {p.host or p.name: p.name for p in reversed(processors)}
    billed = {p.host or p.name for p in processors if p.billing}
    has: dict[str, Host] = {}
    for host, body in named(section, "the host", "hosts").items():
        fields = mapping({} if body is None else body, "hosts", host)
        check_fields(fields, HOST_FIELDS, "hosts", host)
        has[host] = _host_has(host, fields)
        if has[host].whole_price and (fields.get("billing") or host in billed):
            problem = "the price of a whole host is paid by the second: leave out billing"
            raise wrong(f"{problem}, or give the price of a core", "hosts", host, "price_of")
        if "cores" in fields:
            cores = _cores(host, fields, named_by.get(host), taken)
            taken.update(core.name for core in cores)
            processors += cores
            if len(processors) > _MOST_PROCESSORS:
                raise wrong(f"there are more than {_MOST_PROCESSORS:,} processors", "hosts", host)
        else:
            _check_described(host, fields, host in named_by)
    return None if all(host.is_plain for host in has.values()) else has


def _host_has(host: str, fields: Mapping[object, object]) -> Host:
    place = ("hosts", host)
    check_memory(fields, *place)
    amounts = {MEMORY: fixed_amount(fields[MEMORY], *place, MEMORY)} if MEMORY in fields else {}
    if GPUS in fields:
        amounts[GPUS] = float(whole_number(fields[GPUS], *place, GPUS))
    for kind, amount in named_amounts(fields, *place).items():
        amounts[kind] = fixed_amount(amount.text, *place, "resources", kind)
    price_of = fields.get("price_of", "core")
    if price_of not in ("core", "host"):
        raise wrong(f"expected host or core, not {shown(price_of)}", *place, "price_of")
    return Host(host, amounts, names_of(fields, "labels", *place), price_of == "host")


def _cores(
    host: str, fields: Mapping[object, object], named_by: str | None, taken: set[str]
) -> list[Processor]:
    """The processors of a host that says how many cores it has."""
    place = ("hosts", host)
    cores = whole_number(fields["cores"], *place, "cores")
    if not 1 <= cores <= _MOST_PROCESSORS:
        shown_most = f"{_MOST_PROCESSORS:,}"
        raise wrong(f"a host has 1 to {shown_most} cores, not {cores:,}", *place, "cores")
    if named_by is not None:
        problem = f"the processor {shown(named_by)} is on this host: count it among the cores"
        raise wrong(f"{problem}, or leave out cores and list all as processors", *place)
    given = _numbers(fields, "host", *place)
    if fields.get("price_of") == "host":
        given["price"] = given.get("price", 0.0) / cores
    names = [f"{host}-{core}" for core in range(1, cores + 1)]
    clash = next((one for one in (host, *names) if one in taken), None)
    if clash is not None:
        problem = f"there is a processor {shown(clash)}, too"
        whose = "the name of this host" if clash == host else "a core of this host"
        raise wrong(f"{problem}: that is {whose}; call one of them something else", *place)
    return [Processor(core, host, **given) for core in names]


def _check_described(host: str, fields: Mapping[object, object], has_processors: bool) -> None:
    """A host without cores only says what the host of some processors has."""
    place = ("hosts", host)
    if not has_processors:
        problem = "it has no cores: say how many (cores: 4)"
        raise wrong(f"{problem}, or list processors with 'host: {host}'", *place)
    for key in NUMBERS:
        if key in fields:
            problem = f"without cores, {key} is said of each processor of the host"
            raise wrong(problem, *place, key)


def _link(section: object, default: Link, *place: str | int) -> Link:
    """A link; what it leaves silent is the default's. Bandwidth 0 is an infinite time per unit."""
    fields = mapping({} if section is None else section, *place)
    check_fields(fields, LINK_FIELDS, *place)
    if "bandwidth" in fields and "time_per_unit" in fields:
        raise wrong("give bandwidth or time_per_unit, not both", *place)
    per_unit = default.time_per_unit
    if "time_per_unit" in fields:
        per_unit = number(fields["time_per_unit"], *place, "time_per_unit")
    if "bandwidth" in fields:
        at = (*place, "bandwidth")
        bandwidth = divisor(number(fields["bandwidth"], *at), *at)
        per_unit = 1.0 / bandwidth if bandwidth else math.inf
    others = {
        key: number(fields[key], *place, key) for key in ("startup", "price") if key in fields
    }
    return replace(default, time_per_unit=per_unit, **others)


def _links(section: object, network: Link, processors: Sequence[Processor]) -> dict[Pair, Link]:
    host_of = {p.name: p.host or p.name for p in processors}
    hosts = set(host_of.values())
    links: dict[Pair, Link] = {}
    form = "[host, host, {fields}]"
    host = partial(_host, hosts, host_of)
    for i, (a, b), fields in by_hosts(section, "links", form, host):
        link = links[a, b] = _link(fields, network, "links", i)
        if math.isinf(link.time_per_unit):
            raise wrong(f"the bandwidth between {shown(a)} and {shown(b)} is 0", "links", i)
    return links


def by_hosts(
    section: object, where: str, form: str, host: Callable[..., str] = name
) -> Iterator[tuple[int, Pair, object]]:
    """The entries [host, host, value] of a section with their numbers, each pair of hosts once."""
    seen: set[Pair] = set()
    for i, entry in enumerate(listed(section, where)):
        parts = sequence(entry, where, i)
        if len(parts) != 3:
            raise wrong(f"expected {form}, not {shown(entry)}", where, i)
        a, b = (host(part, where, i) for part in parts[:2])
        if a == b:
            problem = f"both ends are the host {shown(a)}; inside a host a transfer takes no time"
            raise wrong(problem, where, i)
        if {(a, b), (b, a)} & seen:
            raise wrong(f"the link of {shown(a)} and {shown(b)} is given twice", where, i)
        seen.add((a, b))
        yield i, (a, b), parts[2]


def _host(hosts: set[str], host_of: Mapping[str, str], value: object, *place: str | int) -> str:
    host = name(value, *place)
    if host in hosts:
        return host
    if host in host_of:
        problem = f"{shown(host)} is a processor, on the host {shown(host_of[host])}"
        raise wrong(f"{problem}: a link is between hosts", *place)
    raise unknown("host", host, hosts, *place)


def _check_unlinked(hosts: Sequence[str], links: Mapping[Pair, Link]) -> None:
    """A network of bandwidth 0 is fine only if every pair of hosts has a link of its own."""
    if len(links) == len(hosts) * (len(hosts) - 1) // 2:
        return
    for i, a in enumerate(hosts):
        for b in hosts[i + 1 :]:
            if (a, b) not in links and (b, a) not in links:
                problem = f"the bandwidth is 0, and {shown(a)} and {shown(b)} have no other link"
                raise wrong(problem, "network", "bandwidth")


def platform_to_dict(platform: Platform) -> dict[str, object]:
    """The content of a foreplan file; a host's equal cores in one entry, if it has more to say."""
    fields = _processor_fields(platform)
    content: dict[str, object] = {}
    hosts: dict[str, object] = {}
    if any(not host.is_plain for host in platform.hosts):
        whole_hosts = _written_with_cores(platform, fields)
        others = (h for h in range(platform.n_hosts) if h not in whole_hosts)
        for h in (*others, *whole_hosts):  # the order in which their cores are read
            entry = whole_hosts.get(h, {}) | _host_fields(platform.hosts[h])
            hosts |= {platform.host_names[h]: entry} if entry else {}
        fields = {
            processor: body
            for (processor, body), h in zip(fields.items(), platform.host.tolist(), strict=True)
            if h not in whole_hosts
        }
    content |= {"processors": fields} if fields else {}
    content |= {"hosts": hosts} if hosts else {}
    if platform.pools:
        content["pools"] = {pool: plain(float(size)) for pool, size in platform.pools.items()}
    content["network"] = _link_fields(platform.network, Link())
    links = _link_entries(platform)
    return content | ({"links": links} if links else {})


def _processor_fields(platform: Platform) -> dict[str, dict[str, object]]:
    """Every processor with what differs from the default."""
    result: dict[str, dict[str, object]] = {}
    for i, processor in enumerate(platform.processor_names):
        default = Processor(processor)
        fields: dict[str, object] = {
            key: plain(float(getattr(platform, key)[i]))
            for key in NUMBERS
            if getattr(platform, key)[i] != getattr(default, key)
        }
        host = platform.host_names[platform.host[i]]
        result[processor] = fields | ({"host": host} if host != processor else {})
    return result


def _written_with_cores(
    platform: Platform, fields: Mapping[str, dict[str, object]]
) -> dict[int, dict[str, object]]:
    """By host, the entry that stands for its processors, where these are just its equal cores.

    Cores are read after the processors: the last hosts alone can be written so.
    """
    found: dict[int, dict[str, object]] = {}
    names, end = platform.processor_names, platform.n_processors
    counts = np.bincount(platform.host, minlength=platform.n_hosts).tolist()
    while end > 0:
        h = int(platform.host[end - 1])
        count = counts[h]
        entry = _host_with_cores(platform, h, count, [fields[p] for p in names[end - count : end]])
        host = platform.host_names[h]
        expected = tuple(f"{host}-{core}" for core in range(1, count + 1))
        if entry is None or names[end - count : end] != expected or host in fields:
            break
        found[h] = entry
        end -= count
    return dict(reversed(found.items()))


def _host_with_cores(
    platform: Platform, h: int, count: int, cores: Sequence[dict[str, object]]
) -> dict[str, object] | None:
    """The entry of a host whose cores are all the same; None if there is none to be exact."""
    if not cores or any(core != cores[0] for core in cores):
        return None
    entry = {"cores": count} | {key: v for key, v in cores[0].items() if key != "host"}
    if platform.hosts[h].whole_price and "price" in entry:
        each = float(platform.price[platform.host == h][0])
        if each * count / count != each or "billing" in entry:
            return None
        entry["price"] = plain(each * count)
    return entry


def _host_fields(host: Host) -> dict[str, object]:
    """What a host has beside its processors."""
    others = {kind: v for kind, v in sorted(host.amounts.items()) if kind not in (MEMORY, GPUS)}
    memory = Amount(str(size_field(host.amounts.get(MEMORY, 0.0))))
    return {
        **({MEMORY: memory_field(memory)} if MEMORY in host.amounts else {}),
        **({GPUS: plain(float(host.amounts[GPUS]))} if GPUS in host.amounts else {}),
        **({"resources": {kind: size_field(v) for kind, v in others.items()}} if others else {}),
        **({"price_of": "host"} if host.whole_price else {}),
        **({"labels": list(host.labels)} if host.labels else {}),
    }


def _link_fields(link: Link, default: Link) -> dict[str, object]:
    """The fields that read back as exactly this link, where others are the default's."""
    if math.isinf(link.time_per_unit):
        fields: dict[str, object] = {"bandwidth": 0}
    else:
        fields = {"time_per_unit": plain(link.time_per_unit)}
    for key in ("startup", "price"):
        value = float(getattr(link, key))
        if value != getattr(default, key):
            fields[key] = plain(value)
    return fields


def _link_entries(platform: Platform) -> list[list[object]]:
    """The links that are not the network's default."""
    tables = (platform.time_per_unit, platform.startup, platform.link_price)
    if not all(np.array_equal(table, table.T) for table in tables):
        raise InputError("a foreplan file cannot hold a link that differs by direction")
    network = platform.network
    usual = (network.time_per_unit, network.startup, network.price)
    other = np.zeros((platform.n_hosts, platform.n_hosts), dtype=np.bool_)
    for table, value in zip(tables, usual, strict=True):
        other |= table != value
    entries: list[list[object]] = []
    for a, b in np.argwhere(np.triu(other, 1)).tolist():
        link = Link(*(float(table[a, b]) for table in tables))
        names = [platform.host_names[a], platform.host_names[b]]
        entries.append([*names, _link_fields(link, network)])
    return entries
