"""`foreplan planners`: what there is to plan with."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import MISSING, fields, is_dataclass
from typing import Annotated, Any, cast

from foreplan.cli.shared.options import json_option
from foreplan.errors import InputError
from foreplan.spec import spec_of


def planners(
    as_json: Annotated[bool, json_option("them")] = False,
) -> None:
    """List the planners, their options and what each does.

    A planner is written as a spec string, with its options in brackets. One of your own is
    `module:Class`, of a module in this directory or an installed one; a package may declare a name
    for it by an entry point of the group `foreplan.planners`.

    Example: `foreplan plan wf.yaml -p cluster.yaml --planner 'heft[insertion=false]'`
    """
    from foreplan import registry

    print_listed(registry.planner_names(), registry.planner_class, as_json)


def _plain(default: Any) -> Any:
    """A default as JSON knows it: a planner is its spec string, and no limit is none."""
    if hasattr(default, "plan"):
        return spec_of(default)
    if default is MISSING or (isinstance(default, float) and math.isinf(default)):
        return None
    return default if isinstance(default, str | int | float | None) else str(default)


def _listed(name: str, class_of: Callable[[str], Any]) -> dict[str, Any]:
    """The row of a name; of what another package declares and cannot be loaded, why."""
    try:
        cls = class_of(name)
    except InputError as error:
        return {"name": name, "options": {}, "about": f"cannot be loaded: {error}"}
    options = {f.name: _plain(f.default) for f in fields(cls)} if is_dataclass(cls) else {}
    about = (cls.__doc__ or "").strip().partition("\n")[0]
    return {"name": name, "options": options, "about": about}


def print_listed(names: Sequence[str], class_of: Callable[[str], Any], as_json: bool) -> None:
    """Print what has a spec string: its name, its options and the first line about it."""
    rows = [_listed(name, class_of) for name in names]
    if as_json:
        print(json.dumps(rows, indent=1))
        return
    width = max(10, *map(len, names))
    for row in rows:
        print(f"{row['name']:{width}} {row['about']}")
        for option, default in cast(dict[str, Any], row["options"]).items():
            shown = str(default).lower() if isinstance(default, bool | None) else default
            print(f"{'':{width}}   [{option}={shown}]")
