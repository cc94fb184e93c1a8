"""Shapes of the classes that are tried: one Gaussian, several, or a pool of Gaussians that all classes mix."""

from collections.abc import Mapping

SHAPES: Mapping[str, tuple[int, bool]] = {
    "1": (1, False),
    "2": (2, False),
    "3": (3, False),
    "2, shared": (2, True),
    "3, shared": (3, True),
}
"""Clusters per class, and whether all classes mix one pool of them, by name."""
