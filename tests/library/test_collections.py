"""Dask's arrays, bags and dataframes: a table of expressions, each as dask.compute gives it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import foreplan
from foreplan.delayed import flow_of
from foreplan.errors import InputError
from library.computing import computed

dask = pytest.importorskip("dask")
pd = pytest.importorskip("pandas")
dd = pytest.importorskip("dask.dataframe")
da = pytest.importorskip("dask.array")
db = pytest.importorskip("dask.bag")

RNG = np.random.default_rng(7)
ROWS = 60
FRAME = pd.DataFrame(
    {
        "k": RNG.integers(0, 6, ROWS),
        "v": RNG.random(ROWS),
        "name": RNG.choice(["ann", "bob", "cy"], ROWS),
        "day": pd.date_range("2026-01-01", periods=ROWS, freq="h"),
    }
)
OTHER = pd.DataFrame({"k": range(6), "w": RNG.random(6)})


class Given:
    """What the expressions are made of, made anew for each."""

    def __init__(self, csv: Path) -> None:
        self.df = dd.from_pandas(FRAME, npartitions=4)
        self.other = dd.from_pandas(OTHER, npartitions=2)
        self.keyed = dd.from_pandas(OTHER.set_index("k"), npartitions=2)
        self.timed = dd.from_pandas(FRAME.set_index("day"), npartitions=3)
        self.csv = dd.read_csv(str(csv / "*.csv"))
        self.x = da.from_array(np.arange(24.0).reshape(4, 6), chunks=(2, 3))
        self.bag = db.from_sequence(range(20), npartitions=4)


def doubled(part: Any, by: int = 2) -> Any:
    return part.assign(v=part.v * by)


TABLE: dict[str, Callable[[Given], Any]] = {
    # dataframes: rows and columns
    "df": lambda g: g.df,
    "df[df.v > .5]": lambda g: g.df[g.df.v > 0.5],
    "df[(df.v > .2) & (df.k != 3)].v": lambda g: g.df[(g.df.v > 0.2) & (g.df.k != 3)].v,
    "df[['k', 'v']]": lambda g: g.df[["k", "v"]],
    "df.loc[10:20]": lambda g: g.df.loc[10:20],
    "df.query('v < .3')": lambda g: g.df.query("v < .3"),
    "df.partitions[1]": lambda g: g.df.partitions[1],
    "df.head(5)": lambda g: g.df.head(5, compute=False),
    "df.index": lambda g: g.df.index,
    "df.nlargest(3, 'v')": lambda g: g.df.nlargest(3, "v"),
    # arithmetic
    "df.v * 2": lambda g: g.df.v * 2,
    "df.v + df.k": lambda g: g.df.v + g.df.k,
    "df.assign(z=...)": lambda g: g.df.assign(z=(g.df.v - g.df.v.mean()) / g.df.v.std()),
    "df.name.str.upper()": lambda g: g.df.name.str.upper(),
    "df.day.dt.hour": lambda g: g.df.day.dt.hour,
    "df.v.astype('float32')": lambda g: g.df.v.astype("float32"),
    "df.name.astype('category')": lambda g: g.df.name.astype("category"),
    "df.map_partitions(f, by=3)": lambda g: g.df.map_partitions(doubled, by=3),
    "df.v.map(f)": lambda g: g.df.v.map(lambda v: round(v, 1), meta=("v", "f8")),
    "df.apply(f, axis=1)": lambda g: g.df.apply(lambda r: r.k + r.v, axis=1, meta=(None, "f8")),
    # reductions
    "df.v.sum()": lambda g: g.df.v.sum(),
    "df[['k', 'v']].mean()": lambda g: g.df[["k", "v"]].mean(),
    "df.v.max() - df.v.min()": lambda g: g.df.v.max() - g.df.v.min(),
    "df.describe()": lambda g: g.df[["k", "v"]].describe(),
    "df.name.value_counts()": lambda g: g.df.name.value_counts(),
    "df.k.nunique()": lambda g: g.df.k.nunique(),
    "df.drop_duplicates('k')": lambda g: g.df[["k", "name"]].drop_duplicates("k"),
    "df.shape[0]": lambda g: g.df.shape[0],
    "df.v.cumsum()": lambda g: g.df.v.cumsum(),
    # groups
    "df.groupby('k').v.sum()": lambda g: g.df.groupby("k").v.sum(),
    "df.groupby(['k', 'name']).agg(...)": lambda g: g.df.groupby(["k", "name"]).agg(
        {"v": ["mean", "max"], "day": "min"}
    ),
    "df.groupby('name').v.std(split_out=2)": lambda g: g.df.groupby("name").v.std(split_out=2),
    "df.groupby('k').apply(f)": lambda g: g.df.groupby("k")[["v"]].apply(
        lambda p: p.v.max(), meta=("v", "f8")
    ),
    # joins
    "df.merge(other, on='k')": lambda g: g.df.merge(g.other, on="k"),
    "df.merge(other, how='left')": lambda g: g.df.merge(g.other[g.other.w > 0.5], how="left"),
    "df.merge(keyed, right_index=True)": lambda g: g.df.merge(
        g.keyed, left_on="k", right_index=True
    ),
    "df.set_index('k').join(keyed)": lambda g: g.df.set_index("k").join(g.keyed),
    "df.join(df2) on the index": lambda g: g.df[["k"]].join(g.df[["v"]] * 2, rsuffix="2"),
    "dd.concat([df, df])": lambda g: dd.concat([g.df, g.df[g.df.k == 1]]),
    # order and partitions
    "df.set_index('k')": lambda g: g.df.set_index("k"),
    "df.sort_values('v')": lambda g: g.df.sort_values("v"),
    "df.shuffle('name')": lambda g: g.df.shuffle("name"),
    "df.repartition(npartitions=2)": lambda g: g.df.repartition(npartitions=2),
    "df.repartition(divisions=...)": lambda g: g.df.repartition(divisions=[0, 7, 50, 59]),
    "df.v.rolling(5).mean()": lambda g: g.df.v.rolling(5).mean(),
    "timed.v.rolling('3h').sum()": lambda g: g.timed.v.rolling("3h").sum(),
    "timed.resample('6h').max()": lambda g: g.timed[["v"]].resample("6h").max(),
    # files
    "read_csv": lambda g: g.csv,
    "read_csv[filter].v.mean()": lambda g: g.csv[g.csv.k > 2].v.mean(),
    "read_csv.groupby.size()": lambda g: g.csv.groupby("name").size(),
    # arrays
    "x.T + 1": lambda g: g.x.T + 1,
    "x.sum()": lambda g: g.x.sum(),
    "x.mean(axis=0)": lambda g: g.x.mean(axis=0),
    "x @ x.T": lambda g: g.x @ g.x.T,
    "x[1:3, ::2].astype(int)": lambda g: g.x[1:3, ::2].astype(int),
    "x.rechunk((4, 2)).std(axis=1)": lambda g: g.x.rechunk((4, 2)).std(axis=1),
    "df.v.to_dask_array()": lambda g: g.df.v.to_dask_array(lengths=True) * 2,
    "dd.from_dask_array(x)": lambda g: dd.from_dask_array(g.x, columns=list("abcdef")).a,
    # bags
    "bag.map.filter": lambda g: g.bag.map(lambda i: i * i).filter(lambda i: i % 3),
    "bag.sum()": lambda g: g.bag.sum(),
    "bag.groupby(shuffle='tasks')": lambda g: g.bag.groupby(lambda i: i % 3, shuffle="tasks"),
    "bag.frequencies()": lambda g: g.bag.map(lambda i: i % 4).frequencies(),
    "bag.map_partitions(generator)": lambda g: g.bag.map_partitions(lambda p: (i + 1 for i in p)),
    "bag.map_partitions(map).sum()": lambda g: g.bag.map_partitions(lambda p: map(abs, p)).sum(),
    "bag.to_dataframe()": lambda g: g.bag.map(lambda i: {"i": i}).to_dataframe(),
    # delayed objects of each
    "delayed(len)(df)": lambda g: dask.delayed(len)(g.df[g.df.v > 0.5]),
    "delayed(f)(x, bag, df)": lambda g: dask.delayed(lambda *a: a)(g.x, g.bag, g.df.v),
    "df.to_delayed()": lambda g: g.df[g.df.v > 0.5].to_delayed(),
    "dd.from_delayed": lambda g: dd.from_delayed(g.df.to_delayed(), meta=g.df._meta).v.sum(),
    "x.to_delayed()": lambda g: (g.x + 1).to_delayed().tolist(),
}


@pytest.fixture
def given(tmp_path: Path) -> Given:
    for part in range(2):
        FRAME[part::2].to_csv(tmp_path / f"{part}.csv", index=False)
    return Given(tmp_path)


@pytest.fixture(autouse=True)
def _by_tasks() -> Iterator[None]:
    """Dask shuffles as foreplan does, for rows in the same order."""
    with dask.config.set({"dataframe.shuffle.method": "tasks", "scheduler": "sync"}):
        yield


def assert_alike(result: Any, wanted: Any) -> None:
    """The same in value and in type, with dtypes, names and indices."""
    assert type(result) is type(wanted)
    if isinstance(wanted, list | tuple):
        assert len(result) == len(wanted)
        for one, other in zip(result, wanted, strict=True):
            assert_alike(one, other)
    elif isinstance(wanted, dict):
        assert_alike(list(result.items()), list(wanted.items()))
    elif isinstance(wanted, np.ndarray):
        assert (result.dtype, result.shape) == (wanted.dtype, wanted.shape)
        assert np.array_equal(result, wanted)
    elif isinstance(wanted, pd.DataFrame):
        pd.testing.assert_frame_equal(result, wanted, check_exact=True)
    elif isinstance(wanted, pd.Series):
        pd.testing.assert_series_equal(result, wanted, check_exact=True)
    elif isinstance(wanted, pd.Index):
        pd.testing.assert_index_equal(result, wanted, exact=True)
    else:
        assert result == wanted


@pytest.mark.parametrize("name", TABLE)
def test_an_expression(given: Given, name: str) -> None:
    expression = TABLE[name](given)
    (wanted,) = dask.compute(expression)
    assert_alike(computed(expression), (wanted,))
    assert_alike(computed([expression], optimize=False), ([wanted],))


def test_every_third_of_the_table_in_one_real_run(given: Given, tmp_path: Path) -> None:
    """Of mixed arguments Dask itself would change the order, so each is asked for alone."""
    names = [*list(TABLE)[::3], "bag.map_partitions(generator)"]
    expressions = {name: TABLE[name](given) for name in names}
    results = foreplan.compute(expressions, dir=tmp_path, use_history=False)
    assert list(results) == list(expressions)
    for name, expression in expressions.items():
        assert_alike(results[name], dask.compute(expression)[0])


def test_mixed_and_nested_arguments_keep_their_places(given: Given) -> None:
    one, total = dask.delayed(abs)(-1), given.df.v.sum()
    mixed = (given.x.sum(), given.bag.sum(), [given.x[0], {"d": total, 3: one}], one)
    more = (given.df.k.max(), iter([given.bag.max(), 4]), "text")
    wanted = (np.float64(276), 190, [np.arange(6.0), {"d": dask.compute(total)[0], 3: 1}], 1)
    assert_alike(computed(*mixed, *more), (*wanted, np.int64(FRAME.k.max()), [19, 4], "text"))
    with pytest.raises(InputError, match="a key of a dict holds Dask collections; give them in"):
        flow_of([{one: 1}])


class Composite:
    """A collection of several, some of which may be expressions, as other libraries have them."""

    def __init__(self, **parts: Any) -> None:
        self.parts = parts

    def __dask_exprs__(self) -> list[Any] | None:
        parts = self.parts.values()
        return [p.expr for p in parts] if all(hasattr(p, "expr") for p in parts) else None

    def __dask_graph__(self) -> Any:
        return {k: v for part in self.parts.values() for k, v in dict(part.dask).items()}

    def __dask_keys__(self) -> list[Any]:
        return [part.__dask_keys__() for part in self.parts.values()]

    def __dask_postcompute__(self) -> tuple[Any, tuple[Any, ...]]:
        return len_of_each, (list(self.parts),)

    __dask_optimize__ = None
    __dask_scheduler__ = staticmethod(dask.get)


def len_of_each(results: list[Any], names: list[str]) -> dict[str, int]:
    found = zip(names, results, strict=True)
    return {name: sum(map(len, parts)) for name, parts in found}


def test_collections_of_collections(given: Given) -> None:
    if not hasattr(pytest.importorskip("dask._expr"), "CompositeExpr"):
        pytest.skip("an older Dask")
    frames = Composite(all=given.df, few=given.df[given.df.k == 1])
    others = Composite(bag=given.bag)
    few = int((FRAME.k == 1).sum())
    wanted = ({"bag": 20}, {"all": 60, "few": few}, np.int64(5))
    assert_alike(computed(others, frames, given.df.k.max()), wanted)


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    with distributed.Client(
        processes=False, n_workers=1, threads_per_worker=2, dashboard_address="127.0.0.1:0"
    ) as client:
        yield client


def kinds(given: Given) -> tuple[Any, ...]:
    one = dask.delayed(abs)(-1)
    return given.df[given.df.v > 0.5], given.x + 1, given.bag.map(str), one, given.df.v.sum()


def derived(df: Any, x: Any, bag: Any, one: Any, total: Any) -> tuple[Any, ...]:
    return df, df.v.mean(), x, x.sum(axis=0), bag, bag.count(), one, one + 1, total


def test_persisted_collections(given: Given) -> None:
    wanted = tuple(dask.compute(c)[0] for c in derived(*kinds(given)))
    persisted = [c.persist() for c in kinds(given)]
    assert_alike(computed(*derived(*persisted)), wanted)


def test_what_a_cluster_has_persisted_and_its_futures(given: Given, client: Any) -> None:
    wanted = tuple(dask.compute(c, scheduler="sync")[0] for c in derived(*kinds(given)))
    persisted = [client.persist(c) for c in kinds(given)]
    assert_alike(computed(*derived(*persisted)), wanted)
    future = client.submit(abs, -7)
    assert computed(dask.delayed(sum)([future, 1]), dask.delayed(str)(future)) == (8, "7")
    with pytest.raises(ZeroDivisionError):
        flow_of(dask.delayed(abs)(client.submit(divmod, 1, 0)))


def test_with_a_client_shuffles_go_by_tasks(given: Given, client: Any, tmp_path: Path) -> None:
    """With a client Dask would choose its P2P shuffle, whose data is in no result."""
    with dask.config.set({"dataframe.shuffle.method": None}):
        merged = given.df.merge(given.other, on="k")
        moved = given.df.shuffle("name")
        options = {"client": client, "dir": tmp_path, "use_history": False}
        results = foreplan.compute(merged, moved, given.x.sum(), **options)
    assert_alike(results[:2], tuple(dask.compute(c, scheduler="sync")[0] for c in (merged, moved)))
    assert results[2] == 276


@pytest.mark.filterwarnings("ignore:Cannot block reusing for graphs:UserWarning")
@pytest.mark.parametrize(
    ("shuffled", "kind"),
    [
        (lambda g: g.df.shuffle("name", shuffle_method="disk"), "disk"),
        (lambda g: g.bag.groupby(lambda i: i % 3, shuffle="disk"), "disk"),
        (lambda g: g.df.shuffle("name", shuffle_method="p2p"), "P2P"),
        (lambda g: g.x.rechunk((1, 6), method="p2p"), "P2P"),
    ],
)
def test_shuffles_that_keep_data_elsewhere_are_refused(
    given: Given, client: Any, shuffled: Callable[[Given], Any], kind: str
) -> None:
    with pytest.raises(InputError, match=rf"Dask's {kind} shuffle .* choose shuffles by tasks"):
        flow_of(shuffled(given))
    with pytest.raises(InputError):
        flow_of(dask.delayed(len)(shuffled(given)))


PROGRAM = """
import dask, dask.array as da, dask.dataframe as dd, pandas as pd
from foreplan.delayed import flow_of
df = dd.from_pandas(pd.DataFrame({"k": [1, 2, 3] * 4, "v": range(12)}), npartitions=3)
x = da.ones((4, 4), chunks=2)
wanted = [df.merge(df + 1, on="k").v_x.sum(), df.groupby("k").v.mean(split_out=2), (x + x.T).sum()]
with dask.config.set({"dataframe.shuffle.method": "tasks"}):
    wanted.append(dask.delayed(len)(df.set_index("k")))
workflow, _ = flow_of([*wanted, df[df.v > df.v.mean()], x @ x])[0].build()
print(workflow.task_names, workflow.use_ptr.tolist(), workflow.use_task.tolist())
"""


def test_the_flow_is_the_same_in_every_process() -> None:
    command = [sys.executable, "-c", PROGRAM]
    processes = [
        subprocess.Popen(
            command, env={"PYTHONHASHSEED": seed}, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for seed in ("1", "2")
    ]
    (first, problem), (second, _) = [process.communicate(timeout=120) for process in processes]
    assert first == second != b"", problem


def test_on_a_cluster_functions_share_what_they_take(client: Any, tmp_path: Path) -> None:
    """By Dask's convention they do not change it: no copies, whatever its size."""
    value = dask.delayed(bytearray)(1000)
    places = [dask.delayed(id)(value) for _ in range(2)]
    first, second = foreplan.compute(*places, client=client, dir=tmp_path, use_history=False)
    assert first == second
