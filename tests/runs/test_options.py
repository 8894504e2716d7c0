"""The options of a run are listed once: the library, `run` and `resume` have the same."""

from __future__ import annotations

import inspect
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import foreplan
from foreplan.cli.resume import resume
from foreplan.cli.run import run
from foreplan.runs.options import OWN_RESERVE, Flag, Options, flags

DEFAULTS: dict[str, Any] = {field.name: field.default for field in fields(Options)}


def test_the_library_has_every_option() -> None:
    given = dict(inspect.signature(foreplan.run).parameters)
    for own in ("work", "resume", "listener", "progress"):
        del given[own]
    given["directory"] = given.pop("dir")
    assert set(given) == set(DEFAULTS)
    for name, parameter in given.items():
        if parameter.default is not None:  # which stands for the default, or on resume for no other
            assert type(DEFAULTS[name])(parameter.default) == DEFAULTS[name], name


def test_the_command_has_every_option_with_a_flag() -> None:
    given = inspect.signature(run).parameters
    own = ["workflow", *flags(), "targets", "dry", "as_json", "quiet", "detach", "notify"]
    assert list(given) == [*own, "assigned", "params"]
    defaults = {name: given[name].default for name in flags()}
    assert Options.from_flags(defaults) == Options()
    of_functions = {"keep_results", "mismatch", "tasks_per_worker"}
    others = {*of_functions, "targets", "params"}  # an argument; two options
    assert set(DEFAULTS) - set(flags()) == others


def test_a_resume_has_those_that_may_be_others() -> None:
    given = inspect.signature(resume).parameters
    assert [name for name in given if name in DEFAULTS and name != "directory"] == list(
        flags(resuming=True)
    )
    assert all(given[name].default is None for name in flags(resuming=True))


@pytest.mark.parametrize(("name", "flag"), flags().items())
def test_every_flag_says_what_it_is_for(name: str, flag: Flag) -> None:
    assert flag.help.endswith(".")


def test_what_the_command_reads() -> None:
    given = {name: p.default for name, p in inspect.signature(run).parameters.items()}
    given = {name: given[name] for name in flags()}
    asked = Options.from_flags(
        {**given, "use_history": True, "price": ["fast*=0.02/3600"], "budget": 3.0}
    )
    assert not asked.use_history
    assert asked.price == (("fast*", 0.02, 3600.0),)
    assert asked.reserve == OWN_RESERVE


def test_what_the_library_reads() -> None:
    asked = Options.from_keywords({"dir": "data", "on": None, "retries": 2, "work": "x.yaml"})
    assert asked == Options(directory=Path("data"), retries=2)
