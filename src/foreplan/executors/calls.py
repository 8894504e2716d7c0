"""Calls of functions on their way to a worker, and made there.

A call is a pickle with places for the results and files that it refers to. Parts of its arguments
that are one object are one object in the worker, too. Worker processes import this, so it imports
little.
"""

from __future__ import annotations

import functools
import io
import pickle
import types
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any

from foreplan.executors import packing

if TYPE_CHECKING:
    from foreplan.model.call import Call

Place = tuple[int | str, Any]  # of a result: its task, and the path of a part
SHARED = "shared"  # stands before the file of an argument, where others have the number of a task


def pack_call(
    call: Call,
    with_function: bool = True,
    find_place: Callable[[Any], Place | None] | None = None,
) -> tuple[bytes, list[Any]]:
    """Return a call as bytes, and the functions, classes and modules that are in it.

    Without its function, if that travels by itself. `find_place` returns the place of a large
    argument that travels apart, because other calls take it, too.
    """
    from foreplan.model.call import files_of, refs

    content = (call.function if with_function else None, call.args, dict(call.kwargs))
    file = io.BytesIO()
    pickler = _pickler()(file, set(refs(call)), set(files_of(call)))
    pickler.find_place = find_place
    pickler.met = []
    pickler.dump(content)
    return file.getvalue(), pickler.met


@functools.cache
def _pickler() -> Any:
    from foreplan.errors import InputError
    from foreplan.executors.hidden import describe_hidden
    from foreplan.executors.shared_arguments import KINDS, is_large
    from foreplan.model.call import FileRef, Handle, Ref

    class CallPickler(packing.pickler()):  # type: ignore[misc]
        """Keeps places for results and files; refuses tasks that stand where none is looked for."""

        find_place: Callable[[Any], Place | None] | None = None  # of a large argument

        def __init__(self, file: io.BytesIO, tasks: set[int], files: set[str]) -> None:
            super().__init__(file, protocol=5)
            self._tasks = tasks
            self._files = files
            self._whole: Any = None
            self._large: dict[int, tuple[Any, Place | None]] = {}  # values, and their places

        def dump(self, whole: Any) -> None:
            self._whole = whole
            super().dump(whole)

        def persistent_id(self, value: Any) -> Place | str | None:
            kind = type(value)
            if kind in KINDS:
                return self._place_of(value)
            if kind is Ref:
                return (value.task, value.path) if value.task in self._tasks else None
            if kind is FileRef:
                return value.name if value.name in self._files else None
            if issubclass(kind, Handle):
                raise InputError(describe_hidden(value, *self._whole))
            return None

        def _place_of(self, value: Any) -> Place | None:
            """Return the place of a large argument; decide it once for all uses in a call."""
            if self.find_place is None or not is_large(value):
                return None
            if id(value) not in self._large:
                self._large[id(value)] = value, self.find_place(value)
            return self._large[id(value)][1]

    return CallPickler


def load_call(
    content: bytes | bytearray,
    load_result: Callable[[int], Any],
    names: Mapping[int, str],
    folder: str,
) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]:
    """Return the function and the arguments of a call, with results and paths in their places.

    `load_result` returns the result of a task and is called once for each; `names` are those of
    the tasks. Without its function, the first of the three is None.
    """
    call: tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]
    call = _Unpickler(content, load_result, names, folder).load()
    return call


class _Unpickler(pickle.Unpickler):
    def __init__(
        self,
        content: bytes | bytearray,
        load_result: Callable[[int], Any],
        names: Mapping[int, str],
        folder: str,
    ) -> None:
        super().__init__(io.BytesIO(content))
        self._load_result = functools.cache(load_result)
        self._load_shared = functools.cache(packing.load)
        self._names = names
        self._folder = folder

    def persistent_load(self, place: tuple[Any, Any] | str) -> Any:
        """Return the result of a task, or a part of it; a shared argument; or a path."""
        if isinstance(place, str):
            from foreplan.model.call import path_of

            return path_of(self._folder, place)
        task, path = place
        if task == SHARED:
            return self._load_shared(path)
        if not path:
            return self._load_result(task)
        from foreplan.model.call import part_of

        return part_of(self._load_result(task), path, self._names[task])


def await_result(result: Any) -> Any:
    """Return what a function has returned; the coroutine of an async one is run to its end."""
    if isinstance(result, Coroutine):
        import asyncio

        return asyncio.run(result)
    return result


_IMMUTABLE = frozenset({type(None), bool, int, float, complex, str, bytes, tuple, frozenset})
_MANY = 1000  # parts from which on it takes longer to look at them than to copy them


def is_immutable(value: Any) -> bool:
    """Return whether a value, and all that it holds, can never change; False also if unsure."""
    todo, count = [value], 0
    while todo:
        part = todo.pop()
        kind = type(part)
        if kind in (tuple, frozenset):
            count += len(part)
            todo += part if count <= _MANY else ()
        if count > _MANY or kind not in _IMMUTABLE:
            return False
    return True


def is_stateless(function: Any) -> bool:
    """Return whether a function holds nothing that a call could change.

    What is in modules is compared elsewhere (foreplan.store.bindings).
    """
    todo, seen = [function], dict[int, Any]()
    while todo:
        part = todo.pop()
        if id(part) in seen or is_immutable(part) or isinstance(part, type | types.ModuleType):
            continue
        seen[id(part)] = part
        inside = _held_by(part)
        if inside is None:
            return False
        todo += inside
    return True


def _held_by(function: Any) -> list[Any] | None:
    """Return what a function holds; None if nobody knows."""
    kind = type(function)
    if kind is types.BuiltinFunctionType:
        return [] if isinstance(function.__self__, types.ModuleType) else None
    if kind is functools.partial:
        return [function.func, *function.args, *function.keywords.values()]
    if kind is functools._lru_cache_wrapper:  # its cache is for all calls of a worker
        return [function.__wrapped__]
    if kind is not types.FunctionType:
        return None
    try:
        cells = [cell.cell_contents for cell in function.__closure__ or ()]
    except ValueError:  # one is empty yet
        return None
    defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    known = _global_values(function)
    return None if known is None else [*cells, *defaults, *vars(function).values(), *known]


def _global_values(function: types.FunctionType) -> list[Any] | None:
    """Return the values of the globals that travel with a function; None if it sets some."""
    from foreplan.store.programs import imported_as, sets_globals, used_names

    if imported_as(function):
        return []
    if sets_globals(function.__code__):
        return None
    known = function.__globals__
    return [known[name] for name in used_names(function.__code__) if name in known]
