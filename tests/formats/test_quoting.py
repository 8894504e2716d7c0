"""No value of a command is ever run: generated commands and hostile values, in real shells."""

from __future__ import annotations

import random
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from foreplan.errors import InputError
from foreplan.formats.templates import expand_template
from repeated import repetitions

HOSTILE = [
    "pwn", "E", "!", "9", "3", "08", "", "E F", "$(pwn)", "`pwn`", "a[$(pwn)]", "; pwn #",
    "';pwn;'", '";pwn;"', "';pwn;#\\", "\npwn\n", "x'\npwn\n'", ");pwn;(", "));pwn;((",
    "}; pwn; {", "\\", "it's",
]  # fmt: skip
WORDS = [
    "{v}", "{w}", '"{v}"', "'{v}'", "a{v}b", "{v}{w}", '"a {v} {w}"', "'{v}'\"{w}\"{v}", '"{v}',
    "'{v}", "\\{v}", '"\\{v}"', "'\\{v}'", "$$'{v}'", "\\$'{v}'", "$'{v}'", "$'it\\'s {v}'",
    '$"{v}"', "\\'{v}", '\\"{v}', "\\\\{v}", "`echo {v}`", "`echo '{v}'`", '"`echo {v}`"',
    "`date '+`'", "$(CMD)", '"$(CMD)"', "$( (CMD) )", "$((CMD) )", "$((CMD))", "$(( {v} + 1 ))",
    '"$(( {v} ))"', "$((1 << 2))", "$((10#{v}))", '$(( "{v}" ))', "$(( $(CMD) + {v} ))",
    "$[ {v} ]", "$[1]{v}", "${x:-{v}}", '"${x:-{v}}"', "${x#{v}}", '"${x:-"{v}"}"',
    "\"${x:-it's}\"", "${#x}", "$#", "a#b", "{v}#it's", '"#"', "${x:-$(CMD)}", "${x:{v}}",
    "<(CMD)", "it\\'s", "\"it's\"", "'say \"'", "a[{v}]", "${a[{v}]}", "$a[{v}]", "case", "esac",
    "in", "[[", "]]", "{", "}", "!", "@(a|{v})", "@(#a)", "a\\\n{v}", "\\\n{v}", "~{v}", "x={v}",
    "--x={v}", "{v}>/dev/null", "2>&1", "</dev/null", "-eq", "{inputs}", "{inputs}#it's",
    '"{inputs}"',
]  # fmt: skip
COMMANDS = [
    "echo WORD", "echo WORD WORD", ": WORD WORD WORD", "true", "x={v}", ": x=WORD", "a[{v}]=1",
    'a["{v}"]=1', "a=(WORD WORD)", "a=(1)# it's\nCMD", "(CMD)# it's\nCMD", "(CMD)", "{ CMD; }",
    "CMD; CMD", "CMD\nCMD", "CMD && CMD", "CMD | cat", "CMD # it's {v} \"\nCMD", "CMD;# \"'\nCMD",
    "# {v}\nCMD", "echo a \\\n  WORD", "echo \\\n# it's\nCMD", "(( {v} > 3 ))", '(( "{v}" ))',
    "((CMD))", "((CMD); CMD)", "for ((i=0; i<{v}; i++)); do break; done",
    "for i in WORD; do CMD; done", "if CMD; then CMD; fi",
    "case WORD in a) CMD;; (b) CMD;; *) CMD;; esac", "case {v} in {w}) CMD;; esac",
    "echo WORD $(case a in a) CMD;; esac) WORD", ': "$(case a in a) echo {v};; esac)"',
    "[[ {v} -eq 3 ]]", '[[ "{v}" -lt 3 ]]', "[[ 3 -gt {v} && {w} == a ]]",
    "[[ {v} == a || $(CMD) -eq {w} ]]", "[[ -f {v} ]]", "[[ {v} =~ ^(a|{w})$ ]]", "[ {v} -eq 3 ]",
    "test {v} = {w}", "cat <<E\n{v}\n{w}\nE\nCMD", "cat <<!\n{v}\n{w}\n!\nCMD",
    "cat <<9\n{v} it's\n9\nCMD", "cat <<-'E F'\n\t{v}\nE F\nCMD",
    'cat << "E"; CMD\n{v}{w}\n{v}\nE\nCMD', "cat <<E{v}\n{w}\nE\n", "cat <<\\E\n{v}\n{w}\nE",
    "cat <<$x\n{v}\n$x\nCMD", "echo $(cat <<E\nit's {v}\nE\n) WORD", "cat <<<WORD",
    "cat <<<{v}\nCMD", "f() { CMD; }\nf", "f()# it's\n(CMD)", "CMD <#it's\nCMD",
    "CMD >/dev/null# it's\n", "echo {v} >#it's\nCMD", "echo {v}>/dev/null", 'cat <<E "{v}"\nE\n',
]  # fmt: skip
SHELLS = [shell for shell in ("bash", "dash") if shutil.which(shell)]


def generate(choice: random.Random, text: str = "CMD", depth: int = 0) -> str:
    """Return a command: every CMD and WORD of a text replaced by a random one."""
    while "CMD" in text or "WORD" in text:
        which = "CMD" if "CMD" in text else "WORD"
        simple = depth > 3
        depth += 1
        if which == "CMD":
            text = text.replace(which, "echo {v}" if simple else choice.choice(COMMANDS), 1)
        else:
            text = text.replace(which, choice.choice(WORDS[:5] if simple else WORDS), 1)
    return text


def executed(commands: list[str], shell: str, folder: Path) -> set[int]:
    """Return the numbers of the commands that have run `pwn`; all run in one process."""
    lines = ["exec 3>&1", "pwn() { echo $k >&3; }", "cat() { :; }"]
    for k, command in enumerate(commands):
        lines.append(f"k={k}; ( eval {shlex.quote(command)} ) </dev/null >/dev/null 2>&1")
    script = "\n".join(lines)
    ran = subprocess.run(
        [shell], input=script, capture_output=True, text=True, check=False, cwd=folder
    )
    return {int(line) for line in ran.stdout.split()}


def filled(command: str, shell: str, **values: str) -> str | None:
    """Return a command with these values; None if they are refused."""
    try:
        body = {"run": command, "inputs": [], "shell": shell}
        return str(expand_template("t", body, {}, values)["t"]["run"])
    except InputError:
        return None


@pytest.mark.parametrize("shell", SHELLS)
def test_no_value_is_run(shell: str, tmp_path: Path) -> None:
    choice = random.Random(0)
    words = [f"echo {word}; echo {{w}} '{{v}}'" for word in WORDS]
    commands = dict.fromkeys((generate(choice, text, 4) for text in (*COMMANDS, *words)), HOSTILE)
    for seed in repetitions(60, 20):
        commands.setdefault(generate(random.Random(seed)), choice.sample(HOSTILE, 4))
    # a plain word that is run stands where the command itself has a command
    plain = [
        (c, text) for c in commands if (text := filled(c, shell, v="pwn", w="pwn")) is not None
    ]
    for k in executed([text for _, text in plain], shell, tmp_path):
        del commands[plain[k][0]]
    tried: list[tuple[str, str]] = []
    for command, hostile in commands.items():
        for v in hostile:
            w = choice.choice(("pwn", "pwn", choice.choice(HOSTILE)))
            text = filled(command, shell, v=v, w=w)
            if text is not None:
                tried.append((text, f"{command!r} with {v!r} and {w!r}"))
    found = executed([text for text, _ in tried], shell, tmp_path)
    assert not found, "\n".join(tried[k][1] for k in found)
    assert len(tried) > len(commands)
