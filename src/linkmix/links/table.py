"""Tables of links in memory: columns in, columns out, and what a kind, a confidence and "chosen" may be.

This is the one place where these are parsed, for tables and for files.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from linkmix.basics.arrays import Ints
from linkmix.links.pairs import first_true
from linkmix.links.reading import LARGEST_ROW, as_list, check_hashable, is_confidence, is_missing

if TYPE_CHECKING:
    from linkmix.links.links import Links

T = TypeVar("T")

NEEDED = ("a", "b", "kind")
"""Columns that a table or file of links must have."""
COLUMNS = (*NEEDED, "confidence", "annotator", "chosen")
"""All columns that say something about a link."""
ENDS = (
    *(("a", "b"), ("id_a", "id_b"), ("id1", "id2"), ("id_1", "id_2"), ("left", "right"), ("left_id", "right_id")),
    *(("id_left", "id_right"), ("id_l", "id_r"), ("unique_id_l", "unique_id_r"), ("source", "target"), ("from", "to")),
)
"""Names that the two columns of ids may have."""
KIND = ("kind", "link", "same", "match", "is_match", "answer", "relation", "type", "label")
"""Names that the column of kinds may have."""
KINDS = {
    **dict.fromkeys(("must", "must-link", "same", "match", "yes", "true", "1", 1), True),
    **dict.fromkeys(("cannot", "cannot-link", "different", "distinct", "no", "false", "0", 0, "-1", -1), False),
}
"""What may stand for a kind of link, and whether it is a must-link."""
YES_NO = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
"""What may stand for whether a link was chosen."""
IDS_SHOWN = 10
"""Ids that no row has of which an error shows at most this many."""


def parse_kind(given: object) -> bool:
    """Tell whether a kind of link is a must-link.

    Examples
    --------
    >>> parse_kind("Must"), parse_kind(-1), parse_kind("no")
    (True, False, False)
    >>> parse_kind("maybe")
    Traceback (most recent call last):
    ValueError: 'maybe' is not a kind of link: use 'must' or 'cannot'
    """
    kind = given.strip().lower() if isinstance(given, str) else given
    is_must = KINDS.get(kind) if isinstance(kind, str | Real) else None  # some other types cannot be compared
    if is_must is None:
        raise ValueError(f"{given!r} is not a kind of link: use 'must' or 'cannot'")
    return is_must


def name_columns(present: Sequence[str]) -> dict[str, str]:
    """Tell which column is ``a``, which ``b`` and which ``kind``; upper and lower case are alike.

    Parameters
    ----------
    present : sequence of str
        Names of the columns of a table of links.

    Returns
    -------
    dict of str to str
        The usual name of each column that says something about a link, by the name that it has.

    Raises
    ------
    ValueError
        If a column is missing, or if several may be meant.

    Examples
    --------
    >>> name_columns(["id1", "id2", "Same"])
    {'id1': 'a', 'id2': 'b', 'Same': 'kind'}
    >>> name_columns(["id1", "id2", "same", "match"])
    Traceback (most recent call last):
    ValueError: 'same' and 'match' may both be the kind of link: name it 'kind'
    """
    by_name: dict[str, str] = {}
    for name in present:
        by_name.setdefault(name.lower(), name)
    found = {name: name for name in COLUMNS if name in present}
    ends = [pair for pair in ENDS if set(pair) <= by_name.keys()]
    if not {"a", "b"} <= found.keys() and ends:
        if len(ends) > 1:
            (one, _), (other, _) = ends[:2]
            raise ValueError(f"{one!r} and {other!r} may both be the first id: name the ids 'a' and 'b'")
        found = {name: usual for name, usual in found.items() if usual not in ("a", "b")}
        found |= {by_name[name]: usual for name, usual in zip(ends[0], ("a", "b"), strict=True)}
    if "kind" not in found:
        kinds = [by_name[name] for name in KIND if name in by_name and by_name[name] not in found]
        if len(kinds) > 1:
            raise ValueError(f"{kinds[0]!r} and {kinds[1]!r} may both be the kind of link: name it 'kind'")
        found |= dict.fromkeys(kinds, "kind")
    for name in NEEDED:
        if name not in found.values():
            shown = ", ".join(map(repr, present))
            raise ValueError(
                f"there is no column {name!r} (columns: {shown}): name the columns a, b and kind, and if you have them "
                "confidence, annotator and chosen"
            )
    return found


def parse_confidence(given: object) -> float | None:
    """Check the confidence of a link; None stands for certain.

    Examples
    --------
    >>> parse_confidence(0.9), parse_confidence(None)
    (0.9, None)
    >>> parse_confidence(2)
    Traceback (most recent call last):
    ValueError: 2 is not a number above 0 and at most 1: correct it, or leave it empty if the link is certain
    """
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, Real) or not is_confidence(given):
        raise ValueError(
            f"{given!r} is not a number above 0 and at most 1: correct it, or leave it empty if the link is certain"
        )
    return float(given)


def parse_chosen(given: object) -> bool:
    """Tell whether a link was chosen; None stands for a random one.

    Examples
    --------
    >>> parse_chosen("Yes"), parse_chosen(None)
    (True, False)
    >>> parse_chosen("maybe")
    Traceback (most recent call last):
    ValueError: 'maybe' is neither 'yes' nor 'no': write 'yes' if the pair was chosen, 'no' if it is a random one
    """
    chosen = False if given is None else YES_NO.get(str(given).strip().lower())
    if chosen is None:
        raise ValueError(
            f"{given!r} is neither 'yes' nor 'no': write 'yes' if the pair was chosen, 'no' if it is a random one"
        )
    return chosen


def from_table(cls: type["Links"], table: Any, ids: Iterable[Hashable] | None = None) -> "Links":
    """Read links from a table with one link per row.

    Parameters
    ----------
    table : mapping of columns, data frame of pandas or polars, table of pyarrow, or iterable of mappings (one per row)
        Columns ``a``, ``b`` and ``kind``, optionally ``confidence``, ``annotator`` and ``chosen``; others are left
        alone. The first two may also be called ``id1`` and ``id2``, ``left`` and ``right``, ``source`` and ``target``
        and the like, and the third ``same``, ``match``, ``link``, ``label`` or ``type``. A kind is "must", "same",
        "match", "yes", True or 1, or else "cannot", "different", "distinct", "no", False, 0 or -1, in upper or lower
        case. A missing confidence means certain. A link is chosen if the column says True, "yes" or 1.
    ids : sequence, optional
        The ids of the rows of X, in their order. ``a`` and ``b`` are then ids, compared as they are: "7" is not 7.
        Without ids, they are row numbers.

    Examples
    --------
    >>> from linkmix import Links
    >>> table = {"a": ["anna", "bob"], "b": ["carl", "anna"], "kind": ["same", "different"]}
    >>> links = Links.from_table(table, ids=["anna", "bob", "carl"])
    >>> links.must, links.cannot
    (array([[0, 2]]), array([[1, 0]]))
    """
    columns = _read_columns(table)
    row_of = None if ids is None else _read_ids(ids)
    ends = ("a", "b")
    if row_of is None:
        pairs = np.array([_read_numbers(columns[end], end) for end in ends], dtype=np.int64).T  # (n, 2)
    else:
        pairs = _read_rows({end: columns[end] for end in ends}, row_of)
    if (position := first_true(pairs[:, 0] == pairs[:, 1])) is not None:
        raise ValueError(f"table row {position} links {columns['a'][position]!r} to itself: remove it")
    for name in ("confidence", "annotator", "chosen"):
        columns[name] = [None if is_missing(value) else value for value in columns.get(name, [None] * len(pairs))]
    is_must = np.array(_parse_column(columns, "kind", parse_kind), dtype=bool)
    check_hashable(columns["annotator"], lambda i: f"table row {i}: annotator")
    return cls.from_checked(
        pairs,
        is_must,
        _parse_column(columns, "confidence", parse_confidence),
        columns["annotator"],
        _parse_column(columns, "chosen", parse_chosen),
    )


def to_table(links: "Links", ids: Iterable[Hashable] | None = None) -> dict[str, list[Any]]:
    """Write the links as columns that ``from_table``, pandas and polars read.

    Parameters
    ----------
    ids : sequence, optional
        The ids of the rows of X, in their order, to write in place of row numbers.

    Returns
    -------
    dict of lists
        Columns ``a``, ``b`` and ``kind``, must-links first; ``confidence``, ``annotator`` and ``chosen`` if there are
        any, with None, or False, where one is missing.

    Examples
    --------
    >>> from linkmix import Links
    >>> Links(must=[(0, 2)], cannot=[(1, 0)]).to_table(ids=["anna", "bob", "carl"])
    {'a': ['anna', 'bob'], 'b': ['carl', 'anna'], 'kind': ['must', 'cannot']}
    """
    if links.relations:
        raise ValueError(f"{links} holds relations, which have no place in a table of links: write them apart")
    columns = np.concatenate([links.must, links.cannot]).T.tolist()
    if ids is not None:
        names = list(_read_ids(ids))
        links.check_rows(len(names))
        columns = [[names[row] for row in column] for column in columns]
    table = {"a": columns[0], "b": columns[1], "kind": ["must"] * links.n_must + ["cannot"] * links.n_cannot}
    for name, must, cannot, absent in (
        ("confidence", links.must_confidence, links.cannot_confidence, None),
        ("annotator", links.must_annotators, links.cannot_annotators, None),
        ("chosen", links.must_chosen, links.cannot_chosen, False),
    ):
        if must is not None or cannot is not None:
            table[name] = [absent] * links.n_must if must is None else must.tolist()
            table[name] += [absent] * links.n_cannot if cannot is None else cannot.tolist()
    return table


def _parse_column(columns: dict[str, list[Any]], name: str, parse: Callable[[object], T]) -> list[T]:
    parsed = []
    for i, value in enumerate(columns[name]):
        try:
            parsed.append(parse(value))
        except ValueError as error:
            raise ValueError(f"table row {i}, column {name!r}: {error}") from None
    return parsed


def _read_columns(table: Any) -> dict[str, list[Any]]:
    """Read the columns that describe links, all of one length."""
    if isinstance(table, Mapping) or hasattr(table, "columns"):
        present = list(table) if isinstance(table, Mapping) else list(getattr(table, "column_names", table.columns))
        usual = _name_columns(present)
        columns = {usual[name]: as_list(f"table column {name!r}", table[name]) for name in usual}
    else:
        rows = as_list("table", table)
        for i, row in enumerate(rows):
            if not isinstance(row, Mapping):
                raise ValueError(f"table row {i} is {row!r}: give a mapping with 'a', 'b' and 'kind'")
        present = list(dict.fromkeys(name for row in rows for name in row)) if rows else list(NEEDED)
        usual = _name_columns(present)
        columns = {usual[name]: [row.get(name) for row in rows] for name in usual}
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"the columns of table differ in length, {lengths}: give one entry per link in each")
    return columns


def _name_columns(present: list[Any]) -> dict[str, str]:
    try:
        return name_columns([name for name in present if isinstance(name, str)])
    except ValueError as error:
        raise ValueError(f"table: {error}") from None


def _read_ids(ids: Iterable[Hashable]) -> dict[Hashable, int]:
    """Row of each id, in the order of the rows."""
    values = as_list("ids", ids)
    check_hashable(values, lambda i: f"ids[{i}]")
    row_of: dict[Hashable, int] = {}
    for row, value in enumerate(values):
        if is_missing(value):
            raise ValueError(f"ids[{row}] is {value}: give every row an id")
        if row_of.setdefault(value, row) != row:
            raise ValueError(f"ids[{row_of[value]}] and ids[{row}] are both {value!r}: give every row an id of its own")
    return row_of


def _read_numbers(column: list[Any], name: str) -> list[int]:
    """Row numbers of a column."""
    for i, value in enumerate(column):
        if isinstance(value, bool) or not isinstance(value, Integral) or not 0 <= int(value) <= LARGEST_ROW:
            raise ValueError(
                f"table row {i}: {name} is {value!r}, not a row number: "
                f"give integers from 0 to {LARGEST_ROW}, or the ids of the rows as ids"
            )
    return [int(value) for value in column]


def _read_rows(ends: dict[str, list[Any]], row_of: dict[Hashable, int]) -> Ints:
    """Rows of the two columns of ids, of shape (n, 2). An error lists the ids that no row has."""
    pairs = np.empty((len(ends["a"]), 2), dtype=np.int64)
    unknown: dict[str, str] = {}  # where each id that no row has stands first
    for i, two in enumerate(zip(*ends.values(), strict=True)):
        for j, (name, value) in enumerate(zip(ends, two, strict=True)):
            try:
                pairs[i, j] = row_of[value]
            except (KeyError, TypeError):  # a TypeError if it is not hashable
                unknown.setdefault(repr(value), f"table row {i}: {name} is {value!r}")
    if unknown:
        first = next(iter(unknown.values()))
        example = f"such as {next(iter(row_of))!r}" if row_of else "there are none"
        others = list(unknown)[1:IDS_SHOWN]
        more = f" and {len(unknown) - IDS_SHOWN} more" if len(unknown) > IDS_SHOWN else ""
        also = f"; the same holds for {', '.join(others)}{more}" if others else ""
        raise ValueError(
            f"{first}, which is not among the ids ({example}): correct it, or read ids and table with the same type"
            f"{also}"
        )
    return pairs
