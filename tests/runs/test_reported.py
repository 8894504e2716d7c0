"""What a task reports of its progress is known to whoever shows the run."""

from __future__ import annotations

from pathlib import Path

import foreplan
from foreplan.display.view import look
from runs.people import Somebody

WORKFLOW = {
    "tasks": {
        "half": {
            "run": 'echo 0.5 > "$FOREPLAN_PROGRESS"; '
            'until [ -e "$FOREPLAN_DIR/seen" ]; do sleep 0.02; done; touch out',
            "outputs": ["out"],
        }
    }
}


def test_a_command_says_how_far_it_is(tmp_path: Path) -> None:
    def see(me: Somebody) -> None:
        me.until(lambda: [work.progress for work in look(me.session).work] == [0.5])
        (tmp_path / "seen").touch()

    somebody = Somebody(see)
    outcome = foreplan.run(WORKFLOW, "local:1", dir=tmp_path, use_history=False, listener=somebody)
    assert outcome.ok
    assert somebody.error is None
    assert somebody.session.reported == {}  # of what runs only
