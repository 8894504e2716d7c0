"""The workflow of examples/words with Python functions instead of commands.

Run it: python examples/words_flow.py [where], where `where` is local (the default), local:4 or
dask://host:port.
"""

from __future__ import annotations

import sys

import cloudpickle
from words import words

import foreplan
from foreplan.flow import Task


def count_part(parts: list[str], number: int) -> words.Counts:
    """The counts of one part of a book."""
    return words.count_words(parts[number])


def words_flow() -> tuple[foreplan.Flow, Task, Task]:
    """The flow, and its two products: the summary and the chart."""
    flow = foreplan.Flow("words")
    counts = {}
    for book in words.BOOKS:
        text = flow.task(words.write_book, book, name=f"write-{book}")
        parts = flow.task(words.split_book, text, words.PARTS, name=f"split-{book}")
        counted = [
            flow.task(count_part, parts, i, name=f"count-{book}-{i + 1}")
            for i in range(words.PARTS)
        ]
        counts[book] = flow.task(words.merge_counts, *counted, name=f"merge-{book}")
    level = list(counts.values())
    while len(level) > 1:  # in pairs, as a tree
        pairs = [level[i : i + 2] for i in range(0, len(level), 2)]
        level = [flow.task(words.merge_counts, *pair) for pair in pairs]
    scores = {
        book: flow.task(words.distinctive, own, *(c for b, c in counts.items() if b != book))
        for book, own in counts.items()
    }
    return flow, flow.task(words.summary, level[0], scores), flow.task(words.chart, scores)


def main(where: str = "local") -> None:
    """Run the flow and print its summary."""
    # the functions travel with the run, so that workers elsewhere need no copy of the module
    cloudpickle.register_pickle_by_value(words)
    flow, summary, _ = words_flow()
    run = foreplan.run(flow, on=where)
    print(run.result(summary))


if __name__ == "__main__":
    main(*sys.argv[1:])
