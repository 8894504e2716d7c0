"""Snakemake itself: where it is installed, a Snakefile is imported and run, and makes the same."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from foreplan.cli.import_ import app
from foreplan.errors import InputError
from foreplan.formats import load
from foreplan_benchmarks import imported

PROGRAM = shutil.which("snakemake")
needs_snakemake = pytest.mark.skipif(
    PROGRAM is None, reason="Snakemake is not on the PATH: pip install snakemake"
)


def bring(*words: str | Path) -> Result:
    """`foreplan import snakemake`; errors that a user can mend come out as they are."""
    done = CliRunner().invoke(app, ["snakemake", *map(str, words)], catch_exceptions=False)
    if done.exception is not None:
        raise done.exception
    return done


@needs_snakemake
def test_imported_and_run_it_makes_the_same(home: Path) -> None:
    assert PROGRAM is not None
    shares: list[float] = []
    taken = list(imported.measure(PROGRAM, 9, 1, shares.append))  # 57 jobs
    assert [row.tool for row in taken] == ["Snakemake"] * 2 + ["foreplan"] * 3
    assert shares[-1] == 1


SNAKEFILE = """
rule all:
    input: "b.txt"
rule first:
    output: "a.txt"
    params: word=config.get("word", "hello")
    threads: 64
    shell: "echo {params.word} {threads} > {output}"
rule second:
    input: "a.txt"
    output: "b.txt"
    run:
        shell("cp {input} {output}")
"""


@needs_snakemake
def test_through_snakemake(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert PROGRAM is not None
    Path("Snakefile").write_text(SNAKEFILE)
    words = ("--snakemake", PROGRAM, "--config", "word=bye", "--cores", "2")
    with pytest.raises(InputError, match=r"Snakefile: no shell commands: second \(run:\)"):
        bring(*words)
    assert not Path("workflow.yaml").exists()
    said = bring(*words, "--through-snakemake").output
    assert "2 tasks of 2 rules, 1 dependency" in said
    workflow = load("workflow.yaml")
    assert workflow.spec(0).run == "echo bye 2 > a.txt"
    import foreplan

    assert foreplan.run(workflow, on="local:2").status == "finished"
    assert Path("b.txt").read_text() == "bye 2\n"
    again = bring(*words, "--through-snakemake").output
    assert "1 record of Snakemake's times added" in again


@needs_snakemake
def test_sources_by_their_own_paths(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert PROGRAM is not None
    text = 'rule a:\n    input: workflow.source_path("x.sh")\n'
    text += '    output: "a"\n    shell: "{input}"\n'
    for folder in ("rules", "else"):
        Path(folder).mkdir()
    Path("rules/x.sh").touch()
    Path("rules/Snakefile").write_text(text)
    bring("rules/Snakefile", "--snakemake", PROGRAM)
    spec = load("workflow.yaml")
    assert (spec.spec(0).run, spec.item_names) == ("rules/x.sh", ("a", "rules/x.sh"))
    bring("rules/Snakefile", "--snakemake", PROGRAM, "--dir", "else")
    assert load("workflow.yaml").spec(0).run == str(tmp_path / "rules/x.sh")
    early = 'source = workflow.source_path("x.sh")\nworkdir: "else"\n'
    Path("rules/Snakefile").write_text(early + text)
    with pytest.raises(InputError, match="put `workdir:` first"):
        bring("rules/Snakefile", "--snakemake", PROGRAM)


@needs_snakemake
def test_the_directory_that_the_snakefile_says(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert PROGRAM is not None
    text = 'workdir: "work"\nrule a:\n    output: "a"\n    shell: "echo > {output}"\n'
    Path("Snakefile").write_text(text)
    assert "its directory is work" in bring("--snakemake", PROGRAM).output
    assert "name: work" in Path("workflow.yaml").read_text()
    assert "its directory" not in bring("--snakemake", PROGRAM, "--dir", ".").output


@needs_snakemake
def test_what_snakemake_refuses_is_told(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert PROGRAM is not None
    Path("wrong.smk").write_text('rule a:\n    input: "missing.txt"\n    shell: "true"\n')
    with pytest.raises(
        InputError, match=r"(?s)wrong.smk: Snakemake does not take it:.*missing.txt"
    ):
        bring("wrong.smk", "--snakemake", PROGRAM)
    Path("wrong.smk").write_text("rule a\n")
    with pytest.raises(InputError, match=r"(?s)Snakemake does not take it:.*line 1"):
        bring("wrong.smk", "--snakemake", PROGRAM)


def test_what_is_there_is_not_written_over(tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text("tasks: {a: {}}\n")
    with pytest.raises(InputError, match="it is there, and not by `foreplan import`"):
        bring("-o", mine)
    with pytest.raises(InputError, match="a workflow is written as"):
        bring("-o", tmp_path / "x.txt")
    with pytest.raises(InputError, match="there is no such file"):
        bring(tmp_path / "Snakefile", "-o", tmp_path / "new.yaml")
    with pytest.raises(InputError, match="there is no such directory"):
        bring("--dir", tmp_path / "nowhere", "-o", tmp_path / "new.yaml")


def test_without_snakemake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(
        InputError, match=r"Snakemake is not here: pip install 'foreplan\[snakemake\]'"
    ):
        bring("-o", tmp_path / "new.yaml")
