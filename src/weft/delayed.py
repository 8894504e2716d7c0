"""Dask's delayed objects (and other collections) as a flow, one task for each key of the graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from weft.errors import InputError, WeftError
from weft.flow import Flow


def flow_of(
    collections: Any, name: str = "delayed", optimize: bool = True
) -> tuple[Flow, list[Any]]:
    """The flow of a collection, or of a list or tuple of them, and what each comes to.

    An output is its argument with tasks in the place of Dask collections, which are found in
    lists, tuples, sets and values of dicts; `weft.flow.replaced` puts the results there. It holds
    no task if Dask knows the value already, and a flow of such values alone has no tasks.
    """
    values = list(collections) if type(collections) in (list, tuple) else [collections]
    found: list[Any] = []
    shapes = [_shape(value, found) for value in values]
    flow = Flow(name)
    handles = _handles(flow, found, optimize) if found else []
    return flow, [_filled(shape, handles) for shape in shapes]


@dataclass(frozen=True)
class _Place:
    """Where the n-th collection that was found stands."""

    number: int


def _shape(value: Any, found: list[Any]) -> Any:
    """The value with a place for each collection, which is added to those found."""
    base = _dask("dask.base")
    if base.is_dask_collection(value):
        found.append(value)
        return _Place(len(found) - 1)
    if type(value) in (list, tuple, set, frozenset):
        return type(value)(_shape(part, found) for part in value)
    if type(value) is dict:
        return {key: _shape(part, found) for key, part in value.items()}
    if base.unpack_collections(value)[0]:
        problem = f"a {type(value).__name__} holds Dask collections"
        raise InputError(f"{problem}; give them in lists, tuples, sets or values of dicts")
    return value


def _filled(shape: Any, handles: Sequence[Any]) -> Any:
    if isinstance(shape, _Place):
        return handles[shape.number]
    if type(shape) in (list, tuple, set, frozenset):
        return type(shape)(_filled(part, handles) for part in shape)
    if type(shape) is dict:
        return {key: _filled(part, handles) for key, part in shape.items()}
    return shape


def _handles(flow: Flow, collections: list[Any], optimize: bool) -> list[Any]:
    """The task (or known value) of each collection; all share one graph."""
    if optimize:
        collections = _optimized(collections)
    graph: dict[Any, Any] = {}
    for collection in collections:
        graph |= _dask("dask.utils").ensure_dict(collection.__dask_graph__())
    nodes = _dask("dask._task_spec").convert_legacy_graph(graph)
    keys = [collection.__dask_keys__() for collection in collections]
    known: dict[Any, Any] = {}
    for key in _in_order(nodes, list(_flat(keys))):
        known[key] = _add(flow, key, nodes[key], known)
    return [_finished(flow, c, k, known) for c, k in zip(collections, keys, strict=True)]


def _optimized(collections: list[Any]) -> list[Any]:
    """As Dask would; of delayed objects it only drops what is not needed, and is slow at that."""
    kind = _dask("dask.delayed").Delayed
    others = [collection for collection in collections if not isinstance(collection, kind)]
    better = iter(_dask("dask").optimize(*others))
    return [c if isinstance(c, kind) else next(better) for c in collections]


def _finished(flow: Flow, collection: Any, keys: Any, known: Mapping[Any, Any]) -> Any:
    """What Dask would make of the results of a collection's keys, as a task where it is more."""
    finish, extra = collection.__dask_postcompute__()
    if finish is _dask("dask.delayed").single_key:
        return known[keys[0]]
    kind = type(collection).__name__
    return flow.call(finish, (_looked_up(keys, known), *extra), category=f"finalize-{kind}")


def _looked_up(keys: Any, known: Mapping[Any, Any]) -> Any:
    return [_looked_up(k, known) for k in keys] if isinstance(keys, list) else known[keys]


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
            problem = f"{str(key)!r} is not in the graph: a future, or a persisted collection"
            raise InputError(f"{problem}; give weft the collection from before it was persisted")
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
    spec = _dask("dask._task_spec")
    if isinstance(part, spec.TaskRef):
        yield part.key
    elif isinstance(part, spec.Alias):
        yield part.target
    elif isinstance(part, spec.Task):
        for value in (*part.args, *part.kwargs.values()):
            yield from _needs(value)


def _add(flow: Flow, key: Any, node: Any, known: Mapping[Any, Any]) -> Any:
    """The task that a node becomes, or the value that it is."""
    spec = _dask("dask._task_spec")
    if not isinstance(node, spec.Task):
        return _argument(node, known)
    function: Callable[..., Any]
    kwargs: dict[str, Any] = {}
    if isinstance(node, spec.NestedContainer) and _is_plain(node):
        function, args = _same, [_argument(node, known)]
    elif type(node) is spec.Task and not node.has_subgraph() and _is_plain(node, root=True):
        function, args = node.func, [_argument(part, known) for part in node.args]
        kwargs = {word: _argument(part, known) for word, part in node.kwargs.items()}
    else:
        needs = tuple(dict.fromkeys(_needs(node)))
        function, args = _Node(node, needs), [known[k] for k in needs]
    label, category = _labels(key, node)
    return flow.call(function, args, kwargs, name=label, category=category)


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
        return self.node(dict(zip(self.needs, values, strict=True)))


def _same(value: Any) -> Any:
    return value


def _labels(key: Any, node: Any) -> tuple[str, str]:
    """A task's name, and its category: the key's prefix; the function where the user named it."""
    utils = _dask("dask.utils")
    prefix = utils.key_split(key)
    named = prefix == key or prefix == "Other"
    return str(key if prefix == "Other" else prefix), utils.funcname(node.func) if named else prefix


@cache
def _dask(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        problem = f"this needs Dask, which is not here or too old ({error})"
        raise WeftError(f"{problem}: pip install 'weft[dask]'") from None
