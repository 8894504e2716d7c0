"""`weft bench`: honest numbers, measured side by side in one run."""

from __future__ import annotations

import typer

app = typer.Typer(help="Measure speed and quality, side by side in one run.", no_args_is_help=True)
