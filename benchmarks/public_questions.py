"""Public packages that choose questions, on the data of `benchmarks.questions`, each with its own clustering.

    python -m benchmarks.public_questions --seeds 3 --folder ~/rivals

COBRAS from cobras-ts, and explore-consolidate, min-max and NPU from active-semi-supervised-clustering, whose answers go
to its PCKMeans. Each package has its own virtualenv, as in `benchmarks.public_packages`. COBRAS uses `np.int`, which
NumPy has removed: the name is restored, nothing else is changed. None of them can predict, so the labels of the points
themselves are scored. Columns have unit variance; all answers are right. Each number of questions takes a run of its
own, except for COBRAS, which reports its labels after every question. Runs that take longer than `--timeout` seconds
are skipped and named.
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from sklearn.metrics import adjusted_rand_score

from benchmarks import public_packages
from benchmarks.public_packages import ACTIVE, IMPORTS, INSTALLS, last_line
from benchmarks.questions import DATA, SHOWN
from linkmix import purity
from linkmix.study.paper.protocol import load

COBRAS = "cobras-ts"
INSTALLS[COBRAS] = [[["--no-deps", COBRAS], ["numpy", "scipy", "scikit-learn"]]]
IMPORTS[COBRAS] = "import numpy; numpy.int = int\nimport cobras_ts.cobras_kmeans"
STRATEGIES = {"COBRAS": COBRAS, "ExploreConsolidate": ACTIVE, "MinMax": ACTIVE, "NPU": ACTIVE}
WORKER = r"""
import json, sys
import numpy as np

def cobras(job, X, y):
    np.int = int
    from cobras_ts.cobras_kmeans import COBRAS_kmeans

    class Truth:  # as their LabelQuerier, whose package wants a web server
        def query_points(self, a, b):
            return y[a] == y[b]

        def continue_cluster_process(self):
            return True

        def update_clustering(self, clustering):
            pass

    _, labels, _, _, _ = COBRAS_kmeans(X, Truth(), max(job["numbers"])).cluster()
    labels = [found for found in labels if found is not None]
    return [labels[min(n, len(labels)) - 1] for n in job["numbers"]]

def active(job, X, y):
    from active_semi_clustering import PCKMeans
    from active_semi_clustering.active.pairwise_constraints import NPU, ExampleOracle, ExploreConsolidate, MinMax
    from active_semi_clustering.exceptions import EmptyClustersException
    k, found = len(set(y)), []
    for n in job["numbers"]:
        oracle = ExampleOracle(y, max_queries_cnt=n)
        strategy = {"ExploreConsolidate": ExploreConsolidate, "MinMax": MinMax, "NPU": NPU}[job["strategy"]]
        asker = strategy(clusterer=PCKMeans(k)) if job["strategy"] == "NPU" else strategy(n_clusters=k)
        asker.fit(X, oracle=oracle)
        for attempt in range(20):
            try:
                model = PCKMeans(k)
                model.fit(X, ml=asker.pairwise_constraints_[0], cl=asker.pairwise_constraints_[1])
            except EmptyClustersException:
                continue
            break
        found.append(np.asarray(model.labels_).tolist())
    return found

job = json.load(sys.stdin)
np.random.seed(job["seed"])
try:
    found = (cobras if job["strategy"] == "COBRAS" else active)(job, np.array(job["X"]), job["y"])
    result = {"labels": [[int(m) for m in labels] for labels in found]}
except Exception as error:
    result = {"error": f"{type(error).__name__}: {error}"}
print(json.dumps(result))
"""


def play(python: Path, strategy: str, data: str, seed: int, timeout: float) -> list[tuple[str, str, int, float, float]]:
    """Scores of one strategy with one seed: name, data, number of questions, ARI and purity."""
    X, y = load(data)
    spread = X.std(axis=0)
    Z = (X - X.mean(axis=0))[:, spread > 0] / spread[spread > 0]
    numbers = [n for n in SHOWN if n]
    rows = []
    for some in [numbers] if strategy == "COBRAS" else [[n] for n in numbers]:
        job = {"strategy": strategy, "X": Z.tolist(), "y": np.unique(y, return_inverse=True)[1].tolist()}
        command = [python, "-I", "-W", "ignore", "-c", WORKER]
        try:
            done = subprocess.run(
                command,
                input=json.dumps(job | {"numbers": some, "seed": seed}),
                capture_output=True,
                text=True,
                check=False,
                timeout=timeout,
            )
        except subprocess.TimeoutExpired:
            print(f"{strategy} on {data}, {some[0]} questions: over {timeout:.0f} s, skipped")
            break
        answer = json.loads(done.stdout.splitlines()[-1]) if done.stdout else {"error": last_line(done.stderr)}
        if "error" in answer:
            print(f"{strategy} on {data}, {some[0]} questions: {answer['error'][:100]}")
            continue
        for n, labels in zip(some, answer["labels"], strict=True):
            rows.append((strategy, data, n, adjusted_rand_score(y, labels), purity(y, np.array(labels))))
    return rows


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--data", default=",".join(DATA))
    parser.add_argument("--strategies", default=",".join(STRATEGIES))
    parser.add_argument("--folder", type=Path, help="folder of the virtualenvs (default: a temporary one)")
    parser.add_argument("--timeout", type=float, default=120)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = options.folder or Path(name)
        strategies = options.strategies.split(",")
        pythons = {}
        for package in dict.fromkeys(STRATEGIES[strategy] for strategy in strategies):
            pythons[package], note = public_packages.install(folder, package)
            print(f"{package} {note}")
        runs = Parallel(n_jobs=options.jobs)(
            delayed(play)(pythons[STRATEGIES[strategy]], strategy, data, seed, options.timeout)
            for strategy in strategies
            for data in options.data.split(",")
            for seed in range(options.seeds)
        )
    rows = [row for run in runs for row in run]
    numbers = [n for n in SHOWN if n]
    for place, measure in ((3, "adjusted Rand index"), (4, "purity")):
        print(f"\n{measure}, mean of the data sets\n\n| strategy | {' | '.join(map(str, numbers))} |")
        print("|---|" + "---|" * len(numbers))
        for strategy in strategies:
            cells = []
            for n in numbers:
                sets = [[row[place] for row in rows if row[:3] == (strategy, d, n)] for d in options.data.split(",")]
                missing = sum(not scores for scores in sets)
                mean = np.mean([np.mean(scores) for scores in sets if scores]) if missing < len(sets) else np.nan
                cells.append(f"{mean:.3f}" + (f" ({len(sets) - missing} sets)" if missing else ""))
            print(f"| {strategy} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
