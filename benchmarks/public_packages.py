"""Our COP-KMeans, PCKMeans and MPCKMeans against public packages: same points, links, starts and order of points.

Each package gets its own virtualenv, since one of them changes NumPy's error state when it is imported, and runs in a
separate process. It gets our initial centres instead of drawing its own, and visits the points in the order of the
rows; the rest of its code is unchanged. This determines every label of COP-KMeans, but not those of PCKMeans and
MPCKMeans: ours visit the points in random order, and continue from the classes of the previous step if that is cheaper.
The labels of both sides get the same scores: agreement (ARI between the two, and how often it is 1), the method's
objective, purity, broken links. Seconds are those of the fit.

    python -m benchmarks.public_packages                     # virtualenvs in a temporary folder
    python -m benchmarks.public_packages --folder ~/rivals   # or in this one, where the next run finds them
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
import venv
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from linkmix import Links, links_satisfied, purity
from linkmix.rivals.cop_kmeans import COPKMeans
from linkmix.rivals.kmeans_links import class_means, plusplus_seeds, weighted_links
from linkmix.rivals.mpc_kmeans import MPCKMeans
from linkmix.rivals.pc_kmeans import PCKMeans

LOADERS = {"iris": load_iris, "wine": load_wine, "breast_cancer": load_breast_cancer}
ACTIVE = "active-semi-supervised-clustering"
COGNITIVE = "cognitivefactory-interactive-clustering"
# Arguments of pip, tried in turn until the package can be imported: the newest versions first.
INSTALLS: dict[str, list[list[list[str]]]] = {
    ACTIVE: [[[ACTIVE]], [[ACTIVE, "numpy<2", "scikit-learn<1.6"]], [[ACTIVE, "numpy<1.24", "scikit-learn<1.3"]]],
    # Clustering does not use its language models, so spacy, which is large, is not needed.
    COGNITIVE: [
        [["--no-deps", COGNITIVE], ["networkx", "numpy", "scipy", "scikit-learn"]],
        [["networkx", "numpy<2", "scipy<1.11", "scikit-learn<1.5"]],
    ],
}
TIMEOUT = 600

# Runs in the virtualenv. Reads one job and writes labels and seconds, or an error.
WORKER = r"""
import json, sys, time
import numpy as np

SECONDS = []

def timed(function, *arguments, **keywords):
    begin = time.perf_counter()
    result = function(*arguments, **keywords)
    SECONDS.append(time.perf_counter() - begin)
    return result

def active(job, X):
    from active_semi_clustering import COPKMeans, MPCKMeans, MPCKMeansMF, PCKMeans
    np.random.shuffle = lambda rows: None  # the order of the rows, as on our side
    centres = np.array(job["centres"])
    classes = {"COPKMeans": COPKMeans, "PCKMeans": PCKMeans, "MPCKMeans": MPCKMeans, "MPCKMeansMF": MPCKMeansMF}

    class Started(classes[job["method"].partition(" ")[0]]):
        def _init_cluster_centers(self, X):
            return centres.copy()

        def _initialize_cluster_centers(self, X, neighborhoods):
            return centres.copy()

    if job["method"].endswith("mended"):
        def violates(self, i, cluster, labels, ml_graph, cl_graph):
            return any(labels[j] >= 0 and cluster != labels[j] for j in ml_graph[i]) or any(
                cluster == labels[j] for j in cl_graph[i]
            )
        Started._violates_constraints = violates  # the package asks for labels[j] > 0: class 0 holds no must-link
    settings = {} if job["method"].startswith("COP") else {"w": job["weight"]}
    model = Started(n_clusters=len(centres), max_iter=300, **settings)
    timed(model.fit, X, ml=job["must"], cl=job["cannot"])
    return model.labels_

def cognitive(job, X):
    from cognitivefactory.interactive_clustering.clustering.kmeans import KMeansConstrainedClustering
    from cognitivefactory.interactive_clustering.constraints.binary import BinaryConstraintsManager
    from scipy.sparse import csr_matrix
    names = [f"{len(X) - i:06d}" for i in range(len(X))]  # it begins with the last one
    manager = BinaryConstraintsManager(list_of_data_IDs=sorted(names))
    for kind in ("must", "cannot"):
        for a, b in job[kind]:
            manager.add_constraint(names[a], names[b], f"{kind.upper()}_LINK")
    centres = np.array(job["centres"])

    class Started(KMeansConstrainedClustering):
        def initialize_centroids(self):
            return {m: csr_matrix(centre) for m, centre in enumerate(centres)}

    model = Started(model="COP", max_iteration=300, tolerance=1e-9, random_seed=0)
    found = timed(
        model.cluster, constraints_manager=manager, nb_clusters=len(centres),
        vectors={name: csr_matrix(x) for name, x in zip(names, X)},
    )
    return [found[name] for name in names]

job = json.load(sys.stdin)
X = np.array(job["X"])
try:
    labels = np.asarray({"active": active, "cognitive": cognitive}[job["package"]](job, X)).tolist()
    result = {"labels": labels, "seconds": SECONDS[0]}
except Exception as error:
    result = {"error": f"{type(error).__name__}: {error}".strip(": ")}
json.dump(result, sys.stdout)
"""
IMPORTS = {
    ACTIVE: "import active_semi_clustering",
    COGNITIVE: "from cognitivefactory.interactive_clustering import clustering, constraints\n"
    "from cognitivefactory.interactive_clustering.constraints import binary\n"
    "from scipy.sparse import csr_matrix, vstack\n"
    "vstack(csr_matrix([[1.0]]) for _ in range(2))  # as the package does",
}


class Contest(NamedTuple):
    """One of our methods and its counterpart."""

    package: str
    name: str  # of the counterpart
    ours: Callable[[int, np.ndarray, int], Any]  # (n_classes, centres, seed) -> estimator
    weight: float = 1.0


CONTESTS = [
    Contest(ACTIVE, "COPKMeans", lambda k, centres, seed: COPKMeans(k, init=centres, random_state=seed)),
    Contest(ACTIVE, "COPKMeans, mended", lambda k, centres, seed: COPKMeans(k, init=centres, random_state=seed)),
    Contest(COGNITIVE, "COPKMeans", lambda k, centres, seed: COPKMeans(k, init=centres, random_state=seed)),
    Contest(ACTIVE, "PCKMeans", lambda k, centres, seed: PCKMeans(k, weight=1.0, init=centres, random_state=seed)),
    # When it assigns points, the package counts each link twice.
    Contest(
        ACTIVE,
        "MPCKMeans",
        lambda k, centres, seed: MPCKMeans(k, weight=2.0, metric="shared", init=centres, random_state=seed),
    ),
    # A full metric for each class.
    Contest(
        ACTIVE,
        "MPCKMeansMF",
        lambda k, centres, seed: MPCKMeans(k, weight=2.0, form="full", init=centres, random_state=seed),
    ),
]


class Outcome(NamedTuple):
    """Result of one run of one side."""

    labels: np.ndarray | None
    seconds: float
    reason: str = ""  # why there are no labels


def install(folder: Path, package: str) -> tuple[Path, str]:
    """Python of the virtualenv of a package, and its versions, or the reason why it cannot be used."""
    python = folder / package / "bin" / "python"
    if not python.exists():
        venv.create(folder / package, with_pip=True)
    note = folder / package / "tried.txt"  # found again with the virtualenv
    reasons = note.read_text().splitlines() if note.exists() else []
    for calls in INSTALLS[package]:
        for call in calls if not imports(python, package) else []:
            pip = run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *call)
            if pip.returncode:
                reasons.append(f"pip install {' '.join(call)}: {last_line(pip.stderr)}")
        if imports(python, package):
            note.write_text("\n".join(dict.fromkeys(reasons)))
            instead = f"\n    not with newer versions: {'; '.join(dict.fromkeys(reasons))}" if reasons else ""
            return python, f"runs: {versions(python, package)}{instead}"
        reasons.append(last_line(run(python, "-c", IMPORTS[package]).stderr))
    return python, "does not run: " + "; ".join(dict.fromkeys(reasons))


def imports(python: Path, package: str) -> bool:
    """Whether the package can be imported."""
    return run(python, "-c", IMPORTS[package]).returncode == 0


def versions(python: Path, package: str) -> str:
    """Versions of the package and its dependencies."""
    names = [package, "numpy", "scipy", "scikit-learn"]
    script = f"from importlib.metadata import version\nfor n in {names!r}: print(n, version(n))"
    return ", ".join(run(python, "-c", script).stdout.splitlines())


def run(python: Path, *arguments: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run the Python of the virtualenv, isolated from our environment."""
    return subprocess.run(
        [python, "-I", *arguments], input=text, capture_output=True, text=True, check=False, timeout=TIMEOUT
    )


def last_line(text: str) -> str:
    """The reason of a failure: the last line of a traceback or of pip's output."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith(("WARNING", "[notice]"))]
    return lines[-1] if lines else "no reason given"


def theirs(python: Path, contest: Contest, X: np.ndarray, links: Links, centres: np.ndarray) -> Outcome:
    """Labels of the package."""
    job = {
        "package": contest.package.partition("-")[0].removesuffix("factory"),
        "method": contest.name.replace(",", ""),
        "X": X.tolist(),
        "must": links.must.tolist(),
        "cannot": links.cannot.tolist(),
        "centres": centres.tolist(),
        "weight": contest.weight,
    }
    try:
        result = run(python, "-c", WORKER, text=json.dumps(job))
    except subprocess.TimeoutExpired:
        return Outcome(None, float(TIMEOUT), f"took over {TIMEOUT} s")
    if result.returncode:
        return Outcome(None, 0.0, last_line(result.stderr))
    answer = json.loads(result.stdout.splitlines()[-1])
    if "error" in answer:
        return Outcome(None, 0.0, answer["error"])
    return Outcome(np.array(answer["labels"]), answer["seconds"])


def ours(contest: Contest, X: np.ndarray, links: Links, centres: np.ndarray, seed: int) -> Outcome:
    """Labels of our method."""
    model = contest.ours(len(centres), centres, seed)
    begin = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            labels = model.fit(X, links=links).labels_
    except ValueError as error:
        return Outcome(None, 0.0, f"{type(error).__name__}: {str(error)[:60]}")
    return Outcome(labels, time.perf_counter() - begin)


def objective(contest: Contest, X: np.ndarray, labels: np.ndarray, links: Links, n_classes: int) -> float:
    """The method's objective at the best centres and, for MPCKMeans, the best metric that our step finds."""
    model = contest.ours(n_classes, np.zeros((n_classes, X.shape[1])), 0)
    centres = class_means(X, labels, np.zeros((n_classes, X.shape[1])))
    if isinstance(model, COPKMeans):
        return float(((X - centres[labels]) ** 2).sum())
    graph = weighted_links(links, len(X), model.weight)
    metric = model._first_metric(X.shape[1])
    for _ in range(20):
        metric = model._learned(X, labels, centres, graph, metric)
    return model._objective(X, labels, centres, graph, metric)


def draws(names: list[str], n_links: list[int], seeds: int) -> Iterator[tuple[str, np.ndarray, np.ndarray, int, int]]:
    """Name, points, classes, number of links and seed of each run."""
    for name in names:
        X, y = LOADERS[name](return_X_y=True)
        for n in n_links:
            for seed in range(seeds):
                yield name, StandardScaler().fit_transform(X), y, n, seed


def report(python: Path, contest: Contest, arguments: argparse.Namespace) -> None:
    """Run one contest and print one line per data set and number of links."""
    rows: dict[tuple[str, int], list[list[float]]] = {}
    failures: dict[str, int] = {}
    for name, X, y, n_links, seed in draws(arguments.data, arguments.links, arguments.seeds):
        links = Links.from_labels(y, n_links, random_state=seed)
        n_classes = len(np.unique(y))
        centres = plusplus_seeds(X, n_classes, np.random.RandomState(seed))
        sides = [ours(contest, X, links, centres, seed), theirs(python, contest, X, links, centres)]
        for side, outcome in zip(("ours", "theirs"), sides, strict=True):
            if outcome.labels is None:
                reason = (
                    f"{side}: {outcome.reason}" if side == "theirs" else "ours: InfeasibleLinks, row and links named"
                )
                failures[f"{name}, {n_links} links, {reason}"] = 1 + failures.get(
                    f"{name}, {n_links} links, {reason}", 0
                )
        found = [outcome.labels for outcome in sides if outcome.labels is not None]
        if len(found) == 2:
            row = [adjusted_rand_score(*found)]
            for labels in found:
                row += [objective(contest, X, labels, links, n_classes), purity(y, labels)]
                row += [round((1 - links_satisfied(labels, links)) * n_links)]
            rows.setdefault((name, n_links), []).append([*row, *(outcome.seconds for outcome in sides)])
    for (name, n_links), values in rows.items():
        agreement, *both, our_seconds, their_seconds = np.mean(values, axis=0)
        same = sum(value[0] == 1 for value in values)
        print(
            f"{contest.name:<18} {name:<14} {n_links:>5} {agreement:>7.3f} {same:>3}/{len(values):<3}"
            f"{both[0]:>10.2f} {both[3]:>10.2f} {both[1]:>7.3f} {both[4]:>7.3f} {both[2]:>7.1f} {both[5]:>7.1f}"
            f"{our_seconds:>9.4f} {their_seconds:>9.3f}"
        )
    for reason, count in failures.items():
        print(f"{contest.name:<18} no labels in {count} of {arguments.seeds} runs: {reason}")


def main() -> None:
    """Read the arguments, create the virtualenvs, run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="folder of the virtualenvs (default: a temporary one)")
    parser.add_argument("--data", nargs="+", choices=LOADERS, default=["iris", "wine"], help="(default: iris wine)")
    parser.add_argument("--links", type=int, nargs="+", default=[20, 60], help="numbers of links (default: 20 60)")
    parser.add_argument("--seeds", type=int, default=5, help="number of draws of links and starts (default: 5)")
    arguments = parser.parse_args()
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as temporary:
        print(f"ours: Python {sys.version.split()[0]}, numpy {np.__version__}\n")
        for package in INSTALLS:
            python, state = install(arguments.folder or Path(temporary), package)
            print(f"{package} {state}\n")
            contests = [contest for contest in CONTESTS if contest.package == package]
            if not state.startswith("runs"):
                continue
            print(
                f"{'method':<18} {'data':<14} {'links':>5} {'ARI':>7} {'same':>6} {'objective':>10} {'':>10} "
                f"{'purity':>7} {'':>7} {'broken':>7} {'':>7}{'seconds':>8}"
            )
            print(
                " " * 55 + f"{'ours':>5} {'theirs':>10} {'ours':>7} {'theirs':>7} {'ours':>7} {'theirs':>7}"
                f"{'ours':>9} {'theirs':>9}"
            )
            for contest in contests:
                report(python, contest, arguments)
            print()
    print(f"{time.perf_counter() - begin:.0f} s")


if __name__ == "__main__":
    main()
