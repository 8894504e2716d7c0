"""What stands in the fences of a page: files to write, commands to run, and what they print.

A fence says by its word what it is: `console` has commands after `$ ` and what they print, `sh`
commands alone, `python` a script, `text` no command. A comment before it says more:

    <!-- file: wf.yaml -->       the block is this file
    <!-- not run: REASON -->     it is not run (and why)
    <!-- exit: 1 -->             its last command ends with this code; `foreplan: error:` means 2
    <!-- varies: REASON -->      what it prints is not compared
    <!-- prepare: COMMANDS -->   run before it, unseen
    <!-- page not run: REASON -->  no command of the page is
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "papers").glob("*.md")),
]
RUN = ("console", "sh", "python")
WORDS = (*RUN, "text", "yaml", "json", "toml", "mermaid", "dag")
_TOKEN = re.compile(
    r"<!--\s*(?P<mark>[a-z ]+?):\s*(?P<value>.*?)\s*-->"
    r"|^(?P<indent> *)```(?P<word>[^\n`]*)\n(?P<body>.*?)^ *```$",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Command:
    """A command, what the page shows of its output, and the code that it must end with."""

    line: int
    text: str
    shown: tuple[str, ...] = ()
    code: int = 0


@dataclass
class Block:
    """A fence with the marks before it."""

    page: Path
    line: int
    word: str
    body: str
    marks: dict[str, str] = field(default_factory=dict)
    output: tuple[str, ...] = ()  # of a script: the text after it

    @property
    def where(self) -> str:
        """Page and line."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def not_run(self) -> str | None:
        """Why it is not run, if it has commands and is not."""
        return self.marks.get("not run") if self.word in RUN else None

    def commands(self) -> list[Command]:
        """Its commands, one by one."""
        if self.word == "python":
            name = self.marks.get("file", f"block-{self.line}.py")
            found = [Command(self.line, f"python {name}", self.output)]
            found = [] if "file" in self.marks else found
        elif self.word == "sh":
            found = self._plain()
        else:
            found = self._transcript()
        if found and "exit" in self.marks:
            last = found[-1]
            found[-1] = Command(last.line, last.text, last.shown, int(self.marks["exit"]))
        return found

    def _plain(self) -> list[Command]:
        lines = self.body.splitlines()
        if any(line.startswith(" ") for line in lines):
            return [Command(self.line, self.body)]  # one that takes several lines
        return [Command(self.line + k, s) for k, s in enumerate(lines, 1) if s.strip()]

    def _transcript(self) -> list[Command]:
        found: list[Command] = []
        text, shown, start = "", list[str](), 0
        for k, line in enumerate([*self.body.splitlines(), "$ "], 1):
            if text.endswith("\\"):
                text += "\n" + line
            elif line.startswith("$ "):
                if text:
                    code = 2 if any(s.startswith("foreplan: error:") for s in shown) else 0
                    found.append(Command(self.line + start, text, tuple(shown), code))
                text, shown, start = line[2:], [], k
            else:
                shown.append(line)
        return found


def blocks_of(page: Path) -> list[Block]:
    """The fences of a page, in order."""
    text = page.read_text(encoding="utf-8")
    found: list[Block] = []
    marks: dict[str, str] = {}
    whole: dict[str, str] = {}
    ended = 0
    for token in _TOKEN.finditer(text):
        if token["mark"]:
            if token["mark"] == "page not run":
                whole = {"not run": token["value"]}
            marks[token["mark"]] = token["value"]
            continue
        body = "".join(
            line.removeprefix(token["indent"]) for line in token["body"].splitlines(keepends=True)
        )
        line = text.count("\n", 0, token.start()) + 1
        block = Block(page, line, token["word"].strip(), body, {**whole, **marks})
        last = found[-1] if found else None
        follows = not text[ended : token.start()].strip()
        if follows and block.word == "text" and last and last.word == "python":
            last.output = tuple(body.splitlines())
        found.append(block)
        marks, ended = {}, token.end()
    return found
