"""Short workflows: parameters, loops, conditions, gathered inputs; and where mistakes are."""

from __future__ import annotations

import json
import pickle
import subprocess
from pathlib import Path
from typing import Any

import pytest

from foreplan import formats
from foreplan.errors import InputError
from foreplan.formats import workflow_to_dict
from foreplan.formats.loops import matched_paths
from foreplan.formats.templates import expand_template
from foreplan.formats.texts import dump_yaml, parse_yaml
from foreplan.runs.options import Options

MAPPING = """\
name: mapping
params: {samples: [s1, s2, s3], depth: 30}
shell: bash
defaults: {retries: 1}
tasks:
  align-{sample}:
    foreach: {sample: $samples}
    run: bwa mem -t $FOREPLAN_CORES -d {depth} ref.fa {inputs[1]} > {output}
    inputs: [ref.fa, "reads/{sample}.fq"]
    outputs: ["bam/{sample}.bam"]
  merge:
    run: merge {inputs} > {output}
    inputs: {all: "bam/{sample}.bam"}
    outputs: [all.bam]
"""


def read(text: str, folder: Path, **more: Any) -> dict[str, Any]:
    """The tasks of a file with this text."""
    (folder / "wf.yaml").write_text(text)
    workflow = formats.load(folder / "wf.yaml", directory=folder, **more)
    tasks: Any = workflow_to_dict(workflow)["tasks"]
    return dict(tasks)


def runs(text: str, folder: Path, **more: Any) -> dict[str, str]:
    """The commands of a file with this text."""
    return {task: fields["run"] for task, fields in read(text, folder, **more).items()}


def test_the_example_of_the_manual(tmp_path: Path) -> None:
    tasks = read(MAPPING, tmp_path)
    assert list(tasks) == ["align-s1", "align-s2", "align-s3", "merge"]
    assert tasks["align-s2"] == {
        "category": "align",
        "run": "bwa mem -t $FOREPLAN_CORES -d 30 ref.fa reads/s2.fq > bam/s2.bam",
        "retries": 1,
        "inputs": ["ref.fa", "reads/s2.fq"],
        "outputs": ["bam/s2.bam"],
    }
    assert tasks["merge"]["run"] == "merge bam/s1.bam bam/s2.bam bam/s3.bam > all.bam"


def test_parameters_are_given(tmp_path: Path) -> None:
    given = {"depth": "50", "samples": ["x"]}  # a text is read as what is declared
    tasks = runs(MAPPING, tmp_path, params=given)
    assert list(tasks) == ["align-x", "merge"]
    assert "-d 50 ref.fa" in tasks["align-x"]


LETTERS = "awk '{print}' ${X} {a,b} {1..3} {} { sample } {unknown} {unknown[1]} {nope.x} $sample"


def test_only_known_names_are_replaced(tmp_path: Path) -> None:
    text = f"tasks:\n  a-{{sample}}:\n    foreach: {{sample: [x]}}\n    run: |-\n      {LETTERS}\n"
    assert runs(text, tmp_path) == {"a-x": LETTERS}


AWKWARD = [
    "plain",
    "two words",
    "it's",
    'say "x"',
    "$HOME",
    "a;b",
    "*",
    "back\\slash",
    "`date`",
    "",
]


@pytest.mark.parametrize(
    "command",
    ["printf %s {x}", 'printf %s "{x}"', "printf %s '{x}'", 'printf %s "$(printf %s {x})"',
     "printf %s a'b'{x} # don't {x}\n", "cat <<<{x} | tr -d '\\n'",
     "(true)# it's\n: `date` $((1<<2)) $#; printf %s $(: {x})\"$(( $(: {x}; echo 1) ))\" | tr -d 1"
     "\n"
     "[[ {x} == '{x}' && ! -f {x} ]] && case {x} in *) printf %s {x};; esac"],
)  # fmt: skip
def test_values_mean_themselves_wherever_they_stand(command: str) -> None:
    for number, value in enumerate(AWKWARD):
        body = {"run": command}
        tasks = expand_template("t-{n}", body, {"n": [number], "x": [value]})
        ran = subprocess.run(
            ["bash", "-c", tasks[f"t-{number}"]["run"]], capture_output=True, text=True, check=True
        )
        assert ran.stdout.removeprefix("ab") == value


def test_what_cannot_be_quoted_is_refused() -> None:
    inside = ["cat <<EOF\n{x}\nEOF\n", "echo `echo {x}`", "echo $'{x}'", "cat <<!\n{x}\n!",
              "a[{x}]=1", "cat <<9\n{x}\n9",
              'y="$(case a in a) echo {x};; esac)"', "echo ${y:-{x}}",
              "echo \\{x}", "[[ {x} -eq 1 ]]", "a=(b)# it's\necho {x}"]  # fmt: skip
    for command in inside:
        assert expand_template("t", {"run": command}, {}, {"x": "a-1.b"})
        with pytest.raises(InputError, match="cannot be quoted"):
            expand_template("t", {"run": command}, {}, {"x": "two words"})
    with pytest.raises(InputError, match="cannot be quoted"):
        expand_template("t", {"run": "print('{x}')", "shell": "python3"}, {}, {"x": "it's"})
    for command, value, problem in (
        ("cat <<E\n{x}\nE", "E", "could end it: choose another word"),
        ("cat <<{x}\na", "E", "write the word itself"),
        ("echo # {x}\n", "a\nb", "would begin a new line"),
    ):
        with pytest.raises(InputError, match=problem):
            expand_template("t", {"run": command}, {}, {"x": value})


def test_arithmetic_takes_plain_numbers() -> None:
    def expanded(command: str, value: object) -> str:
        return str(expand_template("t", {"run": command}, {}, {"n": value})["t"]["run"])

    assert expanded("echo $(( {n} + 1 ))", 3) == "echo $(( 3 + 1 ))"
    assert expanded("(( {n} > 1 )) && echo $[{n}]", "-3") == "(( -3 > 1 )) && echo $[-3]"
    assert expanded('echo "$((10#{n} + 1))"', "08") == 'echo "$((10#08 + 1))"'
    for value in ("n", "a[$(date)]", "08", "", "1 2", "0x1"):
        for command in (
            "echo $(( {n} + 1 ))",
            '(( "{n}" ))',
            "for ((i=0; i<{n}; i++)); do :; done",
        ):
            problem = (
                r"stands in arithmetic, where its value .* would be evaluated: choose a plain num"
            )
            with pytest.raises(InputError, match=problem):
                expanded(command, value)


def test_a_number_before_a_redirection_is_a_word() -> None:
    tasks = expand_template("t", {"run": "echo {n}>x {n}"}, {}, {"n": 2})
    assert tasks["t"]["run"] == "echo '2'>x 2"


def test_loops(tmp_path: Path) -> None:
    def names(foreach: str, name: str) -> list[str]:
        return list(read(f"params: {{n: 3}}\ntasks:\n  {name}: {{foreach: {foreach}}}", tmp_path))

    assert names("{i: 1..$n}", "'{i}'") == ["1", "2", "3"]
    assert names("{i: 08..10}", "'{i}'") == ["08", "09", "10"]
    assert names("{i: [a, b], j: 1..2}", "'{i}{j}'") == ["a1", "a2", "b1", "b2"]
    assert names("{zip: {i: [a, b], j: 1..2}}", "'{i}{j}'") == ["a1", "b2"]
    assert names("{k: [x, y], zip: {i: [a, b], j: 1..2}}", "'{k}{i}'") == ["xa", "xb", "ya", "yb"]
    assert names("{i: [{a: 1, b: x}, {a: 2, b: y}]}", "'{i.a}-{i.b}'") == ["1-x", "2-y"]
    for name in ("b_R1.fq", "a_R1.fq"):
        (tmp_path / name).write_text("")
    assert names("{f: glob(*_R1.fq)}", "'{f.match}-{f.stem}-{f}'") == [
        "a-a_R1-a_R1.fq",
        "b-b_R1-b_R1.fq",
    ]
    (tmp_path / "b*_R1.fq").write_text("")  # as an input it would mean the other one, too
    with pytest.raises(InputError, match=r"the file 'b\*_R1.fq' has \* or \? in its name"):
        names("{f: glob(*_R1.fq)}", "'{f.stem}'")


def test_rows_of_a_table(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('name,file,seconds\na,"x, y.fq",1.50\nb,z.fq,2\n')
    text = (
        "tasks:\n  t-{r.name}:\n    foreach: {r: csv(t.csv)}\n    cost: $r.seconds\n"
        "    run: wc {r.file} {r.seconds}\n"
    )
    tasks = read(text, tmp_path)
    assert tasks["t-a"] == {"cost": 1.5, "category": "t", "run": "wc 'x, y.fq' 1.50"}
    assert tasks["t-b"] == {"cost": 2, "category": "t", "run": "wc z.fq 2"}


@pytest.mark.parametrize(
    ("key", "own", "category"),
    [
        ("align-{s}", None, "align"),
        ("{s}", None, None),
        ("{s}.sort_{s}-again", None, "sort-again"),
        ("align-{s}", "x", "x"),
    ],
)
def test_tasks_of_a_loop_are_alike(
    tmp_path: Path, key: str, own: str | None, category: str | None
) -> None:
    said = f", category: {own}" if own else ""
    text = (
        f"tasks:\n  '{key}': {{foreach: {{s: [a, b]}}, run: 'true'{said}}}\n  plain: {{cost: 1}}\n"
    )
    first, second, plain = read(text, tmp_path).values()
    assert first.get("category") == second.get("category") == category
    assert "category" not in plain


def test_values_themselves(tmp_path: Path) -> None:
    text = (
        "params: {threads: 4, refs: [a.fa, b.fa], where: out}\nname: n-{threads}\n"
        "pools: {db: $threads}\ntasks:\n  t:\n    cores: $threads\n    memory: 1GB * {threads}\n"
        "    inputs: [x, $refs]\n    outputs: ['{where}/y']\n    run: cat {inputs} {refs[1]}\n"
    )
    task = read(text, tmp_path)["t"]
    assert task["cores"] == 4
    assert task["inputs"] == ["x", "a.fa", "b.fa"]
    assert task["outputs"] == ["out/y"]
    assert task["run"] == "cat x a.fa b.fa b.fa"


def test_files_gathered_for_each_row_of_another_loop(tmp_path: Path) -> None:
    text = (
        "params: {dir: bam}\ntasks:\n"
        "  align-{s}-{lane}:\n    foreach: {s: [a, b], lane: 1..3}\n"
        "    outputs: ['{dir}/{s}-{lane}.bam']\n"
        "  merge-{s}:\n    foreach: {s: [a, b]}\n    outputs: ['{s}.bam']\n"
        "    inputs: [ref, {all: 'bam/{s}-{lane}.bam', only: [$lane != 2 or $s == c, $lane < 9]}]"
        "\n"
        "    run: cat {inputs}\n"
    )
    tasks = read(text, tmp_path)
    assert sorted(tasks["merge-b"]["inputs"]) == ["bam/b-1.bam", "bam/b-3.bam", "ref"]
    assert tasks["merge-a"]["run"] == "cat ref bam/a-1.bam bam/a-3.bam"


@pytest.mark.parametrize(
    ("condition", "kept"),
    [("$n > 2", True), ("$n <= 2", False), ("$qc", False), ("not $qc", True), ("$m == fast", True),
     ("$m != fast", False), ("$m in [slow, fast]", True), ("$m not in [slow]", True),
     ("[$n == 3, $qc]", False), ("true", True), ("$n >= $k", True),
     ("$m == fast or $n == 2", True), ("$m == slow or $n == 3", True), ("$qc or $n == 2", False),
     ("$n == 3 and $m == fast", True), ("$n == 3 and $qc", False), ("not $qc and $n==3", True),
     ("$n == 3 or $qc and $qc", True), ("($n == 3 or $qc) and $qc", False),
     ("not ($n == 3 and $qc)", True), ("not $n == 3 or $m == fast", True), ("not not $qc", False),
     ("$qc == False", True), ("$qc != TRUE", True), ("$m == two words", False),
     ("$m == 'fast'", True), ("$m == 'rock and (roll)'", False), ('$m in [a b, "fast"]', True),
     ("$r == hg38.fa", True), ("$r == hg38,fa", False), ("$xs[1] == b", True), ("$m in $xs", False),
     ("$n in [1, $k]", True), ("3 in [$n]", True), ("2 < $n", True), ("$n == '3'", True),
     ("$v == 1.10", True), ("$v == '1.1'", False), ("$m == '1'", False), ("$n in [3, b]", True),
     ("$m == OR", False), ("true or $qc", True)],
)  # fmt: skip
def test_conditions(tmp_path: Path, condition: str, kept: bool) -> None:
    text = (
        "params: {n: 3, k: 3, qc: false, m: fast, r: hg38.fa, xs: [a, b], v: '1.10'}\n"
        f"tasks:\n  a: {{cost: 1}}\n  b:\n    if: {condition}\n"
    )
    assert ("b" in read(text, tmp_path)) is kept


@pytest.mark.parametrize(
    ("condition", "problem"),
    [("$n == 3 && $qc", "`&&` is not an operator of conditions: write `and`"),
     ("$qc || $n == 3", "`||` is not an operator of conditions: write `or`"),
     ("$n = 3", "`=` is not an operator of conditions: write `==`"),
     ("$n === 3", "`===` is not an operator of conditions: write `==`"),
     ("$qc and !$qc", "write `not`"), ("$m == n", "write $n"), ("$m in [fast, n]", "write $n"),
     ("n == 3", "write $n"), ("$n == fast", "compares a number (3) with text ('fast')"),
     ("$qc == no", "compares a boolean (false) with text ('no')"),
     ("$qc == 0", "compares a boolean (false) with a number (0)"),
     ("$m == 1", "text ('fast') with a number (1), which are never equal: put 1 in quotes"),
     ("$m == true", "compares text ('fast') with a boolean (true)"),
     ("$n in [a, b]", "compares a number (3) with text ('a')"),
     ("$n in $xs", "compares a number (3) with text ('a')"), ("$xs == a", "$xs is a list"),
     ("$v == 1.1", "equal as numbers, but not as text"), ("$m > 3", "'fast' is not a number"),
     ("$m == rock and roll", "'roll' is not a condition"), ("$m == a(b)", "put text in quotes"),
     ("$m in [slow or fast]", "expected `,` or `]` before 'or'"), ("$m in fast", "expected a list"),
     ("$n == 3 AND $qc", "in small letters"), ("$qc $n", "'$n' does not belong after '$qc'"),
     ("$qc and", "a condition is missing at the end"), ("($qc", "a `)` is missing"),
     ("$m == 'x", "a quote is not closed"), ("1 < $n < 5", "compare twice"),
     ("1 == 1", "does not use a parameter"), ("${m} == fast", "write $name"),
     ("$qc and $m == null", "`null` is not a value"), ("$qc or $nn", "did you mean 'n'"),
     ("(" * 200 + "$qc" + ")" * 200, "nested more than 100 deep")],
)  # fmt: skip
def test_wrong_conditions(tmp_path: Path, condition: str, problem: str) -> None:
    text = (
        "params: {n: 3, qc: false, m: fast, xs: [a, b], v: '1.10'}\n"
        f"tasks:\n  a: {{cost: 1}}\n  b:\n    if: {condition}\n"
    )
    with pytest.raises(InputError, match=r": line 5: tasks\.b\.if: ") as caught:
        read(text, tmp_path)
    assert problem in str(caught.value)


def test_conditions_on_values_of_several_kinds(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("lane,paired,depth\n1,yes,TRUE\n02,no,2.50\nX,no,n/a\n")

    def lanes(condition: str, over: str = "csv(t.csv)", name: str = "r.lane") -> list[str]:
        text = f"tasks:\n  a: {{}}\n  t-{{{name}}}: {{foreach: {{r: {over}}}, if: {condition}}}\n"
        return [task.removeprefix("t-") for task in read(text, tmp_path)][1:]

    assert lanes("$r.lane == X or $r.lane == 1") == ["1", "X"]
    assert lanes("$r.lane != 1 and $r.paired == no") == ["02", "X"]
    assert lanes("$r.depth == 2.5 or $r.depth == true") == ["1", "02"]
    assert lanes("$r.depth != n/a and $r.depth != true and $r.depth > 2") == ["02"]
    assert lanes("$r == X or $r == 2", "[1, 2, X]", "r") == ["2", "X"]
    assert lanes("$r == 10 or $r < 3", "08..10", "r") == ["10"]
    assert lanes("$r.stem == t", "glob(*.csv)", "r.stem") == ["t"]
    assert lanes("$r.stem == 1", "glob(*.csv)", "r.stem") == []
    for condition, over, name, problem in (
        ("$r.paired == true", "csv(t.csv)", "r.lane", "text ('yes') with a boolean (true)"),
        ("$r.lane == 2", "csv(t.csv)", "r.lane", "equal as numbers, but not as text"),
        ("$r == x", "1..3", "r", "a number (1) with text ('x')"),
        ("$r == 1", "[a, b]", "r", "text ('a') with a number (1)"),
        ("$r == 1", "csv(t.csv)", "r.lane", "$r has fields: write $r.lane, $r.paired, $r.depth"),
    ):
        with pytest.raises(InputError) as caught:
            lanes(condition, over, name)
        assert problem in str(caught.value)


def test_a_condition_may_be_of_the_loop(tmp_path: Path) -> None:
    text = "tasks:\n  a-{i}: {foreach: {i: 1..5}, if: $i != 3}\n"
    assert list(read(text, tmp_path)) == ["a-1", "a-2", "a-4", "a-5"]


def test_defaults_of_a_category(tmp_path: Path) -> None:
    text = (
        "defaults: {retries: 1, memory: 1GB, categories: {big: {retries: 3, memory: 8GB}}}\n"
        "tasks:\n  a: {category: big}\n  b: {category: small}\n  c: {category: big, retries: 0}\n"
    )
    (tmp_path / "wf.yaml").write_text(text)
    workflow = formats.load(tmp_path / "wf.yaml")
    assert [workflow.spec(i).retries for i in range(3)] == [3, 1, 0]
    memory = [workflow.spec(i).request.memory.text for i in range(3)]  # type: ignore[union-attr]
    assert memory == ["8GB", "1GB", "8GB"]
    again = formats.load(workflow_to_dict(workflow))
    assert dict(again.specs) == dict(workflow.specs)


def test_included_files(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/common.yaml").write_text(
        "params: {n: 1, m: 2}\nshell: sh\ndefaults: {retries: 2, categories: {x: {cores: 2}}}\n"
    )
    (tmp_path / "lib/old.yaml").write_text(
        "include: common.yaml\nshell: bash\ntasks:\n  old: {run: 'echo {{input}} {n}'}\n"
        "files: {big: 5}\n"
    )
    text = (
        "include: [lib/old.yaml, lib/common.yaml]\nparams: {n: 7}\ndefaults: {timeout: 9}\n"
        "tasks:\n  new: {run: 'echo {n} {m}', category: x, inputs: [big]}\n"
    )
    tasks = read(text, tmp_path)
    assert list(tasks) == ["old", "new"]
    assert tasks["old"] == {"run": "echo {{input}} 7", "shell": "bash", "retries": 2}
    assert tasks["new"]["run"] == "echo 7 2"
    assert tasks["new"]["shell"] == "sh"
    assert (tasks["new"]["retries"], tasks["new"]["timeout"], tasks["new"]["cores"]) == (2, 9, 2)


def test_values_found_later() -> None:
    loop = {"part": matched_paths(["p/b.txt", "p/a.txt"], "p/*.txt")}
    body = {"foreach": "not looked at", "run": "wc {input} > {output} # {k}", "inputs": ["{part}"],
            "outputs": ["{part.stem}.n"]}  # fmt: skip
    tasks = expand_template("count-{part.stem}", body, loop, {"k": 3})
    assert list(tasks) == ["count-a", "count-b"]
    assert tasks["count-b"] == {
        "run": "wc p/b.txt > b.n # 3", "category": "count", "inputs": ["p/b.txt"],
        "outputs": ["b.n"],
    }  # fmt: skip
    assert expand_template("count-{part.stem}", body, {"part": []}, {}) == {}


OVER, FOREACH = "tasks.a-{i}.foreach.i", "tasks.a-{i}.foreach"
LOOP = "tasks:\n  a-{i}:\n    foreach: {i: 1..3}\n"
GATHER = LOOP + "    outputs: ['o{i}']\n  b:\n    inputs: "
BAD = [
    ("params: {x: 1}\ntasks:\n  a-{i}:\n    foreahc: {i: 1..2}", 4, "tasks.a-{i}", "'foreach'?"),
    ("parms: {x: 1}\ntasks:\n  a: {}", 1, "", "(did you mean 'params'?)"),
    ("params: {xs: [a]}\ntasks:\n  a-{i}:\n    foreach: {i: $x}", 4, OVER, "'xs'?"),
    (LOOP + "    inputs:\n      - x\n      - 'b/{j}'", 6, "tasks.a-{i}.inputs[1]", "variable 'j'"),
    ("params: {xs: []}\ntasks:\n  a-{i}:\n    foreach: {i: $xs}", 4, OVER, "empty"),
    ("tasks:\n  a-{i}:\n    foreach: {i: 3..1}", 3, OVER, "is empty"),
    ("tasks:\n  a-{i}:\n    foreach: {i: [1, 2, 1]}", 2, "tasks.a-{i}", "are called 'a-1'"),
    (LOOP + "  a-2: {}", 4, "tasks.a-2", "are called 'a-2': the other is in line 2"),
    ("tasks:\n  a-{i}:\n    foreach: {i: glob(no/*.fq)}", 3, OVER, "no file matches"),
    ("tasks:\n  a-{i}:\n    foreach: {i: glob(/proc/**/*)}", 3, OVER, "leaves the run's directory"),
    ("tasks:\n  a-{i}:\n    foreach: {i: glob(x/../../*)}", 3, OVER, "leaves the run's directory"),
    ("tasks:\n  a:\n    foreach: {i: 1..3}", 3, "tasks.a.foreach", "must hold {i}"),
    ("tasks:\n  a-{i}:\n    foreach: {i: 1..3, j: [x]}", 3, FOREACH, "must hold {j}"),
    ("tasks:\n  a-{i}:\n    foreach: {zip: {i: 1..3, j: [x]}}", 3, FOREACH, "i has 3, j has 1"),
    (LOOP + "    inputs: [x]\n    run: cat {inputs[1]}", 5, "tasks.a-{i}.run", "inputs has 1"),
    (LOOP + "    inputs: [x, y]\n    run: cat {input}", 5, "tasks.a-{i}.run", "has 2 inputs"),
    (LOOP + "    run: cat {output}", 4, "tasks.a-{i}.run", "has no outputs"),
    (LOOP + "    cost: fast", 4, "tasks.a-{i}.cost", "not 'fast' (in a-1)"),
    (LOOP + "    outputs: [x]", 4, "tasks.a-{i}.outputs", "both 'a-1' (line 2) and 'a-2'"),
    (LOOP + "    outputs: ['o{i}']\n  b: {run: cat o2}", 5, "tasks.b.run", "a-2 (line 2) makes"),
    (GATHER + "{all: 'o{j}'}", 6, "tasks.b.inputs.all", "'o{i}'?"),
    (GATHER + "{all: 'o{i}', only: $i > 5}", 6, "tasks.b.inputs", "nothing to gather"),
    (GATHER + "{all: 'o{i}', only: i > 5}", 6, "tasks.b.inputs.only", "write $i"),
    (GATHER + "{all: 'o{i}', only: [$i > 1, $i = 2]}", 6, "tasks.b.inputs.only[1]", "write `==`"),
    ("params: {n: 3}\ntasks:\n  a:\n    if: $m > 2", 4, "tasks.a.if", "variable 'm'"),
    ("params: {n: 3}\ntasks:\n  a:\n    if: $n", 4, "tasks.a.if", "neither true nor false"),
    ("params: {n: }\ntasks:\n  a:\n    run: echo {n}", 4, "tasks.a.run", "--set n=VALUE"),
    ("params: {input: 3}\ntasks:\n  a: {}", 1, "params", "a task's files"),
    ("params:\n  x: {a: 1}\ntasks:\n  a: {}", 2, "params.x", "a value or a list"),
    ("params: {xs: [a]}\ntasks:\n  a:\n    category: '{xs}'", 4, "tasks.a.category", "is a list"),
    ("include: no.yaml\ntasks:\n  a: {}", 1, "include", "no such file"),
    ("include: wf.yaml\ntasks:\n  a: {}", 1, "include", "includes itself"),
    (LOOP + "    inputs: ['o{i}']\n    outputs: ['p{i}']\n  b-{i}:\n    foreach: {i: 1..3}\n"
     "    inputs: ['p{i}']\n    outputs: ['o{i}']", 2, "tasks.a-{i}", "cycle: a-1 -> b-1"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "place", "problem"), BAD)
def test_mistakes_are_told_at_the_template(
    tmp_path: Path, text: str, line: int, place: str, problem: str
) -> None:
    with pytest.raises(InputError) as caught:
        read(text + "\n", tmp_path)
    told = str(caught.value)
    assert "\n" not in told
    assert problem in told
    at = f": {place}: " if place else ": "
    assert told.startswith(f"{tmp_path / 'wf.yaml'}: line {line}{at}")


def test_a_mistake_in_an_included_file_names_that_file(tmp_path: Path) -> None:
    (tmp_path / "in.yaml").write_text("tasks:\n  x-{i}:\n    foreach: {i: 1..2}\n    cost: -1\n")
    with pytest.raises(InputError, match=r"in\.yaml: line 4: tasks\.x-\{i\}\.cost: .*in x-1"):
        read("include: in.yaml\n", tmp_path)


@pytest.mark.parametrize(
    ("given", "problem"),
    [({"dept": 1}, "unknown parameter 'dept' (did you mean 'depth'?)"),
     ({"depth": "deep"}, "the parameter depth is a number (30), not 'deep'"),
     ({"samples": "s1"}, "the parameter samples is a list"),
     ({"depth": None}, "the parameter depth is a number")],
)  # fmt: skip
def test_wrong_values_of_parameters(tmp_path: Path, given: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError, match=r"wf\.yaml: ") as caught:
        read(MAPPING, tmp_path, params=given)
    assert problem in str(caught.value)


def test_numbers_stand_in_commands_as_they_are_written(tmp_path: Path) -> None:
    text = (
        "params: {n: 1e3, v: [1.10, 2.50], k: 0.5}\n"
        "tasks:\n  a-{x}: {foreach: {x: $v}, run: 'echo {n} {x} {k}', cost: $n, timeout: $x}\n"
    )
    assert runs(text, tmp_path) == {"a-1.10": "echo 1e3 1.10 0.5", "a-2.50": "echo 1e3 2.50 0.5"}
    given = {"n": "2E+2", "v": [parse_yaml("3.0e0")]}
    tasks = read(text, tmp_path, params=given)
    fields = tasks["a-3.0e0"]
    assert fields["run"] == "echo 2E+2 3.0e0 0.5"
    assert (fields["cost"], fields["timeout"]) == (200.0, 3.0)
    kept = Options(params=given).to_dict()["params"]  # a resume reads them as they were
    again = Options.from_dict({"params": json.loads(json.dumps(kept))}, tmp_path).params
    assert read(text, tmp_path, params=again) == tasks
    assert "timeout: 3.0" in dump_yaml({"timeout": parse_yaml("3.0e0")})
    assert pickle.loads(pickle.dumps(parse_yaml("1e3"))) == 1000.0


def test_blanks_around_cells_do_not_count(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("name , file\na , x.fq \n")
    text = "tasks:\n  t-{r.name}: {foreach: {r: csv(t.csv)}, run: 'cat {r.file}'}\n"
    assert runs(text, tmp_path) == {"t-a": "cat x.fq"}


def test_a_text_stays_a_text(tmp_path: Path) -> None:
    text = "params: {version: '1.10'}\ntasks:\n  a: {run: 'echo {version}'}\n"
    assert runs(text, tmp_path, params={"version": "1.20"}) == {"a": "echo 1.20"}
    with pytest.raises(InputError, match="is a text"):
        read(text, tmp_path, params={"version": 1.2})
