"""Looks for moons on which the paper's counts of errors come out: 3 without links, 2 with K = 1, 0 with K = 2.

The paper prints neither its points nor how many they are, nor starts or links. They are drawn here as it describes:
moons of scikit-learn, k-means++ seeds as first means, two must-links and two cannot-links. Three errors of the mixture
without links come out with up to 24 points or so; with 100 points it makes 14 or more.

    python -m benchmarks.two_moons --sets 300
"""

import argparse
import time
import warnings

import numpy as np
from sklearn.cluster import kmeans_plusplus
from sklearn.datasets import make_moons
from sklearn.metrics import pairwise_distances_argmin

from linkmix.rivals import GMM, GMPR
from linkmix.study.comparison import draw_links
from linkmix.study.paper.synthetic import MOONS_OF_THE_PAPER, count_errors, start_at

SIZES, NOISE = (16, 20, 24, 30, 40), (0.05, 0.1, 0.15, 0.2)


def main() -> None:
    """Search, and print what was found."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--sets", type=int, default=300, help="sets of points for each size and noise")
    options.add_argument("--starts", type=int, default=6)
    options.add_argument("--draws", type=int, default=12, help="draws of links and of clusters")
    options.add_argument("--enough", type=int, default=5, help="stop after so many")
    given = options.parse_args()
    warnings.simplefilter("ignore")
    begun, tried, without, one, found = time.perf_counter(), 0, 0, 0, 0
    for seed in range(given.sets):
        for n in SIZES:
            for noise in NOISE:
                X, y = make_moons(n, noise=noise, random_state=seed)
                for number in range(given.starts):
                    _, seeds = kmeans_plusplus(X, 2, random_state=number)
                    tried += 1
                    if wrong(GMM, X, y, seeds, None, None) != MOONS_OF_THE_PAPER[0]:
                        continue
                    without += 1
                    for draw in range(given.draws):
                        links = draw_links(y, 4, "even", draw)
                        if wrong(GMPR, X, y, seeds, None, links) != MOONS_OF_THE_PAPER[1]:
                            continue
                        one += 1
                        for again in range(given.draws):
                            clusters = clusters_at(X, seeds, again)
                            if clusters and wrong(GMPR, X, y, seeds, clusters, links) == MOONS_OF_THE_PAPER[2]:
                                found += 1
                                print(
                                    f"make_moons({n}, noise={noise}, random_state={seed}), means {seeds.tolist()}, "
                                    f"clusters {clusters}, must {links.must.tolist()}, cannot {links.cannot.tolist()}",
                                    flush=True,
                                )
                                break
                        if found >= given.enough:
                            break
        if found >= given.enough:
            break
    print(
        f"{tried} starts on {seed + 1} sets of each of {len(SIZES)} sizes and {len(NOISE)} noises: {without} with 3 "
        f"errors without links, {one} of the draws on these with 2 errors with K = 1, {found} of these with none with "
        f"K = 2; {time.perf_counter() - begun:.0f} s"
    )


def wrong(kind, X, y, seeds, clusters, links):
    """Errors of a fit from given first means; -1 if it fails."""
    settings = {} if clusters is None else {"clusters_per_class": 2}
    known = {} if links is None else {"links": links}
    try:
        model = kind(2, init=start_at(X, seeds.tolist(), clusters), **settings).fit(X, **known)
    except ValueError:  # a cluster of one point, or links that cannot be met
        return -1
    return count_errors(y, model.predict(X))


def clusters_at(X, seeds, number):
    """Rows that are the first means of two clusters in each class; nothing if a class has too few points."""
    classes = pairwise_distances_argmin(X, X[seeds])
    rows = [np.flatnonzero(classes == m) for m in (0, 1)]
    if min(map(len, rows)) < 6:
        return None
    return [of[kmeans_plusplus(X[of], 2, random_state=number)[1]].tolist() for of in rows]


if __name__ == "__main__":
    main()
