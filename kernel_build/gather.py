"""The kernels of a source tree: what is marked `@compiled`, and all that it calls and names."""

from __future__ import annotations

import ast
import hashlib
from dataclasses import dataclass, field
from pathlib import Path

from kernel_build.kinds import NAMED, NOTHING, KernelError, Kind, StateKind, tuple_of

MARK = "compiled"


@dataclass
class Function:
    """A kernel function: its source, and the kinds that it takes and gives."""

    module: Module
    node: ast.FunctionDef
    entry: bool
    parameters: dict[str, Kind] = field(default_factory=dict)
    result: Kind = NOTHING

    @property
    def name(self) -> str:
        """Its name in the extension."""
        return f"{self.module.short}__{self.node.name}"

    def error(self, node: ast.AST, what: str) -> KernelError:
        """What the build does not understand, and where it stands."""
        return KernelError(f"{self.module.path}:{getattr(node, 'lineno', '?')}: {what}")


@dataclass
class Module:
    """A source file: what it defines, and where the names come from that it imports."""

    path: Path
    name: str
    functions: dict[str, ast.FunctionDef] = field(default_factory=dict)
    classes: dict[str, ast.ClassDef] = field(default_factory=dict)
    constants: dict[str, ast.expr] = field(default_factory=dict)
    imported: dict[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def short(self) -> str:
        """Its name without the package's, as part of a name."""
        return self.name.partition(".")[2].replace(".", "_")


def is_marked(node: ast.FunctionDef) -> bool:
    """Whether Python code calls this kernel."""
    return any(isinstance(d, ast.Name) and d.id == MARK for d in node.decorator_list)


class Kernels:
    """All kernels of a package, found from those that are marked."""

    def __init__(self, source: Path, package: str) -> None:
        self.source = source
        self.modules: dict[str, Module] = {}
        self.functions: dict[str, Function] = {}
        self.states: dict[str, StateKind] = {}
        self._values: dict[tuple[str, str], object] = {}
        for path in sorted((source / package).rglob("*.py")):
            if f"\n@{MARK}\n" in path.read_text(encoding="utf-8"):
                module = self._module(".".join(path.relative_to(source).with_suffix("").parts))
                for node in module.functions.values():
                    if is_marked(node):
                        self._function(module, node)

    def fingerprints(self) -> list[tuple[str, str]]:
        """The files that kernels come from, and what was in them."""
        return sorted(
            (
                module.path.relative_to(self.source).as_posix(),
                hashlib.sha256(module.path.read_bytes()).hexdigest(),
            )
            for module in self.modules.values()
        )

    def function(self, module: Module, name: str) -> Function | None:
        """The kernel that a name means in a module, if it means one."""
        if name in module.functions:
            return self._function(module, module.functions[name])
        if name in module.imported:
            other, there = module.imported[name]
            return self.function(self._module(other), there)
        return None

    def state(self, module: Module, name: str) -> StateKind | None:
        """The NamedTuple that a name means in a module, if it means one."""
        if name in module.classes:
            node = module.classes[name]
            if name not in self.states:
                fields = tuple(
                    (line.target.id, self.kind(module, line.annotation, node.name))
                    for line in node.body
                    if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)
                )
                self.states[name] = StateKind(name, fields)
            return self.states[name]
        if name in module.imported:
            other, there = module.imported[name]
            return self.state(self._module(other), there)
        return None

    def constant(self, module: Module, name: str) -> object:
        """The value of a module's constant; None if it has none of that name."""
        if name in module.imported:
            other, there = module.imported[name]
            return self.constant(self._module(other), there)
        if name not in module.constants:
            return None
        if (module.name, name) not in self._values:
            self._values[module.name, name] = self._evaluated(module, module.constants[name])
        return self._values[module.name, name]

    def kind(self, module: Module, annotation: ast.expr | None, where: str) -> Kind:
        """What an annotation says."""
        if annotation is None:
            raise KernelError(f"{module.path}: {where} has no annotation")
        text = ast.unparse(annotation)
        if text in NAMED:
            return NAMED[text]
        if isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) == "tuple":
            assert isinstance(annotation.slice, ast.Tuple)
            return tuple_of(tuple(self.kind(module, part, where) for part in annotation.slice.elts))
        state = self.state(module, text)
        if state is None:
            raise KernelError(f"{module.path}:{annotation.lineno}: a kernel knows no {text}")
        return state

    def _module(self, name: str) -> Module:
        if name not in self.modules:
            path = self.source.joinpath(*name.split(".")).with_suffix(".py")
            if not path.exists():
                path = path.with_suffix("") / "__init__.py"
            module = Module(path, name)
            for line in ast.parse(path.read_text(encoding="utf-8")).body:
                self._note(module, line)
            self.modules[name] = module
        return self.modules[name]

    def _note(self, module: Module, line: ast.stmt) -> None:
        if isinstance(line, ast.FunctionDef):
            module.functions[line.name] = line
        elif isinstance(line, ast.ClassDef):
            module.classes[line.name] = line
        elif isinstance(line, ast.ImportFrom) and (line.module or "").startswith("foreplan."):
            for alias in line.names:
                module.imported[alias.asname or alias.name] = (line.module or "", alias.name)
        elif isinstance(line, ast.Assign) and len(line.targets) == 1:
            target = line.targets[0]
            if isinstance(target, ast.Name):
                module.constants[target.id] = line.value
            elif isinstance(target, ast.Tuple):
                for k, name in enumerate(target.elts):
                    assert isinstance(name, ast.Name)
                    module.constants[name.id] = ast.parse(
                        f"tuple({ast.unparse(line.value)})[{k}]", mode="eval"
                    ).body

    def _evaluated(self, module: Module, value: ast.expr) -> object:
        names = {
            node.id: self.constant(module, node.id)
            for node in ast.walk(value)
            if isinstance(node, ast.Name)
        }
        known = {k: v for k, v in names.items() if v is not None}
        safe = {"__builtins__": {"range": range, "tuple": tuple}}
        try:
            code = compile(ast.Expression(value), "constant", "eval")
            return eval(code, safe, known)
        except NameError:
            return None  # a type, or something else that no kernel uses

    def _function(self, module: Module, node: ast.FunctionDef) -> Function:
        found = self.functions.get(f"{module.short}__{node.name}")
        if found is None:
            found = Function(module, node, is_marked(node))
            self.functions[found.name] = found
            for argument in node.args.args:
                where = f"{argument.arg} of {node.name}"
                found.parameters[argument.arg] = self.kind(module, argument.annotation, where)
            found.result = self.kind(module, node.returns, f"what {node.name} returns")
            for call in ast.walk(node):
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
                    self.function(module, call.func.id)
        return found
