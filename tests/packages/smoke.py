"""A test of foreplan as it is installed, without anything else: `python smoke.py compiled|plain`.

It plans, simulates and compares by the command and by the library, and runs where that is possible.
The numbers are the same to the bit on every system, compiled or not.
"""

import json
import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import foreplan

EXAMPLES = Path(__file__).parents[2] / "examples"
MONTAGE, CLUSTER = EXAMPLES / "montage.yaml", EXAMPLES / "cluster.yaml"
PLANNED, SIMULATED = 66.9875763888352, 71.52182288676303
STEPS = """\
name: steps
tasks:
  first: {run: echo one > one.txt, outputs: [one.txt]}
  then: {run: cat one.txt one.txt > two.txt, inputs: [one.txt], outputs: [two.txt]}
"""


def command(*arguments: str | Path) -> str:
    """What the installed command prints."""
    script = Path(sysconfig.get_path("scripts"), "foreplan")
    done = subprocess.run([script, *arguments], capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, f"foreplan {arguments}: {done.stdout}{done.stderr}"
    return done.stdout


def plan_and_simulate() -> None:
    """By the library and by the command, with the numbers of every other system."""
    workflow, platform = foreplan.load(MONTAGE), foreplan.load_platform(CLUSTER)
    plan = foreplan.plan(workflow, platform)
    run = foreplan.simulate(workflow, platform, strategy="slack", qoi=0.3, seed=7)
    print("planned", repr(plan.makespan), "simulated", repr(run.makespan))
    assert (plan.makespan, run.makespan) == (PLANNED, SIMULATED)
    told = json.loads(command("plan", MONTAGE, "-p", CLUSTER, "--json"))
    assert told["makespan"] == PLANNED
    compared = ("--strategies", "static,adaptive,fifo", "--runs", "3", "--qoi", "0.2")
    assert "adaptive" in command("compare", MONTAGE, "-p", CLUSTER, *compared)


def run(folder: Path) -> None:
    """Two commands for real."""
    (folder / "steps.yaml").write_text(STEPS, encoding="utf-8")
    command("run", folder / "steps.yaml", "--dir", folder, "--quiet")
    assert (folder / "two.txt").read_text(encoding="utf-8") == "one\none\n"


def main(expected: str) -> None:
    """All of it, in a directory and with a history of its own."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"FOREPLAN_HOME": os.path.join(folder, "history"), "PYTHONUTF8": "1"}
        found = json.loads(command("doctor", "--json"))
        print(found["system"], found["python"], found["place"], found["kernels"])
        assert found["kernels"]["state"] == expected, found["kernels"]
        plan_and_simulate()
        if found["runs"]:
            run(Path(folder))
    print(f"foreplan {found['foreplan']} works, its kernels {expected}")


if __name__ == "__main__":
    main(sys.argv[1])
