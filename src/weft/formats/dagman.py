"""The language of HTCondor's DAGMan: jobs, what each waits for, and files within files.

A job becomes a task, called as in DAGMan (`SPLICE+JOB` inside a splice), and a dependency an edge
without data. What a task costs is not said. RETRY gives its retries, and its category is that of
CATEGORY, else the name of its submit file; a SUBDAG EXTERNAL is one task. A FINAL job is a task
that waits for all others. A PROVISIONER and a SERVICE run beside the others, and a job that is
DONE does not run at all: none is a task, and nobody waits for them.

Scripts, macros and what DAGMan is to write are checked and left out.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from weft.errors import InputError
from weft.files import in_file
from weft.formats.dagman_dag import Dag
from weft.formats.dagman_files import Files, text_source
from weft.formats.dagman_read import Reader
from weft.model import TaskSpec, Workflow


def read_dag(path: str | os.PathLike[str]) -> Dag:
    """All that a DAGMan file and the files that it names say."""
    file = Path(path)
    with in_file(file), _no_collection():
        files = Files(file)
        return Reader(files).read(files.open(file))


@contextmanager
def _no_collection() -> Iterator[None]:
    """No search for garbage in between: a million small objects are made, and all are kept."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def load_dagman(path: str | os.PathLike[str]) -> Workflow:
    """A workflow from a DAGMan file and the files that it names."""
    with in_file(path):
        return dag_workflow(read_dag(path), Path(path).stem)


def parse_dagman(text: str, name: str = "") -> Workflow:
    """A workflow from the text of a DAGMan file that names no other."""
    return dag_workflow(Reader(None).read(text_source(text)), name)


def dag_workflow(dag: Dag, name: str = "", *, final: bool = True) -> Workflow:
    """The jobs that are still to run as a workflow, with or without the FINAL one."""
    tasks = dag.waiting()
    last = [i for i, node in enumerate(dag.nodes) if node.kind == "FINAL" and final]
    if not tasks and not last:
        raise InputError("every job is done already" if dag.done else "the file has no jobs")
    index = np.full(len(dag.nodes), -1, np.int32)
    index[tasks + last] = np.arange(len(tasks + last), dtype=np.int32)
    parents, children = index[dag.parents], index[dag.children]
    both = (parents >= 0) & (children >= 0)
    parents, children = parents[both], children[both]
    for task in index[last].tolist():
        ends = np.setdiff1d(index[tasks], parents).astype(np.int32)
        parents = np.concatenate([parents, ends])
        children = np.concatenate([children, np.full(len(ends), task, np.int32)])
    return Workflow.from_edges(
        name,
        [dag.nodes[i].name for i in tasks + last],
        parents,
        children,
        np.zeros(len(parents)),
        specs={task: _spec(dag, node) for task, node in enumerate(tasks + last)},
    )


def _spec(dag: Dag, node: int) -> TaskSpec:
    # a category with a + is shared by all splices; here all are
    category = dag.categories.get(node, "").lstrip("+") or dag.nodes[node].submit
    return TaskSpec(category=category or None, retries=dag.retries.get(node))
