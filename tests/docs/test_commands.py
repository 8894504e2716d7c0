"""Every command of README, CONTRIBUTING and the manual runs, and prints what the page shows."""

from __future__ import annotations

import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from cli.commands import foreplan

from .blocks import PAGES, ROOT, RUN, WORDS, Block, Command, blocks_of
from .served import served

_NUMBER = re.compile(r"[-+±]*\d[\d.,:]*(?:e-?\d+)?")
_TIME = re.compile(r"#(?: ?(?:%|µs|ms|s|min|h|d)\b| ?%)?(?: #(?: ?(?:µs|ms|s|min|h|d)\b))*")
_REPEATS = re.compile(r"foreplan (plan|simulate|ic|prioritize|what-if (?!last))")
_TIMED = re.compile(r" took |estimates of ")


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with served(tmp_path_factory.mktemp("served")) as folder:
        yield folder


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_commands_of_a_page(page: Path, programs: Path, tmp_path: Path) -> None:
    blocks = [block for block in blocks_of(page) if "not run" not in block.marks]
    commands = [command for block in blocks for command in _prepared(block)]
    if not any(block.word in RUN for block in blocks):
        return
    scratch = tmp_path / "scratch"
    shutil.copytree(ROOT / "examples", scratch / "examples")
    book = scratch / "examples" / "words" / "words.py"
    book.write_text(book.read_text().replace("600_000", "6_000"))  # a short one
    script, codes = tmp_path / "script", tmp_path / "codes"
    script.write_text(_script(blocks, tmp_path))
    environment = {
        **os.environ,
        "PATH": f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "FOREPLAN_HOME": str(tmp_path / "home"),
        "PYTHONPATH": str(scratch / "examples"),
    }
    done = subprocess.run(
        ["bash", str(script)],
        cwd=scratch,
        env=environment,
        timeout=240,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    ended = [int(code) for code in codes.read_text().split()] if codes.exists() else []
    for k, (command, code) in enumerate(zip(commands, ended, strict=False)):
        printed = (tmp_path / f"out-{k}").read_text(encoding="utf-8", errors="replace")
        where = f"{page.relative_to(ROOT)}:{command.line}: {command.text}\n{printed}"
        assert code == command.code, f"exit code {code}, not {command.code}: {where}"
        _compare(command, printed, where)
    assert len(ended) == len(commands), f"the page's commands ended early: {done.stderr}"


def _prepared(block: Block) -> list[Command]:
    """What a block runs: what is prepared for it, then its own."""
    first = [Command(block.line, block.marks["prepare"])] if "prepare" in block.marks else []
    if block.word not in RUN:
        return first
    own = block.commands()
    if "varies" in block.marks:
        own = [Command(c.line, c.text, (), c.code) for c in own]
    return first + own


def _script(blocks: list[Block], folder: Path) -> str:
    """One script for a page: files are written, commands follow each other in one shell."""
    parts: list[str] = []
    done = 0
    for block in blocks:
        prepared = "prepare" in block.marks
        steps = [_ran(command, folder, done + k) for k, command in enumerate(_prepared(block))]
        done += len(steps)
        parts += steps[:prepared] + [_written(name, block.body) for name in _file_of(block)]
        parts += steps[prepared:]
    return "\n".join(parts) + "\n"


def _ran(command: Command, folder: Path, k: int) -> str:
    return (
        f"{{\n{command.text}\n}} > {folder}/out-{k} 2>&1 < /dev/null\n"
        f"code=$?; echo $code >> {folder}/codes; [ $code = {command.code} ] || exit 1"
    )


def _written(name: str, text: str) -> str:
    return f"cat > '{name}' <<'END-OF-THE-FILE'\n{text.rstrip()}\nEND-OF-THE-FILE"


def _file_of(block: Block) -> list[str]:
    if "file" in block.marks:
        return [block.marks["file"]]
    return [f"block-{block.line}.py"] if block.word == "python" else []


def _compare(command: Command, printed: str, where: str) -> None:
    """Each line that the page shows was printed, apart from what `...` is for.

    To the digit where nothing real is run or timed, else apart from numbers.
    """
    lines = printed.replace(platform.node(), "vm").splitlines()
    for line in command.shown:
        if line.strip() in ("", "..."):
            continue
        exact = _REPEATS.match(command.text) and not _TIMED.search(line)
        shape = (lambda text: " ".join(text.split())) if exact else _shape
        wanted, cut = shape(line.removesuffix("...")), line.endswith("...")
        found = map(shape, lines)
        same = any(other.startswith(wanted) if cut else other == wanted for other in found)
        assert same, f"not printed: {line!r} by {where}"


def _shape(line: str) -> str:
    """A line without its numbers, units and columns."""
    return " ".join(_TIME.sub("#", _NUMBER.sub("#", line)).split())


def test_every_fence_says_what_it_is() -> None:
    for page in PAGES:
        for block in blocks_of(page):
            name = block.word.split()[0] if block.word else ""
            assert name in WORDS or name.startswith("{"), f"{block.where}: {block.word!r}"
            if name == "yaml":
                yaml.safe_load(block.body)


def test_no_other_page_has_commands() -> None:
    """Decisions and results: what is to be typed stands in the manual, where it is run."""
    for page in sorted((ROOT / "docs").rglob("*.md")):
        if page not in PAGES:
            assert not [block.where for block in blocks_of(page) if block.word in RUN]


def test_what_is_not_run_has_a_reason_and_its_options_exist() -> None:
    for page in PAGES:
        for block in blocks_of(page):
            if block.not_run is None:
                continue
            assert len(block.not_run.split()) > 2, f"{block.where}: say why it is not run"
            print(f"{block.where}: not run: {block.not_run}")
            for command in block.commands() if block.word != "python" else []:
                for words in _calls_of_foreplan(command.text):
                    done = foreplan(*words, "--help", cwd=ROOT)
                    assert done.returncode == 0, f"{block.where}: {command.text}\n{done.stderr}"


def _calls_of_foreplan(text: str) -> list[list[str]]:
    """The arguments of each `foreplan` in a line of shell."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    found: list[list[str]] = []
    at_start, within = True, False
    for word in lexer:
        if set(word) <= set("|&;()<>"):
            at_start, within = set(word) <= set("|&;("), False
        elif at_start and word == "foreplan":
            found.append([])
            at_start, within = False, True
        elif within:
            found[-1].append(word)
        else:
            at_start = False
    return found
