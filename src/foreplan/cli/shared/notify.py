"""`--notify`: a command that is run when a run has ended, however it did."""

from __future__ import annotations

import os
import subprocess
import sys

from foreplan.quantities import duration

PATIENCE = 60.0  # seconds that it may take


def notify(command: str | None, run: str, status: str, makespan: float, message: str) -> None:
    """Run the command; what it fails at is only told: the run is over."""
    if command is None:
        return
    environment = {
        **os.environ,
        "FOREPLAN_RUN": run,
        "FOREPLAN_STATUS": status,
        "FOREPLAN_MAKESPAN": f"{makespan:.3f}",
        "FOREPLAN_MESSAGE": message,
    }
    problem = ""
    try:
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=2,  # what `--json` prints is the outcome alone
            timeout=PATIENCE,
        )
        problem = f"it exited with code {done.returncode}" if done.returncode else ""
    except subprocess.TimeoutExpired:
        problem = f"it took longer than {duration(PATIENCE)}, and was ended"
    except (OSError, ValueError) as error:
        problem = f"it cannot be run: {error}"
    if problem:
        print(f"foreplan: the command of --notify failed: {problem}: {command}", file=sys.stderr)
