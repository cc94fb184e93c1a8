"""RCA, MMC, ITML, PCCC and ConstrainedLinkage against public programs: same points, links and starts.

Each program has its own virtualenv and runs in a separate process, as in `benchmarks.public_packages`, which does the
same for COP-KMeans, PCKMeans and MPCKMeans. What is compared:

* RCA and ITML of metric-learn: the learned metric, up to scale; ITML with the same prior and bounds.
* MMC of metric-learn: the objective of the published problem at either metric (smaller is better).
* PCCC: the labels of its authors' program from the same first centres. It needs a clone of
  https://github.com/phil85/PCCC-Algorithm, and Gurobi, whose package brings a licence for small problems.
* constrained-linkage: its labels with penalties so large that they decide.

    python -m benchmarks.originals                              # virtualenvs in a temporary folder, without PCCC
    python -m benchmarks.originals --folder ~/rivals --pccc ~/PCCC-Algorithm
"""

import argparse
import json
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_iris, load_wine
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from benchmarks import public_packages
from linkmix import Links, links_satisfied
from linkmix.rivals import ITML, MMC, PCCC, RCA, ConstrainedLinkage
from linkmix.rivals.kmeans_links import plusplus_seeds
from linkmix.rivals.learned_metric import differences

LOADERS = {"iris": load_iris, "wine": load_wine}
METRIC_LEARN, GUROBI, LINKAGE = "metric-learn", "gurobipy", "constrained-linkage"
INSTALLS = {
    METRIC_LEARN: [[[METRIC_LEARN]], [[METRIC_LEARN, "scikit-learn<1.6"]]],
    GUROBI: [[[GUROBI, "pandas", "networkx", "scikit-learn", "scipy"]]],
    LINKAGE: [[[LINKAGE, "scipy", "scikit-learn"]]],
}
IMPORTS = {
    METRIC_LEARN: "from metric_learn import ITML\nITML().fit([[[0.0], [1.0]], [[0.0], [9.0]]], [1, -1])",
    GUROBI: "import gurobipy, networkx, pandas",
    LINKAGE: "from constrained_linkage import constrained_linkage\nimport scipy, sklearn",
}
# Each part reads one job and writes one JSON value.
READ = r"""
import json, sys, time, warnings
import numpy as np
warnings.simplefilter("ignore")
job = json.load(sys.stdin)
X = np.array(job["X"])
must, cannot = (np.array(job[kind], dtype=int).reshape(-1, 2) for kind in ("must", "cannot"))
begin = time.process_time()
"""
WRITE = '\nprint(json.dumps({"found": np.asarray(found).tolist(), "seconds": time.process_time() - begin}))'
PAIRS = """
pairs = X[np.concatenate([must, cannot])]
y = [1] * len(must) + [-1] * len(cannot)
"""
WORKERS = {
    "RCA": """
from metric_learn import RCA
found = RCA().fit(X, np.array(job["chunks"])).get_mahalanobis_matrix()
""",
    "ITML": PAIRS
    + """
from metric_learn import ITML
found = ITML(prior=np.array(job["prior"])).fit(pairs, y, bounds=np.array(job["bounds"])).get_mahalanobis_matrix()
""",
    "MMC, diagonal": PAIRS
    + """
from metric_learn import MMC
found = MMC(diagonal=True).fit(pairs, y).get_mahalanobis_matrix()
""",
    "MMC, full": PAIRS
    + """
from metric_learn import MMC
found = MMC().fit(pairs, y).get_mahalanobis_matrix()
""",
    "PCCC": """
sys.path.insert(0, job["folder"])
import os
quiet, sys.stdout = sys.stdout, open(os.devnull, "w")  # the solver prints its licence
import pccc
pccc.choose_initial_cluster_centers = lambda data, n_clusters, **_: np.array(job["centres"])
found = pccc.pccc(X, len(job["centres"]), ml=must, cl=cannot)["labels"]
sys.stdout = quiet
""",
    "linkage": """
from constrained_linkage import constrained_linkage
from scipy.cluster.hierarchy import fcluster
from scipy.spatial.distance import pdist, squareform
M = np.zeros((len(X), len(X)))
for pairs, penalty in ((must, -1e4), (cannot, 1e6)):
    for a, b in pairs:
        M[a, b] = M[b, a] = penalty
Z = constrained_linkage(squareform(pdist(X)), method="average", constraint_matrix=M)
found = fcluster(Z, job["n_classes"], "maxclust")
""",
}


def asked(python: Path, part: str, job: dict[str, Any]) -> tuple[np.ndarray, float]:
    """What the program finds, and its seconds."""
    result = public_packages.run(python, "-c", READ + WORKERS[part] + WRITE, text=json.dumps(job))
    if result.returncode:
        raise RuntimeError(public_packages.last_line(result.stderr))
    answer = json.loads(result.stdout.splitlines()[-1])
    return np.array(answer["found"]), answer["seconds"]


def metric_difference(one: np.ndarray, other: np.ndarray) -> float:
    """Largest difference of two metrics with the same trace, relative to the largest entry."""
    one, other = one / np.trace(one), other / np.trace(other)
    return float(np.abs(one - other).max() / np.abs(one).max())


def rca(python: Path, X: np.ndarray, links: Links, job: dict[str, Any], seed: int) -> str:
    """Compare RCA as published."""
    must = Links(must=links.must)
    chunklet = must.chunklets(len(X))
    job["chunks"] = np.where(np.bincount(chunklet)[chunklet] > 1, chunklet, -1)
    _, numbers = np.unique(job["chunks"], return_inverse=True)
    job["chunks"] = (numbers - (job["chunks"].min() == -1)).tolist()
    ours = RCA(job["n_classes"], shrinkage=0.0, random_state=seed).fit(X, links=must)
    theirs, _ = asked(python, "RCA", job)
    return f"metrics differ by {metric_difference(ours.metric_, theirs):.1e}"


def itml(python: Path, X: np.ndarray, links: Links, job: dict[str, Any], seed: int) -> str:
    """Compare ITML with the same prior and bounds."""
    bounds = (1.0, 9.0)
    ours = ITML(job["n_classes"], prior="identity", bounds=bounds, max_iter=1000, random_state=seed).fit(X, links=links)
    theirs, _ = asked(python, "ITML", {**job, "prior": np.eye(X.shape[1]).tolist(), "bounds": bounds})
    return f"metrics differ by {metric_difference(ours.metric_, theirs):.1e}"


def mmc(form: str) -> Callable[[Path, np.ndarray, Links, dict[str, Any], int], str]:
    """Compare the objectives of MMC."""

    def compare(python: Path, X: np.ndarray, links: Links, job: dict[str, Any], seed: int) -> str:
        near, far = differences(X, links.must), differences(X, links.cannot)

        def objective(A: np.ndarray) -> float:
            """The objective at the best scale of the metric, which is free."""
            spread = np.einsum("nd,de,ne->", near, A, near)
            lengths = np.sqrt(np.maximum(np.einsum("nd,de,ne->n", far, A, far), 0)).sum()
            return float(0.5 - np.log(lengths * np.sqrt(0.5 / spread)))

        ours = MMC(job["n_classes"], form=form, n_random=0.0, random_state=seed).fit(X, links=links)
        theirs, _ = asked(python, f"MMC, {form}", job)
        return f"objective {objective(ours.metric_):.4f}, theirs {objective(theirs):.4f}"

    return compare


def pccc(python: Path, X: np.ndarray, links: Links, job: dict[str, Any], seed: int) -> str:
    """Compare the labels of PCCC from the same centres."""
    centres = plusplus_seeds(X, job["n_classes"], np.random.RandomState(seed))
    ours = PCCC(job["n_classes"], init=centres).fit(X, links=links).labels_
    theirs, _ = asked(python, "PCCC", {**job, "centres": centres.tolist()})
    return f"ARI between the two {adjusted_rand_score(ours, theirs):.3f}"


def linkage(python: Path, X: np.ndarray, links: Links, job: dict[str, Any], seed: int) -> str:
    """Compare the labels of average linkage."""
    ours = ConstrainedLinkage(job["n_classes"], linkage="average").fit(X, links=links).labels_
    theirs, _ = asked(python, "linkage", job)
    broken = [
        round((1 - links_satisfied(labels, links)) * (links.n_must + links.n_cannot)) for labels in (ours, theirs)
    ]
    scores = [adjusted_rand_score(job["y"], labels) for labels in (ours, theirs)]
    return (
        f"ARI between the two {adjusted_rand_score(ours, theirs):.3f}, with the classes {scores[0]:.3f} and "
        f"{scores[1]:.3f}, broken links {broken[0]} and {broken[1]}"
    )


CONTESTS = {
    "RCA": (METRIC_LEARN, rca),
    "ITML": (METRIC_LEARN, itml),
    "MMC, diagonal": (METRIC_LEARN, mmc("diagonal")),
    "MMC, full": (METRIC_LEARN, mmc("full")),
    "PCCC": (GUROBI, pccc),
    "average linkage": (LINKAGE, linkage),
}


def main() -> None:
    """Read the arguments, create the virtualenvs, run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="folder of the virtualenvs (default: a temporary one)")
    parser.add_argument("--pccc", type=Path, help="clone of the program of PCCC's authors")
    parser.add_argument("--only", nargs="+", choices=CONTESTS, default=list(CONTESTS))
    parser.add_argument("--data", nargs="+", choices=LOADERS, default=["iris", "wine"], help="(default: iris wine)")
    parser.add_argument("--links", type=int, nargs="+", default=[60, 200], help="numbers of links (default: 60 200)")
    parser.add_argument("--seeds", type=int, default=3, help="number of draws of links and starts (default: 3)")
    arguments = parser.parse_args()
    public_packages.INSTALLS.update(INSTALLS)
    public_packages.IMPORTS.update(IMPORTS)
    with tempfile.TemporaryDirectory() as temporary:
        pythons: dict[str, Path] = {}
        for name in arguments.only:
            package, compare = CONTESTS[name]
            if name == "PCCC" and arguments.pccc is None:
                print("PCCC: not compared, give --pccc")
                continue
            if package not in pythons:
                pythons[package], state = public_packages.install(arguments.folder or Path(temporary), package)
                print(f"{package} {state}")
            for data in arguments.data:
                X, y = LOADERS[data](return_X_y=True)
                X = StandardScaler().fit_transform(X)
                for n_links in arguments.links:
                    for seed in range(arguments.seeds):
                        links = Links.from_labels(y, n_links, random_state=seed)
                        job = {"X": X.tolist(), "must": links.must.tolist(), "cannot": links.cannot.tolist()}
                        job |= {"n_classes": len(np.unique(y)), "y": y.tolist(), "folder": str(arguments.pccc)}
                        with warnings.catch_warnings():
                            warnings.simplefilter("ignore")
                            try:
                                said = compare(pythons[package], X, links, job, seed)
                            except (RuntimeError, ValueError) as error:
                                said = str(error)[:150]
                        print(f"{name}, {data}, {n_links} links, draw {seed}: {said}", flush=True)


if __name__ == "__main__":
    main()
