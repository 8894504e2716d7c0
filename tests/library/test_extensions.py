"""Planners and strategies of one's own: as objects, as `module:Class`, and by entry points."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import foreplan
from cli.commands import PLATFORM, WORKFLOW, refuse, succeed, written
from foreplan import registry
from foreplan.contracts import Dispatch, Priority, Verdict, Watch
from foreplan.engine.policies.planned import Slack, Static
from foreplan.engine.policies.ready import Fifo
from foreplan.errors import ForeplanError, InputError, InvalidScheduleError, PlanningError
from foreplan.extensions import OwnPlanner
from foreplan.model import Freedom, Schedule, Situation
from foreplan.scheduling.planning import Planning
from foreplan.spec import spec_of

MONTAGE, CLUSTER = "examples/montage.yaml", "examples/cluster.yaml"


@dataclass(frozen=True)
class Ranked:
    """HEFT again, from outside; or something worse."""

    name: ClassVar[str] = "ranked"
    width: int = 2
    fault: str = ""

    def plan(self, situation: Situation, freedom: Freedom = Freedom.NOT_STARTED) -> Schedule:
        planning = Planning(situation, freedom)
        made = planning.schedule(self, planning.place(planning.by_rank(planning.upward_rank)))
        match self.fault:
            case "raises":
                raise ZeroDivisionError("by purpose")
            case "early":
                return replace(made, start=made.start - 1)
            case "narrow":
                return replace(made, cores=None)
            case "nothing":
                return None  # type: ignore[return-value]
            case "none":
                raise PlanningError("there is no plan")
            case "other":
                return replace(made, workflow=foreplan.load({"tasks": {"a": {"cost": 1}}}))
        return made


@dataclass(frozen=True)
class Frugal(Ranked):
    """A planner with limits of its own, which it does not keep."""

    name: ClassVar[str] = "frugal"
    budget: float = float("inf")
    deadline: float = float("inf")


@dataclass(frozen=True)
class Often(Static):
    """Plans again every few seconds; or answers wrongly."""

    name: ClassVar[str] = "often"
    seconds: float = 5.0
    fault: str = ""

    def watch(self, plan: Schedule, situation: Situation) -> Watch:
        n = 1 if self.fault == "short" else plan.workflow.n_tasks
        return Watch(np.full(n, np.inf), period=self.seconds)

    def decide(self, *about: Any) -> bool:
        if self.fault == "raises":
            raise KeyError("nowhere")
        return True

    def accept(self, candidate: Schedule, current: Schedule, situation: Situation) -> Verdict:
        return True if self.fault == "bool" else Verdict(taken=True)  # type: ignore[return-value]


class Backwards:
    """The last task of the file first."""

    name = "backwards"
    dispatch = Dispatch.READY_QUEUE

    def __init__(self, step: float = -1) -> None:
        self.step = step

    def priority(self, workflow: foreplan.Workflow) -> Priority:
        numbers: Any = np.arange(workflow.n_tasks)
        return Priority(self.step * numbers, numbers)


@pytest.fixture(scope="module")
def wf() -> foreplan.Workflow:
    return foreplan.load(MONTAGE)


@pytest.fixture(scope="module")
def pf() -> foreplan.Platform:
    return foreplan.load_platform(CLUSTER)


def test_objects_wherever_a_spec_string_is_taken(
    wf: foreplan.Workflow, pf: foreplan.Platform
) -> None:
    """The planner is HEFT under another name, so what comes out is known."""
    own, ours = foreplan.plan(wf, pf, Ranked()), foreplan.plan(wf, pf, "heft")
    assert (own.planner, own.makespan) == ("ranked", ours.makespan)
    budget = ours.cost * 0.97
    kept = foreplan.plan(wf, pf, Ranked(width=3), budget=budget)
    assert kept.planner == "best-affordable[start=ranked[width=3],quick=true]"
    assert kept.cost <= budget
    small = foreplan.load({"tasks": {"a": {"cost": 3}, "b": {"cost": 2}}})
    assert len(foreplan.pareto(small, pf, Ranked(), points=3).points)
    assert foreplan.what_if(wf, pf, remove="fast1", planner=Ranked()).by == "ranked"
    world: dict[str, Any] = {"qoi": 0.4, "seed": 3, "failures": 1}
    runs = [
        foreplan.simulate(wf, pf, s, **world)  # objects of foreplan's own, too
        for s in ("slack", Slack(), Slack(planner=Ranked()), f"slack[planner={__name__}:Ranked]")
    ]
    assert len({run.makespan for run in runs}) == 1
    assert runs[0].plans
    assert [run.strategy for run in runs[1:3]] == ["slack", "slack[planner=ranked]"]
    events, native = (
        foreplan.simulate(wf, pf, Often(), by_events=e, **world) for e in (True, False)
    )
    assert events.makespan == native.makespan
    assert native.considered > 3


def test_comparisons_in_several_processes(wf: foreplan.Workflow, pf: foreplan.Platform) -> None:
    chosen: list[Any] = ["slack", Slack(planner=Ranked()), Often(seconds=9), Backwards(), Fifo()]
    one, two = (foreplan.compare(wf, pf, chosen, runs=6, jobs=jobs) for jobs in (1, 2))
    names = ["slack", "slack[planner=ranked]", "often[seconds=9]", "backwards", "fifo"]
    assert [figures.strategy for figures in one.overall] == names
    assert [f.makespan for f in one.overall] == [f.makespan for f in two.overall]
    assert one.overall[0].makespan == one.overall[1].makespan
    with pytest.raises(ForeplanError, match=r"planner ranked\[fault=raises\] failed: ZeroDivision"):
        foreplan.compare(wf, pf, [Slack(planner=Ranked(fault="raises"))], runs=4, jobs=2)


class Nameless(Ranked):
    """Its name is no text."""

    name = 5  # type: ignore[assignment]


class Renamed(Ranked):
    """It is called as a planner of foreplan."""

    name: ClassVar[str] = "heft"


class Parameterless(Ranked):
    """Its method takes too little."""

    name: ClassVar[str] = "parameterless"

    def plan(self) -> Schedule:  # type: ignore[override]
        raise AssertionError


class Free(Static):
    """Its freedom is none."""

    name: ClassVar[str] = "free"
    freedom = 1  # type: ignore[assignment]


class Undispatched(Backwards):
    """It does not say how tasks get to processors."""

    dispatch = None  # type: ignore[assignment]


REFUSED: list[tuple[str, Any, str]] = [
    ("planner", 5, "builtins.int is not a planner: it has no method `plan`"),
    ("planner", None, "NoneType is not a planner"),
    ("planner", Ranked, r"Ranked is a class: give an object, Ranked\(\)"),
    ("planner", Often(), "Often is not a planner: it has no method `plan`"),
    ("planner", Nameless(), "Nameless is not a planner: `name` must be a text"),
    ("planner", Renamed(), "has the name 'heft' of a planner of foreplan: give it another"),
    ("planner", Parameterless(), r"`plan` must take \(self, situation, freedom\)"),
    ("strategy", Ranked(), r"no method `watch`, `decide` and `accept` \(or `priority`"),
    ("strategy", Free(), "Free is not a strategy: `freedom` must be a Freedom, and is 1"),
    ("strategy", Undispatched(), "`dispatch` must be a Dispatch, and is missing"),
    ("strategy", Slack(planner=5), "int is not a planner"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("kind", "given", "problem"), REFUSED)
def test_what_is_no_planner_or_strategy(
    kind: str, given: Any, problem: str, wf: foreplan.Workflow, pf: foreplan.Platform
) -> None:
    if given is None:
        with pytest.raises(InputError, match=problem):
            registry.planner(given)  # type: ignore[arg-type]
        return
    call: Callable[..., Any] = foreplan.plan if kind == "planner" else foreplan.simulate
    with pytest.raises(InputError, match=problem):
        call(wf, pf, given)


WRONG: list[tuple[Any, str]] = [
    (Ranked(fault="raises"), r"planner ranked\[fault=raises\] failed: ZeroDivisionError: by "
     rf"purpose \(.*{Path(__file__).name}, line \d+, in plan\)"),
    (Ranked(fault="nothing"), "`plan` must return a Schedule, not NoneType"),
    (Ranked(fault="other"), "must return a schedule of situation.workflow"),
    (Often(fault="raises"), r"strategy often\[fault=raises\] failed: KeyError: 'nowhere'"),
    (Often(fault="short"), "`watch` must return a Watch with 123 latest starts"),
    (Often(fault="bool"), "`accept` must return a Verdict, not bool"),
    (Often(seconds=0), "a period above 0"),
    (Backwards(0.5), "`priority` must return 123 whole numbers as `rank`"),
    (Backwards(1e9), "`priority` must return 123 whole numbers as `rank`"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "problem"), WRONG)
def test_wrong_answers(
    given: Any, problem: str, wf: foreplan.Workflow, pf: foreplan.Platform
) -> None:
    strategy = Slack(planner=given) if isinstance(given, Ranked) else given
    with pytest.raises(ForeplanError, match=problem):
        foreplan.simulate(wf, pf, strategy, qoi=0.3)


def test_invalid_schedules_and_limits(wf: foreplan.Workflow, pf: foreplan.Platform) -> None:
    """A planner that has a budget must keep it; that it finds no plan is no fault of its own."""
    with pytest.raises(
        InvalidScheduleError, match=r"made by planner ranked\[fault=early\]:\n"
    ) as e:
        foreplan.plan(wf, pf, Ranked(fault="early"))
    assert "before now" in e.value.violations[0]
    with pytest.raises(InvalidScheduleError, match="more than the budget of 1"):
        foreplan.plan(wf, pf, Frugal(), budget=1)
    with pytest.raises(PlanningError, match="there is no plan"):
        foreplan.plan(wf, pf, Ranked(fault="none"))
    wide = foreplan.load({"tasks": {"a": {"cost": 1, "cores": 2}}})
    two = foreplan.load_platform({"processors": {"p": {"host": "h"}, "q": {"host": "h"}}})
    assert foreplan.plan(wide, two, Ranked()).makespan == foreplan.plan(wide, two).makespan
    with pytest.raises(InvalidScheduleError, match="'a' is given 1 core, and requests another"):
        foreplan.plan(wide, two, Ranked(fault="narrow"))
    late = foreplan.plan(wf, pf, Frugal(), deadline=1e6)
    assert late.planner == "frugal[deadline=1000000]"


MODULE = """
from dataclasses import dataclass
from typing import ClassVar
from foreplan.engine.policies.ready import Fifo
from foreplan.scheduling.planners.heft import Heft

@dataclass(frozen=True)
class Wide(Heft):
    'A planner of a package.'
    name: ClassVar[str] = "wide"
    width: int = 2
    share: float | None = None

    def plan(self, *about):
        if self.width == 0:
            raise ZeroDivisionError("by purpose")
        return super().plan(*about)

class Reverse(Fifo):
    name = "reverse"

class Broken:
    def __init__(self):
        raise RuntimeError("out of order")

def function():
    pass
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory with a module; what was imported from there is forgotten in the end."""
    (tmp_path / "planners_of_mine.py").write_text(MODULE)
    written(tmp_path, WORKFLOW, PLATFORM)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    sys.modules.pop("planners_of_mine", None)


BAD_NAMES = [
    ("planners_of_mine:Wid", "'planners_of_mine' has no 'Wid' (did you mean 'Wide'?)"),
    ("planners_of_nobody:Wide", "there is no module 'planners_of_nobody' in "),
    ("planners_of_mine.more:Wide", "there is no module 'planners_of_mine.more' in "),
    ("planners_of_mine:", "'planners_of_mine:' is not of the form module:Class"),
    ("planners_of_mine:function", "it is not a class but function"),
    ("planners_of_mine:Broken", "cannot be made: RuntimeError: out of order ("),
    ("planners_of_mine:Broken[a=b]", "Broken has no options: only a dataclass has"),
    ("planners_of_mine:Wide[share=x]", "planners_of_mine:Wide[share]: 'x' is not a number"),
    ("planners_of_mine:Wide[shar=1]", "option of planners_of_mine:Wide 'shar' (did you mean"),
    ("syntax_of_mine:Wide", "the module fails: SyntaxError"),
    ("__main__:Wide", "is defined in another program than this one"),
    ("object of a:B", "cannot be made again from its name"),
]


@pytest.mark.parametrize(("spec", "problem"), BAD_NAMES)
def test_bad_names(spec: str, problem: str, package: Path) -> None:
    (package / "syntax_of_mine.py").write_text("def\n")
    with pytest.raises(InputError) as caught:
        registry.planner(spec)
    assert problem in str(caught.value)


def test_names_are_written_as_they_are_read(package: Path) -> None:
    made: Any = registry.planner("planners_of_mine:Wide[width=3,share=0.5]")
    assert (made.own.width, made.own.share) == (3, 0.5)
    assert spec_of(made) == "wide[width=3,share=0.5]"
    chosen: Any = registry.strategy("planners_of_mine:Reverse")[0]
    assert registry.recorded_spec(chosen) == "planners_of_mine:Reverse"
    own: Any
    for own, recorded in (
        (Often(seconds=2), f"{__name__}:Often[seconds=2]"),
        (Slack(planner=Ranked(4)), f"slack[planner={__name__}:Ranked[width=4]]"),
        (Backwards(2), f"object of {__name__}:Backwards"),
        (Often(fault="a,b"), f"object of {__name__}:Often"),
        (Fifo(), "fifo"),
    ):
        assert registry.recorded_spec(own) == recorded


def test_the_command_line(package: Path) -> None:
    """A module of the directory that the command is given in."""
    plan = ("plan", "wf.yaml", "-p", "pf.yaml", "--planner")
    made = json.loads(succeed(*plan, "planners_of_mine:Wide[width=3]", "--json", cwd=package))
    assert made["planner"] == "wide[width=3]"
    shown = succeed(
        "simulate", "wf.yaml", "-p", "pf.yaml",
        "--strategy", "slack[planner=planners_of_mine:Wide[width=3]]", cwd=package,
    )  # fmt: skip
    assert "strategy slack[planner=planners_of_mine:Wide[width=3]]: makespan" in shown
    assert "did you mean 'Wide'" in refuse(*plan, "planners_of_mine:Wid", cwd=package)
    raised = refuse(*plan, "planners_of_mine:Wide[width=0]", cwd=package)
    assert raised.startswith("planner wide[width=0] failed: ZeroDivisionError: by purpose (")


ENTRIES = """
[foreplan.planners]
wide = planners_of_mine:Wide
heft = planners_of_mine:Wide
gone = planners_of_nobody:Wide

[foreplan.strategies]
reverse = planners_of_mine:Reverse
"""


def test_entry_points(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They are listed with foreplan's own, which come first, and told of if they are broken."""
    from foreplan.cli.planners import planners
    from foreplan.cli.strategies import strategies

    info = package / "mine-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1\n")
    (info / "entry_points.txt").write_text(ENTRIES)
    sys.path.insert(0, str(package))
    assert spec_of(registry.planner("wide[width=5]")) == "wide[width=5]"
    assert registry.planner_class("heft").__module__ == "foreplan.scheduling.planners.heft"
    assert isinstance(registry.strategy("slack[planner=wide]")[1], OwnPlanner)
    assert registry.strategy("reverse")[0].name == "reverse"
    with pytest.raises(InputError, match="no module 'planners_of_nobody'"):
        registry.planner("gone")
    with pytest.raises(InputError, match=r"unknown planner 'wid' .did you mean 'wide'"):
        registry.planner("wid")
    planners(as_json=True)
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["wide"]["about"] == "A planner of a package."
    assert rows["wide"]["options"] == {
        "efficiency": 0.5,
        "insertion": True,
        "width": 2,
        "share": None,
    }
    assert rows["gone"]["about"].startswith("cannot be loaded: planner gone (planners_of_nobody:")
    strategies()
    assert "reverse " in capsys.readouterr().out


RUN = {
    "tasks": {
        "a": {"run": "echo a > a", "outputs": ["a"], "cost": 1},
        "b": {"run": "cat a given > b", "inputs": ["a"], "outputs": ["b"], "cost": 1},
    }
}


def run(folder: Path, **options: Any) -> foreplan.Outcome:
    return foreplan.run(RUN, "local:1", dir=folder, use_history=False, progress=False, **options)


def test_a_run_is_resumed_with_the_strategy_that_it_began_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = run(tmp_path, strategy=Often(seconds=100, planner=Ranked(width=3)))
    recorded = f"{__name__}:Often[planner={__name__}:Ranked[width=3],seconds=100]"
    assert (failed.status, failed.run.strategy, failed.warnings) == ("failed", recorded, ())
    (tmp_path / "given").write_text("given\n")
    with monkeypatch.context() as changed:
        changed.setattr(Often, "watch", lambda own, plan, now: Watch(plan.start, period=9.0))
        with pytest.raises(ForeplanError, match=r"strategy often\[.*\] decides otherwise at 0 s"):
            run(tmp_path, resume=failed.id)
    resumed = run(tmp_path, resume=failed.id)
    assert (resumed.status, resumed.run.strategy) == ("finished", recorded)
    assert (tmp_path / "b").read_text() == "a\ngiven\n"


def test_a_run_whose_strategy_has_no_name(tmp_path: Path) -> None:
    failed = run(tmp_path, strategy=Backwards(-2))
    assert failed.status == "failed"
    [warning] = failed.warnings
    assert "can neither be resumed nor be looked at later" in warning
    with pytest.raises(InputError, match=f"was an object of {__name__}:Backwards, which cannot be"):
        run(tmp_path, resume=failed.id)


def test_a_planner_that_fails_in_the_middle_of_a_run(tmp_path: Path) -> None:
    """What was done stays, and the run can be resumed."""
    (tmp_path / "given").write_text("given\n")
    with pytest.raises(ForeplanError, match=r"planner ranked.* failed: ZeroDivisionError"):
        run(tmp_path, strategy=Slack(planner=Ranked(fault="raises")))
    assert not (tmp_path / "a").exists()
