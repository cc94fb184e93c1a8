"""The graph coupling: all links as one network of labels, seen in one of three ways."""

from dataclasses import dataclass

from linkmix.basics.checks import check_choice, check_flag
from linkmix.couplings.base import BoundCoupling, Coupling
from linkmix.couplings.conditioned import BoundConditioned
from linkmix.couplings.observed import BoundGraph
from linkmix.links import Links

SAMPLING = ("observed", "chunklets", "points")


@dataclass(frozen=True)
class Graph(Coupling):
    """Exact inference over the network of all links.

    Parameters
    ----------
    learn_reliability : bool, default=False
        Whether to learn how often each annotator is right, instead of taking confidences as given.
    sampling : {"observed", "chunklets", "points"}, default="observed"
        What is drawn independently. With "observed", points are, and links are observed afterwards; the class weights
        are then the shares of the points. With the others the links come first, as in the original GMM-EC: groups of
        must-linked points, or points, are drawn until they meet all certain links. Where most points are linked, the
        class weights of these two rest on the few other ones.
    quick : bool, default=False
        Whether to approximate, for comparing many fits: belief propagation where exact inference would take more than
        a millisecond. Has an effect on "observed" links only.
    """

    learn_reliability: bool = False
    sampling: str = "observed"
    quick: bool = False

    def __post_init__(self) -> None:
        check_flag("learn_reliability", self.learn_reliability)
        check_choice("sampling", self.sampling, SAMPLING)
        check_flag("quick", self.quick)

    def bind(self, links: Links, n_linked: int, n_classes: int) -> BoundCoupling:
        """Build the network."""
        learn = self.learn_reliability
        if self.sampling == "observed":
            return BoundGraph(links, n_linked, n_classes, learn_reliability=learn, quick=self.quick)
        return BoundConditioned(links, n_linked, n_classes, sampling=self.sampling, learn_reliability=learn)
