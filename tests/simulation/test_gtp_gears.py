"""The GTP family in both gears, in worlds where it has something to do."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from foreplan.model import ENDS, Run
from simulation.adapting import leaving
from simulation.worlds import Case, random_case, same_record

SPECS = ["gtp", "gtp/c", "gtp/r[period=100]", "gtp/c/r[period=4%]", "dls/sr"]


def both_gears(case: Case, spec: str) -> Run:
    natively, by_events = case.run(spec), case.run(spec, by_events=True)
    same_record(natively, by_events)
    return natively


def count(seen: Counter[str], run: Run) -> None:
    """What a run did that only this family does."""
    seen["restarts"] += run.restarts
    seen["migrations"] += run.migrations
    seen["forgotten"] += int(np.isfinite(run.transfers.forgotten).sum())
    seen["dropped"] += int(
        (run.transfers.forgotten[np.isinf(run.transfers.arrival)] < np.inf).sum()
    )
    seen["copies"] += run.copies_used
    seen["rewound"] += run.rewound
    seen["lost"] += int((run.attempts.end == ENDS.index("failed")).sum())


def look(spec: str, seeds: int) -> Counter[str]:
    seen: Counter[str] = Counter()
    for seed in range(seeds):
        for world in ({"stops": False}, {"losses": False}, {}):
            count(seen, both_gears(random_case(seed, **world), spec))
        count(seen, both_gears(leaving(seed), spec))
    return seen


@pytest.mark.parametrize("spec", SPECS)
def test_both_gears(spec: str) -> None:
    seen = look(spec, 9)
    wanted = {"rewound", "lost"}
    if spec != "dls/sr":
        wanted |= {"restarts", "migrations"}
    if spec.partition("[")[0] in ("gtp", "gtp/r"):
        wanted |= {"forgotten", "dropped"}
    elif spec != "dls/sr":
        wanted.add("copies")
    assert {what for what in wanted if not seen[what]} == set()
    if "forgotten" not in wanted:
        assert seen["forgotten"] == 0
    if spec == "dls/sr":
        assert seen["restarts"] == 0


@pytest.mark.parametrize(("one", "other"), [("gtp", "gtp/r"), ("gtp/c", "gtp/c/r")])
def test_every_strategy_rewinds(one: str, other: str) -> None:
    """So that the names with /r and those without mean the same."""
    for seed in range(400, 420):
        a, b = random_case(seed).run(one), random_case(seed).run(other)
        np.testing.assert_array_equal(a.attempts.start, b.attempts.start)
        np.testing.assert_array_equal(a.attempts.processor, b.attempts.processor)
        np.testing.assert_array_equal(a.transfers.source, b.transfers.source)
