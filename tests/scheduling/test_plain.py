"""The sources run uncompiled, too, and give the same to the bit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from foreplan import native
from scheduling.same import everything

TESTS = Path(__file__).parents[1]


@pytest.mark.skipif(native.extension() is None, reason="there is no C compiler here")
def test_plain_and_compiled_give_the_same() -> None:
    environment = {**os.environ, native.ASKED_FOR_PLAIN: "1"}
    command = [sys.executable, "-m", "scheduling.same", "2"]
    told = subprocess.run(
        command, env=environment, cwd=TESTS, capture_output=True, text=True, check=True
    )
    assert not told.stderr
    assert json.loads(told.stdout) == everything(2)
