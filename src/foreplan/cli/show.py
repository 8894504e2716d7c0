"""`foreplan show`: what a workflow is, in words or as a picture, with how far a run of it is."""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foreplan.cli.shared.options import ParamOptions, RunDirectory, json_option, with_groups
from foreplan.cli.shared.tables import say, table
from foreplan.errors import InputError, unknown_name
from foreplan.quantities import amount, data_size, duration, many

if TYPE_CHECKING:
    from foreplan.model import Workflow
    from foreplan.model.resources import Needs
    from foreplan.runs.home import RunHome

LISTED = 8  # names of files, tasks of the critical path
MOST = 30  # categories


@with_groups
def show(
    workflow: Annotated[
        Path | None,
        typer.Argument(
            help="The workflow: YAML, JSON, WfFormat, STG, DOT, DAGMan.",
            show_default="that of --run",
        ),
    ] = None,
    graph: Annotated[
        list[Path] | None,
        typer.Option(
            help="Draw the graph: .svg, .html (zoom and hover), .dot (Graphviz), .mmd (Mermaid)."
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="tasks|categories",
            help="Draw a node per task (of at most 1,000), or one per category with counts.",
            show_default="categories from 61 tasks on",
        ),
    ] = None,
    run: Annotated[
        str | None,
        typer.Option(
            help="With the state of this run's tasks: its id, the beginning of its id, or `last`."
        ),
    ] = None,
    directory: RunDirectory = Path(),
    as_json: Annotated[bool, json_option("the workflow's figures and tasks")] = False,
    as_yaml: Annotated[
        bool,
        typer.Option(
            "--yaml", help="Print the workflow written out, without loops and parameters."
        ),
    ] = False,
    *,
    params: ParamOptions,
) -> None:
    """Show a workflow: its tasks, categories, files, depth, critical path, and its graph.

    With `--run`, which tasks of that run are done, running, failed, blocked (by a failure before
    them) or waiting; the run may be under way. Without a file, the workflow is the one that the run
    began with. Nothing is changed.

    Example: `foreplan show pipeline.yaml --graph pipeline.svg`

    Example: `foreplan show pipeline.yaml --set depth=50 --yaml` (what it expands to)

    Example: `foreplan show --run last --graph now.html --by tasks`
    """
    from foreplan import api
    from foreplan.charts.graph import CATEGORIES, TASKS, check_kind, graph_of, write_graph
    from foreplan.formats import save

    for path in graph or []:
        check_kind(path)
    if by not in (None, TASKS, CATEGORIES):
        raise InputError(unknown_name("--by", by, (TASKS, CATEGORIES)))
    if as_json and as_yaml:
        raise InputError("--json or --yaml: ask for one of them")
    if workflow is None and any(params):
        raise InputError("a run has its parameters: --set and --params go with a workflow's file")
    if workflow is None and run is None:
        raise InputError("show what? give a workflow's file, or a run: `foreplan show --run last`")
    home, found = (None, None) if run is None else _states(directory, run)
    if workflow is not None:
        wf = api.load(workflow, params=params.values(), dir=directory)
    else:
        wf = (found or {})["workflow"]
    states = None
    if found is not None:
        known = found["states"]
        states = [known.get(name, "waiting") for name in wf.task_names]
    if graph:
        drawn = graph_of(wf, by, states, home.id if home is not None else "")
        for path in graph:
            write_graph(drawn, path)
        for note in drawn.notes:
            print(f"note: {note}", file=sys.stderr)
    if as_yaml:
        save(wf if workflow is not None or home is None else _initial_workflow(home), "-", "yaml")
        return
    if as_json:
        print(json.dumps(_figures(wf, states, home), indent=1, allow_nan=False))
        return
    _tell(wf, states, home)
    for path in graph or []:
        print(f"wrote {path}")


def _initial_workflow(home: RunHome) -> Workflow:
    """Return the workflow that a run began with: if it is run, its tasks add the others."""
    from foreplan.runs.entries import Header
    from foreplan.runs.journal import read

    return Header.from_dict(read(home.journal).header, home.data).workflow


def _states(directory: Path, wanted: str) -> tuple[RunHome, dict[str, Any]]:
    """A run's workflow, and what each of its tasks is by now."""
    from foreplan.report.states import task_states
    from foreplan.runs.home import RunHome
    from foreplan.runs.journal import read
    from foreplan.runs.lock import is_driven
    from foreplan.runs.replay import replay

    home = RunHome.find(directory, wanted)
    driven = is_driven(home)  # before the look: a run that ends meanwhile has written its end
    replayed = replay(read(home.journal), home.data)
    workflow = replayed.header.workflow
    states = dict(zip(workflow.task_names, task_states(replayed, driven), strict=True))
    return home, {"workflow": workflow, "states": states}


def _critical(wf: Workflow) -> tuple[float, list[int]] | None:
    """The longest way through the graph by the costs of its tasks; None if some say nothing."""
    from foreplan.charts.graph import known_costs

    costs = known_costs(wf).tolist()
    if not costs or any(math.isnan(cost) for cost in costs):
        return None
    longest, before = list(costs), [-1] * wf.n_tasks
    _, producers, consumers = wf.dependencies()
    after: dict[int, list[int]] = {}
    for producer, consumer in zip(producers.tolist(), consumers.tolist(), strict=True):
        after.setdefault(producer, []).append(consumer)
    for task in wf.order.tolist():
        for other in after.get(task, ()):
            if longest[task] + costs[other] > longest[other]:
                longest[other], before[other] = longest[task] + costs[other], task
    last = max(range(wf.n_tasks), key=longest.__getitem__)
    path = [last]
    while before[path[-1]] >= 0:
        path.append(before[path[-1]])
    return longest[last], path[::-1]


def _files(wf: Workflow) -> tuple[list[str], list[str], int]:
    """Inputs from outside, products that no task reads, and how many files are between tasks."""
    inputs, products, between = list[str](), list[str](), 0
    for item, name in enumerate(wf.item_names or ()):
        if name is None:
            continue
        read = wf.use_ptr[item] < wf.use_ptr[item + 1]
        if wf.item_producer[item] < 0:
            inputs.append(name)
        elif not read:
            products.append(name)
        else:
            between += 1
    return inputs, products, between


def _categories(wf: Workflow, states: list[str] | None) -> list[dict[str, Any]]:
    """Return the categories in the order of the graph: tasks, levels, seconds, states.

    A task without a category is one of its own if others have one.
    """
    from foreplan.charts.chart import NO_CATEGORY
    from foreplan.charts.graph import STATES, known_costs, labels_of

    costs, levels = known_costs(wf).tolist(), wf.level.tolist()
    given = zip(labels_of(wf), wf.task_names, strict=True)
    labels = [name if label == NO_CATEGORY else label for label, name in given]
    needs = _needs(wf)
    members: dict[str, list[int]] = {}
    for task, label in enumerate(labels):
        members.setdefault(label, []).append(task)
    rows = []
    for label, tasks in members.items():
        seconds = sum(costs[task] for task in tasks)
        row: dict[str, Any] = {
            "category": label,
            "tasks": len(tasks),
            "first_level": min(levels[task] for task in tasks) + 1,
            "last_level": max(levels[task] for task in tasks) + 1,
            "seconds": None if math.isnan(seconds) else seconds,
        }
        if needs is not None:
            row |= _asked(needs, tasks)
        if states is not None:
            found = Counter(states[task] for task in tasks)
            row["states"] = {state: found[state] for state in STATES}
        rows.append(row)
    return sorted(rows, key=lambda row: (row["first_level"], row["last_level"]))


def _needs(wf: Workflow) -> Needs | None:
    """What tasks ask for; None: one core each, and nothing else."""
    from foreplan.model.resources import declared_needs

    needs = declared_needs(wf)
    if needs is None or not (needs.amount.any() or (needs.width > 1).any()):
        return None
    return needs


def _asked(needs: Needs, tasks: list[int]) -> dict[str, Any]:
    """What one of these tasks asks for at most: cores, and amounts by kind."""
    named = {kind: float(needs.of(kind)[tasks].max()) for kind in needs.kinds}
    tokens = needs.amount[tasks, len(needs.kinds) :].max(axis=0).tolist()
    named |= {f"of pool {pool}": n for pool, n in zip(needs.pools, tokens, strict=True)}
    amounts = {kind: amount for kind, amount in named.items() if amount > 0}
    return {"cores": int(needs.most_cores[tasks].max()), "amounts": amounts}


def _figures(wf: Workflow, states: list[str] | None, home: RunHome | None) -> dict[str, Any]:
    """All of it, for machines."""
    inputs, products, between = _files(wf)
    critical, levels = _critical(wf), wf.level.tolist()
    before: list[set[str]] = [set() for _ in wf.task_names]
    needs = _needs(wf)
    _, producers, consumers = wf.dependencies()
    for producer, consumer in zip(producers.tolist(), consumers.tolist(), strict=True):
        before[consumer].add(wf.task_names[producer])
    tasks = [
        {
            "task": name,
            "category": wf.spec(task).category,
            "level": levels[task] + 1,
            "needs": sorted(before[task]),
            **({} if needs is None else _asked(needs, [task])),
            **({} if states is None else {"state": states[task]}),
        }
        for task, name in enumerate(wf.task_names)
    ]
    figures = {
        "name": wf.name,
        "run": None if home is None else home.id,
        "n_tasks": wf.n_tasks,
        "n_dependencies": wf.n_edges,
        "depth": max(levels, default=-1) + 1,
        "width": max(Counter(levels).values(), default=0),
        "files_between": between,
        "inputs": inputs,
        "products": products,
        "critical_path": None
        if critical is None
        else {"seconds": critical[0], "tasks": [wf.task_names[t] for t in critical[1]]},
        "categories": _categories(wf, states),
        "tasks": tasks,
    }
    return figures


def _tell(wf: Workflow, states: list[str] | None, home: RunHome | None) -> None:
    from foreplan.charts.graph import STATES, known_costs, listed

    levels = wf.level.tolist()
    inputs, products, between = _files(wf)
    say(f"{wf.name or 'workflow'}: {many(wf.n_tasks, 'task')}", "bold")
    depth, width = max(levels, default=-1) + 1, max(Counter(levels).values(), default=0)
    facts = [("depth", f"{many(depth, 'task')} one after another")]
    facts += [("width", f"at most {many(width, 'task')} on one level")]
    if (critical := _critical(wf)) is not None:
        names = [wf.task_names[task] for task in critical[1]]
        if len(names) > LISTED:
            names[LISTED // 2 : -LISTED // 2] = [f"... {len(names) - LISTED:,} more ..."]
        facts.append(("work", f"{duration(float(known_costs(wf).sum()))} at speed 1"))
        facts.append(("critical", f"{duration(critical[0])}: {' -> '.join(names)}"))
    if wf.item_names is not None:
        facts.append(("inputs", listed(inputs, LISTED) or "none from outside"))
        facts.append(("products", listed(products, LISTED) or "none"))
        facts.append(("between", many(between, "file")))
    else:
        facts.append(("edges", f"{wf.n_edges:,}"))
    if (needs := _needs(wf)) is not None:
        facts.append(("needs", _in_words(_asked(needs, [*range(wf.n_tasks)]))))
    if states is not None and home is not None:
        found = Counter(states)
        counts = [f"{found[state]:,} {state}" for state in STATES if found[state]]
        facts.append(("run", f"{home.id}: {', '.join(counts)}"))
    for label, value in facts:
        say(f"{label + ':':<10}{value}")
    _table(_categories(wf, states), with_states=states is not None)


def _in_words(asked: dict[str, Any]) -> str:
    said = [many(asked["cores"], "core")] if asked["cores"] > 1 else []
    for kind, size in asked["amounts"].items():
        said.append(f"{data_size(size) if kind == 'memory' else amount(size)} {kind}")
    return f"at most {', '.join(said)} by one task"


def _table(rows: list[dict[str, Any]], with_states: bool) -> None:
    from foreplan.charts.graph import STATES

    if len(rows) < 2 and not with_states:
        return
    timed = any(row["seconds"] is not None for row in rows)
    wide = any(row.get("cores", 1) > 1 for row in rows)
    large = any("memory" in row.get("amounts", {}) for row in rows)
    header = ["category", "tasks", "levels", *(["cost"] if timed else [])]
    header += ["cores"] * wide + ["memory"] * large
    lines = []
    for row in rows[:MOST]:
        ends = dict.fromkeys((row["first_level"], row["last_level"]))
        line = [row["category"] or "-", f"{row['tasks']:,}", "-".join(map(str, ends))]
        line += [("-" if row["seconds"] is None else duration(row["seconds"]))] if timed else []
        line += [str(row["cores"])] if wide else []
        memory = row.get("amounts", {}).get("memory")
        line += [data_size(memory) if memory else "-"] if large else []
        line += [f"{row['states'][state]:,}" for state in STATES] if with_states else []
        lines.append(line)
    say("")
    table([*header, *(STATES if with_states else ())], lines)
    if len(rows) > MOST:
        say(f"{len(rows) - MOST:,} more categories are not shown", "dim")
