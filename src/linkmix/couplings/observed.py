"""One network over all links: must-links merge points into chunklets, cannot-links join chunklets.

The labels of each connected component are inferred jointly, and exactly unless the network is too dense.

    p(X, links, z) = prod_i a_{z_i} p(x_i | z_i) prod_l q_l(z)

Points are drawn independently, and a link is an observation of two labels: a certain one is made only if the labels
agree with it, one of confidence q with probability q if they do and 1 - q if not. So the class weights are the shares
of all points, linked or not. A relation is an observation of a set of labels, made with a probability that its table
tells up to a factor. `linkmix.couplings.conditioned` divides by the probability of the certain links instead.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np

from linkmix import native
from linkmix.basics.arrays import Floats, Ints
from linkmix.basics.errors import InfeasibleLinks
from linkmix.couplings.base import NO_RELIABILITY, BoundCoupling
from linkmix.couplings.network import (
    ApproximateInference,
    InfeasibleNetwork,
    LabelNetwork,
    LabelPosterior,
    UndecidedNetwork,
)
from linkmix.couplings.network.related import InfeasibleTables, RelatedNetwork, RelatedPosterior
from linkmix.couplings.relations import BoundRelations, PlacedRelations
from linkmix.couplings.statements import BoundStatements, Statements, StatementsExpectation
from linkmix.links import Links

LARGEST_TABLE, LARGEST_QUICK_TABLE = 2**17, 2**12
"""Entries of tables of exact inference that are allowed in any case: a few milliseconds for each step of EM, or less
than one. Larger ones together must not take longer than belief propagation."""
LOOPY_TOL, QUICK_LOOPY_TOL = 1e-6, 1e-3
"""Belief propagation stops when no message changes by more than this; the log-likelihood is off by about its square."""


@contextmanager
def unwarned() -> Iterator[None]:
    """Silence the warning about networks too wide for exact inference, where no inference is needed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ApproximateInference)
        yield


class LinkGraph:
    """Chunklets, the certain cannot-links between them, and the evidence of uncertain links and of relations.

    Shared by the coupling, which needs probabilities, and by `most_probable_labels`, which needs labels.
    """

    def __init__(
        self,
        links: Links,
        n_linked: int,
        n_classes: int,
        *,
        learn_reliability: bool = False,
        max_table: int = LARGEST_TABLE,
        loopy_tol: float = LOOPY_TOL,
    ) -> None:
        self.statements = Statements.of(links, learn_reliability=learn_reliability)
        self.chunklet = links.chunklets(n_linked)
        self.size = np.bincount(self.chunklet, minlength=0).astype(np.float64)
        same, _ = self.statements.evidence(self.statements.first_reliability())
        ends = self.chunklet[self.statements.pairs]  # (n_pairs, 2)
        inside = ends[:, 0] == ends[:, 1]
        # Certain must-links form the chunklets; any other statement within a chunklet is a constant.
        self.inside = np.flatnonzero(inside)
        self.between = np.flatnonzero(~inside)
        self.certain = np.isneginf(same[self.between])
        self.edges = ends[self.between]
        self.n_classes = n_classes
        self.relations = BoundRelations.of(links.relations, n_classes, joint=False)
        self.related = related = PlacedRelations(self.relations, self.chunklet)
        edges = np.concatenate([self.edges, related.edges])
        hard = np.append(self.certain, np.zeros(len(related.edges), dtype=bool))
        size: tuple[int, int] = (len(self.size), n_classes)
        limits: dict[str, Any] = {"max_table": max_table, "loopy_tol": loopy_tol}
        self.network: LabelNetwork | RelatedNetwork
        with self.naming_links():
            if related.families:
                self.network = RelatedNetwork(*size, edges, hard, related.families, **limits)
            else:
                self.network = LabelNetwork(*size, edges, hard=hard, **limits)

    def potentials(self, reliability: Floats) -> tuple[Floats, Floats, float]:
        """Log-potentials of the edges for equal and different labels, and the constant from within chunklets.

        Edges of links come first, then those of relations.
        """
        same, different = self.statements.evidence(reliability)
        if not self.relations.parts:
            return same[self.between], different[self.between], float(same[self.inside].sum())
        probabilities = self.probabilities(reliability)
        related = self.related.edge_potentials(probabilities)
        return (
            np.concatenate([same[self.between], related[0]]),
            np.concatenate([different[self.between], related[1]]),
            float(same[self.inside].sum()) + self.related.constant(probabilities),
        )

    def probabilities(self, reliability: Floats) -> Floats:
        """Probability that each relation is satisfied."""
        return self.relations.probabilities(reliability[len(self.statements.annotators) :])

    def sum_up(self, values: Floats) -> Floats:
        """Sums over the points of each chunklet, shape (n_chunklets, M)."""
        out = np.zeros((len(self.size), values.shape[1]))
        np.add.at(out, self.chunklet, values)
        return out

    def most_probable_labels(self, node: Floats, reliability: Floats) -> Ints:
        """Jointly most probable labels of the linked points, from the log-potentials of the chunklets.

        They satisfy all certain links; InfeasibleLinks is raised if that is impossible.
        """
        log_same, log_different, _ = self.potentials(reliability)
        probabilities = self.probabilities(reliability)
        node = self.related.with_unary(node, probabilities)
        with self.naming_links():
            if isinstance(self.network, RelatedNetwork):
                tables = self.related.factor_tables(probabilities)
                labels = self.network.most_probable(node, log_same, log_different, tables)
            else:
                labels = self.network.most_probable(node, log_same, log_different)
        return np.asarray(labels[self.chunklet])

    def infer(self, node: Floats, reliability: Floats) -> tuple[LabelPosterior | RelatedPosterior, float]:
        """Posterior of the chunklets, and the constant from within them."""
        log_same, log_different, constant = self.potentials(reliability)
        probabilities = self.probabilities(reliability)
        node = self.related.with_unary(node, probabilities)
        with self.naming_links():
            if isinstance(self.network, RelatedNetwork):
                tables = self.related.factor_tables(probabilities)
                return self.network.infer(node, log_same, log_different, tables), constant
            return self.network.infer(node, log_same, log_different), constant

    def satisfied(self, posterior: LabelPosterior | RelatedPosterior) -> Floats:
        """Expected number of sets that satisfy each relation."""
        joint = posterior.joint if isinstance(posterior, RelatedPosterior) else []
        return self.related.expected(posterior.marginals, posterior.edge_same[len(self.edges) :], joint)

    @contextmanager
    def naming_links(self, statements: Ints | None = None) -> Iterator[None]:
        """Translate errors about edges between chunklets, each made by one of the statements, to errors about links.

        By default these are the statements between chunklets.
        """
        try:
            yield
        except UndecidedNetwork as error:
            raise InfeasibleLinks(
                "no labels that meet all links were found in time, though there may be some: "
                "ask for more classes or give fewer links"
            ) from error
        except InfeasibleTables as error:
            said = sorted({self.related.relation_of(family) for family in error.families})
            raise InfeasibleLinks(self._not_met(said)) from None
        except InfeasibleNetwork as error:
            made_by = self.between if statements is None else statements
            edges = np.asarray(error.edges, dtype=np.int64)
            if (edges >= len(made_by)).any():  # a relation is to blame
                raise InfeasibleLinks(self._not_met(self.related.relations_of_edges(edges - len(made_by)))) from None
            cannot = self.statements.pairs[made_by[edges]]
            raise InfeasibleLinks(str(error), Links(cannot=cannot)) from None

    def _not_met(self, relations: list[int]) -> str:
        named = ", ".join(f"relations[{number}]" for number in relations)
        return (
            f"no labels were found with {self.n_classes} classes that meet {named} together with the links to their "
            "points: drop a relation or a link, give the relation a probability below 1, or raise n_classes"
        )


def joint_labels(
    links: Links,
    class_log_density: Floats,
    class_weights: Floats,
    *,
    learn_reliability: bool = False,
    reliability: Floats = NO_RELIABILITY,
) -> Ints:
    """Jointly most probable labels of linked points, given their links; certain links hold.

    Parameters
    ----------
    links : Links
        Links between points that are numbered from 0.
    class_log_density : ndarray of shape (n_linked, n_classes)
        Log-density of each point in each class.
    class_weights : ndarray of shape (n_classes,)
    learn_reliability : bool
        Whether ``reliability`` takes the place of the confidences.
    reliability : ndarray of shape (n_annotators,)

    Returns
    -------
    ndarray of shape (n_linked,)
    """
    with unwarned():  # only the most probable labels are needed, which can be searched for at any width
        graph = LinkGraph(links, *class_log_density.shape, learn_reliability=learn_reliability)
    return graph.most_probable_labels(np.log(class_weights) + graph.sum_up(class_log_density), reliability)


def labels_that_hold(labels: Ints, links: Links, class_log_density: Floats, class_weights: Floats) -> Ints:
    """The given labels if all certain links hold in them, otherwise `joint_labels`."""
    certain = links.certain()
    together = labels[certain.must[:, 0]] == labels[certain.must[:, 1]]
    apart = labels[certain.cannot[:, 0]] != labels[certain.cannot[:, 1]]
    if together.all() and apart.all():
        return labels
    return joint_labels(links, class_log_density, class_weights)


class BoundGraph(BoundStatements):
    """A network of chunklets whose points are drawn independently; links are observations of their labels."""

    def __init__(
        self, links: Links, n_linked: int, n_classes: int, *, learn_reliability: bool, quick: bool = False
    ) -> None:
        max_table, loopy_tol = (LARGEST_QUICK_TABLE, QUICK_LOOPY_TOL) if quick else (LARGEST_TABLE, LOOPY_TOL)
        self._given = (links, n_linked, n_classes)
        self._quick = quick
        self.graph = LinkGraph(
            links,
            n_linked,
            n_classes,
            learn_reliability=learn_reliability,
            max_table=max_table,
            loopy_tol=loopy_tol,
        )
        self.statements, self.relations = self.graph.statements, self.graph.relations
        self._learns = learn_reliability
        self._exponent = self.graph.size

    def weighted(self, weights: Floats) -> BoundCoupling:
        """The same network, in which each point counts as often as its weight says."""
        other = copy(self)
        other._exponent = self.graph.sum_up(weights[:, None])[:, 0]
        return other

    def careful(self) -> BoundCoupling:
        """The same network, with exact inference up to a larger table."""
        if self.graph.network.is_exact or not self._quick:
            return self
        other = BoundGraph(*self._given, learn_reliability=self._learns)
        other._exponent = self._exponent
        return other

    def expect(
        self, class_log_density: Floats, class_weights: Floats, reliability: Floats = NO_RELIABILITY
    ) -> StatementsExpectation:
        """Posterior of each chunklet's label, given all links of its component."""
        graph = self.graph
        posterior, constant = graph.infer(self._node(class_log_density, np.log(class_weights)), reliability)
        same = np.ones(len(graph.statements.pairs))  # pairs within a chunklet
        same[graph.between] = posterior.edge_same[: len(graph.between)]
        return StatementsExpectation(
            posterior.log_partition + constant,
            posterior.marginals[graph.chunklet],
            self._exponent @ posterior.marginals,
            same,
            graph.satisfied(posterior),
        )

    def labels(self, class_log_density: Floats, class_weights: Floats, reliability: Floats = NO_RELIABILITY) -> Ints:
        """Jointly most probable labels of each component."""
        return self.graph.most_probable_labels(self._node(class_log_density, np.log(class_weights)), reliability)

    def to_native(self) -> native.LinkTable | None:
        """The network; None if a reliability is learned, or if relations know more than agreement."""
        if len(self.first_reliability()) or not self.graph.related.is_plain:
            return None
        assert isinstance(self.graph.network, LabelNetwork)
        log_same, log_different, constant = self._fixed_potentials
        return native.NetworkTable(
            self.graph.network.plan, self.graph.chunklet, self._exponent, log_same, log_different, constant
        )

    @cached_property
    def _fixed_potentials(self) -> tuple[Floats, Floats, float]:
        """Potentials of the links where no reliability is learned."""
        return self.graph.potentials(NO_RELIABILITY)

    def _node(self, class_log_density: Floats, log_weights: Floats) -> Floats:
        """Log-potentials of the chunklets."""
        return self._exponent[:, None] * log_weights + self.graph.sum_up(class_log_density)
