"""EM-PC on overlapping classes: more cannot-links can make ``predict`` worse, and why.

150 points in three blobs that overlap. Fits start from k-means++ and from the true classes. Printed are the purity of
``predict`` and the objective that EM-PC maximises, log-likelihood minus divergence. If the objective is higher where
the purity is lower, the method is to blame and not the search for its optimum. Takes minutes with 300 links.

    python -m benchmarks.em_pc
"""

import argparse
import warnings

import numpy as np
from sklearn.datasets import make_blobs

from linkmix import Links, purity
from linkmix.rivals import EMPC

N_CLASSES = 3


def main() -> None:
    """Read the arguments, run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--links", type=int, nargs="+", default=[0, 100, 300], help="(default: 0 100 300)")
    parser.add_argument("--draws", type=int, nargs="+", default=[0, 1], help="seeds of points and links (default: 0 1)")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    for seed in arguments.draws:
        X, y = make_blobs(150, 2, centers=N_CLASSES, cluster_std=4.5, random_state=seed)
        groups = [X[y == m] for m in range(N_CLASSES)]
        truth = {
            "class_weights": np.bincount(y) / len(y),
            "cluster_weights": np.ones((N_CLASSES, 1)),
            "means": np.array([[group.mean(axis=0)] for group in groups]),
            "covariances": np.array([[np.cov(group.T, bias=True)] for group in groups]),
        }
        for n_links in arguments.links:
            links = Links.from_labels(y, n_links, kind="cannot", random_state=seed) if n_links else Links()
            found = []
            for start, init in (("k-means++", "kmeans++"), ("the classes", truth)):
                model = EMPC(N_CLASSES, init=init, random_state=seed, max_iter=25, tol=1e-4).fit(X, links=links)
                found.append(f"from {start}: purity {purity(y, model.predict(X)):.3f}, {model.log_likelihood_:.1f}")
            print(f"draw {seed}, {n_links} cannot-links: {'; '.join(found)}", flush=True)


if __name__ == "__main__":
    main()
