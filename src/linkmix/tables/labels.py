"""Labels in files."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.basics.files import aside
from linkmix.tables.cells import guarded, guarded_column
from linkmix.tables.ids import BLOCK, IdColumn, Ids
from linkmix.tables.text import SPECIAL, quoted

if TYPE_CHECKING:
    import pyarrow as pa

DIGITS = 6
"""Decimals of a probability."""


def write_labels(
    path: str | os.PathLike[str],
    ids: Ids,
    labels: Ints,
    probabilities: Floats | None = None,
    *,
    noise: Floats | None = None,
    names: Sequence[str] = (),
    id_name: str = "id",
    raw: bool = False,
) -> None:
    """Write labels as a CSV file: id, label, the confidence in it, and the probability of each class.

    Parameters
    ----------
    path : path
        The file; one of this name is replaced.
    ids : sequence of str
        Ids of the points.
    labels : ndarray of shape (n_samples,)
        Class numbers, -1 for no class.
    probabilities : ndarray of shape (n_samples, n_classes), optional
        Probability of each class; the confidence is the probability of the label. Without them there are two columns.
    noise : ndarray of shape (n_samples,), optional
        Probability that a point belongs to no class: one more column, the last. The probabilities of the classes are
        then those of a point that has one, and the confidence in a label is the probability of the label all the same.
    names : sequence of str
        Name of each class, if they have names: these are then the labels. That of no class is -1.
    id_name : str, default="id"
        Name of the first column.
    raw : bool, default=False
        Whether to write texts as they are, also those that a spreadsheet would run; see `linkmix.tables.cells`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> file = Path(tempfile.mkdtemp()) / "labels.csv"
    >>> write_labels(file, ["007", "1e5"], np.array([1, 0]), np.array([[0.25, 0.75], [0.9, 0.1]]))
    >>> print(file.read_text())
    id,label,confidence,probability_0,probability_1
    007,1,0.75,0.25,0.75
    1e5,0,0.9,0.9,0.1
    <BLANKLINE>
    """
    import pyarrow as pa
    from pyarrow import csv

    header = [id_name, *label_names(probabilities, noise, names)]
    header = [quoted(name if raw else guarded(name)) for name in header]
    names = names if raw else [guarded(name) for name in names]
    starts = range(0, len(labels), BLOCK)
    # Arrow puts quotes around all texts or around none.
    plain = all(_is_plain(_cut(ids, first)) for first in starts) and all(quoted(name) == name for name in names)
    options = csv.WriteOptions(include_header=False, quoting_style="none" if plain else "needed")
    with aside(Path(path)) as place, place.open("wb") as file:
        file.write((",".join(header) + "\n").encode())
        for first in starts:
            columns = label_columns(labels, probabilities, noise, names, first)
            cells = _cut(ids, first) if raw else guarded_column(_cut(ids, first))
            csv.write_csv(pa.table([cells, *columns], header), file, options)


def label_names(probabilities: Floats | None, noise: Floats | None, names: Sequence[str] = ()) -> list[str]:
    """Names of the columns that say which class a point is in."""
    found = ["label"]
    if probabilities is not None:
        found += ["confidence", *(f"probability_{name}" for name in names or range(probabilities.shape[1]))]
    return found if noise is None else [*found, "noise"]


def label_columns(
    labels: Ints, probabilities: Floats | None, noise: Floats | None, names: Sequence[str], first: int
) -> list[Array]:
    """These columns, for a block of points that begins at a row."""
    classes = np.asarray(labels[first : first + BLOCK], dtype=np.int64)
    columns: list[Array] = [np.array([*names, "-1"], dtype=object)[classes] if names else classes]
    if probabilities is not None:
        exact = np.asarray(probabilities[first : first + BLOCK])
        sure = np.take_along_axis(exact, np.maximum(classes, 0)[:, None], axis=1)[:, 0]
        if noise is not None:
            of_none = np.asarray(noise[first : first + BLOCK])
            sure = np.where(classes < 0, of_none, sure * (1 - of_none))
        columns += [np.round(sure, DIGITS), *np.round(exact, DIGITS).T]
    if noise is not None:
        columns.append(np.round(noise[first : first + BLOCK], DIGITS))
    return columns


def _cut(ids: Ids, first: int) -> "pa.ChunkedArray":
    import pyarrow as pa

    if isinstance(ids, IdColumn):
        return ids.cut(first, first + BLOCK)
    return pa.chunked_array([pa.array(ids[first : first + BLOCK], pa.string())])


def _is_plain(column: "pa.ChunkedArray") -> bool:
    """Whether `quoted` would leave all texts as they are."""
    import pyarrow.compute as pc

    special = pc.or_(pc.match_substring_regex(column, SPECIAL), pc.not_equal(pc.utf8_trim_whitespace(column), column))
    return not pc.any(special).as_py()
