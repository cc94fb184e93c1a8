"""The first line of a text file: names of columns, or a row of numbers in a file without names."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from linkmix.tables.text import as_number, check_names, listed, records


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
    """

    path: Path
    first: tuple[str, ...]
    line: int
    is_data: bool
    is_sure: bool

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return _numbered(len(self.first)) if self.is_data else list(self.first)

    @property
    def may_be_data(self) -> bool:
        """Whether all of the first record are numbers."""
        return all_numbers(self.first)

    @property
    def remark(self) -> str | None:
        """What was assumed, for the user."""
        if self.is_data:
            called = f"columns are called column1 to column{len(self.first)}"
            called = "its column is called column1" if len(self.first) == 1 else called
            return (
                f"the first line of {self.path.name} holds only numbers, so it is the first row of data, and the file "
                f"has no header; {called}"
            )
        if self.is_sure:
            return None
        numbers = listed([name for name in self.first if _is_number(name)], 3)
        return (
            f"the first line of {self.path.name} was read as the names of the columns, though it has numbers "
            f"({numbers}): if it is a row of data, add a line of names above it"
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

    def check(self) -> "Header":
        """Refuse columns without a name of their own."""
        if not self.is_data:
            check_names(self.path, self.first, self.line)
        return self


def read_header(path: Path, separator: str) -> Header:
    """Look at the first record of a file.

    It is a row of data if all of it are numbers, unless these go up in equal steps: then they are names, such as
    0, 1, 2 from pandas, years or wavelengths.
    """
    line, first = next(records(path, separator))
    is_data = all_numbers(first) and not goes_up_evenly(first)
    numbers = [float(value) for value in first if _is_number(value)]
    is_plain = len(numbers) < 2 or (len(numbers) < len(first) and all(a < b for a, b in pairwise(numbers)))
    return Header(path, tuple(first), line, is_data, not is_data and is_plain)


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
