"""Methods side by side: every method on every data set with every number of links, several times."""

import json
import os
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed
from joblib import hash as joblib_hash
from numpy.typing import ArrayLike
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from linkmix.arrays import Array
from linkmix.links import Links
from linkmix.metrics import links_satisfied, purity
from linkmix.rivals import METHODS, Method

if TYPE_CHECKING:
    import pandas as pd

KEY = ("data", "method", "n_links", "seed")
"""What names one run, together with a hash of its data."""
SCORES = ("purity", "ari", "links_satisfied", "purity_predict", "ari_predict", "seconds", "peak_mb", "error")


def compare(
    data: Mapping[str, tuple[ArrayLike, ArrayLike]],
    methods: Iterable[str] | None = None,
    *,
    n_links: Sequence[int] = (0, 10, 25, 50, 100),
    seeds: Iterable[int] = range(10),
    n_jobs: int = 1,
    journal: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> "pd.DataFrame":
    """Run methods on data with random links drawn from the truth, and score them.

    Links are drawn as in the paper: random pairs of points, must-link if their true classes agree. All methods get the
    same links in a seed, as far as they can use them, and the true number of classes.

    Parameters
    ----------
    data : mapping of name to (X, y)
        Points and their true classes.
    methods : iterable of str, optional
        Names from `linkmix.rivals.METHODS`; all of them by default.
    n_links : sequence of int
        Numbers of links.
    seeds : iterable of int
        A run for each of them: the seed decides links and start.
    n_jobs : int, default=1
        Number of processes, each with one thread for linear algebra.
    journal : path, optional
        A file that gets a line of JSON for each run as it ends. Runs on the same data that are in it already are not
        made again, unless they failed, so that a comparison that was stopped goes on where it was.
    progress : bool, default=True
        Whether to show a progress bar, if the package tqdm is there.

    Returns
    -------
    pandas.DataFrame
        One row for each run: ``data``, ``method``, ``n_links``, ``seed``; ``purity`` and ``ari`` of ``labels_``, and of
        ``predict`` where the method has one (``purity_predict``, ``ari_predict``); ``links_satisfied`` by ``labels_``;
        ``seconds``; ``peak_mb``, the memory that the run took at most (on Linux, else missing); and ``error``, the
        reason why a run failed.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from linkmix import compare
    >>> table = compare({"iris": load_iris(return_X_y=True)}, ["gmm", "paper"], n_links=[0, 20], seeds=range(2))
    >>> table.groupby(["method", "n_links"]).size().to_dict()
    {('gmm', 0): 2, ('gmm', 20): 2, ('paper', 0): 2, ('paper', 20): 2}
    """
    import pandas as pd

    chosen = list(METHODS if methods is None else methods)
    for name in chosen:
        if name not in METHODS:
            raise ValueError(f"method {name!r} is not known: choose from {', '.join(METHODS)}")
    arrays = {name: (np.asarray(X), np.asarray(y)) for name, (X, y) in data.items()}
    for name, (X, y) in arrays.items():
        if len(X) != len(y):
            raise ValueError(f"data {name!r} has {len(X)} points and {len(y)} labels: give one label for each point")
    hashes = {name: joblib_hash(pair) for name, pair in arrays.items()}
    runs = [
        {"data": name, "method": method, "n_links": int(n), "seed": int(seed), "hash": hashes[name]}
        for name, method, n, seed in product(arrays, chosen, n_links, list(seeds))
    ]
    path = None if journal is None else Path(journal)
    if path is not None and not path.parent.is_dir():
        raise ValueError(f"journal {str(path)!r} is in a folder that is not there: make the folder first")
    done = {} if path is None else _read_journal(path)
    missing = [run for run in runs if _key(run) not in done]
    jobs = (delayed(_run)(run, METHODS[run["method"]], *arrays[run["data"]]) for run in missing)
    results = Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)(jobs)
    for row in _with_progress(results, len(missing), progress):
        done[_key(row)] = row
        if path is not None:
            _append(path, row)
    return pd.DataFrame([done[_key(run)] for run in runs], columns=[*KEY, *SCORES])


def _run(run: dict[str, Any], method: Method, X: Array, y: Array) -> dict[str, Any]:
    """One run as a row of the table. A failure is a row with the reason."""
    try:
        return run | _scores(run, method, X, y)
    except Exception as error:  # whatever stops one method must not stop the others
        return run | {"error": f"{type(error).__name__}: {error}"}


def _scores(run: dict[str, Any], method: Method, X: Array, y: Array) -> dict[str, Any]:
    row: dict[str, Any] = {}
    links = Links.from_labels(y, run["n_links"], random_state=run["seed"])
    model = method.make(n_classes=len(np.unique(y)), random_state=run["seed"])
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fit that has not converged is scored as it is
        before = _forget_peak()
        start = time.perf_counter()
        model.fit(X, links=method.usable(links))
        row["seconds"] = time.perf_counter() - start
        row["peak_mb"] = _peak() - before
    row["purity"] = purity(y, model.labels_)
    row["ari"] = float(adjusted_rand_score(y, model.labels_))
    row["links_satisfied"] = links_satisfied(model.labels_, links)
    if hasattr(model, "predict"):
        predicted = model.predict(X)
        row["purity_predict"] = purity(y, predicted)
        row["ari_predict"] = float(adjusted_rand_score(y, predicted))
    return row


def _key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return (*(row[name] for name in KEY), row["hash"])


def _read_journal(path: Path) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Finished runs. A last line that was cut off is forgotten; its run is made again."""
    rows = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            row = json.loads(line)
            if "error" not in row:
                rows[_key(row)] = row
        except (json.JSONDecodeError, KeyError, TypeError):
            continue
    return rows


def _append(path: Path, row: dict[str, Any]) -> None:
    """Add a line and see it on the disk. A line that was cut off before gets an end first."""
    with path.open("a+b") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                file.write(b"\n")
        file.write(json.dumps(row).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def _with_progress(results: Iterable[dict[str, Any]], total: int, show: bool) -> Iterator[dict[str, Any]]:
    if show:
        try:
            from tqdm.auto import tqdm
        except ImportError:
            pass
        else:
            results = tqdm(results, total=total, desc="compare", unit="run")
    yield from results


def _forget_peak() -> float:
    """Start to measure the peak of this process's memory anew; its present size in megabytes."""
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
