"""Dask's delayed objects (and other collections) as a flow, one task for each key of the graph."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from inspect import isasyncgenfunction, isgeneratorfunction
from typing import Any

from foreplan.errors import ForeplanError, InputError
from foreplan.flow import Flow
from foreplan.model.call import Eager, listed, parts_of, replaced, with_parts
from foreplan.version import install_command

_OLDEST = (2025, 11)  # what dask.compute does is the same since then


def flow_of(
    collections: Any, name: str = "delayed", optimize: bool = True
) -> tuple[Flow, list[Any]]:
    """The flow of a collection, or of a list or tuple of them, and what each comes to.

    An output is its argument with tasks in the place of Dask collections, which are found in
    lists, tuples, named tuples, sets, values of dicts and fields of dataclasses; `replaced` of
    foreplan.model.call puts the results there. It holds no task if Dask knows the value already,
    and a flow of such values alone has no tasks.
    """
    values = list(collections) if type(collections) in (list, tuple) else [collections]
    found: list[Any] = []
    shapes = [_take_apart(value, found) for value in values]
    flow = Flow(name)
    handles = _handles(flow, found, optimize) if found else []
    return flow, replaced(shapes, _Place, lambda place: handles[place.number])


@dataclass(frozen=True)
class _Place:
    """Where the n-th collection that was found stands."""

    number: int


def _take_apart(value: Any, found: list[Any]) -> Any:
    """The value with a place for each collection, which is added to those found."""
    base = _dask("dask.base")
    if base.is_dask_collection(value):
        found.append(value)
        return _Place(len(found) - 1)
    parts = parts_of(value)
    if parts is not None and not (type(value) is dict and base.unpack_collections(*value)[0]):
        old = list(parts)
        new = [_take_apart(part, found) for part in old]
        return value if all(map(operator.is_, old, new)) else with_parts(value, new)
    if isinstance(value, Iterator):  # as Dask does
        return _take_apart(list(value), found)
    if base.unpack_collections(value)[0]:
        what = "key of a dict" if type(value) is dict else type(value).__name__
        problem = f"a {what} holds Dask collections"
        where = "lists, tuples, sets, values of dicts or dataclasses"
        raise InputError(f"{problem}; give them in {where}")
    return value


def _handles(flow: Flow, collections: list[Any], optimize: bool) -> list[Any]:
    """The task (or known value) of each collection; all share one graph."""
    version = _dask("dask").__version__
    if tuple(map(int, version.split(".")[:2])) < _OLDEST:
        problem = f"Dask {version} is too old: with it some collections would come back wrong"
        raise InputError(f"{problem}; {install_command('dask')}")
    graph, keys = _lowered(collections, optimize)
    nodes = _dask("dask._task_spec").convert_legacy_graph(graph)
    futures = _futures(collections, graph, nodes)
    order = list(_in_order(nodes | dict.fromkeys(futures), keys))
    known = _gathered([futures[key] for key in order if key not in nodes])
    eager: dict[int, Eager] = {}  # by the id of a function: each is pickled once
    for key in order:
        if key in nodes:
            known[key] = _add(flow, key, nodes[key], known, eager)
    return [known[key] for key in keys]


def _lowered(collections: list[Any], optimize: bool) -> tuple[dict[Any, Any], list[Any]]:
    """The graph that dask.compute would give to a scheduler, and each collection's key in it.

    Each kind of collection is lowered on its own, as the results of several kinds at once come
    back from Dask in another order than that of the arguments. Delayed objects are taken as they
    are: Dask only drops what is not needed of them, and is slow at that.
    """
    kinds: dict[Any, list[int]] = {}
    for number, collection in enumerate(collections):
        kinds.setdefault(_kind(collection), []).append(number)
    graph: dict[Any, Any] = {}
    keys: dict[int, Any] = {}
    for kind, numbers in kinds.items():
        some = [collections[number] for number in numbers]
        lowered = _as_delayed(some) if kind == "delayed" else _expression(some, optimize)
        graph |= _dask("dask.utils").ensure_dict(lowered[0])
        keys |= zip(numbers, lowered[1], strict=True)
    return graph, [keys[number] for number in range(len(collections))]


def _kind(collection: Any) -> Any:
    """What Dask lowers together: delayed objects, expressions, graphs with one optimizer."""
    if isinstance(collection, _dask("dask.delayed").Delayed):
        return "delayed"
    parts = getattr(collection, "__dask_exprs__", None)  # of a collection of several expressions
    is_expression = isinstance(getattr(collection, "expr", None), _dask("dask._expr").Expr)
    if is_expression or (parts is not None and tuple(parts() or ())):
        return "expression"
    return "graph", getattr(collection, "__dask_optimize__", None)


def _as_delayed(collections: list[Any]) -> tuple[dict[Any, Any], list[Any]]:
    graph: dict[Any, Any] = {}
    for collection in collections:
        graph |= _dask("dask.utils").ensure_dict(collection.__dask_graph__())
    return graph, [collection.key for collection in collections]


def _expression(collections: list[Any], optimize: bool) -> tuple[Any, list[Any]]:
    """What dask.compute does before it calls a scheduler; shuffles become plain tasks."""
    expression = _dask("dask.base").collections_to_expr(collections, optimize)
    with _dask("dask").config.set({"dataframe.shuffle.method": "tasks"}):
        lowered = _dask("dask._expr").FinalizeCompute(expression).optimize()
        graph = lowered.__dask_graph__()
    keys = [list(_flat(some)) for some in lowered.__dask_keys__()]
    for collection, some in zip(collections, keys, strict=True):
        if len(some) != 1:
            problem = f"Dask makes {len(some)} results of one {type(collection).__name__}"
            raise InputError(f"{problem}, not a single one; turn it into delayed objects first")
    return graph, [key for (key,) in keys]


def _futures(
    collections: list[Any], graph: Mapping[Any, Any], nodes: Mapping[Any, Any]
) -> dict[Any, Any]:
    """What a cluster computes already, by key: persisted collections, and futures among arguments.

    Optimizers leave the key alone behind, so the collections' own graphs are looked through, too.
    """
    parts: list[Any] = [*graph.values(), *nodes.values()]
    for collection in collections:
        layers = getattr(getattr(collection, "dask", None), "layers", {})
        parts += [v for part in layers.values() if part.is_materialized() for v in part.values()]
    kind = _dask("distributed").Future
    return {ref.key: ref for part in parts for ref in _refs(part) if isinstance(ref, kind)}


def _gathered(futures: list[Any]) -> dict[Any, Any]:
    """The values of futures, brought here: a task's argument may go to any machine."""
    if not futures:
        return {}
    client = futures[0].client
    if client.asynchronous:
        problem = f"{str(futures[0].key)!r} is a future of an asynchronous client"
        raise InputError(f"{problem}; give foreplan the collection from before it was persisted")
    return dict(zip((f.key for f in futures), client.gather(futures), strict=True))


def _flat(keys: Any) -> Iterator[Any]:
    if isinstance(keys, list):
        for key in keys:
            yield from _flat(key)
    else:
        yield keys


def _in_order(nodes: Mapping[Any, Any], wanted: Sequence[Any]) -> Iterator[Any]:
    """The keys that are needed, each after those it needs; the same order in every process."""
    done: set[Any] = set()
    path: set[Any] = set()
    stack = list(reversed(wanted))
    while stack:
        key = stack[-1]
        if key in done:
            stack.pop()
            continue
        if key not in nodes:
            problem = f"{str(key)!r} is not in the graph"
            raise InputError(f"{problem}; give foreplan the collection that it was made of")
        missing = [k for k in dict.fromkeys(_needs(nodes[key])) if k not in done]
        if not path.isdisjoint(missing) or key in missing:
            raise InputError(f"the graph has a cycle through {str(key)!r}")
        if missing:
            path.add(key)
            stack.extend(reversed(missing))
        else:
            path.discard(key)
            done.add(stack.pop())
            yield key


def _needs(part: Any) -> Iterator[Any]:
    """The keys that a part of the graph refers to, in the order in which it does."""
    return (ref.key for ref in _refs(part))


def _refs(part: Any) -> Iterator[Any]:
    spec = _dask("dask._task_spec")
    if isinstance(part, spec.TaskRef):
        yield part
    elif isinstance(part, spec.Alias):
        yield spec.TaskRef(part.target)
    elif isinstance(part, spec.Task) and part.has_subgraph():
        inner, _, names, *outer = part.args  # sorted by hash, so the order is that of their use
        given = dict(zip(names, outer, strict=False))
        used = [ref.key for node in inner.values() for ref in _refs(node) if ref.key in given]
        for value in (*(given[name] for name in used), *outer):
            yield from _refs(value)
    elif isinstance(part, spec.Task):
        for value in (*part.args, *part.kwargs.values()):
            yield from _refs(value)


def _functions(part: Any) -> Iterator[Any]:
    """The functions that a part of the graph calls."""
    if isinstance(part, _dask("dask._task_spec").Task):
        yield part.func
        inner = part.args[0].values() if part.has_subgraph() else part.args
        for value in (*inner, *part.kwargs.values()):
            yield from _functions(value)


def _refuse_shuffles(node: Any) -> None:
    """Those that leave data outside their results: a task that is made again would double it."""
    for function in _functions(node):
        named = function if hasattr(function, "__qualname__") else type(function)
        home = str(getattr(named, "__module__", ""))
        if home.startswith("distributed.shuffle"):
            problem, how = "Dask's P2P", "in the workers' memory"
        elif home.partition(".")[0] == "partd" or named.__qualname__ == "maybe_buffered_partd":
            problem, how = "Dask's disk", "in files of one machine"
        else:
            continue
        raise InputError(
            f"{problem} shuffle keeps data {how}, which foreplan cannot make again; choose "
            "shuffles by tasks (shuffle='tasks', shuffle_method='tasks', "
            "rechunk(method='tasks')), or call "
            "dask.config.set({'dataframe.shuffle.method': 'tasks'}) before the collection is made"
        )


def _add(flow: Flow, key: Any, node: Any, known: Mapping[Any, Any], eager: dict[int, Eager]) -> Any:
    """The task that a node becomes, or the value that it is."""
    spec = _dask("dask._task_spec")
    if not isinstance(node, spec.Task):
        return _argument(node, known)
    _refuse_shuffles(node)
    function: Callable[..., Any]
    kwargs: dict[str, Any] = {}
    if isinstance(node, spec.NestedContainer) and _is_plain(node):
        function, args = _same, [_argument(node, known)]
    elif type(node) is spec.Task and _is_plain_call(node):
        function = eager.setdefault(id(node.func), Eager(node.func))
        args = [_argument(part, known) for part in node.args]
        kwargs = {word: _argument(part, known) for word, part in node.kwargs.items()}
    else:
        needs = tuple(dict.fromkeys(_needs(node)))
        function, args = _Node(node, needs), [known[k] for k in needs]
    label, category = _labels(key, node)
    return flow.call(function, args, kwargs, name=label, category=category)


def _is_plain_call(node: Any) -> bool:
    """Return whether a node can be a plain task: its arguments are all that it takes."""
    # what a generator yields may be read within the node; a flow refuses such a function
    is_lazy = isgeneratorfunction(node.func) or isasyncgenfunction(node.func)
    return not (is_lazy or node.has_subgraph()) and _is_plain(node, root=True)


def _is_plain(part: Any, root: bool = False) -> bool:
    """Whether lists, tuples, sets, dicts and references to other keys say it all."""
    spec = _dask("dask._task_spec")
    if isinstance(part, spec.Dict):
        keys, values = part.args[::2], part.args[1::2]
        nodes = (spec.GraphNode, spec.TaskRef)
        return not any(isinstance(k, nodes) for k in keys) and all(map(_is_plain, values))
    if isinstance(part, spec.NestedContainer):
        return all(map(_is_plain, part.args))
    if isinstance(part, spec.Task):
        return root and all(map(_is_plain, (*part.args, *part.kwargs.values())))
    return True


def _argument(part: Any, known: Mapping[Any, Any]) -> Any:
    """A part of a node as an argument of a flow's task."""
    spec = _dask("dask._task_spec")
    if isinstance(part, spec.TaskRef):
        return known[part.key]
    if isinstance(part, spec.Alias):
        return known[part.target]
    if isinstance(part, spec.DataNode):
        return part.value
    if isinstance(part, spec.Dict):
        values = [_argument(value, known) for value in part.args[1::2]]
        return dict(zip(part.args[::2], values, strict=True))
    if isinstance(part, spec.NestedContainer):
        return part.klass([_argument(value, known) for value in part.args])
    return part


@dataclass(frozen=True, eq=False)
class _Node:
    """A node with calls inside its arguments, as a function of the values of its keys.

    It is kept out of the arguments, where a Dask client would take it for a part of its own graph.
    """

    node: Any
    needs: tuple[Any, ...]

    def __call__(self, *values: Any) -> Any:
        return listed(self.node(dict(zip(self.needs, values, strict=True))))


def _same(value: Any) -> Any:
    return value


def _labels(key: Any, node: Any) -> tuple[str, str]:
    """A task's name, and its category: the key's prefix; the function where the user named it."""
    utils = _dask("dask.utils")
    prefix = utils.key_split(key)
    prefix = prefix.removesuffix("-hlgfinalizecompute")
    named = prefix == key or prefix == "Other"
    return str(key if prefix == "Other" else prefix), utils.funcname(node.func) if named else prefix


@cache
def _dask(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        problem = f"this needs Dask, which is not here or too old ({error})"
        raise ForeplanError(f"{problem}: {install_command('dask')}") from None
