"""A workflow in the journal: exactly as it is, to the number of every item."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from weft.errors import InputError
from weft.formats.weft_workflow import workflow_to_dict
from weft.journal.packed import pack, unpack
from weft.model import TaskSpec, Workflow

STRICT = 5  # the rules since which a command ends at its first error
ARRAYS = ("base_cost", "item_size", "item_producer", "use_ptr", "use_task")


def workflow_to_entry(workflow: Workflow) -> dict[str, Any]:
    """The workflow as plain data. (A weft file would do for people, but may renumber items.)"""
    return {
        "name": workflow.name,
        "tasks": list(workflow.task_names),
        **{name: pack(getattr(workflow, name)) for name in ARRAYS},
        "processor_cost": {name: pack(cost) for name, cost in workflow.processor_cost.items()},
        "items": None if workflow.item_names is None else list(workflow.item_names),
        "specs": {
            str(task): {key: v for key, v in vars(spec).items() if v is not None and v != ()}
            for task, spec in sorted(workflow.specs.items())
        },
    }


def workflow_from_entry(content: dict[str, Any]) -> Workflow:
    """The workflow that was written."""
    return Workflow(
        name=content["name"],
        task_names=tuple(content["tasks"]),
        **{name: unpack(content[name]) for name in ARRAYS},
        processor_cost={name: unpack(cost) for name, cost in content["processor_cost"].items()},
        item_names=None if content["items"] is None else tuple(content["items"]),
        specs={
            int(task): TaskSpec(**spec | {"ignores": tuple(spec.get("ignores", ()))})
            for task, spec in content["specs"].items()
        },
    )


def in_their_shell(workflow: Workflow, rules: int) -> Workflow:
    """The workflow as a run of former rules began it: commands that chose no shell had sh."""
    if rules >= STRICT:
        return workflow
    specs = {
        task: replace(spec, shell="sh") if spec.run is not None and spec.shell is None else spec
        for task, spec in workflow.specs.items()
    }
    return replace(workflow, specs=specs)


def check_same(journalled: Workflow, given: Workflow, run: str) -> None:
    """Refuse to go on with another workflow, and say what is different."""
    if workflow_to_entry(journalled) == workflow_to_entry(given):
        return
    old, new = workflow_to_dict(journalled), workflow_to_dict(given)
    before, after = old["tasks"], new["tasks"]
    assert isinstance(before, dict)
    assert isinstance(after, dict)
    added = [task for task in after if task not in before]
    removed = [task for task in before if task not in after]
    changed = [task for task in before if task in after and before[task] != after[task]]
    parts = [
        f"{what}: {', '.join(tasks[:5])}{', ...' if len(tasks) > 5 else ''}"
        for what, tasks in (("new", added), ("gone", removed), ("changed", changed))
        if tasks
    ]
    raise InputError(
        f"the workflow has changed since run {run} began ("
        + ("; ".join(parts) or "its edges, files, order or name differ")
        + "): undo the change, go on with the workflow as it was "
        f"(`weft resume {run} --as-started`), or begin a new run (`weft run`)"
    )
