"""Redirections in the text of commands."""

from __future__ import annotations

import pytest

from foreplan.redirections import redirection_targets


@pytest.mark.parametrize(
    "command",
    [
        "echo a > b",
        "echo a>>b",
        "x >| b",
        "x &> b",
        "x &>>./b",
        "x 2> 'b'",
        'x 2>"b"',
        "x >& b",
        "x 2>&1 >b",
        "x > \\\n b",
        "x 3<> b",
        "exec {fd}> b",
        "x <a|y>b",
        ">b",
        "(x > b)",
        "{ x; } > b",
        "f() { x > b; }",
        "a=(1 2) > b",
        "for f in 1 2; do x > b; done",
        "case x in a) y > b;; esac",
        'y="$(x > b)"',
        "y=`x > b`",
        "x > >(tee y > b)",
        "diff <(a > b) <(c)",
        "bash -c 'x > b'",
        'nice /bin/sh -ec "x > b"',
        "[[ a > c ]] && x > b",
        "if (( a > 5 )); then x > b; fi",
        "cat <<E > b\na > c\nE",
        "cat <<-'E'\n\ta > c\n\tE\nx >b",
        "cat <<< 'a > c' > b",
        "echo a#c > b # > c",
        "(cd d; x > c); y > b",
        "cat cd-rom > b; cd d",
        "test 1 > b",  # which is no comparison
        "echo [[ > b",
    ],
)
def test_targets_are_found(command: str) -> None:
    assert redirection_targets(command) == {"b"}


@pytest.mark.parametrize(
    "command",
    [
        "x 2>&1",
        "x >&2 2>&-",
        "x > $V; x > ${V}b; x > $(y)",
        'x > "$V/b"',
        "x > b*; x > {a,b}; x > ~/b",
        "awk '$1 > 5' x",
        'awk "\\$1 > 5" x',
        "python -c 'a > b'",
        "echo \\> b",
        "if ! [[ a > b ]]; then :; fi",
        "while (( a >> 5 )); do x; done",
        "for ((i = 0; i > 3; i++)); do x; done",
        "echo $(( a > b )) $'a > b' ${x:-a > b}",
        "cat <<'E'\na > b\nE",
        "echo a # > b",
        "x > >(tee b)",
        "echo 'never closed > b",
        "x 2>&1 | tee b",
        "cd d; x > b",
        "mkdir d && cd d && bash -c 'x > b'",
        "if pushd d; then x > b; fi",
    ],
)
def test_other_signs_and_unknown_names_are_not_targets(command: str) -> None:
    assert not redirection_targets(command)
