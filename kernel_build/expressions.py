"""Expressions of a kernel: what each is in Cython, and of which kind."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from kernel_build.gather import Function, Kernels
from kernel_build.kinds import (
    BOOL,
    BY_DTYPE,
    FLOAT,
    FLOATS,
    INT,
    ArrayKind,
    Kind,
    StateKind,
    TupleKind,
    fits,
    is_number,
    wider,
)

LARGEST_INT = 2**31 - 1
RESERVED = {"by", "api", "cdef", "include", "new", "object", "operator", "public", "readonly"}
OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
    ast.LShift: "<<", ast.RShift: ">>",
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
WHOLE_DIVISION = {ast.FloorDiv: "floor_divide", ast.Mod: "floor_remainder"}
MAKERS = {"np.zeros", "np.empty", "np.full"}


class UnknownYetError(Exception):
    """A name whose kind is not known yet."""


@dataclass(frozen=True)
class Term:
    """An expression in Cython, and its kind."""

    text: str
    kind: Kind


def spelled(name: str) -> str:
    """A name that Cython takes."""
    return name + "_" if name in RESERVED else name


def literal(value: object) -> Term:
    """A number as it is written."""
    if isinstance(value, bool):
        return Term(str(int(value)), BOOL)
    if isinstance(value, int):
        return Term(str(value) if abs(value) <= LARGEST_INT else f"(<int64_t>{value}LL)", INT)
    if isinstance(value, float):
        return Term(repr(value), FLOAT)
    raise TypeError(value)


class Expressions:
    """Translates the expressions of one function, whose names are of known kinds."""

    def __init__(self, kernels: Kernels, function: Function) -> None:
        self.kernels, self.function = kernels, function
        self.kinds: dict[str, Kind] = dict(function.parameters)
        self.local = set(function.parameters) | {
            node.id
            for node in ast.walk(function.node)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }

    def term(self, node: ast.expr) -> Term:
        """The expression, which must be one that a kernel may use."""
        constant = self._constant(node)
        if constant is not None:
            return literal(constant)
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is None:
            raise self.function.error(node, f"no {type(node).__name__} in a kernel")
        found: Term = method(node)
        return found

    def number(self, node: ast.expr) -> Term:
        """An expression that must be a number."""
        found = self.term(node)
        if not is_number(found.kind):
            raise self.function.error(node, f"{ast.unparse(node)} is no number")
        return found

    def condition(self, node: ast.expr) -> str:
        """An expression as yes or no."""
        found = self.number(node)
        return found.text if found.kind == BOOL else f"({found.text} != 0)"

    def index(self, node: ast.expr, array: str) -> str:
        """A place in an array; in the checked build it must be there."""
        found = self.number(node)
        if found.kind == FLOAT or found.text.startswith("-"):
            raise self.function.error(node, f"{ast.unparse(node)} is no place in an array")
        return f"foreplan_at({found.text}, {array}.n)"

    def array(self, node: ast.expr) -> Term:
        """An expression that must be an array, and has a name."""
        found = self.term(node)
        if not isinstance(found.kind, ArrayKind):
            raise self.function.error(node, f"{ast.unparse(node)} is no array")
        return found

    def maker(self, node: ast.expr) -> Term | None:
        """An expression that makes an array: the object that is made."""
        if not isinstance(node, ast.Call):
            return None
        called = ast.unparse(node.func)
        if called in MAKERS:
            kind = self._dtype(node)
            size = self.number(node.args[0]).text
            if called == "np.full":
                value = self.number(node.args[1]).text
                return Term(f"full_{kind.c}({size}, {value})", kind)
            return Term(f"{called.removeprefix('np.')}_{kind.c}({size})", kind)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "copy":
            array = self.array(node.func.value)
            return Term(f"copy_{array.kind.c}({array.text})", array.kind)
        return None

    def call(self, node: ast.Call, callee: Function) -> Term:
        """A call of another kernel."""
        if node.keywords or len(node.args) != len(callee.parameters):
            raise self.function.error(node, f"{callee.node.name} wants its arguments in order")
        given = []
        for argument, (name, kind) in zip(node.args, callee.parameters.items(), strict=True):
            found = self.term(argument)
            if not fits(found.kind, kind):
                what = f"{name} of {callee.node.name} is {kind.c}, not {found.kind.c}"
                raise self.function.error(argument, what)
            local = isinstance(kind, StateKind) and found.text not in self.function.parameters
            given.append(f"&{found.text}" if local else found.text)
        return Term(f"{callee.name}({', '.join(given)})", callee.result)

    def callee(self, node: ast.expr) -> Function | None:
        """The kernel that an expression calls, if it calls one."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return self.kernels.function(self.function.module, node.func.id)
        return None

    def _dtype(self, node: ast.Call) -> ArrayKind:
        for keyword in node.keywords:
            if keyword.arg == "dtype":
                return BY_DTYPE[ast.unparse(keyword.value)]
        return FLOATS

    def _constant(self, node: ast.expr) -> object:
        """The value of what is known when the kernels are built; None if it is not."""
        if isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
            return node.value
        if isinstance(node, ast.Name) and node.id not in self.local:
            return self.kernels.constant(self.function.module, node.id)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            value = self._constant(node.operand)
            return -value if isinstance(value, int | float) else None
        if isinstance(node, ast.BinOp):
            one, other = self._constant(node.left), self._constant(node.right)
            if one is not None and other is not None:
                names = {"one": one, "other": other}
                whole = ast.BinOp(
                    ast.Name("one", ast.Load()), node.op, ast.Name("other", ast.Load())
                )
                code = compile(ast.fix_missing_locations(ast.Expression(whole)), "constant", "eval")
                value = eval(code, {"__builtins__": {}}, names)
                assert isinstance(value, int | float)
                return value
        return None

    def _name(self, node: ast.Name) -> Term:
        if node.id in self.kinds:
            return Term(spelled(node.id), self.kinds[node.id])
        raise UnknownYetError(node.id)

    def _attribute(self, node: ast.Attribute) -> Term:
        whole = ast.unparse(node)
        if whole in ("np.inf", "np.nan"):
            return Term({"np.inf": "INFINITY", "np.nan": "NAN"}[whole], FLOAT)
        of = self.term(node.value)
        kind = of.kind.field(node.attr) if isinstance(of.kind, StateKind) else None
        if kind is None:
            raise self.function.error(node, f"no {whole} in a kernel")
        return Term(f"{of.text}.{node.attr}", kind)

    def _subscript(self, node: ast.Subscript) -> Term:
        array = self.array(node.value)
        assert isinstance(array.kind, ArrayKind)
        if isinstance(node.slice, ast.Slice):
            low = "0" if node.slice.lower is None else self.number(node.slice.lower).text
            high = f"{array.text}.n"
            if node.slice.upper is not None:
                high = self.number(node.slice.upper).text
            return Term(f"part_{array.kind.c}({array.text}, {low}, {high})", array.kind)
        return Term(f"{array.text}.at[{self.index(node.slice, array.text)}]", array.kind.element)

    def _binop(self, node: ast.BinOp) -> Term:
        one, other = self.number(node.left), self.number(node.right)
        kind = wider(one.kind, other.kind)
        assert kind is not None
        kind = INT if kind == BOOL else kind
        if isinstance(node.op, ast.Div):
            return Term(f"(<double>{one.text} / <double>{other.text})", FLOAT)
        if type(node.op) in WHOLE_DIVISION:
            if kind == FLOAT:
                raise self.function.error(node, "only whole numbers are divided so")
            return Term(f"{WHOLE_DIVISION[type(node.op)]}({one.text}, {other.text})", INT)
        if type(node.op) not in OPERATORS:
            raise self.function.error(node, f"no {type(node.op).__name__} in a kernel")
        left = f"<int64_t>{one.text}" if isinstance(node.op, ast.LShift) else one.text
        return Term(f"({left} {OPERATORS[type(node.op)]} {other.text})", kind)

    def _unaryop(self, node: ast.UnaryOp) -> Term:
        if isinstance(node.op, ast.Not):
            return Term(f"(not {self.condition(node.operand)})", BOOL)
        if isinstance(node.op, ast.USub):
            found = self.number(node.operand)
            return Term(f"(-{found.text})", found.kind)
        raise self.function.error(node, f"no {type(node.op).__name__} in a kernel")

    def _boolop(self, node: ast.BoolOp) -> Term:
        word = " and " if isinstance(node.op, ast.And) else " or "
        return Term(f"({word.join(self.condition(value) for value in node.values)})", BOOL)

    def _compare(self, node: ast.Compare) -> Term:
        if isinstance(node.ops[0], ast.In | ast.NotIn):
            return self._among(node)
        sides = [self.number(side).text for side in (node.left, *node.comparators)]
        pairs = [
            f"{sides[k]} {OPERATORS[type(op)]} {sides[k + 1]}" for k, op in enumerate(node.ops)
        ]
        return Term(f"({' and '.join(pairs)})", BOOL)

    def _among(self, node: ast.Compare) -> Term:
        """Whether a name is one of some values."""
        among = node.comparators[0]
        if not isinstance(among, ast.Tuple) or not isinstance(node.left, ast.Name):
            raise self.function.error(node, "only a name can be among values in brackets")
        name = self.number(node.left).text
        found = " or ".join(f"{name} == {self.number(value).text}" for value in among.elts)
        return Term(f"({found})" if isinstance(node.ops[0], ast.In) else f"(not ({found}))", BOOL)

    def _ifexp(self, node: ast.IfExp) -> Term:
        one, other = self.term(node.body), self.term(node.orelse)
        kind = wider(one.kind, other.kind)
        if kind is None:
            raise self.function.error(node, "one or the other, of two kinds")
        return Term(f"({one.text} if {self.condition(node.test)} else {other.text})", kind)

    def _call(self, node: ast.Call) -> Term:
        called = ast.unparse(node.func)
        if called == "len":
            return Term(f"{self.array(node.args[0]).text}.n", INT)
        if called in ("min", "max") and len(node.args) > 1:
            return self._extreme(node, called)
        if called == "time.perf_counter":
            return Term("perf_counter()", FLOAT)
        if called in ("int", "float", "bool", "abs", "np.isnan", "np.rint"):
            return self._converted(self.number(node.args[0]), called)
        callee = self.callee(node)
        if callee is None:
            raise self.function.error(node, f"no {called} in a kernel")
        if isinstance(callee.result, ArrayKind | TupleKind):
            raise self.function.error(node, f"what {called} gives needs a name")
        return self.call(node, callee)

    def _extreme(self, node: ast.Call, called: str) -> Term:
        found = self.number(node.args[0])
        for argument in node.args[1:]:
            other = self.number(argument)
            kind = wider(found.kind, other.kind)
            assert kind is not None
            which = "float" if kind == FLOAT else "int"
            found = Term(f"{called}_{which}({found.text}, {other.text})", kind)
        return found

    def _converted(self, given: Term, called: str) -> Term:
        if called == "int":
            return Term(f"<int64_t>{given.text}" if given.kind == FLOAT else given.text, INT)
        if called == "float":
            return Term(f"<double>{given.text}", FLOAT)
        if called == "bool":
            return Term(given.text if given.kind == BOOL else f"({given.text} != 0)", BOOL)
        if called == "abs":
            which = "fabs" if given.kind == FLOAT else "llabs"
            return Term(f"{which}({given.text})", given.kind)
        if called == "np.rint":
            return Term(f"rint({given.text})", FLOAT)
        return Term(f"({given.text} != {given.text})", BOOL)
