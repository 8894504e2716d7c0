"""What a worker of a `FunctionPool` does: one function, from bytes to bytes."""

from __future__ import annotations

import contextlib
import os
import pickle
import tempfile
from typing import Any

from foreplan.executors.local.function_worker import _answer as make_call
from foreplan.executors.usage import ThreadMeter


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
            "imports": asked["imports"],
            "environment": {},
            "former": (),
            "data_limit": None,
        }
        meter = ThreadMeter()
        reply = make_call(request, asked["call"], asked["folder"])
        reply["used"] = meter.read()
        for name, path in (("result", result), ("raised", error)):
            with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
                reply[name] = file.read()
    return pickle.dumps(reply)
