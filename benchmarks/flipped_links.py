"""A fifth of the links are wrong: how good a LinkMixture still is, and how many of the wrong links it finds.

Random links drawn from true labels; 40 % of those of one of two annotators are flipped. The labels of ``predict`` are
compared with the true classes (`benchmarks.fewest_links noise` does the same for AutoLinkMixture):

    none            no links
    right           the links before any was flipped, certain
    hard            all links taken as certain; cannot-links that contradict others are dropped
    confidence      every link has confidence 0.8
    learn, one      the reliability is learned, for all links together
    learn, two      the reliability is learned for each of the two annotators

"found": with n wrong links, the share of wrong ones among the first n of ``links_to_review_``; random choice would give
0.2. A link of confidence 0.8 can change J by at most log(0.8 / 0.2) = 1.4. Where the densities do not describe the
classes, the points outvote it, and certain links may do better even though some of them are wrong.

    python -m benchmarks.flipped_links --seeds 10 --links 100
"""

import argparse
import gzip
import os
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from linkmix import LinkMixture, Links, purity
from linkmix.basics.errors import InfeasibleLinks

FLIPPED_OF_SECOND = 0.4
CONFIDENCE = 0.8
SETTINGS: dict[str, Any] = {"init": "links", "n_init": 5, "shrinkage": "auto", "tol": 1e-5}
COUPLINGS = ("graph", "pairwise")


class Flipped(NamedTuple):
    """Links that are partly wrong."""

    links: Links  # with annotators, "first" and "second"
    is_wrong: dict[tuple[int, int], bool]  # by pair, smaller row first


class Row(NamedTuple):
    """The result of one fit."""

    data: str
    n_clusters: int
    coupling: str
    variant: str
    purity: float
    ari: float
    found: float


def load(names: list[str] | None) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Name, points and true classes; the sets that come as files only where LINKMIX_DATA says where they are."""
    loaders = {"wine": load_wine, "breast_cancer": load_breast_cancer}
    files = {"thyroid": "class2", "segment": "class"}
    folder = os.environ.get("LINKMIX_DATA")
    for name in names or [*loaders, *(files if folder else ())]:
        if name in loaders:
            X, y = loaders[name](return_X_y=True)
        elif folder:
            X, y = read_table(Path(folder) / "data" / f"{name}.csv.gz", files[name])
        else:
            raise SystemExit(f"{name} needs LINKMIX_DATA, the folder that holds data/{name}.csv.gz")
        varies = X.std(axis=0) > 0  # segment has a column that does not
        yield name, StandardScaler().fit_transform(X[:, varies]), y


def read_table(path: Path, label: str) -> tuple[np.ndarray, np.ndarray]:
    """Numbers and the label of each row; labels are the columns whose names begin with "class", and come last."""
    with gzip.open(path, "rt") as file:
        header = file.readline().strip().split(",")
        rows = [line.strip().split(",") for line in file]
    n_columns = next(i for i, name in enumerate(header) if name.startswith("class"))
    X = np.array([row[:n_columns] for row in rows], dtype=float)
    _, y = np.unique([row[header.index(label)] for row in rows], return_inverse=True)
    return X, y


def flip(links: Links, seed: int) -> Flipped:
    """Deal the links out to two annotators in turn, and turn two fifths of those of the second into their opposite."""
    rng = np.random.default_rng(seed)
    pairs = np.concatenate([links.must, links.cannot])
    says_same = np.arange(len(pairs)) < links.n_must
    of_second = rng.permutation(len(pairs)) % 2 == 1
    wrong = np.zeros(len(pairs), dtype=bool)
    n_wrong = round(FLIPPED_OF_SECOND * of_second.sum())
    wrong[rng.choice(np.flatnonzero(of_second), size=n_wrong, replace=False)] = True
    says_same = says_same != wrong
    names = np.where(of_second, "second", "first").astype(object)
    mixed = Links(
        pairs[says_same],
        pairs[~says_same],
        must_annotators=names[says_same],
        cannot_annotators=names[~says_same],
    )
    return Flipped(mixed, dict(zip(map(tuple, np.sort(pairs, axis=1).tolist()), wrong.tolist(), strict=True)))


def feasible(links: Links, n_rows: int, n_classes: int) -> Links:
    """Certain links without the cannot-links that must-links, or too few classes, contradict."""
    while True:
        clashing = {tuple(conflict.cannot) for conflict in links.conflicts()}
        links = Links(links.must, [pair for pair in links.cannot.tolist() if tuple(pair) not in clashing])
        try:
            # Whether links can be met does not depend on the points.
            LinkMixture(n_classes, coupling="graph", max_iter=0, reg_covar=1.0, random_state=0).fit(
                np.random.default_rng(0).normal(size=(n_rows, 1)), links=links
            )
        except InfeasibleLinks as error:
            worst = set(error.links.cannot[0].tolist())
            links = Links(links.must, [pair for pair in links.cannot.tolist() if set(pair) != worst])
        else:
            return links


def variants(right: Links, flipped: Flipped, n_rows: int, n_classes: int) -> Iterator[tuple[str, Links, str]]:
    """Name, links and reliability of each way to use them."""
    must, cannot = flipped.links.must, flipped.links.cannot
    yield "none", Links(), "given"
    yield "right", right, "given"
    yield "hard", feasible(Links(must, cannot), n_rows, n_classes), "given"
    yield "confidence", Links(must, cannot, must_confidence=CONFIDENCE, cannot_confidence=CONFIDENCE), "given"
    yield "learn, one", Links(must, cannot), "learn"
    yield "learn, two", flipped.links, "learn"


def share_found(review: np.ndarray, is_wrong: dict[tuple[int, int], bool]) -> float:
    """Share of the wrong links among as many of those to review first."""
    wrong = np.array(
        [is_wrong[min(a, b), max(a, b)] for a, b in zip(review["a"], review["b"], strict=True)], dtype=bool
    )
    return float(wrong[: wrong.sum()].mean()) if wrong.any() else float("nan")


def run(name: str, X: np.ndarray, y: np.ndarray, n_clusters: int, n_links: int, seed: int) -> list[Row]:
    """All variants on one draw of links."""
    n_classes = len(np.unique(y))
    rows = []
    right = Links.from_labels(y, n_links, random_state=seed)
    flipped = flip(right, seed)
    for variant, links, reliability in variants(right, flipped, len(X), n_classes):
        for coupling in COUPLINGS[:1] if variant == "none" else COUPLINGS:
            model = LinkMixture(
                n_classes,
                clusters_per_class=n_clusters,
                coupling=coupling,
                reliability=reliability,
                random_state=seed,
                **SETTINGS,
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.fit(X, links=links)
            labels = model.predict(X)
            asked = variant not in ("none", "right")
            found = share_found(model.links_to_review_, flipped.is_wrong) if asked else float("nan")
            shown = "-" if variant == "none" else coupling
            scores = purity(y, labels), adjusted_rand_score(y, labels), found
            rows.append(Row(name, n_clusters, shown, variant, *scores))
    return rows


def show(rows: list[Row]) -> None:
    """Means and standard deviations over the seeds."""
    print(f"{'data':<14} {'K':<2} {'coupling':<9} {'links':<11} {'purity':>14} {'ARI':>14} {'found':>6}")
    for key in dict.fromkeys(row[:4] for row in rows):
        scores = np.array([row[4:] for row in rows if row[:4] == key])
        mean, spread = scores.mean(axis=0), scores.std(axis=0)
        name, n_clusters, coupling, variant = key
        found = "" if np.isnan(mean[2]) else f"{mean[2]:.2f}"
        print(
            f"{name:<14} {n_clusters:<2} {coupling:<9} {variant:<11} "
            f"{mean[0]:.3f} +- {spread[0]:.3f} {mean[1]:.3f} +- {spread[1]:.3f} {found:>6}"
        )


def main() -> None:
    """Read the arguments, run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10, help="number of draws of links and starts (default: 10)")
    parser.add_argument("--links", type=int, default=100, help="number of links (default: 100)")
    parser.add_argument("--data", nargs="*", help="wine, breast_cancer, thyroid, segment (default: all at hand)")
    parser.add_argument("--clusters", type=int, nargs="+", default=[1], help="clusters per class, K (default: 1)")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes (default: 1)")
    arguments = parser.parse_args()
    begin = time.perf_counter()
    tasks = [
        delayed(run)(name, X, y, n_clusters, arguments.links, seed)
        for name, X, y in load(arguments.data)
        for n_clusters in arguments.clusters
        for seed in range(arguments.seeds)
    ]
    rows = [row for part in Parallel(n_jobs=arguments.jobs)(tasks) for row in part]
    rows.sort(key=lambda row: row[:3])
    print(f"{arguments.links} links, {arguments.seeds} seeds; mean +- standard deviation over seeds\n")
    show(rows)
    print(f"\n{time.perf_counter() - begin:.0f} s")


if __name__ == "__main__":
    main()
