"""Shapes of classes: how many clusters, of which density, and whether classes share them."""

from collections.abc import Mapping
from dataclasses import dataclass

from linkmix.engine.starts import Shape


@dataclass(frozen=True)
class ClassShape:
    """What the classes are made of.

    Attributes
    ----------
    clusters : int
        Clusters per class.
    shared : bool
        Whether all classes mix one pool of them.
    density : {"gaussian", "student", "tied"}
        Density of the clusters. Student-t has heavy tails: points that fit no class hardly move it. Tied are Gaussians
        with one covariance for all, which keeps a class from making the odd ends of a number its own; only beside
        categories.
    """

    clusters: int
    shared: bool
    density: str

    def layout(self, n_classes: int) -> Shape:
        """The shape of a mixture with this number of classes."""
        return Shape(n_classes, self.clusters, self.shared)


SHAPES: Mapping[str, ClassShape] = {
    "1": ClassShape(1, False, "gaussian"),
    "1, heavy tails": ClassShape(1, False, "student"),
    "1, alike": ClassShape(1, False, "tied"),
    "2, shared": ClassShape(2, True, "gaussian"),
    "3, shared": ClassShape(3, True, "gaussian"),
    "3, shared, heavy tails": ClassShape(3, True, "student"),
    "6": ClassShape(6, False, "gaussian"),
    "6, heavy tails": ClassShape(6, False, "student"),
}
"""All shapes by name."""
