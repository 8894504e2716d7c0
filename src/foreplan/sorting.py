"""Sorting by a key, lowest first, equals in their order; and a heap, the least on top."""

from __future__ import annotations

import numpy as np

from foreplan.arrays import FloatArray, IntArray, LongArray
from foreplan.native import compiled

SHORT = 16  # so many are sorted by insertion


@compiled
def sort_by(key: FloatArray, listed: IntArray) -> None:
    """Sort what is listed by its key, in place: short runs by insertion, then merged."""
    n = len(listed)
    for begin in range(0, n, SHORT):
        insert(key, listed, begin, min(begin + SHORT, n))
    if n > SHORT:
        other = np.empty(n, dtype=np.int32)
        merge_runs(key, listed, other)


def insert(key: FloatArray, listed: IntArray, begin: int, end: int) -> None:
    """Sort a run by insertion."""
    for k in range(begin + 1, end):
        one = listed[k]
        its = key[one]
        at = k
        while at > begin and key[listed[at - 1]] > its:
            listed[at] = listed[at - 1]
            at -= 1
        listed[at] = one


def merge_runs(key: FloatArray, listed: IntArray, other: IntArray) -> None:
    """Merge sorted runs by twos until one is left; what is in order already is let be."""
    n, width = len(listed), SHORT
    while width < n:
        for begin in range(0, n, 2 * width):
            middle, end = min(begin + width, n), min(begin + 2 * width, n)
            if middle < end and key[listed[middle - 1]] > key[listed[middle]]:
                merge(key, listed, other, begin, middle, end)
        width *= 2


def merge(
    key: FloatArray, listed: IntArray, other: IntArray, begin: int, middle: int, end: int
) -> None:
    """Merge two runs that follow each other."""
    for k in range(begin, middle):
        other[k] = listed[k]
    left, right, to = begin, middle, begin
    while left < middle and right < end:
        if key[listed[right]] < key[other[left]]:
            listed[to] = listed[right]
            right += 1
        else:
            listed[to] = other[left]
            left += 1
        to += 1
    while left < middle:
        listed[to] = other[left]
        left += 1
        to += 1


# A heap of whole numbers in an array, the least on top."""


def push(heap: LongArray, size: int, key: int) -> int:
    """Put a key into the heap; its new size."""
    at = size
    while at > 0 and heap[(at - 1) // 2] > key:
        heap[at] = heap[(at - 1) // 2]
        at = (at - 1) // 2
    heap[at] = key
    return size + 1


def pop(heap: LongArray, size: int) -> int:
    """Take the least key out of the heap, which is then smaller by one; the key."""
    least = heap[0]
    last = size - 1
    key = heap[last]
    at, below = 0, 1
    while below < last:
        if below + 1 < last and heap[below + 1] < heap[below]:
            below += 1
        if key <= heap[below]:
            break
        heap[at] = heap[below]
        at, below = below, 2 * below + 1
    heap[at] = key
    return int(least)
