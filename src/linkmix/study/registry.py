"""All methods by name, and the links that each can use: the only list, for experiments, command line and docs."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from linkmix.links import Links
from linkmix.mixture import LinkMixture
from linkmix.rivals.cop_kmeans import COPKMeans
from linkmix.rivals.csc import CSC
from linkmix.rivals.e2cp import E2CP
from linkmix.rivals.mixtures import EMPC, GMM, GMMEC, GMPR, PPC
from linkmix.rivals.mpc_kmeans import MPCKMeans
from linkmix.rivals.pc_kmeans import PCKMeans
from linkmix.rivals.spectral import SpectralRBF
from linkmix.rivals.sskk import SSKK
from linkmix.search import AutoLinkMixture


@dataclass(frozen=True)
class Method:
    """A method and its name in the experiments.

    Attributes
    ----------
    name : str
    make : callable
        Builds the estimator from the keyword arguments ``n_classes`` and ``random_state``.
    uses_must, uses_cannot, uses_confidence : bool
        Whether it uses must-links, cannot-links, and the confidence of uncertain links.
    what : str
        A description in one line.
    """

    name: str
    make: Callable[..., Any]
    uses_must: bool
    uses_cannot: bool
    uses_confidence: bool
    what: str

    @property
    def uses_links(self) -> bool:
        """Whether it uses links of either kind."""
        return self.uses_must or self.uses_cannot

    def usable(self, links: Links) -> Links:
        """Return the links that the method can use, taken as certain if it does not use confidences."""
        keep = self.uses_confidence
        nothing = np.empty((0, 2), dtype=np.int64)
        return Links(
            links.must if self.uses_must else nothing,
            links.cannot if self.uses_cannot else nothing,
            must_confidence=links.must_confidence if keep and self.uses_must else None,
            cannot_confidence=links.cannot_confidence if keep and self.uses_cannot else None,
        )


def _method(name: str, kind: Any, what: str) -> Method:
    return Method(name, kind, kind.uses_must, kind.uses_cannot, kind.uses_confidence, what)


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method("auto", AutoLinkMixture, True, True, True, "many starts and shapes, the one that fits the links best"),
        Method("auto-5", partial(AutoLinkMixture, committee=5), True, True, True, "the mean of the five best of these"),
        Method(
            "linkmix",
            partial(LinkMixture, coupling="graph", init="links", n_init=10, shrinkage="auto"),
            True,
            True,
            True,
            "network over all links, ten link-aware starts, covariances shrunk to the pooled one",
        ),
        _method("paper", GMPR, "GM-PR as printed: each link an item of its own, one k-means++ start"),
        _method("gmm", GMM, "Gaussian mixture without links"),
        _method("gmm-ec", GMMEC, "must-link closure and an exact network over cannot-links"),
        _method("em-pc", EMPC, "posteriors projected until cannot-links hold in expectation"),
        _method("ppc", PPC, "links as penalties in the prior, mean field"),
        _method("spectral", SpectralRBF, "spectral clustering without links"),
        _method("sskk", SSKK, "kernel k-means with rewards and penalties for links"),
        _method("csc", CSC, "the smoothest cut that agrees with the links well enough"),
        Method(
            "cop-kmeans",
            partial(COPKMeans, n_init=20),  # a single run often gets stuck although the links can be satisfied
            COPKMeans.uses_must,
            COPKMeans.uses_cannot,
            COPKMeans.uses_confidence,
            "k-means in which no link may be broken, twenty tries",
        ),
        _method("pck-means", PCKMeans, "k-means with a penalty for each broken link"),
        _method("mpck-means", MPCKMeans, "the same, with a learned weight for each column"),
        _method("e2cp", E2CP, "links spread over a graph of neighbours, then spectral clustering"),
        Method(
            "e2cp-sparse",
            partial(E2CP, graph="sparse"),
            E2CP.uses_must,
            E2CP.uses_cannot,
            E2CP.uses_confidence,
            "the same on a sparse graph, for many points",
        ),
    )
}
"""All methods by name."""
