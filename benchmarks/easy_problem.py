"""Every method on a problem that links make easy: long, narrow classes side by side, in badly scaled columns.

300 points, three classes eight standard deviations apart, in four columns, at an angle to them. Within a class they
spread 20 times as much in a direction that tells nothing about the classes, so methods that go by distances alone find
something else. The score is the adjusted Rand index of ``labels_`` and, if the method has it, of ``predict``, the mean
over the draws. Columns are divided by their standard deviations first, as `linkmix fit` does. 2000 links join nearly
all points.

EM-PC takes minutes with 2000 links, and is left out unless it is named.

    python -m benchmarks.easy_problem
    python -m benchmarks.easy_problem --methods sskk sskk-original --seeds 10
"""

import argparse
import time
import warnings

import numpy as np
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from linkmix import Links
from linkmix.study.registry import METHODS

DEFAULT = [name for name in METHODS if name != "em-pc"]


def draw(seed: int, n: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """Points and classes."""
    random = np.random.RandomState(seed)
    y = np.repeat(np.arange(3), n // 3)
    X = random.normal(size=(n, 4)) * [1.0, 20.0, 5.0, 1.0]
    X[:, 0] += 8.0 * y
    rotated = X @ np.linalg.qr(random.normal(size=(4, 4)))[0]
    return rotated * [1.0, 100.0, 0.01, 1.0], y


def scores(name: str, n_links: int, seed: int) -> tuple[float, float, float]:
    """ARI of the labels and of the predictions, and seconds; not a number where there are none."""
    X, y = draw(seed)
    X = StandardScaler().fit_transform(X)
    method = METHODS[name]
    links = method.usable(Links.from_labels(y, n_links, random_state=seed) if n_links else Links())
    model = method.make(n_classes=3, random_state=seed)
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model.fit(X, links=links)
        except ValueError:  # COP-KMeans may get stuck
            return np.nan, np.nan, time.perf_counter() - begin
    seconds = time.perf_counter() - begin
    found = adjusted_rand_score(y, model.predict(X)) if hasattr(model, "predict") else np.nan
    return adjusted_rand_score(y, model.labels_), found, seconds


def main() -> None:
    """Read the arguments, run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=DEFAULT, help="(default: all but em-pc)")
    parser.add_argument("--links", type=int, nargs="+", default=[0, 100, 2000], help="(default: 0 100 2000)")
    parser.add_argument("--seeds", type=int, default=5, help="number of draws (default: 5)")
    arguments = parser.parse_args()
    links = ", ".join(map(str, arguments.links))
    print(f"ARI of labels_ / of predict with {links} links; mean of {arguments.seeds} draws")
    for name in arguments.methods:
        cells, total = [], 0.0
        for n_links in arguments.links:
            found = np.array([scores(name, n_links, seed) for seed in range(arguments.seeds)])
            failed = int(np.isnan(found[:, 0]).sum())
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # the mean of nothing
                means = np.nanmean(found, axis=0)
            total += found[:, 2].mean()
            shown = ["     " if np.isnan(mean) else f"{mean:5.2f}" for mean in means[:2]]
            cells.append(" / ".join(shown) + (f" ({failed} failed)" if failed else ""))
        print(f"{name:<20} {'   '.join(cells)}   {total / len(arguments.links):6.2f} s", flush=True)


if __name__ == "__main__":
    main()
