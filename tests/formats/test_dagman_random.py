"""Random DAGMan files: what is written is what was there, byte for byte, and the new lines."""

import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from foreplan.errors import InputError
from foreplan.formats.dagman import read_dag
from foreplan.formats.dagman_write import Style, with_priorities

SOME = settings(max_examples=100, deadline=None)
BLANK = st.sampled_from([b" ", b"  ", b"\t", b" \t "])
ENDS = st.sampled_from([b"\n", b"\n", b"\r\n", b" \n", b"\t\r\n"])
NOISE = st.binary(max_size=12).map(lambda raw: raw.replace(b"\n", b"").replace(b"\0", b""))
NAMES = st.text(
    st.characters(codec="utf-8", categories=["L", "N", "P", "S"], exclude_characters='+"\\'),
    min_size=1,
    max_size=5,
).filter(lambda name: name.upper() not in ("PARENT", "CHILD", "ALL_NODES") and name[0] not in "{@#")


@dataclass
class Sample:
    """A file, the parts of it that give priorities, and what they give."""

    parts: list[bytes] = field(default_factory=list)
    others: list[bytes] = field(default_factory=list)  # the parts that give none
    jobs: list[str] = field(default_factory=list)
    macros: set[str] = field(default_factory=set)  # jobs with a priority by VARS
    priorities: dict[str, int] = field(default_factory=dict)

    @property
    def raw(self) -> bytes:
        return b"".join(self.parts)


@st.composite
def part(draw: st.DrawFn, *words: str) -> bytes:
    """Words as a line, in any case where they may be, which may go on in others."""
    first = draw(st.sampled_from([words[0].upper(), words[0].lower(), words[0].title()]))
    pieces = [first, *words[1:]]
    raw = draw(st.sampled_from([b"", b" ", b"\t"])) + pieces[0].encode()
    for word in pieces[1:]:
        raw += draw(BLANK)
        if draw(st.integers(0, 5)) == 0:
            raw += b"\\" + draw(ENDS) + draw(st.sampled_from([b"", b"  "]))
        raw += word.encode()
    return raw + draw(ENDS)


@st.composite
def samples(draw: st.DrawFn) -> Sample:
    """A file of a few jobs, arcs, comments, inline descriptions and priorities."""
    sample = Sample(jobs=draw(st.lists(NAMES, min_size=1, max_size=6, unique=True)))

    def add(raw: bytes, gives: bool = False) -> None:
        sample.parts.append(raw)
        if not gives:
            sample.others.append(raw)

    for i, job in enumerate(sample.jobs):
        if draw(st.booleans()):
            add(draw(part("JOB", job, f"{i}.sub")))
        else:
            add(f"JOB {job} {{\n PRIORITY {job} 3 \\\n x\n}}\n".encode())
        for _ in range(draw(st.integers(0, 3))):
            earlier, name = draw(st.sampled_from(sample.jobs[: i + 1])), job
            match draw(st.integers(0, 6)):
                case 0:
                    add(b"#" + draw(NOISE) + draw(ENDS))
                case 1:
                    add(draw(ENDS))
                case 2:
                    add(draw(part("VARS", name, 'x="a \\"b\\""', "Y", "=", '"2"')))
                case 3 if earlier != name:
                    add(draw(part("PARENT", earlier, "CHILD", name)))
                case 4:
                    number = draw(st.integers(-9, 9))
                    add(draw(part("PRIORITY", earlier, str(number))), gives=True)
                    sample.priorities[earlier] = number
                case 5:
                    add(draw(part("VARS", earlier, 'JOBPriority="4"')), gives=True)
                    sample.macros.add(earlier)
                case _:
                    add(draw(part("RETRY", "ALL_NODES", "2")))
    return sample


@SOME
@given(
    sample=samples(),
    cut=st.booleans(),
    style=st.sampled_from(["priority", "vars"]),
    replace=st.booleans(),
    data=st.data(),
)
def test_all_other_lines_stay(
    sample: Sample, cut: bool, style: Style, replace: bool, data: st.DataObject
) -> None:
    raw = sample.raw.rstrip(b"\r\n") if cut else sample.raw
    order = data.draw(st.permutations(range(1, len(sample.jobs) + 1)))
    wanted = dict(zip(sample.jobs, order, strict=True))
    with tempfile.TemporaryDirectory() as folder:
        path, output = Path(folder) / "x.dag", Path(folder) / "y.dag"
        path.write_bytes(raw)
        before = read_dag(path)
        report = with_priorities(path, wanted, replace=replace, style=style, output=output)
        assert path.read_bytes() == raw
        result, after = output.read_bytes(), read_dag(output)
    had = sample.macros | sample.priorities.keys()
    kept = set() if replace else had
    assert set(report.kept) == kept
    assert report.priorities == {j: n for j, n in wanted.items() if j not in kept}
    # the bytes
    other = b"".join(sample.others) if replace and had else raw
    stays = other.rstrip(b"\r\n") if cut and replace else other
    assert result.startswith(stays)
    added = result[len(stays) :].replace(b"\r\n", b"\n").strip(b"\n \t").split(b"\n")
    form = "PRIORITY {} {}" if style == "priority" else 'VARS {} JobPriority="{}"'
    lines = [form.format(job, n).encode() for job, n in report.priorities.items()]
    assert [line for line in added if line] == lines
    # and what they mean
    assert [n.name for n in after.nodes] == [n.name for n in before.nodes]
    assert after.parents.tolist() == before.parents.tolist()
    assert after.children.tolist() == before.children.tolist()
    assert after.retries == before.retries
    said = {after.nodes[i].name: number for i, (number, _) in after.priorities.items()}
    mine = report.priorities if style == "priority" else {}
    assert said == ({} if replace else sample.priorities) | mine
    macros = {after.nodes[i].name for i in after.macros}
    assert macros == (set() if replace else sample.macros) | (
        set(report.priorities) if style == "vars" else set()
    )


@SOME
@given(sample=samples(), data=st.data())
def test_mangled_files(sample: Sample, data: st.DataObject) -> None:
    """Read or refused, and if refused nothing is written; the bytes need not be text."""
    raw = sample.raw
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(raw)))
        new = st.sampled_from(
            [b"\\\n", b"\n", b"\r", b'"', b" ", b"{", b"}", b"\xff", b"\0", b"+", b"#"]
        )
        gap = data.draw(st.integers(0, 4))
        raw = raw[:at] + data.draw(new) + raw[at + gap :]
    with tempfile.TemporaryDirectory() as folder:
        path, output = Path(folder) / "x.dag", Path(folder) / "y.dag"
        path.write_bytes(raw)
        try:
            dag = read_dag(path)
        except InputError:
            with pytest.raises(InputError) as caught:
                with_priorities(path, {}, output=output)
            assert not output.exists()
            event("refused")
            assert str(caught.value).startswith(f"{path}: line ")
            return
        wanted = {dag.nodes[i].name: n for n, i in enumerate(dag.waiting())}
        report = with_priorities(dag, wanted, output=output)
        assert output.read_bytes().startswith(raw)
        after = read_dag(output)
        assert path.read_bytes() == raw
    assert [node.name for node in after.nodes] == [node.name for node in dag.nodes]
    assert after.retries == dag.retries
    said = {after.nodes[i].name: number for i, (number, _) in after.priorities.items()}
    assert said.items() >= report.priorities.items()
    assert set(report.priorities) | set(report.kept) == wanted.keys()
