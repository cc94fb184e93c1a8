"""Comparisons of methods: metrics, the registry of methods, `compare`, the demo and the paper's experiments."""
