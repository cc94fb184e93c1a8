"""Versions of linkmix and its dependencies, for bug reports."""

import platform
from importlib.metadata import PackageNotFoundError, version

from linkmix import native

PACKAGES = ("linkmix", "numpy", "scipy", "scikit-learn", "threadpoolctl")


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that linkmix needs, and whether the native core or NumPy computes."""
    found = {"python": platform.python_version(), "system": platform.platform()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return {**found, "computes": native.description()}


def show_versions() -> None:
    """Print the versions that a bug report should contain.

    Examples
    --------
    >>> from linkmix import show_versions
    >>> show_versions()
    python: ...
    computes: ...
    """
    print("\n".join(f"{name}: {value}" for name, value in versions().items()))
