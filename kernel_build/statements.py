"""Statements of a kernel: a function as Cython text, with the kinds of its names found."""

from __future__ import annotations

import ast

from kernel_build.expressions import (
    OPERATORS,
    Expressions,
    Term,
    UnknownYetError,
    spelled,
)
from kernel_build.gather import Function, Kernels
from kernel_build.kinds import (
    BOOL,
    INT,
    NOTHING,
    ArrayKind,
    Kind,
    StateKind,
    TupleKind,
    fits,
    tuple_of,
    wider,
)


class FunctionText(Expressions):
    """One kernel function in Cython."""

    def __init__(self, kernels: Kernels, function: Function, raising: set[str]) -> None:
        super().__init__(kernels, function)
        self.raising = raising
        self.lines: list[str] = []
        self.depth = 1
        self.temporaries: list[tuple[str, Kind]] = []
        self._find_kinds()

    def text(self) -> str:
        """The whole function."""
        for statement in self.function.node.body:
            self._statement(statement)
        head = [f"cdef {self._result()} {self.function.name}({self._parameters()}){self._fails()}:"]
        for name, kind in [*self.kinds.items(), *self.temporaries]:
            if name in self.function.parameters:
                continue
            head.append(f"    cdef {_c_type(kind)} {spelled(name)}")
            if isinstance(kind, ArrayKind):
                head.append(f"    cdef object {_owner(name)} = None")
        return "\n".join([*head, *(self.lines or ["    pass"])])

    def _result(self) -> str:
        kind = self.function.result
        return "object" if _is_object(kind) else kind.c

    def _parameters(self) -> str:
        return ", ".join(
            f"{kind.c}_p {spelled(name)}"
            if isinstance(kind, StateKind)
            else f"{kind.c} {spelled(name)}"
            for name, kind in self.function.parameters.items()
        )

    def _fails(self) -> str:
        if _is_object(self.function.result):
            return ""
        return " except *" if self.function.name in self.raising else " noexcept"

    # the kinds of names

    def _find_kinds(self) -> None:
        """Go over the assignments until no more is learned."""
        while True:
            before = dict(self.kinds)
            unknown: str | None = None
            for node in ast.walk(self.function.node):
                try:
                    self._learn(node)
                except UnknownYetError as missing:
                    unknown = str(missing)
            if self.kinds == before:
                if unknown is not None:
                    raise self.function.error(self.function.node, f"what is {unknown}?")
                return

    def _learn(self, node: ast.AST) -> None:
        if isinstance(node, ast.Assign):
            kind = self._kind_of(node.value)
            for target in node.targets:
                self._learn_target(target, kind)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            sort = ast.BinOp(ast.Name(node.target.id), node.op, node.value)
            self._learn_target(node.target, self._kind_of(ast.copy_location(sort, node)))
        elif isinstance(node, ast.For):
            if isinstance(node.iter, ast.Tuple):
                for element in node.iter.elts:
                    self._learn_target(node.target, self._kind_of(element))
            elif isinstance(node.iter, ast.Call):
                self._learn_target(node.target, INT)
            else:
                array = self.array(node.iter)
                assert isinstance(array.kind, ArrayKind)
                self._learn_target(node.target, array.kind.element)

    def _kind_of(self, value: ast.expr) -> Kind:
        if isinstance(value, ast.Tuple):
            return tuple_of(tuple(self._kind_of(part) for part in value.elts))
        made = self.maker(value)
        if made is not None:
            return made.kind
        callee = self.callee(value)
        if callee is not None:
            return callee.result
        state = self._state_made(value)
        return state if state is not None else self.term(value).kind

    def _state_made(self, value: ast.expr) -> StateKind | None:
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
            return self.kernels.state(self.function.module, value.func.id)
        return None

    def _learn_target(self, target: ast.expr, kind: Kind) -> None:
        if isinstance(target, ast.Tuple):
            assert isinstance(kind, TupleKind)
            for part, its in zip(target.elts, kind.parts, strict=True):
                self._learn_target(part, its)
        elif isinstance(target, ast.Name) and target.id != "_":
            known = self.kinds.get(target.id)
            both = kind if known is None else wider(known, kind)
            if both is None or kind == NOTHING:
                raise self.function.error(target, f"{target.id} is of two kinds")
            if target.id in self.function.parameters and both != known:
                raise self.function.error(target, f"{target.id} is given as {known}, then {kind}")
            self.kinds[target.id] = both

    # statements

    def _write(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def _block(self, statements: list[ast.stmt]) -> None:
        self.depth += 1
        written = len(self.lines)
        for statement in statements:
            self._statement(statement)
        if len(self.lines) == written:
            self._write("pass")
        self.depth -= 1

    def _statement(self, node: ast.stmt) -> None:
        method = getattr(self, f"_on_{type(node).__name__.lower()}", None)
        if method is None:
            raise self.function.error(node, f"no {type(node).__name__} in a kernel")
        method(node)

    def _on_expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant):
            return  # the docstring
        callee = self.callee(node.value)
        if callee is None or not isinstance(node.value, ast.Call):
            raise self.function.error(node, "this does nothing")
        self._write(self.call(node.value, callee).text)

    def _on_pass(self, node: ast.Pass) -> None:
        self._write("pass")

    def _on_break(self, node: ast.Break) -> None:
        self._write("break")

    def _on_continue(self, node: ast.Continue) -> None:
        self._write("continue")

    def _on_if(self, node: ast.If) -> None:
        self._write(f"if {self.condition(node.test)}:")
        self._block(node.body)
        if node.orelse:
            self._write("else:")
            self._block(node.orelse)

    def _on_while(self, node: ast.While) -> None:
        if node.orelse:
            raise self.function.error(node, "no else of a loop in a kernel")
        self._write(f"while {self.condition(node.test)}:")
        self._block(node.body)

    def _on_for(self, node: ast.For) -> None:
        if node.orelse or not isinstance(node.target, ast.Name):
            raise self.function.error(node, "a loop has one name, and no else")
        target = spelled(node.target.id)
        if isinstance(node.iter, ast.Call) and ast.unparse(node.iter.func) == "range":
            steps = [self.number(a) for a in node.iter.args]
            if any(step.kind == BOOL for step in steps):
                raise self.function.error(node, "a range of truth values")
            self._write(f"for {target} in range({', '.join(s.text for s in steps)}):")
            self._block(node.body)
            return
        at = self._temporary(INT)
        if isinstance(node.iter, ast.Tuple):
            values = [self.number(element).text for element in node.iter.elts]
            value = values[-1]
            for k in range(len(values) - 2, -1, -1):
                value = f"({values[k]} if {at} == {k} else {value})"
            self._write(f"for {at} in range({len(values)}):")
        else:
            array = self.array(node.iter)
            value = f"{array.text}.at[{at}]"
            self._write(f"for {at} in range({array.text}.n):")
        self.depth += 1
        self._write(f"{target} = {value}")
        self.depth -= 1
        self._block(node.body)

    def _on_return(self, node: ast.Return) -> None:
        kind = self.function.result
        if node.value is None:
            self._write("return")
            return
        callee = self.callee(node.value)
        if callee is not None and callee.result == kind:
            assert isinstance(node.value, ast.Call)
            self._write(f"return {self.call(node.value, callee).text}")
        elif isinstance(kind, ArrayKind):
            self._write(f"return {self._object(node.value)}")
        elif isinstance(kind, TupleKind):
            self._return_several(node, kind)
        else:
            found = self.number(node.value)
            if not fits(found.kind, kind):
                raise self.function.error(node, f"returns {found.kind.c}, not {kind.c}")
            self._write(f"return {found.text}")

    def _return_several(self, node: ast.Return, kind: TupleKind) -> None:
        if not isinstance(node.value, ast.Tuple):
            raise self.function.error(node, "returns several values by their names")
        values = node.value.elts
        if kind.has_arrays:
            parts = [
                self._object(value) if isinstance(part, ArrayKind) else self._python(value, part)
                for value, part in zip(values, kind.parts, strict=True)
            ]
            self._write(f"return ({', '.join(parts)})")
            return
        result = self._temporary(kind)
        for k, value in enumerate(values):
            self._write(f"{result}.part{k} = {self.number(value).text}")
        self._write(f"return {result}")

    def _python(self, value: ast.expr, kind: Kind) -> str:
        found = self.number(value).text
        return f"bool({found})" if kind == BOOL else found

    def _object(self, node: ast.expr) -> str:
        """The object behind an array that this function made."""
        made = self.maker(node)
        if made is not None:
            return made.text
        name, part = node, ""
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            low = "" if node.slice.lower is None else self.number(node.slice.lower).text
            high = "" if node.slice.upper is None else self.number(node.slice.upper).text
            name, part = node.value, f"[{low}:{high}]"
        if not isinstance(name, ast.Name) or name.id in self.function.parameters:
            raise self.function.error(node, "only an array that was made here can be returned")
        return _owner(name.id) + part

    def _on_augassign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            name = ast.copy_location(ast.Name(node.target.id, ast.Load()), node)
            whole = ast.copy_location(ast.BinOp(name, node.op, node.value), node)
            self._store(node.target, self.number(whole))
            return
        if type(node.op) not in OPERATORS:
            raise self.function.error(node, "write this as an assignment")
        value = self.number(node.value)
        assert isinstance(node.target, ast.Subscript)
        array = self.array(node.target.value)
        assert isinstance(array.kind, ArrayKind)
        kind = array.kind.element
        if not fits(value.kind, kind) or kind == BOOL:
            raise self.function.error(node, f"a {kind.c} changed by a {value.kind.c}")
        place = f"{array.text}.at[{self.index(node.target.slice, array.text)}]"
        self._write(f"{place} {OPERATORS[type(node.op)]}= {value.text}")

    def _on_annassign(self, node: ast.AnnAssign) -> None:
        raise self.function.error(node, "locals need no annotation")

    def _on_assign(self, node: ast.Assign) -> None:
        value = node.value
        if len(node.targets) == 1 and isinstance(node.targets[0], ast.Tuple):
            self._assign_several(node.targets[0], value)
            return
        if len(node.targets) > 1:
            found = self.number(value)
            kept = self._temporary(found.kind)
            self._write(f"{kept} = {found.text}")
            for target in node.targets:
                self._store(target, Term(kept, found.kind))
            return
        self._assign(node.targets[0], value)

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        kind = self._kind_of(value)
        if isinstance(kind, ArrayKind):
            self._assign_array(target, value, kind)
        elif isinstance(kind, StateKind):
            self._assign_state(target, value, kind)
        else:
            self._store(target, self.number(value))

    def _assign_array(self, target: ast.expr, value: ast.expr, kind: ArrayKind) -> None:
        if not isinstance(target, ast.Name) or target.id in self.function.parameters:
            raise self.function.error(target, "an array needs a name of its own")
        name, made, callee = target.id, self.maker(value), self.callee(value)
        if made is None and callee is not None:
            assert isinstance(value, ast.Call)
            made = self.call(value, callee)
        if made is not None:
            self._write(f"{_owner(name)} = {made.text}")
            self._write(f"{spelled(name)} = of_{kind.c}({_owner(name)})")
            return
        array = self.array(value)
        whole = value.value if isinstance(value, ast.Subscript) else value
        kept = isinstance(whole, ast.Name) and whole.id not in self.function.parameters
        if kept and isinstance(whole, ast.Name):
            self._write(f"{_owner(name)} = {_owner(whole.id)}")
        self._write(f"{spelled(name)} = {array.text}")

    def _assign_state(self, target: ast.expr, value: ast.expr, kind: StateKind) -> None:
        assert isinstance(target, ast.Name)
        assert isinstance(value, ast.Call)
        given = {keyword.arg: keyword.value for keyword in value.keywords}
        if value.args or set(given) != {name for name, _ in kind.fields}:
            raise self.function.error(value, f"{kind.c} needs all its fields by name")
        for name, its in kind.fields:
            found = self.term(given[name])
            if not fits(found.kind, its):
                raise self.function.error(given[name], f"{name} is {its.c}, not {found.kind.c}")
            self._write(f"{spelled(target.id)}.{name} = {found.text}")

    def _assign_several(self, target: ast.Tuple, value: ast.expr) -> None:
        callee = self.callee(value)
        if callee is not None:
            assert isinstance(value, ast.Call)
            self._unpack(target, self.call(value, callee))
        elif isinstance(value, ast.Tuple):
            if any(isinstance(self._kind_of(part), ArrayKind) for part in value.elts):
                for one, other in zip(target.elts, value.elts, strict=True):
                    self._assign(one, other)
                return
            kept = []
            for part in value.elts:
                found = self.number(part)
                if self._constant(part) is None:
                    name = self._temporary(found.kind)
                    self._write(f"{name} = {found.text}")
                    found = Term(name, found.kind)
                kept.append(found)
            for place, found in zip(target.elts, kept, strict=True):
                self._store(place, found)
        else:
            raise self.function.error(value, "several names for one value")

    def _unpack(self, target: ast.Tuple, given: Term) -> None:
        assert isinstance(given.kind, TupleKind)
        whole = self._temporary(given.kind)
        self._write(f"{whole} = {given.text}")
        for k, (place, kind) in enumerate(zip(target.elts, given.kind.parts, strict=True)):
            if isinstance(place, ast.Name) and place.id == "_":
                continue
            if not given.kind.has_arrays:
                self._store(place, Term(f"{whole}.part{k}", kind))
            elif isinstance(kind, ArrayKind):
                assert isinstance(place, ast.Name)
                self._write(f"{_owner(place.id)} = (<tuple>{whole})[{k}]")
                self._write(f"{spelled(place.id)} = of_{kind.c}({_owner(place.id)})")
            else:
                self._store(place, Term(f"<{kind.c}>((<tuple>{whole})[{k}])", kind))

    def _store(self, target: ast.expr, value: Term) -> None:
        if isinstance(target, ast.Subscript):
            array = self.array(target.value)
            assert isinstance(array.kind, ArrayKind)
            kind: Kind = array.kind.element
            place = f"{array.text}.at[{self.index(target.slice, array.text)}]"
        else:
            assert isinstance(target, ast.Name)
            if target.id == "_":
                return
            kind, place = self.kinds[target.id], spelled(target.id)
        if not fits(value.kind, kind):
            raise self.function.error(target, f"a {value.kind.c} does not fit into a {kind.c}")
        self._write(f"{place} = {value.text}")

    def _temporary(self, kind: Kind) -> str:
        name = f"t{len(self.temporaries)}"
        self.temporaries.append((name, kind))
        return name


def _is_object(kind: Kind) -> bool:
    return isinstance(kind, ArrayKind) or (isinstance(kind, TupleKind) and kind.has_arrays)


def _c_type(kind: Kind) -> str:
    return "object" if isinstance(kind, TupleKind) and kind.has_arrays else kind.c


def _owner(name: str) -> str:
    return f"{name}_object"
