"""Names of the product: each stands for one thing."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import foreplan

SOURCES = Path(foreplan.__file__).parent


def test_no_two_classes_have_one_name() -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for path in sorted(SOURCES.rglob("*.py")):
        for found in ast.parse(path.read_text()).body:
            if isinstance(found, ast.ClassDef) and not found.name.startswith("_"):
                homes[found.name].append(str(path.relative_to(SOURCES)))
    assert {name: where for name, where in homes.items() if len(where) > 1} == {}
