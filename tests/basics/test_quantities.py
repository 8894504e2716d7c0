"""Durations and amounts as people write them."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from foreplan.quantities import amount, duration, precise

WRITTEN = {
    0.0: "0 s",
    3e-7: "300 ns",
    0.00012: "120 µs",
    0.12: "120 ms",
    3.2: "3.2 s",
    54.4477: "54.4 s",
    59.96: "1 min",
    67.0: "1 min 7 s",
    3599.7: "1 h",
    3812.45: "1 h 4 min",
    86399.9: "1 d",
    1.52e6: "17 d 14 h",
    1e9: "11,574 d 2 h",
    -80.0: "-1 min 20 s",
}
FINE = {
    0.0: "0 s",
    0.12: "120 ms",
    54.4477: "54.4477 s",
    80.45: "1 min 20.45 s",
    3599.999: "1 h",
    3812.45: "1 h 3 min 32 s",
    1.52e6: "17 d 14 h 13 min",
    1e9: "11,574 d 1 h 47 min",
}


@pytest.mark.parametrize(("seconds", "text"), WRITTEN.items())
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(("seconds", "text"), FINE.items())
def test_durations_that_are_compared(seconds: float, text: str) -> None:
    assert duration(seconds, 3) == text


def test_what_is_no_duration() -> None:
    assert (duration(float("inf")), duration(float("nan"))) == ("never", "-")


def test_the_plain_seconds_beside_it() -> None:
    assert [precise(s) for s in (5.5, 80.0, 3812.45, 1.52e6)] == [
        "5.5 s", "1 min 20 s (80 s)", "1 h 4 min (3,812.45 s)", "17 d 14 h (1,520,000 s)",
    ]  # fmt: skip


def test_no_size_has_an_exponent() -> None:
    for power in range(-12, 16):
        for digit in (1, 1.23456789, 5.5, 9.999999):
            value = digit * 10.0**power
            said = [duration(value), duration(value, 3), precise(value), amount(value)]
            assert not [text for text in said if re.search(r"\de[+-]?\d", text)], said


def test_amounts() -> None:
    assert [amount(v) for v in (0.0, 0.31, 12.3456789, 1.2e6, 1234567.8, 1e-7)] == [
        "0", "0.31", "12.3457", "1,200,000", "1,234,568", "0.0000001",
    ]  # fmt: skip


@pytest.mark.skipif(shutil.which("node") is None, reason="no node here")
def test_the_page_writes_them_alike() -> None:
    import foreplan.charts

    text = (Path(foreplan.charts.__file__).parent / "gantt_data.js").read_text()
    start = text.index("function duration")
    body = text[start : text.index("\n}\n", start) + 3]
    seconds = [s for s in (*FINE, *WRITTEN, 59.9999994, 123.456, 86400 * 3.3) if s >= 0]
    asked = f"{body}\nconsole.log(JSON.stringify({json.dumps(seconds)}.map(duration)))"
    done = subprocess.run(["node", "-e", asked], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [duration(s, 3) for s in seconds]
