"""Errors about files, links and clusters. Every error about input is a ValueError."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["BadFile", "Conflict", "DegenerateCluster", "InfeasibleLinks", "LinkConflict"]

MISTAKES_TOLD = 10
"""Mistakes of a file that one error tells."""
_ROWS_SHOWN = 5


@dataclass(frozen=True)
class Conflict:
    """A cannot-link between two rows that a chain of must-links holds together.

    Attributes
    ----------
    cannot : tuple of two ints
        The rows of the cannot-link.
    chain : tuple of ints
        The rows of a shortest chain of must-links between them, both ends included.

    Examples
    --------
    >>> str(Conflict(cannot=(4, 9), chain=(4, 7, 9)))
    'rows 4 and 9 must link (through 7) and cannot link: drop one of these 3 links'
    """

    cannot: tuple[int, int]
    chain: tuple[int, ...]

    def __str__(self) -> str:
        """Say which rows clash, through which others, and how to fix it."""
        between = self.chain[1:-1]
        through = ", ".join(map(str, between[:_ROWS_SHOWN]))
        if len(between) > _ROWS_SHOWN:
            through += f" and {len(between) - _ROWS_SHOWN} more"
        a, b = self.cannot
        must = f"must link (through {through})" if between else "must link"
        # A chain of r rows has r - 1 must-links; with the cannot-link that makes r.
        return f"rows {a} and {b} {must} and cannot link: drop one of these {len(self.chain)} links"


class LinkConflict(ValueError):
    """Two rows must link and cannot link.

    Parameters
    ----------
    message : str
        Which rows clash, and how to fix it.
    conflicts : iterable of Conflict
        The conflicts that the message names. ``Links.conflicts()`` gives all of them.
    """

    # The second argument has a default, so that the error can be pickled and sent to another process.
    def __init__(self, message: str, conflicts: Iterable[Conflict] = ()) -> None:
        super().__init__(message)
        self.conflicts = tuple(conflicts)


class InfeasibleLinks(ValueError):
    """No labelling with this many classes meets all links, though no two of them clash.

    The smallest case is three rows with cannot-links between all of them, and two classes.

    Parameters
    ----------
    message : str
        Which links cannot be met, and how to fix it.
    links : Links or None
        The links that cannot be met together.
    """

    def __init__(self, message: str, links: Any = None) -> None:
        super().__init__(message)
        self.links = links


class DegenerateCluster(ValueError):
    """A cluster lost its support, or its covariance is singular."""


class BadFile(ValueError):
    """A file cannot be read.

    Parameters
    ----------
    path : path
        The file.
    problem : str
        What is wrong, and how to fix it.
    line : int or None
        Line of the file, counted from 1.
    column : str or None
        Name of the column.
    others : sequence of BadFile
        More that is wrong with it.
    n_more : int
        Number of mistakes that are not among these.

    Examples
    --------
    >>> str(BadFile("points.csv", "'tall' is not a number: correct it", line=7, column="height"))
    "points.csv, line 7, column 'height': 'tall' is not a number: correct it"
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        problem: str,
        line: int | None = None,
        column: str | None = None,
        others: "Sequence[BadFile]" = (),
        n_more: int = 0,
    ) -> None:
        super().__init__(path, problem, line, column, others, n_more)
        self.path = path
        self.problem = problem
        self.line = line
        self.column = column
        self.others = tuple(others)
        self.n_more = n_more

    @classmethod
    def gathered(cls, mistakes: "Sequence[BadFile]", n_more: int = 0) -> "BadFile":
        """All mistakes of a file as one error, of which the first ten are told.

        Parameters
        ----------
        mistakes : sequence of BadFile
            At least one.
        n_more : int
            Number of mistakes besides these.

        Returns
        -------
        BadFile

        Examples
        --------
        >>> mistakes = [BadFile("points.csv", "the id is empty", line) for line in range(3, 20)]
        >>> print(BadFile.gathered(mistakes))
        points.csv, line 3: the id is empty
        ...
        points.csv, line 12: the id is empty
        and 7 more
        """
        first, *others = mistakes
        told = others[: MISTAKES_TOLD - 1]
        n_more += len(others) - len(told) + first.n_more
        return cls(first.path, first.problem, first.line, first.column, told, n_more)

    def __str__(self) -> str:
        """Say where, what and how to fix it."""
        line = "" if self.line is None else f", line {self.line}"
        column = "" if self.column is None else f", column {self.column!r}"
        lines = [f"{os.fspath(self.path)}{line}{column}: {self.problem}", *map(str, self.others)]
        return "\n".join([*lines, f"and {self.n_more:,} more"] if self.n_more else lines)
