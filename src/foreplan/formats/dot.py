"""DOT: the nodes are tasks and the edges dependencies, whoever has written it.

A `size` is what daggen means by it: of a node in flop, 10^9 of which are taken to be a second at
speed 1, of an edge in bytes. Nodes without one have no cost. A label that begins with a word, as
those of `snakemake --dag` and `--rulegraph` do, says the category. All else is for the eye.
"""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise, product
from math import nan
from typing import NamedTuple

from foreplan.errors import InputError
from foreplan.formats.fields import amount, shown, wrong_line
from foreplan.model import Item, TaskSpec, Workflow

FLOP_PER_SECOND = 1e9  # of a processor of speed 1
DEEPEST = 100  # subgraphs within subgraphs
NO_COSTS = "no node has a size, so no task has a cost"

_TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*|\#[^\n]*|/\*.*?\*/)
      |(?P<arrow>->|--)
      |(?P<mark>[\[\]{}=,;:+])
      |"(?P<quoted>(?:[^"\\]|\\.)*)"
      |(?P<word>[A-Za-z_\u0080-\U0010ffff][\w]*|-?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?))
      |(?P<html><)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPED = re.compile(r'\\(["\\\n])')
_NAMES = ("word", "quoted", "html")
_KEYWORDS = ("strict", "graph", "digraph", "subgraph", "node", "edge")
_RULE = re.compile(r"[^\W\d][\w.-]*")  # what can be the name of a rule


class _Token(NamedTuple):
    """A piece of the text: its kind, its text and its line."""

    kind: str
    text: str
    line: int

    def is_keyword(self, *words: str) -> bool:
        """Whether it is one of these keywords, in any case and without quotes."""
        return self.kind == "word" and self.text.lower() in words


_Values = dict[str, _Token]  # by attribute
_Scope = dict[str, ChainMap[str, _Token]]  # the defaults of nodes and edges in a subgraph


@dataclass
class _Graph:
    """What has been read: nodes with their attributes, those with a statement, and edges."""

    nodes: dict[str, _Values] = field(default_factory=dict)
    stated: dict[str, _Values] = field(default_factory=dict)
    edges: list[tuple[str, str, int, float]] = field(default_factory=list)


def parse_dot(text: str, name: str = "") -> Workflow:
    """A workflow from the text of a DOT file."""
    tokens = list(_tokens(text))
    if len(tokens) == 1:
        raise InputError("the file is empty")
    title, graph = _Reader(tokens).read()
    if not graph.nodes:
        raise wrong_line("the workflow has no tasks", tokens[-1].line)
    # those with a statement first: what daggen writes keeps its order
    names = list(graph.stated | graph.nodes)
    index = {node: i for i, node in enumerate(names)}
    costs = [_number(graph.nodes[node], "size", nan) / FLOP_PER_SECOND for node in names]
    specs = {
        i: TaskSpec(category)
        for i, node in enumerate(names)
        if (category := _category(graph.nodes[node])) is not None
    }
    workflow = Workflow.from_items(name or title, names, costs, _items(graph, index), specs=specs)
    silent = int(workflow.silent.sum())
    if not silent:
        return workflow
    some = f"{silent} of {len(names)} nodes have no size, so these tasks have no cost"
    return replace(workflow, notes=(NO_COSTS if silent == len(names) else some,))


def _items(graph: _Graph, index: Mapping[str, int]) -> list[Item]:
    """The edges: two of a pair, if they say nothing of data, are one."""
    seen: set[tuple[str, str]] = set()
    items = []
    for a, b, line, volume in graph.edges:
        if a == b:
            raise wrong_line(f"the node {shown(a)} depends on itself", line)
        if volume or (a, b) not in seen:
            items.append(Item(volume, index[a], (index[b],)))
        seen.add((a, b))
    return items


def _number(values: Mapping[str, _Token], key: str, default: float) -> float:
    value = values.get(key)
    return default if value is None else amount(value.text, key, f"line {value.line}")


def _category(values: _Values) -> str | None:
    """The first line of the label, if that is a word; wildcards may stand below it."""
    label = values.get("label")
    if label is None:
        return None
    text = re.sub(r"<[^<>]*>", "\n", label.text) if label.kind == "html" else label.text
    lines = [line.strip() for line in re.split(r"\\[nlr]|\n", text) if line.strip()]
    return lines[0] if lines and _RULE.fullmatch(lines[0]) else None


def _tokens(text: str) -> Iterator[_Token]:
    at, line = 0, 1
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise wrong_line(f"unexpected {shown(text[at : at + 20])}", line)
        kind, end = str(found.lastgroup), found.end()
        if kind == "quoted":
            quoted = _ESCAPED.sub(lambda sign: sign[1].strip("\n"), found["quoted"])
            yield _Token(kind, quoted, line)
        elif kind == "html":
            end = _html_end(text, at, line)
            yield _Token(kind, text[at + 1 : end - 1], line)
        elif kind != "space":
            yield _Token(kind, found[0], line)
        line += text.count("\n", at, end)
        at = end
    yield _Token("end", "the end of the file", line)


def _html_end(text: str, begin: int, line: int) -> int:
    """Where what began with `<` is closed."""
    depth = 0
    for sign in re.compile("[<>]").finditer(text, begin):
        depth += 1 if sign[0] == "<" else -1
        if depth == 0:
            return sign.end()
    raise wrong_line("the '<' of an HTML label is never closed", line)


class _Reader:
    """Reads the statements one token after another."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens, self._at, self._depth = tokens, 0, 0
        self._graph = _Graph()

    def read(self) -> tuple[str, _Graph]:
        """`strict digraph NAME { ... }`."""
        if self._peek().is_keyword("strict"):
            self._take()
        if self._peek().is_keyword("graph"):
            problem = "the graph is undirected, and nobody knows what comes first: say digraph"
            raise wrong_line(problem, self._peek().line)
        if not self._peek().is_keyword("digraph"):
            raise self._unexpected("'digraph'")
        self._take()
        title = self._take_name("a name").text if self._peek().kind in _NAMES else ""
        self._read_block({"node": ChainMap(), "edge": ChainMap()})
        if self._peek().kind != "end":
            raise self._unexpected("nothing more")
        return title, self._graph

    def _read_block(self, scope: _Scope) -> dict[str, None]:
        """`{ statements }`, and the nodes that are named in it."""
        self._expect("{")
        nodes: dict[str, None] = {}
        while not self._next_is("}"):
            if self._next_is(";") or self._next_is(","):
                self._take()
                continue
            nodes |= self._read_statement(scope)
        self._take()
        return nodes

    def _read_statement(self, scope: _Scope) -> dict[str, None]:
        """Defaults, `key = value`, a node, a subgraph, or a chain of these with arrows."""
        first = self._peek()
        if first.is_keyword("graph", "node", "edge"):
            self._take()
            values = self._read_attributes()
            if (kind := first.text.lower()) in scope:
                scope[kind].update(values)
            return {}
        if first.kind in _NAMES and self._tokens[self._at + 1].text == "=":
            self._take()
            self._take()
            self._take_name("a value")
            return {}
        ends = [self._read_end(scope)]
        while self._peek().kind == "arrow":
            if self._take().text == "--":
                problem = "'--' has no direction: the edges of a digraph are written with '->'"
                raise wrong_line(problem, self._tokens[self._at - 1].line)
            ends.append(self._read_end(scope))
        values = self._read_attributes()
        if len(ends) > 1:
            self._add_edges(ends, scope["edge"].new_child(values), first.line)
        elif first.kind in _NAMES and not first.is_keyword("subgraph"):
            self._state(first.text, values)
        elif values:
            raise wrong_line("a subgraph has no attributes in brackets", first.line)
        return dict.fromkeys(node for end in ends for node in end)

    def _read_end(self, scope: _Scope) -> dict[str, None]:
        """A node, with a port or without, or the nodes of a subgraph."""
        if self._peek().is_keyword("subgraph") or self._next_is("{"):
            return self._read_subgraph(scope)
        node = self._take_name("a node")
        if node.is_keyword(*_KEYWORDS):
            raise wrong_line(f"{shown(node.text)} is a keyword: a node needs quotes", node.line)
        for _ in range(2):  # a port, and a side of it
            if self._next_is(":"):
                self._take()
                self._take_name("a port")
        self._graph.nodes.setdefault(node.text, dict(scope["node"]))
        return {node.text: None}

    def _read_subgraph(self, scope: _Scope) -> dict[str, None]:
        line = self._peek().line
        if self._peek().is_keyword("subgraph"):
            self._take()
            if self._peek().kind in _NAMES:
                self._take()
        self._depth += 1
        if self._depth > DEEPEST:
            raise wrong_line(f"more than {DEEPEST} subgraphs are within each other", line)
        nodes = self._read_block({kind: values.new_child() for kind, values in scope.items()})
        self._depth -= 1
        return nodes

    def _state(self, node: str, values: _Values) -> None:
        """A node's own statement; what it says counts more than defaults."""
        before = self._graph.stated.setdefault(node, {})
        for key in {"size"} & before.keys() & values.keys():
            if before[key].text != values[key].text:
                problem = f"the node {shown(node)} has two sizes, {before[key].text} and "
                raise wrong_line(problem + values[key].text, values[key].line)
        before |= values
        self._graph.nodes[node] |= values

    def _add_edges(
        self, ends: list[dict[str, None]], values: Mapping[str, _Token], line: int
    ) -> None:
        volume = _number(values, "size", 0.0)
        for before, after in pairwise(ends):
            self._graph.edges += ((a, b, line, volume) for a, b in product(before, after))

    def _read_attributes(self) -> _Values:
        """`[size="1000", label=x]`, several of them, or nothing."""
        values: _Values = {}
        while self._next_is("["):
            self._take()
            while not self._next_is("]"):
                key = self._take_name("an attribute")
                self._expect("=")
                values[key.text] = self._take_name("a value", empty=True)
                if self._next_is(",") or self._next_is(";"):
                    self._take()
            self._take()
        return values

    def _peek(self) -> _Token:
        return self._tokens[self._at]

    def _take(self) -> _Token:
        token = self._peek()
        self._at += token.kind != "end"
        return token

    def _next_is(self, mark: str) -> bool:
        token = self._peek()
        return token.text == mark and token.kind == "mark"

    def _expect(self, mark: str) -> None:
        if not self._next_is(mark):
            raise self._unexpected(repr(mark))
        self._take()

    def _take_name(self, what: str, empty: bool = False) -> _Token:
        """A name; pieces in quotes may be joined by `+`."""
        if self._peek().kind not in _NAMES or not (self._peek().text or empty):
            raise self._unexpected(what)
        token = self._take()
        while token.kind == "quoted" and self._next_is("+"):
            self._take()
            if self._peek().kind != "quoted":
                raise self._unexpected("a text in quotes")
            token = token._replace(text=token.text + self._take().text)
        return token

    def _unexpected(self, wanted: str) -> InputError:
        token = self._peek()
        found = token.text if token.kind == "end" else shown(token.text)
        return wrong_line(f"expected {wanted}, not {found}", token.line)
