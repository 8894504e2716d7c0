"""What a task reports of its progress is known to whoever shows the run."""

from __future__ import annotations

from pathlib import Path

import weft
from runs.people import Somebody
from weft.display.view import look

WORKFLOW = {
    "tasks": {
        "half": {
            "run": 'echo 0.5 > "$WEFT_PROGRESS"; '
            'until [ -e "$WEFT_DIR/seen" ]; do sleep 0.02; done; touch out',
            "outputs": ["out"],
        }
    }
}


def test_a_command_says_how_far_it_is(tmp_path: Path) -> None:
    def see(me: Somebody) -> None:
        me.until(lambda: [work.progress for work in look(me.session).work] == [0.5])
        (tmp_path / "seen").touch()

    somebody = Somebody(see)
    outcome = weft.run(WORKFLOW, "local:1", dir=tmp_path, use_history=False, listener=somebody)
    assert outcome.ok
    assert somebody.error is None
    assert somebody.session.reported == {}  # of what runs only
