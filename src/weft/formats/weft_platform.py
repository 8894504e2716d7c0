"""The weft platform: processors, the network and its links, as YAML and JSON hold them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from weft.errors import InputError
from weft.formats.fields import (
    check_fields,
    divisor,
    mapping,
    name,
    number,
    plain,
    sequence,
    shown,
    unknown,
    wrong,
)
from weft.model import Link, Platform, Processor

FIELDS = ("processors", "network", "links")
NUMBERS = ("speed", "price", "billing", "joins", "leaves")
PROCESSOR_FIELDS = (*NUMBERS, "host")
LINK_FIELDS = ("bandwidth", "time_per_unit", "startup", "price")
_MOST_HOSTS = 10_000  # the links are three tables of hosts x hosts

Pair = tuple[str, str]


def platform_from_dict(content: Mapping[str, object]) -> Platform:
    """A platform from the content of a weft file."""
    document = mapping(content)
    if "processors" not in document and ("tasks" in document or "workflow" in document):
        raise InputError("this is a workflow, not a platform")
    check_fields(document, FIELDS)
    if "processors" not in document:
        raise InputError("the field 'processors' is missing")
    processors = _processors(document["processors"])
    hosts = {p.host or p.name for p in processors}
    if len(hosts) > _MOST_HOSTS:
        raise wrong(f"there are {len(hosts):,} hosts; at most {_MOST_HOSTS:,}", "processors")
    network = _link(document.get("network"), Link(), "network")
    links = _links(document.get("links"), network, processors)
    if math.isinf(network.time_per_unit):
        _check_unlinked(list(dict.fromkeys(p.host or p.name for p in processors)), links)
    return Platform.build(processors, network, links)


def _processors(section: object) -> list[Processor]:
    processors: dict[str, Processor] = {}
    for key, body in mapping({} if section is None else section, "processors").items():
        processor = name(key, "processors")
        if processor in processors:
            raise wrong(f"the processor {shown(processor)} is given twice", "processors")
        fields = mapping({} if body is None else body, "processors", processor)
        processors[processor] = _processor(processor, fields)
    if not processors:
        raise wrong("the platform has no processors", "processors")
    return list(processors.values())


def _processor(processor: str, fields: Mapping[object, object]) -> Processor:
    place = ("processors", processor)
    check_fields(fields, PROCESSOR_FIELDS, *place)
    given = {key: number(fields[key], *place, key) for key in NUMBERS if key in fields}
    if given.get("speed") == 0:
        raise wrong("the speed must be more than 0", *place, "speed")
    for key in ("speed", "billing"):  # a billing unit of 0 is paid per second
        divisor(given.get(key, 1.0), *place, key)
    joins, leaves = given.get("joins", 0.0), given.get("leaves", math.inf)
    if leaves <= joins:
        problem = f"the processor leaves at {leaves:g}, not after it joins at {joins:g}"
        raise wrong(problem, *place, "leaves")
    host = name(fields["host"], *place, "host") if "host" in fields else None
    return Processor(processor, host, **given)


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
    for i, entry in enumerate(sequence([] if section is None else section, "links")):
        parts = sequence(entry, "links", i)
        if len(parts) != 3:
            raise wrong(f"expected [host, host, {{fields}}], not {shown(entry)}", "links", i)
        a, b = (_host(part, hosts, host_of, i) for part in parts[:2])
        if a == b:
            problem = f"both ends are the host {shown(a)}; inside a host a transfer takes no time"
            raise wrong(problem, "links", i)
        if (a, b) in links or (b, a) in links:
            raise wrong(f"the link of {shown(a)} and {shown(b)} is given twice", "links", i)
        link = links[a, b] = _link(parts[2], network, "links", i)
        if math.isinf(link.time_per_unit):
            raise wrong(f"the bandwidth between {shown(a)} and {shown(b)} is 0", "links", i)
    return links


def _host(value: object, hosts: set[str], host_of: Mapping[str, str], link: int) -> str:
    host = name(value, "links", link)
    if host in hosts:
        return host
    if host in host_of:
        problem = f"{shown(host)} is a processor, on the host {shown(host_of[host])}"
        raise wrong(f"{problem}: a link is between hosts", "links", link)
    raise unknown("host", host, hosts, "links", link)


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
    """The content of a weft file."""
    content: dict[str, object] = {"processors": _processor_fields(platform)}
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
        raise InputError("a weft file cannot hold a link that differs by direction")
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
