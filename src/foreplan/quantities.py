"""Durations, amounts, counts and lists as people write them; programs get plain numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

LONGEST = 80  # characters of a value in a message

_SHORT = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9))
_LONG = (("d", 86400), ("h", 3600), ("min", 60))
_STEPS = (8640000, 360000, 6000, 100, 1)  # a day, an hour, a minute, a second in hundredths


def duration(seconds: float, parts: int = 2) -> str:
    """A duration in one unit below a minute, else in two: 120 ms, 3.2 s, 1 min 7 s, 17 d 14 h.

    That is three digits. With three parts it is finer (54.4477 s, 1 min 20.45 s, 1 h 3 min 32 s):
    for tables whose rows are compared. `precise` adds the plain seconds.
    """
    if not math.isfinite(seconds):
        return "-" if math.isnan(seconds) else "never"
    if seconds < 0:
        return f"-{duration(-seconds, parts)}"
    digits = 3 * (parts - 1)
    if seconds == 0 or float(f"{seconds:.{digits}g}") < 60:
        return _short(seconds, digits)
    if seconds > 1e15:  # nobody waits for it
        return f"{seconds / 86400:,.0f} d"
    largest = next((i for i, (_, size) in enumerate(_LONG) if seconds >= size), len(_LONG) - 1)
    step = _STEPS[largest + parts - 1]
    left = round(seconds * 100 / step) * step
    said = []
    for (name, _), size in zip(_LONG, _STEPS, strict=False):
        count, left = divmod(left, size)
        said += [f"{count:,} {name}"] if count else []
    said += [f"{left / 100:g} s"] if left else []
    return " ".join(said[:parts])


def _short(seconds: float, digits: int) -> str:
    """Below a minute: the largest unit of which there is one at least."""
    if seconds == 0:
        return "0 s"
    fits = (u for u in _SHORT if float(f"{seconds / u[1]:.{digits}g}") >= 1)
    name, size = next(fits, _SHORT[-1])
    return f"{amount(seconds / size, digits)} {name}"


def precise(seconds: float) -> str:
    """A duration that is compared with other people's figures: 1 h 4 min (3,812.45 s)."""
    if not math.isfinite(seconds) or abs(seconds) < 60:
        return duration(seconds, 3)
    return f"{duration(seconds)} ({amount(seconds)} s)"


def amount(value: float, digits: int = 6) -> str:
    """A number, such as money, with so many digits and never an exponent: 1,200,000."""
    text = f"{value:,.{digits}g}"
    if "e" not in text:
        return text
    if abs(value) >= 1:
        return f"{value:,.0f}"
    places = digits - 1 - math.floor(math.log10(abs(value)))
    return f"{value:.{places}f}".rstrip("0")


def data_size(size: float) -> str:
    """Bytes as people write them: 2.1 GB."""
    if math.isinf(size):
        return "any amount"
    for unit, step in (("PB", 1e15), ("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= step:
            return f"{size / step:.3g} {unit}"
    return f"{size:,.0f} bytes"


def with_needs(place: str, cores: int, memory: float) -> str:
    """Where a task is, with what it holds there beyond one core: big-1 (4 cores, 8 GB)."""
    said = [many(cores, "core")] if cores > 1 else []
    said += [data_size(memory)] if memory > 0 else []
    return f"{place} ({', '.join(said)})" if said else place


def many(count: int, one: str, more: str = "") -> str:
    """A number and its noun."""
    return f"{count:,} {one if count == 1 else more or one + 's'}"


_STRAY_BYTE = re.compile(r"(?<!\\)\\udc([89a-f][0-9a-f])")


def quoted(text: str) -> str:
    """Return a text in quotes for a message; a byte that is not UTF-8 is shown as `\\xff`."""
    return repr(text) if text.isascii() else _STRAY_BYTE.sub(r"\\x\1", repr(text))


def first_few(names: Iterable[str], most: int = 5) -> str:
    """The first names of a list, and a sign if there are more."""
    shown = list(names)
    return ", ".join(shown[:most]) + (", ..." if len(shown) > most else "")


def against(actual: float, planned: float) -> str:
    """How far a figure is from its plan: +3.2%."""
    return f"{actual / planned - 1:+.1%}" if planned > 0 else "-"


def shortened(text: str, longest: int = LONGEST) -> str:
    """Without its middle: the ends of a name say what kind of thing it is, and which one."""
    if len(text) <= longest:
        return text
    head = longest // 2
    return text[:head] + "\u2026" + text[len(text) - (longest - 1 - head) :]
