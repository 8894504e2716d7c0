"""What is looked at before a run begins: everything that it needs is there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from weft.errors import InputError, WeftError
from weft.live.options import Options
from weft.model import Call, Workflow
from weft.model.forgotten import check_listed, listed_files
from weft.model.shell import text_of

if TYPE_CHECKING:
    from weft.live.session import Session


def check_work(workflow: Workflow, calls: Sequence[Call] | None, options: Options) -> None:
    """Every task must have something to run, and its files must stay where they belong."""
    if calls is None:
        from weft.executors.paths import check_paths

        check_paths(workflow, options.absolute)
        check_listed(workflow)
        _check_inputs(workflow, options.directory)
        if options.place.startswith("local"):
            _check_shells(workflow, options.directory)
        elif not options.shared:
            _check_patterns(workflow, options.directory)
    elif len(calls) != workflow.n_tasks:
        raise WeftError(f"{len(calls)} functions for {workflow.n_tasks} tasks")


def _check_inputs(workflow: Workflow, directory: Path) -> None:
    """What no task makes must be there from the start."""
    names = workflow.item_names or ()
    outside = [names[i] for i in np.flatnonzero(workflow.item_producer < 0).tolist() if names]
    missing = [name for name in outside if name and not (directory / name).exists()]
    if missing:
        listed = ", ".join(missing[:5]) + (", ..." if len(missing) > 5 else "")
        raise InputError(
            f"{len(missing)} input files are not there, and no task makes them: {listed}; put "
            "them there, or say with --dir where they are",
            source=str(directory.absolute()),
        )


def outputs(workflow: Workflow, calls: Sequence[Call] | None) -> list[str]:
    """The files that a run makes; functions declare none."""
    if calls is not None or workflow.item_names is None:
        return []
    made = zip(workflow.item_names, workflow.item_producer.tolist(), strict=True)
    return [name for name, task in made if name is not None and task >= 0]


def _check_shells(workflow: Workflow, directory: Path) -> None:
    """The shells that tasks choose must be there."""
    from weft.executors.command import find_shell
    from weft.executors.scratch import AttemptError

    seen = set()
    for task, spec in workflow.specs.items():
        if spec.shell is None or spec.shell in seen:
            continue
        seen.add(spec.shell)
        try:
            find_shell(spec.shell, str(directory))
        except AttemptError as error:
            name = workflow.task_names[task]
            raise InputError(f"{name} cannot be run: {error}") from None


def _check_patterns(workflow: Workflow, directory: Path) -> None:
    """Where only inputs travel to the workers, patterns would match nothing there."""
    from weft.executors.scratch import matching

    for task, spec in workflow.specs.items():
        text = text_of(spec.run or "", spec.shell)
        for pattern, names in matching(text, str(directory), spec.ignores):
            lost = sorted(set(names).difference(listed_files(workflow, task)))
            if lost:
                name = workflow.task_names[task]
                raise InputError(
                    f"{name} names {pattern}, and so {lost[0]}, which does not travel to Dask's "
                    "workers: list it under inputs (or under ignores, if it is not meant), or let "
                    "the workers see the directory (--shared)"
                )


def warn_of_limits(session: Session, calls: Sequence[Call] | None) -> None:
    """Say what these machines cannot do, before people count on it."""
    wf, options = session.header.workflow, session.header.options
    timed = options.timeout is not None or any(s.timeout is not None for s in wf.specs.values())
    if calls is not None and timed and not options.place.startswith("local"):
        session.warn("time-outs of functions are not kept on Dask: a thread cannot be stopped")
