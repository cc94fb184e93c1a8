"""How long `AutoLinkMixture` takes, beside others and as problems grow: ``python -m benchmarks.front_door [part ...]``.

Parts:

    peers      a default fit of 2000 x 10, 4 classes, 50 links, beside GaussianMixture with ten starts, E2CP, HDBSCAN
               and, if it is installed, daal4py with ten starts
    growth     the same fit with more rows, columns, classes and links, and the exponent of each
    shapes     links in a chain, in cliques, and all at one point
    wide       784 columns of pictures (MNIST, if LINKMIX_DATA has it; otherwise generated), 3000 rows of 384 columns
               like embeddings of sentences, and 20 principal components of each
    components few pictures of MNIST on 20 principal components that are passed in: the adjusted Rand index
    step       a step of EM with the graph coupling beside a pairwise one
    units      steps of a LinkMixture on the same data in other units
    large      LinkMixture with its defaults on a million rows, beside GaussianMixture
    sets       the eleven data sets of docs/fewest-links.md beside an earlier state of linkmix: ``--against FOLDER`` is
               a checkout of it with its core built (``python setup.py build_ext --inplace``)

Times are CPU seconds of one thread. The sides take turns, and the fastest turn of each counts.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
from sklearn.cluster import HDBSCAN
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from threadpoolctl import ThreadpoolController

from benchmarks.speed import imported_daal
from linkmix import AutoLinkMixture, LinkMixture, Links, engine, native
from linkmix.couplings import Graph, Pairwise
from linkmix.densities import Gaussian
from linkmix.engine import starts
from linkmix.engine.fitting import Knowledge, bind, part
from linkmix.rivals import E2CP
from linkmix.study.paper.data import MissingData
from linkmix.study.paper.protocol import FEWEST_DATA, load

POOLS = ThreadpoolController()
N_ROWS, N_COLUMNS, N_CLASSES, N_LINKS = 2000, 10, 4, 50


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """One thread for linear algebra and for the native core, and no warnings."""
    with POOLS.limit(limits=1), native.using(threads=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def seconds_of(job: Callable[[], object]) -> float:
    """CPU seconds of a job."""
    with one_thread():
        begin = time.process_time()
        job()
        return time.process_time() - begin


def in_turns(turns: int, *jobs: Callable[[], object]) -> list[float]:
    """CPU seconds of the fastest turn of each job."""
    return [min(column) for column in zip(*([seconds_of(job) for job in jobs] for _ in range(turns)), strict=True)]


def problem(n: int = N_ROWS, d: int = N_COLUMNS, m: int = N_CLASSES, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Classes of different covariances that overlap a little, however many columns there are."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % m)
    centres = rng.normal(size=(m, d))
    centres *= 4 / np.sqrt(((centres[:, None] - centres) ** 2).sum(axis=2)[np.triu_indices(m, 1)].mean())
    # Correlated columns, each class in its own way, through few factors so that a thousand columns stay cheap.
    factors = rng.normal(size=(m, min(d, 5), d)) / np.sqrt(d)
    X = centres[y] + rng.normal(size=(n, d))
    for k in range(m):
        X[y == k] += rng.normal(size=((y == k).sum(), factors.shape[1])) @ factors[k]
    return X, y


def fit(X: np.ndarray, y: np.ndarray, n_links: int = N_LINKS, links: Links | None = None) -> tuple[float, float]:
    """CPU seconds of a default fit, and the adjusted Rand index of predict."""
    links = Links.from_labels(y, n_links, random_state=0) if links is None else links
    model = AutoLinkMixture(len(np.unique(y)), random_state=0)
    seconds = seconds_of(lambda: model.fit(X, links=links))
    return seconds, adjusted_rand_score(y, model.predict(X))


def peers(options: argparse.Namespace) -> None:
    """Print the time of a default fit beside those of others."""
    X, y = problem()
    links = Links.from_labels(y, N_LINKS, random_state=0)
    models = {
        "GaussianMixture, ten starts": GaussianMixture(N_CLASSES, n_init=10, random_state=0),
        "AutoLinkMixture": AutoLinkMixture(N_CLASSES, random_state=0),
        "AutoLinkMixture, not calibrated": AutoLinkMixture(N_CLASSES, calibrate=False, random_state=0),
        "AutoLinkMixture, small budget": AutoLinkMixture(N_CLASSES, budget="small", random_state=0),
        "LinkMixture, graph, ten starts": LinkMixture(N_CLASSES, coupling="graph", n_init=10, random_state=0),
        "E2CP": E2CP(N_CLASSES, random_state=0),
        "HDBSCAN": HDBSCAN(min_cluster_size=20, copy=True),
    }

    def job(model: object) -> Callable[[], object]:
        told = {} if isinstance(model, GaussianMixture | HDBSCAN) else {"links": links}
        return lambda: model.fit(X, **told)  # type: ignore[attr-defined]

    jobs = {name: job(model) for name, model in models.items()}
    daal4py = imported_daal()
    if daal4py is not None:
        jobs["daal4py, ten starts"] = daal_job(daal4py, X)
    print(f"\nA fit of {N_ROWS} x {N_COLUMNS}, {N_CLASSES} classes, {N_LINKS} links; CPU seconds, one thread")
    taken = dict(zip(jobs, in_turns(options.turns, *jobs.values()), strict=True))
    peer = taken["GaussianMixture, ten starts"]
    for name, seconds in taken.items():
        model = models.get(name)
        labels = None if model is None else getattr(model, "labels_", None)
        labels = model.predict(X) if model is not None and hasattr(model, "predict") else labels
        rand = "" if labels is None else f"{adjusted_rand_score(y, labels):8.3f}"
        print(f"{name:34}{seconds:9.3f}{seconds / peer:9.1f} times{rand}", flush=True)


def daal_job(daal4py: ModuleType, X: np.ndarray) -> Callable[[], object]:
    """Ten starts of daal4py's mixture, each to 100 steps at most, as GaussianMixture."""

    def job() -> None:
        for seed in range(10):
            start = daal4py.em_gmm_init(N_CLASSES, nTrials=1, engine=daal4py.engines_mt19937(seed=seed)).compute(X)
            daal4py.em_gmm(N_CLASSES, maxIterations=100).compute(X, start.weights, start.means, start.covariances)

    return job


def exponent(sizes: list[float], seconds: list[float]) -> float:
    """Slope of the logarithm of the seconds over that of the size, from the first to the last."""
    return float(np.log(seconds[-1] / seconds[0]) / np.log(sizes[-1] / sizes[0]))


def growth(options: argparse.Namespace) -> None:
    """Print the time of a default fit against rows, columns, classes and links."""
    quick = options.quick
    series: dict[str, list[tuple[int, tuple[int, int, int, int]]]] = {
        "rows": [
            (n, (n, 10, 4, 50)) for n in ((500, 2000, 10_000) if quick else (500, 2000, 10_000, 100_000, 1_000_000))
        ],
        "columns": [(d, (2000, d, 4, 50)) for d in ((2, 10, 50) if quick else (2, 10, 50, 200, 1000))],
        "classes (1500 rows)": [(m, (1500, 10, m, 50)) for m in ((4, 10) if quick else (4, 10, 50, 100))],
        "links": [(n, (2000, 10, 4, n)) for n in ((50, 500, 2000) if quick else (50, 500, 2000, 10_000, 100_000))],
    }
    print("\nA default fit; CPU seconds, one thread. Ratios are to the row marked with a star.")
    for name, sizes in series.items():
        print(f"{name:>22}  seconds    ratio   adjusted Rand")
        found = []
        for size, (n, d, m, n_links) in sizes:
            X, y = problem(n, d, m)
            found.append((size, *fit(X, y, n_links)))
        star = next((seconds for size, seconds, _ in found if size in (N_ROWS, 10, 4, N_LINKS)), found[0][1])
        for size, seconds, rand in found:
            mark = "*" if seconds == star else " "
            print(f"{size:>21,}{mark}{seconds:9.2f}{seconds / star:9.2f}{rand:16.3f}", flush=True)
        sizes_found, seconds_found = [one[0] for one in found], [one[1] for one in found]
        print(f"{'exponent':>22}{exponent(sizes_found, seconds_found):9.2f}", flush=True)


def shapes(options: argparse.Namespace) -> None:
    """Print the time of fits whose links form long chains, cliques and one hub."""
    size = 1000 if options.quick else 10_000
    X, y = problem(max(2000, size + 1))
    rng = np.random.default_rng(0)
    order = rng.permutation(len(X))
    said = {f"{N_LINKS} random": None}
    said[f"a chain of {size}"] = np.stack([order[: size - 1], order[1:size]], axis=1)
    said[f"one hub with {size}"] = np.stack([np.full(size, order[0]), order[1 : size + 1]], axis=1)
    clique = np.stack(np.triu_indices(141 if size > 1000 else 45, 1), axis=1)
    said[f"a clique of {clique.max() + 1}"] = order[clique]
    cliques = np.concatenate([np.stack(np.triu_indices(10, 1), axis=1) + 10 * k for k in range(size // 45)])
    said[f"{size // 45} cliques of 10"] = order[cliques]
    print(f"\nA default fit of {len(X)} x {N_COLUMNS}, {N_CLASSES} classes; CPU seconds, one thread")
    first = None
    for name, pairs in said.items():
        links = None
        if pairs is not None:
            same = y[pairs[:, 0]] == y[pairs[:, 1]]
            links = Links(must=pairs[same], cannot=pairs[~same])
        seconds, rand = fit(X, y, links=links)
        first = first or seconds
        print(f"{name:26}{seconds:9.2f}{seconds / first:9.2f} times{rand:8.3f}", flush=True)


def pictures(n: int = 1000) -> tuple[np.ndarray, np.ndarray, str]:
    """Pictures of handwritten digits 0 to 4, 784 pixels each; generated columns where there are none."""
    try:
        archive = Path(os.environ["LINKMIX_DATA"]) / "data" / "mnist_t10k.npz"
        with np.load(archive, allow_pickle=False) as files:
            X, y = files["X"].astype(np.float64), files["y"].astype(np.int64)
    except (KeyError, FileNotFoundError):
        X, y = problem(n, 784, 5)
        return X, y, "generated"
    rows = np.random.default_rng(0).permutation(np.flatnonzero(y < 5))[:n]
    return X[rows], y[rows], "MNIST, digits 0 to 4"


def wide(options: argparse.Namespace) -> None:
    """Print time and score of a fit on all columns, and on 20 principal components."""
    # Ten draws of the pictures differ by .02 either way.
    for (X, y, name), n_draws in ((pictures(), 40), (embeddings(), 10)):
        n_draws = 2 if options.quick else n_draws
        few = PCA(20, random_state=0).fit_transform(X)
        print(
            f"\n{len(X)} x {X.shape[1]} ({name}) beside 20 principal components; CPU seconds, mean of {n_draws} draws"
        )
        found = {}
        for what, Z in (("components", few), ("all columns", X)):
            runs = [fit(Z, y, links=Links.from_labels(y, 50, random_state=draw)) for draw in range(n_draws)]
            seconds, ari = found[what] = np.mean(runs, axis=0)
            print(f"{what:26}{seconds:9.2f}{seconds / found['components'][0]:9.2f} times{ari:8.3f}")


FEW_PICTURES = (((4, 9), 200), ((3, 5, 8), 300), ((1, 7), 150), ((2, 3, 8), 300), ((0, 6), 200))
"""Digits, and number of rows."""


def components(options: argparse.Namespace) -> None:
    """Print the score of fits to principal components of few pictures, which are not correlated with each other."""
    try:
        archive = Path(os.environ["LINKMIX_DATA"]) / "data" / "mnist_t10k.npz"
        with np.load(archive, allow_pickle=False) as files:
            pixels, digits = files["X"].astype(np.float64), files["y"].astype(np.int64)
    except (KeyError, FileNotFoundError):
        print("\nMNIST is not on this machine: set LINKMIX_DATA to the folder that holds data/")
        return
    print("\nFew pictures on 20 components; adjusted Rand index with 10 and 50 links, mean of 4 draws")
    for number, (classes, n) in enumerate(FEW_PICTURES[: 2 if options.quick else None]):
        rows = np.random.default_rng(20 + number).permutation(np.flatnonzero(np.isin(digits, classes)))[:n]
        Z, y = PCA(20, random_state=0).fit_transform(pixels[rows]), np.unique(digits[rows], return_inverse=True)[1]
        found = []
        for n_links in (10, 50):
            scores = []
            for draw in range(4):
                links = Links.from_labels(y, n_links, random_state=draw)
                model = AutoLinkMixture(len(classes), random_state=draw).fit(Z, links=links)
                scores.append(adjusted_rand_score(y, model.predict(Z)))
            found.append(float(np.mean(scores)))
        print(f"{', '.join(map(str, classes)):12}{n:6} rows" + "".join(f"{one:8.3f}" for one in found), flush=True)


def embeddings() -> tuple[np.ndarray, np.ndarray, str]:
    """Rows of length one: centres of eight classes, topics that vary within them, and noise in all directions."""
    rng = np.random.default_rng(0)
    n, d, n_classes, n_topics = 3000, 384, 8, 12
    y = rng.integers(n_classes, size=n)
    topics = rng.normal(size=(n, n_topics)) * np.linspace(1.0, 0.2, n_topics) @ rng.normal(size=(n_topics, d))
    X = 0.3 * rng.normal(size=(n_classes, d))[y] + 0.7 * topics + 2.0 * rng.normal(size=(n, d))
    return X / np.linalg.norm(X, axis=1, keepdims=True), y, "like embeddings"


def step(options: argparse.Namespace) -> None:
    """Print the time of a step of EM with each coupling."""
    X, y = problem()
    links = Links.from_labels(y, N_LINKS, random_state=0)
    density, shape = Gaussian(), starts.Shape(N_CLASSES)
    start = starts.from_classes(density, X, y, shape, np.random.RandomState(0))
    data, n_steps = part(Knowledge(X, links)), 200

    def job(coupling: Pairwise | Graph) -> Callable[[], object]:
        model = engine.Model(density, bind(coupling, links, N_CLASSES))
        return lambda: engine.fit(model, data, start, tol=0.0, max_iter=n_steps)

    jobs = {"pairwise": job(Pairwise()), "graph": job(Graph())}
    print(f"\nA step of EM, {N_ROWS} x {N_COLUMNS}, {N_CLASSES} classes, {N_LINKS} links; CPU milliseconds, one thread")
    taken = in_turns(max(5, options.turns), *jobs.values())
    for name, seconds in zip(jobs, taken, strict=True):
        print(f"{name:26}{1e3 * seconds / n_steps:9.4f}{seconds / taken[0]:9.2f} times")


def units(options: argparse.Namespace) -> None:
    """Print the number of steps of a LinkMixture on the same data in other units."""
    print("\nSteps of LinkMixture with its defaults, the same data in other units")
    for name, (X, y) in {"generated": problem(), "iris": load("iris"), "wine": load("wine")}.items():
        links = Links.from_labels(y, N_LINKS, random_state=0)
        counts = []
        for scale in (1.0, 1e3, 1e-3):
            with one_thread():
                # reg_covar is in units of the data, as in scikit-learn.
                model = LinkMixture(len(np.unique(y)), reg_covar=1e-6 * scale**2, random_state=0)
                counts.append(model.fit(scale * X, links=links).n_iter_)
        print(f"{name:26}" + "".join(f"{count:9}" for count in counts))


def large(options: argparse.Namespace) -> None:
    """Print the time of default fits of many rows."""
    n, m = 100_000 if options.quick else 1_000_000, 8
    X, y = problem(n, 10, m)
    links = Links.from_labels(y, N_LINKS, random_state=0)
    models = {
        "GaussianMixture": GaussianMixture(m, random_state=0),
        "LinkMixture": LinkMixture(m, random_state=0),
        "LinkMixture, graph": LinkMixture(m, coupling="graph", random_state=0),
        "AutoLinkMixture": AutoLinkMixture(m, random_state=0),
    }
    print(f"\n{n:,} x 10, {m} classes, {N_LINKS} links, default settings; CPU seconds, one thread")
    first = None
    for name, model in models.items():
        told = {} if isinstance(model, GaussianMixture) else {"links": links}
        seconds = seconds_of(lambda: model.fit(X, **told))  # noqa: B023
        first = first or seconds
        rand = adjusted_rand_score(y, model.predict(X))
        print(f"{name:26}{seconds:9.2f}{seconds / first:9.2f} times{rand:8.3f}", flush=True)


SIDE = """
import json, sys, time, warnings
import numpy as np
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import ThreadpoolController
from linkmix import AutoLinkMixture, Links
from linkmix.study.paper.protocol import load
warnings.simplefilter("ignore")
ThreadpoolController().limit(limits=1)
for line in sys.stdin:
    name, n_links, draw = json.loads(line)
    X, y = load(name)
    links = Links.from_labels(y, n_links, random_state=draw)
    begin = time.process_time()
    model = AutoLinkMixture(len(np.unique(y)), random_state=draw).fit(X, links=links)
    seconds = time.process_time() - begin
    print(json.dumps([seconds, adjusted_rand_score(y, model.predict(X))]), flush=True)
"""


class Side:
    """A process with one state of linkmix, which makes fits on request."""

    def __init__(self, folder: Path) -> None:
        environment = os.environ | {"PYTHONPATH": str(folder / "src"), "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-c", SIDE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def __call__(self, name: str, n_links: int, draw: int) -> tuple[float, float]:
        """CPU seconds of a fit, and the adjusted Rand index of predict."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps([name, n_links, draw]), file=self._process.stdin, flush=True)
        seconds, rand = json.loads(self._process.stdout.readline())
        return seconds, rand

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def sets(options: argparse.Namespace) -> None:
    """Print the mean time of a fit over the eleven data sets, beside an earlier state."""
    sides = {"now": Side(Path(__file__).resolve().parents[1])}
    if options.against:
        sides["earlier"] = Side(Path(options.against).resolve())
    names = []
    for name in FEWEST_DATA:
        try:
            load(name)
            names.append(name)
        except MissingData:
            print(f"{name} is not on this machine and left out")
    print("\nMean CPU seconds of a default fit, one thread, and mean adjusted Rand index of predict")
    print(f"{'links':>8}" + "".join(f"{side:>12}{'ARI':>8}" for side in sides) + f"{'ratio':>10}")
    every: list[np.ndarray] = []
    for n_links in options.links:
        found = np.array(
            [
                [side(name, n_links, draw) for side in sides.values()]
                for draw in range(options.first, options.first + options.draws)
                for name in names
            ]
        )  # (runs, sides, 2)
        every.append(found)
        _line(str(n_links), found)
    _line("all", np.concatenate(every))
    for side in sides.values():
        side.close()


def _line(name: str, found: np.ndarray) -> None:
    seconds, rand = found.mean(axis=0).T
    cells = "".join(f"{s:12.2f}{r:8.3f}" for s, r in zip(seconds, rand, strict=True))
    print(f"{name:>8}{cells}{seconds[-1] / seconds[0]:10.1f}", flush=True)


PARTS = {one.__name__: one for one in (peers, growth, shapes, wide, components, step, units, large, sets)}


def main() -> None:
    """Read the arguments, run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"any of {', '.join(PARTS)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="smaller problems")
    parser.add_argument("--turns", type=int, default=3, help="turns of which the fastest counts (default: 3)")
    parser.add_argument("--against", metavar="FOLDER", help="sets: a checkout of an earlier state, with its core built")
    parser.add_argument("--links", type=int, nargs="+", default=[10, 25, 50, 100, 200], help="sets: numbers of links")
    parser.add_argument("--draws", type=int, default=1, help="sets: number of draws of the links (default: 1)")
    parser.add_argument("--first", type=int, default=0, help="sets: the first draw (default: 0)")
    options = parser.parse_args()
    if unknown := set(options.parts) - PARTS.keys():
        parser.error(f"there is no part {', '.join(sorted(unknown))}: choose from {', '.join(PARTS)}")
    print(native.description())
    for name in options.parts or PARTS:
        PARTS[name](options)


if __name__ == "__main__":
    main()
