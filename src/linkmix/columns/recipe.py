"""From the columns of a table to an array of numbers and codes, the same way for every table."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from linkmix.basics.arrays import Floats
from linkmix.columns.detection import ASKED, Found, detect
from linkmix.columns.kinds import Category
from linkmix.columns.problems import BadColumns, Problem, Unfit, refuse
from linkmix.columns.sources import MISSING, columns_of, read_column
from linkmix.columns.values import Values
from linkmix.columns.wishes import as_asked, read_wishes


@dataclass(frozen=True)
class Column:
    """A column of the user that is used, and what it is taken for."""

    name: str
    kind: Any  # a Kind


@dataclass(frozen=True, eq=False)
class Recipe:
    """How the columns of a table become an array: numbers first, then the codes of categories.

    Called with a table that has these columns, it gives the array, of shape (n_rows, n_features) with NaN for a missing
    value. Other columns of the table are ignored.

    Attributes
    ----------
    columns : tuple of Column
        The columns that are used, in the order of the table, each with its kind.
    left_out : mapping of str to str
        The columns that are not used, each with the reason in a few words.
    remarks : tuple of str
        What was assumed, such as a decimal comma.
    missing : tuple of str
        Texts that stand for a missing value.
    """

    columns: tuple[Column, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    missing: tuple[str, ...] = tuple(sorted(MISSING))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the columns of the array."""
        names = [name for column in self.columns for name in column.kind.names(column.name)]
        return tuple(names[place] for place in self._order)

    @cached_property
    def owners(self) -> tuple[str, ...]:
        """For each column of the array, the column of the user that it comes from."""
        owners = [column.name for column in self.columns for _ in column.kind.levels]
        return tuple(owners[place] for place in self._order)

    @cached_property
    def levels(self) -> tuple[int, ...]:
        """For each column of the array the number of its levels, 0 for a number."""
        return tuple(self._levels[place] for place in self._order)

    @cached_property
    def level_names(self) -> dict[str, tuple[str, ...]]:
        """The texts of the levels of each category, by the name of its column."""
        return {column.name: column.kind.level_names for column in self.columns if isinstance(column.kind, Category)}

    def __call__(self, table: Any, folder: str = "") -> Floats:
        """The array of a table.

        Parameters
        ----------
        table : DataFrame of pandas or polars, Table of pyarrow, or mapping of columns
            A table with the columns of the recipe.
        folder : str
            Folder in which relative paths of pictures begin.

        Returns
        -------
        ndarray of shape (n_rows, n_features)

        Raises
        ------
        BadColumns
            If columns are missing, or their values are not what they were. All of them are named.
        """
        given = columns_of(table)
        wanted = [column.name for column in self.columns]
        lacking = [name for name in wanted if name not in given]
        if lacking:
            has = ", ".join(map(repr, given))
            what = "column" if len(lacking) == 1 else "columns"
            raise BadColumns(
                f"the table has no {what} {', '.join(map(repr, lacking))}: add what is missing (it has {has})",
                [Problem(name, "is missing", "add it") for name in lacking],
            )
        parts, problems = [], []
        for column in self.columns:
            try:
                parts.append(column.kind(read_column(given[column.name], self.missing), folder))
            except Unfit as error:
                problems.append(error.of(column.name))
        refuse(problems)
        check_lengths(wanted, parts)
        return np.ascontiguousarray(np.concatenate(parts, axis=1)[:, self._order])

    @cached_property
    def _levels(self) -> list[int]:
        return [n for column in self.columns for n in column.kind.levels]

    @cached_property
    def _order(self) -> list[int]:
        """Numbers before codes."""
        return sorted(range(len(self._levels)), key=lambda place: self._levels[place] > 0)


def learn(
    table: Any,
    kinds: Mapping[str, str | Sequence[str]] | None = None,
    *,
    missing: Collection[str] = MISSING,
    folder: str = "",
) -> Recipe:
    """Learn from a table what its columns are, and how they become an array.

    Parameters
    ----------
    table : DataFrame of pandas or polars, Table of pyarrow, or mapping of columns
        The table.
    kinds : mapping of str to str, optional
        What columns are to be taken for, one of `KINDS`; a sequence names the levels of an ordered category from low to
        high. The values of all other columns decide.
    missing : collection of str
        Texts that stand for a missing value.
    folder : str
        Folder in which relative paths of pictures begin.

    Returns
    -------
    Recipe

    Raises
    ------
    BadColumns
        If columns cannot be used as they are. All of them are named.

    Examples
    --------
    >>> table = {
    ...     "town": ["Ulm", "Rom", "Ulm", "Rom", None],
    ...     "spent": ["€1,250.00", "€80.00", "€77.50", "", "€12,000.00"],
    ...     "country": ["DE", "DE", "DE", "DE", "DE"],
    ... }
    >>> recipe = learn(table)
    >>> recipe.names, recipe.levels, recipe.level_names
    (('spent', 'town'), (0, 2), {'town': ('Rom', 'Ulm')})
    >>> recipe(table).tolist()
    [[1250.0, 1.0], [80.0, 0.0], [77.5, 1.0], [nan, 0.0], [12000.0, nan]]
    >>> recipe.left_out
    {'country': 'the same value in every row'}
    >>> recipe.remarks
    ("'spent': read with a comma between thousands: '€1,250.00' is 1250", "'spent': read as numbers in €")
    """
    given = columns_of(table)
    wishes = read_wishes(kinds or {}, given)
    columns: list[Column] = []
    reasons: dict[str, str] = {}
    remarks: list[str] = []
    problems: list[Problem] = []
    lengths: dict[str, int] = {}
    for name, column in given.items():
        if name in wishes and wishes[name].kind == "ignore":
            reasons[name] = ASKED
            continue
        try:
            values: Values = read_column(column, missing)
            lengths[name] = len(values)
            found: Found = as_asked(values, wishes[name], folder) if name in wishes else detect(values, folder)
        except Unfit as error:
            problems.append(error.of(name))
            continue
        if found.kind is None:
            reasons[name] = found.reason
        else:
            columns.append(Column(name, found.kind))
        remarks += [f"{name!r}: {remark}" for remark in found.remarks]
    refuse(problems)
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"{name!r} {n}" for name, n in lengths.items())
        raise ValueError(f"columns differ in their number of rows: {said}: give columns of one length")
    if not columns:
        said = ", ".join(f"{name!r} ({reason})" for name, reason in reasons.items())
        raise ValueError(
            f"no column can be used: {said or 'the table has none'}: give other columns, or name their kinds"
        )
    return Recipe(tuple(columns), reasons, tuple(remarks), tuple(sorted(missing)))


def describe(recipe: Recipe) -> list[tuple[str, str]]:
    """The columns that are used and their kinds in words, for reports.

    Parameters
    ----------
    recipe : Recipe
        A recipe.

    Returns
    -------
    list of (str, str)

    Examples
    --------
    >>> describe(learn({"sex": ["f", "m", "f", "m"], "weight": ["70.9 kg", "65 kg", "81 kg", "77 kg"]}))
    [('sex', 'category, 2 levels'), ('weight', 'number, in kg')]
    """
    return [(column.name, column.kind.words) for column in recipe.columns]


def check_lengths(names: Sequence[str], parts: Sequence[Floats]) -> None:
    """Refuse columns of different lengths, which only a mapping can have."""
    if len({len(part) for part in parts}) > 1:
        said = ", ".join(f"{name!r} {len(part)}" for name, part in zip(names, parts, strict=True))
        raise ValueError(f"columns differ in their number of rows: {said}: give columns of one length")
