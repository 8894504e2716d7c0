"""`foreplan strategies`: when to ask for a new plan while a run is under way."""

from __future__ import annotations

from typing import Annotated

from foreplan.cli.planners import print_listed
from foreplan.cli.shared.options import json_option


def strategies(
    as_json: Annotated[bool, json_option("them")] = False,
) -> None:
    """List the strategies, their options and what each does.

    A strategy is written as a spec string, with its options in brackets:
    `foreplan simulate wf.yaml -p cluster.yaml --strategy 'slack[planner=dls]'`

    Example: `foreplan strategies --json`
    """
    from foreplan import registry

    print_listed([registry.strategy_class(name) for name in registry.strategy_names()], as_json)
