"""DOT as daggen writes it: nodes with a `size` in flop, edges with a `size` in bytes.

A cost of one second at speed 1 is taken to be 10^9 flop. A node's `alpha` (the part of it that
cannot run in parallel) is checked and left out: a task runs on one processor here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from weft.errors import InputError
from weft.formats.fields import amount, shown, unknown, wrong_line
from weft.model import Item, Workflow

FLOP_PER_SECOND = 1e9  # of a processor of speed 1

_TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*|\#[^\n]*|/\*.*?\*/)
      |(?P<arrow>->)
      |(?P<mark>[\[\]{}=,;])
      |"(?P<quoted>(?:[^"\\]|\\.)*)"
      |(?P<word>[A-Za-z_\u0080-\U0010ffff][\w]*|-?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?))""",
    re.VERBOSE | re.DOTALL,
)
_NAMES = ("word", "quoted")
_KEYWORDS = frozenset({"graph", "node", "edge", "subgraph", "strict", "digraph"})


class _Token(NamedTuple):
    """A piece of the text: its kind, its text and its line."""

    kind: str
    text: str
    line: int


@dataclass
class _Graph:
    """What has been read: costs by node, volumes by pair of nodes, and where each was seen."""

    costs: dict[str, float] = field(default_factory=dict)
    volumes: dict[tuple[str, str], float] = field(default_factory=dict)
    lines: dict[tuple[str, str], int] = field(default_factory=dict)


def parse_dot(text: str, name: str = "") -> Workflow:
    """A workflow from the text of a DOT file."""
    tokens = list(_tokens(text))
    if len(tokens) == 1:
        raise InputError("the file is empty")
    reader = _Reader(tokens)
    title = reader.read_header()
    graph = reader.read_statements()
    index = {node: i for i, node in enumerate(graph.costs)}
    for pair, line in graph.lines.items():
        for node in pair:
            if node not in index:
                raise wrong_line(f"the node {shown(node)} has no size", line)
    if not index:
        raise wrong_line("the workflow has no tasks", tokens[-1].line)
    items = [Item(v, index[a], (index[b],)) for (a, b), v in graph.volumes.items()]
    return Workflow.from_items(name or title, list(index), graph.costs.values(), items)


def _tokens(text: str) -> Iterator[_Token]:
    at, line = 0, 1
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise wrong_line(f"unexpected {shown(text[at : at + 20])}", line)
        kind = str(found.lastgroup)
        if kind == "quoted":
            yield _Token("quoted", re.sub(r'\\(["\\])', r"\1", found["quoted"]), line)
        elif kind != "space":
            yield _Token(kind, found[0], line)
        line += found[0].count("\n")
        at = found.end()
    yield _Token("end", "the end of the file", line)


class _Reader:
    """Reads the statements one token after another."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens, self._at = tokens, 0

    def read_header(self) -> str:
        """`digraph NAME {`."""
        if self._next_is("strict"):
            self._take()
        if not self._next_is("digraph"):
            raise self._unexpected("'digraph'")
        self._take()
        title = self._take().text if self._peek().kind in _NAMES else ""
        self._expect("{")
        return title

    def read_statements(self) -> _Graph:
        """Everything up to the closing brace."""
        graph = _Graph()
        while not self._next_is("}"):
            if self._next_is(";"):
                self._take()
                continue
            self._read_statement(graph)
        self._take()
        if self._peek().kind != "end":
            raise self._unexpected("nothing more")
        return graph

    def _read_statement(self, graph: _Graph) -> None:
        token = self._take_name("a node")
        if token.kind == "word" and token.text.lower() in _KEYWORDS:
            raise wrong_line(f"{shown(token.text)} is not part of what daggen writes", token.line)
        if self._peek().kind != "arrow":
            self._read_node(graph, token)
            return
        ends = [token.text]
        while self._peek().kind == "arrow":
            self._take()
            ends.append(self._take_name("a node").text)
        volume = self._read_attributes(("size",)).get("size", 0.0)
        for a, b in pairwise(ends):
            if a == b:
                raise wrong_line(f"the node {shown(a)} depends on itself", token.line)
            if (a, b) in graph.volumes:
                raise wrong_line(f"the edge {shown(a)} -> {shown(b)} is given twice", token.line)
            graph.volumes[a, b], graph.lines[a, b] = volume, token.line

    def _read_node(self, graph: _Graph, token: _Token) -> None:
        if token.text in graph.costs:
            raise wrong_line(f"the node {shown(token.text)} is given twice", token.line)
        attributes = self._read_attributes(("size", "alpha"))
        if "size" not in attributes:
            raise wrong_line(f"the node {shown(token.text)} has no size", token.line)
        graph.costs[token.text] = attributes["size"] / FLOP_PER_SECOND

    def _read_attributes(self, known: tuple[str, ...]) -> dict[str, float]:
        """`[size="1000", alpha="0.2"]`, or nothing."""
        attributes: dict[str, float] = {}
        if not self._next_is("["):
            return attributes
        self._take()
        while not self._next_is("]"):
            key = self._take_name("an attribute")
            if key.text not in known:
                place = f"line {key.line}"
                raise unknown("attribute", key.text, known, place)
            if key.text in attributes:
                raise wrong_line(f"{key.text} is given twice", key.line)
            self._expect("=")
            value = self._take_name("a number")
            attributes[key.text] = amount(value.text, key.text, f"line {value.line}")
            if self._next_is(",") or self._next_is(";"):
                self._take()
        self._take()
        return attributes

    def _peek(self) -> _Token:
        return self._tokens[self._at]

    def _take(self) -> _Token:
        token = self._peek()
        self._at += token.kind != "end"
        return token

    def _next_is(self, text: str) -> bool:
        token = self._peek()
        return token.text == text and token.kind in ("mark", "word")

    def _expect(self, mark: str) -> None:
        if not self._next_is(mark):
            raise self._unexpected(repr(mark))
        self._take()

    def _take_name(self, what: str) -> _Token:
        if self._peek().kind not in _NAMES or not self._peek().text:
            raise self._unexpected(what)
        return self._take()

    def _unexpected(self, wanted: str) -> InputError:
        token = self._peek()
        found = token.text if token.kind == "end" else shown(token.text)
        return wrong_line(f"expected {wanted}, not {found}", token.line)
