"""Every trace and graph of the shared folder, where it is there."""

from pathlib import Path

import numpy as np
import pytest

from foreplan.formats import FORMATS, load, load_platform, workflow_from_dict, workflow_to_dict

SHARED = Path(__file__).parents[3] / "shared"
TRACES = sorted((SHARED / "workflows").glob("*.json"))
GRAPHS = sorted((SHARED / "stg").glob("*/*.stg"))
GOLDENS = sorted((SHARED / "goldens").glob("*.yaml"))

pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason="there is no shared folder beside us")


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_traces(path: Path) -> None:
    workflow = load(path)
    assert np.isfinite(workflow.base_cost).all()
    assert workflow.base_cost.sum() > 0
    assert workflow.item_size.sum() > 0
    categories = {workflow.spec(i).category for i in range(workflow.n_tasks)}
    assert None not in categories
    assert len(categories) < workflow.n_tasks / 2  # numbering is not part of a category
    again = workflow_from_dict(workflow_to_dict(workflow))
    write = FORMATS["wfformat"].write
    assert write is not None
    for other in (again, FORMATS["wfformat"].read(write(workflow), "")):
        assert other.task_names == workflow.task_names
        assert other.item_names == workflow.item_names
        assert dict(other.specs) == dict(workflow.specs)
        for array in ("base_cost", "item_size", "item_producer", "use_ptr", "use_task"):
            assert np.array_equal(getattr(other, array), getattr(workflow, array))


def test_graphs() -> None:
    if not GRAPHS:
        pytest.skip("there are no graphs in the shared folder")
    for path in GRAPHS:
        workflow = load(path)
        assert workflow.n_tasks == int(path.parent.name) + 2, path
        assert workflow.base_cost[[0, -1]].tolist() == [0, 0], path
        write = FORMATS["stg"].write
        assert write is not None
        lines = path.read_text().splitlines()
        fields = [line.split() for line in lines if not line.startswith("#")]
        assert [line.split() for line in write(workflow).splitlines()] == fields, path


@pytest.mark.parametrize("path", GOLDENS, ids=lambda path: path.stem)
def test_goldens(path: Path) -> None:
    if ".platform" in path.name:
        assert load_platform(path).n_processors > 0
    else:
        assert load(path).n_tasks > 0
