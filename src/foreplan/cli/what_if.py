"""`foreplan what-if`: what to expect if processors came or went, before anything is spent."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foreplan.cli.shared.left import Everything, find_left
from foreplan.cli.shared.options import (
    ParamOptions,
    PlaceOptions,
    PlatformFile,
    Plot,
    expected,
    json_option,
    with_groups,
)
from foreplan.cli.shared.pictures import check_plot
from foreplan.cli.shared.tables import say, table
from foreplan.errors import ForeplanError, InputError
from foreplan.files import is_stdin
from foreplan.quantities import amount, duration, many, precise

if TYPE_CHECKING:
    from foreplan.whatif import WhatIf


@with_groups
def what_if(
    subject: Annotated[
        str,
        typer.Argument(
            metavar="WORKFLOW|RUN",
            help="A workflow's file; or a run: its id, its beginning, or `last`.",
        ),
    ],
    *,
    platform: PlatformFile = None,
    add: Annotated[
        list[str] | None,
        typer.Option(
            help="`fast:2`: two more like the processor fast; `fast:1..10`: a table; "
            "`fast[speed=4,price=2]:2`: nearly like it; `new[speed=2]:1`: like none."
        ),
    ] = None,
    remove: Annotated[
        list[str] | None, typer.Option(help="A processor's name; `each`: each in turn.")
    ] = None,
    at: Annotated[
        float | None, typer.Option(help="When, in seconds of the run. Default: now.")
    ] = None,
    planner: Annotated[
        str | None, typer.Option(help="Who makes the new plans. Default: `heft`, or the run's own.")
    ] = None,
    everything: Everything = False,
    place: PlaceOptions,
    params: ParamOptions,
    as_json: Annotated[bool, json_option("the answer")] = False,
    plot: Plot = None,
) -> None:
    """Ask what would happen if processors were added or lost, now or later. It changes nothing.

    Several changes are one combined change; ranges and `each` give a table. Everything goes as
    estimated, and a new plan is taken only if it ends earlier than the present one. Of a run that
    has finished, it is about the next one like it, on the machines that were there at its end. Of a
    workflow, it is about what is left to do in --dir, where results of earlier runs are known.

    Example: `foreplan what-if wf.yaml -p cluster.yaml --add fast:1..10 --at 120 --plot add.png`
    """
    from foreplan import api

    check_plot(plot)
    changes: dict[str, Any] = {"add": add or [], "remove": remove or [], "at": at}
    changes["planner"] = planner
    if is_stdin(subject) or Path(subject).is_file():
        file = None if platform is None else api.load_platform(platform)
        wf, up_to_date, summary = find_left(subject, params, place, everything)
        if not wf.n_tasks and up_to_date:
            raise InputError(summary)
        answer = api.what_if(wf, expected=expected(subject, wf, file, place), **changes)
        answer = replace(answer, up_to_date=up_to_date)
    elif platform is None and place.on is None and not place.price and not any(params):
        run, history = _run(subject, place.directory), not place.no_history
        answer = api.what_if(run=run, dir=place.directory, use_history=history, **changes)
    else:
        raise InputError(
            f"there is no file {subject!r}; a run has its own machines: leave out -p, --on, "
            "--price, --set and --params"
        )
    if plot is not None:
        from foreplan.charts.what_if import write_plot

        write_plot(answer, plot)
    if as_json:
        print(json.dumps(answer.to_dict(), indent=1, allow_nan=False))
        return
    show(answer)
    if plot is not None:
        print(f"wrote {plot}")


def _run(name: str, directory: Path) -> str:
    """The id of the run that is meant."""
    from foreplan.runs.home import RunHome

    try:
        return RunHome.find(directory, name).id
    except ForeplanError as error:
        raise InputError(f"there is no file {name!r}, and as a run: {error}") from None


def show(answer: WhatIf) -> None:
    """Print where things stand, what is expected, and the alternatives."""
    say(_stand(answer))
    say(_expected(answer), "bold")
    _show_alternatives(answer)
    if answer.knee is not None:
        say(f"knee: after {answer.knee} the curve flattens; more of them help less")
    for note in answer.notes:
        say(note, "dim")


def _stand(answer: WhatIf) -> str:
    counts = answer.tasks
    all_of = many(sum(counts.values()), "task")
    if answer.up_to_date:
        known, left = len(answer.up_to_date), sum(counts.values())
        return (
            f"{answer.name}: {known:,} of {many(known + left, 'task')} up to date; this is about "
            f"the other {left:,}, before the start; --all is about everything"
        )
    if answer.status is None:
        return f"{answer.name}: {all_of}, before the start"
    if answer.is_next:
        return (
            f"run {answer.name} has finished: this is about the next one like it, on the machines "
            f"that it had in the end: {all_of}, before the start"
        )
    said = [f"{counts[state]} {state}" for state in ("done", "running", "waiting")]
    said += [f"{counts['given_up']} given up"] if counts["given_up"] else []
    return f"run {answer.name} ({answer.status}) at {duration(answer.now)}: {', '.join(said)}"


def _expected(answer: WhatIf) -> str:
    present, replanned = answer.present, answer.replanned
    how = f"planner {answer.by}"
    if present.taken is None:
        how = f"{answer.by} has no plan: it is simulated to the end"
        if replanned.taken is not None:
            how = f"no plan is followed yet, the new ones are by {answer.by}"
    text = f"as it is: makespan {_seconds(present.makespan)}, cost {amount(present.cost)} ({how})"
    if replanned.makespan < present.makespan * (1 - 1e-9):
        text += f"\na new plan alone: makespan {_seconds(replanned.makespan)}"
        text += f", cost {amount(replanned.cost)}"
    return text


def _show_alternatives(answer: WhatIf) -> None:
    from foreplan.charts.tables import of_alternatives

    table(*of_alternatives(answer))


def _seconds(value: float) -> str:
    return precise(value) if math.isfinite(value) else "never: it cannot be done"
