"""The first line of a text file: names of columns, or a row of a file without names."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice, pairwise
from pathlib import Path

from linkmix.tables.files import TextFile
from linkmix.tables.text import as_number, listed, own_names, records

COMPARED = 1000
"""Lines that the first one is compared with."""


@dataclass(frozen=True)
class Header:
    """What the first record of a text file was taken for.

    Attributes
    ----------
    path : Path
        The file.
    first : tuple of str
        The first record.
    line : int
        Its line, from 1.
    is_data : bool
        Whether it is a row like all others, so that columns are called column1, column2 and so on.
    is_sure : bool
        Whether there is nothing to say about it.
    may_be_data : bool
        Whether it could be read as a row, since it is like those below it or all of it are numbers.
    """

    path: Path
    first: tuple[str, ...]
    line: int
    is_data: bool
    is_sure: bool
    may_be_data: bool

    @cached_property
    def _own(self) -> tuple[list[str], tuple[str, ...]]:
        return own_names(self.path, self.first)

    @property
    def names(self) -> list[str]:
        """Names of the columns, all different."""
        return _numbered(len(self.first)) if self.is_data else self._own[0]

    @property
    def remarks(self) -> tuple[str, ...]:
        """What was assumed, for the user."""
        if self.is_data:
            called = f"columns are called column1 to column{len(self.first)}"
            called = "its column is called column1" if len(self.first) == 1 else called
            why = "holds only numbers" if all_numbers(self.first) else "is like the lines below it"
            return (
                f"the first line of {self.path.name} {why}, so it is the first row of data, and the file has no "
                f"header; {called}",
            )
        if self.is_sure:
            return self._own[1]
        numbers = listed([name for name in self.first if _is_number(name)], 3)
        return (
            f"the first line of {self.path.name} was read as the names of the columns, though it has numbers "
            f"({numbers}): if it is a row of data, add a line of names above it",
            *self._own[1],
        )

    def meet(self, wanted: Collection[str]) -> "Header":
        """The same header, read so that columns of some names are found, if it can be read in both ways."""
        if not wanted or not self.may_be_data:
            return self
        if set(wanted) <= set(self.first) and len(set(self.first)) == len(self.first):
            return replace(self, is_data=False, is_sure=True)
        if set(wanted) <= set(_numbered(len(self.first))):
            return self.as_data()
        return self

    def as_data(self) -> "Header":
        """The same record as a row of data."""
        return replace(self, is_data=True, is_sure=False)


def read_header(file: TextFile, separator: str) -> Header:
    """Look at the first record of a file, and at those below it.

    It is a row of data if all of it are numbers, unless these go up in equal steps: then they are names, such as
    0, 1, 2 from pandas, years or wavelengths. With words in it, it is a row of data if the lines below have numbers
    where it has some, and words where it has words, and if its numbers do not go up or one of its words comes again in
    the same column.
    """
    found = records(file, separator)
    line, first = next(found)
    if all_numbers(first):
        is_data, may_be_data = not goes_up_evenly(first), True
    else:
        try:
            below = [record for _, record in islice(found, COMPARED) if len(record) == len(first)]
        except ValueError:  # a mistake further down is said when the file is read
            below = []
        is_data = may_be_data = is_like(first, below)
    numbers = [float(value) for value in first if _is_number(value)]
    is_plain = len(numbers) < 2 or (len(numbers) < len(first) and all(a < b for a, b in pairwise(numbers)))
    return Header(file.path, tuple(first), line, is_data, not is_data and is_plain, may_be_data)


def is_like(first: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """Whether a record with words is a row like those below it, and not their names.

    Examples
    --------
    >>> below = [["4.9", "3.1", "setosa"], ["7", "3.2", "versicolor"]]
    >>> is_like(["5.1", "3.5", "setosa"], below), is_like(["1990", "2000", "species"], below)
    (True, False)
    >>> is_like(["x", "3.5", "setosa"], below)
    False
    """
    if list(first) in map(list, below):  # names that are repeated, as in files that were put together
        return False
    numbers, comes_again = [], False
    for value, column in zip(first, zip(*below, strict=True), strict=False):
        filled = [other for other in column if as_number(other) is None or _is_number(other)]
        if not filled or (as_number(value) is not None and not _is_number(value)):
            continue
        has_numbers = all(map(_is_number, filled))
        if _is_number(value) != has_numbers:
            return False
        if has_numbers:
            numbers.append(float(value))
        else:
            comes_again = comes_again or value in filled
    goes_up = all(a < b for a, b in pairwise(numbers)) if len(numbers) > 1 else numbers == [0.0]
    return comes_again or (bool(numbers) and not goes_up)


def all_numbers(record: Sequence[str]) -> bool:
    """Whether all values of a record are numbers or missing, and some are numbers.

    Examples
    --------
    >>> all_numbers(["5.1", "", "-3e2"]), all_numbers(["5.1", "setosa"]), all_numbers(["", "NA"])
    (True, False, False)
    """
    return all(as_number(value) is not None for value in record) and any(_is_number(value) for value in record)


def goes_up_evenly(record: Sequence[str]) -> bool:
    """Whether the numbers of a record are names rather than values: 0, 1 or 1, 2, or more with equal steps.

    Examples
    --------
    >>> [goes_up_evenly(line.split()) for line in ("0 1 2 3", "1990 2000 2010", "1 2", "4 5", "5.1 3.5 1.4 0.2")]
    [True, True, True, False, False]
    """
    if not all(_is_number(value) for value in record):
        return False
    numbers = [float(value) for value in record]
    if len(numbers) < 3:
        return numbers in ([0, 1], [1, 2])
    step = (numbers[-1] - numbers[0]) / (len(numbers) - 1)
    return step > 0 and all(abs(n - numbers[0] - i * step) <= 1e-6 * step for i, n in enumerate(numbers))


def _is_number(value: str) -> bool:
    number = as_number(value)
    return number is not None and number == number


def _numbered(n_columns: int) -> list[str]:
    return [f"column{place}" for place in range(1, n_columns + 1)]
