"""Inference in a Markov network over chunklets, whose edges are links.

`LabelNetwork` is the entry. Its `structure` holds nodes, edges and components; it divides them by method into a forest
(`forest`), components with only two labellings (`two_colouring`), cores with cycles (`junction_tree`, over the cliques
of `elimination`), and cores too wide for that (`loopy`, and `search` for the most probable labels). None of these knows
of points, rows or densities. Whether links can be satisfied at all is decided in `linkmix.links.feasibility`.
"""

from linkmix.couplings.network.label_network import ApproximateInference, LabelNetwork, LabelPosterior
from linkmix.links.feasibility.conflicts import InfeasibleNetwork, UndecidedNetwork

__all__ = ["ApproximateInference", "InfeasibleNetwork", "LabelNetwork", "LabelPosterior", "UndecidedNetwork"]
