"""Formats: files and plain documents in, workflows and platforms out, and back."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.errors import InputError, unknown_name
from weft.files import in_file, is_stdout, read_text, write_text
from weft.formats.document import read_document
from weft.formats.fields import mapping, shown
from weft.formats.json_text import dump_json, parse_json
from weft.formats.weft_platform import platform_from_dict, platform_to_dict
from weft.formats.weft_workflow import workflow_from_dict, workflow_to_dict
from weft.formats.yaml_text import dump_yaml, parse_yaml
from weft.model import Platform, Workflow

if TYPE_CHECKING:
    from weft.formats.journal import write_journal
    from weft.formats.perfetto import (
        run_trace_events,
        trace_events,
        write_run_trace,
        write_trace,
    )
    from weft.formats.wfformat import workflow_from_wfformat, workflow_to_wfformat
    from weft.formats.world import world_from_dict
    from weft.model.world import World

# What a small `weft plan` has no use for is imported when first used.
_HOMES = {
    "dump_stg": "stg",
    "dump_wfformat": "wfformat",
    "load_dagman": "dagman",
    "parse_dagman": "dagman",
    "parse_dot": "dot",
    "parse_stg": "stg",
    "parse_wfformat": "wfformat",
    "run_trace_events": "perfetto",
    "trace_events": "perfetto",
    "workflow_from_wfformat": "wfformat",
    "workflow_to_wfformat": "wfformat",
    "world_from_dict": "world",
    "write_journal": "journal",
    "write_run_trace": "perfetto",
    "write_trace": "perfetto",
}

__all__ = [
    "FORMATS",
    "Format",
    "load",
    "load_platform",
    "load_world",
    "platform_from_dict",
    "platform_to_dict",
    "read_document",
    "run_trace_events",
    "save",
    "save_platform",
    "trace_events",
    "workflow_from_dict",
    "workflow_from_wfformat",
    "workflow_to_dict",
    "workflow_to_wfformat",
    "world_from_dict",
    "write_journal",
    "write_run_trace",
    "write_trace",
]

Source = str | os.PathLike[str] | Mapping[str, object]


@dataclass(frozen=True)
class Format:
    """A format of workflows: how its text is read (with a name to fall back on) and written."""

    about: str
    suffixes: tuple[str, ...]
    read: Callable[[str, str], Workflow]
    write: Callable[[Workflow], str] | None = None
    load: Callable[[Path], Workflow] | None = None  # of a file that may name others


def _from_document(document: object) -> Workflow:
    """A workflow from the content of a weft or a WfFormat file."""
    content: Mapping[str, object] = mapping(document)  # type: ignore[assignment]
    if "workflow" in content and "tasks" not in content:
        return _later("workflow_from_wfformat")(content)  # type: ignore[no-any-return]
    return workflow_from_dict(content)


def _later(name: str) -> Callable[..., Any]:
    """A function of the name, whose module is imported when it is called."""
    return lambda *arguments: __getattr__(name)(*arguments)


def __getattr__(name: str) -> Any:
    """Import a name of another format on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


FORMATS: dict[str, Format] = {
    "yaml": Format(
        "weft's own, as YAML",
        (".yaml", ".yml"),
        lambda text, _: _from_document(parse_yaml(text)),
        lambda workflow: dump_yaml(workflow_to_dict(workflow)),
    ),
    "json": Format(
        "weft's own, as JSON",
        (".json",),
        lambda text, _: _from_document(parse_json(text)),
        lambda workflow: dump_json(workflow_to_dict(workflow)),
    ),
    "wfformat": Format(
        "WfCommons traces, WfFormat 1.5 (.json, told by content when read)",
        (),
        _later("parse_wfformat"),
        _later("dump_wfformat"),
    ),
    "stg": Format(
        "the Standard Task Graph set", (".stg",), _later("parse_stg"), _later("dump_stg")
    ),
    "dagman": Format(
        "HTCondor's DAGMan (read only)",
        (".dag",),
        _later("parse_dagman"),
        load=_later("load_dagman"),
    ),
    "dot": Format("DOT as daggen writes it (read only)", (".dot", ".gv"), _later("parse_dot")),
}


def load(source: Source, format: str | None = None) -> Workflow:
    """A workflow from a file, its format told by its suffix, or from a plain document."""
    if isinstance(source, Mapping):
        return _from_document(source)
    path = _path(source)
    with in_file(path):
        chosen = _chosen(path, format)
        if chosen.load is not None:
            return chosen.load(path)
        return chosen.read(read_text(path), path.stem)


def load_platform(source: Source) -> Platform:
    """A platform from a YAML or JSON file, or from a plain document."""
    if isinstance(source, Mapping):
        return platform_from_dict(source)
    path = _path(source)
    with in_file(path):
        _check_suffix(path, "platform")
        document = mapping(read_document(path))
        return platform_from_dict(document)  # type: ignore[arg-type]


def load_world(source: Source) -> World:
    """A simulated world from a YAML or JSON file, or from a plain document."""
    if isinstance(source, Mapping):
        return _later("world_from_dict")(source)  # type: ignore[no-any-return]
    path = _path(source)
    with in_file(path):
        _check_suffix(path, "world")
        document = mapping(read_document(path))
        return _later("world_from_dict")(document)  # type: ignore[no-any-return]


def save(workflow: Workflow, path: str | os.PathLike[str], format: str | None = None) -> None:
    """Write a workflow, whole or not at all; the format is told by the suffix if not given.

    `-` is standard output, as YAML if no format is given.
    """
    target = _path(path)
    with in_file(target):
        format = format or ("yaml" if is_stdout(target) else None)
        write = _chosen(target, format).write
        if write is None:
            raise InputError(f"weft reads {target.suffix or format} files, but writes none")
        write_text(target, write(workflow))


def save_platform(platform: Platform, path: str | os.PathLike[str]) -> None:
    """Write a platform as YAML or JSON, whole or not at all; `-` is standard output, as YAML."""
    target = _path(path)
    with in_file(target):
        if not is_stdout(target):
            _check_suffix(target, "platform")
        dump = dump_json if target.suffix.lower() == ".json" else dump_yaml
        write_text(target, dump(platform_to_dict(platform)))


def _path(source: object) -> Path:
    if isinstance(source, str | os.PathLike):
        return Path(source)
    raise InputError(f"expected a path or a mapping, not {shown(source)}")


def _chosen(path: Path, name: str | None) -> Format:
    if name is not None:
        if name not in FORMATS:
            raise InputError(unknown_name("format", name, FORMATS))
        return FORMATS[name]
    suffixes = {suffix: f for f in FORMATS.values() for suffix in f.suffixes}
    if path.suffix.lower() not in suffixes:
        raise InputError(unknown_name("suffix", path.suffix, suffixes))
    return suffixes[path.suffix.lower()]


def _check_suffix(path: Path, kind: str) -> None:
    if path.suffix.lower() not in (".yaml", ".yml", ".json"):
        raise InputError(f"a {kind} is a .yaml, .yml or .json file")
