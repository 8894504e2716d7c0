"""A workflow's graph as it is drawn: a node per task, or per category of many tasks.

A task without a category is a node of its own. Where that, or a graph by tasks, would be more than
anybody can read, tasks are drawn together by level, and a note says so.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from foreplan.arrays import FloatArray, IntArray
from foreplan.charts.chart import NO_CATEGORY, OTHER, PALETTE, prefixes, without_number
from foreplan.errors import InputError
from foreplan.files import write_bytes
from foreplan.model import Workflow
from foreplan.quantities import duration, many, shortened

TASKS, CATEGORIES = "tasks", "categories"
FEW = 60  # more tasks than these are drawn by category, if they have several
MOST = 1000  # nodes that are tasks or categories; of more, groups of them are drawn
MOST_GROUPS = 60  # nodes that stand for tasks without a category, or for levels
STATES = ("done", "running", "failed", "blocked", "waiting")
SHOWN = 5  # names in a list of which nobody reads more


@dataclass(frozen=True)
class DrawnNode:
    """A task, or all tasks of a category."""

    name: str
    colour: int  # of its category, in the palette
    tasks: int = 1
    states: dict[str, int] = field(default_factory=dict)  # none: no run was looked at
    facts: tuple[tuple[str, str], ...] = ()  # what there is to say of it

    @property
    def state(self) -> str:
        """What its tasks are; mixed, the one that matters most."""
        ranked = ("failed", "running", "blocked", "waiting", "done")
        return next((state for state in ranked if self.states.get(state)), "")


@dataclass(frozen=True)
class Edge:
    """What goes from one node to another."""

    source: int
    target: int
    count: int = 1  # dependencies of tasks
    items: tuple[str, ...] = ()  # by their names, the first few
    back: bool = False  # against the order of the graph: categories may need each other


@dataclass(frozen=True)
class DrawnGraph:
    """All that every writer draws."""

    title: str
    facts: tuple[str, ...]
    nodes: tuple[DrawnNode, ...]
    edges: tuple[Edge, ...]
    legend: tuple[tuple[str, str], ...]  # categories with their colours; empty: all are alike
    grouped: bool  # a node is a category
    with_states: bool
    notes: tuple[str, ...] = ()  # what is drawn otherwise than asked for, and why

    def colour(self, node: DrawnNode) -> str:
        """The colour of its category."""
        return PALETTE[node.colour]


def labels_of(workflow: Workflow) -> list[str]:
    """The category of each task; where a file gives none, the beginnings of names, or nothing."""
    if any(spec.category for spec in workflow.specs.values()):
        tasks = range(workflow.n_tasks)
        return [workflow.spec(task).category or NO_CATEGORY for task in tasks]
    return prefixes(workflow.task_names)


def graph_of(
    workflow: Workflow, by: str | None = None, states: Sequence[str] | None = None, run: str = ""
) -> DrawnGraph:
    """The graph of a workflow, with the states of a run's tasks if they are given."""
    labels = labels_of(workflow)
    alike = len(set(labels)) == 1
    categories = len(set(labels) - {NO_CATEGORY})
    by_tasks = by == TASKS or (by is None and (alike or workflow.n_tasks <= FEW))
    grouped = not by_tasks or workflow.n_tasks > MOST
    colour, legend = _colours(labels)
    notes: list[str] = []
    if not grouped:
        nodes = _tasks(workflow, labels, colour, states)
        edges = _edges(workflow, np.arange(workflow.n_tasks, dtype=np.int32))
    else:
        groups = _groups(workflow, labels)
        nodes = _categories(workflow, groups, labels, colour, states)
        edges = _edges(workflow, groups.of_task)
        notes += _fallback_notes(workflow.n_tasks, categories, by_tasks, groups)
    facts = [
        many(workflow.n_tasks, "task"),
        *([] if alike else [many(categories, "category", "categories")]),
        f"depth {int(workflow.level.max(initial=-1)) + 1}",
    ]
    if states is not None:
        found = Counter(states)
        facts += [f"{found[state]:,} {state}" for state in STATES if found[state]]
    title = (workflow.name or "workflow") + (f", run {run}" if run else "")
    with_states = states is not None
    return DrawnGraph(title, tuple(facts), nodes, edges, legend, grouped, with_states, tuple(notes))


def _colours(labels: list[str]) -> tuple[dict[str, int], tuple[tuple[str, str], ...]]:
    """The colour of each category; more than the palette has: the rare ones share the last."""
    order = list(dict.fromkeys(labels))
    if len(order) <= len(PALETTE):
        return {name: k for k, name in enumerate(order)}, _legend(order)
    common = {name for name, _ in Counter(labels).most_common(len(PALETTE) - 1)}
    own = [name for name in order if name in common]
    last = len(PALETTE) - 1
    found = {name: own.index(name) if name in common else last for name in order}
    return found, _legend([*own, OTHER])


def _legend(names: list[str]) -> tuple[tuple[str, str], ...]:
    return tuple(zip(names, PALETTE, strict=False)) if len(names) > 1 else ()


@dataclass(frozen=True, eq=False)
class _Groups:
    """The nodes of a graph that is not drawn by tasks, and the one of each task."""

    unit: str  # category or level
    names: list[str]
    of_task: IntArray
    lone: int = 0  # tasks without a category,
    lone_unit: str = "task"  # and what their nodes are: a task, a beginning of names, or a level

    def members(self) -> list[IntArray]:
        """Return the tasks of each node."""
        order = np.argsort(self.of_task, kind="stable").astype(np.int32)
        ends = np.cumsum(np.bincount(self.of_task, minlength=len(self.names)))
        return np.split(order, ends)[:-1]


def _groups(workflow: Workflow, labels: list[str]) -> _Groups:
    """Group tasks by category; if all are of one, or categories are too many, by level."""
    count = len(set(labels))
    if count > MOST or (count == 1 and workflow.n_tasks > 1):
        return _Groups("level", *_numbered([("level", n) for n in _levels(workflow.level)]))
    keys = [("category", label) for label in labels]
    lone = [task for task, label in enumerate(labels) if label == NO_CATEGORY]
    unit, names = _lone_groups(workflow, lone)
    for task, name in zip(lone, names, strict=True):
        keys[task] = unit, name
    return _Groups("category", *_numbered(keys), len(lone), unit)


def _numbered(keys: Sequence[tuple[str, str]]) -> tuple[list[str], IntArray]:
    """Number keys of a unit and a name in the order of the tasks; return names and numbers."""
    index = {key: k for k, key in enumerate(dict.fromkeys(keys))}
    return [name for _, name in index], np.array([index[key] for key in keys], dtype=np.int32)


def _fallback_notes(tasks: int, categories: int, by_tasks: bool, groups: _Groups) -> list[str]:
    """Return what is drawn otherwise than asked for, and why."""
    notes = []
    if by_tasks:
        problem = f"{tasks:,} tasks are too many for a graph by tasks (at most {MOST:,})"
        notes.append(f"{problem}: it is drawn by {groups.unit}")
    elif groups.unit == "level" and categories > MOST:
        problem = f"{categories:,} categories are too many for a graph (at most {MOST:,})"
        notes.append(f"{problem}: it is drawn by level")
    if groups.lone_unit != "task":
        notes.append(f"{groups.lone:,} tasks without a category are drawn by {groups.lone_unit}")
    return notes


def _lone_groups(workflow: Workflow, tasks: list[int]) -> tuple[str, list[str]]:
    """Return by what tasks without a category are drawn, and the name of each one's node."""
    names = [workflow.task_names[task] for task in tasks]
    if len(names) <= MOST_GROUPS:
        return "task", names
    beginnings = [without_number(name) for name in names]
    count = Counter(beginnings)
    if len(count) <= MOST_GROUPS and "" not in count:
        pairs = zip(names, beginnings, strict=True)
        return "name", [name if count[short] == 1 else short for name, short in pairs]
    return "level", _levels(workflow.level[tasks])


def _levels(level: IntArray) -> list[str]:
    """Return the level of each task as the name of its node; levels share one if they are many."""
    depth = int(level.max(initial=0)) + 1
    step = -(-depth // MOST_GROUPS)
    if step == 1:
        return [f"level {k + 1}" for k in level.tolist()]
    firsts = (k - k % step + 1 for k in level.tolist())
    return [f"levels {first} to {min(depth, first + step - 1)}" for first in firsts]


def known_costs(workflow: Workflow) -> FloatArray:
    """Seconds of each task as the file says: at speed 1, else the processors' mean; or NaN."""
    cost: FloatArray = workflow.base_cost.copy()
    for task in np.flatnonzero(np.isnan(cost)).tolist():
        row = workflow.cost_matrix[task]
        row = row[~np.isnan(row)]
        cost[task] = row.mean() if len(row) else np.nan
    return cost


def _tasks(
    workflow: Workflow, labels: list[str], colour: dict[str, int], states: Sequence[str] | None
) -> tuple[DrawnNode, ...]:
    costs, several = known_costs(workflow), len(set(labels)) > 1
    nodes = []
    for task, name in enumerate(workflow.task_names):
        known = several and labels[task] != NO_CATEGORY
        facts = [("category", labels[task])] if known else []
        facts += _task_facts(workflow, task, float(costs[task]), states)
        found = {} if states is None else {states[task]: 1}
        nodes.append(DrawnNode(name, colour[labels[task]], 1, found, tuple(facts)))
    return tuple(nodes)


def _task_facts(
    workflow: Workflow, task: int, cost: float, states: Sequence[str] | None
) -> list[tuple[str, str]]:
    """Return the state, cost, files and command of a task, as far as they are known."""
    facts = [] if states is None else [("state", states[task])]
    facts += [] if np.isnan(cost) else [("cost", duration(cost))]
    read = workflow.in_item[workflow.in_ptr[task] : workflow.in_ptr[task + 1]]
    made = workflow.out_item[workflow.out_ptr[task] : workflow.out_ptr[task + 1]]
    for word, names in (
        ("inputs", files_of(workflow, read)),
        ("outputs", files_of(workflow, made)),
    ):
        facts += [(word, listed(names))] if names else []
    command = workflow.spec(task).run
    facts += [] if command is None else [("command", shortened(command.strip(), 300))]
    return facts


def files_of(workflow: Workflow, items: IntArray) -> list[str]:
    """The names of items that have one."""
    names = workflow.item_names or (None,) * workflow.n_items
    return [name for item in items.tolist() if (name := names[item]) is not None]


def listed(names: Sequence[str], shown: int = SHOWN) -> str:
    """The first few names, and how many more there are."""
    more = f" and {len(names) - shown:,} more" if len(names) > shown else ""
    return ", ".join(names[:shown]) + more


def _categories(
    workflow: Workflow,
    groups: _Groups,
    labels: list[str],
    colour: dict[str, int],
    states: Sequence[str] | None,
) -> tuple[DrawnNode, ...]:
    costs, nodes, group = known_costs(workflow), [], groups.of_task
    _, producers, consumers = workflow.dependencies()
    within = Counter(group[producers[group[producers] == group[consumers]]].tolist())
    for k, (name, tasks) in enumerate(zip(groups.names, groups.members(), strict=True)):
        levels = workflow.level[tasks]
        found = {} if states is None else Counter(states[task] for task in tasks.tolist())
        own = colour[labels[tasks[0]]]
        if len(tasks) == 1 and labels[tasks[0]] == NO_CATEGORY:
            lone = _task_facts(workflow, int(tasks[0]), float(costs[tasks[0]]), states)
            nodes.append(DrawnNode(name, own, 1, dict(found), tuple(lone)))
            continue
        facts = [("tasks", listed([workflow.task_names[t] for t in tasks.tolist()]))]
        counts = [f"{found[state]:,} {state}" for state in STATES if found.get(state)]
        facts += [("state", ", ".join(counts))] if counts else []
        spread = sorted({int(levels.min()) + 1, int(levels.max()) + 1})
        facts += [("levels" if len(spread) > 1 else "level", " to ".join(map(str, spread)))]
        seconds = float(costs[tasks].sum())
        facts += [] if np.isnan(seconds) else [("cost", f"{duration(seconds)} in all")]
        facts += [("within", many(within[k], "dependency", "dependencies"))] if within[k] else []
        nodes.append(DrawnNode(name, own, len(tasks), dict(found), tuple(facts)))
    return tuple(nodes)


def _edges(workflow: Workflow, group: IntArray) -> tuple[Edge, ...]:
    """Between different nodes, once; the order of nodes is by the mean level of their tasks."""
    items, producers, consumers = workflow.dependencies()
    n = int(group.max(initial=-1)) + 1
    mean = np.bincount(group, workflow.level, n) / np.maximum(np.bincount(group, minlength=n), 1)
    pairs: dict[tuple[int, int], set[tuple[int, int]]] = {}
    names: dict[tuple[int, int], dict[str, None]] = {}
    ends = zip(items.tolist(), producers.tolist(), consumers.tolist(), strict=True)
    for item, producer, consumer in ends:
        pair = int(group[producer]), int(group[consumer])
        if pair[0] != pair[1]:
            pairs.setdefault(pair, set()).add((producer, consumer))
            if workflow.item_names is not None and workflow.item_names[item] is not None:
                names.setdefault(pair, {})[workflow.item_name(item)] = None
    return tuple(
        Edge(a, b, len(found), tuple(names.get((a, b), ())), (mean[a], a) > (mean[b], b))
        for (a, b), found in pairs.items()
    )


def _svg(graph: DrawnGraph) -> bytes:
    from foreplan.charts.graph_picture import svg

    return svg(graph)


def _page(graph: DrawnGraph) -> bytes:
    from foreplan.charts.graph_picture import page

    return page(graph)


def dot(graph: DrawnGraph) -> bytes:
    """The graph for Graphviz."""
    lines = [f"digraph {_quoted(graph.title)} {{", "  rankdir=LR;"]
    lines.append('  node [shape=box, style="rounded,filled", fontname="sans-serif"];')
    for k, node in enumerate(graph.nodes):
        look = {"label": "\n".join(_lines(graph, node)), "fillcolor": graph.colour(node)}
        if graph.with_states:
            fill, border, ink, _ = LOOKS[node.state]
            style = "rounded,filled" + (",dashed" if node.state in DASHED else "")
            width = "2" if node.state in ("running", "failed") else "1"
            look |= {"fillcolor": fill, "color": border, "fontcolor": ink, "style": style}
            look |= {"penwidth": width}
        look["tooltip"] = "\n".join([node.name, *(f"{a}: {b}" for a, b in node.facts)])
        lines.append(f"  n{k} [{_attributes(look)}];")
    for edge in graph.edges:
        look = {"label": f"{edge.count:,}"} if graph.grouped and edge.count > 1 else {}
        look |= {"style": "dashed", "constraint": "false"} if edge.back else {}
        more = f" [{_attributes(look)}]" if look else ""
        lines.append(f"  n{edge.source} -> n{edge.target}{more};")
    return "\n".join([*lines, "}", ""]).encode()


def _attributes(look: dict[str, str]) -> str:
    return ", ".join(f"{name}={_quoted(value)}" for name, value in look.items())


def _quoted(text: str) -> str:
    """A string of DOT: a backslash is one, and a line ends where it ends."""
    inner = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{_printable(inner)}"'


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)


def mermaid(graph: DrawnGraph) -> bytes:
    """The graph for Mermaid."""
    title = json.dumps(_printable(graph.title))
    lines = ["---", f"title: {title}", "---", "flowchart LR"]
    for k, node in enumerate(graph.nodes):
        text = "<br/>".join(_entities(line) for line in _lines(graph, node))
        style = node.state if graph.with_states else f"c{node.colour}"
        lines.append(f'  n{k}["{text}"]:::{style}')
    for edge in graph.edges:
        count = f'|"{edge.count:,}"|' if graph.grouped and edge.count > 1 else ""
        arrow = "-.->" if edge.back else "-->"
        lines.append(f"  n{edge.source} {arrow}{count} n{edge.target}")
    if graph.with_states:
        for state in dict.fromkeys(node.state for node in graph.nodes):
            fill, border, ink, _ = LOOKS[state]
            dashed = ",stroke-dasharray:4 3" if state in DASHED else ""
            lines.append(f"  classDef {state} fill:{fill},stroke:{border},color:{ink}{dashed}")
    else:
        for colour in sorted({node.colour for node in graph.nodes}):
            lines.append(f"  classDef c{colour} fill:{PALETTE[colour]},stroke:#555,color:#111")
    return "\n".join([*lines, ""]).encode()


def _entities(text: str) -> str:
    """Text within quotes: what Mermaid or HTML would read otherwise is written by its number."""
    return "".join(
        c if (c.isalnum() or c in " _-.,:/+=()[]") and c.isprintable() else f"#{ord(c)};"
        for c in _printable(text)
    )


def _lines(graph: DrawnGraph, node: DrawnNode) -> list[str]:
    """What stands in a node."""
    name = shortened(_printable(node.name), 40)
    if not graph.grouped:
        return [f"{LOOKS[node.state][3]} {name}".strip() if graph.with_states else name]
    return [name, *count_lines(node)]


def count_lines(node: DrawnNode) -> list[str]:
    """How many tasks a category has, and how many of them are what."""
    if not node.states:
        return [many(node.tasks, "task")]
    found = [f"{node.states[state]:,} {state}" for state in STATES if node.states.get(state)]
    return [", ".join(found)]


# fill, border, ink and mark of a state: told apart without colours, too
LOOKS = {
    "done": ("#9fc8e8", "#2a6496", "#111111", "\u2713"),
    "running": ("#ffe28a", "#8a6500", "#111111", "\u25b6"),
    "failed": ("#c2410c", "#5f1d00", "#ffffff", "\u2717"),
    "blocked": ("#efe3da", "#5f1d00", "#333333", "\u2013"),
    "waiting": ("#ffffff", "#777777", "#333333", ""),
}
DASHED = ("blocked", "waiting")  # their borders

_WRITERS: dict[str, Callable[[DrawnGraph], bytes]] = {
    ".svg": _svg,
    ".html": _page,
    ".dot": dot,
    ".mmd": mermaid,
}
KINDS = tuple(_WRITERS)


def check_kind(path: Path) -> None:
    """Refuse a file of a kind that cannot be drawn, before the work."""
    if path.suffix.lower() not in _WRITERS:
        found = f"cannot draw a graph as {path.suffix!r}" if path.suffix else "it has no suffix"
        raise InputError(f"{found}; known: {', '.join(KINDS)}", source=str(path))
    if not path.parent.is_dir():
        raise InputError(f"there is no directory {str(path.parent)!r}", source=str(path))


def write_graph(graph: DrawnGraph, path: str | os.PathLike[str]) -> None:
    """Draw a graph as its suffix asks; the file is complete or not there."""
    target = Path(path)
    check_kind(target)
    write_bytes(target, _WRITERS[target.suffix.lower()](graph))
