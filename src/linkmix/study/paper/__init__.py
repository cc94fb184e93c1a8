"""The paper's experiments: data, the grid of runs, figures and the report."""
