"""Who wins among volunteers, and when."""

from __future__ import annotations

from collections.abc import Sequence

from weft.experiments.gtp_tables import Figure
from weft.experiments.ic_plays import ICO
from weft.experiments.ic_volunteer_tables import RunRow, against, usual, winners, workflows
from weft.experiments.ic_volunteers import STRATEGIES
from weft.experiments.selective_claims import Verdict


def volunteer_verdicts(runs: Sequence[RunRow], simulator: str) -> list[Verdict]:
    """`ico` against each of the others on the usual platform, over all workflows."""
    known = [name for name in STRATEGIES if name != ICO]
    if not any(run.strategy == ICO for run in runs):
        return []
    return [ahead(runs, name, simulator) for name in known if _ran(runs, name)]


def _ran(runs: Sequence[RunRow], name: str) -> bool:
    return any(run.strategy == name for run in usual(runs))


def ahead(runs: Sequence[RunRow], name: str, simulator: str) -> Verdict:
    """Whether a strategy takes longer than `ico`, world by world."""
    figure = against(usual(runs), name)
    by_workflow = "; ".join(
        f"{workflow} {against(usual(runs, workflow), name).value:+.0f}%"
        for workflow in workflows(runs)
    )
    figures = f"{longer(figure)} over {figure.graphs} worlds ({by_workflow})"
    claim = f"among volunteers `ico` ends before `{name}`"
    return Verdict(claim, simulator, figure.above, figures)


def longer(figure: Figure) -> str:
    """By how much longer, in %, with the interval where there is one."""
    margin = "" if figure.margin != figure.margin else f" ± {figure.margin:.1f}"
    return f"{figure.value:+.1f}%{margin}"


def first_of(runs: Sequence[RunRow]) -> str:
    """The winners, in words."""
    return ", ".join(winners(runs)) or "nobody"
