"""Killed after processors were added and drained: the run goes on with what it had."""

from __future__ import annotations

import pytest

from chaos.runs import (
    Place,
    check_nothing_repeated,
    ended,
    killed,
    rebuilt,
    sums,
    until,
    write,
)
from foreplan.model.events import ProcessorGone
from repeated import repetitions
from runs.people import nothing_starts_where_it_leaves

STRATEGIES = ("aheft", "fifo", "slack")


def changed(place: Place, *options: str) -> None:
    code, output = ended(place.foreplan("machines", "last", *options))
    assert code == 0, output


@pytest.mark.parametrize("seed", repetitions(few=1, share=0.05))
def test_added_and_drained_before_a_kill(place: Place, seed: int) -> None:
    work = sums(40, seed, extra='while ! test -e "$FOREPLAN_DIR/go"; do sleep 0.01; done; ')
    strategy = STRATEGIES[seed % len(STRATEGIES)]
    process = place.foreplan("run", write(place, work), "--on", "local:1", "--strategy", strategy)
    until(lambda: len(list(place.records.iterdir())) == 1, "the first task")
    changed(place, "--add", "2")
    changed(place, "--drain", "local-1")
    changed(place, "--drain", "local-2", "--in", "1000")
    killed(process)
    (place.data / "go").touch()
    code, output = ended(place.foreplan("resume", "last"))
    assert code == 0, output
    work.check(place)
    check_nothing_repeated(place, [])
    run = rebuilt(place).run()
    nothing_starts_where_it_leaves(run)
    assert run.platform.processor_names == ("local-1", "local-2", "local-3")
    assert run.attempts.processor.tolist().count(0) == 1  # the one that was under way then
    assert set(run.attempts.processor.tolist()) == {0, 1, 2}
    assert not [e for e in run.changes if isinstance(e, ProcessorGone)]
