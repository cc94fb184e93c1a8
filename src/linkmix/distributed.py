"""Fits on a Dask cluster: rows stay on the workers; only linked rows, parameters and sums are transferred.

In each step every worker computes the sums over its own rows, the workers add these sums in groups of eight, and the
total, a few kilobytes, returns to the process that runs EM with the same engine as in memory. If a worker is lost, Dask
recomputes its partitions. If all are lost, the fit waits for others, and says so.
"""

import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence, Set
from functools import partial
from os import PathLike
from pathlib import Path
from socket import gethostname
from typing import Any, TypeVar
from uuid import uuid4

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
from dask.delayed import delayed
from distributed import Client, futures_of, get_client, wait
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted
from tqdm.auto import tqdm

from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.basics.progress import LOG
from linkmix.data.blocks import Door, Source, Survey, Table, label_rows
from linkmix.data.rows import Addable, FreeRows, Rows, added, without
from linkmix.links.checks import LinksLike
from linkmix.mixture import LinkMixture
from linkmix.mixture.fitted import light
from linkmix.search import AutoLinkMixture
from linkmix.tables import read_numbers

BRANCHES = 8
"""Number of sums added in one task."""
PATIENCE = 10.0
"""Seconds without a result after which it is looked whether there are any workers."""

T = TypeVar("T")


Model = TypeVar("Model", LinkMixture, AutoLinkMixture)


def fit(
    model: Model,
    X: Any,
    y: ArrayLike | None = None,
    *,
    links: LinksLike | None = None,
    ids: Iterable[Hashable] | None = None,
    sample_weight: ArrayLike | None = None,
    client: Client | None = None,
    persist: bool = True,
    verbose: bool = False,
) -> Model:
    """Fit a mixture to a dask array or data frame on the workers of a cluster.

    From the same start the result equals that of ``model.fit``. `LinkMixture` draws a start given by name from a sample
    of the rows. `AutoLinkMixture` searches here, on a sample that holds all linked rows, and its winner is then fitted
    to all rows on the cluster.

    Parameters
    ----------
    model : LinkMixture or AutoLinkMixture
        The estimator to fit, as with its own `fit`, except that ``labels_`` becomes a dask array.
    X : dask array or data frame of shape (n_samples, n_features)
        The points. The lengths of the partitions need not be known.
    y : array-like of shape (n_samples,), optional
        Known labels, as in the model's own `fit`: class numbers and -1, or names and None.
    links : Links, or a table of links, optional
        Links between rows of `X`, numbered across all partitions; or a table of ids, with `ids`.
    ids : sequence of shape (n_samples,), optional
        For a table of links: the ids of the rows of `X`, across all partitions. The index of a data frame is not used.
    sample_weight : array-like of shape (n_samples,), optional
        Weight of each point.
    client : distributed.Client, optional
        The cluster; by default the current one.
    persist : bool, default=True
        Whether the workers keep their rows in memory until the fit ends, and the labels after that; each partition is
        then computed once. A worker needs up to twice the memory of its rows, since free rows, scaled by
        `AutoLinkMixture`, may be a copy. Otherwise the workers recompute their rows in each step from the graph of `X`,
        for instance by reading a file.
    verbose : bool, default=False
        Whether to show a progress bar that counts passes over the rows.

    Returns
    -------
    LinkMixture or AutoLinkMixture
        The fitted model.
    """
    steps = model.n_init * (model.max_iter + 1) if isinstance(model, LinkMixture) else None
    with tqdm(total=steps, desc="EM", unit="pass", disable=not verbose) as bar:
        rows = _Collection(X, _client(client), persist, bar)
        return model.fit(rows, y, links=links, ids=ids, sample_weight=sample_weight)


def predict(model: LinkMixture | AutoLinkMixture, X: Any) -> da.Array:
    """Most probable class of each point; links are not used.

    Parameters
    ----------
    model : LinkMixture or AutoLinkMixture
        A fitted model; it need not have been fitted on a cluster.
    X : dask array or data frame of shape (n_samples, n_features)
        Points.

    Returns
    -------
    dask array of shape (n_samples,)
        Class numbers, or names if `y` had names in the fit; the array is lazy.
    """
    check_is_fitted(model)
    return _by_blocks(model, "predict", X, (), model.label_dtype)


def predict_proba(model: LinkMixture | AutoLinkMixture, X: Any) -> da.Array:
    """Probability of each class for each point; links are not used.

    Parameters
    ----------
    model : LinkMixture or AutoLinkMixture
        A fitted model; it need not have been fitted on a cluster.
    X : dask array or data frame of shape (n_samples, n_features)
        Points.

    Returns
    -------
    dask array of shape (n_samples, n_classes)
        Rows sum to one; the array is lazy.
    """
    check_is_fitted(model)
    n_classes = model.n_classes_ if isinstance(model, AutoLinkMixture) else len(model.class_weights_)
    return _by_blocks(model, "predict_proba", X, (n_classes,), np.float64)


def read(files: Iterable[str | PathLike[str]], columns: Sequence[str]) -> da.Array:
    """Points in CSV, TSV or Parquet files as a dask array with a partition for each file, which the workers read.

    Parameters
    ----------
    files : iterable of paths
        The files, in the order of the rows. Each worker must find them under these paths.
    columns : sequence of str
        Columns of numbers, in this order.

    Returns
    -------
    dask array of shape (n_samples, n_features)
        The lengths of the partitions are not known.
    """
    parts = [_task("read", partial(_read, Path(file).absolute(), tuple(columns)), None) for file in files]
    return _array(parts, [np.nan] * len(parts), (len(columns),), np.float64)


def connect(address: str, seconds: float = 10.0) -> Client:
    """Connect to a running scheduler that has workers.

    Parameters
    ----------
    address : str
        Address of the scheduler, such as ``tcp://host:8786``.
    seconds : float, default=10
        How long to wait for it.

    Returns
    -------
    distributed.Client

    Raises
    ------
    ValueError
        If no scheduler answers there, or it has no workers.
    """
    try:
        client = Client(address, timeout=seconds, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(
            f"{address}: no Dask scheduler answers there ({reason}): correct the address, or start one with "
            "'dask scheduler'"
        ) from None
    if not client.nthreads():
        client.close()
        raise ValueError(f"{address}: the Dask scheduler has no workers: start some with 'dask worker {address}'")
    return client


class _Collection(Source):
    """A dask array or data frame."""

    def __init__(self, X: Any, client: Client, persist: bool, bar: Any) -> None:
        self.blocks, self.client, self.persist, self.bar = _blocks(X), client, persist, bar

    def enter(self, door: Door) -> Table:
        """Survey all partitions, on the workers."""
        if self.persist:
            self.blocks = self.client.persist(self.blocks)  # released with this object, at the end of the fit
        tasks = [_task("survey", partial(_survey, door, number), block) for number, block in enumerate(self.blocks)]
        return _Partitions(door, _gathered(self.client, tasks), self)


class _Partitions(Table):
    """Rows on the workers."""

    def __init__(self, door: Door, surveys: list[Survey], of: _Collection) -> None:
        super().__init__(door, surveys)
        self.of = of

    def map(self, function: Callable[..., T], *at: Array) -> list[T]:
        """Apply a function to all partitions at once, on the workers."""
        return _gathered(self.of.client, self._tasks("map", function, *at))

    def free(self, linked: Ints, weights: Floats | None, known: Ints | None) -> FreeRows:
        """Return all rows except the linked ones."""
        parts = []
        for number, block in enumerate(self.of.blocks):
            inside = slice(*self.firsts[number : number + 2])
            own = [None if array is None else array[inside] for array in (weights, known)]
            parts.append(_task("rows", partial(_portions, self.door, *self.cut(number, [linked]), *own), block))
        if self.of.persist:
            parts = self.of.client.persist(parts)
            _wait(self.of.client, futures_of(parts))
        return _FreePartitions(self.of.client, parts, self.of.bar)

    def label(self, function: Callable[[Array], Ints], rows: Ints, values: Ints) -> da.Array:
        """Return the labels as a dask array: on the workers if these have the rows, otherwise lazy."""
        parts = self._tasks("labels", partial(label_rows, function), rows, values)
        if self.of.persist:
            parts = self.of.client.persist(parts)
        lengths = [survey.n_rows for survey in self.surveys]
        return _array(parts, lengths, (), np.int64)

    def named(self, labels: da.Array, names: Array) -> da.Array:
        """Return the names as a dask array, as lazy as the labels are."""
        parts = [_task("names", names.take, part) for part in labels.to_delayed()]
        if self.of.persist:
            parts = self.of.client.persist(parts)
        return _array(parts, list(labels.chunks[0]), (), names.dtype)

    def _tasks(self, name: str, function: Callable[..., Any], *at: Array) -> list[Any]:
        return [
            _task(name, partial(_call, self.door, function, self.cut(number, at)), block)
            for number, block in enumerate(self.of.blocks)
        ]


class _FreePartitions(FreeRows):
    """Free rows on the workers, in portions."""

    def __init__(self, client: Client, parts: list[Any], bar: Any) -> None:
        self.client, self.parts, self.bar = client, parts, bar
        self.futures = futures_of(parts)  # empty unless the rows are kept

    def total(self, function: Callable[[Rows], Addable]) -> Addable | None:
        """Addable over all partitions, added in a tree."""
        while True:
            groups = list(self._groups())
            future = self.client.compute(self._sum(function, groups))
            if _wait(self.client, [future], {home for home, _ in groups if home}):
                break
        total: Addable | None = future.result()
        self.bar.update()
        LOG.debug("a pass over the rows of %d partitions", len(self.parts))
        return total

    def _sum(self, function: Callable[[Rows], Addable], groups: list[tuple[str | None, list[Any]]]) -> Any:
        # The function is part of the graph: scattered data would be lost with a worker.
        now = delayed(function, name=f"linkmix-function-{uuid4().hex}", traverse=False)
        sums = []
        for home, parts in groups:
            with dask.annotate(**({"workers": home, "allow_other_workers": True} if home else {})):  # type: ignore[attr-defined]
                sums.append(_task("sums", _sums, parts, now))  # on the worker that has the rows, if it is still alive
        while len(sums) > 1:
            sums = [_task("add", _add, sums[first : first + BRANCHES]) for first in range(0, len(sums), BRANCHES)]
        return sums[0]

    def _groups(self) -> Iterator[tuple[str | None, list[Any]]]:
        """Partitions that are summed over in one task: those of one thread of a worker, as far as they are there.

        One task for each partition would cost the client and the scheduler about a millisecond each.
        """
        places = self.client.who_has(self.futures) if self.futures else {}
        threads = self.client.nthreads() if self.futures else {}
        at: dict[str, list[Any]] = {}
        for part in self.parts:
            homes = [home for home in places.get(part.key, ()) if home in threads]
            if homes:
                at.setdefault(homes[0], []).append(part)
            else:  # not kept, or lost with its worker
                yield None, [part]
        for home, parts in at.items():
            size = -(-len(parts) // threads[home])
            for first in range(0, len(parts), size):
                yield home, parts[first : first + size]


def _wait(client: Client, futures: list[Any], homes: Set[str] = frozenset()) -> bool:
    """Wait until futures are done, however long that takes; a warning if nobody is there to compute them.

    Returns False if one of the workers that they were to be computed on has died. If all die at once, Dask never hands
    such tasks to those that come after them, though it may: they have to be submitted again.
    """
    warned = False
    while True:
        try:
            with client.as_current():
                wait(futures, timeout=PATIENCE)
            return True
        except TimeoutError:
            alive = set(client.nthreads())
        if not alive and not warned:
            warned, address = True, client.scheduler_info()["address"]
            warnings.warn(
                f"the Dask cluster {address} has lost all of its workers, and the fit waits for others: start some "
                f"with 'dask worker {address}', or interrupt it",
                RuntimeWarning,
                stacklevel=2,
            )
        if alive and homes - alive:
            return False


def _gathered(client: Client, tasks: list[Any]) -> list[Any]:
    futures = client.compute(tasks)
    _wait(client, futures)
    return client.gather(futures)  # type: ignore[no-any-return]


def _client(client: Client | None) -> Client:
    if client is not None:
        return client
    try:
        return get_client()
    except ValueError:
        raise ValueError("there is no Dask cluster: start one with distributed.Client(), or pass client") from None


def _blocks(X: Any) -> list[Any]:
    """Partitions of rows as delayed values."""
    if isinstance(X, dd.DataFrame):
        return list(X.to_delayed())
    if isinstance(X, da.Array) and X.ndim == 2:
        return list((X if X.numblocks[1] == 1 else X.rechunk({1: -1})).to_delayed().ravel())
    raise ValueError(
        f"X is a {type(X).__name__} with shape {getattr(X, 'shape', None)}: give a dask array (n_samples, n_features) "
        "or a dask data frame, or use the methods of the model"
    )


def _array(parts: list[Any], lengths: list[Any], columns: tuple[int, ...], dtype: Any) -> da.Array:
    """Concatenate delayed parts to one array."""
    arrays = [
        da.from_delayed(part, shape=(length, *columns), dtype=dtype)
        for part, length in zip(parts, lengths, strict=True)
    ]
    return da.concatenate(arrays, allow_unknown_chunksizes=True)  # type: ignore[no-any-return]


def _by_blocks(
    model: LinkMixture | AutoLinkMixture, method: str, X: Any, columns: tuple[int, ...], dtype: Any
) -> da.Array:
    """Apply a method of the model to each partition."""
    check_is_fitted(model)
    sent = light(model)
    blocks = _blocks(X)
    lengths = X.chunks[0] if isinstance(X, da.Array) else [np.nan] * len(blocks)
    parts = [_task(method, partial(_apply, sent, method, columns, dtype), block) for block in blocks]
    return _array(parts, lengths, columns, dtype)


def _task(name: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """A delayed call, with a name for the dashboard."""
    return delayed(function, pure=False)(*arguments, dask_key_name=f"linkmix-{name}-{uuid4().hex}")


# The tasks of the workers.


def _read(file: Path, columns: tuple[str, ...], _: None) -> Array:
    try:
        return read_numbers(file, columns)
    except OSError as error:
        raise ValueError(
            f"{file}: a worker on {gethostname()} cannot read it ({error.strerror or error}): put it where all workers "
            "find it under this path, or leave out the cluster"
        ) from None


def _survey(door: Door, number: int, block: Any) -> Survey:
    try:
        return door.survey(block)
    except ValueError as error:
        raise ValueError(f"partition {number} of X, counted from 0: {error}") from error


def _call(door: Door, function: Callable[..., T], at: list[Array], block: Any) -> T:
    return function(door.numbers(block), *at)


def _portions(door: Door, left_out: Ints, weights: Floats | None, known: Ints | None, block: Any) -> list[Rows]:
    return list(without(Rows(door.numbers(block), weights, known), left_out).portions())


def _sums(parts: list[list[Rows]], function: Callable[[Rows], Addable]) -> Addable | None:
    return added(function(portion) for portions in parts for portion in portions)


def _add(sums: list[Addable | None]) -> Addable | None:
    return added(some for some in sums if some is not None)


def _apply(
    model: LinkMixture | AutoLinkMixture, method: str, columns: tuple[int, ...], dtype: Any, block: Any
) -> Array:
    if not len(block):  # data frames may have empty partitions
        return np.empty((0, *columns), dtype=dtype)
    return np.asarray(getattr(model, method)(block))
