"""The report of the GTP experiment, as Markdown, and all its files."""

from __future__ import annotations

import platform as machine
from pathlib import Path

from weft.experiments import gtp_plots
from weft.experiments.gtp import CALM, FAILURE, GRID_BOUND, GRID_BOUND_FAILURE, Settings, units
from weft.experiments.gtp_cases import EVENT_RATE, MAIN_CCR
from weft.experiments.gtp_claims import COMPETITORS, published_words, shown, verdicts
from weft.experiments.gtp_runs import GTPC, GTPCR, GTPR, WITH_OURS, WITH_OURS_R
from weft.experiments.gtp_tables import NSL, OVERHEAD, PUBLISHED, Tables
from weft.experiments.gtp_why import why
from weft.experiments.report_files import table, write_files
from weft.experiments.selective_tables import to_csv
from weft.experiments.units import Circumstances


def write(folder: Path, measured: Tables, how: Circumstances[Settings]) -> list[Path]:
    """All files: CSV, PNG and the report; their paths."""
    main = (measured.main_size, MAIN_CCR)
    rows, gains = list(measured.rows()), list(measured.gains())
    mine = [row for row in rows if (row.size, row.ccr) == main]
    content: dict[str, str | bytes] = {
        "figure4.csv": to_csv([r for r in mine if r.part == CALM], ("part", "rewound", "levels")),
        "figure5.csv": to_csv([r for r in mine if r.part == FAILURE], ("part",)),
        "gains.csv": to_csv([g for g in gains if g.part in (CALM, FAILURE)]),
        "sweeps.csv": to_csv([r for r in rows if r.part not in (CALM, FAILURE)]),
        "figure4.png": gtp_plots.figure4(measured),
        "figure5.png": gtp_plots.figure5(measured),
        "gains.png": gtp_plots.gains(measured),
        "sweeps.png": gtp_plots.sweeps(measured),
        "report.md": report(measured, how),
    }
    return write_files(folder, content)


def report(measured: Tables, how: Circumstances[Settings]) -> str:
    """The whole report."""
    parts = [
        "# GTP, reproduced",
        _circumstances(measured, how),
        "## Published and measured",
        _published(measured),
        "## Verdicts",
        _verdicts(measured),
        "## What decides it",
        why(measured),
        "## Figure 4: GTP and GTP/c",
        _figure4(measured),
        "## Figure 5: GTP/r and GTP/c/r, one failure",
        _figure5(measured),
        "## Other sizes and CCRs",
        _grid(measured),
        "## How it was measured",
        _HOW.format(rate=EVENT_RATE),
    ]
    return "\n\n".join(parts) + "\n"


def _circumstances(measured: Tables, how: Circumstances[Settings]) -> str:
    settings = how.settings
    runs = sum(len(p.specs) for u in units(settings) for p in u.points)
    what = "all sizes, CCRs and bounds" if settings.full else "a sample"
    shapes = "Shapes from `.stg` files. " if settings.stg else ""
    return (
        "Israel Hernandez and Murray Cole, *Reactive Scheduling of DAG Applications on "
        "Heterogeneous and Dynamic Distributed Computing Systems* and the papers it sums up: "
        "section 7 by weft.\n\n"
        f"`{how.command}` ({what}) took {how} "
        f"(Python {machine.python_version()}, {machine.machine()}): {runs:,} runs. {shapes}"
        f"Graphs: {settings.main} of {measured.main_size} tasks at CCR {MAIN_CCR:g}, "
        f"{settings.grid} of each other size and CCR, {settings.sweeps} in the sweeps. "
        f"Seed {settings.seed}; the same seed gives the same figures."
    )


def _published(measured: Tables) -> str:
    body = []
    for (part, bound, mine, over), value in PUBLISHED.items():
        key = measured.main(part, bound)
        nsls = (f"{measured.mean(key, name).value:.3f}" for name in (over, mine))
        gain = shown(measured.gain(key, mine, over))
        words = published_words(part, value)
        body.append([f"{mine} over {over}", f"{bound:.0%}", words, gain, *nsls])
    header = ["gain in NSL", "variability", "published", "ours", "NSL of the one", "of the other"]
    return (
        f"{table(header, body)}\n\n![Gains](gains.png)\n\nA gain is 1 - the ratio of the average "
        "NSLs, ± half its 95% interval by graph; both strategies had the same events. The paper's "
        'figures are lost in our copy; what its text says of them stands here, and its "up to" '
        "is taken for the average."
    )


def _verdicts(measured: Tables) -> str:
    rows = [[v.claim, f"**{v.word}**", v.figures] for v in verdicts(measured)]
    return (
        table(["claim", "verdict", "figures"], rows)
        + "\n\nA strategy is better, or a gain grows, where the 95% interval says so. That it "
        "loses only with few tasks or low variability holds if it is ahead on average in nine of "
        "ten of the other cells: a threshold chosen after a look at some, on which the verdict "
        "about GTP hangs."
    )


def _figure4(measured: Tables) -> str:
    metrics = {
        NSL: "NSL", "migrated": "migrated tasks", "remappings": "remappings",
        OVERHEAD: "overhead %", "restarts": "restarts", "copies": "copies used",
        "lost": "work lost %", "resent": "data sent in vain %",
    }  # fmt: skip
    tables = _by_bound(measured, CALM, WITH_OURS, metrics)
    return f"![Figure 4](figure4.png)\n\n{tables}"


def _figure5(measured: Tables) -> str:
    metrics = {
        NSL: "NSL", "rewound": "rewound tasks", "levels": "rewound levels",
        OVERHEAD: "overhead %", "lost": "work lost %",
    }  # fmt: skip
    tables = _by_bound(measured, FAILURE, WITH_OURS_R, metrics)
    return f"![Figure 5](figure5.png)\n\n{tables}"


def _by_bound(measured: Tables, part: str, names: tuple[str, ...], metrics: dict[str, str]) -> str:
    keys = measured.keys(part, measured.main_size, MAIN_CCR)
    body = []
    for metric, words in metrics.items():
        digits = 3 if metric == NSL else 2 if metric == "lost" else 1
        for name in names:
            means = [measured.mean(key, name, metric).value for key in keys]
            if any(means):
                body.append([words, name, *(f"{mean:.{digits}f}" for mean in means)])
    return table(["", "", *(f"{key.value:.0%}" for key in keys)], body)


def _grid(measured: Tables) -> str:
    body = []
    sizes = sorted({key.size for key in measured.keys(CALM)})
    for size in sizes:
        for key in measured.keys(CALM, size):
            if key.value != GRID_BOUND:
                continue
            gains = [shown(measured.gain(key, GTPC, over)) for over in COMPETITORS]
            failing = key._replace(part=FAILURE, value=GRID_BOUND_FAILURE)
            gains.append(shown(measured.gain(failing, GTPCR, GTPR)))
            graphs = measured.mean(key, GTPC).graphs
            body.append([str(size), f"{key.ccr:g}", str(graphs), *gains])
    header = ["tasks", "CCR", "graphs", *(f"{GTPC} over {over}" for over in COMPETITORS)]
    header.append(f"{GTPCR} over {GTPR}, failure")
    return (
        f"Gains in NSL at {GRID_BOUND:.0%} variability, with one failure at "
        f"{GRID_BOUND_FAILURE:.0%}; all that was run is in `gains.csv`.\n\n{table(header, body)}"
    )


_HOW = """\
- **Graphs** by the four methods of the Standard Task Graph set in equal shares (`weft generate
  sameprob|samepred|layrprob|layrpred`), with the densities that these have by default, the middle
  of the set's: an edge with probability 0.12, whatever the size, or 10 predecessors per task;
  layers of 10 tasks. With `--stg DIR` the shapes are those of the files. A task's mean cost is
  uniform in 0 .. 2w, its cost on a processor uniform in 0.5 .. 1.5 of that, data uniform and
  scaled to the CCR. The three CCRs have the same graphs.
- **Machines**: 10 processors, a host each, fully connected; a link's peak bandwidth is uniform in
  0.5 .. 1.5 of the mean. Transfers do not disturb each other.
- **Scenarios**: each processor and each link changes {rate:g} times on average in the makespan
  that HEFT plans, to a value uniform in 1 - bound .. 1 of its peak; all start at their peak. The
  events of a graph are the same for all strategies, and but for the values for all bounds. The
  rate is ours, chosen after the sweep above. One failure: a random processor, at a random time of
  the planned makespan, for good.
- **Strategies**: HEFT is `static`, DLS/sr `dls/sr`, GTP `gtp`, GTP/c `gtp/c` with their defaults
  (a rescheduling point every 5% of the plan's makespan, and at once on a failure); GTP/r and
  GTP/c/r are `gtp/r` and `gtp/c/r`. Beside them `aheft[learn=false]` and GTP/c with HEFT's
  planner, `gtp/c[planner=heft]`. Estimates are exact but for the speeds that vary, which
  everybody knows as they are now.
- **NSL**: makespan over the longest path by the tasks' least costs (as in HEFT's SLR); the paper
  does not say which weight of a task is meant.
- **Migrated tasks**: how often a new plan moves a task that has begun to gather inputs or to run.
  **Remappings**: new plans taken.
- **Overhead** is not defined in the paper. Here it is what was computed and sent in vain, in % of
  what had to be computed and sent: the time of attempts that were cancelled, lost or rewound, and
  the time of data sent more than once or to where nobody read them, at the mean link's peak.
- **Rewound tasks**: finished tasks computed again and attempts that died; levels: the levels of
  the graph on which there are such."""
