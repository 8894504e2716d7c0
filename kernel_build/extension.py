"""The whole extension: what the kernels stand on, the kernels, and a door to each marked one."""

from __future__ import annotations

import ast
from pathlib import Path

from kernel_build.expressions import MAKERS, spelled
from kernel_build.gather import Function, Kernels
from kernel_build.kinds import ARRAYS, BOOL, NOTHING, ArrayKind, Kind, StateKind, TupleKind
from kernel_build.statements import FunctionText

HEAD = """\
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: binding=False, embedsignature=False, initializedcheck=False, auto_pickle=False
cimport cython
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE
cimport numpy as cnp
from cpython.time cimport perf_counter
from libc.math cimport INFINITY, NAN, fabs, rint
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t
from libc.stdlib cimport llabs
from libc.string cimport memcpy

cnp.import_array()
"""

C_HEAD = """\
    #include <stdio.h>
    #include <stdlib.h>
    #include <stdint.h>
    #ifdef FOREPLAN_CHECKED
    static inline int64_t foreplan_at(int64_t i, int64_t n) {
        if (i < 0 || i >= n) {
            fprintf(stderr, "foreplan: place %lld of an array", (long long)i);
            fprintf(stderr, " of %lld\\\\n", (long long)n);
            abort();
        }
        return i;
    }
    #else
    #define foreplan_at(i, n) (i)
    #endif
    static inline int64_t floor_divide(int64_t a, int64_t b) {
        int64_t q = a / b;
        return q - ((a % b != 0) && ((a < 0) != (b < 0)));
    }
    static inline int64_t floor_remainder(int64_t a, int64_t b) {
        int64_t r = a % b;
        return r + (((r != 0) && ((r < 0) != (b < 0))) ? b : 0);
    }
    static inline double max_float(double a, double b) { return b > a ? b : a; }
    static inline double min_float(double a, double b) { return b < a ? b : a; }
    static inline int64_t max_int(int64_t a, int64_t b) { return b > a ? b : a; }
    static inline int64_t min_int(int64_t a, int64_t b) { return b < a ? b : a; }
"""

DECLARED = """\
    int64_t foreplan_at(int64_t i, int64_t n) noexcept nogil
    int64_t floor_divide(int64_t a, int64_t b) noexcept nogil
    int64_t floor_remainder(int64_t a, int64_t b) noexcept nogil
    double max_float(double a, double b) noexcept nogil
    double min_float(double a, double b) noexcept nogil
    int64_t max_int(int64_t a, int64_t b) noexcept nogil
    int64_t min_int(int64_t a, int64_t b) noexcept nogil
"""

ARRAY = """\
cdef inline {c} of_{c}(object made) noexcept:
    cdef {c} view
    view.at = <{element}*>cnp.PyArray_DATA(<cnp.ndarray>made)
    view.n = cnp.PyArray_DIM(<cnp.ndarray>made, 0)
    return view

cdef {c} given_{c}(object given, str name, bint written) except *:
    if not cnp.PyArray_Check(given):
        raise TypeError(f"{{name}} must be an array of {dtype}, not {{type(given).__name__}}")
    cdef cnp.ndarray array = <cnp.ndarray>given
    if cnp.PyArray_TYPE(array) != cnp.{number} or cnp.PyArray_NDIM(array) != 1 \\
            or not cnp.PyArray_IS_C_CONTIGUOUS(array):
        what = f"not {{array.dtype}}, {{array.ndim}}-d"
        raise TypeError(f"{{name}} must be a flat array of {dtype}, {{what}}")
    if written and not cnp.PyArray_ISWRITEABLE(array):
        raise ValueError(f"{{name}} is written to, but read-only")
    return of_{c}(array)

cdef object empty_{c}(int64_t n):
    cdef cnp.npy_intp size = n
    return cnp.PyArray_EMPTY(1, &size, cnp.{number}, 0)

cdef object zeros_{c}(int64_t n):
    cdef cnp.npy_intp size = n
    return cnp.PyArray_ZEROS(1, &size, cnp.{number}, 0)

cdef object full_{c}(int64_t n, {element} value):
    cdef object made = empty_{c}(n)
    cdef {c} view = of_{c}(made)
    cdef int64_t k
    for k in range(n):
        view.at[k] = value
    return made

cdef object copy_{c}({c} given):
    cdef object made = empty_{c}(given.n)
    if given.n > 0:
        memcpy(of_{c}(made).at, given.at, given.n * sizeof({element}))
    return made

cdef inline {c} part_{c}({c} whole, int64_t low, int64_t high) noexcept:
    cdef {c} view
    view.at = whole.at + low
    view.n = high - low
    return view
"""


def extension_text(source: Path, package: str) -> str:
    """The Cython source of the extension with all kernels of a package."""
    kernels = Kernels(source, package)
    functions = list(kernels.functions.values())
    raising = _raising(kernels)
    written = Written(kernels)
    bodies = [FunctionText(kernels, function, raising).text() for function in functions]
    tuples = sorted({f.result.c: f.result for f in functions if _is_plain_tuple(f.result)}.items())
    parts = [HEAD, _declarations(kernels, [kind for _, kind in tuples])]
    parts += [
        ARRAY.format(c=kind.c, element=kind.element_c, number=kind.numpy, dtype=kind.c.lower())
        for kind in ARRAYS
    ]
    parts += [_state_given(kind, written) for kind in kernels.states.values()]
    parts += bodies
    parts += [_door(function, written) for function in functions if function.entry]
    parts.append(f"SOURCES = {kernels.fingerprints()!r}\n")
    return "\n\n".join(parts)


def _declarations(kernels: Kernels, tuples: list[Kind]) -> str:
    """The structures, in C and for Cython."""
    in_c, declared = [C_HEAD], [DECLARED]
    for array in ARRAYS:
        in_c.append(f"    typedef struct {{ {array.element_c} *at; int64_t n; }} {array.c};")
        declared += [
            f"    ctypedef struct {array.c}:",
            f"        {array.element_c}* at",
            "        int64_t n",
        ]
    structs: list[tuple[str, list[tuple[str, Kind]]]] = [
        (kind.c, [(f"part{k}", part) for k, part in enumerate(kind.parts)])
        for kind in tuples
        if isinstance(kind, TupleKind)
    ]
    structs += [(state.c, list(state.fields)) for state in kernels.states.values()]
    for name, fields in structs:
        inside = " ".join(f"{_in_c(kind)} {field};" for field, kind in fields)
        in_c.append(f"    typedef struct {{ {inside} }} {name};")
        declared.append(f"    ctypedef struct {name}:")
        declared += [f"        {kind.c} {field}" for field, kind in fields]
    for name in kernels.states:
        # nothing that a kernel writes can change the state's own pointers
        in_c.append(f"    typedef const {name} *__restrict {name}_p;")
        declared.append(f"    ctypedef {name}* {name}_p")
    return 'cdef extern from *:\n    """\n' + "\n".join(in_c) + '\n    """\n' + "\n".join(declared)


def _in_c(kind: Kind) -> str:
    return "int" if kind == BOOL else kind.c


def _is_plain_tuple(kind: Kind) -> bool:
    return isinstance(kind, TupleKind) and not kind.has_arrays


def _state_given(state: StateKind, written: Written) -> str:
    """A NamedTuple of Python's as a structure."""
    lines = [
        f"cdef int given_{state.c}(object given, {state.c}* state) except -1:",
        f"    if not isinstance(given, tuple) or PyTuple_GET_SIZE(given) != {len(state.fields)}:",
        f"        raise TypeError(f'a {state.c} is wanted, not {{type(given).__name__}}')",
    ]
    for k, (name, kind) in enumerate(state.fields):
        item = f"<object>PyTuple_GET_ITEM(given, {k})"
        if isinstance(kind, ArrayKind):
            also = (state.c, name) in written.fields
            item = f"given_{kind.c}({item}, '{name}', {int(also)})"
        lines.append(f"    state.{name} = {item}")
    return "\n".join([*lines, "    return 0"])


def _door(function: Function, written: Written) -> str:
    """What Python calls: takes the arguments apart, and gives the result as Python has it."""
    typed, before, given = [], [], []
    for name, kind in function.parameters.items():
        name = spelled(name)
        if isinstance(kind, StateKind):
            typed.append(name)
            before.append(f"    cdef {kind.c} {name}_state")
            before.append(f"    given_{kind.c}({name}, &{name}_state)")
            given.append(f"&{name}_state")
        elif isinstance(kind, ArrayKind):
            typed.append(name)
            also = (function.name, name) in written.parameters
            before.append(
                f"    cdef {kind.c} {name}_array = given_{kind.c}({name}, '{name}', {int(also)})"
            )
            given.append(f"{name}_array")
        else:
            typed.append(f"{kind.c} {name}")
            given.append(name)
    call = f"{function.name}({', '.join(given)})"
    lines = [f"def {function.name}_door({', '.join(typed)}):", *before]
    kind = function.result
    if kind == NOTHING:
        lines.append(f"    {call}")
    elif kind == BOOL:
        lines.append(f"    return bool({call})")
    elif isinstance(kind, TupleKind) and not kind.has_arrays:
        parts = [
            f"bool(result.part{k})" if part == BOOL else f"result.part{k}"
            for k, part in enumerate(kind.parts)
        ]
        lines += [f"    cdef {kind.c} result = {call}", f"    return ({', '.join(parts)})"]
    else:
        lines.append(f"    return {call}")
    return "\n".join(lines)


def _calls(kernels: Kernels, function: Function) -> list[tuple[ast.Call, Function]]:
    found = []
    for node in ast.walk(function.node):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            callee = kernels.function(function.module, node.func.id)
            if callee is not None:
                found.append((node, callee))
    return found


def _raising(kernels: Kernels) -> set[str]:
    """The functions that can fail: those that make arrays, and those that call them."""
    raising = {
        function.name
        for function in kernels.functions.values()
        for node in ast.walk(function.node)
        if isinstance(node, ast.Call)
        and (ast.unparse(node.func) in MAKERS or ast.unparse(node.func).endswith(".copy"))
    }
    while True:
        more = {
            function.name
            for function in kernels.functions.values()
            if any(callee.name in raising for _, callee in _calls(kernels, function))
        }
        if more <= raising:
            return raising
        raising |= more


class Written:
    """Which arrays kernels write to: parameters by function, and fields of states."""

    def __init__(self, kernels: Kernels) -> None:
        self.parameters: set[tuple[str, str]] = set()
        self.fields: set[tuple[str, str]] = set()
        before = -1
        while before != len(self.parameters) + len(self.fields):
            before = len(self.parameters) + len(self.fields)
            for function in kernels.functions.values():
                self._note(kernels, function)

    def _note(self, kernels: Kernels, function: Function) -> None:
        behind: dict[str, list[ast.expr]] = {}  # what a local name may stand for
        for node in ast.walk(function.node):
            if isinstance(node, ast.Assign):
                for target, value in _pairs(node):
                    if isinstance(target, ast.Name):
                        behind.setdefault(target.id, []).append(value)
        for node in ast.walk(function.node):
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
                self._mark(function, node.value, behind)
        for call, callee in _calls(kernels, function):
            for argument, name in zip(call.args, callee.parameters, strict=False):
                if (callee.name, name) in self.parameters:
                    self._mark(function, argument, behind)

    def _mark(self, function: Function, array: ast.expr, behind: dict[str, list[ast.expr]]) -> None:
        if isinstance(array, ast.Subscript):
            self._mark(function, array.value, behind)
        elif isinstance(array, ast.Name) and array.id in function.parameters:
            self.parameters.add((function.name, array.id))
        elif isinstance(array, ast.Name):
            for value in behind.pop(array.id, []):
                self._mark(function, value, behind)
        elif isinstance(array, ast.Attribute) and isinstance(array.value, ast.Name):
            state = function.parameters.get(array.value.id)
            if isinstance(state, StateKind):
                self.fields.add((state.c, array.attr))


def _pairs(node: ast.Assign) -> list[tuple[ast.expr, ast.expr]]:
    pairs = []
    for target in node.targets:
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            pairs += list(zip(target.elts, node.value.elts, strict=False))
        else:
            pairs.append((target, node.value))
    return pairs
