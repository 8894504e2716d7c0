"""Journals that are kept: they tell nothing of the machine that they were made on."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

from foreplan.runs.entries import Header
from foreplan.runs.journal import Contents, Journal

JOURNALS = Path(__file__).parent / "journals"


def anonymous(value: Any, names: dict[str, str]) -> Any:
    """The same content without names of machines and places."""
    if isinstance(value, dict) and set(value) == {"a", "n", "z"}:
        return value  # a packed array, in which a name can only be by chance
    if isinstance(value, dict):
        return {anonymous(k, names): anonymous(v, names) for k, v in value.items()}
    if isinstance(value, list):
        return [anonymous(inner, names) for inner in value]
    if isinstance(value, str):
        for name in sorted(names, key=len, reverse=True):
            value = value.replace(name, names[name])
    return value


def keep(name: str, contents: Contents, directory: Path) -> None:
    """Write a journal that tells nothing of this machine."""
    header = Header.from_dict(contents.header, directory)
    names = {host: f"host-{i}" for i, host in enumerate(header.platform.host_names, start=1)}
    names |= {socket.gethostname(): "here", str(directory): "data"}
    if header.options.place.startswith("dask://"):
        names[header.options.place] = "dask://scheduler:8786"
    path = JOURNALS / f"{name}.jsonl"
    path.unlink(missing_ok=True)
    content = {**contents.header, "created": "2026-01-01T00:00:00+00:00", "id": name}
    with Journal.create(path, anonymous(content, names)) as journal:
        journal.append([anonymous(entry, names) for entry in contents.entries])
    path.chmod(0o644)
