"""Mistakes of the first day: one message each, with file and line, and what to do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from foreplan import formats
from foreplan.errors import InputError
from foreplan.executors.paths import check_paths
from foreplan.formats import mistakes, workflow_to_dict
from foreplan.formats.texts import parse_yaml
from foreplan.model.resources import check_fits, declared_needs

TASK = "tasks:\n  a:\n    "
LOOP = "tasks:\n  a-{s}:\n    foreach: {s: [x, y]}\n    "
TABLE = "tasks:\n  a-{r.id}:\n    foreach: {r: csv(t.csv)}\n    run: echo {r.file}\n"
COMMAND = "quote the command, or write `run: |`"
ANCHORS = "`defaults:` sets fields for several tasks, `foreach:` repeats a task"
BOTH = "tasks:\n  a: {run: x, outputs: [x]}\n  b:\n    run: y\n    outputs: "
PLATFORM = formats.load_platform({"hosts": {"h": {"cores": 2}}})
LONG = "x" * 500

# a text, the line (of the file that is named first, if any), and what the message holds
WRONG = [
    # tabs
    ("tasks:\n\ta:\n\t\trun: x", "2", "indent with spaces"),
    (TASK + "run: x\n\tinputs: [y]", "4", "a tab is used for indentation"),
    (TASK + "run: |\n      x\n\ty", "5", "indent with spaces"),
    (TASK + "run: x\n    inputs:\n    -\ty", "5", "write spaces"),
    # commands that YAML does not read as text
    (TASK + "run: echo a: b", "3", COMMAND),
    (TASK + "run: curl -H 'Accept: x' y", "3", COMMAND),
    (TASK + "run: echo done:", "3", COMMAND),
    (TASK + "run: 'x' y", "3", COMMAND),
    (TASK + "run: x\n      y: z", "4", COMMAND),
    (TASK + "run: [ -f x ] && y", "3", COMMAND),
    (TASK + "run: { x; }", "3", COMMAND),
    (TASK + "run: > x", "3", COMMAND),
    (TASK + "run: true", "3", f"expected a command, not true: {COMMAND}"),
    (TASK + "run:\n      echo a: b", "3", f"not {{'echo a': 'b'}}: {COMMAND}"),
    ("tasks:\n  a: {run: echo a: b}", "2", COMMAND),
    ("tasks:\n  a: {run: echo a, b}", "2", "if it is part of the text before it, quote that text"),
    (TASK + "run: ! grep x y", "3", "quote text that begins with !"),
    (TASK + "run: !x y", "3", "leave it out, or quote text that begins with !"),
    (TASK + "run: sed 's/ #.*//' x", "3", f"`#.*//' x`, within quotes of the shell: {COMMAND}"),
    (TASK + "run: |\n    echo a", "4", "indent the text below `run: |` more than `run`"),
    # braces
    (LOOP + "outputs: [{s}.txt]", "4", 'quote text that begins with {: "{s}.txt"'),
    (LOOP + "outputs: {s}.txt", "4", 'quote text that begins with {: "{s}.txt"'),
    (LOOP + "outputs: {s}", "4", 'quote text that begins with {: "{s}"'),
    (LOOP + "run: x > {output}\n    outputs: [{s}]", "5", 'quote text that begins with {: "{s}"'),
    (TASK + "run: x {input}\n    inputs: {x: 1}", "4", "if `x: 1` is the name, quote it"),
    (TASK + "run: x {input}\n    inputs: [x: 1, y: 2]", "4", "write the name alone"),
    (TASK + "run: x {input}\n    inputs: {x: 1, y: 2}", "4", "write the names alone, as [a, b]"),
    (TASK + "run: x {output}\n    outputs:\n    - x: y", "4", "unknown field 'x'; known: path"),
    (TASK + "run: x {output}\n    outputs:", "4", "not null; for none, leave it out"),
    (TASK + "run: x {input.y}\n    inputs: y", "3", "inputs have no names: write {inputs[0]}"),
    (LOOP + "run: x {outputs.y}\n    outputs: '{s}'", "4", "have no names: write {outputs[0]}"),
    (LOOP + "inputs: [ref, {s}]", "4", 'quote text that begins with {: "{s}"'),
    (LOOP + "inputs:\n    - {s}/{s}.txt", "5", 'begins with {: "{s}/{s}.txt"'),
    (LOOP + "inputs: [d/{s}.txt]", "4", 'quote text with { in it: "d/{s}.txt"'),
    (LOOP + "category: {s}", "4", 'quote text that begins with {: "{s}"'),
    ("tasks:\n  {s}-a:\n    run: x", "2", 'quote text that begins with {: "{s}-a"'),
    ("tasks:\n  {s}:\n    run: x", "2", 'quote text that begins with {: "{s}"'),
    ("params: {n: 2}\n" + TASK + "cores: {n}", "4", "write $n"),
    ("params: {n: 2}\n" + TASK + "cost: {n}", "4", "write $n"),
    (TASK + "foreach: {s: {n}}", "3", "not {n}: for the value of a parameter write $n"),
    # anchors, aliases and merge keys
    ("tasks:\n  a: &a {run: x}\n  b: *a", "2", ANCHORS),
    (TASK + "<<: {cores: 2}", "3", ANCHORS),
    (TASK + "inputs: *x", "3", f"{ANCHORS}; quote text that begins with *"),
    (TASK + "inputs: [*.txt]", "3", "quote text that begins with *"),
    (TASK + "run: &x y", "3", "quote text that begins with &"),
    # layout
    ("tasks:\n- a: {run: x}", "1", "leave out the dash before each name"),
    ("tasks:\n  a: run: x", "2", "or write `run:` on the next line, indented"),
    ("tasks:\n  a: echo b", "2", "the fields of a task, not 'echo b': write `a:` and below"),
    ("tasks:\n  a:\n  run: x", "3", "a field of a task stands below the name of the task"),
    (TASK + "run:x", "2", "write a space after the colon, `run: ...`"),
    (TASK + "run:x\n    inputs: [y]", "3", "write a space after the colon, `run: ...`"),
    (TASK + "run: x\n   inputs: [y]", "4", "give all fields of a task the same indentation"),
    (TASK + "run: x\n     outputs: [y]", "4", "`outputs` is indented more than `run`: align them"),
    (TASK + "run: x\n      y\n     outputs: [y]", "5", "is indented more than `run`: align"),
    (TASK + "cores: 2\n     run: 'x'", "4", "`run` is indented more than `cores`: align them"),
    (TASK + "inputs: [x]\n     outputs: [y]", "4", "`outputs` is indented more than `inputs`"),
    (TASK + "run: x\n    run: y", "4", "given twice, first in line 3: rename or remove one"),
    (TASK + "foreach: s in $ss", "3", "not 's in $ss': write {s: $ss}"),
    (TASK + "foreach: [s, t]", "3", "write {sample: [a, b]}"),
    (TASK + "foreach:\n    - s: [x]", "3", "leave out the dash before each name"),
    (TASK + "category: x: y", "3", "YAML cannot read the text after `category:`: quote the text"),
    (TASK + "run: x\n    category: 'y", "4", "the quote that begins here is not closed"),
    (TASK + "inputs: [x\n    run: y", "3", "the [ that begins here is not closed"),
    (TASK + "inputs: @x", "3", "quote text that begins with @"),
    (TASK + "temp: x\n    outputs: x", "3", "write {path: FILE, temp: true}"),
    # the same file of two tasks
    (BOTH + "x", "5", "the file 'x' is made by both 'a' (line 2) and 'b': only one task"),
    (LOOP + "outputs: o", "4", "is made by both 'a-x' (line 2) and 'a-y': put {s} into the name"),
    (BOTH + "./x", "5", "'x' and './x' are the same file, made by both a (line 2) and b"),
    (BOTH + "d/../x", "5", "'x' and 'd/../x' are the same file, made by both a (line 2) and b"),
    (BOTH + ".//x", "5", "only one task can make a file"),
    (BOTH + "x/", "2", "a makes 'x', which is among 'x/', which b (line 3) makes"),
    (BOTH + "y\n    inputs: ./x", "6", "which a (line 2) makes: write it as 'x' everywhere"),
    (TASK + "run: x\n    outputs: [./x, x]", "4", "write it as 'x' everywhere"),
    (LOOP + "outputs: ['{s}']\n  b: {outputs: ./y}", "5", "made by both a-y (line 2) and b"),
    ("include: in.yaml\ntasks:\n  b: {outputs: ./x}", "3", "in.yaml) and b: only one task"),
    ("include: in.yaml\ntasks: {a: {}}", "2", "two tasks are called 'a': the other is in line 2"),
    # tables
    (TABLE.replace("t.csv", "none.csv"), "3", "csv(none.csv): there is no such file in "),
    (TABLE.replace("t.csv", "empty.csv"), "3", "csv(empty.csv): the table is empty"),
    (TABLE.replace("t.csv", "semi.csv"), "3", "csv(semi.csv): line 1: the columns are separated"),
    (TABLE.replace("t.csv", "tab.csv"), "3", "write commas, or call the file tab.tsv"),
    (TABLE.replace("t.csv", "comma.tsv"), "3", "or call the file comma.csv"),
    # checks of a run
    (TASK + "cores: 1", "2", "it has no command to run"),
    (LOOP + "cores: 1", "2", "it has no command to run: give it one with 'run' (in a-x)"),
    ("include: norun.yaml", "norun.yaml:2", "it has no command to run"),
    (TASK + "run: x\n    outputs: ../x", "4", "the file '../x': this leaves the run's directory"),
    (TASK + "run: x\n    inputs: /x", "4", "the file '/x': this is an absolute path"),
    (TASK + "run: x\n    pools: {db: 1}", "4", "write `pools: {db: 1}` beside `tasks:`"),
    (TASK + "run: x\n    cores: 9", "2", "the task 'a' fits on no host"),
    (LOOP + "run: x\n    on: nowhere", "2", "no host is meant by on: ['nowhere']"),
    # values are cut, and advice is not
    (TASK + f"run: [{LONG}]", "3", f"…{'x' * 37}']: {COMMAND}"),
    (TASK + f"run: x\n    outputs: ../{LONG}", "4", "give an absolute path and --absolute-paths"),
    (TASK + f"run: x\n    pools: {{{LONG}: 1}}", "4", "beside `tasks:`"),
    (f"tasks:\n  a: {{outputs: {LONG}}}\n  b:\n    run: cat {LONG}", "4", "list it under inputs"),
    (TASK + f"shell: \"'{LONG}\"", "3", "is no shell: no closing quotation"),
    (f"tasks:\n  a-{{s}}:\n    foreach: {{s: glob({LONG}*)}}", "3", "nothing to loop over"),
    (TASK + f"after: {LONG}", "3", "unknown task"),
]  # fmt: skip

FILES = {
    "in.yaml": "tasks:\n  a: {run: x, outputs: [x]}\n",
    "norun.yaml": "tasks:\n  a: {cores: 1}\n",
    "empty.csv": "\n",
    "semi.csv": "id;file\n1;x\n",
    "tab.csv": "id\tfile\n1\tx\n",
    "comma.tsv": "id,file\n1,x\n",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with files for the workflows."""
    made = tmp_path_factory.mktemp("mistakes")
    for name, text in FILES.items():
        (made / name).write_text(text)
    return made


def load_and_check(folder: Path) -> None:
    """Read a workflow as a run does."""
    workflow = formats.load(folder / "wf.yaml", directory=folder)
    check_fits(workflow, PLATFORM, declared_needs(workflow))
    check_paths(workflow)


@pytest.mark.parametrize(("text", "line", "holds"), WRONG, ids=range(len(WRONG)))
def test_a_mistake_is_one_message_with_file_line_and_advice(
    folder: Path, text: str, line: str, holds: str
) -> None:
    (folder / "wf.yaml").write_text(text + "\n")
    with pytest.raises(InputError) as caught:
        load_and_check(folder)
    message = str(caught.value)
    name, _, number = f"wf.yaml:{line}".rpartition(":")
    assert message.startswith(f"{folder / name.rpartition(':')[2]}: line {number}")
    assert holds in message
    assert not re.search(r"\n|(?<!/)x{81}", message)


def test_a_text_is_a_list_of_one_name(tmp_path: Path) -> None:
    text = """\
params: {ref: my ref.txt}
tasks:
  a-{s}: {foreach: {s: [x, yy]}, run: "cp {input} {output}", inputs: $ref, outputs: "o {s}"}
  m: {run: "cat {inputs} o", inputs: {all: "o {s}"}, outputs: {path: m, temp: true}, ignores: o}
  e: {run: echo, expand: true}
  n: {run: echo, after: e, inputs: m}
"""
    (tmp_path / "wf.yaml").write_text(text)
    workflow = formats.load(tmp_path / "wf.yaml")
    written = workflow_to_dict(workflow)
    tasks = written["tasks"]
    assert isinstance(tasks, dict)
    assert tasks["a-yy"]["run"] == "cp 'my ref.txt' 'o yy'"
    assert (tasks["a-yy"]["inputs"], tasks["a-yy"]["outputs"]) == (["my ref.txt"], ["o yy"])
    assert (tasks["m"]["outputs"], tasks["m"]["temp"]) == (["m"], True)
    assert tasks["m"]["ignores"] == ["o"]
    assert (tasks["n"]["inputs"], tasks["n"]["after"]) == (["m"], ["e"])
    formats.save(workflow, tmp_path / "again.json")
    assert workflow_to_dict(formats.load(tmp_path / "again.json")) == written


def test_a_comment_after_a_command_is_left_out_as_the_shell_leaves_it_out() -> None:
    text = "run: grep -v 'x' # isn't read\nname: it's # quoted by nobody"
    assert parse_yaml(text) == {"run": "grep -v 'x'", "name": "it's"}


def test_advice_never_fails_where_yaml_refuses() -> None:
    lines = ["a:\t'x", "b: {c}.d", "- [*e", "f: g: h", "\ti: |", "j:k", "} l", "\r", "\u2028m:"]
    for n, line in enumerate(lines):
        for other in lines:
            with pytest.raises(InputError, match=r"^line \d+, column \d+: "):
                parse_yaml("\n".join((*lines[:n], line, other, "x: 'y")))
    nowhere = mistakes.TextPosition(0, 99)
    assert mistakes.find_advice("", nowhere, nowhere, "") is None
