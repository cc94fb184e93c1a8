"""Points that belong nowhere: does ``noise=True`` find them, and what does it cost where there are none?

Rows without a class are added to data sets, and links are drawn among the other rows. They are of two kinds:

    uniform    anywhere in the box of the data, a tenth wider on each side
    shuffled   values of other rows, each column from another one: every column looks right

    python -m benchmarks.noise_points --draws 2 3 4

For each share of added rows: F1 of the rows found to be noise, the share of the other rows that were wrongly found,
and the adjusted Rand index on the other rows by ``labels_``: with ``noise=True``, without, and by scikit-learn's
HDBSCAN on columns of unit variance, as it is and with the ``min_cluster_size``, of 5, 10, 20 and 40, that suits the
true classes best. The 25 links are not for HDBSCAN, which cannot use them. Constants were chosen on draws 0 and 1. Data
that are not on this machine are left out, and named.
"""

import argparse
import time
import warnings
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from sklearn.cluster import HDBSCAN
from sklearn.datasets import make_blobs
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score, f1_score
from sklearn.preprocessing import StandardScaler

from linkmix import AutoLinkMixture, Links
from linkmix.study.paper.data import MissingData
from linkmix.study.paper.protocol import load

DATA = ("blobs", "iris", "wine", "thyroid", "segment@700", "digits@700")
N_LINKS = 25
SIZES = (5, 10, 20, 40)
CASES = (("none", 0.0), ("uniform", 0.05), ("uniform", 0.2), ("shuffled", 0.05), ("shuffled", 0.2))


class Row(NamedTuple):
    """The result of one method on one data set."""

    data: str
    case: str
    method: str
    f1: float
    false: float
    ari: float
    seconds: float


def points(name: str, draw: int) -> tuple[np.ndarray, np.ndarray]:
    """Points and their classes."""
    if name == "blobs":
        X, y = make_blobs(500, n_features=2 + 2 * draw, centers=4, cluster_std=1.2, random_state=draw)
        return X, y
    base, _, size = name.partition("@")
    X, y = load(base)[:2]
    X, y = np.asarray(X, dtype=np.float64), np.unique(y, return_inverse=True)[1]
    if size:
        kept = np.random.default_rng(draw).choice(len(X), int(size), replace=False)
        X, y = X[kept], y[kept]
    return (PCA(10, random_state=0).fit_transform(X) if base == "digits" else X), y


def with_noise(X: np.ndarray, kind: str, share: float, draw: int) -> tuple[np.ndarray, np.ndarray]:
    """Points with added rows, and which these are; ``share`` is of all rows."""
    n_added = round(share / (1 - share) * len(X))
    rng = np.random.default_rng(1000 + draw)
    if kind == "shuffled":
        added = np.column_stack([rng.choice(column, n_added) for column in X.T])
    else:
        margin = 0.1 * np.ptp(X, axis=0)
        added = rng.uniform(X.min(axis=0) - margin, X.max(axis=0) + margin, (n_added, X.shape[1]))
    return np.concatenate([X, added]), np.arange(len(X) + n_added) >= len(X)


def results(name: str, draw: int, budget: str) -> Iterator[Row]:
    """All methods on one data set with one draw."""
    clean, y = points(name, draw)
    links = Links.from_labels(y, N_LINKS, random_state=draw)
    for kind, share in CASES:
        X, added = with_noise(clean, kind, share, draw)
        found = {}
        for method, noise in (("noise", True), ("plain", False)):
            begin = time.perf_counter()
            model = AutoLinkMixture(y.max() + 1, noise=noise, budget=budget, random_state=draw).fit(X, links=links)
            found[method] = model.labels_, time.perf_counter() - begin
        begin = time.perf_counter()
        scaled = StandardScaler().fit_transform(X)
        found["hdbscan"] = HDBSCAN(copy=True).fit_predict(scaled), time.perf_counter() - begin
        others = [HDBSCAN(min_cluster_size=size, copy=True).fit_predict(scaled) for size in SIZES]
        best = max(others, key=lambda labels: adjusted_rand_score(y, labels[~added]))
        found["hdbscan, best"] = best, float("nan")
        for method, (labels, seconds) in found.items():
            is_noise = labels == -1
            yield Row(
                name,
                f"{kind} {100 * share:.0f} %",
                method,
                f1_score(added, is_noise, zero_division=0.0) if added.any() else float("nan"),
                float(is_noise[~added].mean()),
                adjusted_rand_score(y, labels[~added]),
                seconds,
            )


def report(rows: list[Row]) -> None:
    """Print the mean of each data set, and that of all of them."""
    names = list(dict.fromkeys(row.data for row in rows))
    methods = list(dict.fromkeys(row.method for row in rows))
    for case in dict.fromkeys(row.case for row in rows):
        print(f"\n{case:14s}" + "".join(f"{name:>18s}" for name in [*names, "mean"]))
        for method in methods:
            cells = []
            for name in names:
                some = [row for row in rows if (row.data, row.case, row.method) == (name, case, method)]
                cells.append(np.mean([(row.f1, row.false, row.ari, row.seconds) for row in some], axis=0))
            cells.append(np.mean(cells, axis=0))
            print(f"{method:14s}" + "".join(f"  {f1:4.2f} {false:4.2f} {ari:5.3f}" for f1, false, ari, _ in cells))
    for method in methods:
        print(f"{method}: {np.mean([row.seconds for row in rows if row.method == method]):.2f} s")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=DATA)
    parser.add_argument("--draws", nargs="+", type=int, default=[2, 3, 4])
    parser.add_argument("--budget", default="small", help="of AutoLinkMixture")
    arguments = parser.parse_args()
    rows: list[Row] = []
    for name in arguments.data:
        for draw in arguments.draws:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    rows += results(name, draw, arguments.budget)
            except MissingData as error:
                print(f"{name} is left out: {error}")
                break
    print("F1 of noise, share of other rows wrongly found, ARI of the other rows")
    report(rows)


if __name__ == "__main__":
    main()
