"""How often tests of random cases repeat: a few times, or as often as is asked for.

`make chaos` asks for many, from a seed that it prints: FOREPLAN_CHAOS and FOREPLAN_SEED.
"""

from __future__ import annotations

import os

MANY = int(os.environ.get("FOREPLAN_CHAOS", "0"))
FIRST = int(os.environ.get("FOREPLAN_SEED", "0"))


def repetitions(few: int, share: float = 1.0) -> range:
    """Seeds of a test: a few, or the share of as many as are asked for."""
    return range(FIRST, FIRST + max(few, round(MANY * share)))


def examples(few: int) -> int:
    """How many examples Hypothesis looks at: a few, or ten for each repetition."""
    return max(few, 10 * MANY)
