"""The options of a run, listed once for `foreplan.run`, `foreplan run` and `foreplan resume`.

Nothing heavy is imported here: the command line reads the list before it does anything.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast, get_args, get_type_hints

from foreplan import registry
from foreplan.errors import InputError
from foreplan.executors.base import DEFAULT, examples, find_scheme

if TYPE_CHECKING:
    from foreplan.contracts import Order, Policy
    from foreplan.engine.budget import BudgetTracker
    from foreplan.engine.retries import RetryPolicy
    from foreplan.runs.entries import Header

AUTO = "auto"
BLIND, PLANNED = "ico", "adaptive"  # nothing is known of the tasks' times, or something is
FAIL, WARN = "fail", "warn"
OWN_RESERVE = 0.03  # of a real run: things take longer than expected more often than shorter
BY_THEN = (
    "Be done by then, as cheaply as possible: seconds from the start of the run, or `90min`, "
    "`1.5h`, `2d`. A run that is late continues."
)
_WRITTEN = "written"  # how a number is, in the journal
_UNITS = {"": 1.0, "s": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_TIMES = re.compile(r"(?:\d+(?:\.\d+)?\s*(?:s|min|m|h|d)\s*)+|\d+(?:\.\d+)?")
_TIME = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)")


def read_time(text: str) -> float:
    """Seconds, from `5400`, `90min`, `1.5h` or `1h 30min`."""
    if not _TIMES.fullmatch(text.strip()):
        raise InputError(f"{text!r} is no time: 5400 (seconds), 90min, 1.5h or 2d")
    return sum(float(number) * _UNITS[unit] for number, unit in _TIME.findall(text))


def _kept(value: Any) -> Any:
    """The value of a parameter for the journal: of a number that is written in its own way, how."""
    from foreplan.formats.texts import WrittenNumber

    if isinstance(value, list | tuple):
        return [_kept(entry) for entry in value]
    return {_WRITTEN: str(value)} if isinstance(value, WrittenNumber) else value


def parameters(kept: Mapping[str, Any]) -> dict[str, Any]:
    """The values of parameters as the journal kept them."""
    from foreplan.formats.texts import WrittenNumber

    def read(value: Any) -> Any:
        if isinstance(value, list):
            return [read(entry) for entry in value]
        return WrittenNumber(value[_WRITTEN]) if isinstance(value, Mapping) else value

    return {name: read(value) for name, value in kept.items()}


@dataclass(frozen=True)
class Flag:
    """How the command line asks for an option."""

    help: str
    names: tuple[str, ...] = ()  # else --its-name
    kind: Any = None  # of the value there, if it is another than the option's
    least: float | None = None
    metavar: str | None = None
    read: Callable[[str], Any] | None = None
    shown: str | None = None  # as the default
    negated: bool = False  # the flag says no
    resume: str = ""  # the help where a resumed run may be given another; empty: it may not


@dataclass(frozen=True)
class Options:
    """How a run is to be run; all but the directory is kept in its journal.

    What has no flag is for the library alone.
    """

    on: Annotated[
        Any,  # as `--on` has it, or an object that stands for it: a Client of Dask
        Flag(f"Where: {examples()}.", kind=str, resume=f"Elsewhere than it began: {examples()}."),
    ] = DEFAULT
    strategy: Annotated[
        Any,  # a spec string, or a strategy of one's own
        Flag(
            "When to replan, and with which planner: `slack[planner=dls]`; see "
            "`foreplan strategies`. One of your own: `module:Class`. "
            "`auto`: planned once anything is known of the tasks' times.",
            kind=str,
        ),
    ] = "auto"
    directory: Annotated[
        Path,
        Flag("Files are read and written here; `.foreplan/runs` in it keeps the run.", ("--dir",)),
    ] = Path()
    shared: Annotated[bool, Flag("Dask: the workers see that directory, too.")] = False
    retries: Annotated[
        int, Flag("Tries more for a task that fails and says nothing itself.", least=0)
    ] = 0
    timeout: Annotated[
        float | None, Flag("Seconds for a task that says nothing itself.", least=0.001)
    ] = None
    limit: Annotated[
        bool, Flag("Hold tasks to the cores and memory that they ask for, as far as can be.")
    ] = False
    keep_going: Annotated[
        bool, Flag("After a failure do all that does not depend on it.", ("--keep-going", "-k"))
    ] = False
    absolute: Annotated[
        bool, Flag("Files may lie outside of the directory.", ("--absolute-paths",))
    ] = False
    use_history: Annotated[
        bool,
        Flag("Neither learn from former runs nor for later ones.", ("--no-history",), negated=True),
    ] = True
    targets: tuple[str, ...] = ()  # tasks or files, and what they need; none: all
    force: Annotated[
        Any,  # True, or names of tasks, which may be patterns
        Flag(
            "Run these tasks (`align*`) though they are up to date; without a name, all. "
            "Repeatable.",
            kind=list[str] | None,
            metavar="[TASK]",
        ),
    ] = False
    trust: Annotated[
        str,
        Flag(
            "By what a file is known: its content, or, for huge data, its size and time alone.",
            metavar="content|mtime",
        ),
    ] = "content"
    # results of functions that other tasks read: True all, False none, None those under 1 MB
    keep_results: bool | None = None
    # functions on this machine: tasks after which a worker process is replaced; None: never
    tasks_per_worker: int | None = None
    mismatch: str = FAIL  # functions: what to do where the worker's program differs
    price: Annotated[
        Any,  # a number, or by names; kept as rules, see `price_rules`
        Flag(
            "Money per second of use, of all processors or of those with that name, host or "
            "machine (`fast*=0.02`); `/3600`: paid per begun 3600 s. Repeatable, the last that "
            "fits counts.",
            kind=list[str] | None,
            metavar="[NAME=]PRICE[/UNIT]",
        ),
    ] = None
    transfer_price: Annotated[
        float, Flag("Money per unit of data (byte) sent to another host.")
    ] = 0.0
    budget: Annotated[
        float | None,
        Flag(
            "Money for all of it: every plan costs at most this, with what is spent already.",
            resume="Another budget, for all of it: what is spent already is part of it.",
        ),
    ] = None
    over_budget: Annotated[
        str,
        Flag(
            "When even the cheapest way to finish is over the budget: finish that way; or finish "
            "what runs and stop; or stop, and cancel what runs when the money is gone.",
            metavar="continue|stop|cut",
            resume="When even the cheapest way to finish is over the budget, as for `run`.",
        ),
    ] = "continue"
    reserve: Annotated[
        float,
        Flag(
            "Plans leave this share of the money that is left for surprises: 0.1 is 10%.",
            kind=float | None,
            shown=f"{OWN_RESERVE} with a budget",
        ),
    ] = 0.0
    deadline: Annotated[
        float | None, Flag(BY_THEN, metavar="TIME", read=read_time, resume=BY_THEN)
    ] = None  # of the run's time
    params: Mapping[str, Any] = field(default_factory=dict)  # values of a workflow's parameters

    def __post_init__(self) -> None:
        from foreplan.runs.money import price_rules

        object.__setattr__(self, "price", price_rules(self.price))
        object.__setattr__(self, "targets", tuple(self.targets))
        if not isinstance(self.force, bool):
            named = [self.force] if isinstance(self.force, str) else self.force
            object.__setattr__(self, "force", tuple(named))
        if self.trust not in ("content", "mtime"):
            raise InputError(f"{self.trust!r} is nothing to trust: say `content` or `mtime`")
        if self.mismatch not in (FAIL, WARN):
            raise InputError(f"mismatch must be 'fail' or 'warn', not {self.mismatch!r}")
        if not (math.isfinite(self.transfer_price) and self.transfer_price >= 0):
            raise InputError(
                f"the price of transfers must be a number from 0 on, not {self.transfer_price:g}"
            )
        if self.keep_results not in (None, True, False):
            raise InputError(
                "keep_results must be True (all), False (none) or None (those under 1 MB), not "
                f"{self.keep_results!r}"
            )
        if not (isinstance(self.retries, int) and self.retries >= 0):
            raise InputError(f"retries must be a whole number from 0 on, not {self.retries!r}")
        most = self.tasks_per_worker
        if most is not None and not (type(most) is int and most >= 1):
            raise InputError(f"tasks_per_worker must be a whole number from 1 on, not {most!r}")
        if self.timeout is not None and not self.timeout > 0:
            raise InputError(f"the timeout must be more than 0 seconds, not {self.timeout!r}")
        if self.deadline is not None:
            check_deadline(self.deadline)

    @property
    def is_auto(self) -> bool:
        """Return whether foreplan chooses the strategy, by what is known of the tasks."""
        return isinstance(self.strategy, str) and self.strategy == AUTO

    @property
    def ends_by(self) -> float:
        """The deadline, as the coordinator keeps it."""
        return math.inf if self.deadline is None else self.deadline

    @property
    def limited(self) -> bool:
        """Whether there is a budget or a deadline to keep."""
        return self.budget is not None or self.deadline is not None

    def retry_policy(self) -> RetryPolicy:
        """How many failures the run puts up with."""
        from foreplan.engine.retries import RetryPolicy

        return RetryPolicy(retries=self.retries, keep_going=self.keep_going)

    def tracker(self) -> BudgetTracker:
        """The budget, as the coordinator keeps it."""
        from foreplan.engine.budget import CONTINUE, BudgetTracker

        if self.budget is None:
            if self.reserve or self.over_budget != CONTINUE:
                raise InputError("`reserve` and `over budget` say how to keep a budget: give one")
            return BudgetTracker(timeout=self.timeout, learns=True)  # a resume may give it a budget
        check_budget(self.budget)
        return BudgetTracker(self.budget, self.over_budget, self.reserve, self.timeout, learns=True)

    def to_dict(self) -> dict[str, Any]:
        """What the journal keeps."""
        kept = {field.name: getattr(self, field.name) for field in fields(self)}
        del kept["directory"]
        kept["params"] = self.kept_params()
        if not self.params:
            del kept["params"]
        if self.tasks_per_worker is None:
            del kept["tasks_per_worker"]
        return kept | {"on": self.place, "strategy": registry.recorded_spec(self.strategy)}

    def kept_params(self) -> dict[str, Any]:
        """Return the values of parameters as the journal keeps them."""
        return {name: _kept(value) for name, value in self.params.items()}

    @property
    def place(self) -> str:
        """Where it runs, in words that `--on` understands."""
        if isinstance(self.on, str):
            return self.on
        return find_scheme(self.on).place(self.on)

    @staticmethod
    def from_dict(content: dict[str, Any], directory: Path) -> Options:
        """Read back the options that a journal kept."""
        content = content | {"params": parameters(content.get("params", {}))}
        return Options(directory=directory, **content)

    @staticmethod
    def from_keywords(given: Mapping[str, Any]) -> Options:
        """As `foreplan.run` is called: what is None there is as always."""
        known = {field.name: field.name for field in fields(Options)} | {"directory": "dir"}
        asked = {name: given[key] for name, key in known.items() if given.get(key) is not None}
        return Options(**asked | {"directory": Path(asked["directory"])})

    @staticmethod
    def from_flags(given: Mapping[str, Any]) -> Options:
        """As `foreplan run` is called, by the names of the options."""
        from foreplan.runs.money import read_price

        asked = dict(given)
        asked["force"] = asked["force"] or False
        for name, flag in flags().items():
            if flag.negated:
                asked[name] = not asked[name]
        asked["price"] = [read_price(text) for text in asked["price"] or []]
        if asked["reserve"] is None:
            asked["reserve"] = OWN_RESERVE if asked["budget"] is not None else 0.0
        return Options(**asked)


def flags(resuming: bool = False) -> dict[str, Flag]:
    """The options that the command line has, by name; if it resumes a run, those it may change."""
    hints = get_type_hints(Options, include_extras=True)
    every = {name: flag for name, hint in hints.items() for flag in get_args(hint)[1:]}
    return {
        name: flag
        for name, flag in every.items()
        if isinstance(flag, Flag) and (flag.resume or not resuming)
    }


def check_deadline(deadline: float) -> None:
    """Refuse what is no time."""
    if not (math.isfinite(deadline) and deadline > 0):
        raise InputError(f"the deadline must be a number of seconds above 0, not {deadline:g}")


def check_budget(budget: float) -> None:
    """Refuse what is no amount of money."""
    if not (math.isfinite(budget) and budget >= 0):
        raise InputError(f"the budget must be a number from 0 on, not {budget:g}")


def chosen_strategy(options: Options, blind: bool) -> str | Policy | Order:
    """The strategy that is asked for; `auto` depends on what is known, and on limits to keep."""
    if not options.is_auto:
        return cast("str | Policy | Order", options.strategy)
    return BLIND if blind and not options.limited else PLANNED


def why(header: Header) -> str:
    """Why a run has set out with its strategy."""
    if not header.options.is_auto:
        return "asked for"
    if header.options.budget is not None:
        return "there was a budget to keep"
    if header.options.deadline is not None:
        return "there was a deadline to keep"
    if header.blind:
        return "nothing was known of the times of its tasks"
    return "something was known of the times of its tasks"
