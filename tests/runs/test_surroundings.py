"""Runs whose commands have variables, or run in containers and conda environments: stand-ins."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import foreplan
from foreplan.errors import InputError
from foreplan.executors.base import Workload
from foreplan.executors.containers import end_containers
from foreplan.runs import Options, find_rest
from foreplan.runs.shells import task_place

STAND_IN = f"""#!{sys.executable}
import json, os, sys
words, kind = sys.argv[1:], os.path.basename(sys.argv[0])
with open(os.environ.get("SEEN") or {{seen!r}}, "a") as file:
    file.write(json.dumps([kind, *words]) + "\\n")
if words[0] == "ps":
    print("one two")
if words[0] not in ("run", "exec"):
    sys.exit()
environment, place, entry = dict(os.environ), os.getcwd(), []
at = 1
while at < len(words) and words[at].startswith("-"):
    option, value = words[at], words[at + 1]
    at += 1 if option in ("--rm", "--no-capture-output") else 2
    if option in ("--pwd", "--workdir"):
        place = value
    if option == "--entrypoint":
        entry = [value]
if kind == "docker":
    passed = [words[k + 1] for k, word in enumerate(words) if word == "--env"]
    environment = {{{{name: os.environ[name] for name in ["PATH", *passed]}}}}
os.chdir(place)
rest = words[at:] if kind == "conda" else words[at + 1 :]
os.execvpe([*entry, *rest][0], [*entry, *rest], environment)
"""


class Place:
    """A data directory, and programs that pretend to be engines."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.data, self.bin, self._seen = folder / "data", folder / "bin", folder / "seen"
        for place in (self.data, self.bin):
            place.mkdir()
        for name in ("sh", "bash", "dirname"):
            os.symlink(shutil.which(name) or "", self.bin / name)
        patch.setenv("PATH", str(self.bin))
        patch.delenv("CONDA_EXE", raising=False)

    def add(self, *names: str) -> None:
        for name in names:
            path = self.bin / name
            path.write_text(STAND_IN.format(seen=str(self._seen)))
            path.chmod(0o755)

    def run(self, run: str, output: str = "out", **fields: Any) -> str:
        """What a task has put into its output."""
        tasks = {"t": {"run": run, "outputs": [output], **fields}}
        outcome = foreplan.run({"tasks": tasks}, "local:1", dir=self.data)
        assert outcome.ok, outcome.failures
        return (self.data / output).read_text()

    def seen(self) -> list[list[str]]:
        """How the programs were called, since this was asked last."""
        lines = self._seen.read_text().splitlines() if self._seen.exists() else []
        self._seen.unlink(missing_ok=True)
        return [json.loads(line) for line in lines]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return Place(tmp_path, monkeypatch)


TELL = 'echo "$FOREPLAN_TASK ${A:-none} $PWD" > out'


def test_variables_are_seen_and_are_part_of_the_key(place: Place) -> None:
    assert place.run("echo $A $OMP_NUM_THREADS > out", env={"A": "x", "OMP_NUM_THREADS": 7}) == (
        "x 7\n"
    )
    tasks = {"t": {"run": "echo $A $OMP_NUM_THREADS > out", "outputs": ["out"]}}
    for env, why in (
        ({"A": "x", "OMP_NUM_THREADS": "7"}, None),
        ({"A": "y", "OMP_NUM_THREADS": "7"}, "its variable A has changed"),
        ({"A": "x"}, "its variable OMP_NUM_THREADS has changed"),
    ):
        workflow = foreplan.load({"tasks": {"t": tasks["t"] | {"env": env}}})
        rest = find_rest(workflow, Options(directory=place.data))
        assert rest.reasons == ({} if why is None else {"t": why})


def test_a_run_that_is_resumed_and_a_kept_script_have_the_variables(place: Place) -> None:
    tasks: dict[str, dict[str, Any]] = {
        "t": {"run": "test -e $FOREPLAN_DIR/ok; echo $A > out", "outputs": ["out"]}
    }
    tasks["t"]["env"] = {"A": "it's x"}
    failed = foreplan.run({"tasks": tasks}, "local:1", dir=place.data)
    assert not failed.ok
    (kept,) = (failed.home / "attempts").glob("*.failed")
    assert "export A=" in (kept / "command.sh").read_text()
    (place.data / "ok").touch()
    subprocess.run([kept / "command.sh"], check=True)
    assert (kept / "out").read_text() == "it's x\n"
    assert foreplan.run({"tasks": tasks}, "local:1", dir=place.data, resume=failed.id).ok
    assert (place.data / "out").read_text() == "it's x\n"
    work = Workload(foreplan.load({"tasks": tasks}), directory=place.data)
    with task_place(work, 0) as shell:
        assert shell.environment["A"] == "it's x"


def apptainer(data: Path, place: str) -> list[str]:
    return ["apptainer", "exec", "--bind", str(data), "--pwd", place, "docker://tool:1"]


def test_apptainer_runs_a_command(place: Place) -> None:
    place.add("apptainer", "docker")
    task, a, where = place.run(TELL, container="tool:1", env={"A": "x"}).split()
    assert (task, a) == ("t", "x")
    (words,) = place.seen()
    assert words[:7] == apptainer(place.data, where)
    assert words[-1] == TELL
    assert where.startswith(str(place.data / ".foreplan"))


def test_docker_is_told_who_where_and_with_what(place: Place) -> None:
    place.add("docker")
    task, a, where = place.run(TELL, container="docker://tool:1", env={"A": "x"}).split()
    assert (task, a) == ("t", "x")
    (words,) = place.seen()
    pairs = list(pairwise(words))
    assert ("--user", f"{os.getuid()}:{os.getgid()}") in pairs
    assert ("--volume", f"{place.data}:{place.data}") in pairs
    assert ("--workdir", where) in pairs
    assert {"A", "FOREPLAN_DIR", "FOREPLAN_TASK", "FOREPLAN_CORES"} <= {
        b for a, b in pairs if a == "--env"
    }
    assert words[words.index("--entrypoint") + 1 :][:3] == ["sh", "tool:1", "-c"]


def test_an_engine_can_be_chosen_and_a_shell_is_that_of_the_container(place: Place) -> None:
    place.add("apptainer", "podman")
    box = {"image": "tool:1", "engine": "podman"}
    assert place.run("echo x > out", shell="sh -e", container=box) == "x\n"
    (words,) = place.seen()
    assert words[0] == "podman"
    assert words[words.index("--entrypoint") + 1 :] == ["sh", "tool:1", "-e", "-c", "echo x > out"]


def test_an_image_of_the_directory_counts_by_its_content(place: Place) -> None:
    place.add("apptainer")
    (place.data / "tool.sif").write_text("1")
    place.run("echo x > out", container="tool.sif")
    (words,) = place.seen()
    assert str(place.data / "tool.sif") in words
    (place.data / "tool.sif").write_text("2")
    tasks = {"t": {"run": "echo x > out", "outputs": ["out"], "container": "tool.sif"}}
    rest = find_rest(foreplan.load({"tasks": tasks}), Options(directory=place.data))
    assert rest.reasons == {"t": "its input tool.sif has changed"}


@pytest.mark.parametrize("name", ["mine", "envs/mine"])
def test_conda_runs_a_command(place: Place, name: str) -> None:
    place.add("conda")
    assert place.run("echo $A > out\necho y >> out", conda=name, env={"A": "x"}) == "x\ny\n"
    (words,) = place.seen()
    which = ["-p", str(place.data / name)] if "/" in name else ["-n", name]
    assert words[:5] == ["conda", "run", "--no-capture-output", *which]


def test_the_container_is_part_of_the_key_but_not_the_engine(place: Place) -> None:
    place.add("docker", "podman", "conda")
    place.run("echo x > out", container="tool:1")

    def reasons(**fields: Any) -> dict[str, str]:
        tasks = {"t": {"run": "echo x > out", "outputs": ["out"], **fields}}
        return find_rest(foreplan.load({"tasks": tasks}), Options(directory=place.data)).reasons

    assert reasons(container={"image": "tool:1", "engine": "podman"}) == {}
    assert reasons(container="tool:2") == {"t": "its container has changed"}
    both = "its conda environment has changed; its container has changed"
    assert reasons(conda="mine") == {"t": both}
    assert reasons() == {"t": "its container has changed"}


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"container": "tool:1"}, "none of apptainer, singularity, docker, podman is on the PATH"),
        ({"container": {"image": "x", "engine": "docker"}}, "docker is not on the PATH"),
        ({"conda": "mine"}, "it needs conda, which is not on the PATH"),
    ],
)
def test_what_is_not_there_is_said_before_anything_begins(
    place: Place, fields: dict[str, Any], problem: str
) -> None:
    tasks = {"a": {"run": "echo x > a", "outputs": ["a"]}, "t": {"run": "true", **fields}}
    with pytest.raises(InputError, match=f"t cannot be run: .*{problem}"):
        foreplan.run({"tasks": tasks}, "local:1", dir=place.data)
    assert not list(place.data.iterdir())


def test_an_image_that_is_not_there_is_said(place: Place) -> None:
    place.add("apptainer")
    with pytest.raises(InputError, match=r"its container 'tool\.sif' is not there"):
        foreplan.run({"tasks": {"t": {"run": "true", "container": "tool.sif"}}}, dir=place.data)


def test_a_failed_command_is_kept_as_a_script_that_runs_it_there(place: Place) -> None:
    place.add("docker")
    tasks: dict[str, dict[str, Any]] = {
        "t": {"run": "echo $A > out; test -e $FOREPLAN_DIR/ok", "env": {"A": "x"}}
    }
    tasks["t"] |= {"container": "tool:1"}
    failed = foreplan.run({"tasks": tasks}, "local:1", dir=place.data)
    ran, ended = place.seen()
    name = ran[ran.index("--name") + 1]
    assert ended == ["docker", "rm", "--force", name]
    (kept,) = (failed.home / "attempts").glob("*.failed")
    (place.data / "ok").touch()
    (kept / "out").unlink()
    subprocess.run([kept / "command.sh"], check=True)
    assert (kept / "out").read_text() == "x\n"
    (again,) = place.seen()
    assert "--name" not in again
    assert again[again.index("--workdir") + 1] == str(kept)


def test_containers_of_a_killed_run_are_ended(place: Place) -> None:
    place.add("docker")
    end_containers("/some/home")
    asked, ended = place.seen()
    assert asked[:3] == ["docker", "ps", "--quiet"]
    assert ended == ["docker", "rm", "--force", "one", "two"]
