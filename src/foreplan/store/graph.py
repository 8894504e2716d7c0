"""The workflow as the survey needs it: by task, what it reads and makes, and what is wanted."""

from __future__ import annotations

from collections.abc import Collection

from foreplan.errors import InputError, unknown_name
from foreplan.model.filenames import inner_files, is_many
from foreplan.model.workflow import Workflow


class WorkflowGraph:
    """The workflow as lists by task: files that it reads and makes, tasks before and behind it."""

    def __init__(self, workflow: Workflow, targets: Collection[str] = ()) -> None:
        n, names = workflow.n_tasks, workflow.item_names or (None,) * workflow.n_items
        self.maker: dict[str, int] = {}
        self.read: list[list[str]] = [[] for _ in range(n)]
        self.made: list[list[str]] = [[] for _ in range(n)]
        self.behind: list[dict[int, None]] = [{} for _ in range(n)]  # the tasks that read of each
        before: list[dict[int, None]] = [{} for _ in range(n)]
        after: list[dict[int, None]] = [{} for _ in range(n)]
        ends, uses = workflow.use_ptr.tolist(), workflow.use_task.tolist()
        self.unread: set[str] = set()
        for item, producer in enumerate(workflow.item_producer.tolist()):
            name, readers = names[item], uses[ends[item] : ends[item + 1]]
            if name is not None and producer >= 0:
                self.maker[name] = producer
                self.made[producer].append(name)
                if not readers:
                    self.unread.add(name)
            for task in readers:
                if name is not None:
                    self.read[task].append(name)
                if producer >= 0:
                    before[task][producer] = None
                    self.behind[producer][task] = None
                    if name is None:
                        after[task][producer] = None
        self.before = [list(tasks) for tasks in before]
        self.has_many = any(is_many(name) for name in names if name)  # directories, patterns
        # what is read of directories and patterns: made with the whole, but not on its own
        self.inner = inner_files(workflow) if self.has_many else {}
        self.within: dict[int, list[str]] = {}
        for name, whole in self.inner.items():
            self.maker[name] = self.maker[whole]
            self.within.setdefault(self.maker[whole], []).append(name)
        for task, read in enumerate(self.read) if self.inner else ():
            for name in filter(self.inner.__contains__, read):
                after[task].pop(self.maker[name], None)  # it counts by the content of the file
        self.after = [list(tasks) for tasks in after]  # those that come before by nameless items
        self._choose(workflow, targets)

    def _choose(self, workflow: Workflow, targets: Collection[str]) -> None:
        """What is wanted, and which files are."""
        index = {name: task for task, name in enumerate(workflow.task_names)}
        self.wanted = [not targets] * workflow.n_tasks
        if not targets:
            self.asked_for = self.unread
            self.products = {t for t, behind in enumerate(self.behind) if not behind}
            return
        self.asked_for, self.products = set[str](), set[int]()
        for target in targets:
            task = index.get(target)
            if task is None:
                if target not in self.maker:
                    raise InputError(unknown_name("target", target, [*index, *self.maker]))
                task = self.maker[target]
                self.asked_for.add(self.inner.get(target, target))
            else:
                self.asked_for.update(self.made[task])
            self.products.add(task)
        todo = [*self.products]
        while todo:
            task = todo.pop()
            if not self.wanted[task]:
                self.wanted[task] = True
                todo += self.before[task]
                todo += [self.maker[name] for name in self.read[task] if name in self.inner]
