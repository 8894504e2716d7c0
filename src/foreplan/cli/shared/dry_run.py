"""`foreplan run -n`: what would run, why, for how long, where, and what it would cost."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from foreplan.cli.shared.tables import table
from foreplan.quantities import amount, duration, many, with_needs

if TYPE_CHECKING:
    from foreplan.model import Schedule
    from foreplan.model.resources import Needs
    from foreplan.runs import Options, Rest

SHOWN = 40  # tasks


def tell_dry(rest: Rest, options: Options, as_json: bool) -> None:
    """Tell what a run would do; nothing is begun."""
    if not rest.numbers:
        message, plan, needs = "", None, None
    else:
        from foreplan.model.resources import check_fits
        from foreplan.runs.estimates import expect

        expected = expect(
            rest.workflow, None, options.on, options.directory, options.use_history, options.price
        )
        check_fits(rest.workflow, expected.platform, expected.estimates.needs)
        message, needs = expected.message, expected.estimates.needs
        plan = None if expected.blind else _plan(rest, options, expected)
    if as_json:
        print(json.dumps(_as_data(rest, plan), indent=1, allow_nan=False))
        return
    for line in (*rest.notes, *rest.warnings, rest.summary):
        print(line)
    if not rest.numbers:
        return
    if message:
        print(message)
    names = rest.workflow.task_names
    rows = [_row(task, name, rest, plan, needs) for task, name in enumerate(names[:SHOWN])]
    table(["task", "takes", "<on", "<why"], rows)
    if len(names) > SHOWN:
        print(f"... and {many(len(names) - SHOWN, 'task')} more")
    if plan is None:
        print("how long it takes is not known: no task has a history or a declared cost")
    else:
        cost = f", cost {amount(plan.cost)}" if plan.cost else ""
        print(f"expected to take {duration(plan.makespan)}{cost}")


def _plan(rest: Rest, options: Options, expected: Any) -> Schedule:
    from foreplan import api

    return api.plan(
        rest.workflow,
        expected.platform,
        None,
        options.budget,
        options.deadline,
        estimates=expected.estimates,
        reserve=options.reserve,
    )


def _row(task: int, name: str, rest: Rest, plan: Schedule | None, needs: Needs | None) -> list[str]:
    from foreplan.model.resources import MEMORY

    takes, place, width = "-", "-", 1
    if needs is not None:
        width = int(needs.width[needs.width_ptr[task]])
    if plan is not None:
        takes = duration(float(plan.finish[task] - plan.start[task]))
        place = plan.platform.processor_names[int(plan.processor[task])]
        width = width if plan.cores is None else int(plan.cores.width[task])
    place = with_needs(place, width, 0.0 if needs is None else float(needs.of(MEMORY)[task]))
    return [name, takes, place, rest.reasons.get(name, "")]


def _as_data(rest: Rest, plan: Schedule | None) -> dict[str, Any]:
    told = {} if plan is None else plan.to_dict()
    tasks = told.get("tasks", {})
    return {
        "warnings": rest.warnings,
        **({"notes": [*rest.notes]} if rest.notes else {}),
        "up_to_date": [*rest.up_to_date],
        "run": {
            name: {"why": rest.reasons.get(name, ""), **tasks.get(name, {})}
            for name in rest.workflow.task_names
        },
        "makespan": told.get("makespan"),
        "cost": told.get("cost"),
    }
