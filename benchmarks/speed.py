"""Speed compared with other packages, in one run: ``python -m benchmarks.speed [part ...] [--quick]``.

Parts: iterations (against scikit-learn), daal (against daal4py, if it is installed), small, memory, links.
Both sides take turns in one process and the fastest turn of each counts, so ratios are meaningful even on a busy
machine. scikit-learn runs with one and with all BLAS threads, and the faster one counts. The last columns show how
closely the results agree, whether all threads give the same digits as one, and the rate of multiply-adds of the core as
a share of that of a matrix product (BLAS, one thread, measured in between).
"""

import argparse
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from types import ModuleType

import numpy as np
from sklearn.mixture import GaussianMixture
from threadpoolctl import ThreadpoolController

from linkmix import LinkMixture, engine, fit_trials, native
from linkmix.basics.arrays import leave_one_out, log_sum_exp, shares
from linkmix.couplings import Uncoupled
from linkmix.couplings.class_weights import log_probability_apart
from linkmix.densities import Gaussian
from linkmix.links import Links

SHAPES = [
    *[(500, 2, 3), (10_000, 2, 4), (100_000, 10, 10), (1_000_000, 2, 4)],
    *[(1_000_000, 10, 8), (200_000, 50, 10), (100_000, 128, 16)],
]

POOLS = ThreadpoolController()


def problem(n: int, d: int, n_components: int, separation: float, seed: int = 0):
    """Points around centres, and the centres."""
    rng = np.random.default_rng(seed)
    centres = separation * rng.normal(size=(n_components, d))
    X = rng.normal(size=(n, d))
    X += centres[rng.integers(n_components, size=n)]
    return X, centres


def fastest(turns: int, *sides: Callable[[], object]) -> list[float]:
    """Seconds of the fastest turn of each side, which runs with its `blas_threads`, one by default."""
    best = [np.inf] * len(sides)
    for _ in range(turns):
        for i, side in enumerate(sides):
            with POOLS.limit(limits=getattr(side, "blas_threads", 1)):
                start = time.perf_counter()
                side()
                best[i] = min(best[i], time.perf_counter() - start)
    return best


def identity(n_components: int, d: int):
    return np.broadcast_to(np.eye(d), (n_components, d, d)).copy()


def given_start(centres):
    """A start at the centres for LinkMixture, with equal weights and unit covariances."""
    k, d = centres.shape
    return {
        "class_weights": np.full(k, 1 / k),
        "cluster_weights": np.ones((k, 1)),
        "means": centres[:, None],
        "covariances": identity(k, d)[:, None],
    }


def parameters(density, centres):
    """The same start for the engine."""
    k, d = centres.shape
    start = given_start(centres)
    return engine.Parameters(start["class_weights"], start["cluster_weights"], density.given(start, (k, 1), d))


class Theirs:
    """scikit-learn's iterations, from given centres."""

    def __init__(self, X, centres, threads):
        k, d = centres.shape
        self.X, self.blas_threads = X, threads
        self.mixture = GaussianMixture(
            k, means_init=centres, weights_init=np.full(k, 1 / k), precisions_init=identity(k, d), reg_covar=0.0
        )
        self.mixture._initialize(X[: 10 * k], np.full((10 * k, k), 1 / k))

    def __call__(self):
        self.log_likelihood, log_shares = self.mixture._e_step(self.X)
        self.mixture._m_step(self.X, log_shares)


class Ours:
    """Our iterations, from the same start."""

    def __init__(self, X, centres, threads, level=None, steps=1):
        density = Gaussian(reg_covar=0.0)
        self.model = engine.Model(density, Uncoupled().bind(Links(), 0, len(centres)))
        self.data = engine.Data(X, X[:0])
        self.parameters = parameters(density, centres)
        self.threads, self.level, self.steps = threads, level, steps
        components = density.to_native(self.parameters.components)
        self.looped = level != "off" and native.loops(components, native.NO_PAIRS, X, X[:0])

    def __call__(self):
        with native.using(self.level, threads=self.threads):
            if self.looped:
                fit = engine.fit(self.model, self.data, self.parameters, tol=0, max_iter=self.steps)
                self.log_likelihood = fit.log_likelihood
                return
            for _ in range(self.steps):
                expectation = engine.expect(self.model, self.data, self.parameters)
                self.parameters = engine.maximise(self.model, expectation, self.parameters)
            self.log_likelihood = expectation.log_likelihood


class MatrixProduct:
    """A product of two matrices: the peak rate of the processor."""

    size = 1000
    multiplications = size**3

    def __init__(self):
        self.factor = np.random.default_rng(0).normal(size=(self.size, self.size))

    def __call__(self):
        self.factor @ self.factor


def iterations(options):
    """Print the time of one iteration of EM against scikit-learn."""
    print("\nOne iteration, full covariance, ms. Ratios are relative to the faster scikit-learn run.")
    print(
        "        n    d   k   sklearn 1t   sklearn   NumPy 1t   native 1t  native     NumPy   1t     all   agree   same"
        "   of BLAS"
    )
    threads = os.cpu_count() or 1
    for n, d, k in SHAPES[: 4 if options.quick else None]:
        X, centres = problem(n, d, k, options.separation)
        theirs = [Theirs(X, centres, 1), Theirs(X, centres, threads)]
        ours = [
            Ours(X, centres, 1, "off"),
            Ours(X, centres, 1, options.level),
            Ours(X, centres, threads, options.level),
        ]
        turns = 30 if n <= 10_000 else 10 if n <= 100_000 else 4
        first, second, numpy_1, one, several, product = fastest(turns, *theirs, *ours, MatrixProduct())
        if ours[1].looped:
            looped = [Ours(X, centres, t, options.level, steps=100) for t in (1, threads)]
            one, several = (seconds / 100 for seconds in fastest(5, *looped))
        best = min(first, second)
        # J of the parameters after three steps is known after a fourth E-step, which a fit makes by itself.
        check = Theirs(X, centres, 1)
        for _ in range(4):
            check()
        again = [Ours(X, centres, t, options.level, steps=3 if ours[1].looped else 4) for t in (1, threads)]
        for side in again:
            side()
        agree = abs(check.log_likelihood * n / again[0].log_likelihood - 1)
        same = again[0].log_likelihood == again[1].log_likelihood
        print(
            f"{n:9}{d:5}{k:4}{1e3 * first:13.3f}{1e3 * second:10.3f}{1e3 * numpy_1:11.3f}{1e3 * one:12.3f}"
            f"{1e3 * several:8.3f}{best / numpy_1:10.1f}{best / one:7.1f}{best / several:7.1f}{agree:9.0e}   {same!s:5}"
            f"{n * multiplications(d, k) / one / (MatrixProduct.multiplications / product):9.0%}",
            flush=True,
        )


def multiplications(d: int, k: int) -> float:
    """Number of multiply-adds per row: half a matrix for the distance, half for the moments."""
    return k * (d * (d + 1) / 2 + d + d * (d + 1) / 2 + d)


def imported_daal():
    """The package daal4py, with one thread; None if it cannot be imported."""
    # Use the algorithm without the patches for scikit-learn, which support only older versions of it.
    sys.modules.setdefault("daal4py.sklearn", ModuleType("daal4py.sklearn"))
    try:
        import daal4py
    except ImportError as error:
        print(f"\ndaal4py cannot be imported ({error}): it is left out")
        return None
    daal4py.daalinit(1)
    return daal4py


def daal(options):
    """Print the time of iterations against daal4py, with one thread."""
    daal4py = imported_daal()
    if daal4py is None:
        return
    print("\nOne iteration against daal4py em_gmm, one thread, ms")
    print("        n    d   k     daal4py      native   ratio   agree")
    ratios = []
    for n, d, k in SHAPES[: 4 if options.quick else None]:
        X, centres = problem(n, d, k, options.separation)
        steps = 50 if n <= 10_000 else 3
        covariances = list(identity(k, d))
        found = []

        def theirs(X=X, k=k, centres=centres, covariances=covariances, steps=steps, found=found):
            algorithm = daal4py.em_gmm(nComponents=k, maxIterations=steps, accuracyThreshold=0.0)
            found.append(algorithm.compute(X, np.full((1, k), 1 / k), centres, covariances))

        ours = Ours(X, centres, 1, options.level, steps=steps)
        their_time, our_time = fastest(10 if n <= 10_000 else 3, theirs, ours)
        ratios.append(their_time / our_time)
        # Their goal function is J before or after the last step; our side continues in each turn, unless it is looped.
        around = [Ours(X, centres, 1, options.level, steps=steps + more) for more in (-1, 0, 1)]
        for side in around:
            side()
        goal = float(np.ravel(found[-1].goalFunction)[0])
        agree = min(abs(goal / other.log_likelihood - 1) for other in around)
        milliseconds = f"{1e3 * their_time / steps:12.3f}{1e3 * our_time / steps:12.3f}"
        print(f"{n:9}{d:5}{k:4}{milliseconds}{ratios[-1]:8.2f}{agree:9.0e}", flush=True)
    print(f"geometric mean {np.exp(np.mean(np.log(ratios))):.2f}, smallest {min(ratios):.2f}", flush=True)


def small(options):
    """Print the time of whole fits of 300 points with the public estimators."""
    k, d, n_trials = 2, 3, 100
    X = np.stack([problem(300, d, k, 1.5, seed)[0] for seed in range(n_trials)])
    centres = np.array([[0.0] * d, [1.0] * d])
    theirs = GaussianMixture(
        k, max_iter=20, tol=0, means_init=centres, weights_init=[0.5, 0.5], precisions_init=identity(k, d)
    )
    init = given_start(centres)
    ours = LinkMixture(k, max_iter=20, tol=0, init=init)
    stacked = {name: np.broadcast_to(array, (n_trials, *array.shape)) for name, array in init.items()}
    both = []
    with native.using(options.level):
        times = fastest(30, lambda: theirs.fit(X[0]), lambda: ours.fit(X[0]))
        # Their lower bound belongs to the parameters before the last step.
        agree = abs(300 * theirs.lower_bound_ / ours.log_likelihood_trace_[-2] - 1)
        print(
            f"\nA fit of 300 x 3, 2 classes, 20 iterations, start given: scikit-learn {1e3 * times[0]:.2f} ms, "
            f"LinkMixture {1e3 * times[1]:.3f} ms, ratio {times[0] / times[1]:.1f}, agree {agree:.0e}"
        )

        def one_by_one():
            both[:] = [theirs.fit(rows).lower_bound_ for rows in X]

        times = fastest(3, one_by_one, lambda: fit_trials(ours, X, stacked))
        before = fit_trials(ours.set_params(max_iter=19), X, stacked).log_likelihood
        agree = np.abs(300 * np.array(both) / before - 1).max()
    print(
        f"{n_trials} such trials: scikit-learn {1e3 * times[0]:.0f} ms, fit_trials {1e3 * times[1]:.1f} ms, "
        f"ratio {times[0] / times[1]:.1f}, agree {agree:.0e}",
        flush=True,
    )


MEMORY = """
import sys
import numpy as np
from benchmarks.speed import Ours, given_start, identity
from linkmix import LinkMixture, engine
from sklearn.mixture import GaussianMixture

def status(name):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024

n, d, k = 1_000_000, 10, 8
rng = np.random.default_rng(0)
X = np.empty((n, d))
rng.standard_normal(out=X)
X += rng.integers(k, size=(n, 1))
centres = np.arange(k)[:, None] * np.ones(d)
theirs = GaussianMixture(
    k, max_iter=2, tol=0, means_init=centres, weights_init=np.full(k, 1 / k), precisions_init=identity(k, d),
    init_params="random_from_data",
)
ours = LinkMixture(k, max_iter=2, tol=0, init=given_start(centres))
theirs.fit(X[:1000]), ours.fit(X[:1000])
open("/proc/self/clear_refs", "w").write("5")
before = status("VmRSS")
if sys.argv[1] == "sklearn":
    theirs.fit(X)
elif sys.argv[1] == "fit":
    ours.fit(X)
else:
    em = Ours(X, centres, None)
    engine.fit(em.model, em.data, em.parameters, tol=0, max_iter=2)
print(status("VmHWM") - before)
"""


def memory(options):
    """Print the peak of the extra memory of a fit."""
    if not os.path.exists("/proc/self/clear_refs"):
        print("\nthis system has no /proc/self/clear_refs: skipping memory")
        return
    peaks = {}
    for name in ("sklearn", "fit", "em"):
        command = [sys.executable, "-c", MEMORY, name]
        peaks[name] = float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    print(
        f"\nPeak of the extra memory, 1M x 10, 8 components: scikit-learn {peaks['sklearn']:.0f} MB, LinkMixture.fit "
        f"{peaks['fit']:.1f} MB (of which labels_ 7.6), EM itself {peaks['em']:.2f} MB; ratios "
        f"{peaks['sklearn'] / peaks['fit']:.0f} and {peaks['sklearn'] / max(peaks['em'], 1e-3):.0f}",
        flush=True,
    )


def links(options):
    """Print the time of the E-step of a million must-links and a million cannot-links."""
    rng = np.random.default_rng(0)
    n, n_classes, n_links = 20_000, 10, 100_000 if options.quick else 1_000_000
    must, cannot = (np.sort(rng.integers(n, size=(n_links, 2)), axis=1) for _ in range(2))
    must, cannot = must[must[:, 0] != must[:, 1]], cannot[cannot[:, 0] != cannot[:, 1]]
    must, cannot = must[np.lexsort(must.T[::-1])], cannot[np.lexsort(cannot.T[::-1])]
    log_density, weights = 2 * rng.normal(size=(n, n_classes)), rng.dirichlet(np.full(n_classes, 5.0))
    says_same = np.arange(len(must) + len(cannot)) < len(must)
    table = native.PairTable(np.concatenate([must, cannot]), says_same.astype(float), (~says_same).astype(float))
    found = {}

    def plain():
        log_weights = np.log(weights)
        shared = log_weights + log_density[must[:, 0]] + log_density[must[:, 1]]
        joint = log_weights + log_density
        others = leave_one_out(joint)
        first, second = joint[cannot[:, 0]] + others[cannot[:, 1]], joint[cannot[:, 1]] + others[cannot[:, 0]]
        points = np.zeros((n, n_classes))
        for where, values in (
            (must[:, 0], shared),
            (must[:, 1], shared),
            (cannot[:, 0], first),
            (cannot[:, 1], second),
        ):
            np.add.at(points, where, shares(values))
        total = log_sum_exp(shared).sum() + log_sum_exp(first).sum() - len(cannot) * log_probability_apart(log_weights)
        found["plain"] = total, points

    def core(threads):
        with native.using(options.level, threads=threads):
            found[threads] = native.expect_pairs(log_density, weights, table)[:2]

    if not native.active():
        print("\nthe native core is not active: skipping links")
        return
    times = fastest(3, plain, lambda: core(1), lambda: core(2))
    agree = max(abs(found["plain"][0] / found[1][0] - 1), np.abs(found["plain"][1] / found[1][1] - 1).max())
    print(
        f"\n{len(must)} must-links and {len(cannot)} cannot-links, {n_classes} classes, {n} points: log-domain NumPy "
        f"with np.add.at {1e3 * times[0]:.0f} ms, native {1e3 * times[1]:.1f} ms, two threads {1e3 * times[2]:.1f} ms, "
        f"ratios {times[0] / times[1]:.1f} and {times[0] / times[2]:.1f}, agree {agree:.0e}, "
        f"same {found[1][0] == found[2][0]}",
        flush=True,
    )


PARTS = {part.__name__: part for part in (iterations, daal, small, memory, links)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"any of {', '.join(PARTS)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="skip the large problems")
    parser.add_argument("--level", help=f"instruction set, one of {', '.join(native.levels())} (default: the best)")
    parser.add_argument("--separation", type=float, default=3.0, help="distance scale of the centres (default: 3)")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if unknown := set(options.parts) - PARTS.keys():
        parser.error(f"there is no part {', '.join(sorted(unknown))}: choose from {', '.join(PARTS)}")
    with native.using(options.level):
        print(native.description())
    for name in options.parts or PARTS:
        PARTS[name](options)


if __name__ == "__main__":
    main()
