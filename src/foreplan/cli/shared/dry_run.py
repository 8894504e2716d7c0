"""`foreplan run -n`: what would run, why, for how long, where, and what it would cost."""

from __future__ import annotations

import json
from statistics import median
from typing import TYPE_CHECKING, Any

from foreplan.cli.shared.tables import table
from foreplan.files import clean
from foreplan.quantities import amount, duration, first_few, many, with_needs

if TYPE_CHECKING:
    from foreplan.model import Schedule
    from foreplan.model.resources import Needs
    from foreplan.runs import Options, Rest

SHOWN = 40  # rows
FEW = 10  # tasks that are listed one by one
WIDEST = 80  # letters of a reason in a table; longer ones are below it


def tell_dry(rest: Rest, options: Options, as_json: bool) -> None:
    """Tell what a run would do; nothing is begun."""
    message, plan, needs = "", None, None
    if rest.numbers:
        from foreplan.model.resources import check_fits
        from foreplan.runs.estimates import expect

        expected = expect(
            rest.workflow, None, options.on, options.directory, options.use_history, options.price
        )
        check_fits(rest.workflow, expected.platform, expected.estimates.needs)
        needs = expected.estimates.needs
        if not expected.blind:
            message, plan = expected.message, _plan(rest, options, expected)
    if as_json:
        print(json.dumps(_as_data(rest, plan), indent=1, allow_nan=False))
        return
    for line in (*rest.notes, *rest.warnings, rest.summary):
        print(line)
    if rest.numbers:
        _print_tasks(rest, plan, needs, message)
    if missing := _unneeded(rest):
        what = "intermediate file is" if len(missing) == 1 else "intermediate files are"
        print(clean(f"{len(missing):,} {what} missing and not needed: {first_few(missing, 3)}"))


def _print_tasks(rest: Rest, plan: Schedule | None, needs: Needs | None, message: str) -> None:
    if message:
        print(message)
    names = rest.workflow.task_names
    if len(names) <= FEW:
        rows = [_row(task, name, rest, plan, needs) for task, name in enumerate(names)]
        table(["task", "takes", "<on", "<why"], rows)
        _print_long_reasons({name: rest.reasons.get(name, "") for name in names})
    else:
        _print_groups(rest, plan)
    if plan is None:
        print("how long it takes is not known: no task has a history or a declared cost")
        return
    cost = f", cost {amount(plan.cost)}" if plan.cost else ""
    every = "" if len(rest.certain) == len(names) else ", if all of them run"
    print(f"expected to take {duration(plan.makespan)}{cost}{every}")


def _print_groups(rest: Rest, plan: Schedule | None) -> None:
    """Print a line for all tasks of a category that run for like reasons."""
    number = {name: task for task, name in enumerate(rest.workflow.task_names)}
    groups, rows = rest.groups(), []
    for group in groups[:SHOWN]:
        each = "-"
        if plan is not None:
            tasks = [number[name] for name in group.tasks]
            each = duration(float(median(plan.finish[tasks] - plan.start[tasks])))
        count = f"{len(group.tasks):,}"
        category = group.category or (group.tasks[0] if len(group.tasks) == 1 else "-")
        rows.append([category, count, each, _cut(group.why), group.tasks[0]])
    table(["category", "tasks", "each takes", "<why", "<for example"], rows)
    _print_long_reasons({group.tasks[0]: group.why for group in groups[:SHOWN]})
    if len(groups) > SHOWN:
        left = sum(len(group.tasks) for group in groups[SHOWN:])
        print(f"... and {many(left, 'task')} more; --json lists all")


def _cut(why: str) -> str:
    """Return the beginning of a long reason, its first clause if that is short enough."""
    if len(why) <= WIDEST:
        return why
    first = why.partition("; ")[0]
    return (first if len(first) <= WIDEST else why[:WIDEST].rstrip()) + " ..."


def _print_long_reasons(reasons: dict[str, str]) -> None:
    for task, why in reasons.items():
        if len(why) > WIDEST:
            print(clean(f"{task}: {why}"))


def _unneeded(rest: Rest) -> list[str]:
    return [] if rest.survey is None else rest.survey.unneeded_files()


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
    return [name, takes, place, _cut(rest.reasons.get(name, ""))]


def _as_data(rest: Rest, plan: Schedule | None) -> dict[str, Any]:
    told = {} if plan is None else plan.to_dict()
    tasks, certain, adders = told.get("tasks", {}), rest.certain, rest.adders
    return {
        "warnings": rest.warnings,
        **({"notes": [*rest.notes]} if rest.notes else {}),
        "up_to_date": [*rest.up_to_date],
        "at_least": len(certain),
        "at_most": None if adders else len(rest.numbers),
        "adders": adders,
        "run": {
            name: {
                "why": rest.reasons.get(name, ""),
                "certain": name in certain,
                **tasks.get(name, {}),
            }
            for name in rest.workflow.task_names
        },
        "not_needed": _unneeded(rest),
        "makespan": told.get("makespan"),
        "cost": told.get("cost"),
    }
