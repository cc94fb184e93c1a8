"""What is wrong with the columns of a table: all of it in one error."""

from collections.abc import Iterable
from dataclasses import dataclass

SHOWN = 10
"""Number of values that a message shows."""
_LONGEST = 40


@dataclass(frozen=True)
class Problem:
    """What keeps a column from being used.

    Attributes
    ----------
    column : str
        Name of the column.
    fact : str
        What is wrong.
    remedy : str
        What to do about it.
    examples : tuple of (str, int)
        Some of the values that are wrong, each with the first row that holds it, counted from 0.

    Examples
    --------
    >>> str(Problem("age", "2 of 90 values are not numbers", "correct them", (("?", 4), ("old", 7))))
    "column 'age': 2 of 90 values are not numbers: '?' (row 4), 'old' (row 7): correct them"
    """

    column: str
    fact: str
    remedy: str
    examples: tuple[tuple[str, int], ...] = ()

    def __str__(self) -> str:
        """Fact, values and remedy."""
        shown = ", ".join(f"{shortened(value)} (row {row})" for value, row in self.examples[:SHOWN])
        return f"column {self.column!r}: {self.fact}{': ' if shown else ''}{shown}: {self.remedy}"


class BadColumns(ValueError):
    """Columns of a table cannot be used.

    Parameters
    ----------
    message : str
        All problems in words.
    problems : iterable of Problem
        The problems, for those who know more about the table, such as lines of a file.
    """

    # The second argument has a default, so that the error can be pickled and sent to another process.
    def __init__(self, message: str, problems: Iterable[Problem] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)


class Unfit(Exception):
    """The values of a column do not fit its kind: a problem of a column whose name is not known here."""

    def __init__(self, fact: str, remedy: str, examples: Iterable[tuple[str, int]] = ()) -> None:
        super().__init__(fact)
        self.fact, self.remedy, self.examples = fact, remedy, tuple(examples)

    def of(self, column: str) -> Problem:
        """The problem of a column."""
        return Problem(column, self.fact, self.remedy, self.examples)


def refuse(problems: Iterable[Problem]) -> None:
    """Raise one error for all problems, if there are any."""
    found = tuple(problems)
    if len(found) == 1:
        raise BadColumns(str(found[0]), found)
    if found:
        lines = "".join(f"\n- {problem}" for problem in found)
        raise BadColumns(f"{len(found)} columns cannot be used:{lines}", found)


def shortened(value: str) -> str:
    """A value in quotes, cut if it is long."""
    return repr(value if len(value) <= _LONGEST else value[: _LONGEST - 3] + "...")
