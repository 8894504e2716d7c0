"""Seeded generators of workflows and platforms: one family of graphs per function."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import fields
from typing import Any

import numpy as np

from foreplan.errors import InputError, unknown_name
from foreplan.generators.costs import Costs, measured_beta, measured_ccr, to_workflow
from foreplan.generators.graph import REGISTERED, Family
from foreplan.generators.limits import whole
from foreplan.generators.platform import generate_platform
from foreplan.generators.resources import RequestOptions, draw_requests
from foreplan.model import Workflow

for _module in pkgutil.iter_modules(__path__):  # a family registers itself when imported
    importlib.import_module(f"{__name__}.{_module.name}")

FAMILIES = dict(sorted(REGISTERED.items()))
COST_OPTIONS = tuple(field.name for field in fields(Costs))
REQUEST_OPTIONS = tuple(field.name for field in fields(RequestOptions))


def generate(family: str, seed: int = 0, **options: Any) -> Workflow:
    """A workflow of the family: its own options, and those of Costs and RequestOptions.

    Same seed, same workflow.
    """
    chosen = find_family(family)
    known = [*chosen.options, *COST_OPTIONS, *REQUEST_OPTIONS]
    for option in options:
        if option not in known:
            raise InputError(unknown_name(f"option of {chosen.name}", option, known))
    costs = Costs(**{name: value for name, value in options.items() if name in COST_OPTIONS})
    requests = RequestOptions(**{name: v for name, v in options.items() if name in REQUEST_OPTIONS})
    common = {*COST_OPTIONS, *REQUEST_OPTIONS}
    own = {name: value for name, value in options.items() if name not in common}
    seed = whole("seed", seed, 0, 2**128)
    rng = np.random.Generator(np.random.PCG64(seed))
    graph = chosen.build(rng, **own)
    name = f"{chosen.name}-{len(graph.tasks)}-seed{seed}"
    return draw_requests(to_workflow(name, graph, costs, rng), requests, seed)


def find_family(name: str) -> Family:
    """The family of this name; a dash is as good as an underscore."""
    found = FAMILIES.get(name.replace("-", "_"))
    if found is None:
        raise InputError(unknown_name("family", name, FAMILIES))
    return found


__all__ = [
    "COST_OPTIONS",
    "FAMILIES",
    "Costs",
    "Family",
    "RequestOptions",
    "draw_requests",
    "find_family",
    "generate",
    "generate_platform",
    "measured_beta",
    "measured_ccr",
]
