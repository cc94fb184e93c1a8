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
    {"app"},
    {"__init__"},
    {"queries", "plots", "distributed", "study"},
    {"search"},
    {"mixture", "rivals"},
    {"engine"},
    {"densities", "couplings", "tables"},
    {"columns"},
    {"data"},
    {"native", "links"},
    {"basics"},
]

# Neighbours that must not know each other: the room, and what it may not import.
STRANGERS = {
    "densities": {"couplings", "tables"},
    "couplings": {"densities", "tables"},
    "tables": {"densities", "couplings"},
    "native": {"links"},
    "links": {"native"},
    "mixture": {"rivals"},
}

# Outside packages that only one module may import.
ONLY_IN = {
    "linkmix.app.cli": {"click"},
    "linkmix.distributed": {"dask", "distributed"},
    "linkmix.plots.pages": {"jinja2"},
    "linkmix.app.label.server": {
        *("aiohttp", "bottle", "django", "fastapi", "flask", "http.server", "socketserver"),
        *("starlette", "tornado", "uvicorn", "werkzeug", "wsgiref"),
    },
}

# The only modules that may print.
PRINTS = ("linkmix.app.cli", "linkmix.native.versions")

# The core dependencies with their own dependencies, and the rooms that may need more than these.
CORE_PACKAGES = {"linkmix", "numpy", "scipy", "sklearn", "joblib", "cloudpickle", "threadpoolctl", "narwhals"}
ROOMS_WITH_EXTRAS = {"app", "plots", "distributed"}
PARTS_WITH_EXTRAS = ("linkmix.study.paper", "linkmix.study.demo")

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
        (unknown_rooms, "linkmix.engine", "from linkmix.helpers import anything"),
        (layer_violations, "linkmix.links", "import linkmix.engine"),
        (layer_violations, "linkmix.links", "from linkmix import engine"),
        (layer_violations, "linkmix.links", "from linkmix.engine import fit"),
        (layer_violations, "linkmix.distributed", "from .app import cli"),
        (layer_violations, "linkmix.links.links", "from ..engine import fit"),
        (layer_violations, "linkmix.links", "def late():\n    from linkmix.engine import fit"),
        (layer_violations, "linkmix.links", "import importlib\nimportlib.import_module('linkmix.engine')"),
        (layer_violations, "linkmix.mixture", "from linkmix import purity"),
        (layer_violations, "linkmix.mixture", "import linkmix"),
        (layer_violations, "linkmix", "from linkmix.app.cli import main"),
        (layer_violations, "linkmix.densities.gaussian", "from ..couplings import base"),
        (layer_violations, "linkmix.couplings.graph", "from linkmix.densities.base import Density"),
        (layer_violations, "linkmix.tables.points", "from linkmix.couplings.base import Coupling"),
        (misplaced_packages, "linkmix.tables", "import dask.dataframe as dd"),
        (misplaced_packages, "linkmix.engine.loop", "from distributed import Client"),
        (misplaced_packages, "linkmix.app.label.session", "from http import server"),
        (misplaced_packages, "linkmix.app.label.server_log", "import uvicorn"),
        (misplaced_packages, "linkmix.study.demo", "import click"),
        (misplaced_prints, "linkmix.engine.loop", "print('J =', 1)"),
        (misplaced_prints, "linkmix.engine.loop", "log = print"),
    ],
)
def test_a_broken_rule_is_found(check, name, source):
    assert len(check([Module(name, source)])) == 1


def test_relative_imports_of_a_package_start_at_the_package():
    package = Module("linkmix.densities", "from .gaussian import Gaussian\nfrom ..engine import fit", is_package=True)
    assert imports_of(package) == {"linkmix.densities.gaussian.Gaussian", "linkmix.engine.fit"}
    assert layer_violations([package]) == ["linkmix.densities imports engine, which is above densities"]


def test_a_circle_of_neighbours_is_found():
    study = Module("linkmix.study.demo", "from linkmix.plots import draw_points")
    plots = Module("linkmix.plots", "from linkmix.study.metrics import purity")
    assert not layer_violations([study, plots])
    assert not circles([study])
    assert len(circles([study, plots])) == 1


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("linkmix", "from .search import AutoLinkMixture\nfrom linkmix.mixture import LinkMixture"),
        ("linkmix.app.cli", "import click\nfrom linkmix import LinkMixture\nprint(click)"),
        ("linkmix.couplings.pairwise", "from linkmix.links import Links\nfrom . import base"),
        ("linkmix.rivals.mixtures", "from linkmix.mixture import LinkMixture"),
        ("linkmix.distributed", "import dask\nfrom distributed import Client\nfrom . import engine"),
        ("linkmix.engine.loop", "from linkmix import densities\nimport numpy as np\nfrom http import HTTPStatus"),
        ("linkmix.engine.loop", '"""Example: print(1)."""'),
        ("linkmix.app.label.server", "import http.server\nfrom . import session"),
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
    names = [
        module.name
        for module in read_package()
        if room_of(module.name) not in ROOMS_WITH_EXTRAS
        and not any(is_inside(module.name, part) for part in PARTS_WITH_EXTRAS)
    ]
    assert "linkmix" in names
    result = import_with_core_alone(names)
    assert result.returncode == 0, result.stderr


def test_an_extra_is_really_blocked():
    result = import_with_core_alone(["sklearn", "pytest"])
    assert result.returncode == 1
    assert "pytest is no core dependency" in result.stderr
