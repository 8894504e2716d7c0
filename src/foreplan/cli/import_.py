"""`foreplan import`: workflows of other tools, written as foreplan files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from foreplan.errors import InputError, unknown_name
from foreplan.quantities import many

if TYPE_CHECKING:
    from foreplan.imports.snakefile import Imported

app = typer.Typer(
    help="Take over workflows of other tools: written as foreplan files, and run by foreplan.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)
FIRST = "# By `foreplan import snakemake`"


@app.callback()
def _several() -> None: ...


@app.command()
def snakemake(
    snakefile: Annotated[
        Path | None,
        typer.Argument(metavar="[SNAKEFILE]", help="The Snakefile. Default: as Snakemake looks."),
    ] = None,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="The foreplan file to write; - is standard output."),
    ] = Path("workflow.yaml"),
    directory: Annotated[
        Path | None,
        typer.Option(
            "--dir",
            help="The working directory, Snakemake's `--directory`.",
            show_default="the current one, or the Snakefile's workdir",
        ),
    ] = None,
    target: Annotated[
        list[str] | None, typer.Option(help="A rule or a file to make; repeatable.")
    ] = None,
    config: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="As Snakemake's `--config`; repeatable."),
    ] = None,
    configfile: Annotated[
        list[Path] | None, typer.Option(help="As Snakemake's `--configfile`; repeatable.")
    ] = None,
    cores: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="The most threads that a job may have.",
            show_default="those of this machine",
        ),
    ] = None,
    through_snakemake: Annotated[
        bool,
        typer.Option(
            "--through-snakemake",
            help="Jobs of rules with `run:`, `script:`, `notebook:` or `wrapper:` are run by "
            "Snakemake, one at a time; else they are refused.",
        ),
    ] = False,
    sdm: Annotated[
        list[str] | None,
        typer.Option(
            metavar="apptainer|conda",
            help="Run commands in the containers, or in the conda environments, that their rules "
            "name, as Snakemake does with `--sdm`; repeatable.",
        ),
    ] = None,
    program: Annotated[
        str | None,
        typer.Option(
            "--snakemake", metavar="PROGRAM", help="Snakemake's program, if it is elsewhere."
        ),
    ] = None,
    no_history: Annotated[
        bool,
        typer.Option("--no-history", help="Leave the times that Snakemake has measured alone."),
    ] = False,
) -> None:
    """Write the jobs of a Snakefile as a foreplan workflow, to be run without Snakemake.

    Snakemake reads the Snakefile, so wildcards, input functions, params, config and threads are
    filled in as it would run them: commands, inputs, outputs, logs, threads, memory, retries. What
    foreplan has nothing for is told, or refused. The times in `.snakemake` and in benchmark files
    go into the history. Checkpoints are refused by name; the manual shows how to write them.

    Example: `foreplan import snakemake Snakefile -o mapping.yaml && foreplan run mapping.yaml`
    """
    from foreplan.files import in_file, is_stdout, near, output_label, printable, write_text
    from foreplan.formats.placeholders import escape_document
    from foreplan.formats.texts import dump_yaml
    from foreplan.imports.snakefile import (
        SOFTWARE,
        SnakefileQuery,
        import_snakefile,
        snakemake_python,
    )
    from foreplan.workers import cores as usable_cores

    _check_output(output)
    for way in sdm or ():
        if way not in SOFTWARE:
            raise InputError(unknown_name("way", way, SOFTWARE), place="--sdm")
    if snakefile is not None and not snakefile.is_file():
        raise InputError("there is no such file", source=printable(snakefile))
    if directory is not None and not directory.is_dir():
        raise InputError("there is no such directory", source=printable(directory), place="--dir")
    asked = SnakefileQuery(
        snakefile,
        directory,
        cores or usable_cores(),
        tuple(target or ()),
        tuple(config or ()),
        tuple(configfile or ()),
        through_snakemake,
        frozenset(sdm or ()),
    )
    source, python = printable(snakefile or "Snakefile"), snakemake_python(program)
    with in_file(source):
        found = import_snakefile(asked, python)
    for note in found.notes:
        typer.echo(f"foreplan: {source}: {note}", err=True)
    head = f"{FIRST} from {source}; import again rather than edit.\n"
    write_text(output, head + dump_yaml(escape_document(found.content)))
    tasks = found.content["tasks"]
    rules = {task["category"] for task in tasks.values()}
    said = f"{many(len(tasks), 'task')} of {many(len(rules), 'rule')}"
    text = (
        f"wrote {output_label(output)}: {said}, {many(found.n_edges, 'dependency', 'dependencies')}"
    )
    typer.echo(f"{text} (Snakemake {found.version})", err=is_stdout(output))
    if found.directory != Path.cwd():
        typer.echo(
            f"its directory is {near(found.directory)}: say --dir to `foreplan run`", err=True
        )
    if not no_history:
        _learn(found, is_stdout(output))


def _check_output(path: Path) -> None:
    """Refuse to write over what was not written here."""
    from foreplan.files import is_stdout, printable

    if is_stdout(path):
        return
    if path.suffix.lower() not in (".yaml", ".yml"):
        raise InputError("a workflow is written as .yaml or .yml", source=printable(path))
    if path.is_file() and not path.read_text(errors="replace").startswith(FIRST):
        problem = "it is there, and not by `foreplan import`: say another name with -o"
        raise InputError(problem, source=printable(path))


def _learn(found: Imported, quietly: bool) -> None:
    """Keep what Snakemake has measured of these jobs."""
    from foreplan.history.repository import Repository
    from foreplan.imports.snakefile import benchmark_files
    from foreplan.imports.times import ImportedTimes, ImportOptions, origin_of, read_times

    origin = origin_of(found.directory, found.directory, found.content["name"])
    told: list[ImportedTimes] = []
    measured = set()
    for file, rule in benchmark_files(found):
        told.append(read_times(file, ImportOptions(origin, category=rule)))
        measured.add(rule)
    if (found.directory / ".snakemake" / "metadata").is_dir():
        times = read_times(found.directory / ".snakemake", ImportOptions(origin))
        # of what has a benchmark file, more is known already
        told.append(ImportedTimes([r for r in times.records if r.category not in measured], {}))
    records = [record for part in told for record in part.records]
    if not records:
        return
    with Repository() as repository:
        new = repository.add_new(records)
    said = f"history: {many(new, 'record')} of Snakemake's times added"
    there = f", {len(records) - new:,} there already" if new < len(records) else ""
    typer.echo(said + there, err=quietly)
