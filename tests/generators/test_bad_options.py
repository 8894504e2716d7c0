"""Every wrong option is an InputError that names it."""

from __future__ import annotations

import math
from typing import Any

import pytest

from foreplan.errors import InputError
from foreplan.generators import FAMILIES, generate, generate_platform

HUGE = 10**30


@pytest.mark.parametrize(
    ("family", "option", "value"),
    [
        ("random_layered", "tasks", 0),
        ("random_layered", "tasks", -1),
        ("random_layered", "tasks", HUGE),
        ("random_layered", "tasks", 2.5),
        ("random_layered", "tasks", "10"),
        ("random_layered", "tasks", True),
        ("random_layered", "alpha", 0.0),
        ("random_layered", "alpha", -1.0),
        ("random_layered", "alpha", math.nan),
        ("random_layered", "out_degree", 0),
        ("random_layered", "out_share", 1.5),
        ("random_layered", "jump", -1),
        ("random_layered", "single_ends", 1),
        ("fft", "points", 1),
        ("fft", "points", 12),
        ("fft", "points", 2**40),
        ("laplace", "size", 0),
        ("laplace", "size", HUGE),
        ("gaussian", "size", 1),
        ("gaussian", "size", HUGE),
        ("fork_join", "stages", 0),
        ("fork_join", "width", 0),
        ("out_tree", "depth", 0),
        ("out_tree", "depth", 10_000_000),
        ("in_tree", "arity", 0),
        ("in_tree", "tasks", -3),
        ("chain", "tasks", 0),
        ("independent", "tasks", 0),
        ("montage", "images", 1),
        ("blast", "parallelism", 0),
        ("blast", "parallelism", HUGE),
        ("wien2k", "parallelism", -2),
        ("wien2k", "parallelism", 1.5),
    ],
)
def test_bad_shape(family: str, option: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"^{option}: "):
        generate(family, **{option: value})


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("mean_cost", 0.0),
        ("mean_cost", -1),
        ("mean_cost", math.inf),
        ("ccr", -0.1),
        ("ccr", math.nan),
        ("ccr", 10**400),
        ("beta", 2.01),
        ("beta", -0.1),
        ("beta", "1"),
        ("spread", 3),
        ("volume_spread", -1),
        ("processors", -1),
        ("processors", HUGE),
        ("seed", -1),
        ("seed", 1.5),
    ],
)
@pytest.mark.parametrize("family", FAMILIES)
def test_bad_costs(family: str, option: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"^{option}: "):
        generate(family, **{option: value})


def test_unknown_names_get_a_hint() -> None:
    with pytest.raises(InputError, match=r"unknown family 'laplacian'.*did you mean 'laplace'"):
        generate("laplacian")
    with pytest.raises(InputError, match=r"unknown option of fft 'point'.*did you mean 'points'"):
        generate("fft", point=3)
    with pytest.raises(InputError, match=r"power of two .8 or 16"):
        generate("fft", points=9)


def test_too_much_is_refused_before_it_is_made() -> None:
    with pytest.raises(InputError, match=r"this would make .* tasks; the most is"):
        generate("fork_join", stages=1_000_000, width=1_000_000)
    with pytest.raises(InputError, match=r"this would make .* edges; the most is"):
        generate("random_layered", tasks=100_000, out_degree=50_000, jump=0)
    with pytest.raises(InputError, match=r"this would make 24,000,002 tasks; the most is"):
        generate("blast", parallelism=6_000_000)
    with pytest.raises(InputError, match=r"this would make .* costs"):
        generate("independent", tasks=1000, processors=1_000_000)


def test_a_dash_is_as_good_as_an_underscore() -> None:
    assert generate("fork-join").name == generate("fork_join").name


def test_no_edges_and_a_ccr() -> None:
    assert generate("independent", ccr=5.0).n_edges == 0
    assert generate("chain", tasks=1, ccr=5.0).n_edges == 0


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("processors", 0),
        ("processors", 1_000_000),
        ("cores", 0),
        ("speed", 0.0),
        ("heterogeneity", 2.5),
        ("bandwidth", 0.0),
        ("bandwidth_spread", -1.0),
        ("startup", -1.0),
        ("price", -1.0),
        ("price_noise", 3.0),
        ("billing", -1.0),
        ("billing", math.inf),
        ("transfer_price", -0.5),
        ("seed", -1),
    ],
)
def test_bad_platform(option: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"^{option}: "):
        generate_platform(**{option: value})
