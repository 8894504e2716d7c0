"""Drawn resources: what tasks ask for, what hosts have, and that nothing else changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from foreplan.errors import InputError
from foreplan.formats import platform_from_dict, platform_to_dict
from foreplan.formats.foreplan_workflow import workflow_to_dict
from foreplan.generators import RequestOptions, draw_requests, generate, generate_platform
from foreplan.model.resources import Request


def asked(family: str, **options: Any) -> list[Request]:
    workflow = generate(family, 3, **options)
    return [workflow.spec(t).request or Request() for t in range(workflow.n_tasks)]


def test_tasks_of_a_category_ask_for_the_same() -> None:
    workflow = generate("montage", 3, images=20, cores="1,2,4,8", memory="1GB..8GB")
    by_category: dict[str | None, set[Request | None]] = {}
    for task in range(workflow.n_tasks):
        spec = workflow.spec(task)
        by_category.setdefault(spec.category, set()).add(spec.request)
    assert all(len(requests) == 1 for requests in by_category.values())
    requests = [request for found in by_category.values() for request in found if request]
    assert {width for r in requests for width in r.cores} <= {1, 2, 4, 8}
    sizes = [r.memory.value(0.0) for r in requests if r.memory]
    assert len(sizes) == len(by_category)
    assert min(sizes) >= 1e9
    assert max(sizes) <= 8e9
    assert len(set(sizes)) > 1


def test_without_categories_each_task_draws_its_own() -> None:
    requests = asked("independent", tasks=200, cores="1,2,4,8")
    assert {r.cores for r in requests} == {(1,), (2,), (4,), (8,)}
    assert all(r.memory is None for r in requests)


def test_a_share_leaves_the_choice_of_cores() -> None:
    requests = asked("chain", tasks=2, cores="1,2,4", parallel=0.9)
    assert requests == [Request(cores=(1, 2, 4), parallel=0.9)] * 2


def test_dummies_ask_for_nothing() -> None:
    requests = asked("sameprob", tasks=10, dummies=True, cores="4")
    assert requests[0] == requests[-1] == Request()
    assert all(r.cores == (4,) for r in requests[1:-1])


def test_everything_else_stays_as_it_is() -> None:
    plain = generate("random_layered", 5, tasks=30, processors=3)
    drawn = generate("random_layered", 5, tasks=30, processors=3, cores="2", memory="1GB..2GB")
    assert workflow_to_dict(drawn.without_requests()) == workflow_to_dict(plain)
    assert draw_requests(plain, RequestOptions()) is plain
    assert workflow_to_dict(
        draw_requests(plain, RequestOptions("2", "1GB..2GB"), 5)
    ) == workflow_to_dict(drawn)


def test_hosts_with_memory_and_gpus() -> None:
    joins: dict[str, Any] = {"join_every": 5, "join_share": 0.5, "join_until": 10}
    plain = generate_platform(10, cores=4, seed=2, bandwidth_spread=1.0, **joins)
    platform = generate_platform(
        10, cores=4, seed=2, bandwidth_spread=1.0, memory="16GB..64GB", gpus=1, **joins
    )
    for name in ("speed", "price", "host", "joins", "time_per_unit"):
        np.testing.assert_array_equal(getattr(plain, name), getattr(platform, name))
    assert platform.processor_names[:5] == ("h0-1", "h0-2", "h0-3", "h0-4", "h1-1")
    memory = platform.host_amounts("memory")
    assert ((memory >= 16e9) & (memory <= 64e9)).all()
    assert set(platform.host_amounts("gpus").tolist()) == {1.0}
    fewer = generate_platform(10, cores=4, seed=2, memory="16GB..64GB")
    assert memory[:3].tolist() == fewer.host_amounts("memory").tolist()
    content = platform_to_dict(platform)
    assert "processors" not in content
    assert platform_to_dict(platform_from_dict(content)) == content


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ({"cores": "0"}, "cores"),
        ({"cores": "1;2"}, "cores"),
        ({"cores": "2,1", "parallel": 0.5}, "cores"),
        ({"parallel": 2}, "parallel"),
        ({"memory": "5XB"}, "memory"),
        ({"memory": "8GB..1GB"}, "memory"),
        ({"memory": "inputs"}, "memory"),
        ({"memory": "1"}, "memory"),
    ],
)
def test_bad_options(options: dict[str, Any], place: str) -> None:
    with pytest.raises(InputError) as caught:
        generate("chain", **options)
    assert caught.value.place == place
