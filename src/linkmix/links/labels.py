"""Links from labels, from groups of rows, or from a column of sources. Each function is a constructor of `Links`."""

from collections.abc import Hashable, Iterable, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike

from linkmix.basics.arrays import Ints
from linkmix.links.pairs import Partners, draw_distinct, pairs_at, pairs_within
from linkmix.links.reading import as_list, read_group, read_labels, read_random_state

if TYPE_CHECKING:
    from linkmix.links.links import Links

MOST_LINKS = 10_000_000
"""Links that `apart_within` makes at most."""


def from_groups(
    cls: type["Links"], together: Iterable[ArrayLike] = (), apart: Iterable[tuple[ArrayLike, ArrayLike]] = ()
) -> "Links":
    """Make links from groups of rows that belong together or apart.

    Parameters
    ----------
    together : sequence of groups
        Rows that belong to one class, group by group: a chain of must-links each.
    apart : sequence of pairs of groups
        No row of the first group belongs to the class of any row of the second: a cannot-link for each such pair.

    Examples
    --------
    >>> from linkmix import Links
    >>> links = Links.from_groups(together=[[0, 1, 2]], apart=[([0, 1], [7, 8])])
    >>> links.must.tolist(), links.cannot.tolist()
    ([[0, 1], [1, 2]], [[0, 7], [0, 8], [1, 7], [1, 8]])
    """
    must: list[Ints] = [np.empty((0, 2), dtype=np.int64)]
    cannot: list[Ints] = [np.empty((0, 2), dtype=np.int64)]
    for name, groups in (("together", together), ("apart", apart)):
        if not isinstance(groups, Iterable):
            raise ValueError(f"{name} is {groups!r}: give a list, such as together=[[0, 1, 2]], apart=[([0], [5])]")
    for i, group in enumerate(together):
        rows = read_group(f"together[{i}]", group)
        must.append(np.column_stack([rows[:-1], rows[1:]]))
    for i, two in enumerate(apart):
        if not isinstance(two, Sequence) or len(two) != 2:
            raise ValueError(f"apart[{i}] is {two!r}: give two groups, such as ([0, 1], [5, 6])")
        first, second = two
        one, other = read_group(f"apart[{i}][0]", first), read_group(f"apart[{i}][1]", second)
        if len(both := np.intersect1d(one, other)):
            raise ValueError(f"apart[{i}] has row {both[0]} in both groups: remove it from one of them")
        cannot.append(np.column_stack([np.repeat(one, len(other)), np.tile(other, len(one))]))
    return cls(np.concatenate(must), np.concatenate(cannot))


def from_labels(
    cls: type["Links"],
    y: Iterable[Hashable],
    n_links: int | None = None,
    *,
    kind: Literal["both", "must", "cannot"] = "both",
    random_state: int | np.random.RandomState | np.random.Generator | None = None,
) -> "Links":
    """Make links from the labels of all rows or of some.

    Parameters
    ----------
    y : sequence of shape (n_rows,)
        Labels of any hashable type. The number -1, None and NaN stand for unknown.
    n_links : int, optional
        Draw this many different pairs of labelled rows, all pairs equally likely. If None, give the fewest links that
        imply all others: the rows of each label in a chain of must-links, and one cannot-link between the first
        rows of each two labels.
    kind : {"both", "must", "cannot"}
        Which links to give. Pairs are then drawn from those of this kind.
    random_state : int, RandomState, Generator or None
        Source of the draw.

    Examples
    --------
    >>> from linkmix import Links
    >>> links = Links.from_labels(["x", "y", None, "x", "x"])
    >>> links.must.tolist(), links.cannot.tolist()
    ([[0, 3], [3, 4]], [[0, 1]])
    >>> Links.from_labels(["x", "y", "x", "x"], n_links=3, kind="must", random_state=0)
    Links(3 must, 0 cannot)
    """
    if kind not in ("both", "must", "cannot"):
        raise ValueError(f"kind is {kind!r}: use 'both', 'must' or 'cannot'")
    rows, codes = read_labels(y)
    order = np.argsort(codes, kind="stable")
    rows, codes = rows[order], codes[order]
    within = pairs_within(codes)
    if n_links is None:
        chain = np.column_stack([rows[:-1], rows[1:]])[codes[1:] == codes[:-1]]
        firsts = rows[within.lowest == np.arange(len(rows))]
        apart = firsts[np.column_stack(np.triu_indices(len(firsts), 1))]
        return cls(chain if kind != "cannot" else (), apart if kind != "must" else ())

    if isinstance(n_links, bool) or not isinstance(n_links, Integral) or n_links < 0:
        raise ValueError(f"n_links is {n_links!r}: give a whole number of links, 0 or more, or None")
    nothing = np.zeros_like(within.lowest)
    partners = {
        "must": within,
        "cannot": Partners(nothing, within.lowest),
        "both": Partners(nothing, np.arange(len(rows))),
    }[kind]
    n_pairs = int(partners.counts.sum())
    if n_links > n_pairs:
        what = "pairs" if kind == "both" else f"{kind}-link pairs"
        raise ValueError(
            f"n_links is {n_links}, but the {len(rows)} labelled rows make {n_pairs} {what}: ask for at most {n_pairs}"
        )
    at = pairs_at(draw_distinct(n_pairs, int(n_links), read_random_state(random_state)), partners)
    pairs, same = np.sort(rows[at], axis=1), codes[at[:, 0]] == codes[at[:, 1]]
    return cls(pairs[same], pairs[~same])


def apart_within(cls: type["Links"], column: Iterable[Hashable]) -> "Links":
    """Make links from a column whose equal values mean different classes: at most one record of each source.

    Rows with the same value cannot link: two records of one register are never the same person, two faces in one
    picture never the same face. A value that occurs more often than there are classes leaves no labelling.

    Parameters
    ----------
    column : sequence of shape (n_rows,)
        A value of any hashable type for each row of X. A missing one (None, NaN or pandas.NA) says nothing.

    Returns
    -------
    Links
        A cannot-link for each pair of rows with the same value, value by value. They count as chosen, since they are no
        random pairs, so ``quality_`` does not rest on them.

    Raises
    ------
    ValueError
        If there would be more than ten million links.

    Examples
    --------
    >>> from linkmix import Links
    >>> Links.apart_within(["tax", "bank", "tax", None, "bank", "tax"]).cannot.tolist()
    [[0, 2], [0, 5], [2, 5], [1, 4]]
    """
    values = as_list("column", column)
    rows, codes = read_labels(values, "column", unknown=None)
    order = np.argsort(codes, kind="stable")
    rows, codes = rows[order], codes[order]
    within = pairs_within(codes)
    n_links = int(within.counts.sum())
    if n_links > MOST_LINKS:
        sizes = np.bincount(codes)
        largest = values[rows[codes == sizes.argmax()][0]]
        raise ValueError(
            f"column would make {n_links:,} cannot-links, more than {MOST_LINKS:,}, and {largest!r} alone stands in "
            f"{sizes.max():,} rows: write None for values that do not keep rows apart, or take fewer rows"
        )
    return cls(cannot=rows[pairs_at(np.arange(n_links), within)], cannot_chosen=True)
