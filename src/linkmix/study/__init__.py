"""Comparisons of methods: metrics, the registry of methods, `compare`, the demo and the paper's experiments."""

from linkmix.study.comparison import compare
from linkmix.study.metrics import links_satisfied, purity

__all__ = ["compare", "links_satisfied", "purity"]
