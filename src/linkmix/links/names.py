"""Names of classes: a y with names becomes class numbers, and class numbers become names again."""

from collections.abc import Sequence
from numbers import Real

import numpy as np

from linkmix.basics.arrays import Array
from linkmix.links.reading import is_missing

NOT_NAMES = ("", "-1", "nan", "NaN", "None", "<NA>")
"""Texts that NumPy or a file makes of a label that is not known."""
_NAMES_SHOWN = 5


def number_names(y: object, n_rows: int, earlier: Sequence[str] = ()) -> tuple[object, tuple[str, ...]]:
    """Replace names of classes by class numbers, -1 for unknown; a y without names, or without gaps, stays as it is.

    A row of no class keeps its -2.

    Parameters
    ----------
    y : object
        What was given as known labels. None, NaN, the NA of pandas and the number -1 stand for unknown, the number -2
        for a row of no class.
    n_rows : int
        Number of rows of the data.
    earlier : sequence of str
        Names that have their class numbers already.

    Returns
    -------
    y : object
        Class numbers, if there were names.
    names : tuple of str
        The earlier names, then the new ones in alphabetical order: the position is the class number.

    Raises
    ------
    ValueError
        If some labels are unknown, and the others are not names or not one for each row.

    Examples
    --------
    >>> codes, names = number_names(["Grignolino", None, "Barolo"], 3)
    >>> codes, names
    (array([ 1, -1,  0]), ('Barolo', 'Grignolino'))
    >>> number_names(["Barbera", None, "Barolo"], 3, names)
    (array([ 2, -1,  0]), ('Barolo', 'Grignolino', 'Barbera'))
    """
    earlier = tuple(earlier)
    if y is None:
        return None, earlier
    labels = _entries(y)
    if labels.dtype.kind not in "OU":
        return y, earlier
    values = labels.ravel().tolist()
    _check_texts(values)
    numbers = [_number_without_class(value) for value in values]
    unknown = [number is not None for number in numbers]
    known = [value for value, gap in zip(values, unknown, strict=True) if not gap]
    if not any(unknown) or all(isinstance(value, Real) for value in known):
        return labels, earlier
    for place, (value, gap) in enumerate(zip(values, unknown, strict=True)):
        if not gap and not isinstance(value, str):
            other = next((repr(text) for text in known if isinstance(text, str)), None)
            also = f"and another label is {other}" if other else "neither a name nor a class number"
            raise ValueError(
                f"y[{place}] is {value!r} of class {type(value).__name__}, {also}: give names as text, or class numbers"
            )
    if labels.shape != (n_rows,):
        raise ValueError(f"y has shape {labels.shape} for {n_rows} points: give one label for each, None for unknown")
    names = (*earlier, *sorted({str(name) for name in known} - set(earlier)))
    number_of = {name: number for number, name in enumerate(names)}
    codes = [number_of[value] if number is None else number for value, number in zip(values, numbers, strict=True)]
    return np.array(codes, dtype=np.int64), names


def check_names(names: Sequence[str], n_classes: int) -> None:
    """Raise a ValueError if there are more names than classes."""
    if len(names) > n_classes:
        shown = ", ".join(repr(name) for name in names[:_NAMES_SHOWN])
        more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
        raise ValueError(
            f"y names {len(names)} classes, {shown}{more}, for at most {n_classes}: give n_classes={len(names)} or "
            "more, or correct names that are misspelt"
        )


def all_names(names: Sequence[str], n_classes: int) -> Array:
    """Name every class: those without a name by the text of their number, or of the next number that is no name.

    Examples
    --------
    >>> all_names(["Barolo", "Grignolino"], 3).tolist(), all_names(["1", "2"], 4).tolist(), all_names([], 2).tolist()
    (['Barolo', 'Grignolino', '2'], ['1', '2', '3', '4'], [0, 1])
    """
    if not names:
        return np.arange(n_classes)
    every = list(names)
    for number in range(len(names), n_classes):
        while str(number) in every:
            number += 1
        every.append(str(number))
    return np.array(every)


def names_of_labels(classes: Array) -> Array:
    """Names to index by labels, of which -1, for no class, is the last: the text "-1", which cannot name a class.

    Examples
    --------
    >>> names_of_labels(np.array(["Barolo", "Barbera"]))[[1, -1]].tolist()
    ['Barbera', '-1']
    """
    return np.append(classes, "-1")


def _entries(y: object) -> Array:
    """Labels as an array, in which a missing one is not turned into text."""
    if isinstance(y, np.ma.MaskedArray):
        unmasked = np.array(y.data, dtype=object)
        unmasked[np.ma.getmaskarray(y)] = None
        return unmasked
    labels: Array = np.asarray(y)
    if labels.dtype.kind == "T" or (labels.dtype.kind in "US" and not isinstance(y, np.ndarray)):
        return np.asarray(y, dtype=object)
    return labels


def _number_without_class(value: object) -> int | None:
    """-1 for an unknown label, -2 for a row of no class, None for anything else."""
    if is_missing(value):
        return -1
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    return int(value) if is_number and value in (-1, -2) else None


def _check_texts(values: Sequence[object]) -> None:
    for place, value in enumerate(values):
        if isinstance(value, str) and value in NOT_NAMES:
            raise ValueError(
                f"y[{place}] is the text {value!r}, which stands for a missing value rather than a class: write None "
                "for a label that is not known, in a list or an array of objects"
            )
