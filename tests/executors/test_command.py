"""One attempt at a shell command: its files, its processes, and every way to fail."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from executors.waiting import LIMIT, ended, pipe_of_life
from foreplan.executors import publishing
from foreplan.executors.command import (
    CommandJob,
    CommandOutcome,
    run_command,
    unlisted,
    usual_shell,
)
from foreplan.executors.processes import (
    LeftBehind,
    Stop,
    find_left_behind,
    kill_left_behind,
    start_time,
    wait_readable,
)
from foreplan.executors.workspace import (
    Workspace,
    done_line,
    read_done,
    read_marker,
    tail_of,
)
from foreplan.shell import named_files


@pytest.fixture
def job(tmp_path: Path) -> CommandJob:
    data = tmp_path / "data"
    home = data / ".foreplan" / "runs" / "x"
    for place in ("attempts", "logs"):
        (home / place).mkdir(parents=True)
    scratch, log = str(home / "attempts" / "7"), str(home / "logs" / "7")
    return CommandJob("t", "true", str(data), scratch, log, attempt=7, home=str(home))


def run(job: CommandJob, command: str, *outputs: str, **changes: object) -> CommandOutcome:
    return run_command(replace(job, command=command, outputs=outputs, **changes))  # type: ignore[arg-type]


def write(job: CommandJob, name: str, text: str) -> Path:
    path = Path(job.dir, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def read(job: CommandJob, name: str) -> str:
    return Path(job.dir, name).read_text()


def nothing_left(job: CommandJob) -> bool:
    return not os.path.lexists(job.scratch)


def test_inputs_are_there_and_outputs_are_published(job: CommandJob) -> None:
    write(job, "deep/in.txt", "b\na\n")
    outcome = run(job, "sort deep/in.txt > out/x.txt", "out/x.txt", inputs=("deep/in.txt",))
    assert outcome.problem is None
    assert outcome.exit == 0
    assert outcome.sizes == {"out/x.txt": 4}
    assert read(job, "out/x.txt") == "a\nb\n"
    assert nothing_left(job)


def test_it_runs_in_an_empty_directory_of_its_own(job: CommandJob) -> None:
    write(job, "secret.txt", "")
    outcome = run(job, "ls -A; pwd", home=job.home)
    assert outcome.problem is None
    assert Path(job.log + ".out").read_text() == job.scratch + "\n"


def test_files_that_the_command_names_are_there(job: CommandJob) -> None:
    write(job, "split.py", "import sys; print(open(sys.argv[1]).read() + open('b c').read())")
    write(job, "lib/one.txt", "1")
    write(job, "b c", "2")
    outcome = run(job, "python3 ./split.py lib/one.txt 'b c' >out", "out")
    assert outcome.problem is None
    assert read(job, "out") == "12\n"


def test_an_output_of_an_earlier_time_is_not_seen(job: CommandJob) -> None:
    write(job, "out/x", "old")
    outcome = run(job, "ls out; test -e out/x && cat out/x; : > out/x", "out/x")
    assert outcome.problem is None
    assert read(job, "out/x") == ""
    assert not outcome.tail


def test_the_environment_says_what_it_is(job: CommandJob) -> None:
    assert run(job, 'echo "$FOREPLAN_DIR $FOREPLAN_TASK $FOREPLAN_ATTEMPT"').problem is None
    assert Path(job.log + ".out").read_text() == f"{job.dir} t 7\n"


def test_logs_are_kept_for_the_owner_only(job: CommandJob) -> None:
    assert run(job, "echo one; echo two >&2").problem is None
    for end, text in ((".out", "one\n"), (".err", "two\n")):
        assert Path(job.log + end).read_text() == text
        assert stat.S_IMODE(os.stat(job.log + end).st_mode) == 0o600


def test_in_a_workspace_what_is_left_empty_is_used_again(job: CommandJob) -> None:
    files = set(os.listdir("/proc/self/fd"))
    notes = job.scratch + ".notes"
    workspace = Workspace(job.scratch, notes)

    def there(command: str, attempt: int) -> CommandOutcome:
        log = f"{job.log}-{attempt}"
        made = replace(job, command=command, attempt=attempt, log=log, outputs=("x",))
        return run_command(made, workspace=workspace)

    assert there("echo > x", 1).problem is None
    before = os.stat(job.scratch).st_ino, os.stat(job.scratch + ".err").st_ino
    assert there("ls -A; echo > x", 2).problem is None
    assert (os.stat(job.scratch).st_ino, os.stat(job.scratch + ".err").st_ino) == before
    failed = there("touch y; echo two >&2; false", 3)
    assert (failed.tail, failed.log) == ("two", job.log + "-3.err")
    assert there("ls -A; mkdir -p y/z; echo one; echo > x", 4).problem is None
    assert there("ls -A; echo > x", 5).problem is None
    assert sorted(os.listdir(os.path.dirname(job.log))) == ["7-3.err", "7-4.out"]
    assert Path(job.log + "-4.out").read_text() == "one\n"
    assert [attempt for _, attempt in read_done(notes)] == [1, 2, 4, 5]
    workspace.close()
    assert os.listdir(os.path.dirname(job.scratch)) == ["7.notes"]
    assert set(os.listdir("/proc/self/fd")) == files


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("false | gzip > a", 1),
        ("false; echo > a", 1),
        ("echo x > /dev/full; echo > a", 1),
        ("echo x | tee /dev/full > a; echo > a", 1),
        ("echo > a; rm $NEVER_SET/x", 1),
        ("set -x\n\n# a line that fails in the middle\ncat none\necho > a", 1),
        ("yes | head -n 1 > a", 141),
        ("yes | head -n 1 > a || true", 0),
        ("set +e\nfalse\necho > a", 0),
        ("grep -q x /dev/null || true\ncat <<END |\n$HOME\nEND\n  sort > a", 0),
        ("for x in 1 2; do\n  test $x = 1 && echo $x >> a || echo no\ndone", 0),
    ],
)
def test_the_first_error_ends_a_command(job: CommandJob, command: str, code: int) -> None:
    outcome = run(job, command, "a")
    assert outcome.exit == code
    assert (outcome.problem is None) == (code == 0)
    assert os.path.exists(os.path.join(job.dir, "a")) == (code == 0)


def test_without_bash_it_is_sh(job: CommandJob, monkeypatch: pytest.MonkeyPatch) -> None:
    usual_shell.cache_clear()
    monkeypatch.setattr("foreplan.executors.command.shutil.which", lambda _: None)
    try:
        assert usual_shell()[0] == "/bin/sh"
        assert run(job, "false; true").exit == 1
        assert run(job, "echo $NEVER_SET").exit == 2 or os.path.realpath("/bin/sh") != "/bin/dash"
        assert run(job, "echo > a", "a").problem is None
    finally:
        usual_shell.cache_clear()


def test_another_shell_is_given_the_command_as_it_is(job: CommandJob) -> None:
    write(job, "wrap", '#!/bin/sh\necho "$# $1 $2" > a\n').chmod(0o700)
    for shell, command, said in (
        ("sh", "false; echo x$NEVER_SET > a", "x\n"),
        ("bash -o noclobber", "echo 1 > a; (echo 2 > a) || echo $- >> a", None),
        (sys.executable, "print('it works', file=open('a', 'w'))", "it works\n"),
        (f"{sys.executable} -I -c", "open('a', 'w').write('x')", "x"),
        ("./wrap one", "two $three", "2 one two $three\n"),
    ):
        outcome = run(job, command, "a", shell=shell)
        assert outcome.problem is None, shell
        assert said is None or read(job, "a") == said


def test_a_shell_that_is_not_there_is_told(job: CommandJob) -> None:
    for shell in ("no-such-shell -x", "./wrap"):
        outcome = run(job, "true", shell=shell)
        assert outcome.problem == f"its shell {shell.split()[0]!r} is not on this machine"
        assert nothing_left(job)


def test_what_a_pattern_matches_is_there(job: CommandJob) -> None:
    for name in ("data/1.csv", "data/2.csv", "data/.3.csv", "data/old.csv"):
        write(job, name, f"{name}\n")
    for name in ("my dir/x.csv", "y.txt"):
        write(job, name, f"{name}\n")
    write(job, "data/x", "x\n")
    command = "cat data/x data/*.csv 'my dir'/?.csv *.txt > out.txt"
    changes = {"inputs": ("data/x",), "ignores": ("data/old.csv",)}
    assert run(job, command, "out.txt", **changes).problem is None
    there = ["x", "data/1.csv", "data/2.csv", "my dir/x.csv", "y.txt"]
    assert read(job, "out.txt").splitlines() == there
    write(job, "a/b/c/deep.csv", "deep\n")
    assert run(job, "shopt -s globstar; cat **/deep.csv > out.txt", "out.txt").problem is None
    # its own output of an earlier time is not among them, nor is what is only quoted
    assert run(job, "ls *.txt; ls; echo > out.txt", "out.txt").problem is None
    assert Path(job.log + ".out").read_text() == "y.txt\ny.txt\n"
    assert run(job, "ls '*'").exit == 2
    assert run(job, "touch z; ls *", ignores=("*",)).problem is None
    assert Path(job.log + ".out").read_text() == "z\n"
    assert nothing_left(job)


def test_files_that_were_not_listed_are_found(job: CommandJob) -> None:
    for name in ("a.csv", "b.csv", "c.csv", "lib/tool.py", "old"):
        write(job, name, "")
    command = "python3 lib/tool.py ?.csv lib none > old"
    named = replace(job, command=command, inputs=("a.csv",), outputs=("old",), ignores=("c.csv",))
    assert unlisted(named) == ["b.csv", "lib/tool.py"]


def test_a_redirection_to_a_file_that_is_not_an_output_is_refused(job: CommandJob) -> None:
    for name in ("notes.txt", "d/in", "d/out"):
        write(job, name, "precious")
    there = "is in the data directory but not among its outputs: list it under outputs"
    for command, changes, problem in (
        ("echo half > notes.txt; exit 1", {}, f"redirects output to notes.txt, which {there}"),
        ("echo half >> d/in", {"inputs": ("d/in",)}, "d/in, which is one of its inputs: write to"),
        ("echo half >> d/in", {"inputs": ("d/",)}, "d/in, which is one of its inputs: write to"),
        ("echo half >> d/in", {"inputs": ("d/*",)}, "d/in, which is one of its inputs: write to"),
    ):
        outcome = run(job, f"touch $FOREPLAN_DIR/ran; {command}", **changes)
        assert problem in (outcome.problem or "")
        assert not Path(job.dir, "ran").exists()
    assert run(job, "echo new > d/out", "d/o*").problem is None
    assert read(job, "d/out") == "new\n"
    # a file of its own, although there is one of that name
    own = "echo own > notes.txt; cat notes.txt"
    assert run(job, own, ignores=("notes.txt",)).problem is None
    assert Path(job.log + ".out").read_text() == "own\n"
    assert run(job, "echo own > o; sort -o notes.txt o; cat notes.txt").problem is None
    assert Path(job.log + ".out").read_text() == "own\n"
    assert run(job, "print('a' > 'notes.txt')", shell="python3").problem is None
    assert read(job, "notes.txt") == read(job, "d/in") == "precious"


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("exit 3", "it exited with code 3"),
        ("no-such-thing-here", "it exited with code 127 (command not found?)"),
        ("/", "it exited with code 126 (not executable?)"),
        ("kill -KILL $$", "it was killed by SIGKILL (perhaps out of memory)"),
        ("kill -SEGV $$", "it was killed by SIGSEGV"),
        ("sh -c 'kill -KILL $$'; exit $?", "it exited with code 137 (killed by SIGKILL"),
        ("true", "its output 'a' is missing"),
        ("ln -s nowhere a", "its output 'a' is a link to nothing"),
        ("mkdir a", "its output 'a' is a directory: if it is meant, write 'a/'"),
        ("a\0b", "it cannot be run: embedded null byte"),
    ],
)
def test_each_failure_says_what_it_is(job: CommandJob, command: str, problem: str) -> None:
    write(job, "a", "old")
    outcome = run(job, command, "a")
    assert outcome.problem is not None
    assert outcome.problem.startswith(problem)
    assert read(job, "a") == "old"
    assert nothing_left(job)


def test_a_failure_tells_code_or_signal(job: CommandJob) -> None:
    failed, killed = run(job, "exit 3"), run(job, "kill -TERM $$")
    assert (failed.exit, failed.signal) == (3, None)
    assert (killed.exit, killed.signal) == (None, 15)


def test_no_output_is_published_unless_all_are_there(job: CommandJob) -> None:
    write(job, "a", "old")
    outcome = run(job, "echo new > a", "a", "b", "c")
    assert outcome.problem == "some of its outputs are missing: 'b', 'c'"
    assert read(job, "a") == "old"
    assert run(job, "true", "b", "c").problem == "all of its outputs are missing: 'b', 'c'"


def test_a_missing_input_is_named(job: CommandJob) -> None:
    outcome = run(job, "touch ran", "ran", inputs=("deep/no.txt",))
    assert outcome.problem == "its input 'deep/no.txt' is missing"
    assert not Path(job.dir, "ran").exists()
    assert nothing_left(job)


def test_the_tail_is_the_end_of_stderr_or_else_of_stdout(job: CommandJob) -> None:
    noisy = run(job, "seq 1 5000; seq 1 5000 >&2; exit 1")
    assert noisy.tail.splitlines() == [str(k) for k in range(4981, 5001)]
    assert noisy.log == job.log + ".err"
    plain = run(job, "echo only this; exit 1")
    assert (plain.tail, plain.log) == ("only this", job.log + ".out")
    silent = run(job, "exit 1")
    assert (silent.tail, silent.log) == ("", None)


def test_a_long_line_is_cut(job: CommandJob) -> None:
    outcome = run(job, "head -c 100000 /dev/zero | tr '\\0' x >&2; exit 1")
    assert outcome.tail == "x" * 4096


def test_what_a_link_leads_to_is_published_as_a_file(job: CommandJob) -> None:
    write(job, "in", "data")
    outcome = run(job, "mv in a; echo more > real; ln -s real b", "a", "b", inputs=("in",))
    assert outcome.problem is None
    for name, text in (("a", "data"), ("b", "more\n"), ("in", "data")):
        assert read(job, name) == text
        assert not Path(job.dir, name).is_symlink()
    write(job, "in", "changed")
    assert read(job, "a") == "data"


def test_links_that_lead_out_of_the_directory_are_refused(job: CommandJob, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x").write_text("x")
    Path(job.dir, "in").symlink_to(outside / "x")
    Path(job.dir, "door").symlink_to(outside)
    refused = run(job, "cp in out", "out", inputs=("in",))
    assert refused.problem is not None
    assert refused.problem.startswith("its input 'in' is outside of the run's directory")
    refused = run(job, "cat door/x", inputs=("door/x",))
    assert refused.problem is not None
    assert "its input 'door/x' is outside" in refused.problem
    refused = run(job, "echo > door/y", "door/y")
    assert refused.problem is not None
    assert "the place of its output 'door/y' is outside" in refused.problem
    assert run(job, "cat door/x").exit == 1  # it is only named, so it is not there
    assert os.listdir(outside) == ["x"]
    allowed = run(job, "cp in door/y", "door/y", inputs=("in",), anywhere=True)
    assert allowed.problem is None
    assert (outside / "y").read_text() == "x"


def test_absolute_paths_are_used_as_they_are(job: CommandJob, tmp_path: Path) -> None:
    source, target = str(tmp_path / "source"), str(tmp_path / "target")
    Path(source).write_text("x")
    outcome = run(job, f"cp {source} {target}", target, inputs=(source,), anywhere=True)
    assert outcome.problem is None
    assert outcome.sizes == {target: 1}


def test_an_output_may_not_replace_a_directory(job: CommandJob) -> None:
    Path(job.dir, "a").mkdir()
    problem = run(job, "echo > a; echo > b", "b", "a").problem
    assert problem == "its output 'a' cannot be published: a directory of that name is there"
    assert not Path(job.dir, "b").exists()


@pytest.mark.parametrize("outputs", [("a", "b", "c"), ("c", "b", "a")])
def test_outputs_may_be_links_to_each_other(job: CommandJob, outputs: tuple[str, ...]) -> None:
    for text in ("one\n", "two\n"):  # also in place of what is there
        outcome = run(job, f"printf {text!r} > a; ln -s a b; ln -s b c", *outputs)
        assert outcome.problem is None
        for name in outputs:
            assert read(job, name) == text
            assert not Path(job.dir, name).is_symlink()
    assert sorted(os.listdir(job.dir)) == [".foreplan", "a", "b", "c"]


@pytest.mark.parametrize(
    ("command", "outputs"),
    [
        ("mkdir d; echo x > d/x; ln -s d/x b", ("d/", "b")),
        ("mkdir d; echo x > d/x; ln -s d e", ("d/", "e/")),
        ("mkdir d; echo x > b; ln -s ../b d/x", ("b", "d/")),
        ("mkdir d e; echo x > d/x; ln -s ../d/x e/x", ("d/x", "e/x")),
        ("mkdir d; echo x > d/x; ln -s d e", ("d/x", "e/x")),
        ("mkdir d; echo x > d/x; ln -s $PWD/d/x b1; ln -s b1 b2", ("d/", "b*")),
        ("mkdir -p d/in; echo x > d/in/x; ln -s d e", ("d/in/", "e/in/")),
        ("ln -s in a; ln -s a b", ("b", "a")),
    ],
)
def test_outputs_may_lead_to_each_other_anyhow(
    job: CommandJob, command: str, outputs: tuple[str, ...]
) -> None:
    write(job, "in", "x\n")
    # the folders of outputs are there already; here the command makes them, or links
    command = f"rmdir e; {command}" if "e/x" in outputs or "e/in/" in outputs else command
    command = f"rmdir d; {command}" if "d/x" in outputs or "d/in/" in outputs else command
    outcome = run(job, command, *outputs, inputs=("in",), protected=outputs)
    assert outcome.problem is None
    for output in outputs:
        paths = [Path(job.dir, "b1"), Path(job.dir, "b2")] if "*" in output else []
        paths = paths or [Path(job.dir, output)]
        paths = [path / "x" if path.is_dir() else path for path in paths]
        assert [path.read_text() for path in paths] == ["x\n"] * len(paths)
        assert not any(path.is_symlink() or path.stat().st_mode & 0o222 for path in paths)
    assert os.access(Path(job.dir, "in"), os.W_OK)
    assert Path(job.dir, "in").stat().st_mode & 0o200
    assert not [name for name in os.listdir(job.dir) if name.endswith(".tmp")]


@pytest.mark.parametrize(
    ("command", "output", "problem"),
    [
        ("ln -s b b", "b", "its output 'b' is a link to nothing"),
        ("ln -s /dev/zero b", "b", "its output 'b' is not a regular file"),
        ("ln -s /dev/zero d/z", "d/", "'d/' contains something that is not a regular file: 'd/z'"),
        ("mkfifo d/z", "d/", "'d/' contains something that is not a regular file: 'd/z'"),
        ("mkdir e; mkfifo e/z; ln -s ../e d/e", "d/", "not a regular file: 'd/e/z'"),
        ("ln -s nowhere d/z", "d/", "'d/' contains a link to nothing: 'd/z'"),
        ("ln -s z d/z", "d/", "'d/' contains something that cannot be read: 'd/z'"),
        ("ln -s $PWD d/z", "d/", "'d/' contains a link to a folder that it is in: 'd/z'"),
        ("mkdir e; ln -s ../e d/z; ln -s ../d e/y", "d/", "a link to a folder that it is in"),
    ],
)
def test_nothing_is_published_with_an_output_that_cannot_be(
    job: CommandJob, command: str, output: str, problem: str
) -> None:
    for outputs in (("a", output), (output, "a")):
        outcome = run(job, f"echo x > a; mkdir d; {command}", *outputs)
        assert problem in (outcome.problem or "")
        assert outcome.cause == "missing-output"
        assert os.listdir(job.dir) == [".foreplan"]
        assert nothing_left(job)


def test_nothing_is_published_if_a_folder_is_not_writable(
    job: CommandJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: not path.endswith("/d"))
    problem = run(job, "echo > a; echo > d/b", "a", "d/b").problem
    assert problem == "its output 'd/b' cannot be published: its folder is not writable"
    assert not Path(job.dir, "a").exists()


def test_what_is_already_published_is_told_if_a_rename_fails(
    job: CommandJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace_file = os.replace

    def fail(source: str, target: str) -> None:
        if os.path.basename(target) == "b":
            raise OSError(errno.EIO, "Input/output error")
        replace_file(source, target)

    monkeypatch.setattr(os, "replace", fail)
    problem = run(job, "echo > a; echo > b", "a", "b").problem
    assert problem == (
        "its output 'b' cannot be published: Input/output error; already published: 'a'"
    )


def test_outputs_cross_file_systems(job: CommandJob, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishing, "_is_on", lambda folder, status: False)
    command = "echo x > a; mkdir d; echo x > d/x; ln -s x d/y"
    assert run(job, command, "a", "d/", protected=("d/",)).problem is None
    assert run(job, command, "a", "d/").problem is None
    assert (read(job, "a"), read(job, "d/y")) == ("x\n", "x\n")
    assert os.readlink(Path(job.dir, "d/y")) == "x"
    assert sorted(os.listdir(job.dir)) == [".foreplan", "a", "d"]


def test_a_directory_that_cannot_be_made_is_told(job: CommandJob) -> None:
    outcome = run(job, "true", scratch=job.scratch + "/no/such")
    assert outcome.problem is not None
    assert "No such file or directory" in outcome.problem


def test_scratch_can_be_kept(job: CommandJob) -> None:
    keep = job.scratch + ".failed"
    outcome = run(job, "echo > a; false", keep=keep)
    assert outcome.kept == keep
    assert sorted(os.listdir(keep)) == ["a", "command.sh"]
    # what was kept is not in the way of another attempt
    assert run(job, "ls -A | grep a && exit 1; mkdir -p d/e").problem is None
    shutil.rmtree(keep)
    assert nothing_left(job)


def again(kept: str | None) -> subprocess.CompletedProcess[str]:
    """The script of a directory that was kept, from anywhere and in a bare environment."""
    assert kept is not None
    script = os.path.join(kept, "command.sh")
    return subprocess.run([script], capture_output=True, text=True, cwd="/", env={"A": "1"})


def test_the_command_can_be_run_again(job: CommandJob) -> None:
    """In its directory, with its inputs and foreplan's variables; it stops at the first error."""
    Path(job.dir, "in").write_text("there")
    keep = job.scratch + ".failed"
    command = (
        "cat in\necho \" '$FOREPLAN_TASK' $FOREPLAN_ATTEMPT\"; basename $PWD\nfalse\necho not this"
    )
    outcome = run(job, command, keep=keep, inputs=("in",), task="it's")
    assert outcome.exit == 1
    done = again(outcome.kept)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout == f"there 'it's' {job.attempt}\n{os.path.basename(keep)}\n"
    text = Path(keep, "command.sh").read_text()
    assert command in text
    assert "it exited with code 1" in text
    assert "FOREPLAN_RUN" not in text  # else it would be taken for what a killed run has left
    assert os.stat(os.path.join(keep, "command.sh")).st_mode & 0o777 == 0o700


def test_the_shell_of_a_command_that_is_run_again(job: CommandJob) -> None:
    keep = job.scratch + ".failed"
    outcome = run(job, 'print("it is", 5)\nraise SystemExit(4)', keep=keep, shell="python3 -c")
    done = again(outcome.kept)
    assert (done.returncode, done.stdout, done.stderr) == (4, "it is 5\n", "")


def test_the_script_is_not_written_through_a_link(job: CommandJob) -> None:
    own = Path(job.dir, "command.sh")
    own.write_text("mine")
    keep = job.scratch + ".failed"
    outcome = run(job, "sh command.sh; false", keep=keep, inputs=("command.sh",))
    assert own.read_text() == "mine"
    assert outcome.kept is not None
    assert Path(keep, "foreplan-command.sh").exists()


def test_what_was_stopped_is_not_kept(job: CommandJob) -> None:
    stop = Stop()
    stop.ask()
    outcome = run_command(replace(job, command="true", keep=job.scratch + ".failed"), stop)
    assert (outcome.problem, outcome.kept) == ("it was stopped", None)
    assert nothing_left(job)


def test_a_folder_without_rights_is_removed(job: CommandJob) -> None:
    assert run(job, "mkdir -p a/b; touch a/b/c; chmod 0 a/b; chmod 500 a").problem is None
    assert nothing_left(job)


def test_a_done_attempt_leaves_a_note(job: CommandJob) -> None:
    assert run(job, "echo > a", "a").problem is None
    seconds, sizes = read_done(job.scratch + ".done")["t", 7]
    assert seconds > 0
    assert sizes == {"a": 1}
    assert read_marker(job.scratch + ".done", job.dir) == (seconds, sizes)
    write(job, "a", "changed")
    assert read_marker(job.scratch + ".done", job.dir) is None
    assert run(job, "false").problem is not None


def test_a_note_that_was_cut_short_is_no_note(tmp_path: Path) -> None:
    path = str(tmp_path / "done")
    workspace = Workspace(str(tmp_path / "none"), path)
    workspace.note(done_line("a", 1, 0.5, {"x": (3, 9)}))
    whole = Path(path).read_bytes()
    Path(path).write_bytes(whole + whole.replace(b"1", b"2")[:20])
    workspace.note(done_line("a", 3, 0.5, {}))
    workspace.close()
    assert read_done(path) == {("a", 1): (0.5, {"x": 3}), ("a", 3): (0.5, {})}
    assert read_done(str(tmp_path / "none")) == {}


def test_names_in_a_command() -> None:
    found = named_files(
        "a/../b <in>out --file=c.csv; ./d 'e f' -x /abs ../up .foreplan/x $V |tee g"
    )
    assert {"b", "in", "out", "c.csv", "d", "e f", "g"} <= set(found)
    assert not {"/abs", "../up", ".foreplan/x", "-x", "--file=c.csv"} & set(found)
    assert "a" in named_files("cat 'not closed a")


# processes


@pytest.fixture
def life(job: CommandJob) -> Iterator[int]:
    with pipe_of_life(Path(job.dir)) as fd:
        yield fd


def test_a_time_out_ends_the_whole_group(job: CommandJob, life: int) -> None:
    outcome = run(job, "exec 3>life; (sleep 1000; true) & sleep 1000", timeout=0.6)
    assert outcome.problem == "it took longer than its time-out of 600 ms"
    assert outcome.timed_out
    assert outcome.seconds < 100
    assert ended(life)
    assert nothing_left(job)


def test_who_does_not_listen_is_killed(
    job: CommandJob, life: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foreplan.executors.command.GRACE", 0.2)
    outcome = run(job, "trap '' TERM; exec 3>life; while :; do sleep 1000; done", timeout=0.6)
    assert outcome.timed_out
    assert outcome.signal == 9
    assert ended(life)


def test_who_lingers_in_the_background_is_ended(job: CommandJob, life: int) -> None:
    outcome = run(job, "(exec 3>life; echo >&3; sleep 1000) & echo ready > a; read x <life", "a")
    assert outcome.problem is None
    assert ended(life)


@pytest.mark.parametrize("deaf", [False, True])
def test_another_thread_can_stop_it(
    job: CommandJob, life: int, deaf: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foreplan.executors.processes.GRACE", 0.2)
    ignore = "trap '' TERM; " if deaf else ""
    command = f"{ignore}exec 3>life; echo >&3; sleep 1000 & wait; sleep 1000"
    stop = Stop()

    def ask() -> None:
        wait_readable((life,), LIMIT)  # it runs
        stop.ask()

    thread = threading.Thread(target=ask)
    thread.start()
    outcome = run_command(replace(job, command=command, outputs=("a",)), stop=stop)
    thread.join(LIMIT)
    assert outcome.stopped
    assert outcome.problem == "it was stopped"
    assert ended(life)
    assert nothing_left(job)


def test_a_stop_before_the_start_is_heard(job: CommandJob) -> None:
    stop = Stop()
    stop.ask()
    outcome = run_command(replace(job, command="sleep 1000"), stop=stop)
    assert outcome.stopped


def test_a_stop_after_the_end_does_nothing(job: CommandJob) -> None:
    stop = Stop()
    assert run_command(replace(job, command="true"), stop=stop).problem is None
    stop.ask()


def test_nothing_runs_on_if_nobody_waits_for_it(
    job: CommandJob, life: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> bool:
        assert wait_readable((life,), LIMIT)
        raise KeyError

    monkeypatch.setattr("foreplan.executors.command.wait_exit", refuse)
    with pytest.raises(KeyError):
        run_command(replace(job, command="exec 3>life; echo >&3; sleep 1000"))
    assert ended(life)


def test_it_has_no_input_and_no_terminal(job: CommandJob) -> None:
    outcome = run(job, "cat; read x && exit 1; exit 0")
    assert outcome.problem is None


def test_where_the_system_cannot_tell_of_exits(
    job: CommandJob, life: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    monkeypatch.setattr("foreplan.executors.processes._WAITID", None)
    assert run(job, "echo > a", "a").problem is None
    outcome = run(job, "exec 3>life; sleep 1000 & sleep 1000", timeout=0.6)
    assert outcome.timed_out
    assert ended(life)


def test_who_left_the_group_is_found_by_its_mark(job: CommandJob, life: int) -> None:
    outcome = run(job, "setsid sh -c 'exec 3>life; echo >&3; cd /; sleep 1000' & read x <life")
    assert outcome.problem is None
    assert kill_left_behind(job.home)
    assert ended(life)
    assert kill_left_behind(job.home) == []


def test_who_looks_around_in_a_kept_directory_is_not_killed(job: CommandJob) -> None:
    kept, left = (Path(job.home) / "attempts" / name for name in ("1-a.failed", "2"))
    environment = {"PATH": os.environ["PATH"]}
    for place in (kept, left):
        place.mkdir(parents=True)
    with (
        subprocess.Popen(["sleep", "1000"], cwd=kept, env=environment) as guest,
        subprocess.Popen(
            ["sleep", "1000"], cwd=left, env=environment, start_new_session=True
        ) as stray,
    ):
        try:
            found = find_left_behind([job.home])
            assert found == [LeftBehind(stray.pid, start_time(stray.pid), job.home, -1)]
            assert kill_left_behind(job.home) == [-1]
            assert stray.wait(LIMIT) < 0
            assert guest.poll() is None
            assert find_left_behind([job.home]) == []
        finally:
            guest.kill()
            stray.kill()


def test_no_tail_of_nothing(tmp_path: Path) -> None:
    assert tail_of(str(tmp_path / "none")) == ("", None)
