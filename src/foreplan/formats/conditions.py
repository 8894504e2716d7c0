"""Conditions of `if:` and `only:`, over parameters and loop variables.

    condition   = conjunction {"or" conjunction}
    conjunction = negation {"and" negation}
    negation    = "not" negation | "(" condition ")" | comparison
    comparison  = operand [sign operand | ["not"] "in" (list | reference)]
    list        = "[" operand {"," operand} "]"
    operand     = reference | number | "true" | "false" | quoted text | words

Words without quotes are text after a sign and in a list, and nowhere else. A condition that can
only be a mistake is refused: the task of a condition that does not hold disappears without a word.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

from foreplan.errors import InputError
from foreplan.formats.fields import shown, unknown, wrong
from foreplan.formats.loops import Cell, MatchedPath, PathPart
from foreplan.formats.texts import plain_scalar

Place = str | int
Values = Mapping[str, object]  # by reference: of one row
Columns = Mapping[str, Sequence[object]]  # by reference: of all rows

_TOKEN = re.compile(
    r"""(?P<reference>\$[A-Za-z_]\w*(?:\.\w+|\[[^\][{}]*\])?(?=[\s()\[\],=<>!&|]|$))
    |(?P<quoted>"(?:[^"\\]|\\.)*"|'(?:[^']|'')*')(?=[\s()\[\],=<>!&|]|$)
    |(?P<sign>[=<>!&|]+)
    |(?P<mark>[()\[\],])
    |(?P<word>[^\s()\[\],=<>!&|$"'{}][^\s()\[\],=<>!&|$"{}]*)""",
    re.ASCII | re.VERBOSE | re.DOTALL,
)
_SPACE = re.compile(r"\s*")
_FIRST = re.compile(r"\w+")
_ORDER: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_SIGNS = ("==", "!=", *_ORDER)
_KEYWORDS = ("and", "or", "not", "in")
_INSTEAD = {
    "=": "==", "===": "==", "!==": "!=", "<>": "!=", "=<": "<=", "=>": ">=",
    "&&": "and", "&": "and", "||": "or", "|": "or", "!": "not",
}  # fmt: skip
_BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False,
             "FALSE": False}  # fmt: skip
_PADDED = re.compile(r"[-+]?0[0-9]+")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_FORMS = "write $name, not $name, $name == value (or !=, <, <=, >, >=), $name in [a, b]"
_DEEPEST = 100  # parentheses and `not` within each other
_FROM_DATA = (
    Cell,
    MatchedPath,
    PathPart,
)  # values of loops that differ from one data set to another


@dataclass(frozen=True)
class Reference:
    """A parameter or loop variable: name, name.field or name[0]."""

    name: str

    def __str__(self) -> str:
        return f"${self.name}"


@dataclass(frozen=True)
class Literal:
    """A text, number, true or false, and the way it is written."""

    value: str | int | float | bool
    written: str

    def __str__(self) -> str:
        return self.written


Operand = Reference | Literal


class Truth(NamedTuple):
    """An operand that is true or false itself."""

    operand: Operand
    place: tuple[Place, ...]

    def check(self, columns: Columns) -> None:
        """Refuse an operand that is never true or false."""
        values = _scalars(self.operand, columns, self.place)
        if "boolean" not in _kinds(values):
            self._refuse(values[0])

    def holds(self, values: Values) -> bool:
        """Return the truth of the operand in a row."""
        value = _value(self.operand, values)
        found = _boolean(value)
        if found is None:
            self._refuse(value)
        return found

    def _refuse(self, value: object) -> NoReturn:
        raise wrong(f"{self.operand} is {shown(value)}, neither true nor false", *self.place)


class Relation(NamedTuple):
    """Two operands and a sign; the right side of `in` and `not in` is a list."""

    left: Operand
    sign: str
    right: Operand | tuple[Operand, ...]
    place: tuple[Place, ...]

    def __str__(self) -> str:
        right = self.right
        text = f"[{', '.join(map(str, right))}]" if isinstance(right, tuple) else str(right)
        return f"{self.left} {self.sign} {text}"

    @property
    def operands(self) -> Iterator[Operand]:
        """All operands, those of a list included."""
        yield self.left
        yield from self._rights

    @property
    def _rights(self) -> tuple[Operand, ...]:
        return self.right if isinstance(self.right, tuple) else (self.right,)

    @property
    def _is_in(self) -> bool:
        return self.sign in ("in", "not in")

    def check(self, columns: Columns) -> None:
        """Refuse values that cannot be compared in any row."""
        left = _scalars(self.left, columns, self.place)
        if self._is_in and isinstance(self.right, Reference):
            right = [one for listed in columns[self.right.name] for one in self._list(listed)]
            _check_scalars(right, f"an entry of {self.right}", self.place)
        else:
            right = [v for one in self._rights for v in _scalars(one, columns, self.place)]
        kinds = _kinds(left), _kinds(right)
        if self.sign in _ORDER:
            if "number" not in kinds[0] or "number" not in kinds[1]:
                self._refuse_order(left[0], right[0])
        elif right and kinds[0].isdisjoint(kinds[1]):
            constants = [str(one) for one in self.operands if not _is_reference(one)]
            how = f": put {constants[0]} in quotes if text is meant" if "text" in kinds[0] else ""
            raise wrong(
                f"{shown(str(self))} compares {_described(left[0])} with {_described(right[0])}, "
                f"which are never equal{how if constants else ''}",
                *self.place,
            )

    def holds(self, values: Values) -> bool:
        """Return the result of the comparison in a row."""
        left = _value(self.left, values)
        if self._is_in:
            listed: Iterable[object]
            if isinstance(self.right, Reference):
                listed = self._list(values[self.right.name])
            else:
                listed = (_value(one, values) for one in self._rights)
            return any(self._is_same(left, one) for one in listed) is (self.sign == "in")
        right = _value(self.right, values)  # type: ignore[arg-type]
        if self.sign in ("==", "!="):
            return self._is_same(left, right) is (self.sign == "==")
        numbers = _number(left), _number(right)
        if numbers[0] is None or numbers[1] is None:
            self._refuse_order(left, right)
        return _ORDER[self.sign](numbers[0], numbers[1])

    def _list(self, value: object) -> Sequence[object]:
        if not isinstance(value, list | tuple):
            raise wrong(
                f"expected a list after `{self.sign}`, but {self.right} is {shown(value)}",
                *self.place,
            )
        return value

    def _is_same(self, left: object, right: object) -> bool:
        """Return whether two values are equal: as numbers, as booleans or as text."""
        if isinstance(left, str) and isinstance(right, str):
            if isinstance(left, Cell) and isinstance(right, Cell):
                numbers = _plain_number(left), _plain_number(right)
                if None not in numbers:
                    return numbers[0] == numbers[1]
            return str(left) == str(right)
        if isinstance(left, bool) or isinstance(right, bool):
            return _boolean(left) is _boolean(right)
        text, number = (left, right) if isinstance(left, str) else (right, left)
        if not isinstance(text, str):
            return left == right
        if _number(text) != number:
            return False
        is_number = isinstance(text, Cell) and _plain_number(text) is not None
        if not is_number and str(text) != str(number):
            raise wrong(
                f"{shown(str(self))} compares {shown(str(text))} with {number}: they are equal as "
                "numbers, but not as text; write both alike, or put the value in quotes to compare "
                "text",
                *self.place,
            )
        return True

    def _refuse_order(self, left: object, right: object) -> NoReturn:
        odd = left if _number(left) is None else right
        raise wrong(
            f"{shown(str(self))} needs numbers, but {shown(odd)} is not a number", *self.place
        )


class Junction(NamedTuple):
    """Parts joined by `and` or `or`; or one part after `not`."""

    word: str
    parts: Sequence[Node]

    def holds(self, values: Values) -> bool:
        """Return the result for a row; parts behind the deciding one are not evaluated."""
        if self.word == "not":
            return not self.parts[0].holds(values)
        results = (part.holds(values) for part in self.parts)
        return all(results) if self.word == "and" else any(results)


Node = Truth | Relation | Junction


@dataclass(frozen=True)
class Condition:
    """A parsed condition and the parameters and loop variables that it refers to."""

    root: Node
    references: tuple[str, ...]

    def check(self, columns: Sequence[Sequence[object]]) -> None:
        """Refuse values that the condition cannot compare in any row, given for each reference."""
        by_name = dict(zip(self.references, columns, strict=True))
        for leaf in _leaves(self.root):
            leaf.check(by_name)

    def holds(self, row: Sequence[object]) -> bool:
        """Return whether the condition holds for a row, which has a value for each reference."""
        return self.root.holds(dict(zip(self.references, row, strict=True)))


def conditions_of(section: object, names: Collection[str], *place: Place) -> list[Condition]:
    """Parse a condition, or a list of conditions that must all hold.

    `names` are the known parameters and loop variables: text that equals one needs quotes.
    """
    if not isinstance(section, list | tuple):
        return [_parse(section, names, *place)]
    return [_parse(one, names, *place, i) for i, one in enumerate(section)]


def _parse(text: object, names: Collection[str], *place: Place) -> Condition:
    if isinstance(text, bool):
        return Condition(Truth(Literal(text, str(text).lower()), place), ())
    if not isinstance(text, str) or not text.strip():
        raise wrong(f"{shown(text)} is not a condition: {_FORMS}", *place)
    root = _Parser(text, names, place).parse()
    operands = [one for leaf in _leaves(root) for one in _operands(leaf)]
    used = [one.name for one in operands if isinstance(one, Reference)]
    for called in used:
        first = _FIRST.match(called)[0]  # type: ignore[index]
        if first not in names:
            raise unknown("parameter or loop variable", first, names, *place)
    return Condition(root, tuple(dict.fromkeys(used)))


def _leaves(node: Node) -> Iterator[Truth | Relation]:
    if isinstance(node, Junction):
        for part in node.parts:
            yield from _leaves(part)
    else:
        yield node


def _operands(leaf: Truth | Relation) -> Iterable[Operand]:
    return leaf.operands if isinstance(leaf, Relation) else (leaf.operand,)


def _is_reference(operand: Operand) -> bool:
    return isinstance(operand, Reference)


class _Token(NamedTuple):
    kind: str  # reference, quoted, sign, mark, word, keyword, end
    text: str
    start: int
    end: int


class _Parser:
    """A recursive descent parser, with one method for each rule of the grammar above."""

    def __init__(self, text: str, names: Collection[str], place: tuple[Place, ...]) -> None:
        self._text = text
        self._names = names
        self._place = place
        self._tokens = list(self._tokenize())
        self._next = 0
        self._depth = 0

    def parse(self) -> Node:
        """Return the root of the whole text."""
        root = self._condition()
        token = self._peek()
        if token.kind != "end":
            after = shown(self._text[: token.start].strip())
            self._refuse(
                f"{shown(token.text)} does not belong after {after}: join conditions with `and` or "
                "`or`, and put text in quotes"
            )
        return root

    def _tokenize(self) -> Iterator[_Token]:
        text = self._text
        at = _SPACE.match(text).end()  # type: ignore[union-attr]
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None:
                self._refuse_character(at)
            kind = found.lastgroup or ""
            if kind == "sign" and found[0] not in _SIGNS:
                instead = _INSTEAD.get(found[0])
                how = (
                    f"write `{instead}`, or put text in quotes" if instead else "put text in quotes"
                )
                self._refuse(f"`{found[0]}` is not an operator of conditions: {how}")
            if kind == "word" and found[0] in _KEYWORDS:
                kind = "keyword"
            yield _Token(kind, found[0], at, found.end())
            at = _SPACE.match(text, found.end()).end()  # type: ignore[union-attr]
        yield _Token("end", "", len(text), len(text))

    def _refuse_character(self, at: int) -> NoReturn:
        rest = self._text[at:]
        if rest[0] in "\"'":
            self._refuse(f"cannot read {shown(rest)}: a quote is not closed, or text follows it")
        if rest[0] == "{":
            self._refuse(f"cannot read {shown(rest)}: in a condition write $name, not {{name}}")
        self._refuse(f"cannot read {shown(rest)}: write $name, $name.field or $name[0]")

    def _condition(self) -> Node:
        return self._joined("or", self._conjunction)

    def _conjunction(self) -> Node:
        return self._joined("and", self._negation)

    def _joined(self, word: str, part: Callable[[], Node]) -> Node:
        parts = [part()]
        while self._take("keyword", word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else Junction(word, parts)

    def _negation(self) -> Node:
        self._depth += 1
        if self._depth > _DEEPEST:
            self._refuse(f"parentheses are nested more than {_DEEPEST} deep")
        node: Node
        if self._take("keyword", "not"):
            node = Junction("not", (self._negation(),))
        elif self._take("mark", "("):
            node = self._condition()
            if not self._take("mark", ")"):
                self._refuse(f"a `)` is missing {self._before_next()}")
        else:
            node = self._comparison()
        self._depth -= 1
        return node

    def _comparison(self) -> Node:
        left = self._left()
        token = self._peek()
        if token.kind == "sign":
            self._next += 1
            compared = Relation(left, token.text, self._operand(in_list=False), self._place)
            if self._peek().kind == "sign":
                self._refuse(
                    f"compare twice, with `and`, instead of {shown(str(compared))} and more"
                )
        elif self._take("keyword", "in"):
            compared = Relation(left, "in", self._list("in"), self._place)
        elif self._take("keyword", "not"):
            if not self._take("keyword", "in"):
                self._refuse(f"expected `in` after `not` {self._before_next()}")
            compared = Relation(left, "not in", self._list("not in"), self._place)
        else:
            return Truth(left, self._place)
        if not any(map(_is_reference, compared.operands)):
            self._refuse(
                f"{shown(str(compared))} does not use a parameter or loop variable: write $name"
            )
        return compared

    def _left(self) -> Operand:
        """Return the operand that a comparison begins with: text must be in quotes there."""
        token = self._peek()
        if token.kind == "word":
            value = _bare(token.text)
            if isinstance(value, str):
                self._check_name(token.text)
                self._refuse(f"{shown(token.text)} is not a condition: {_FORMS}")
            self._next += 1
            return Literal(value, token.text)
        if token.kind in ("reference", "quoted"):
            return self._operand(in_list=False)
        self._refuse(f"a condition is missing {self._before_next()}: {_FORMS}")

    def _operand(self, in_list: bool) -> Operand:
        token = self._peek()
        if token.kind == "reference":
            self._next += 1
            return Reference(token.text[1:])
        if token.kind == "quoted":
            self._next += 1
            return Literal(_unquoted(token.text), token.text)
        return self._words(in_list)

    def _words(self, in_list: bool) -> Literal:
        """Return the value of words without quotes, up to a keyword or a closing bracket."""
        first = self._peek()
        last = first
        words: list[str] = []
        while (token := self._peek()).kind == "word" or (
            token[:2] == ("mark", ",") and not in_list
        ):
            words.append(token.text)
            last = token
            self._next += 1
        if not words:
            how = ": put text in quotes" if first.kind == "keyword" or first.text == "(" else ""
            self._refuse(f"a value is missing {self._before_next()}{how}")
        if len(words) > 1 and any(word.lower() in _KEYWORDS for word in words):
            written = self._text[first.start : last.end]
            self._refuse(
                f"write `and`, `or`, `not` in small letters, or put {shown(written)} in quotes"
            )
        written = self._text[first.start : last.end]
        self._check_name(written)
        if written in ("null", "~"):
            self._refuse(f"`{written}` is not a value: put it in quotes if text is meant")
        return Literal(_bare(written), written)

    def _check_name(self, written: str) -> None:
        if written in self._names:
            self._refuse(
                f"{written} is the name of a parameter or loop variable: write ${written}, or put "
                "text in quotes"
            )

    def _list(self, word: str) -> Reference | tuple[Operand, ...]:
        token = self._peek()
        if token.kind == "reference":
            self._next += 1
            return Reference(token.text[1:])
        if not self._take("mark", "["):
            self._refuse(f"expected a list after `{word}` {self._before_next()}: [a, b] or $name")
        operands = [self._operand(in_list=True)]
        while self._take("mark", ","):
            operands.append(self._operand(in_list=True))
        if not self._take("mark", "]"):
            self._refuse(f"expected `,` or `]` {self._before_next()}: put text in quotes")
        return tuple(operands)

    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _take(self, kind: str, text: str) -> bool:
        found = self._tokens[self._next][:2] == (kind, text)
        self._next += found
        return found

    def _before_next(self) -> str:
        token = self._peek()
        return "at the end" if token.kind == "end" else f"before {shown(token.text)}"

    def _refuse(self, problem: str) -> NoReturn:
        raise wrong(f"{problem} (in the condition {shown(self._text.strip())})", *self._place)


def _bare(word: str) -> str | int | float | bool:
    """Return the value of text without quotes."""
    if word in _BOOLEANS:
        return _BOOLEANS[word]
    number = _plain_number(word)
    return word if number is None else number


def _unquoted(text: str) -> str:
    inner = text[1:-1]
    return _ESCAPED.sub(r"\1", inner) if text[0] == '"' else inner.replace("''", "'")


def _value(operand: Operand, values: Values) -> object:
    return values[operand.name] if isinstance(operand, Reference) else operand.value


def _scalars(operand: Operand, columns: Columns, place: tuple[Place, ...]) -> Sequence[object]:
    """Return the values of an operand in all rows; lists and records are refused."""
    if isinstance(operand, Literal):
        return (operand.value,)
    _check_scalars(columns[operand.name], str(operand), place)
    return columns[operand.name]


def _check_scalars(values: Iterable[object], what: str, place: tuple[Place, ...]) -> None:
    for value in values:
        if isinstance(value, list | tuple):
            raise wrong(f"{what} is a list: write value in {what}, or {what}[0]", *place)
        if isinstance(value, Mapping):
            fields = ", ".join(f"{what}.{key}" for key in value)
            raise wrong(f"{what} has fields: write {fields}", *place)


def _kinds(values: Iterable[object]) -> set[str]:
    """Return which of number, boolean and text the values can be read as."""
    kinds: set[str] = set()
    for value in values:
        if isinstance(value, bool):
            kinds.add("boolean")
        elif not isinstance(value, str):
            kinds.add("number")
        else:
            kinds.add("text")
            if value in _BOOLEANS:
                kinds.add("boolean")
            if isinstance(value, _FROM_DATA) or _number(value) is not None:
                kinds.add("number")
    return kinds


def _described(value: object) -> str:
    kind = (
        "text" if isinstance(value, str) else "a boolean" if isinstance(value, bool) else "a number"
    )
    return f"{kind} ({shown(value)})"


def _boolean(value: object) -> bool | None:
    if isinstance(value, str):
        return _BOOLEANS.get(value)
    return value if isinstance(value, bool) else None


def _number(value: object) -> float | None:
    """Return a value as a number, leading zeros allowed; None if it is not a number."""
    if isinstance(value, str) and value[:1] in "+-0" and _PADDED.fullmatch(value):
        return float(value)
    return _plain_number(value)


def _plain_number(value: object) -> float | None:
    if isinstance(value, str):
        try:
            value = plain_scalar(value)
        except InputError:  # thousands of digits
            return None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
