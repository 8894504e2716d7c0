"""Formats: files and plain documents in, workflows and platforms out, and back."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from foreplan.errors import InputError, unknown_name
from foreplan.files import in_file, is_stdin, is_stdout, label, read_text, write_text
from foreplan.formats.fields import mapping, shown
from foreplan.formats.foreplan_platform import platform_from_dict, platform_to_dict
from foreplan.formats.foreplan_workflow import workflow_from_dict, workflow_to_dict
from foreplan.formats.origins import NOWHERE, SourceText
from foreplan.formats.texts import (
    dump_json,
    dump_yaml,
    parse_document,
    parse_json,
    parse_yaml,
    read_document,
)
from foreplan.garbage import no_collection
from foreplan.lazy import lazily
from foreplan.model import Platform, Workflow

if TYPE_CHECKING:
    from foreplan.formats.traces import (
        run_trace_events,
        trace_events,
        write_journal,
        write_run_trace,
        write_trace,
    )
    from foreplan.formats.wfformat import workflow_from_wfformat, workflow_to_wfformat
    from foreplan.formats.world import world_from_dict
    from foreplan.model.world import WorldFile

# What a small `foreplan plan` has no use for is imported when first used.
__getattr__ = lazily(
    __name__,
    dagman="load_dagman parse_dagman",
    dot="parse_dot",
    stg="dump_stg parse_stg",
    traces="run_trace_events trace_events write_journal write_run_trace write_trace",
    wfformat="dump_wfformat parse_wfformat platform_from_wfformat workflow_from_wfformat "
    "workflow_to_wfformat",
    world="world_from_dict",
)

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

Loaded = TypeVar("Loaded")
Source = str | os.PathLike[str] | Mapping[str, object]


@dataclass(frozen=True)
class Format:
    """A format of workflows: how its text is read (with a name to fall back on) and written."""

    about: str
    suffixes: tuple[str, ...]
    read: Callable[[str, str], Workflow]
    write: Callable[[Workflow], str] | None = None
    load: Callable[[Path], Workflow] | None = None  # of a file that may name others


def _from_document(
    document: object, params: Mapping[str, object], directory: Path, origin: SourceText = NOWHERE
) -> Workflow:
    """A workflow from the content of a foreplan or a WfFormat file."""
    content: Mapping[str, object] = mapping(document)  # type: ignore[assignment]
    if "workflow" in content and "tasks" not in content and "include" not in content:
        _refuse_params(params)
        return _later("workflow_from_wfformat")(content)  # type: ignore[no-any-return]
    return workflow_from_dict(content, params, directory, origin)


def _refuse_params(params: Mapping[str, object]) -> None:
    """Files of other formats than foreplan's own have no parameters."""
    for called in params:
        raise InputError(
            f"there is no parameter {called!r}: only foreplan's own files have parameters"
        )


def _platform_from_document(content: Mapping[str, object]) -> Platform:
    """A platform from the content of a foreplan file, or the machines of a WfFormat one."""
    if "workflow" in content and "processors" not in content and "hosts" not in content:
        return _later("platform_from_wfformat")(content)  # type: ignore[no-any-return]
    return platform_from_dict(content)


def _later(name: str) -> Callable[..., Any]:
    """A function of the name, whose module is imported when it is called."""
    return lambda *arguments: __getattr__(name)(*arguments)


FORMATS: dict[str, Format] = {
    "yaml": Format(
        "foreplan's own, as YAML",
        (".yaml", ".yml"),
        lambda text, _: _from_document(parse_yaml(text), {}, Path()),
        lambda workflow: dump_yaml(workflow_to_dict(workflow)),
    ),
    "json": Format(
        "foreplan's own, as JSON",
        (".json",),
        lambda text, _: _from_document(parse_json(text), {}, Path()),
        lambda workflow: dump_json(workflow_to_dict(workflow)),
    ),
    "wfformat": Format(
        "WfCommons traces, WfFormat 1.5 and 1.6 (.json, told by content when read)",
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
    "dot": Format("DOT, sizes as in daggen's (read only)", (".dot", ".gv"), _later("parse_dot")),
}


def load(
    source: Source,
    format: str | None = None,
    *,
    resources: bool = True,
    params: Mapping[str, object] | None = None,
    directory: str | os.PathLike[str] = "",
) -> Workflow:
    """A workflow from a file, its format told by its suffix, or from a plain document.

    `-` is standard input: YAML or JSON, if no format is given. Without resources, every task takes
    one core and nothing else, whatever the file says. Parameters have these values; patterns and
    tables that loops go over are found from the directory.
    """
    with no_collection():
        workflow = _load_workflow(source, format, params or {}, Path(directory))
    return workflow if resources else workflow.without_requests()


def _load_workflow(
    source: Source, format: str | None, params: Mapping[str, object], directory: Path
) -> Workflow:
    if isinstance(source, Mapping):
        return _from_document(source, params, directory)
    path = _path(source)
    with in_file(label(path)):
        chosen = _chosen(path, format or ("yaml" if is_stdin(path) else None))
        own = {FORMATS["yaml"].read: parse_yaml, FORMATS["json"].read: parse_json}
        if chosen.read not in own:
            _refuse_params(params)
            return chosen.load(path) if chosen.load else chosen.read(read_text(path), path.stem)
        text = read_text(path)
        origin = SourceText(label(path), text, path.parent)
        return _from_document(own[chosen.read](text), params, directory, origin)


def load_platform(source: Source) -> Platform:
    """A platform from a YAML or JSON file, or from a plain document.

    That of a WfFormat trace has its machines.
    """
    return _load(source, "platform", _platform_from_document)


def load_world(source: Source) -> WorldFile:
    """A simulated world from a YAML or JSON file, or from a plain document."""
    build: Callable[..., WorldFile] = _later("world_from_dict")
    return _load(source, "world", build)


def _load(source: Source, kind: str, build: Callable[..., Loaded]) -> Loaded:
    if isinstance(source, Mapping):
        return build(source)
    path = _path(source)
    with in_file(path):
        _check_suffix(path, kind)
        text = read_text(path)
        document = mapping(parse_document(text, path))
        try:
            return build(document)
        except InputError as error:
            raise SourceText(label(path), text).located(error) from None


def save(workflow: Workflow, path: str | os.PathLike[str], format: str | None = None) -> None:
    """Write a workflow, whole or not at all; the format is told by the suffix if not given.

    `-` is standard output, as YAML if no format is given.
    """
    target = _path(path)
    with in_file(target):
        format = format or ("yaml" if is_stdout(target) else None)
        write = _chosen(target, format).write
        if write is None:
            raise InputError(f"foreplan reads {target.suffix or format} files, but writes none")
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
    suffix = _suffix(path)
    suffixes = _by_suffix()
    if suffix not in suffixes:
        raise InputError(unknown_name("suffix", suffix, suffixes))
    return suffixes[suffix]


def is_workflow_name(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is called like a workflow: by its suffix, or `-` for stdin."""
    return is_stdin(path) or _suffix(Path(path)) in _by_suffix()


def _by_suffix() -> dict[str, Format]:
    return {suffix: f for f in FORMATS.values() for suffix in f.suffixes}


def _suffix(path: Path) -> str:
    # a rescue file of DAGMan is called x.dag.rescue001
    return Path(re.sub(r"(?<=\.dag)\.rescue[0-9]{3}$", "", path.name)).suffix.lower()


def _check_suffix(path: Path, kind: str) -> None:
    if path.suffix.lower() not in (".yaml", ".yml", ".json"):
        raise InputError(f"a {kind} is a .yaml, .yml or .json file")
