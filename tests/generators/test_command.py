"""`foreplan generate`: one command per family, with the family's options and defaults."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from foreplan.cli.generate import app
from foreplan.errors import InputError
from foreplan.formats import load, load_platform
from foreplan.formats.texts import parse_yaml
from foreplan.generators import (
    FAMILIES,
    Costs,
    RequestOptions,
    generate,
    generate_platform,
    measured_ccr,
)

COMMANDS = {c.name: c for c in app.registered_commands if not c.hidden}


def invoke(*arguments: str) -> str:
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def defaults(command: str | None) -> dict[str, object]:
    callback = COMMANDS[command].callback
    assert callback is not None
    return {name: p.default for name, p in inspect.signature(callback).parameters.items()}


def test_a_command_for_every_family() -> None:
    assert set(COMMANDS) == {*FAMILIES, "platform"}


@pytest.mark.parametrize("family", FAMILIES)
def test_the_options_are_the_family_s(family: str) -> None:
    common = {**vars(Costs()), **vars(RequestOptions()), "seed": 0, "output": None}
    assert defaults(family) == FAMILIES[family].options | common


def test_the_options_of_the_platform() -> None:
    parameters = inspect.signature(generate_platform).parameters
    expected = {name: p.default for name, p in parameters.items()}
    assert defaults("platform") == {**expected, "output": None}


@pytest.mark.parametrize("command", COMMANDS)
def test_help_teaches_with_an_example_that_works(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    shown = invoke(command, "--help")
    line = next(line for line in shown.splitlines() if "Example: foreplan generate" in line)
    words = line.split("foreplan generate", 1)[1].split()
    monkeypatch.chdir(tmp_path)
    assert invoke(*words) == ""
    written = tmp_path / words[-1]
    if command == "platform":
        assert load_platform(written).n_processors == 8
    else:
        assert load(written).n_tasks > 0


def test_the_file_holds_the_workflow(tmp_path: Path) -> None:
    target = tmp_path / "fft.yaml"
    invoke("fft", "--points", "16", "--ccr", "2.5", "--seed", "7", "-o", str(target))
    expected, loaded = generate("fft", 7, points=16, ccr=2.5), load(target)
    assert loaded.task_names == expected.task_names
    assert np.array_equal(loaded.base_cost, expected.base_cost)
    assert np.array_equal(loaded.item_size, expected.item_size)
    assert measured_ccr(loaded) == pytest.approx(2.5)


@pytest.mark.parametrize("suffix", [".yaml", ".json"])
def test_montage_keeps_its_files_and_categories(tmp_path: Path, suffix: str) -> None:
    target = tmp_path / f"mosaic{suffix}"
    invoke("montage", "--images", "6", "--processors", "2", "-o", str(target))
    expected, loaded = generate("montage", images=6, processors=2), load(target)
    assert dict(loaded.specs) == dict(expected.specs)
    assert set(loaded.item_names or ()) == set(expected.item_names or ())
    assert measured_ccr(loaded) == pytest.approx(measured_ccr(expected))


def test_standard_output_is_yaml() -> None:
    printed = parse_yaml(invoke("chain", "--tasks", "3", "--processors", "2"))
    assert isinstance(printed, dict)
    assert list(printed["tasks"]) == ["n0", "n1", "n2"]
    assert list(printed["tasks"]["n0"]["cost"]) == ["p0", "p1"]
    assert invoke("fork-join") == invoke("fork_join")


def test_platform_round_trip(tmp_path: Path) -> None:
    options = ["--processors", "5", "--cores", "2", "--bandwidth-spread", "1", "--seed", "3"]
    target = tmp_path / "cluster.json"
    invoke("platform", *options, "-o", str(target))
    expected = generate_platform(5, cores=2, bandwidth_spread=1.0, seed=3)
    for loaded in (load_platform(target), load_platform(_printed(options))):
        assert loaded.host_names == expected.host_names
        assert np.array_equal(loaded.speed, expected.speed)
        assert loaded.time_per_unit == pytest.approx(expected.time_per_unit)


def test_the_help_of_the_platform_shows_how_more_join(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    shown = invoke("platform", "--help")
    line = next(
        line for line in shown.splitlines() if "foreplan generate platform --processors 10" in line
    )
    words = line.split("foreplan generate platform", 1)[1].split()
    expected = generate_platform(10, join_every=400, join_share=0.2, join_until=4000)
    assert expected.n_processors == 30
    assert np.array_equal(load_platform(_printed(words)).joins, expected.joins)


def test_the_overview_lists_every_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    shown = invoke("--help")
    assert all(f" {command} " in shown for command in COMMANDS)


def _printed(options: list[str]) -> dict[str, object]:
    content = parse_yaml(invoke("platform", *options))
    assert isinstance(content, dict)
    return content


def test_a_bad_option_is_an_input_error() -> None:
    with pytest.raises(InputError, match="points: must be a power of two"):
        invoke("fft", "--points", "12")
    assert CliRunner().invoke(app, ["fft", "--points", "many"]).exit_code == 2
    assert CliRunner().invoke(app, ["ftf"]).exit_code == 2


def test_the_commands_load_without_numpy() -> None:
    code = "import sys, foreplan.cli.generate; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
