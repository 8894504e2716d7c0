"""Profiles of building blocks, and the priority relation between them (equation 2.1)."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from weft.arrays import IntArray, frozen, sealed


class Profile:
    """E(0), ..., E(s) of a block whose sources are executed in one order, less E(0).

    `gains` is by how much each source changes the number of ELIGIBLE vertices: the sinks that it
    completes, less the source itself.
    """

    def __init__(self, gains: npt.ArrayLike, *, patient: bool = False) -> None:
        self.gains: IntArray = frozen(gains, np.int32)
        # patient: no k sources in a row gain less than the first k, nor more than the last k
        self.patient = patient or bool(np.all(np.diff(self.gains) >= 0))
        self._least: list[int] = [0]
        self._most: list[int] = [0]

    @property
    def sources(self) -> int:
        """The number of sources."""
        return len(self.gains)

    @cached_property
    def first(self) -> IntArray:
        """What the first k sources gain, for k = 0 .. s."""
        return sealed(np.concatenate([[0], np.cumsum(self.gains)]).astype(np.int32))

    @cached_property
    def last(self) -> IntArray:
        """What the last k sources gain, for k = 0 .. s."""
        return sealed(np.concatenate([[0], np.cumsum(self.gains[::-1])]).astype(np.int32))

    def least(self, k: int) -> IntArray:
        """The least that 0, 1, ..., k sources in a row gain."""
        if self.patient:
            return self.first[: k + 1]
        self._fill(k)
        return np.array(self._least[: k + 1], dtype=np.int32)

    def most(self, k: int) -> IntArray:
        """The most that 0, 1, ..., k sources in a row gain."""
        if self.patient:
            return self.last[: k + 1]
        self._fill(k)
        return np.array(self._most[: k + 1], dtype=np.int32)

    def _fill(self, k: int) -> None:
        for width in range(len(self._least), k + 1):
            in_a_row = self.first[width:] - self.first[:-width]
            self._least.append(int(in_a_row.min()))
            self._most.append(int(in_a_row.max()))


def has_priority(one: Profile, other: Profile) -> bool:
    """Whether (2.1) holds: to execute a source of the one whenever possible never costs anything.

    With x + y <= s1 it says that y sources in a row of the one gain no less than the first y of
    the other; with x + y > s1, that the last s1 - x of the one gain no less than as many sources
    in a row of the other.
    """
    k = min(one.sources, other.sources)
    return bool(
        np.all(other.first[: k + 1] <= one.least(k)) and np.all(other.most(k) <= one.last[: k + 1])
    )


def w_profile(a: int, d: int) -> Profile:
    """W(a,d): every source completes d - 1 sinks, the last one d."""
    gains = np.full(a, d - 2)
    gains[-1] += 1
    return Profile(gains)


def m_profile(a: int, d: int) -> Profile:
    """M(a,d): the d-th source completes a sink, and then every (d-1)-th."""
    gains = np.full(a * (d - 1) + 1, -1)
    gains[d - 1 :: max(1, d - 1)] = 0
    return Profile(gains, patient=True)


def n_profile(s: int) -> Profile:
    """N(s): every source completes a sink."""
    return Profile(np.zeros(s))


def k_profile(sources: int, sinks: int) -> Profile:
    """All sources to all sinks, Q(s) where there are as many: the last source completes all."""
    gains = np.full(sources, -1)
    gains[-1] += sinks
    return Profile(gains)


def c_profile(s: int) -> Profile:
    """A cycle of s sources and s sinks: the second source completes a sink, the last one two."""
    gains = np.zeros(s)
    gains[0], gains[-1] = -1, 1
    return Profile(gains)
