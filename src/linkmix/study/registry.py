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
from linkmix.rivals.itml import ITML
from linkmix.rivals.linkage import ConstrainedLinkage
from linkmix.rivals.mixtures import EMPC, GMM, GMMEC, GMPR, PPC, SoftChunkletMixture
from linkmix.rivals.mmc import MMC
from linkmix.rivals.mpc_kmeans import MPCKMeans
from linkmix.rivals.pc_kmeans import PCKMeans
from linkmix.rivals.pccc import PCCC
from linkmix.rivals.rca import RCA
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


def _method(name: str, kind: Any, what: str, **settings: Any) -> Method:
    make = partial(kind, **settings) if settings else kind
    return Method(name, make, kind.uses_must, kind.uses_cannot, kind.uses_confidence, what)


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
        _method("ppc", PPC, "links as penalties of ten nats in the prior, mean field"),
        _method("ppc-soft", PPC, "the same with penalties of one nat", weight=1.0),
        _method("soft-chunklets", SoftChunkletMixture, "must-links as random variables: a point may leave its group"),
        _method("spectral", SpectralRBF, "spectral clustering without links"),
        _method("sskk", SSKK, "kernel k-means with rewards and penalties for links, each worth about a point"),
        _method(
            "sskk-original",
            SSKK,
            "the same with the published weight, under which links weigh little",
            link_weight="original",
        ),
        _method("csc", CSC, "the smoothest cut that agrees with the links well enough"),
        # A single run often gets stuck although the links can be satisfied.
        _method("cop-kmeans", COPKMeans, "k-means in which no link may be broken, twenty tries", n_init=20),
        _method("pccc", PCCC, "the same, with the assignments of each step by an integer program"),
        _method("pck-means", PCKMeans, "k-means with a penalty for each broken link"),
        _method("pck-means-original", PCKMeans, "the same with the published penalty of one", weight="original"),
        _method("mpck-means", MPCKMeans, "the same, with learned weights of the columns in each class"),
        _method("mpck-means-shared", MPCKMeans, "the same, with weights that all classes share", metric="shared"),
        _method("rca", RCA, "k-means after the variation within must-linked groups is scaled away"),
        _method("mmc", MMC, "k-means in a metric with short must-links and long cannot-links (Xing et al.)"),
        _method("itml", ITML, "the same with the metric nearest to a given one (Davis et al.)"),
        _method("linkage", ConstrainedLinkage, "Ward's method that joins no cannot-linked groups"),
        _method("e2cp", E2CP, "links spread over a graph of neighbours, then spectral clustering"),
        _method("e2cp-sparse", E2CP, "the same on a sparse graph, for many points", graph="sparse"),
    )
}
"""All methods by name."""
