"""What real machines cost, as people say it: a price for all of them, or by their names."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from weft.errors import InputError
from weft.model import Platform
from weft.quantities import amount, duration

Rule = tuple[str, float, float]  # names as a pattern, money per second, billing unit (0: none)
EVERY = "*"
EXAMPLES = "`0.02` (per second), `NAME=0.02`, `fast*=0.02/3600` (paid per begun 3600 s)"


def read_price(text: str) -> Rule:
    """A price as the command line has it: `0.02`, `fast*=0.02`, `fast*=0.02/3600`."""
    pattern, equals, amount = text.rpartition("=")
    price, slash, billing = amount.partition("/")
    if equals and not pattern:
        raise InputError(f"{text!r} names no processor: {EXAMPLES}", place="--price")
    try:
        unit = float(billing) if slash else 0.0
        if slash and not unit > 0:
            raise ValueError
        return _checked(pattern or EVERY, float(price), unit)
    except ValueError:
        raise InputError(f"{text!r} is no price: {EXAMPLES}", place="--price") from None


def price_rules(price: Any) -> tuple[Rule, ...]:
    """A price as code has it: a number, or by pattern a number or a pair with a billing unit."""
    if price is None:
        return ()
    if isinstance(price, Mapping):
        return tuple(_rule(pattern, amount) for pattern, amount in price.items())
    if isinstance(price, Sequence) and not isinstance(price, str):
        return tuple(_rule(pattern, amount) for pattern, *amount in price)
    return (_rule(EVERY, price),)


def _rule(pattern: Any, amount: Any) -> Rule:
    numbers = list(amount) if isinstance(amount, tuple | list) else [amount]
    try:
        price, billing = map(float, numbers if len(numbers) > 1 else [*numbers, 0.0])
        return _checked(str(pattern), price, billing)
    except (TypeError, ValueError):
        raise InputError(
            f"{amount!r} is no price: give money per second, or a pair of that and a billing unit "
            "in seconds",
            place=f"price of {pattern}",
        ) from None


def _checked(pattern: str, price: float, billing: float) -> Rule:
    if not all(math.isfinite(number) and number >= 0 for number in (price, billing)):
        raise ValueError
    return pattern, price, billing


def priced(
    platform: Platform,
    machine: Callable[[int], str],
    rules: Sequence[Rule],
    transfer_price: float = 0.0,
    known: Platform | None = None,
) -> Platform:
    """The platform with these prices, the last that fits; what is known keeps what it has."""
    if not rules and not transfer_price:
        return platform
    price, billing = np.zeros(platform.n_processors), np.zeros(platform.n_processors)
    first = 0
    if known is not None:
        first = known.n_processors
        price[:first], billing[:first] = known.price, known.billing
    for p in range(first, platform.n_processors):
        names = names_of(platform, p, machine)
        for pattern, rate, unit in rules:
            if fits(pattern, names):
                price[p], billing[p] = rate, unit
    links = np.full((platform.n_hosts, platform.n_hosts), transfer_price)
    np.fill_diagonal(links, 0.0)
    network = replace(platform.network, price=transfer_price)
    return replace(platform, price=price, billing=billing, link_price=links, network=network)


def names_of(platform: Platform, p: int, machine: Callable[[int], str]) -> set[str]:
    """What a processor may be called: itself, its worker, its host, its machine."""
    name = platform.processor_names[p]
    return {name, name.partition("#")[0], platform.host_names[platform.host[p]], machine(p)}


def fits(pattern: str, names: set[str]) -> bool:
    """Whether a pattern means one of these names."""
    return pattern in names or any(fnmatchcase(name, pattern) for name in names)


def unused(platform: Platform, machine: Callable[[int], str], rules: Sequence[Rule]) -> list[str]:
    """Patterns that no processor fits, as far as they are known."""
    every = [names_of(platform, p, machine) for p in range(platform.n_processors)]
    return [rule[0] for rule in rules if not any(fits(rule[0], names) for names in every)]


def costs_money(platform: Platform) -> bool:
    """Whether anything there has a price."""
    return bool(platform.price.any() or platform.link_price.any())


def in_words(platform: Platform) -> str:
    """What the machines cost, in one line."""
    if not platform.price.any():
        return f"prices: processors are free, data {amount(platform.network.price)} per unit"
    least, most = float(platform.price.min()), float(platform.price.max())
    text = (
        f"prices: {amount(least)}" + (f" to {amount(most)}" if most > least else "") + " per second"
    )
    units = sorted(set(platform.billing[platform.billing > 0].tolist()))
    if units:
        some = "" if (platform.billing > 0).all() else "some "
        text += f", {some}paid per begun " + " or ".join(duration(u) for u in units)
    if platform.network.price:
        text += f"; data {amount(platform.network.price)} per unit"
    return text
