"""`foreplan plan` with a budget, a deadline, or both; and what more money would buy."""

from __future__ import annotations

import json
import math
import sys
import threading
from pathlib import Path
from xml.etree import ElementTree

import pytest

import foreplan as library
from foreplan.cli.shared.tables import tell_when_slow
from foreplan.errors import InputError, TooLateError, UnaffordableError
from foreplan.model import Schedule
from foreplan.scheduling.margins import plan_to_dict
from foreplan.scheduling.search_progress import report_to

from .commands import PLATFORM, refuse, succeed, written

ARGUMENTS = ("plan", "wf.yaml", "-p", "pf.yaml")
# by hand: all on slow takes 13 s for nothing, with left on fast 7 s for 6, all on fast 5.5 s
# for 16.5; where slow costs 1/3 a second too, the cheapest of these costs 13/3
PRICED = PLATFORM.replace("slow: {}", "slow: {price: 0.3333333333333333}")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    written(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path


def by_library(
    planner: str | None = None, budget: float | None = None, deadline: float | None = None
) -> Schedule:
    workflow, platform = library.load("wf.yaml"), library.load_platform("pf.yaml")
    schedule = library.plan(workflow, platform, planner, budget, deadline)
    library.check_schedule(schedule)
    return schedule


def lines_of(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


# A budget ----------------------------------------------------------------------------------


def test_the_summary_with_a_budget() -> None:
    lines = lines_of(succeed(*ARGUMENTS, "--budget", "10"))
    assert lines[1].startswith("planner best-affordable: makespan 7 s, cost 6, ")
    assert lines[2] == "budget 10: cost 6, 4 left"
    assert "left fast 5 s 7 s - -" in lines


def test_a_reserve_is_left() -> None:
    """Of 6.5 a tenth is left: the plan for 6 is too dear then."""
    assert by_library(budget=6.5).cost == 6
    lines = lines_of(succeed(*ARGUMENTS, "--budget", "6.5", "--reserve", "0.1"))
    assert lines[2] == "budget 6.5: cost 0, 6.5 left, 0.65 of it a reserve"
    printed = json.loads(succeed(*ARGUMENTS, "--budget", "6.5", "--reserve", "0.1", "--json"))
    assert (printed["budget"], printed["cost"]) == (6.5, 0)
    assert "a reserve is a share of a budget" in refuse(*ARGUMENTS, "--reserve", "0.1")
    assert "from 0 to below 1, not 1" in refuse(*ARGUMENTS, "--budget", "9", "--reserve", "1")


def test_what_the_reserve_leaves_is_not_enough() -> None:
    costly = {"processors": {"p1": {"price": 4}}}
    one = library.load({"name": "one", "tasks": {"a": {"cost": 1}}})
    assert library.plan(one, library.load_platform(costly), budget=4).cost == 4
    said = r"at most 3.6, the budget of 4 less its reserve: the cheapest found costs 4 "
    with pytest.raises(UnaffordableError, match=said):
        library.plan(one, library.load_platform(costly), budget=4, reserve=0.1)


def test_a_search_can_be_bounded() -> None:
    """If no time is given at all, it is what is known at once; and it is a plan."""
    for seconds in ("0", "100"):
        schedule = by_library(f"best-affordable[seconds={seconds}]", budget=10)
        assert schedule.cost <= 10
        assert by_library(f"cheapest-in-time[seconds={seconds}]", deadline=13).makespan <= 13
    assert "seconds" in refuse(*ARGUMENTS, "--planner", "best-affordable[seconds=-1]")


def test_what_takes_long_says_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = threading.Event()
    write = sys.stderr.write

    def noted(text: str) -> int:
        said.set()
        return write(text)

    monkeypatch.setattr(sys.stderr, "write", noted)
    with tell_when_slow("looking", after=0.001):
        assert said.wait(30)
    out, err = capsys.readouterr()
    assert err.startswith("looking: 0% after 0 s\n")
    assert out == ""
    with tell_when_slow("looking"):  # short
        by_library(budget=10)
    assert capsys.readouterr().err == ""


def test_searches_tell_how_far_they_are() -> None:
    for budget, deadline in ((10.0, None), (None, 10.0)):
        told: list[float] = []
        with report_to(told.append):
            by_library(budget=budget, deadline=deadline)
        assert told == sorted(told)
        assert len(told) > 5
        assert 0 <= told[0] < 0.5 < told[-1] <= 1


@pytest.mark.parametrize(("budget", "cost"), [(0, 0), (5.9, 0), (6, 6), (16, 6), (16.5, 16.5)])
def test_the_fastest_within_a_budget(budget: float, cost: float) -> None:
    schedule = by_library(budget=budget)
    assert (schedule.cost, schedule.planner) == (cost, "best-affordable")


def test_json_says_what_was_asked() -> None:
    printed = json.loads(succeed(*ARGUMENTS, "--budget", "10", "--json"))
    assert list(printed) == [
        "planner",
        "by",
        "makespan",
        "cost",
        "critical_path",
        "budget",
        "tasks",
    ]
    assert printed == {**plan_to_dict(by_library(budget=10)), "budget": 10}
    printed = json.loads(succeed(*ARGUMENTS, "--budget", "10", "--deadline", "8", "--json"))
    assert (printed["budget"], printed["deadline"], printed["makespan"]) == (10, 8, 7)


def test_a_planner_that_knows_of_budgets_keeps_its_name() -> None:
    printed = json.loads(succeed(*ARGUMENTS, "--budget", "10", "--planner", "gain1", "--json"))
    assert (printed["planner"], printed["cost"] <= 10) == ("gain1", True)


def test_a_planner_that_knows_none_is_where_loss3_starts() -> None:
    words = ("--budget", "10", "--planner", "peft", "--json")
    printed = json.loads(succeed(*ARGUMENTS, *words))
    assert printed["planner"] == "best-affordable[start=peft,quick=true]"
    assert printed["cost"] <= 10
    assert by_library("peft", 100).cost == by_library("peft").cost  # it has enough money


def test_the_smaller_of_two_budgets_counts() -> None:
    assert by_library("loss3[budget=6]", 100).cost <= 6
    assert by_library("loss3[budget=100]", 6).cost <= 6


def test_nothing_is_affordable(folder: Path) -> None:
    written(folder, platform=PRICED)
    told = refuse(*ARGUMENTS, "--budget", "4")
    assert told.startswith("no plan costs at most 4: the cheapest found costs 4.33334 (and ")
    with pytest.raises(UnaffordableError) as caught:
        by_library(budget=4)
    assert caught.value.cost == pytest.approx(13 / 3)
    # what it names can be asked for; one digit less in the last place cannot
    printed = json.loads(succeed(*ARGUMENTS, "--budget", "4.33334", "--json"))
    assert printed["cost"] == pytest.approx(13 / 3)
    refuse(*ARGUMENTS, "--budget", "4.33333")


@pytest.mark.parametrize("planner", ["heft", "loss1", "loss2[faithful=true]", "gain3", "dls"])
def test_nothing_is_affordable_by_any_planner(folder: Path, planner: str) -> None:
    written(folder, platform=PRICED)
    with pytest.raises(UnaffordableError, match=r"the cheapest found costs 4\.33334"):
        by_library(planner, budget=4)


def test_billing_units_and_prices_of_links_count(folder: Path) -> None:
    billed = PLATFORM.replace("price: 3}", "price: 3, billing: 10}") + "network: {price: 0.5}\n"
    written(folder, platform=billed)
    assert by_library(budget=0).cost == 0
    assert by_library(budget=29.9).cost == 0  # fast is paid for by ten seconds
    fastest = by_library(budget=30)
    assert (fastest.makespan, fastest.cost) == (5.5, 30)
    found = json.loads(succeed(*ARGUMENTS, "--pareto", "a.svg", "--json"))["points"]
    assert [(p["cost"], p["makespan"]) for p in found] == [(0, 13), (30, 5.5)]


# A deadline --------------------------------------------------------------------------------


def test_the_cheapest_in_time() -> None:
    assert [by_library(deadline=d).cost for d in (5.5, 6.9, 7, 12.9, 13, 100)] == [
        16.5, 16.5, 6, 6, 0, 0,
    ]  # fmt: skip
    lines = lines_of(succeed(*ARGUMENTS, "--deadline", "8"))
    assert lines[1].startswith("planner cheapest-in-time")
    assert lines[2] == "deadline 8 s: ends at 7 s, 1 s before it"


def test_nothing_is_in_time() -> None:
    told = refuse(*ARGUMENTS, "--deadline", "5")
    assert told == "no plan ends by 5 s: the fastest found ends at 5.5 s (and costs 16.5)"


def test_a_named_planner_is_held_to_the_deadline() -> None:
    assert by_library("heft", deadline=6).cost == 16.5
    assert by_library("cheapest-in-time[deadline=20]", deadline=8).cost == 6
    with pytest.raises(TooLateError) as caught:
        by_library("loss3[budget=6]", deadline=6)
    assert caught.value.makespan == caught.value.fastest.makespan > 6
    assert str(caught.value).endswith("the cheapest found that ends by then costs 16.5")


# Both --------------------------------------------------------------------------------------


def test_within_the_budget_and_in_time() -> None:
    lines = lines_of(succeed(*ARGUMENTS, "--budget", "10", "--deadline", "7"))
    assert lines[2:4] == [
        "budget 10: cost 6, 4 left",
        "deadline 7 s: ends at 7 s, 0 s before it",
    ]


def test_one_or_the_other_but_not_both() -> None:
    told = refuse(*ARGUMENTS, "--budget", "10", "--deadline", "6")
    assert told == (
        "the plan by best-affordable within the budget of 10 ends at 7 s, "
        "after the deadline of 6 s (and costs 6); the cheapest found that ends by then costs 16.5"
    )
    told = refuse(*ARGUMENTS, "--budget", "10", "--deadline", "5")
    assert told.endswith("; no plan ends by 5 s: the fastest found ends at 5.5 s (and costs 16.5)")


# What cannot be asked ----------------------------------------------------------------------


@pytest.mark.parametrize("budget", [-1, math.nan, math.inf, -math.inf])
def test_no_budget(budget: float) -> None:
    with pytest.raises(InputError, match="the budget must be a number of at least 0, not"):
        by_library(budget=budget)


@pytest.mark.parametrize("deadline", [0, -1, math.nan, math.inf])
def test_no_deadline(deadline: float) -> None:
    with pytest.raises(InputError, match="the deadline must be a number above 0, not"):
        by_library(deadline=deadline)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--budget", "nan"), "the budget must be a number of at least 0, not nan"),
        (("--deadline", "0"), "the deadline must be a number above 0, not 0"),
        (("--pareto", "a.pdf"), "a.pdf: cannot draw a plot of this kind; known: .png, .svg"),
        (("--pareto", "a.png", "--gantt", "a.svg"), "--gantt draws one plan, --pareto many"),
        (("--pareto", "a.png", "--planner", "hetf"), "unknown planner 'hetf'"),
    ],
)
def test_it_is_told_before_the_work(folder: Path, words: tuple[str, ...], told: str) -> None:
    # the workflow is not there: had the work begun, that would be the complaint
    assert refuse("plan", "none.yaml", "-p", "pf.yaml", *words).startswith(told)
    assert not list(folder.glob("a.*"))


# What more money would buy -----------------------------------------------------------------


def test_a_table_of_plans(folder: Path) -> None:
    lines = lines_of(succeed(*ARGUMENTS, "--pareto", "a.png", "--budget", "12"))
    assert lines == [
        "small: 3 plans by best-affordable, from 13 s for 0 to 5.5 s for 16.5",
        "budget cost makespan a unit more buys",
        "0 0 13 s -",
        "6 6 7 s 1 s <- knee <- within the budget",
        "16.5 16.5 5.5 s 143 ms",
        "knee: 7 s for 6; beyond it, more money buys less",
        "each is given by `foreplan plan --budget` with the budget of its row",
        "wrote a.png",
    ]
    assert (folder / "a.png").read_bytes().startswith(b"\x89PNG\r\n")


def test_every_row_can_be_asked_for(folder: Path) -> None:
    written(folder, platform=PRICED)
    printed = json.loads(succeed(*ARGUMENTS, "--pareto", "a.svg", "--json"))
    assert list(printed) == ["points", "knee"]
    assert len(printed["points"]) > 1
    for point in printed["points"]:
        assert list(point) == ["budget", "cost", "makespan", "planner"]
        given = json.loads(succeed(*ARGUMENTS, "--budget", repr(point["budget"]), "--json"))
        assert {key: given[key] for key in point} == point


def test_the_picture(folder: Path) -> None:
    words = ("--budget", "12", "--deadline", "9", "--json")
    printed = json.loads(succeed(*ARGUMENTS, "--pareto", "a.svg", *words))
    assert (printed["budget"], printed["deadline"], printed["knee"]) == (12, 9, 1)
    assert ElementTree.parse(folder / "a.svg").getroot().tag.endswith("svg")
    drawn = (folder / "a.svg").read_text()
    for words_drawn in ("small: what money buys", "knee: 7 s for 6", "budget 12", "deadline 9 s"):
        assert words_drawn in drawn
    before = (folder / "a.svg").read_bytes()
    succeed(*ARGUMENTS, "--pareto", "a.svg", *words)
    assert (folder / "a.svg").read_bytes() == before


def test_the_budget_buys_nothing(folder: Path) -> None:
    written(folder, platform=PRICED)
    shown = succeed(*ARGUMENTS, "--pareto", "a.png", "--budget", "1")
    assert "no plan found costs at most 1\n" in shown


def test_nothing_has_a_price(folder: Path) -> None:
    written(folder, platform=PLATFORM.replace("price: 3", "price: 0"))
    lines = lines_of(succeed(*ARGUMENTS, "--pareto", "a.svg"))
    assert "nothing to choose: no processor and no link has a price" in lines
    assert "nothing to choose: nothing has a price" in (folder / "a.svg").read_text()


def test_names_are_shown_as_they_are(folder: Path) -> None:
    text = (folder / "wf.yaml").read_text().replace("name: small", 'name: "[i]w $x$"')
    (folder / "wf.yaml").write_text(text)
    assert succeed(*ARGUMENTS, "--pareto", "a.svg").startswith("[i]w $x$: 3 plans")
    assert "[i]w $x$: what money buys" in (folder / "a.svg").read_text()
