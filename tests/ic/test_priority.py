"""The priority relation: equation 2.1 itself, and the facts of section 4.1.2 that follow."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foreplan.ic import BlockProfile, has_priority
from foreplan.ic.blocks import c_profile, k_profile, m_profile, n_profile, w_profile

PAIRS = [(a, d) for a in range(1, 7) for d in range(2, 7)]


def by_the_equation(one: BlockProfile, other: BlockProfile) -> bool:
    """Equation 2.1 with E less E(0), which is the same on both sides."""
    e1, e2 = one.first.tolist(), other.first.tolist()
    s1, s2 = one.sources, other.sources
    return all(
        e1[x] + e2[y] <= e1[min(s1, x + y)] + e2[max(0, x + y - s1)]
        for x, y in product(range(s1 + 1), range(s2 + 1))
    )


gains = st.lists(st.integers(-1, 3), min_size=1, max_size=7)


@given(gains, gains)
@settings(max_examples=300, deadline=None)
def test_the_equation(one: list[int], other: list[int]) -> None:
    p, q = BlockProfile(one), BlockProfile(other)
    assert has_priority(p, q) == by_the_equation(p, q)
    assert has_priority(q, p) == by_the_equation(q, p)
    assert has_priority(p, p) == by_the_equation(p, p)


FAMILIES = [
    *(w_profile(a, d) for a, d in PAIRS),
    *(m_profile(a, d) for a, d in PAIRS),
    *(n_profile(s) for s in range(1, 8)),
    *(k_profile(s, t) for s in range(1, 6) for t in range(1, 6)),
    *(c_profile(s) for s in range(3, 7)),
]


def test_the_equation_on_all_families() -> None:
    for one, other in product(FAMILIES, FAMILIES):
        assert has_priority(one, other) == by_the_equation(one, other)


def test_patience_is_what_it_says() -> None:
    """No k sources in a row gain less than the first k, nor more than the last k."""
    for profile in FAMILIES:
        slow = BlockProfile(profile.gains)
        slow.patient = False
        k = profile.sources
        assert profile.patient
        assert slow.least(k).tolist() == profile.first.tolist()
        assert slow.most(k).tolist() == profile.last.tolist()


@given(gains, gains, gains)
@settings(max_examples=500, deadline=None)
def test_the_relation_is_transitive(one: list[int], two: list[int], three: list[int]) -> None:
    p, q, r = BlockProfile(one), BlockProfile(two), BlockProfile(three)
    if has_priority(p, q) and has_priority(q, r):
        assert has_priority(p, r)


def test_the_relation_is_transitive_on_the_families() -> None:
    prior = np.array([[has_priority(p, q) for q in FAMILIES] for p in FAMILIES])
    two_steps = (prior.astype(int) @ prior.astype(int)) > 0
    assert np.all(prior[two_steps])


@pytest.mark.parametrize(("s", "d"), PAIRS)
def test_w_dags(s: int, d: int) -> None:
    w = w_profile(s, d)
    for a, c in PAIRS:
        if c < d or (c == d and a >= s):
            assert has_priority(w, w_profile(a, c))
        assert has_priority(w, m_profile(a, c))
        assert has_priority(w, n_profile(a))
    for q in range(2, d + 1):
        assert has_priority(w, k_profile(q, q))


@pytest.mark.parametrize("s", range(1, 8))
def test_n_dags(s: int) -> None:
    for t in range(1, 8):
        assert has_priority(n_profile(s), n_profile(t))
    for a, d in PAIRS:
        assert has_priority(n_profile(s), m_profile(a, d))


@pytest.mark.parametrize(("s", "d"), PAIRS)
def test_m_dags(s: int, d: int) -> None:
    for a, c in PAIRS:
        if c > d or (c == d and a <= s):
            assert has_priority(m_profile(s, d), m_profile(a, c))
        elif c < d:
            assert not has_priority(m_profile(s, d), m_profile(a, c))


@pytest.mark.parametrize("s", range(2, 7))
def test_cliques(s: int) -> None:
    q = k_profile(s, s)
    assert has_priority(q, q)
    for a, d in PAIRS:
        if s <= d:
            assert has_priority(q, m_profile(a, d))


def test_what_has_no_priority() -> None:
    assert not has_priority(m_profile(1, 2), w_profile(1, 2))
    assert not has_priority(k_profile(3, 3), k_profile(2, 2))
    assert not has_priority(w_profile(1, 2), w_profile(1, 3))
    assert not has_priority(BlockProfile([1, -1]), BlockProfile([1, -1]))
