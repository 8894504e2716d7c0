"""Hypothesis looks for new cases on every run; in CI it repeats the same ones."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

from cli.forked import end_all
from foreplan.scheduling.planners import _ladder, _search, cheapest_in_time

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # shells start what runs in the background so; commands that are interrupted would not hear it
    signal.signal(signal.SIGINT, signal.default_int_handler)

# no test fails by the clock: this machine may be a busy one
settings.register_profile("here", deadline=None)
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable" if os.environ.get("CI") else "here")


@pytest.fixture(scope="module")
def light_searches() -> Iterator[None]:
    """Planners that search do little of it, for tests of what holds of every planner."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_search, "POINTS", 3)
        patch.setattr(_search, "SWEEPS", 2)
        patch.setattr(_search, "PRICES_OF_TIME", (1.0,))
        patch.setattr(cheapest_in_time, "HALVINGS", 1)
        patch.setattr(_ladder, "RUNGS", 2)
        yield


@pytest.fixture(scope="session", autouse=True)
def history_of_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tests neither read nor write the history of who runs them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FOREPLAN_HOME", str(tmp_path_factory.mktemp("foreplan-home")))
        yield


@pytest.fixture(scope="session", autouse=True)
def no_progress() -> Iterator[None]:
    """Runs that Python drives show nothing, however slow the machine is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FOREPLAN_DISPLAY", "no")
        yield


@pytest.fixture(scope="session", autouse=True)
def groups_of_this_machine() -> Iterator[None]:
    """Its control groups are left alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FOREPLAN_CGROUPS", "no")
        yield


@pytest.fixture(scope="session", autouse=True)
def forked_commands() -> Iterator[None]:
    """Nothing waits for commands when the tests are over."""
    yield
    end_all()
