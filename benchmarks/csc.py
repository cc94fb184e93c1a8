"""Constrained spectral clustering: the gain from avoiding the QZ algorithm, and the cost of large problems.

Whole fits with landmarks at n = 20000 and with the exact solver at n = 5000. Then, at n = 2000, the solver of
``linkmix.rivals.CSC`` is compared with ``scipy.linalg.eig`` on the generalised problem L v = lambda (Q - beta I) v:
time from the similarity to the vectors, and the feasible eigenvalues.

    python -m benchmarks.csc
    python -m benchmarks.csc --sizes        # without scipy.linalg.eig, which takes a minute

Both sides use as many threads as OMP_NUM_THREADS allows.
"""

import argparse
import resource
import time
from typing import Any

import numpy as np
from scipy.linalg import eig
from sklearn.datasets import make_blobs

from linkmix import Links, purity
from linkmix.rivals.base import links_matrix
from linkmix.rivals.constrained_cut import Problem, SimilarityGraph, choose_threshold, feasible_vectors, normalise
from linkmix.rivals.csc import CSC
from linkmix.rivals.kernels import rbf_similarity

RATIO_WANTED = 50.0
DIFFERENCE_ALLOWED = 1e-7


def draw(n: int, n_classes: int, n_links: int) -> tuple[np.ndarray, np.ndarray, Links]:
    """Overlapping blobs in five dimensions, and links drawn from their labels."""
    X, y = make_blobs(n, 5, centers=n_classes, cluster_std=3.0, random_state=0)
    return X, y, Links.from_labels(y, n_links, random_state=0)


def compare(n: int, n_classes: int, n_links: int, repeats: int = 3) -> None:
    """Print the CPU seconds of both solvers, which other work on the machine hardly affects, and their agreement."""
    X, _, links = draw(n, n_classes, n_links)
    similarity = rbf_similarity(X, diagonal=0.0)
    degrees = similarity.sum(axis=1)
    Q = normalise(links_matrix(links, n), degrees)
    threshold = choose_threshold(Q, degrees, n_classes, "eigenvalue")
    ours = []
    for _ in range(repeats):
        begin = time.process_time()
        graph = SimilarityGraph(similarity.copy())  # the solver overwrites it
        found = feasible_vectors(graph, Problem(Q, threshold), n_classes - 1, np.random.RandomState(0))
        ours.append(time.process_time() - begin)
    begin = time.process_time()
    root = np.sqrt(np.multiply.outer(degrees, degrees))
    values, vectors = eig(np.eye(n) - similarity / root, Q.toarray() - threshold * np.eye(n))
    theirs = time.process_time() - begin
    feasible = np.flatnonzero(np.isfinite(values) & (values.real > 1e-6) & (np.abs(values.imag) < 1e-9))
    values, vectors = values[feasible].real, vectors[:, feasible].real
    vectors /= np.linalg.norm(vectors, axis=0)
    costs = 1 - np.einsum("nm,nm->m", vectors, (similarity / root) @ vectors)
    values = values[np.argsort(costs)][: n_classes - 1]
    difference = np.max(np.abs(found.eigenvalues / values - 1))
    ratio = theirs / max(ours)
    print(
        f"n={n}, {n_classes} classes, {n_links} links, {len(feasible)} feasible vectors: "
        f"scipy.linalg.eig {theirs:.1f} s, linkmix {max(ours):.3f} s (worst of {repeats}), ratio {ratio:.0f}; "
        f"eigenvalues differ by {difference:.1e}"
    )
    if ratio < RATIO_WANTED or not difference <= DIFFERENCE_ALLOWED:
        raise SystemExit(f"expected a ratio of at least {RATIO_WANTED:g} and a difference below {DIFFERENCE_ALLOWED:g}")


def fit(n: int, n_classes: int, n_links: int, **parameters: Any) -> None:
    """Print the seconds of a whole fit, including the kernel and k-means."""
    X, y, links = draw(n, n_classes, n_links)
    model = CSC(n_classes, random_state=0, **parameters)
    begin = time.perf_counter(), time.process_time()
    model.fit(X, links=links)
    seconds, cpu_seconds = time.perf_counter() - begin[0], time.process_time() - begin[1]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"n={n}, {n_classes} classes, {n_links} links: {seconds:.1f} s, {cpu_seconds:.1f} s of CPU ({model.solver_}), "
        f"residual {model.residual_:.1e}, purity {purity(y, model.labels_):.3f}, {peak:.0f} MB at most so far"
    )


def main() -> None:
    """Read the arguments, run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", action="store_true", help="whole fits only")
    arguments = parser.parse_args()
    for n_classes in (3, 2):
        fit(20_000, n_classes, 1000)
    for n_classes in (3, 2):
        fit(5_000, n_classes, 1000)
    if not arguments.sizes:
        compare(2000, 3, 300)


if __name__ == "__main__":
    main()
