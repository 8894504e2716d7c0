"""Commands as text: their shells, and the files and patterns that they name."""

from __future__ import annotations

import pytest

from foreplan.errors import InputError
from foreplan.shell import named_files, named_patterns, shell_words


@pytest.mark.parametrize(
    ("shell", "words"),
    [
        ("bash", ["bash", "-c"]),
        ("/bin/zsh -e", ["/bin/zsh", "-e", "-c"]),
        ("sh -c", ["sh", "-c"]),
        ("bash -euo pipefail -c", ["bash", "-euo", "pipefail", "-c"]),
        ("bash -lc", ["bash", "-lc"]),
        ("python3.12", ["python3.12", "-c"]),
        ("perl -e", ["perl", "-e"]),
        ("apptainer exec 'my image.sif' sh -c", ["apptainer", "exec", "my image.sif", "sh", "-c"]),
    ],
)
def test_the_words_of_a_shell(shell: str, words: list[str]) -> None:
    assert shell_words(shell) == words


@pytest.mark.parametrize("shell", ["", "  ", "bash 'x", "''", "a\0b"])
def test_no_shell(shell: str) -> None:
    with pytest.raises(InputError, match="is no shell"):
        shell_words(shell)


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("cat table.csv", {"table.csv"}),
        ("sort <table.csv>out", {"table.csv", "out"}),
        ("tool --in=table.csv --out='my out'", {"table.csv", "my out"}),
        ("cat ./a//b.csv 'c d' e\\ f", {"a/b.csv", "c d", "e f"}),
        ("sh -c 'cat inner.txt'", {"inner.txt"}),
        ("cat year=2020/x.csv", {"year=2020/x.csv", "2020/x.csv"}),
        ("cat a \\\n  b \\\nc", {"a", "b", "c"}),
        ("for f in a b; do cat $(cat list); done", {"a", "b", "list"}),
        ('echo "it\'s" x; cat y', {"x", "y"}),
        ("cat <<EOF\ndon't\nEOF\ncat z", {"z"}),  # the shell knows where a quote ends, we do not
    ],
)
def test_names(command: str, names: set[str]) -> None:
    assert names <= set(named_files(command))


@pytest.mark.parametrize(
    "command",
    [
        "sort -o old.txt new",
        "sort -o ./old.txt new old.txt",
        "sort new \\\n  -o 'old.txt'",
        "sh -c 'sort -o old.txt new'",
    ],
)
def test_the_word_after_o_is_no_name(command: str) -> None:
    found = named_files(command)
    assert "new" in found
    assert "old.txt" not in found
    assert "old.txt" in named_files("grep -o x -- old.txt")


def test_comments_and_parts_of_words_are_no_names() -> None:
    found = named_files("cat a#b mytable.csv old-table.csv # table.csv isn't read\ncat x")
    assert {"a#b", "mytable.csv", "old-table.csv", "x"} <= set(found)
    assert not {"table.csv", "read", "b"} & set(found)


@pytest.mark.parametrize(
    ("command", "patterns"),
    [
        ("cat data/*.csv", ["data/*.csv"]),
        ("ls ./part-??.gz [ab].txt", ["[ab].txt", "part-??.gz"]),
        ("for f in *.csv; do cat $f; done", ["*.csv"]),
        ("files=(*.csv); ls $(ls *.txt)", ["*.csv", "*.txt"]),
        ("FILES=*.csv; cat $FILES", ["*.csv"]),
        ("cat 'my dir'/*.csv \"a[1]\"*", ["a[[]1]*", "my dir/*.csv"]),
        ("cat a \\\n*.csv", ["*.csv"]),
        ("cat '*.csv' \"*\" \\*.txt", []),
        ("awk '{print $1 * $2}' x | grep -c 'a.*b'", []),
        ("case $x in *.csv) a;; b|*) c;; esac", []),
        ("[[ $x == *.csv ]] || test $x != *.txt", []),
        ("echo $((2 * 3)); (( x = a * b ))", []),
        ("if [ -f x ]; then echo $? $#; fi", []),
        ("tar --exclude=*.o -cf x.tar y", ["--exclude=*.o"]),  # which is no relative path
        ("cat $dir/*.csv ${x%*.csv}", []),
        ("cat x # *.csv", []),
    ],
)
def test_patterns(command: str, patterns: list[str]) -> None:
    assert named_patterns(command) == patterns
