"""A page in a real browser, where there is one."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import pytest

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--window-size=1200,700",
    "--virtual-time-budget=3000",
    "--dump-dom",
)

BEFORE = """<script>
window.problems = [];
addEventListener("error", (event) => problems.push(String(event.message)));
addEventListener("securitypolicyviolation", (event) => problems.push(event.violatedDirective));
console.error = (...words) => problems.push(words.join(" "));
</script>"""

NEEDED = pytest.mark.skipif(not BROWSER, reason="no chromium here")


def looked_at(path: Path, after: str, wanted: str = "") -> Any:
    """What a script at the end of a page reports."""
    text = path.read_text(encoding="utf-8").replace("<head>", "<head>" + BEFORE, 1)
    text = text.replace("<body", f'<body data-wanted="{wanted}"', 1)
    path.write_text(text.replace("</body>", after + "</body>"), encoding="utf-8")
    command = [BROWSER, *FLAGS, f"--user-data-dir={path.parent / 'profile'}", path.as_uri()]
    done = subprocess.run(command, capture_output=True, timeout=60, check=True)
    found = re.search(r'<pre id="report">(.*?)</pre>', done.stdout.decode(), re.DOTALL)
    assert found, done.stderr.decode()[-2000:]
    return json.loads(unescape(found[1]))
