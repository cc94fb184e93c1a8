"""Builds the source distribution and, from it, a wheel for each system: ``python packaging/wheels.py --out dist``.

One wheel for each system serves every Python from 3.11 on, since the core keeps to the stable interface. They are
compiled on this machine, whatever it is, by the clang of the package ziglang; only ``build`` is needed besides.
Free-threaded Python, which has no stable interface yet, compiles the core from the source distribution.
"""

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
TARGETS = {
    "manylinux2014_x86_64": "x86_64-linux-gnu.2.17",
    "manylinux2014_aarch64": "aarch64-linux-gnu.2.17",
    "macosx_11_0_x86_64": "x86_64-macos.11.0",
    "macosx_11_0_arm64": "aarch64-macos.11.0",
    "win_amd64": "x86_64-windows-gnu",
}
"""The tag of each wheel, and what clang calls the system."""


def sdist(out: Path) -> Path:
    """Build the source distribution."""
    _run([sys.executable, "-m", "build", "--sdist", "--outdir", str(out), str(ROOT)])
    return max(out.glob("linkmix-*.tar.gz"), key=lambda path: path.stat().st_mtime)


def wheel(source: Path, tag: str, out: Path, headers: Path) -> Path:
    """Build the wheel of a system from the source distribution."""
    compiler = [sys.executable, "-m", "ziglang", "cc", "-target", TARGETS[tag]]
    environment = os.environ | {
        "LINKMIX_CC": shlex.join(compiler),
        "LINKMIX_INCLUDE": str(headers),
        "LINKMIX_LIBS": str(headers),
    }
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(source) as archive:
            archive.extractall(folder, filter="data")
        (inside,) = Path(folder).iterdir()
        option = f"--config-setting=--build-option=--plat-name={tag}"
        _run([sys.executable, "-m", "build", "--wheel", option, "--outdir", str(out), str(inside)], environment)
    (found,) = out.glob(f"linkmix-*-abi3-{tag}.whl")
    return found


def copy_headers(folder: Path) -> None:
    """Copy the headers of Python that are the same on all systems, beside what stands for the other ones."""
    shutil.copytree(sysconfig.get_path("include"), folder, dirs_exist_ok=True)
    (folder / "pyconfig.h").unlink()
    shutil.copy(ROOT / "packaging" / "pyconfig.h", folder)
    names = set[str]()
    for path in (ROOT / "src" / "linkmix" / "native").glob("*.[ch]"):
        names.update(re.findall(r"\bPy[A-Z]\w+|\bPy_\w+", path.read_text()))
    exports = [f"{name} DATA" if name.startswith("PyExc_") else name for name in sorted(names)]
    exports += ["_Py_NoneStruct DATA", "_Py_TrueStruct DATA", "_Py_FalseStruct DATA", "_Py_Dealloc"]  # behind macros
    exports += ["Py_DecRef", "PyType_GetFlags", "_PyArg_ParseTuple_SizeT", "_Py_BuildValue_SizeT"]
    (folder / "python3.def").write_text("\n".join(["LIBRARY python3.dll", "EXPORTS", *exports, ""]))
    tool = [sys.executable, "-m", "ziglang", "dlltool", "-m", "i386:x86-64"]
    _run([*tool, "-d", str(folder / "python3.def"), "-l", str(folder / "python3.lib")])


def main() -> None:
    """Build all of them, or some."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tags", nargs="*", metavar="TAG", help=f"one of {', '.join(TARGETS)}; by default all")
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    given = parser.parse_args()
    unknown = sorted(set(given.tags) - set(TARGETS))
    if unknown:
        parser.error(f"there is no wheel for {', '.join(unknown)}: choose from {', '.join(TARGETS)}")
    given.out.mkdir(parents=True, exist_ok=True)
    source = sdist(given.out)
    print(source)
    with tempfile.TemporaryDirectory() as folder:
        copy_headers(Path(folder))
        for tag in given.tags or TARGETS:
            print(wheel(source, tag, given.out, Path(folder)), flush=True)


def _run(command: list[str], environment: dict[str, str] | None = None) -> None:
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"{shlex.join(command)}\n{done.stdout[-4000:]}")


if __name__ == "__main__":
    main()
