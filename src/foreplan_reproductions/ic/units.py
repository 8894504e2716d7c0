"""The units of the IC experiments: one dag with all its plays, or one world of volunteers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from foreplan.version import __version__
from foreplan_reproductions.ic import plays, volunteers
from foreplan_reproductions.ic.cases import (
    COMPOSED,
    EVOLVING,
    FFT,
    GROWING,
    Q2,
    RANDOM,
    REDUCTION,
    SHRINKING,
    WNM,
    WORKFLOW,
    Case,
    M,
    W,
    digest,
    instance_of,
    workflow_files,
)
from foreplan_reproductions.ic.plays import KNOWN, Columns
from foreplan_reproductions.ic.volunteers import (
    GENERATED,
    LAYERED,
    MIN_MIN,
    QUICK,
    STATIC,
    UNKNOWN,
    Volunteers,
    application,
    real_names,
)

# Figures 4 to 7; 8 and 9; every size; other dags; volunteers
AREA, PHASES, EVERY, OTHERS, VOLUNTEERS = "area", "phases", "every size", "others", "volunteers"
READINGS = "readings"  # of section 4.1.3: how much is merged

FFT_ROWS = tuple(range(2, 10))  # 3 to 10 levels
MESH_LEVELS = range(10, 101)  # of Figure 4
READING_SIZE = 2000
FEWEST, MOST = 200, 6000  # vertices of a random composition


# What `ico` gains differs from world to world by 4% on some workflows and by 57% on others: with so
# many times as many worlds of these, 20 of the others, the mean is known to about 1.5%
WORLDS = {FFT: 8, LAYERED: 14, W: 4, WNM: 4, "montage": 8, "1000genome": 4}


@dataclass(frozen=True)
class Settings:
    """What the figures depend on: how many dags for each part, how many plays, which files."""

    full: bool
    seed: int = 0
    plays: int = 50
    mesh_step: int = 10  # levels between two meshes of Figure 4
    tree_sizes: int = 10
    compositions: int = 40  # of each kind
    phase_sizes: tuple[int, ...] = (300, 3000)
    phase_dags: int = 1  # of each size and kind
    most: int = 10_000  # vertices, where every size is tried
    tree_step: int = 200  # of the trees' sizes there
    random_sizes: tuple[int, ...] = (100, 1000)
    random_dags: int = 4  # of each size and kind
    readings: int = 5  # dags of each kind
    volunteer_size: int = 6_000  # tasks
    worlds: int = 4  # of volunteers, per workflow; of some WORLDS times as many
    slow_worlds: tuple[int, int] = (4, 2)  # those in which `min-min` and `static` run, too
    sweep_worlds: int = 2
    processors: int = volunteers.PROCESSORS
    workflows: str = ""  # a folder of workflows

    def described(self) -> dict[str, Any]:
        """As the head of a checkpoint says it."""
        files = digest(self.workflows) if self.workflows else ""
        strategies = list(volunteers.available())
        return {
            **asdict(self),
            "workflows": files,
            "strategies": strategies,
            "foreplan": __version__,
        }


SAMPLE = Settings(full=False)
FULL = Settings(
    full=True,
    mesh_step=3,
    compositions=200,
    phase_sizes=(300, 1000, 3000),
    phase_dags=3,
    tree_step=50,
    random_dags=10,
    readings=20,
    worlds=20,
    slow_worlds=(20, 3),
    sweep_worlds=8,
)


@dataclass(frozen=True)
class Unit:
    """Some dags of one part, mostly one; or one world of volunteers and the strategies in it."""

    number: int
    part: str
    cases: tuple[Case, ...] = ()
    volunteers: Volunteers | None = None
    strategies: tuple[str, ...] = ()
    sweep: str = ""

    @property
    def case(self) -> Case:
        """The only dag."""
        [case] = self.cases
        return case


Found = tuple[str, tuple[Case, ...], Volunteers | None, tuple[str, ...], str]


@lru_cache(maxsize=4)
def units(settings: Settings) -> tuple[Unit, ...]:
    """All units, by number."""
    cases = [(part, some) for part, some in _games(settings)]
    found: list[Found] = [(part, some, None, (), "") for part, some in cases]
    found += [
        (VOLUNTEERS, (), case, strategies, sweep) for case, strategies, sweep in _worlds(settings)
    ]
    found += [(READINGS, (case,), None, (), "") for case in _readings(settings)]
    return tuple(Unit(number, *unit) for number, unit in enumerate(found))


def _games(settings: Settings) -> Iterator[tuple[str, tuple[Case, ...]]]:
    """All that is played with pebbles."""
    for case in (*_familiar(settings), *_compositions(settings)):
        yield AREA, (case,)
    for case in _batched(settings):
        yield PHASES, (case,)
    for some in _every_size(settings):
        yield EVERY, some
    for case in _others(settings):
        yield OTHERS, (case,)


def _familiar(settings: Settings) -> Iterator[Case]:
    """The sizes of section 5.1.1; trees as large as the meshes."""
    for rows in FFT_ROWS:
        yield Case(FFT, rows, 0, settings.seed)
    for levels in MESH_LEVELS[:: settings.mesh_step]:
        for family in (EVOLVING, REDUCTION):
            yield Case(family, levels, 0, settings.seed)
    for n in np.linspace(100, 5000, settings.tree_sizes).round().astype(int).tolist():
        for family in (GROWING, SHRINKING):
            yield Case(family, n, 0, settings.seed)


def _compositions(settings: Settings) -> Iterator[Case]:
    """Random target sizes, a few hundred to several thousand (section 4.1)."""
    for kind, family in enumerate(COMPOSED):
        rng = np.random.default_rng([settings.seed, kind])
        sizes = rng.integers(FEWEST, MOST, settings.compositions, endpoint=True)
        for number, size in enumerate(sizes.tolist()):
            yield Case(family, size, number, settings.seed)


def _batched(settings: Settings) -> Iterator[Case]:
    """Dags of some sizes of every class (Figures 8 and 9)."""
    for size in settings.phase_sizes:
        # the FFT and the meshes that come nearest
        rows = min(range(1, 12), key=lambda r: abs(((r + 1) << r) - size))
        levels = round((2 * size) ** 0.5)
        yield Case(FFT, rows, 0, settings.seed)
        yield Case(EVOLVING, levels, 0, settings.seed)
        yield Case(REDUCTION, levels, 0, settings.seed)
        for family in COMPOSED:
            for number in range(settings.phase_dags):
                yield Case(family, size, number, settings.seed)


def _every_size(settings: Settings) -> Iterator[tuple[Case, ...]]:
    """FFT, meshes and trees up to a size, some to a unit."""
    most, seed = settings.most, settings.seed
    sizes: dict[str, range] = {
        FFT: range(max(r for r in range(20) if (r + 1) << r <= most) + 1),
        **dict.fromkeys((EVOLVING, REDUCTION), range(1, int((2 * most + 0.25) ** 0.5 + 0.5))),
        **dict.fromkeys((GROWING, SHRINKING), range(1, most + 1, settings.tree_step)),
    }
    for family, some in sizes.items():
        for first in range(0, len(some), 10):
            yield tuple(Case(family, size, 0, seed) for size in some[first : first + 10])


def _others(settings: Settings) -> Iterator[Case]:
    """Dags that nobody made to fit the theory: workflows from files, and random ones."""
    if settings.workflows:
        for number in range(len(workflow_files(settings.workflows))):
            yield Case(WORKFLOW, 0, number, settings.seed)
    for family in RANDOM:
        for size in settings.random_sizes:
            for number in range(settings.random_dags):
                yield Case(family, size, number, settings.seed)


def _worlds(settings: Settings) -> Iterator[tuple[Volunteers, tuple[str, ...], str]]:
    """All workflows among volunteers; then one thing after the other is varied."""
    real = real_names(settings.workflows) if settings.workflows else []
    for name in (*GENERATED, *real):
        size = settings.volunteer_size if name in GENERATED else 0
        usual = Volunteers(name, size, 0, settings.seed, settings.processors)
        for world in range(settings.worlds * WORLDS.get(application(name), 1)):
            limits = zip((MIN_MIN, STATIC), settings.slow_worlds, strict=True)
            slow = [name for name, worlds in limits if world < worlds]
            yield replace(usual, world=world), (*QUICK, *slow), ""
        for world in range(settings.sweep_worlds):
            for case, sweep in _sweeps(replace(usual, world=world)):
                yield case, (MIN_MIN,) if sweep == "error" else (*QUICK, MIN_MIN), sweep


def _sweeps(usual: Volunteers) -> Iterator[tuple[Volunteers, str]]:
    """Better estimates or none, speeds that are seen, more or less churn, fewer volunteers."""
    for error in (1.0, UNKNOWN):
        yield replace(usual, error=error), "error"
    yield replace(usual, seen=True), "seen"
    for churn in (0.0, 0.5):
        yield replace(usual, churn=churn), "churn"
    yield replace(usual, processors=max(1, usual.processors // 5)), "processors"


def _readings(settings: Settings) -> Iterator[Case]:
    """Compositions on which the paper and we differ."""
    for family in (W, Q2, M):
        for number in range(settings.readings):
            yield Case(family, READING_SIZE, number, settings.seed)


def measured(settings: Settings, unit: Unit) -> Columns:
    """All plays, or all runs, of a unit."""
    if unit.volunteers is not None:
        return volunteers.measured(unit.volunteers, settings.workflows, unit.strategies)
    if unit.part == EVERY:
        return plays.every_size(unit.cases, settings.plays)
    if unit.part == READINGS:
        return plays.readings(unit.case, settings.plays)
    instance = instance_of(unit.case, settings.workflows)
    if unit.part == AREA:
        return plays.areas(unit.case, instance, settings.plays)
    if unit.part == PHASES:
        return plays.phases(unit.case, instance, settings.plays)
    batched = plays.phases(unit.case, instance, settings.plays, names=KNOWN)
    return {**batched, **plays.areas(unit.case, instance, settings.plays, KNOWN)}
