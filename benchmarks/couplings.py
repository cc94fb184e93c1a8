"""The effect of coupling, starts and shape with random links: ``python -m benchmarks.couplings [--seeds 10]``.

Thyroid, normal against not normal, columns of unit variance; LINKMIX_DATA must name the folder with
data/thyroid.csv.gz. The scores are the mean and standard deviation of the purity of `predict` over draws of links.
"""

import argparse
import os
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from linkmix import LinkMixture, Links, links_satisfied, purity

SETTINGS = {
    "pairwise, one k-means++ start (the paper)": {"coupling": "pairwise"},
    "graph, one k-means++ start": {"coupling": "graph"},
    "graph, ten k-means++ starts": {"coupling": "graph", "n_init": 10},
    "graph, ten link starts": {"coupling": "graph", "n_init": 10, "init": "links"},
    "the same, two clusters per class": {"coupling": "graph", "n_init": 10, "init": "links", "clusters_per_class": 2},
    "the same, shrunk covariances": {
        **{"coupling": "graph", "n_init": 10, "init": "links"},
        **{"clusters_per_class": 2, "shrinkage": "auto"},
    },
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10, help="number of draws of links (default: 10)")
    parser.add_argument("--links", type=int, nargs="+", default=[64, 256], help="numbers of links (default: 64 256)")
    arguments = parser.parse_args()
    if "LINKMIX_DATA" not in os.environ:
        sys.exit("LINKMIX_DATA is not set: set it to the folder with data/thyroid.csv.gz")
    table = pd.read_csv(Path(os.environ["LINKMIX_DATA"]) / "data" / "thyroid.csv.gz")
    X, y = table.iloc[:, :5].to_numpy(float), table["class2"].to_numpy()
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    warnings.simplefilter("ignore")
    for n_links in arguments.links:
        print(f"\n{n_links} links, {arguments.seeds} draws   purity of predict   smallest share satisfied by labels_")
        for name, settings in SETTINGS.items():
            scores, met = [], []
            for seed in range(arguments.seeds):
                links = Links.from_labels(y, n_links, random_state=seed)
                model = LinkMixture(2, random_state=seed, **settings).fit(X, links=links)
                scores.append(purity(y, model.predict(X)))
                met.append(links_satisfied(model.labels_, links))
            print(f"{name:45}{np.mean(scores):.3f} +- {np.std(scores):.3f}   {min(met):.2f}", flush=True)


if __name__ == "__main__":
    main()
