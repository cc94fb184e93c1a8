"""Who may import whom. The tables below are the rules; to change the architecture, change them."""

import ast
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "linkmix"

# From top to bottom. A room is a module or a folder of src/linkmix. It may import the layers below it and its
# neighbours in the same layer, but never upwards and never in a circle. "__init__" holds the public names.
LAYERS = [
    {"cli"},
    {"__init__"},
    {"demo"},
    {"label", "experiments"},
    {"comparison", "plots", "report", "choice", "explanation", "queries"},
    {"registry"},
    {"auto", "distributed"},
    {"rivals"},
    {"mixture", "trials"},
    {"metrics", "tables", "model_file"},
    {"fitting", "blocks"},
    {"em", "starts"},
    {"densities", "couplings", "class_weights"},
    {"checks"},
    {"links"},
    {"versions"},
    {"native"},
    {"arrays", "errors", "files"},
]

# Neighbours that must not know each other: the room, and what it may not import.
STRANGERS = {
    "densities": {"couplings", "class_weights"},
    "couplings": {"densities"},
    "class_weights": {"densities", "couplings"},
}

# Outside packages that only one module may import.
ONLY_IN = {
    "linkmix.cli": {"click"},
    "linkmix.distributed": {"dask", "distributed"},
    "linkmix.label.server": {
        *("aiohttp", "bottle", "django", "fastapi", "flask", "http.server", "socketserver"),
        *("starlette", "tornado", "uvicorn", "werkzeug", "wsgiref"),
    },
}

# The only modules that may print.
PRINTS = ("linkmix.cli", "linkmix.versions")

# The core dependencies with their own dependencies, and the rooms that may need more than these.
CORE_PACKAGES = {"linkmix", "numpy", "scipy", "sklearn", "joblib", "cloudpickle", "threadpoolctl", "narwhals"}
ROOMS_WITH_EXTRAS = {"cli", "demo", "plots", "label", "experiments", "distributed"}

LEVEL = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}


class Module(NamedTuple):
    name: str  # "linkmix.densities.gaussian"; a package has the name of its folder
    source: str
    is_package: bool = False


def read_package() -> list[Module]:
    modules = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        modules.append(Module(name, path.read_text(encoding="utf-8"), is_package))
    return modules


def room_of(name: str) -> str:
    return name.split(".")[1] if "." in name else "__init__"


def is_inside(name: str, parent: str) -> bool:
    return name == parent or name.startswith(parent + ".")


def imports_of(module: Module) -> set[str]:
    """Return the dotted name of everything that the module imports, at any depth of its code."""
    found = set()
    for node in ast.walk(ast.parse(module.source)):
        match node:
            case ast.Import():
                found.update(alias.name for alias in node.names)
            case ast.ImportFrom():
                base = node.module or ""
                if node.level:
                    parts = module.name.split(".")
                    anchor = parts[: len(parts) - node.level + module.is_package]
                    base = ".".join([*anchor, base] if base else anchor)
                found.update(f"{base}.{alias.name}" for alias in node.names)
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                found.add(name)
    return found


def rooms_imported_by(module: Module) -> set[str]:
    """Return the rooms of linkmix that the module imports, without its own."""
    rooms = set()
    for name in imports_of(module):
        if is_inside(name, "linkmix"):
            room = room_of(name)
            # `from linkmix import purity` names no room: it reads the public names.
            is_public_name = room not in LEVEL and name.count(".") == 1
            rooms.add("__init__" if is_public_name else room)
    return rooms - {room_of(module.name)}


def unknown_rooms(modules: list[Module]) -> list[str]:
    rooms = {room_of(module.name) for module in modules}.union(*map(rooms_imported_by, modules))
    return [
        f"linkmix.{room} is in no layer: add it to LAYERS in tests/test_architecture.py, as low as it can live"
        for room in sorted(rooms - LEVEL.keys())
    ]


def layer_violations(modules: list[Module]) -> list[str]:
    violations = []
    for module in modules:
        room = room_of(module.name)
        for other in sorted(rooms_imported_by(module)):
            if room not in LEVEL or other not in LEVEL:
                continue  # reported by unknown_rooms
            if LEVEL[other] < LEVEL[room]:
                violations.append(f"{module.name} imports {other}, which is above {room}")
            elif other in STRANGERS.get(room, ()):
                violations.append(f"{module.name} imports {other}; {room} and {other} must not know each other")
    return violations


def circles(modules: list[Module]) -> list[str]:
    graph: dict[str, set[str]] = {}
    for module in modules:
        graph.setdefault(room_of(module.name), set()).update(rooms_imported_by(module))
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return ["rooms import each other in a circle: " + " <- ".join(error.args[1])]
    return []


def misplaced_packages(modules: list[Module]) -> list[str]:
    return [
        f"{module.name} imports {name}; only {home} may import {package}"
        for module in modules
        for name in sorted(imports_of(module))
        for home, packages in ONLY_IN.items()
        for package in sorted(packages)
        if is_inside(name, package) and not is_inside(module.name, home)
    ]


def misplaced_prints(modules: list[Module]) -> list[str]:
    return [
        f"{module.name}, line {node.lineno}: only {' and '.join(PRINTS)} may print"
        for module in modules
        if not any(is_inside(module.name, home) for home in PRINTS)
        for node in ast.walk(ast.parse(module.source))
        if isinstance(node, ast.Name) and node.id == "print"
    ]


CHECKS = [unknown_rooms, layer_violations, circles, misplaced_packages, misplaced_prints]


@pytest.mark.parametrize("check", CHECKS)
def test_linkmix_keeps_the_rules(check):
    modules = read_package()
    assert modules, f"no modules in {PACKAGE}"
    violations = check(modules)
    assert not violations, "\n" + "\n".join(violations)


# The checks themselves: each line breaks one rule, so a check that finds nothing is broken.
@pytest.mark.parametrize(
    ("check", "name", "source"),
    [
        (unknown_rooms, "linkmix.helpers", ""),
        (unknown_rooms, "linkmix.em", "from linkmix.helpers import anything"),
        (layer_violations, "linkmix.links", "import linkmix.em"),
        (layer_violations, "linkmix.links", "from linkmix import em"),
        (layer_violations, "linkmix.links", "from linkmix.em import fit"),
        (layer_violations, "linkmix.links", "from . import em"),
        (layer_violations, "linkmix.links", "from .em import fit"),
        (layer_violations, "linkmix.links", "def late():\n    from .em import fit"),
        (layer_violations, "linkmix.links", "import importlib\nimportlib.import_module('linkmix.em')"),
        (layer_violations, "linkmix.mixture", "from linkmix import purity"),
        (layer_violations, "linkmix.mixture", "import linkmix"),
        (layer_violations, "linkmix", "from linkmix.cli import main"),
        (layer_violations, "linkmix.densities.gaussian", "from ..couplings import base"),
        (layer_violations, "linkmix.couplings.graph", "from linkmix.densities.base import Density"),
        (layer_violations, "linkmix.class_weights", "from .couplings.base import Coupling"),
        (misplaced_packages, "linkmix.tables", "import dask.dataframe as dd"),
        (misplaced_packages, "linkmix.em", "from distributed import Client"),
        (misplaced_packages, "linkmix.label.session", "from http import server"),
        (misplaced_packages, "linkmix.label.server_log", "import uvicorn"),
        (misplaced_packages, "linkmix.demo", "import click"),
        (misplaced_prints, "linkmix.em", "print('J =', 1)"),
        (misplaced_prints, "linkmix.em", "log = print"),
    ],
)
def test_a_broken_rule_is_found(check, name, source):
    assert len(check([Module(name, source)])) == 1


def test_relative_imports_of_a_package_start_at_the_package():
    package = Module("linkmix.densities", "from .gaussian import Gaussian\nfrom ..em import fit", is_package=True)
    assert imports_of(package) == {"linkmix.densities.gaussian.Gaussian", "linkmix.em.fit"}
    assert layer_violations([package]) == ["linkmix.densities imports em, which is above densities"]


def test_a_circle_of_neighbours_is_found():
    em = Module("linkmix.em", "from linkmix.starts import draw")
    starts = Module("linkmix.starts", "from linkmix.em import Parameters")
    assert not layer_violations([em, starts])
    assert not circles([em])
    assert len(circles([em, starts])) == 1


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("linkmix", "from .auto import AutoLinkMixture\nfrom linkmix.mixture import LinkMixture"),
        ("linkmix.cli", "import click\nfrom linkmix import LinkMixture\nprint(click)"),
        ("linkmix.couplings.pairwise", "from linkmix.class_weights import solve_class_weights\nfrom . import base"),
        ("linkmix.rivals.gmm_ec", "from linkmix.mixture import LinkMixture"),
        ("linkmix.distributed", "import dask\nfrom distributed import Client\nfrom . import em"),
        ("linkmix.em", "from linkmix import densities\nimport numpy as np\nfrom http import HTTPStatus"),
        ("linkmix.em", '"""Example: print(1)."""'),
        ("linkmix.label.server", "import http.server\nfrom . import session"),
    ],
)
def test_allowed_code_passes(name, source):
    module = Module(name, source, is_package=name == "linkmix")
    assert [violation for check in CHECKS for violation in check([module])] == []


def import_with_core_alone(names: list[str]) -> subprocess.CompletedProcess[str]:
    """Import the names in a fresh Python that finds only the standard library and the core packages."""
    script = f"""
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        is_standard = top in sys.stdlib_module_names or top.startswith("_sysconfigdata")
        if not is_standard and top not in {CORE_PACKAGES!r}:
            raise ModuleNotFoundError(f"{{name}} is no core dependency", name=name)

sys.meta_path.insert(0, Blocker())
import {", ".join(names)}
"""
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)


def test_the_core_needs_no_extras():
    names = [module.name for module in read_package() if room_of(module.name) not in ROOMS_WITH_EXTRAS]
    assert "linkmix" in names
    result = import_with_core_alone(names)
    assert result.returncode == 0, result.stderr


def test_an_extra_is_really_blocked():
    result = import_with_core_alone(["sklearn", "pytest"])
    assert result.returncode == 1
    assert "pytest is no core dependency" in result.stderr
