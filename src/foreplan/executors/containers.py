"""Commands in a container or a conda environment: the words before them, and containers' ends."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterable
from contextlib import suppress
from hashlib import sha256

from foreplan.errors import InputError
from foreplan.executors.workspace import AttemptError
from foreplan.model.surroundings import APPTAINER, DOCKER, Surroundings
from foreplan.model.workflow import Workflow
from foreplan.quantities import shortened
from foreplan.shell import shell_words

# which shell there is only it itself knows; the command is its name
_USUAL = (
    'command -v bash >/dev/null 2>&1 && exec bash -c "set -euo pipefail; $0"; '
    'exec sh -c "set -eu; $0"'
)
_LABEL = "foreplan.run"
_PATIENCE = 60.0  # seconds for an engine to remove containers
_HERE = "@@foreplan-here@@"  # the directory of a script, whatever it is then


def words_inside(shell: str, command: str, data: str) -> list[str]:
    """A command as the words that run it where its shell is not looked for here."""
    if not shell:
        return ["sh", "-c", _USUAL, command]
    first, *rest = shell_words(shell)
    return [os.path.join(data, first) if "/" in first else first, *rest, command]


def wrapped(
    around: Surroundings,
    words: list[str],
    *,
    data: str,
    place: str,
    variables: Iterable[str],
    mark: tuple[str, int] | None = None,
) -> list[str]:
    """The words with what brings them into their surroundings before them.

    `variables` are the names of those that it must have; `mark` is the run's home and the number of
    the attempt, by which a container is found again.
    """
    if around.conda is not None:
        prefix = "/" in around.conda
        which = ["-p", os.path.join(data, around.conda)] if prefix else ["-n", around.conda]
        return [find_conda(), "run", "--no-capture-output", *which, *words]
    program = find_engine(around)
    kind, image = os.path.basename(program), around.container or ""
    mounts = [data] if f"{place}/".startswith(f"{data}/") or place == _HERE else [data, place]
    if kind in APPTAINER:
        image = os.path.join(data, image) if around.image_file is not None else image
        plain = "://" not in image and around.image_file is None
        binds = [word for folder in mounts for word in ("--bind", folder)]
        image = DOCKER + image if plain else image
        return [program, "exec", *binds, "--pwd", place, image, *words]
    binds = [word for folder in mounts for word in ("--volume", f"{folder}:{folder}")]
    given = [word for name in variables for word in ("--env", name)]
    first, *rest = words
    return [
        program, "run", "--rm", *_user(kind), *_marked(mark), *binds, "--workdir", place, *given,
        "--entrypoint", first, image.removeprefix(DOCKER), *rest,
    ]  # fmt: skip


def wrapped_script(around: Surroundings, words: list[str], data: str, names: Iterable[str]) -> str:
    """The same as a line of a script, in whose directory it runs."""
    found = wrapped(around, words, data=data, place=_HERE, variables=names)
    return " ".join(map(shlex.quote, found)).replace(_HERE, '"$PWD"')


def more_variables(around: Surroundings) -> dict[str, str]:
    """What an engine must find in its environment so that the variables count in the container."""
    if around.container is None or not around.env:
        return {}
    kind = os.path.basename(find_engine(around))
    return {f"{kind.upper()}ENV_{k}": v for k, v in around.env} if kind in APPTAINER else {}


def find_engine(around: Surroundings) -> str:
    """The program that runs containers here; an AttemptError if there is none."""
    for engine in around.engines:
        if (found := shutil.which(engine)) is not None:
            return found
    wanted = around.engines
    listed = wanted[0] if len(wanted) == 1 else f"none of {', '.join(wanted)}"
    said = f"{listed} is not" if len(wanted) == 1 else f"{listed} is"
    raise AttemptError(f"its container {around.container!r} needs an engine: {said} on the PATH")


def find_conda() -> str:
    """The conda of this machine, which may be a function of the shell alone."""
    found = shutil.which("conda") or shutil.which(os.environ.get("CONDA_EXE") or "conda")
    if found is None:
        raise AttemptError("it needs conda, which is not on the PATH")
    return found


def check_surroundings(workflow: Workflow, data: str) -> None:
    """Refuse what cannot be run here, before anything begins."""
    seen = set[Surroundings]()
    for task, spec in workflow.specs.items():
        around = spec.around
        if around is None or not around.is_wrapped or around in seen:
            continue
        seen.add(around)
        name = shortened(workflow.task_names[task])
        try:
            find_conda() if around.conda is not None else find_engine(around)
        except AttemptError as error:
            raise workflow.task_error(task, f"{name} cannot be run: {error}") from None
        if around.container is not None and any(c in data for c in ":,"):
            raise InputError(
                f"{name} cannot be run in a container: a path with ':' or ',' cannot be mounted",
                source=data,
            )
        image = around.image_file
        if image is not None and not os.path.exists(os.path.join(data, image)):
            problem = f"{name} cannot be run: its container {shortened(image)!r} is not there"
            raise workflow.task_error(task, problem, "container")


def has_containers(workflow: Workflow) -> bool:
    """Whether some task runs in one."""
    return any(s.around is not None and s.around.container for s in workflow.specs.values())


def end_container(around: Surroundings, home: str, attempt: int) -> None:
    """End the container of an attempt that was stopped: killing who asked for it is not enough."""
    with suppress(AttemptError):
        program = find_engine(around)
        if os.path.basename(program) not in APPTAINER:
            _ask(program, "rm", "--force", _name(home, attempt))


def end_containers(home: str) -> None:
    """End the containers of a run that was killed; they would write into its directories."""
    for engine in ("docker", "podman"):
        if (program := shutil.which(engine)) is not None:
            found = _ask(program, "ps", "--quiet", "--filter", f"label={_LABEL}={_mark(home)}")
            if found.split():
                _ask(program, "rm", "--force", *found.split())


def _ask(program: str, *words: str) -> str:
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(
            [program, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=_PATIENCE, check=False,
        )  # fmt: skip
        return done.stdout
    return ""


def _mark(home: str) -> str:
    return sha256(os.fsencode(home)).hexdigest()[:16]


def _name(home: str, attempt: int) -> str:
    return f"foreplan-{_mark(home)}-{attempt}"


def _marked(mark: tuple[str, int] | None) -> list[str]:
    return [] if mark is None else ["--name", _name(*mark), "--label", f"{_LABEL}={_mark(mark[0])}"]


def _user(kind: str) -> list[str]:
    """What is written belongs to the user; podman has users of its own for whoever is not root."""
    if kind == "podman":
        return ["--userns", "keep-id"] if os.getuid() else []
    return ["--user", f"{os.getuid()}:{os.getgid()}"]
