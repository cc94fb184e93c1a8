"""Speed over time: ``python -m benchmarks.record`` adds a line for this version to ``benchmarks/record.csv``.

Each figure is a ratio to scikit-learn in the same run, the fastest of several turns of each side, so lines of different
machines can be compared: steps and fit of 100,000 points, a default fit, prediction, and the modules that an import
loads. ``--show`` prints the lines that are there and measures nothing.
"""

import argparse
import csv
import datetime
import io
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
from sklearn.mixture import GaussianMixture

import linkmix
from benchmarks.front_door import N_CLASSES, N_LINKS, in_turns
from benchmarks.front_door import problem as overlapping
from benchmarks.speed import given_start, problem
from linkmix import AutoLinkMixture, LinkMixture, Links, native

PATH = Path(__file__).with_name("record.csv")
TURNS = 5
STEPS = 20


def steps() -> float:
    """How many times as fast EM is as that of scikit-learn, one thread each, for the same steps."""
    X, centres = problem(100_000, 10, 10, 3.0)
    n_classes = len(centres)
    identity = np.broadcast_to(np.eye(10), (n_classes, 10, 10)).copy()
    common = {"max_iter": STEPS, "tol": 0.0}
    theirs = GaussianMixture(n_classes, means_init=centres, precisions_init=identity, **common)
    ours = LinkMixture(n_classes, init=given_start(centres), **common)
    mine, peer = in_turns(TURNS, lambda: ours.fit(X), lambda: theirs.fit(X))
    return peer / mine


def default_fit() -> float:
    """How many times as long a default fit takes as GaussianMixture with ten starts."""
    X, y = overlapping()
    links = Links.from_labels(y, N_LINKS, random_state=0)
    ours = AutoLinkMixture(N_CLASSES, random_state=0)
    theirs = GaussianMixture(N_CLASSES, n_init=10, random_state=0)
    mine, peer = in_turns(TURNS, lambda: ours.fit(X, links=links), lambda: theirs.fit(X))
    return mine / peer


def prediction() -> float:
    """How many times as fast probabilities are as those of scikit-learn."""
    X, centres = problem(200_000, 10, 10, 3.0)
    ours = LinkMixture(len(centres), init=given_start(centres), max_iter=5, tol=0.0).fit(X[:20_000])
    theirs = GaussianMixture(len(centres), max_iter=5, tol=0.0, random_state=0).fit(X[:20_000])
    mine, peer = in_turns(TURNS, lambda: ours.predict_proba(X), lambda: theirs.predict_proba(X))
    return peer / mine


def modules() -> int:
    """Modules that importing AutoLinkMixture loads."""
    script = "import sys; from linkmix import AutoLinkMixture; print(len(sys.modules))"
    return int(subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true", help="print the record and measure nothing")
    given = parser.parse_args()
    lines = list(csv.DictReader(io.StringIO(PATH.read_text()))) if PATH.exists() else []
    if not given.show:
        warnings.simplefilter("ignore")
        found = {
            "version": linkmix.__version__,
            "date": datetime.date.today().isoformat(),
            "computes": native.description().partition(", ")[2].partition(",")[0] or "numpy",
            "steps_times_sklearn": f"{steps():.1f}",
            "fit_over_ten_starts": f"{default_fit():.2f}",
            "proba_times_sklearn": f"{prediction():.1f}",
            "modules": str(modules()),
        }
        lines = [line for line in lines if line["version"] != found["version"]] + [found]
        with PATH.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(found), lineterminator="\n")
            writer.writeheader()
            writer.writerows(lines)
    for line in lines:
        print("  ".join(f"{name} {value}" for name, value in line.items()))


if __name__ == "__main__":
    main()
