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

    One of your own is `module:Class`, of a module in this directory or an installed one; a package
    may declare a name for it by an entry point of the group `foreplan.strategies`.

    Example: `foreplan strategies --json`
    """
    from foreplan import registry

    print_listed(registry.strategy_names(), registry.strategy_class, as_json)
