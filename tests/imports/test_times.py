"""What other tools have measured: read, kept once, and wrong files named by their line."""

from __future__ import annotations

import base64
import json
import math
import os
import socket
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from foreplan.cli.history import app
from foreplan.errors import InputError
from foreplan.history.records import TaskRecord
from foreplan.history.repository import Repository

HEADER = "task_id\thash\tname\tstatus\tsubmit\tduration\trealtime\t%cpu\tpeak_rss\trchar\twchar"
DONE = "1\tab/1\tMAP:ALIGN (s1)\tCOMPLETED\t2026-11-01 10:00:00.000\t1m 5s\t1m 3s\t50.0%\t1.5 GB"
TRACE = f"""{HEADER}
{DONE}\t10 KB\t0
2\tab/2\tMAP:ALIGN (s2)\tCACHED\t2026-11-01 10:00:00.000\t1m\t1m\t50.0%\t1 GB\t10 KB\t0
3\tab/3\tSORT\tFAILED\t2026-11-01 10:00:00.000\t5s\t-\t-\t-\t-\t-
4\tab/4\tSORT\tCOMPLETED\t2026-11-01 10:00:00.000\t120ms\t100ms\t-\t-\t-\t-
"""
BENCHMARK = (
    "s\th:m:s\tmax_rss\tmax_vms\tmax_uss\tmax_pss\tio_in\tio_out\tmean_load\tcpu_time\n"
    "12.50\t0:00:12\t100.00\t1\t1\t1\t1\t1\t80.0\t10.00\n"
    "0.10\t0:00:00\tNA\tNA\tNA\tNA\tNA\tNA\tNA\tNA\n"
)


def imported(*arguments: str | Path) -> str:
    """What `foreplan history import` prints; errors that a user can mend come out as they are."""
    words = ["import", *map(str, arguments)]
    done = CliRunner().invoke(app, words, catch_exceptions=False, env={"COLUMNS": "200"})
    if done.exception is not None:
        raise done.exception
    return done.output


def kept() -> list[TaskRecord]:
    """What the history has."""
    with Repository() as repository:
        return repository.tasks()


def written(path: Path, text: str) -> Path:
    """The file with this text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_trace_of_nextflow(home: Path, tmp_path: Path) -> None:
    trace = written(tmp_path / "trace.txt", TRACE)
    said = imported(trace, "--dir", tmp_path, "--workflow", "w")
    assert said == f"{trace}: 2 records added, 1 cached left out, 1 failed left out\n"
    align, sort = kept()
    assert (align.category, align.machine, align.workflow) == ("MAP:ALIGN", "elsewhere", "w")
    assert align.directory == str(tmp_path.resolve())
    assert (align.seconds, align.memory, align.cpu) == (63, 1.5 * 2**30, 31.5)
    assert (align.read, align.written) == (10 * 1024, 0)
    assert sort.seconds == pytest.approx(0.1)
    assert math.isnan(sort.memory)
    assert align.at - sort.at == pytest.approx(65 - 0.12)


def test_a_raw_trace_of_nextflow(home: Path, tmp_path: Path) -> None:
    text = (
        "process\tstatus\tcomplete\trealtime\t%cpu\tpeak_rss\thostname\n"
        "ALIGN\tCOMPLETED\t1700000063000\t63000\t150\t1048576\tnode7\n"
    )
    imported(written(tmp_path / "trace.txt", text), "--category", "map")
    (record,) = kept()
    assert (record.category, record.machine, record.at) == ("map", "node7", 1_700_000_063)
    assert (record.seconds, record.memory, record.cpu) == (63, 2**20, 94.5)


def test_what_is_there_is_not_added_again(home: Path, tmp_path: Path) -> None:
    trace = written(tmp_path / "trace.txt", TRACE)
    imported(trace)
    assert "0 records added, 2 there already" in imported(trace)
    # it has grown by two tasks that took alike, and was copied
    more = TRACE + 2 * (DONE.replace("(s1)", "(s3)") + "\t10 KB\t0\n")
    again = written(tmp_path / "copy.txt", more)
    assert "2 records added, 2 there already" in imported(again)
    assert "0 records added, 4 there already" in imported(again, again)
    assert len(kept()) == 4


def test_benchmark_files_of_snakemake(home: Path, tmp_path: Path) -> None:
    file = written(tmp_path / "align.tsv", BENCHMARK)
    with pytest.raises(InputError, match="does not say of which rule it is: say --category"):
        imported(file)
    assert "2 records added" in imported(file, "--category", "align")
    assert "0 records added" in imported(file, "--category", "align")
    first, second = kept()
    assert (first.seconds, first.memory, first.cpu) == (12.5, 100 * 2**20, 10)
    assert first.machine == socket.gethostname()
    assert second.seconds == 0.1
    assert math.isnan(second.memory)


def test_an_extended_benchmark_names_its_rule(home: Path, tmp_path: Path) -> None:
    text = (
        "s\th:m:s\tmax_rss\trule_name\tinput_size_mb\n2.0\t0:00:02\t-\tsort\t{'a': 0.5, 'b': 1}\n"
    )
    imported(written(tmp_path / "b.tsv", text))
    (record,) = kept()
    assert (record.category, record.size) == ("sort", 1.5 * 2**20)


def metadata(folder: Path, output: str, **more: Any) -> None:
    """What Snakemake keeps of an output."""
    record = {"rule": "sort", "input": [], "shellcmd": "x", "job_hash": 1, "incomplete": False}
    record |= {"starttime": 100.0, "endtime": 103.0} | more
    name = base64.urlsafe_b64encode(output.encode()).decode()
    written(folder / ".snakemake" / "metadata" / name, json.dumps(record))


def test_the_metadata_of_snakemake(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    (folder / "in.txt").parent.mkdir()
    (folder / "in.txt").write_text("12345")
    os.utime(folder / "in.txt", (50, 50))
    metadata(folder, "a", input=["in.txt"])
    metadata(folder, "b", starttime=99.0, endtime=104.0)  # of the same job
    metadata(folder, "c", job_hash=2, rule="merge")
    metadata(folder, "d", job_hash=3, endtime=5.0)
    metadata(folder, "e", job_hash=4, incomplete=True)
    written(folder / ".snakemake" / "metadata" / "f", "{")
    said = imported(folder / ".snakemake")
    assert "2 records added, 1 with a file older than its job left out" in said
    assert "1 incomplete left out" in said
    assert "1 damaged left out" in said
    records = {record.category: record for record in kept()}
    assert records.keys() == {"sort", "merge"}
    assert (records["sort"].seconds, records["sort"].at) == (5, 104)
    assert records["merge"].size == 0
    assert records["sort"].directory == str(folder.resolve())
    assert records["sort"].workflow == "project"
    (folder / "in.txt").write_text("changed since")
    assert "0 records added, 2 there already" in imported(folder / ".snakemake" / "metadata")


def test_a_wfformat_trace(home: Path, tmp_path: Path) -> None:
    task = {"name": "mAdd", "id": "mAdd_ID01", "parents": [], "children": []}
    task |= {"inputFiles": ["f"], "outputFiles": []}
    measured = {"id": "mAdd_ID01", "runtimeInSeconds": 4, "avgCPU": 50, "memoryInBytes": 7}
    content = {
        "name": "montage",
        "workflow": {
            "specification": {"tasks": [task], "files": [{"id": "f", "sizeInBytes": 3}]},
            "execution": {
                "executedAt": "1970-01-01T00:01:00Z",
                "tasks": [measured | {"machines": ["node1"]}],
            },
        },
    }
    imported(written(tmp_path / "trace.json", json.dumps(content)))
    (record,) = kept()
    assert (record.category, record.machine, record.seconds) == ("mAdd", "node1", 4)
    assert (record.size, record.memory, record.cpu, record.at) == (3, 7, 2, 60)
    del content["workflow"]["execution"]  # type: ignore[attr-defined]
    with pytest.raises(InputError, match="the trace has no execution"):
        imported(written(tmp_path / "trace.json", json.dumps(content)))


WRONG = [
    ("trace.txt", "hello\n", "this is not a trace.txt of Nextflow"),
    ("trace.json", "[1]", "this is not a trace.txt of Nextflow"),
    ("trace.txt", "realtime\tname\n1s\tA\n", "line 1: the trace has no column status"),
    ("trace.txt", "realtime\tstatus\n", "line 1: the trace has no column process or name"),
    ("trace.txt", f"{TRACE}x\ty\n", "line 6: expected 11 columns, not 2"),
    ("trace.txt", TRACE.replace("1m 3s", "soon"), "line 2: realtime is not what one measures"),
    ("trace.txt", TRACE.replace("1m 3s", "1y"), "line 2: realtime is not what one measures: '1y'"),
    ("trace.txt", TRACE.replace("1.5 GB", "1.5 XB"), "line 2: peak_rss is not what"),
    ("trace.txt", TRACE.replace("50.0%", "much"), "line 2: %cpu is not what"),
    ("trace.txt", TRACE.replace("2026-11-01 10", "then", 1), "line 2: 'then:00:00.000' is no time"),
    ("b.tsv", BENCHMARK.replace("12.50", "-1"), "line 2: s is not what one measures: '-1'"),
    ("b.tsv", BENCHMARK.replace("0.10", "-"), "line 3: there are no seconds"),
]


@pytest.mark.parametrize(("name", "text", "problem"), WRONG)
def test_a_wrong_file_is_named_and_nothing_is_kept(
    home: Path, tmp_path: Path, name: str, text: str, problem: str
) -> None:
    right = written(tmp_path / "right.txt", TRACE)
    with pytest.raises(InputError) as caught:
        imported(right, written(tmp_path / name, text), "--category", "x")
    assert str(caught.value).startswith(f"{tmp_path / name}: ")
    assert problem in str(caught.value)
    assert not kept()


def test_a_directory_without_metadata(home: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"name the directory \.snakemake"):
        imported(tmp_path)
    with pytest.raises(InputError, match="missing"):
        imported(tmp_path / "missing.txt")
