"""Prediction: ``OMP_NUM_THREADS=1 python -m benchmarks.prediction [--quick] [--against FOLDER]``.

Milliseconds of CPU time for `predict`, `predict_proba` and `score_samples` of LinkMixture and AutoLinkMixture, in
double and single precision, beside one E-step over the same rows and scikit-learn's GaussianMixture. All sides take
turns of two calls, and the fastest call of each counts. With ``--against``, an earlier state of linkmix, a checkout
with its core built, takes its turns in a process of its own.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.mixture import GaussianMixture

from linkmix import AutoLinkMixture, LinkMixture, engine, native
from linkmix.data.rows import Rows

TURNS = 5
METHODS = ("predict", "predict_proba", "score_samples")
# Rows, columns, classes, and settings of LinkMixture; AutoLinkMixture with none.
CASES = {
    "200k x 2, M = 4": (200_000, 2, 4, {}),
    "200k x 2, M = 4, two clusters each": (200_000, 2, 4, {"clusters_per_class": 2}),
    "200k x 2, M = 4, a pool of eight": (200_000, 2, 4, {"clusters_per_class": 2, "shared_clusters": True}),
    "200k x 2, M = 4, Student-t": (200_000, 2, 4, {"density": "student"}),
    "1M x 10, M = 4": (1_000_000, 10, 4, {}),
    "1M x 10, M = 4, AutoLinkMixture": (1_000_000, 10, 4, None),
    "200k x 50, M = 4": (200_000, 50, 4, {}),
    "2000 x 10, M = 4": (2_000, 10, 4, {}),
}


def points(n: int, d: int, n_classes: int, seed: int = 0) -> np.ndarray:
    """Rows around the centres of the classes."""
    rng = np.random.default_rng(seed)
    centres = 3 * rng.normal(size=(n_classes, d))
    return centres[rng.integers(n_classes, size=n)] + rng.normal(size=(n, d))


def fitted(n_classes: int, settings: dict | None, X: np.ndarray) -> LinkMixture | AutoLinkMixture:
    """A model of some of the rows; how good it is does not matter here."""
    if settings is None:
        return AutoLinkMixture(n_classes, budget="small", calibrate=False, random_state=0).fit(X[:2000])
    return LinkMixture(n_classes, max_iter=3, tol=0, random_state=0, **settings).fit(X[:5000])


def sides_of(case: str) -> dict[str, Callable[[], object]]:
    """What is measured of a case, by its name."""
    n, d, n_classes, settings = CASES[case]
    X = points(n, d, n_classes)
    model = fitted(n_classes, settings, X)
    single = X.astype(np.float32)
    sides: dict[str, Callable[[], object]] = {}
    for method in METHODS:
        sides[method] = lambda method=method: getattr(model, method)(X)
        sides[f"{method} float32"] = lambda method=method: getattr(model, method)(single)
    return sides


def turns(sides: dict[str, Callable[[], object]], n_turns: int) -> dict[str, float]:
    """Milliseconds of CPU time of the fastest call of each side.

    A turn is two calls: the first one may have to ask the system for the memory that the side before it gave back,
    which is more than a millisecond for the probabilities of 200,000 rows and none of their own work.
    """
    best = dict.fromkeys(sides, np.inf)
    for _ in range(n_turns):
        for name, side in sides.items():
            for _ in range(2):
                start = time.process_time()
                side()
                best[name] = min(best[name], 1e3 * (time.process_time() - start))
    return best


def peers(case: str) -> dict[str, Callable[[], object]]:
    """One E-step of the same rows, and scikit-learn's `predict_proba`."""
    n, d, n_classes, settings = CASES[case]
    X = points(n, d, n_classes)
    model = fitted(n_classes, settings or {}, X)
    rows = Rows(X)
    assert rows.complete
    sides: dict[str, Callable[[], object]] = {
        "E-step": lambda: engine.free_sums(model._fitted_density, model._parameters, rows)
    }
    if not settings:
        theirs = GaussianMixture(n_classes, max_iter=3, tol=0, random_state=0).fit(X[:5000])
        sides["scikit-learn"] = lambda: theirs.predict_proba(X)
    return sides


def best_of(*measured: dict[str, float]) -> dict[str, float]:
    """The fastest of several measurements."""
    return {name: min(one[name] for one in measured) for name in measured[0]}


def earlier(folder: str, cases: list[str]) -> dict[str, dict[str, float]]:
    """The same by an earlier state, in a process of its own."""
    here = Path(__file__).resolve().parent.parent
    path = os.pathsep.join([str(Path(folder).resolve() / "src"), str(here)])
    command = [sys.executable, "-m", "benchmarks.prediction", "--cases", *cases]
    output = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": path}, cwd=here, capture_output=True, text=True, check=True
    ).stdout
    found: dict[str, dict[str, float]] = json.loads(output)
    return found


def prediction(options: argparse.Namespace) -> None:
    """Print the time of predictions."""
    warnings.simplefilter("ignore")
    against = getattr(options, "against", None)
    cases = list(CASES)[: 1 if options.quick else None]
    rounds, before = [], []
    for _ in range(2):
        rounds.append({case: turns(sides_of(case) | peers(case), TURNS) for case in cases})
        if against:
            before.append(earlier(against, cases))
    print("\nPrediction, CPU ms: float64, float32" + (", earlier float64" if against else ""))
    print(f"{'':38}" + "".join(f"{name:>26}" for name in METHODS) + "    E-step  scikit-learn  proba/predict  f32/f64")
    for case in cases:
        now = best_of(*(one[case] for one in rounds))
        then = best_of(*(one[case] for one in before)) if before else {}
        cells = ""
        for method in METHODS:
            values = [now[method], now[f"{method} float32"], *([then[method]] if then else [])]
            cells += f"{' '.join(f'{value:8.2f}' for value in values):>26}"
        theirs = f"{now['scikit-learn']:14.2f}" if "scikit-learn" in now else f"{'-':>14}"
        ratio, single = now["predict_proba"] / now["predict"], now["predict_proba float32"] / now["predict_proba"]
        print(f"{case:38}{cells}{now['E-step']:10.2f}{theirs}{ratio:15.2f}{single:9.2f}", flush=True)


PARTS = {"prediction": prediction}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the first case alone")
    parser.add_argument("--against", metavar="FOLDER", help="a checkout of an earlier state, with its core built")
    parser.add_argument("--cases", nargs="+", help=argparse.SUPPRESS)  # of an earlier state
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.cases:
        print(json.dumps({case: turns(sides_of(case), TURNS) for case in options.cases}))
        return
    print(native.description())
    prediction(options)


if __name__ == "__main__":
    main()
