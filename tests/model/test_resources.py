from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from foreplan.errors import InputError
from foreplan.model import Estimates, Item, Platform, Processor, Schedule, TaskSpec, Workflow
from foreplan.model.amounts import Amount
from foreplan.model.resources import Cores, Demand, Host, Request, check_fits, declared_needs, held


def workflow(*requests: Request | None) -> Workflow:
    """Independent tasks of cost 10 with these requests; the first reads a gigabyte."""
    specs = {t: TaskSpec(request=request) for t, request in enumerate(requests) if request}
    names = [f"t{t}" for t in range(len(requests))]
    items = [Item(1e9, None, (0,))]
    return Workflow.from_items("w", names, [10.0] * len(names), items, specs=specs)


def platform(**big: Any) -> Platform:
    """A host of four cores that has this, and one of two cores of which nothing is known."""
    processors = [Processor(f"big-{c}", "big", price=1.0) for c in range(1, 5)]
    processors += [Processor(f"small-{c}", "small", price=1.0) for c in (1, 2)]
    return Platform.build(processors, has={"big": Host("big", **big)}, pools={"licence": 1.0})


def test_where_nothing_is_asked_for_there_are_no_needs() -> None:
    assert declared_needs(workflow(None, None)) is None
    assert Estimates.declared(workflow(None), platform()).needs is None


def test_formulas_are_evaluated_with_the_bytes_that_a_task_reads() -> None:
    request = Request(memory=Amount("1GB + 2 * inputs"))
    needs = declared_needs(workflow(request, request))
    assert needs is not None
    assert needs.of("memory").tolist() == [3e9, 1e9]


def test_what_is_learnt_counts_for_tasks_that_ask_for_none_or_less() -> None:
    asked = Request(memory=Amount("5GB"))
    tasks = workflow(asked, asked, asked, None)
    needs = declared_needs(tasks, np.array([0.5e9, 7e9, np.nan, 2e9]))
    assert needs is not None
    assert needs.of("memory").tolist() == [5e9, 7e9, 5e9, 2e9]


def test_amdahl() -> None:
    request = Request(cores=(1, 2, 4), parallel=0.5)
    assert request.factors() == (1.0, 0.75, 0.625)
    assert Request(cores=(2, 4), seconds=(30.0, 20.0)).factors() == (1.0, 20 / 30)


def test_hosts_and_labels_that_a_task_admits() -> None:
    request = Request(on=("big*", "avx*"), not_on=("big-old",))
    assert request.admits("big-new", ())
    assert request.admits("x", ("avx512",))
    assert not request.admits("big-old", ("avx512",))
    assert not request.admits("x", ())


def test_memory_that_no_host_declares_is_enough_and_gpus_are_none() -> None:
    needs = declared_needs(workflow(Request(memory=Amount("1TB")), Request(gpus=1)))
    assert needs is not None
    demand = Demand.of(workflow(None, None), platform(amounts={"gpus": 1.0}), needs)
    assert demand.allowed.tolist() == [[True, True], [True, False]]


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (Request(cores=(8,)), "'t0' fits on no host: it needs 8 cores; .*'big', has 4 cores"),
        (
            Request(cores=(3,), memory=Amount("9GB")),
            "needs 3 cores and 9 GB of memory; the largest host, 'big', has 4 cores and 8 GB",
        ),
        (Request(gpus=1), "needs 1 core and 1 gpus"),
        (Request(on=("bog*",)), "no host is meant by on: .*there are: big, small"),
        (Request(pools=(("seats", 1.0),)), "no one declares the pool 'seats'"),
        (Request(pools=(("licence", 2.0),)), "takes 2 of the pool 'licence', which has 1"),
    ],
)
def test_what_fits_nowhere_is_named(request_: Request, message: str) -> None:
    tasks = workflow(request_, None)
    machines = platform(amounts={"memory": 8e9})
    with pytest.raises(InputError, match=message):
        check_fits(tasks, machines, declared_needs(tasks))


def test_what_fits_somewhere_is_fine() -> None:
    tasks = workflow(Request(cores=(4,), memory=Amount("8GB"), pools=(("licence", 1.0),)), None)
    check_fits(tasks, platform(amounts={"memory": 8e9}), declared_needs(tasks))


def test_cores_by_row() -> None:
    cores = Cores(np.array([0, 2, 3]), np.array([4, 5, 1]))
    assert cores.width.tolist() == [2, 1]
    assert cores.take(np.array([1, 0], dtype=np.int32)).processor.tolist() == [1, 4, 5]
    rows, processors = held(np.array([4, 1], dtype=np.int32), cores)
    assert rows.tolist() == [0, 0, 1]
    assert processors.tolist() == [4, 5, 1]


def wide() -> Schedule:
    """A task on three cores of the big host beside one that takes half of its memory."""
    tasks = workflow(Request(cores=(3,)), Request(memory=Amount("4GB")))
    return Schedule(
        "by hand",
        tasks,
        platform(amounts={"memory": 8e9}),
        np.array([0, 3]),
        np.zeros(2),
        np.full(2, 10.0),
        cores=Cores(np.array([0, 3, 4]), np.array([0, 1, 2, 3])),
        needs=declared_needs(tasks),
    )


def test_a_wide_task_uses_all_of_its_cores() -> None:
    assert wide().busy.tolist() == [10.0, 10.0, 10.0, 10.0, 0.0, 0.0]
    assert wide().cost == 40.0
    assert wide().queue[1].tolist() == [0, 0, 0, 1]
    told = wide().to_dict()["tasks"]
    assert told["t0"]["cores"] == 3
    assert told["t1"]["memory"] == 4e9
    assert told["t1"]["host"] == "big"


def test_where_the_price_is_of_the_host_a_task_pays_its_largest_share() -> None:
    """Half of the memory is two of four cores."""
    has = Host("big", {"memory": 8e9}, whole_price=True)
    machines = replace(wide().platform, hosts=(has, Host("small")))
    assert replace(wide(), platform=machines).cost == 30.0 + 20.0


def test_the_pools_of_a_workflow_count_where_the_platform_has_none() -> None:
    tasks = replace(
        workflow(Request(pools=(("seats", 1.0), ("licence", 1.0)))), pools={"seats": 2.0}
    )
    needs = declared_needs(tasks)
    assert needs is not None
    check_fits(tasks, platform(), needs)
    assert Demand.of(tasks, platform(), needs).capacity[-2:].tolist() == [1.0, 2.0]
    more = replace(tasks, pools={"seats": 2.0, "licence": 9.0})
    assert Demand.of(more, platform(), needs).capacity[-2:].tolist() == [1.0, 2.0]


def test_a_formula_that_is_below_0_names_the_task() -> None:
    with pytest.raises(InputError, match=r"tasks\.t0: '1MB - inputs' is no amount"):
        declared_needs(workflow(Request(memory=Amount("1MB - inputs"))))


def test_the_largest_host_is_the_one_that_comes_nearest() -> None:
    tasks = workflow(Request(resources=(("disk", Amount("2TB")),)))
    processors = [Processor(f"big-{c}", "big") for c in (1, 2)] + [Processor("small")]
    machines = Platform.build(processors, has={"small": Host("small", {"disk": 1e12})})
    with pytest.raises(InputError, match="the largest host, 'small', has 1 core and 1,000,000,000"):
        check_fits(tasks, machines, declared_needs(tasks))


def test_the_needs_of_some_tasks() -> None:
    wide = Request(cores=(2, 4), parallel=1.0, memory=Amount("2GB"))
    needs = declared_needs(workflow(None, wide, Request(cores=(3,))))
    assert needs is not None
    part = needs.part([1, 2])
    assert part.width_ptr.tolist() == [0, 2, 3]
    assert part.width.tolist() == [2, 4, 3]
    assert part.factor.tolist() == [1.0, 0.5, 1.0]
    assert part.of("memory").tolist() == [2e9, 0.0]
