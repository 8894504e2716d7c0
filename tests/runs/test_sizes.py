"""What tasks read, in bytes: kept up with what is measured, as if looked up of all of them."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from foreplan.history.records import History, Origin
from foreplan.runs.estimates import Estimating, Learner
from twins.situations import random_instance


@given(
    seed=st.integers(0, 200),
    steps=st.lists(
        st.tuples(st.integers(0, 1000), st.sampled_from([0.0, 1.0, 1e9]), st.booleans())
    ),
)
def test_sizes_are_those_of_all_inputs(seed: int, steps: list[tuple[int, float, bool]]) -> None:
    """Tasks end and tell the sizes of what they made, some twice; it is asked now and then."""
    workflow, _ = random_instance(np.random.default_rng(seed))
    n = workflow.n_tasks
    learner = Learner(None, lambda message: None)
    estimating = Estimating(workflow, "", Origin("", ""), [""] * n, History(), learner)
    for number, size, asks in steps:
        task = number % n
        made = workflow.out_item[workflow.out_ptr[task] : workflow.out_ptr[task + 1]].tolist()
        sizes = {str(item): size for item in made}
        estimating.recall(task, None, {"sizes": sizes, "seconds": 1.0}, "")
        if asks:
            kept = estimating.sizes()
            for other in range(n):
                reads = workflow.in_item[workflow.in_ptr[other] : workflow.in_ptr[other + 1]]
                known = [estimating.bytes.get(item, math.nan) for item in reads.tolist()]
                expected = math.fsum(known) if known else math.nan
                assert kept[other] == expected or (math.isnan(kept[other]) and math.isnan(expected))
