"""Names that are imported when they are first used."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def drawn_by(module: str, name: str) -> Callable[[Any], str]:
    """A method that a higher room has: the data is below, and who draws it is found when asked."""

    def draw(self: Any) -> str:
        from importlib import import_module

        drawn: str = getattr(import_module(module), name)(self)
        return drawn

    draw.__doc__ = "What a notebook shows."
    return draw


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
