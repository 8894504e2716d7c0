"""What planning and simulating go by: machines of a file or of `--on`, costs or the history."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weft.errors import InputError

if TYPE_CHECKING:
    from weft.model import Expectation, Platform, Workflow

PlatformFile = Annotated[
    Path | None,
    typer.Option(
        "--platform", "-p", help="The machines and links: YAML or JSON. Default: those of --on."
    ),
]
On = Annotated[
    str | None,
    typer.Option(
        help="Without -p: the machines, as for `weft run`: `local`, `local:4` or "
        "`dask://host:port`.",
        show_default="local",
    ),
]
Prices = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[NAME=]PRICE[/UNIT]", help="Without -p: what they cost, as for `weft run`."
    ),
]
DataDirectory = Annotated[
    Path,
    typer.Option("--dir", help="The data directory, as for `weft run`: its history counts first."),
]
NoHistory = Annotated[
    bool,
    typer.Option(
        "--no-history", help="Do not look up in the history what tasks without a cost take."
    ),
]


def expected(
    source: str | Path,
    workflow: Workflow,
    platform: Platform | None,
    on: str | None,
    price: list[str] | None,
    directory: Path,
    no_history: bool,
    budgeted: bool = False,
) -> Expectation:
    """The machines and what tasks take there; what that rests on is told on standard error."""
    from weft.files import in_file
    from weft.model import Expectation

    check_machines(platform is not None, on, price)
    if platform is not None and not workflow.silent.any():  # nothing more need be imported
        with in_file(source):
            return Expectation.declared(workflow, platform)
    from weft.live.beforehand import expect
    from weft.live.prices import read_price
    from weft.live.spending import check_payable

    rules = None if price is None else [read_price(text) for text in price]
    # a task without a cost is found only with the platform at hand
    with nullcontext() if platform is None else in_file(source):
        found = expect(
            workflow,
            platform,
            on,
            directory,
            not no_history,
            rules,
            warn=lambda text: print(f"weft: {text}", file=sys.stderr),
        )
    if budgeted and platform is None:
        check_payable(found.platform, found.blind)
    print(f"weft: {source}: {found.message}", file=sys.stderr)
    return found


def check_machines(in_a_file: bool, on: str | None, price: list[str] | None) -> None:
    """Refuse machines that are given twice."""
    if in_a_file and (on is not None or price):
        given = "--on" if on is not None else "--price"
        raise InputError(f"the machines and their prices are in the file of -p: leave out {given}")
