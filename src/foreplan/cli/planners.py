"""`foreplan planners`: what there is to plan with."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Annotated, Any, cast

from foreplan.cli.shared.options import json_option
from foreplan.spec import spec_of


def planners(
    as_json: Annotated[bool, json_option("them")] = False,
) -> None:
    """List the planners, their options and what each does.

    A planner is written as a spec string, with its options in brackets.

    Example: `foreplan plan wf.yaml -p cluster.yaml --planner 'heft[insertion=false]'`
    """
    from foreplan import registry

    print_listed([registry.planner_class(name) for name in registry.planner_names()], as_json)


def _plain(default: Any) -> Any:
    """A default as JSON knows it: a planner is its spec string, and no limit is none."""
    if is_dataclass(default):
        return spec_of(default)
    return None if isinstance(default, float) and math.isinf(default) else default


def print_listed(classes: Sequence[Any], as_json: bool) -> None:
    """Print what has a spec string: its name, its options and the first line about it."""
    rows = []
    for cls in classes:
        options = {f.name: _plain(f.default) for f in fields(cls)}
        about = (cls.__doc__ or "").strip().splitlines()[0]
        rows.append({"name": cls.name, "options": options, "about": about})
    if as_json:
        print(json.dumps(rows, indent=1))
        return
    width = max(10, *(len(cls.name) for cls in classes))
    for row in rows:
        print(f"{row['name']:{width}} {row['about']}")
        for option, default in cast(dict[str, Any], row["options"]).items():
            shown = str(default).lower() if isinstance(default, bool | None) else default
            print(f"{'':{width}}   [{option}={shown}]")
