"""Checks of links and known labels that every estimator makes. An error gives the fact, the value and the remedy."""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from numbers import Real
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from linkmix.basics.arrays import Array, Ints
from linkmix.basics.errors import LinkConflict
from linkmix.links.links import Links
from linkmix.links.reading import as_list, is_missing
from linkmix.links.table import ENDS

NO_LINKS = Links()
NO_CLASS = -2
"""Stands among known labels for a row that belongs to no class."""
LinksLike = Any
"""Links, or a table of them by ids: a data frame of pandas or polars, a table of pyarrow, a mapping of columns."""


def as_links(
    links: LinksLike | None,
    must_link: ArrayLike | None = None,
    cannot_link: ArrayLike | None = None,
    *,
    ids: Iterable[Hashable] | None = None,
    rows: ArrayLike | None = None,
    X: object = None,
) -> Links:
    """Links, however they were given.

    A table of links names the rows by their ``ids``, or by the index of ``X``, if that is a data frame of pandas.
    """
    by_ids = is_table_of_links(links)
    if ids is not None and not by_ids:
        raise ValueError(
            "ids has no effect, since there is no table of links: leave it out, or give links as a table of ids with "
            "the columns a, b and kind"
        )
    if links is not None and (must_link is not None or cannot_link is not None):
        raise ValueError("got links and also must_link or cannot_link: put all of them into links")
    if by_ids:
        return _by_ids(links, ids, rows, X)
    if links is None and must_link is None and cannot_link is None:
        return NO_LINKS
    if links is None:
        return Links(must=() if must_link is None else must_link, cannot=() if cannot_link is None else cannot_link)
    if not isinstance(links, Links):
        raise ValueError(f"links must be a linkmix.Links, got {type(links).__name__}: use {_way_to_links(links)}")
    return links


def is_table_of_links(given: object) -> bool:
    """Whether this may be a table of links: a data frame, or a mapping with the columns of one."""
    if isinstance(given, Mapping):
        return _has_ends(given)
    return hasattr(given, "columns")


def check_y(y: Any, n_rows: int) -> None:
    """Raise an error if y cannot be labels. Complete labels are ignored, so links in their place would be as well."""
    if y is None:
        return
    names = getattr(y, "column_names", getattr(y, "columns", y if isinstance(y, Mapping) else ()))
    if isinstance(y, Links) or _has_ends(names):
        raise ValueError(f"y, the second argument, is for known labels, got {type(y).__name__}: pass it as links=")
    try:
        shape = np.asarray(y).shape
    except ValueError:  # lists of different lengths
        shape = (len(y), 0)
    if shape[:1] != (n_rows,) or shape[1:] not in ((), (1,)):
        raise ValueError(
            f"y has shape {shape} for {n_rows} points: give one label for each, -1 or None for unknown; links are "
            "passed as links="
        )


def check_ids(ids: Iterable[Hashable] | None, n_rows: int) -> None:
    """Raise an error unless there is an id for each row."""
    if ids is not None and (n := len(as_list("ids", ids))) != n_rows:
        raise ValueError(f"ids has {n} entries for {n_rows} points: give the id of each row of X, in their order")


def _has_ends(columns: Iterable[object]) -> bool:
    """Whether two columns have names by which the two ends of links are known."""
    names = {name.lower() for name in columns if isinstance(name, str)}
    return any(set(pair) <= names for pair in ENDS)


def _by_ids(table: Any, ids: Iterable[Hashable] | None, rows: ArrayLike | None, X: object) -> Links:
    """Links of a table by the ids of the rows."""
    index = getattr(X, "index", None) if hasattr(X, "iloc") else None  # of a data frame of pandas
    if ids is None and index is None:
        raise ValueError(
            f"links must be a linkmix.Links, got {type(table).__name__}, and X has no ids: pass these as ids=, or use "
            f"{_way_to_links(table)}"
        )
    if rows is not None:
        raise ValueError(
            "got rows and also a table of links: rows are about row numbers, so give links as "
            "linkmix.Links.from_table(links, ids), with the ids of the whole table"
        )
    if ids is not None:
        return Links.from_table(table, ids)
    names = as_list("the index of X", index)
    if repeated := [name for name, n in Counter(names).items() if n > 1]:
        raise ValueError(
            f"{repeated[0]!r} stands in the index of X more than once, so links cannot name rows by it: give every row "
            "an id of its own, by X.reset_index(drop=True) if row numbers will do, or by ids="
        )
    return Links.from_table(table, names)


def _way_to_links(given: object) -> str:
    """The call that makes links of what was given in their place."""
    if isinstance(given, str | PathLike):
        return "linkmix.tables.read_links(file, ids), with the ids of the rows of X in their order"
    if is_table_of_links(given):
        return (
            "Links.from_table(links) if its columns 'a' and 'b' hold row numbers of X, or "
            "Links.from_table(links, ids=X.index) if they hold the ids in its index"
        )
    return "Links(must=pairs, cannot=pairs)"


def check_links(links: Links, n_rows: int, n_classes: int, rows: ArrayLike | None = None) -> Links:
    """Links between the rows of X, each pair once and free of contradictions.

    ``rows`` are the numbers of the rows of X in the table that the links are about; links to other rows are left out.
    """
    if rows is not None:
        numbers = np.asarray(rows)
        if numbers.shape != (n_rows,):
            raise ValueError(f"rows has shape {numbers.shape} for {n_rows} points: give the number of each row of X")
        if numbers.dtype.kind == "b":
            raise ValueError("rows holds bool, a mask: give the number of each row of X")
        links = links.restrict(numbers)
    if links.empty:
        return links
    links.check_rows(n_rows)
    links.check_consistent()
    if n_classes == 1 and links.n_cannot:
        raise ValueError(f"{links.n_cannot} cannot-links need at least two classes, got n_classes=1: raise n_classes")
    return links.distinct()


def apart_from_noise(y: object, n_rows: int, links: Links) -> tuple[object, Array | None]:
    """Known labels with -1 in place of -2, and which rows belong to no class: those of -2, and what must link to them.

    Parameters
    ----------
    y : object
        What was given as known labels, names replaced by numbers.
    n_rows : int
        Number of rows of the data.
    links : Links
        Consistent links between the rows.

    Returns
    -------
    y : object
        Class numbers from 0, and -1 for unknown.
    noise : ndarray of bool, shape (n_rows,), or None
        None if no row is known to belong to no class.

    Raises
    ------
    LinkConflict
        If a row of no class must link with one of a known class.

    Examples
    --------
    >>> known, noise = apart_from_noise([0, -1, -2, -1], 4, Links(must=[(1, 2)]))
    >>> known.tolist(), noise.tolist()
    ([0, -1, -1, -1], [False, True, True, False])
    """
    if y is None:
        return y, None
    labels: Array = np.asarray(y)
    is_noise = np.asarray(labels == NO_CLASS)
    if labels.shape != (n_rows,) or labels.dtype.kind not in "Oif" or not is_noise.any():
        return y, None
    known = np.where(is_noise, -1, labels)
    group = links.chunklets(n_rows)
    together = np.isin(group, group[is_noise])
    clash = np.flatnonzero(together & np.asarray(known != -1))
    if len(clash):
        other = int(np.flatnonzero(is_noise & (group == group[clash[0]]))[0])
        raise LinkConflict(
            f"y[{clash[0]}] is {known[clash[0]]} and y[{other}] is -2, no class, but must-links hold the two rows "
            "together: correct one of these labels, or drop a must-link between them"
        )
    return known, together


def check_bound(links: Links, n_rows: int) -> None:
    """Raise an error if links that an estimator brings along name a row that X does not have."""
    try:
        links.check_rows(n_rows)
    except ValueError as error:
        raise ValueError(
            f"{error}; these are the links that the estimator was made with, about the rows of a whole table: if X is "
            "a part of it, as in cross-validation, pass the numbers of its rows as rows= to fit"
        ) from None


def check_known_labels(y: object, n_rows: int, n_classes: int, links: Links) -> Ints | None:
    """Class numbers of the rows whose class is known, -1 for the others; None when y holds no -1, or nothing else.

    scikit-learn passes true labels to clusterers, which ignore them; so only a y that marks some labels as unknown
    counts as known labels.
    """
    if y is None:
        return None
    known = np.asarray(y)
    if known.dtype.kind == "O":  # numbers as objects; labels of any other kind are true labels, not known ones
        numbers = [isinstance(value, Real) for value in known.ravel()]
        missing = [is_missing(value) for value in known.ravel()]
        if not all(number or gap for number, gap in zip(numbers, missing, strict=True)):
            return None
        known = np.array([np.nan if gap else value for value, gap in zip(known.ravel(), missing, strict=True)]).reshape(
            known.shape
        )
    if known.dtype.kind == "f" and np.isnan(known).any():
        place = int(np.flatnonzero(np.isnan(known.ravel()))[0])
        raise ValueError(f"y[{place}] is missing: write -1 for a label that is not known")
    if known.dtype.kind not in "iuf" or not np.any(known == -1):
        return None
    if known.shape != (n_rows,):
        raise ValueError(f"y has shape {known.shape} for {n_rows} points: give one label for each, -1 for unknown")
    values = np.where(np.isfinite(known), known, -2.0).astype(np.int64)
    wrong = np.flatnonzero((values != known) | (values < -1) | (values >= n_classes))
    if len(wrong):
        raise ValueError(
            f"y[{wrong[0]}] is {known[wrong[0]]}: known labels are class numbers from 0 to {n_classes - 1}, "
            "and -1 for unknown; -2, for a row of no class, is for an estimator with noise"
        )
    try:
        links.union(Links.from_labels(values)).check_consistent()
    except LinkConflict as error:
        raise LinkConflict(f"the links contradict the known labels, which link rows as well: {error}") from None
    return values if np.any(values >= 0) else None
