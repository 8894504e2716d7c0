"""`weft strategies`: when to ask for a new plan while a run is under way."""

from __future__ import annotations

from typing import Annotated

import typer

from weft.cli.planners import listed


def strategies(
    as_json: Annotated[bool, typer.Option("--json", help="Print them as JSON.")] = False,
) -> None:
    """List the strategies, their options and what each does.

    A strategy is written as a spec string, with its options in brackets:
    `weft simulate wf.yaml -p cluster.yaml --strategy 'slack[planner=dls]'`

    Example: `weft strategies --json`
    """
    from weft import registry

    listed([registry.strategy_class(name) for name in registry.strategy_names()], as_json)
