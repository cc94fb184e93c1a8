"""A Markov network over chunklets whose edges are relations: what coupling all links at once needs.

The engine is `LabelNetwork`. It parts a network into what it can do at once: a forest (`forest`), components that have
only two labellings (`two_colouring`), cores with cycles (`junction_tree`), and cores too wide for that (`loopy`, and
`search` for the most probable labels). None of these knows of points, rows or densities.
"""

from linkmix.couplings.network.label_network import ApproximateInference, LabelNetwork, LabelPosterior
from linkmix.links.feasibility.conflicts import InfeasibleNetwork, UndecidedNetwork

__all__ = ["ApproximateInference", "InfeasibleNetwork", "LabelNetwork", "LabelPosterior", "UndecidedNetwork"]
