"""A metric learned by ITML of the package metric-learn, then Ward's method: labels for the same points and links.

The package gets a virtualenv of its own, with a scikit-learn that it supports. Columns are scaled to unit variance;
everything else is the package's default. Ward's method has no ``predict``, so the score is that of its labels.

    python -m benchmarks.itml --folder ~/rivals --out itml.csv
    python -m benchmarks.noise_columns run --raw --noise 0 --links 10 25 50 --all --out ours.csv
    python -m benchmarks.noise_columns compare itml.csv ours.csv
"""

import argparse
import csv
import json
from dataclasses import asdict, fields
from pathlib import Path

import numpy as np
from sklearn.metrics import adjusted_rand_score

from benchmarks import public_packages
from benchmarks.honesty import available, points_of
from benchmarks.noise_columns import Fit, read, with_noise
from linkmix import Links

PACKAGE = "metric-learn"
INSTALLS = [[[PACKAGE]], [[PACKAGE, "scikit-learn<1.6"]]]
IMPORT = "from metric_learn import ITML\nITML().fit([[[0.0], [1.0]], [[0.0], [9.0]]], [1, -1])"
# Runs in the virtualenv, once for all jobs of a draw. Reads them and writes labels and seconds of each.
WORKER = r"""
import json, sys, time, warnings
import numpy as np
from metric_learn import ITML
from sklearn.cluster import AgglomerativeClustering

warnings.simplefilter("ignore")
found = []
for job in json.load(sys.stdin):
    X, pairs = np.array(job["X"]), np.array(job["pairs"])
    begin = time.process_time()
    learned = ITML(random_state=0).fit(X[pairs], job["same"]).transform(X)
    labels = AgglomerativeClustering(job["n_classes"]).fit(learned).labels_
    found.append({"labels": labels.tolist(), "seconds": time.process_time() - begin})
json.dump(found, sys.stdout)
"""


def labelled(python: Path, names: list[str], n_links: int, draw: int) -> list[Fit]:
    """One run of the package on each data set."""
    jobs, truths = [], []
    for name in names:
        X, y = points_of(name)
        links = Links.from_labels(y, n_links, random_state=draw)
        job = {
            "X": with_noise(X, 0, draw).tolist(),
            "pairs": np.concatenate([links.must, links.cannot]).tolist(),
            "same": [1] * links.n_must + [-1] * links.n_cannot,
            "n_classes": len(np.unique(y)),
        }
        jobs.append(job)
        truths.append(y)
    result = public_packages.run(python, "-c", WORKER, text=json.dumps(jobs))
    if result.returncode:
        raise SystemExit(f"{n_links} links, draw {draw}: {public_packages.last_line(result.stderr)}")
    answers = json.loads(result.stdout.splitlines()[-1])
    return [
        Fit(name, 1, 0, n_links, draw, adjusted_rand_score(y, answer["labels"]), answer["seconds"])
        for name, y, answer in zip(names, truths, answers, strict=True)
    ]


def main() -> None:
    """Read the arguments, create the virtualenv and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="folder of the virtualenv")
    parser.add_argument("--out", type=Path, required=True, help="CSV file of the runs; it is continued")
    parser.add_argument("--links", type=int, nargs="+", default=[10, 25, 50], help="(default: 10 25 50)")
    parser.add_argument("--draws", type=int, default=3, help="number of draws (default: 3)")
    parser.add_argument("--first", type=int, default=2, help="number of the first draw (default: 2)")
    parser.add_argument("--data", nargs="*", help="data sets (default: all sixteen)")
    arguments = parser.parse_args()
    public_packages.INSTALLS[PACKAGE], public_packages.IMPORTS[PACKAGE] = INSTALLS, IMPORT
    python, state = public_packages.install(arguments.folder, PACKAGE)
    print(f"{PACKAGE} {state}")
    if not state.startswith("runs"):
        raise SystemExit(1)
    done = {fit.case for fit in read(arguments.out)} if arguments.out.exists() else set()
    with arguments.out.open("a", newline="") as file:
        table = csv.DictWriter(file, [field.name for field in fields(Fit)])
        if not done:
            table.writeheader()
        for draw in range(arguments.first, arguments.first + arguments.draws):
            for n_links in arguments.links:
                todo = [name for name in available(arguments.data) if (name, 1, 0, n_links, draw) not in done]
                for fit in labelled(python, todo, n_links, draw):
                    table.writerow(asdict(fit))
                    print(fit.data, n_links, draw, f"{fit.ari:.3f}", f"{fit.seconds:.1f} s", flush=True)
                file.flush()


if __name__ == "__main__":
    main()
