"""Make a call for a `FunctionPool`: one function, from bytes to bytes."""

from __future__ import annotations

import contextlib
import os
import pickle
import tempfile
from pathlib import Path
from typing import Any

from foreplan.executors.local.function_worker import answer
from foreplan.executors.usage import ThreadMeter
from foreplan.store.bindings import compare_program


def call(payload: bytes) -> bytes:
    """Call the function that is packed in `payload`; return its result or its error, packed.

    The call is made as a worker process of this machine makes it. What it reads and writes as files
    there travels in the bytes here.
    """
    asked: dict[str, Any] = pickle.loads(payload)
    with tempfile.TemporaryDirectory(prefix="foreplan-", ignore_cleanup_errors=True) as place:
        result, error = os.path.join(place, "result"), os.path.join(place, "error")
        given = {task: os.path.join(place, f"{task}.pkl") for task in asked["results"]}
        for task, path in given.items():
            with open(path, "wb") as file:
                file.write(asked["results"][task])
        request = {
            "result": result,
            "error": error,
            "results": given,
            "names": asked["names"],
            "is_kept": asked["is_kept"],
            "environment": {},
            "former": (),
            "data_limit": None,
        }

        def agree(is_loaded: bool) -> str:
            if not is_loaded:
                return ""
            bindings, may_differ = asked["program"]
            other, changed = compare_program(bindings, may_differ, "its worker")
            return other or ", ".join(changed)

        meter = ThreadMeter()
        reply = answer(request, asked["call"], asked["folder"], agree)
        reply["used"] = meter.read()
        for name, path in (("result", result), ("raised", error)):
            with contextlib.suppress(FileNotFoundError):
                reply[name] = Path(path).read_bytes()
    return pickle.dumps(reply)
