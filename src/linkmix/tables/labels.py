"""Labels in files."""

import os
from pathlib import Path

import numpy as np

from linkmix.arrays import Array, Floats, Ints
from linkmix.files import aside
from linkmix.tables.text import Ids, quoted

DIGITS = 6
"""Digits of a probability after the point."""


def write_labels(
    path: str | os.PathLike[str],
    ids: Ids,
    labels: Ints,
    probabilities: Floats | None = None,
    *,
    id_name: str = "id",
) -> None:
    """Write labels as a CSV file: id, label, the confidence in it, and the probability of each class.

    Parameters
    ----------
    path : path
        Where; a file of this name is replaced.
    ids : sequence of str
        Ids of the points.
    labels : ndarray of shape (n_samples,)
        Class numbers.
    probabilities : ndarray of shape (n_samples, n_classes), optional
        Probability of each class. The confidence is that of the label. Without them there are two columns.
    id_name : str, default="id"
        Name of the first column.

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

    classes = np.asarray(labels, dtype=np.int64)
    columns: dict[str, Array] = {"label": classes}
    if probabilities is not None:
        rounded = np.round(probabilities, DIGITS)
        columns["confidence"] = np.take_along_axis(rounded, classes[:, None], axis=1)[:, 0]
        columns |= {f"probability_{m}": rounded[:, m] for m in range(rounded.shape[1])}
    # Arrow puts quotes around all texts or around none.
    plain = all(quoted(value) == value for value in ids)
    table = pa.table({"id": pa.array(ids, pa.string()), **columns})
    options = csv.WriteOptions(include_header=False, quoting_style="none" if plain else "needed")
    names = [quoted(id_name), *columns]
    with aside(Path(path)) as place, place.open("wb") as file:
        file.write((",".join(names) + "\n").encode())
        csv.write_csv(table, file, options)
