"""Names of a package that are imported when they are first used."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def lazily(package: str, **homes: str) -> Callable[[str], Any]:
    """The `__getattr__` of a package: by module, the names that live there."""
    modules = {name: module for module, names in homes.items() for name in names.split()}

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(f"{package}.{modules[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return get
