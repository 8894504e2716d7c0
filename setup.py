"""The compiled part of foreplan: its kernels, gathered into the extension `foreplan._native`."""

import sys
from pathlib import Path
from typing import Any

import numpy
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).parent
sys.path.insert(0, str(ROOT))

from kernel_build.extension import extension_text  # noqa: E402

GENERATED = Path("build", "kernels", "_native.pyx")
# results are the same to the bit everywhere: no fast arithmetic, no fused operations
FLAGS = {
    "msvc": ["/O2", "/fp:precise"],
    "other": ["-O3", "-ffp-contract=off", "-g0", "-Wno-unused-function"],
}


class BuildKernels(build_ext):  # type: ignore[misc, unused-ignore]
    """Gathers the kernels, and builds the extension with the flags of the compiler at hand."""

    def run(self) -> None:
        """Write the extension's source; then as always: Cython translates it, if it is there."""
        write_if_changed(ROOT / GENERATED, extension_text(ROOT / "src", "foreplan"))
        super().run()

    def build_extension(self, ext: Any) -> None:
        """Set the flags; then as always."""
        kind = self.compiler.compiler_type
        ext.extra_compile_args = FLAGS["msvc" if kind == "msvc" else "other"] + CHECKED
        super().build_extension(ext)


def write_if_changed(path: Path, text: str) -> None:
    """So that what has not changed is not built again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


# every place in an array is checked, and a wrong one ends the process: to look for mistakes
CHECKED = ["-DFOREPLAN_CHECKED"] if "--checked" in sys.argv else []
sys.argv = [argument for argument in sys.argv if argument != "--checked"]

NATIVE = Extension(
    "foreplan._native",
    [str(GENERATED)],
    include_dirs=[numpy.get_include()],
    define_macros=[("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION")],
    optional=True,  # where it cannot be compiled, foreplan is installed without it
)

setup(ext_modules=[NATIVE], cmdclass={"build_ext": BuildKernels})
