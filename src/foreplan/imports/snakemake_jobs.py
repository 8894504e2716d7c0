"""Run by Snakemake's Python: what jobs a Snakefile comes to, as JSON.

It imports nothing of foreplan, which need not be installed beside Snakemake.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path
from typing import Any

KINDS = ("shell", "script", "notebook", "wrapper", "cwl", "template_engine", "run")


def main() -> int:
    """Read what is asked from the first file, and write the jobs to the second."""
    asked = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    from snakemake.api import SnakemakeApi
    from snakemake.cli import parse_config
    from snakemake.common import __version__
    from snakemake.settings.enums import Quietness
    from snakemake.settings.types import (
        ConfigSettings,
        DAGSettings,
        OutputSettings,
        ResourceSettings,
    )

    # of ALL, errors would be part, too
    quiet = OutputSettings(quiet=set(Quietness.all()) - {Quietness.ALL}, nocolor=True)
    if hasattr(quiet, "enable_file_logging"):  # of later versions
        quiet.enable_file_logging = False
    _keep_paths_of_sources()
    with SnakemakeApi(quiet) as api, contextlib.redirect_stdout(sys.stderr):
        try:
            workflow_api = api.workflow(
                resource_settings=ResourceSettings(cores=asked["cores"]),
                config_settings=ConfigSettings(
                    config=parse_config(asked["config"]),
                    configfiles=[Path(file) for file in asked["configfiles"]],
                ),
                snakefile=Path(asked["snakefile"]) if asked["snakefile"] else None,
                workdir=Path(asked["directory"]) if asked["directory"] else None,
            )
            # in a dry run, all that is decided before a job is begun has been decided
            dag_api = workflow_api.dag(
                DAGSettings(targets=frozenset(asked["targets"]), forceall=True)
            )
            _check_directory()
            dag_api.execute_workflow(executor="dryrun")
            workflow = workflow_api._workflow
            found = {
                "version": __version__,
                "directory": os.getcwd(),
                "snakefile": str(workflow_api.snakefile),
                "shell": _shell(),
                "jobs": [_job(job, workflow) for job in workflow.dag.jobs],
            }
        except Exception as error:  # whatever the Snakefile raises: Snakemake explains it
            try:
                api.print_exception(error)
            except Exception:  # of a line that it does not know
                print(f"{type(error).__name__}: {error}", file=sys.stderr)
            return 1
    Path(sys.argv[2]).write_text(json.dumps(found), encoding="utf-8")
    return 0


_directories: set[str] = set()  # that paths of sources are relative to


def _keep_paths_of_sources() -> None:
    """Have `workflow.source_path` return a local source itself, not a copy that is soon removed."""
    from snakemake.sourcecache import LocalSourceFile, SourceCache

    copy_of = SourceCache.get_path

    def get_path(cache: Any, source: Any, *more: Any) -> str:
        copy = copy_of(cache, source, *more)  # fails if it cannot be read
        if not isinstance(source, LocalSourceFile):
            return str(copy)
        path: str = os.path.abspath(source.path)
        directory = os.getcwd()
        if not path.startswith(directory + "/"):
            return path
        _directories.add(directory)
        return os.path.relpath(path, directory)

    SourceCache.get_path = get_path  # type: ignore[method-assign, unused-ignore]


def _check_directory() -> None:
    """Refuse paths of sources that were relative to another directory than the final one."""
    if _directories - {os.getcwd()}:
        raise ValueError("workflow.source_path() is called before `workdir:`: put `workdir:` first")


def _shell() -> dict[str, Any]:
    """What commands are given to, and what is put around them."""
    from snakemake.shell import shell

    return {
        "executable": shell.get_executable(),
        "prefix": shell._process_prefix,
        "suffix": shell._process_suffix,
    }


def _job(job: Any, workflow: Any) -> dict[str, Any]:
    """What is known of a job; numbers and text only."""
    rule, environment = job.rule, job.conda_env_spec
    kind = next((kind for kind in KINDS if getattr(job, f"is_{kind}", False)), "run")
    resources = {
        name: value
        for name, value in job.resources.items()
        if not name.startswith("_") and isinstance(value, int | float)
    }
    command = job.shellcmd if kind == "shell" and not job.is_norun else None
    copies = str(workflow.sourcecache.runtime_cache_path)
    return {
        "rule": rule.name,
        "wildcards": {name: str(value) for name, value in job.wildcards_dict.items()},
        "kind": "none" if job.is_norun else kind,
        "command": command,
        "copies": any(copies in text for text in (command or "", *map(str, job.input))),
        "inputs": _unique(job.input),
        "outputs": _unique(job.output),
        "flags": {str(file): sorted(file.flags) for file in job.output if file.flags},
        "input_flags": sorted({flag for file in job.input for flag in file.flags}),
        "log": _unique(job.log),
        "benchmark": str(job.benchmark) if job.benchmark else None,
        "threads": job.threads,
        "resources": resources,
        "shell_exec": job.resources.get("shell_exec"),
        "retries": int(rule.restart_times or 0),
        "checkpoint": bool(rule.is_checkpoint),
        "conda": None if environment is None else getattr(environment, "name", "a file"),
        "conda_file": environment is not None and environment.is_file,
        "container": str(job.container_img_url) if job.container_img_url else None,
        "modules": bool(rule.env_modules),
    }


def _unique(files: Any) -> list[str]:
    return list(dict.fromkeys(str(file) for file in files))


if __name__ == "__main__":
    sys.exit(main())
