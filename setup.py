"""The native core. Where it cannot be built, linkmix installs without it and computes with NumPy.

``LINKMIX_CC`` names another compiler, also one for another system: packaging/wheels.py builds all wheels so. On Windows
it is clang as the package ziglang ships it, because the core is written for GCC and clang.
"""

import os
import re
import shlex
import subprocess
import sys
import sysconfig
from glob import glob
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError

FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))  # has no stable interface yet
COMPILER = shlex.split(os.environ.get("LINKMIX_CC", ""))
if not COMPILER and sys.platform == "win32":
    COMPILER = [sys.executable, "-m", "ziglang", "cc"]
FOR_WINDOWS = "-windows" in " ".join(COMPILER) or sys.platform == "win32"
# Not -ffast-math: the exponential needs additions to be made in the order in which they stand.
FLAGS = ["-O3", "-ffp-contract=fast"]
SOURCE = "https://github.com/linkmix/linkmix"


def readme() -> str:
    """The README with addresses in place of files, for where these are not beside it."""
    text = Path(__file__).with_name("README.md").read_text(encoding="utf-8")
    text = re.sub(r"(!\[[^]]*\]\()(?!https?:)", rf"\1{SOURCE}/raw/main/", text)
    return re.sub(r"(\[[^]]*\]\()(?!https?:|#)", rf"\1{SOURCE}/blob/main/", text)


class build_core(build_ext):
    """Builds the core, with one command if a compiler is named."""

    def get_ext_filename(self, name: str) -> str:
        path = super().get_ext_filename(name)
        return str(Path(path).with_name("_core.pyd")) if FOR_WINDOWS and not FREE_THREADED else path

    def build_extension(self, extension: Extension) -> None:
        if not COMPILER:
            super().build_extension(extension)
            return
        out = Path(self.get_ext_fullpath(extension.name))
        out.parent.mkdir(parents=True, exist_ok=True)
        include = os.environ.get("LINKMIX_INCLUDE", sysconfig.get_path("include"))
        macros = [f"-D{name}={value}" for name, value in extension.define_macros]
        command = [*COMPILER, "-shared", *FLAGS, *macros, "-I", include, *extension.sources, "-o", str(out)]
        if FOR_WINDOWS:
            name = "python3" if extension.py_limited_api else f"python{sys.version_info[0]}{sys.version_info[1]}t"
            command += ["-L", os.environ.get("LINKMIX_LIBS", str(Path(sys.base_prefix) / "libs")), f"-l{name}"]
        else:
            command += ["-fPIC", "-lm"]
        if "macos" in " ".join(COMPILER):
            command += ["-undefined", "dynamic_lookup"]
        try:
            subprocess.run(command, check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise CompileError(f"{shlex.join(command)}: {error}") from error


setup(
    long_description=readme(),
    long_description_content_type="text/markdown",
    cmdclass={"build_ext": build_core},
    ext_modules=[
        Extension(
            "linkmix.native._core",
            sources=["src/linkmix/native/core.c"],
            depends=sorted(glob("src/linkmix/native/*.h")),
            define_macros=[] if FREE_THREADED else [("Py_LIMITED_API", "0x030B0000")],
            py_limited_api=not FREE_THREADED,
            extra_compile_args=FLAGS,
            optional="LINKMIX_CC" not in os.environ,
        )
    ],
    options={} if FREE_THREADED else {"bdist_wheel": {"py_limited_api": "cp311"}},
)
