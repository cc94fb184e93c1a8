"""Options of rivals side by side: the default, and the published or the former one.

Mean adjusted Rand index of ``labels_``, columns divided by their standard deviations. The defaults were chosen on draws
0 to 2, so the first draw here is 3. Thyroid needs the folder of the data sets in LINKMIX_DATA.

    python -m benchmarks.rival_options
"""

import argparse
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from benchmarks.honesty import points_of
from linkmix import Links
from linkmix.rivals import CSC, PPC, SSKK, MPCKMeans, PCKMeans

OPTIONS: dict[str, Callable[..., Any]] = {
    "SSKK": SSKK,
    "SSKK, original": partial(SSKK, link_weight="original"),
    "PCKMeans": PCKMeans,
    "PCKMeans, original": partial(PCKMeans, weight="original"),
    "MPCKMeans": MPCKMeans,
    "MPCKMeans, shared": partial(MPCKMeans, metric="shared"),
    "MPCKMeans, full": partial(MPCKMeans, form="full"),
    "PPC": PPC,
    "PPC, one nat": partial(PPC, weight=1.0),
    "CSC, csp_K": CSC,
    "CSC, csp": partial(CSC, beta="csp"),
    "CSC, eigenvalue": partial(CSC, beta="eigenvalue"),
}


def main() -> None:
    """Read the arguments, run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["iris", "wine", "thyroid"], help="(default: iris wine thyroid)")
    parser.add_argument("--links", type=int, nargs="+", default=[10, 50, 200, 1000], help="(default: 10 50 200 1000)")
    parser.add_argument("--draws", type=int, default=3, help="number of draws (default: 3)")
    parser.add_argument("--first", type=int, default=3, help="number of the first draw (default: 3)")
    arguments = parser.parse_args()
    print(f"{'':<20}" + "".join(f"{n:>8}" for n in arguments.links))
    sets = [points_of(name) for name in arguments.data]
    for name, make in OPTIONS.items():
        means = []
        for n_links in arguments.links:
            scores = []
            for X, y in sets:
                for seed in range(arguments.first, arguments.first + arguments.draws):
                    model = make(len(np.unique(y)), random_state=seed)
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        model.fit(
                            StandardScaler().fit_transform(X), links=Links.from_labels(y, n_links, random_state=seed)
                        )
                    scores.append(adjusted_rand_score(y, model.labels_))
            means.append(np.mean(scores))
        print(f"{name:<20}" + "".join(f"{mean:>8.3f}" for mean in means), flush=True)


if __name__ == "__main__":
    main()
