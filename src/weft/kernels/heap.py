"""A heap of whole numbers in an array, the least on top."""

from __future__ import annotations

from weft.arrays import LongArray


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
