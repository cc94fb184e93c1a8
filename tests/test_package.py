"""What is published: the source distribution, the wheel made of it, and what stands in several files."""

import os
import platform
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import linkmix

ROOT = Path(__file__).parents[1]


def test_the_version_is_the_same_everywhere():
    assert f"version: {linkmix.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f'{{% set version = "{linkmix.__version__}" %}}' in (ROOT / "packaging" / "conda" / "meta.yaml").read_text()


def test_the_conda_recipe_needs_what_the_package_needs():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    recipe = (ROOT / "packaging" / "conda" / "meta.yaml").read_text()
    run = recipe.partition("  run:\n")[2].partition("  run_constrained:")[0]
    assert re.findall(r"- ([\w-]+) (>=\S+)", run) == [
        re.fullmatch(r"([\w-]+)(>=\S+)", one).groups() for one in project["dependencies"]
    ]


def test_every_extra_of_the_app_is_one_of_its_own():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert {"cli", "plots", "label", "dask", "experiments", "app"} <= set(extras)
    assert extras["app"] == ["linkmix[cli,label,plots]"]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="auditwheel is for Linux")
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="tries what a checkout publishes")
def test_the_wheel_of_the_source_distribution_works_in_a_clean_environment(tmp_path):
    def run(*command, **more):
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, **more)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run(sys.executable, "-m", "build", "--outdir", tmp_path, ROOT)  # the wheel is built from the source distribution
    (source,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    tracked = run("git", "-c", "safe.directory=*", "-C", ROOT, "ls-files").splitlines()
    hidden = {name for name in tracked if name.startswith(".")}
    assert set(tracked) - inside - hidden == set()
    (wheel,) = tmp_path.glob("linkmix-*-cp311-abi3-linux_*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "linkmix/native/_core.abi3.so" in names
    assert not [name for name in names if name.endswith((".c", ".h")) or name.startswith(("tests", "benchmarks"))]
    described = zipfile.ZipFile(wheel).read(next(name for name in names if name.endswith("METADATA"))).decode()
    assert not re.findall(r"\]\((?!https://)", described.partition("\n\n")[2])
    audit = run(sys.executable, "-m", "auditwheel", "show", wheel)
    assert re.search(rf"manylinux_2_\d+_{platform.machine()}", audit), audit
    # the packages of this environment, and linkmix of the wheel alone
    run(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", tmp_path / "there", wheel)
    script = (
        "import linkmix, linkmix.native as native, sklearn.datasets as data; print(linkmix.__file__, native.active());"
        "print(linkmix.AutoLinkMixture(3).fit(data.load_iris().data, must_link=[[0, 1]]).labels_[0])"
    )
    said = run(sys.executable, "-c", script, env={**os.environ, "PYTHONPATH": str(tmp_path / "there")})
    assert said.splitlines()[0] == f"{tmp_path / 'there' / 'linkmix' / '__init__.py'} True"
