"""Nearly every row is linked: do the class weights still describe the points, and new points get the right class?

At most 300 rows of each data set, columns of unit variance. Half of the rows train the model, with links from their
labels; ``predict`` labels the other half, from the points alone. Two ways to link:

    all but one     the rows of each class in a chain of must-links, the classes apart, one row left out
    random          300 random pairs

The models: GM-PR and GMM-EC with one k-means++ start each, and LinkMixture with three starts from the links and shrunk
covariances, pairwise and as a network. "chunklets" is the network as the original GMM-EC has it, which divides by the
probability of the links under the class weights. AutoLinkMixture has its small budget.

    python -m benchmarks.class_weights --draws 10

Data that come as files are included where LINKMIX_DATA names the folder that holds data/thyroid.csv.gz and the others.
"""

import argparse
import os
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from benchmarks.flipped_links import read_table
from linkmix import AutoLinkMixture, LinkMixture, Links, purity
from linkmix.couplings import Graph
from linkmix.rivals import GMMEC, GMPR

MOST_ROWS = 300
N_LINKS = 300
LOADERS = {"iris": load_iris, "wine": load_wine, "breast_cancer": load_breast_cancer}
FILES = {"thyroid": "class2", "ionosphere": "class", "glass": "class", "vehicle": "class", "segment": "class"}
CHUNKLETS = Graph(sampling="chunklets")
SEVERAL_STARTS: dict[str, Any] = {"init": "links", "n_init": 3, "shrinkage": "auto"}
METHODS: dict[str, Callable[..., Any]] = {
    "GM-PR": GMPR,
    "GMM-EC": GMMEC,
    "GMM-EC, chunklets": partial(LinkMixture, coupling=CHUNKLETS),
    "pairwise": partial(LinkMixture, coupling="pairwise", **SEVERAL_STARTS),
    "graph": partial(LinkMixture, coupling="graph", **SEVERAL_STARTS),
    "graph, chunklets": partial(LinkMixture, coupling=CHUNKLETS, **SEVERAL_STARTS),
    "auto": partial(AutoLinkMixture, budget="small"),
}


def load(names: list[str] | None) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Name, points and true classes."""
    folder = os.environ.get("LINKMIX_DATA")
    for name in names or [*LOADERS, *(FILES if folder else ())]:
        if name in LOADERS:
            X, y = LOADERS[name](return_X_y=True)
        elif folder:
            X, y = read_table(Path(folder) / "data" / f"{name}.csv.gz", FILES[name])
        else:
            raise SystemExit(f"{name} needs LINKMIX_DATA, the folder that holds data/{name}.csv.gz")
        yield name, StandardScaler().fit_transform(X[:, X.std(axis=0) > 0]), y


def draw_links(kind: str, labels: np.ndarray, seed: int) -> Links:
    """The links of one draw."""
    if kind == "random":
        return Links.from_labels(labels, N_LINKS, random_state=seed)
    known = labels.copy()
    known[0] = -1
    return Links.from_labels(known)


def run(X: np.ndarray, y: np.ndarray, kind: str, make: Callable[..., Any], seed: int) -> tuple[float, float]:
    """ARI and purity of one fit on rows that it has not seen."""
    if len(X) > MOST_ROWS:
        X, _, y, _ = train_test_split(X, y, train_size=MOST_ROWS, stratify=y, random_state=seed)
    seen, unseen, y_seen, y_unseen = train_test_split(X, y, test_size=0.5, stratify=y, random_state=seed)
    model = make(n_classes=len(np.unique(y)), random_state=seed)
    labels = model.fit(seen, links=draw_links(kind, y_seen, seed)).predict(unseen)
    return adjusted_rand_score(y_unseen, labels), purity(y_unseen, labels)


def show(kind: str, names: list[str], scores: np.ndarray, seconds: np.ndarray) -> None:
    """A table of means over draws, from scores (n_data, n_methods, n_draws, 2) and seconds (n_methods,)."""
    print(f"\n{kind}: ARI, purity\n\n| data | {' | '.join(METHODS)} |\n|{'---|' * (len(METHODS) + 1)}")
    means = scores.mean(axis=2)
    for name, row in [*zip(names, means, strict=True), ("mean", means.mean(axis=0))]:
        print(f"| {name} | {' | '.join(f'{ari:.3f}, {pure:.3f}' for ari, pure in row)} |")
    print(f"| seconds a fit | {' | '.join(f'{mean:.2f}' for mean in seconds)} |", flush=True)


def main() -> None:
    """Read the arguments, run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=10, help="number of draws of halves and links (default: 10)")
    parser.add_argument("--data", nargs="*", choices=[*LOADERS, *FILES], help="data sets (default: all at hand)")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    data = list(load(arguments.data))
    for kind in ("all but one", "random"):
        scores = np.empty((len(data), len(METHODS), arguments.draws, 2))
        seconds = np.zeros(len(METHODS))
        for i, (_, X, y) in enumerate(data):
            for j, make in enumerate(METHODS.values()):
                begin = time.perf_counter()
                for seed in range(arguments.draws):
                    scores[i, j, seed] = run(X, y, kind, make, seed)
                seconds[j] += time.perf_counter() - begin
        show(kind, [name for name, _, _ in data], scores, seconds / len(data) / arguments.draws)


if __name__ == "__main__":
    main()
