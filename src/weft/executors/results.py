"""The results of Python functions, pickled: one file for each task, in the run's own home."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

from weft.errors import WeftError


def result_path(results: str | os.PathLike[str], task: int) -> str:
    """The file of a task's result."""
    return os.path.join(results, f"{task}.pkl")


def load_result(results: str | os.PathLike[str], task: int, name: str = "") -> Any:
    """The result of a task that has finished."""
    shown = repr(name) if name else str(task)
    path = Path(result_path(results, task))
    try:
        with path.open("rb") as file:
            return pickle.load(file)
    except FileNotFoundError:
        raise WeftError(f"task {shown} has no result: it has not finished") from None
    except Exception as error:  # unpickling calls code of the objects, which may raise anything
        what = f"{type(error).__name__}: {error}"
        raise WeftError(f"the result of task {shown} cannot be read: {what} ({path})") from error
