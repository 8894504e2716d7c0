"""Loops over files that a task has yet to make: a template that is expanded when they are there.

In its place stands a task that reads the files and adds what the template gives, see `growing`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

TEMPLATE = "TEMPLATE"
_GLOB = re.compile(r"glob\((.*)\)", re.DOTALL)
_REFERENCE = re.compile(r"\{[^{}]*\}")

Fields = Mapping[Any, Any]


def made_patterns(document: Fields) -> frozenset[str]:
    """The outputs of a file's tasks that are patterns."""
    tasks, found = document.get("tasks"), set[str]()
    for body in tasks.values() if isinstance(tasks, Mapping) else ():
        outputs = body.get("outputs") if isinstance(body, Mapping) else None
        for output in outputs if isinstance(outputs, list | tuple) else ():
            name = output.get("path") if isinstance(output, Mapping) else output
            if isinstance(name, str) and ("*" in name or "?" in name):
                found.add(name)
    return frozenset(found)


def loops_over(loop: object, document: Fields) -> dict[str, str]:
    """The patterns among what the tasks of a file make that a loop goes over, by variable."""
    calls = globs_of(loop)
    made = made_patterns(document) if calls else ()
    return {variable: pattern for variable, pattern in calls.items() if pattern in made}


def globs_of(loop: object) -> dict[str, str]:
    """The patterns that a loop goes over, by variable."""
    variables = loop.items() if isinstance(loop, Mapping) else ()
    texts = {variable: text.strip() for variable, text in variables if isinstance(text, str)}
    return {
        variable: call[1].strip().strip("'\"")
        for variable, text in texts.items()
        if (call := _GLOB.fullmatch(text))
    }


def deferred(
    key: str, body: Fields, document: Fields, params: Mapping[str, object], patterns: Sequence[str]
) -> tuple[str, dict[str, object]]:
    """A task that reads the files, and prints the template with all that belongs to it.

    It is called as the template, `*` for what the loop replaces.
    """
    around = {field: document[field] for field in ("shell", "defaults") if field in document}
    printed = json.dumps({"params": dict(params), **around, "tasks": {key: dict(body)}})
    return _REFERENCE.sub("*", key), {
        "run": f"printf '%s\\n' \"${TEMPLATE}\"",
        "shell": "sh",
        "env": {TEMPLATE: printed},  # a command would seem to name the files in it
        "inputs": [*dict.fromkeys(patterns)],
        "expand": True,
    }


@dataclass(frozen=True)
class LaterLoop:
    """A loop over files that a task has yet to make: the task in its place, and its files."""

    called: str
    task: dict[str, object]
    read: set[str]  # patterns of the files of its tasks
    made: set[str]


def let_wait(loops: Sequence[LaterLoop]) -> None:
    """Tasks that read what those of another loop make are added when these are there."""
    for loop in loops:
        makers = [one.called for one in loops if one is not loop and one.made & loop.read]
        if makers:
            loop.task["after"] = makers
