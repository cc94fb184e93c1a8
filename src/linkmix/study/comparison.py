"""Comparisons of methods: every method on every data set with every number of links, for several seeds."""

import os
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np
from joblib import Parallel, delayed
from joblib import hash as joblib_hash
from numpy.typing import ArrayLike
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from linkmix.basics.arrays import Array
from linkmix.basics.journal import Journal
from linkmix.basics.progress import follow
from linkmix.links import Links
from linkmix.study.metrics import links_satisfied, purity
from linkmix.study.registry import METHODS, Method

if TYPE_CHECKING:
    import pandas as pd

KIND = Literal["both", "must", "cannot", "even"]
"""Which links are drawn: random pairs of any kind, of one kind, or must-links and cannot-links in equal numbers."""
SCORES = ("purity", "ari", "links_satisfied", "purity_predict", "ari_predict", "seconds", "peak_mb", "chosen", "error")


class Run(NamedTuple):
    """The key of one run of a comparison.

    Attributes
    ----------
    data, method : str
        Names of the data and of the method.
    kind : {"both", "must", "cannot", "even"}
        Which links are drawn.
    n_links : int
        Number of links.
    seed : int
        Seed of the links and of the start.
    """

    data: str
    method: str
    kind: KIND
    n_links: int
    seed: int


def compare(
    data: Mapping[str, tuple[ArrayLike, ArrayLike]],
    methods: Iterable[str] | None = None,
    *,
    n_links: Sequence[int] = (0, 10, 25, 50, 100),
    kind: KIND = "both",
    seeds: Iterable[int] = range(10),
    n_jobs: int = 1,
    journal: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> "pd.DataFrame":
    """Run methods on data with links drawn at random from the true classes, and score them.

    Links are drawn as in the paper: random pairs of points, must-linked if their true classes agree. For the same seed
    all methods get the same links, as far as they can use them. They also get the true number of classes.

    Parameters
    ----------
    data : mapping of name to (X, y)
        Points and their true classes.
    methods : iterable of str, optional
        Names from `linkmix.study.registry.METHODS`; all of them by default.
    n_links : sequence of int
        Numbers of links.
    kind : {"both", "must", "cannot", "even"}
        Links between random pairs of any kind, between random pairs of one kind, or must-links and cannot-links in
        equal numbers.
    seeds : iterable of int
        One run for each seed, which determines the links and the start.
    n_jobs : int, default=1
        Number of processes, each with one thread for linear algebra.
    journal : path, optional
        A file to which each finished run is appended as a line of JSON. Runs on the same data with the same settings
        that are already in it are not repeated, unless they failed, so an interrupted comparison continues where it
        stopped.
    progress : bool, default=True
        Whether to show a progress bar, if the package tqdm is installed.

    Returns
    -------
    pandas.DataFrame
        One row per run: ``data``, ``method``, ``kind``, ``n_links``, ``seed``; ``purity`` and ``ari`` of ``labels_``,
        and of ``predict`` if the method has it (``purity_predict``, ``ari_predict``); ``links_satisfied`` by
        ``labels_``; ``seconds``; ``peak_mb``, the peak memory of the run (on Linux, otherwise missing);
        ``chosen``, what a method with ``chosen_`` says that it chose; and ``error``, the reason why a run failed.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from linkmix import compare
    >>> table = compare({"iris": load_iris(return_X_y=True)}, ["gmm", "paper"], n_links=[0, 20], seeds=range(2))
    >>> table.groupby(["method", "n_links"]).size().to_dict()
    {('gmm', 0): 2, ('gmm', 20): 2, ('paper', 0): 2, ('paper', 20): 2}
    """
    chosen = list(METHODS if methods is None else methods)
    for name in chosen:
        if name not in METHODS:
            raise ValueError(f"method {name!r} is not known: choose from {', '.join(METHODS)}")
    if kind not in get_args(KIND):
        raise ValueError(f"kind is {kind!r}: use one of {', '.join(get_args(KIND))}")
    runs = [
        Run(name, method, kind, int(n), int(seed))
        for seed, name, method, n in product(list(seeds), data, chosen, n_links)
    ]
    return run_all(runs, data, METHODS, n_jobs=n_jobs, journal=journal, progress=progress)


def run_all(
    runs: Iterable[Run],
    data: Mapping[str, tuple[ArrayLike, ArrayLike]],
    methods: Mapping[str, Method],
    *,
    n_jobs: int = 1,
    journal: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> "pd.DataFrame":
    """Make the given runs and score them; `compare` does this for all combinations.

    Parameters
    ----------
    runs : iterable of Run
        The runs, in this order. The estimate of the time left is best if expensive and cheap runs are well mixed.
    data : mapping of name to (X, y)
        Points and their true classes.
    methods : mapping of name to Method
        The methods by name.
    n_jobs, journal, progress
        As for `compare`.

    Returns
    -------
    pandas.DataFrame
        As returned by `compare`, with each run once.
    """
    import pandas as pd

    arrays = {name: (np.asarray(X), np.asarray(y)) for name, (X, y) in data.items()}
    for name, (X, y) in arrays.items():
        if len(X) != len(y):
            raise ValueError(f"data {name!r} has {len(X)} points and {len(y)} labels: give one label for each point")
    path = None if journal is None else Path(journal)
    if path is not None and not path.parent.is_dir():
        raise ValueError(f"journal {str(path)!r} is in a folder that does not exist: create the folder first")
    hashes = {name: joblib_hash(pair) for name, pair in arrays.items()}
    models = {name: method.make(n_classes=2, random_state=0) for name, method in methods.items()}
    settings = {name: joblib_hash((type(model).__name__, model.get_params())) for name, model in models.items()}
    rows = [run._asdict() | {"hash": hashes[run.data], "settings": settings[run.method]} for run in dict.fromkeys(runs)]
    with nullcontext() if path is None else Journal(path, shared=True) as kept:
        done = _finished([] if kept is None else kept.entries)
        missing = [row for row in rows if _key(row) not in done]
        jobs = (delayed(_run)(row, methods[row["method"]], *arrays[row["data"]]) for row in missing)
        results = Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)(jobs)
        for row in follow(results, len(rows), "compare", "run", verbose=progress, done=len(rows) - len(missing)):
            done[_key(row)] = row
            if kept is not None:
                kept.append(row)
    return pd.DataFrame([done[_key(row)] for row in rows], columns=[*Run._fields, *SCORES])


def draw_links(y: ArrayLike, n_links: int, kind: KIND, seed: int) -> Links:
    """Draw the links of one run.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        True classes.
    n_links : int
        Number of links.
    kind : {"both", "must", "cannot", "even"}
        Which links. "even" draws half of them as must-links; if the number is odd, there is one more cannot-link.
    seed : int
        Seed of the draw.

    Returns
    -------
    Links

    Examples
    --------
    >>> draw_links([0, 0, 0, 1, 1, 1], 5, "even", seed=0)
    Links(2 must, 3 cannot)
    """
    truth = np.asarray(y)
    if kind != "even":
        return Links.from_labels(truth, n_links, kind=kind, random_state=seed)
    must = Links.from_labels(truth, n_links // 2, kind="must", random_state=seed)
    cannot = Links.from_labels(truth, n_links - n_links // 2, kind="cannot", random_state=seed)
    return Links(must.must, cannot.cannot)


def _run(run: dict[str, Any], method: Method, X: Array, y: Array) -> dict[str, Any]:
    """Make one run and return its row of the table. If it fails, the row has the reason."""
    try:
        return run | _scores(run, method, X, y)
    except Exception as error:  # the failure of one method must not stop the others
        return run | {"error": f"{type(error).__name__}: {error}"}


def _scores(run: dict[str, Any], method: Method, X: Array, y: Array) -> dict[str, Any]:
    row: dict[str, Any] = {}
    links = draw_links(y, run["n_links"], run["kind"], run["seed"])
    model = method.make(n_classes=len(np.unique(y)), random_state=run["seed"])
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fits that did not converge are scored as they are
        before = _forget_peak()
        start = time.perf_counter()
        model.fit(X, links=method.usable(links))
        row["seconds"] = time.perf_counter() - start
        row["peak_mb"] = _peak() - before
    row["purity"] = purity(y, model.labels_)
    row["ari"] = float(adjusted_rand_score(y, model.labels_))
    row["links_satisfied"] = links_satisfied(model.labels_, links)
    if hasattr(model, "chosen_"):
        row["chosen"] = model.chosen_
    if hasattr(model, "predict"):
        predicted = model.predict(X)
        row["purity_predict"] = purity(y, predicted)
        row["ari_predict"] = float(adjusted_rand_score(y, predicted))
    return row


def _key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in (*Run._fields, "hash", "settings"))


def _finished(entries: Iterable[Mapping[str, Any]]) -> dict[tuple[Any, ...], Mapping[str, Any]]:
    """Entries of a journal that are runs and did not fail, by their keys."""
    needed = {*Run._fields, "hash", "settings"}
    return {_key(entry): entry for entry in entries if "error" not in entry and needed <= entry.keys()}


def _forget_peak() -> float:
    """Reset the peak memory of this process and return its present memory in megabytes."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return float("nan")
    return _peak()


def _peak() -> float:
    """Peak memory of this process in megabytes."""
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    return float("nan")
