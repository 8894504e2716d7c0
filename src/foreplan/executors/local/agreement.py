"""Give a worker process the program of the process that started it.

Before a call the worker compares the bindings that the call uses (foreplan.store.bindings). It asks
for those that differ and sets them. What cannot be sent fails the task.
"""

from __future__ import annotations

import functools
import io
import pickle
import socket
import types
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from foreplan.executors.local.function_worker import receive, receive_part, send
from foreplan.executors.packing import make_again, pickler
from foreplan.store.bindings import (
    HERE,
    BindingDifference,
    Bindings,
    Names,
    ProgramError,
    digest_of,
    home_of,
    look_up,
    name_of,
    tell,
)
from foreplan.store.programs import ABSENT, imported_as

_ROUNDS = 10  # a binding that is sent may make others differ that refer to it
_SET, _DELETE, _NAMES = "set", "delete", "names"


# ---- the process that asks for calls


class Agreed:
    """The bindings that a worker process knows."""

    def __init__(self) -> None:
        self._sent = set[str]()

    def request(self, bindings: Bindings) -> dict[str, Any] | None:
        """Return what a request says of the bindings of its call; their digests only once."""
        if not bindings.digests:
            return None
        digests = None if bindings.token in self._sent else bindings.digests
        self._sent.add(bindings.token)
        return {"token": bindings.token, "digests": digests, "again": bindings.has_classes}


@dataclass
class Agreement:
    """The exchange with a worker process before one call: what it asks for, and the answers."""

    bindings: Bindings
    may_differ: bool = False  # then the function is called all the same
    # bindings that tasks of the worker have changed
    changed: list[str] = field(default_factory=list)
    _rounds: int = 0

    def answer(self, reply: dict[str, Any], channel: socket.socket) -> None:
        """Send what the worker asks for, or have it refuse the call."""
        differences = [BindingDifference(*fields) for fields in reply["differs"]]
        self.changed += [found.binding for found in differences if found.by_task]
        self._rounds += 1
        problem = reply["problem"]
        payload = b""
        try:
            if self._rounds > _ROUNDS:
                raise ValueError("it differs again after it was sent")
            payload = _pickled(self.bindings, [found.binding for found in differences])
        except Exception as error:  # pickling calls code of the objects
            problem = f"it cannot be sent there: {str(error) or type(error).__name__}"
        if problem or any(found.problem for found in differences):
            problem = tell(differences, "its worker process", problem)
        send(channel, {"refused": problem, "call": self.may_differ}, payload)


def _pickled(bindings: Bindings, names: Sequence[str]) -> bytes:
    """Return the values of bindings as they are put in their places."""
    found: list[tuple[str, str, str, Any]] = []
    for binding in names:
        value = look_up(binding)
        if isinstance(value, type) and name_of(value) == binding:
            raise ValueError("the classes have other bases, slots or fields")
        if digest_of(binding, value) != bindings.digests[binding].partition("#")[0]:
            raise ValueError("the program has changed it since the run began")
        kind = _DELETE if value is ABSENT else _NAMES if type(value) is Names else _SET
        content = tuple(value) if kind == _NAMES else None if kind == _DELETE else value
        found.append((binding, bindings.digests[binding], kind, content))
    sent = {*names}

    class Pickler(pickler()):  # type: ignore[misc]
        def reducer_override(self, value: Any) -> Any:
            if type(value) is types.FunctionType or type(value) is functools._lru_cache_wrapper:
                name = imported_as(value) if hasattr(value, "__qualname__") else ""
                travels = not name or name in sent or name.endswith(".__wrapped__")
                if travels and (made := make_again(value) or _of_module(value)):
                    return made
            return super().reducer_override(value)

    buffer = io.BytesIO()
    Pickler(buffer, protocol=5).dump(found)
    return buffer.getvalue()


def _of_module(function: Any) -> Any:
    """Return how a function is made again among the globals of its module; None if it has none."""
    if type(function) is not types.FunctionType or not (home := home_of(function)):
        return None
    cells = [_content_of(cell) for cell in function.__closure__ or ()]
    state = {
        "__defaults__": function.__defaults__,
        "__kwdefaults__": function.__kwdefaults__,
        "__qualname__": function.__qualname__,
        "__module__": function.__module__,
        "__doc__": function.__doc__,
        "__dict__": function.__dict__,
    }
    made = (home, function.__code__, function.__name__, len(cells))
    return _make_function, made, (state, cells), None, None, _fill_function


def _content_of(cell: types.CellType) -> tuple[Any, ...]:
    try:
        return (cell.cell_contents,)
    except ValueError:  # it is empty
        return ()


def _make_function(home: str, code: types.CodeType, name: str, cells: int) -> types.FunctionType:
    import importlib

    closure = tuple(types.CellType() for _ in range(cells))
    return types.FunctionType(code, vars(importlib.import_module(home)), name, None, closure)


def _fill_function(
    function: types.FunctionType, content: tuple[dict[str, Any], list[tuple[Any, ...]]]
) -> None:
    state, cells = content
    for name, value in state.items():
        setattr(function, name, value)
    for cell, held in zip(function.__closure__ or (), cells, strict=True):
        if held:
            (cell.cell_contents,) = held


# ---- the worker process


def agree(channel: socket.socket, program: dict[str, Any], is_loaded: bool) -> str:
    """Have the bindings of a call be as it expects; return those that differ and may.

    When the call is loaded, classes of a script that came with it may have registered themselves.
    """
    if is_loaded and not program["again"]:
        return ""
    expected = HERE.bindings(program["token"], program["digests"])
    problem = ""
    while differences := HERE.compare(expected):
        if is_loaded:
            differences = [found._replace(by_task=False) for found in differences]
        send(channel, {"differs": differences, "problem": problem})
        answer = receive(channel)
        payload = receive_part(channel)
        if answer is None or payload is None:
            raise ProgramError("the program is gone")
        if answer["refused"] and not answer["call"]:
            raise ProgramError(answer["refused"])
        if answer["refused"]:
            return ", ".join(found.binding for found in differences)
        problem = _put(payload)
    return ""


def _put(payload: bytes | bytearray) -> str:
    """Put what was sent in its places; return why that cannot be done."""
    try:
        for binding, expected, kind, value in pickle.loads(payload):
            if kind == _DELETE:
                value = ABSENT
            elif kind == _NAMES:
                value = Names(value)
            HERE.put(binding, value, expected)
    except Exception as error:  # unpickling calls code of the objects
        return f"it cannot be put there: {type(error).__name__}: {error}"
    return ""
