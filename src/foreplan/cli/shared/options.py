"""Options that several commands share, and what is read by them."""

from __future__ import annotations

import inspect
import math
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, cast, get_args, get_type_hints

import typer

from foreplan.errors import InputError
from foreplan.executors.base import DEFAULT, examples
from foreplan.files import label
from foreplan.runs.options import Flag, Options, flags
from foreplan.simulation.scenario import EVENT_RATE, MOST_EVENTS

if TYPE_CHECKING:
    from foreplan.model import Expectation, Platform, Workflow
    from foreplan.runs.home import RunHome

Command = Callable[..., None]

WorkflowFile = Annotated[
    Path, typer.Argument(help="The workflow: YAML, JSON, WfFormat, STG, DOT, DAGMan; - is stdin.")
]
RunId = Annotated[str, typer.Argument(help="The run: its id, the beginning of its id, or `last`.")]
TaskWords = Annotated[
    list[str],
    typer.Argument(
        metavar="[WORKFLOW] TASK [RUN]",
        help="The task by its name; after it the run, if not the last one: its id, the beginning "
        "of its id, or `last`. Or, before it, the workflow's file: the first of two words is that "
        "file if it ends in `.yaml` or another suffix of workflows.",
    ),
]
RunDirectory = Annotated[
    Path, typer.Option("--dir", help="The directory of the run, as for `foreplan run`.")
]
Plot = Annotated[Path | None, typer.Option(help="Draw it: .png or .svg.")]
RunGantt = Annotated[
    list[Path] | None,
    typer.Option(
        help="Draw plan against fact: .svg, .png, .html (zoom and hover), .json (for Perfetto)."
    ),
]
Qoi = Annotated[
    float, typer.Option(help="Draw durations within +-QoI of the estimates: 0.2 is 20%.")
]


def json_option(what: str) -> Any:
    """`--json`, and what it prints."""
    return typer.Option("--json", help=f"Print {what} as JSON.")


class TaskQuestion(NamedTuple):
    """A task, and the run or the workflow's file that it belongs to."""

    task: str
    run: str | None = None
    workflow: Path | None = None

    @staticmethod
    def read(words: Sequence[str]) -> TaskQuestion:
        """Tell the words `[WORKFLOW] TASK [RUN]` apart."""
        from foreplan.formats import is_workflow_name

        first, *others = words
        if not others:
            return TaskQuestion(first)
        if is_workflow_name(first):
            if len(others) > 1:
                raise InputError(
                    f"{first} is a workflow's file and {others[1]!r} a run: name one of them"
                )
            return TaskQuestion(others[0], workflow=Path(first))
        if len(others) > 1:
            raise InputError(f"{len(words)} words are too many: name a task, and its run or file")
        if is_workflow_name(others[0]) and Path(others[0]).is_file():
            raise InputError(
                f"{others[0]} is a workflow's file: write it before the task, "
                f"`{shlex.join([others[0], first])}`"
            )
        return TaskQuestion(first, others[0])

    def find_run(self, directory: Path, command: str, params: ParamOptions) -> RunHome | None:
        """Return the run, or None if the question is about the workflow's file."""
        from foreplan.files import near
        from foreplan.formats import is_workflow_name
        from foreplan.runs.home import LAST, RunHome, check_system, runs

        check_system()
        if self.workflow is not None:
            return None
        again = f"`foreplan {command} FILE {self.task}`"
        if any(params):
            raise InputError(
                f"a run has its parameters: --set and --params go with a workflow's file, {again}"
            )
        if self.run is None and not runs(directory):
            if is_workflow_name(self.task):
                raise InputError(
                    f"if {self.task} is a workflow's file, name a task after it: "
                    f"`foreplan {command} {shlex.quote(self.task)} TASK`"
                )
            raise InputError(
                f"nothing was run in {near(directory.absolute())} yet: name the workflow's file, "
                f"{again}"
            )
        return RunHome.find(directory, self.run or LAST)


# what a workflow with parameters is given

Assigned = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A parameter's value. Repeatable."),
]
ParamsFile = Annotated[
    Path | None, typer.Option("--params", help="Values of parameters: a YAML or JSON file.")
]


class ParamOptions(NamedTuple):
    """Values of a workflow's parameters."""

    assigned: Assigned = None
    params: ParamsFile = None

    def values(self) -> dict[str, object]:
        """By name: those of `--set` count more than those of the file."""
        return {**_values_of_file(self.params), **dict(map(_assignment, self.assigned or []))}


def _assignment(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise InputError(f"expected NAME=VALUE, not {text!r}", place="--set")
    return name, value


def _values_of_file(path: Path | None) -> dict[str, object]:
    if path is None:
        return {}
    from foreplan.files import in_file
    from foreplan.formats import read_document
    from foreplan.formats.fields import named

    with in_file(path):
        return named(read_document(path), "the parameter")


# where: a file of machines, or those that a run would have

PlatformFile = Annotated[
    Path | None,
    typer.Option(
        "--platform", "-p", help="The machines and links: YAML or JSON. Default: those of --on."
    ),
]


class PlaceOptions(NamedTuple):
    """Where a run would be, and what is known of its tasks there: for commands without a run."""

    on: Annotated[
        str | None,
        typer.Option(
            help=f"Without -p: the machines, as for `foreplan run`: {examples()}.",
            show_default=DEFAULT,
        ),
    ] = None
    price: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]PRICE[/UNIT]", help="Without -p: what they cost, as for `foreplan run`."
        ),
    ] = None
    directory: Annotated[
        Path,
        typer.Option(
            "--dir", help="The data directory, as for `foreplan run`: its history counts first."
        ),
    ] = Path()
    no_history: Annotated[
        bool,
        typer.Option(
            "--no-history", help="Do not look up in the history what tasks without a cost take."
        ),
    ] = False


# what a run may be asked for


def typer_option(name: str, flag: Flag | None = None, resuming: bool = False) -> Any:
    """How typer asks for an option of a run."""
    flag = flag or flags()[name]
    more: dict[str, Any] = {"show_default": flag.shown} if flag.shown else {}
    if resuming and name == "over_budget":
        more["show_default"] = "as before"
    if flag.read is not None:
        more["parser"] = flag.read
    return typer.Option(
        *flag.names or ("--" + name.replace("_", "-"),),
        min=flag.least,
        metavar=flag.metavar,
        help=flag.resume if resuming else flag.help,
        **more,
    )


Budget = Annotated[float | None, typer_option("budget")]
OverBudget = Annotated[str, typer_option("over_budget")]
Reserve = Annotated[float, typer.Option(help=flags()["reserve"].help)]
RunJson = Annotated[
    bool, typer.Option("--json", help="Print how it ended as JSON; messages go to stderr.")
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="No progress, only messages and the summary.")
]
Detach = Annotated[
    bool, typer.Option("--detach", help="Return once the run has begun; it continues by itself.")
]

Notify = Annotated[
    str | None,
    typer.Option(
        metavar="COMMAND",
        help="Run this when the run has ended, however it did: the environment has FOREPLAN_RUN, "
        "FOREPLAN_STATUS, FOREPLAN_MAKESPAN (seconds) and FOREPLAN_MESSAGE. If it fails, "
        "that is only told.",
    ),
]


def with_run_options(resuming: bool = False) -> Callable[[Command], Command]:
    """A command that takes **options gets those of a run, after its first argument."""

    def add(command: Command) -> Command:
        signature = inspect.signature(command, eval_str=True)
        first, *others = [p for p in signature.parameters.values() if p.kind != p.VAR_KEYWORD]
        return _declare(command, [first, *_parameters(resuming), *others])

    return add


def with_groups(command: Command) -> Command:
    """A parameter of a command that is a group of options is all of these, where it stands."""
    parameters, groups = list[inspect.Parameter](), dict[str, Any]()
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        group = parameter.annotation
        if not (isinstance(group, type) and issubclass(group, tuple)):
            parameters.append(parameter)
            continue
        groups[parameter.name] = group
        kinds = get_type_hints(group, include_extras=True)
        parameters += [
            parameter.replace(name=name, annotation=kinds[name], default=default)
            for name, default in cast(Any, group)._field_defaults.items()
        ]

    @wraps(command)
    def call(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{field: given.pop(field) for field in group._fields})
        command(**given)

    return _declare(call, parameters)


def _declare(command: Command, parameters: Sequence[inspect.Parameter]) -> Command:
    """Let the command have these parameters, as typer reads them."""
    own = [p.replace(kind=p.KEYWORD_ONLY) for p in parameters]
    vars(command)["__signature__"] = inspect.Signature(own)
    command.__annotations__ = {p.name: p.annotation for p in own}
    return command


def _parameters(resuming: bool) -> Iterator[inspect.Parameter]:
    kinds, defaults = get_type_hints(Options), {f.name: f.default for f in fields(Options)}
    for name, flag in flags(resuming).items():
        kind, default = flag.kind or kinds[name], defaults[name]
        if resuming:  # None: as before
            kind, default = kind | None, None
        elif flag.negated:
            default = not default
        elif type(None) in get_args(flag.kind):
            default = None
        info = typer_option(name, flag, resuming)
        yield inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, info]
        )


def load_workflow(
    source: str | Path, params: ParamOptions, place: PlaceOptions | None = None
) -> Workflow:
    """The workflow of a file, or of standard input, with its parameters."""
    from foreplan import api

    directory = Path() if place is None else place.directory
    return api.load(source, params=params.values(), dir=directory)


class WorldOptions(NamedTuple):
    """What happens to the machines in a simulated world."""

    variability: Annotated[
        float,
        typer.Option(
            help="Speeds of processors and bandwidths of links change at random, each to a value "
            "between 1 - this and 1 of its peak: 0.4 is down to 60%."
        ),
    ] = 0.0
    event_rate: Annotated[
        float,
        typer.Option(
            help="How often each processor and each link changes in the planned makespan, that of "
            f"HEFT at full speed; on average. At most {MOST_EVENTS:,} changes are drawn."
        ),
    ] = EVENT_RATE
    failures: Annotated[
        int,
        typer.Option(
            min=0,
            help="So many different processors die, each at a random time of the planned makespan; "
            "one is always left.",
        ),
    ] = 0
    failure_rate: Annotated[
        float,
        typer.Option(
            help="Each processor dies so often in the planned makespan, on average: 0.1 is one in "
            "ten."
        ),
    ] = 0.0
    return_after: Annotated[
        float,
        typer.Option(
            help="Processors that died are back after so many seconds.", show_default="never"
        ),
    ] = math.inf


def expected(
    source: str | Path,
    workflow: Workflow,
    platform: Platform | None,
    place: PlaceOptions,
    budgeted: bool = False,
) -> Expectation:
    """The machines and what tasks take there; what that rests on is told on standard error."""
    from foreplan.files import in_file
    from foreplan.model import Expectation
    from foreplan.model.resources import check_fits, unsized, without_sizes

    def tell(line: str) -> None:
        print(f"foreplan: {label(source)}: {line}", file=sys.stderr)

    for note in workflow.notes:
        tell(note)
    if platform is not None and (place.on is not None or place.price):
        given = "--on" if place.on is not None else "--price"
        raise InputError(f"the machines and their prices are in the file of -p: leave out {given}")
    if platform is not None and not workflow.silent.any():  # nothing more need be imported
        with in_file(source):
            found = Expectation.declared(workflow, platform)
            check_fits(workflow, platform, found.estimates.needs)
        for line in without_sizes(workflow, unsized(workflow)):
            tell(f"{line}; `files:` may say it")
        return found
    from foreplan.runs.estimates import expect
    from foreplan.runs.money import check_payable, read_price

    rules = None if place.price is None else [read_price(text) for text in place.price]
    # a task without a cost is found only with the platform at hand
    with nullcontext() if platform is None else in_file(source):
        found = expect(
            workflow,
            platform,
            place.on,
            place.directory,
            not place.no_history,
            rules,
            warn=lambda text: print(f"foreplan: {text}", file=sys.stderr),
        )
    with in_file(source):
        check_fits(workflow, found.platform, found.estimates.needs)
    if budgeted and platform is None:
        check_payable(found.platform, found.blind)
    for line in found.message.splitlines():
        tell(line)
    return found
