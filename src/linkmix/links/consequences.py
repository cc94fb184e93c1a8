"""What follows from links: chunklets, components, the closure and contradictions. Each is a method of `Links`."""

from typing import TYPE_CHECKING

import numpy as np

from linkmix.basics.arrays import Ints
from linkmix.basics.errors import Conflict, LinkConflict
from linkmix.links.one_kind import OneKind
from linkmix.links.pairs import component_ids, first_true, pairs_across, pairs_at, pairs_within, shortest_chain

if TYPE_CHECKING:
    from linkmix.links.links import Links

_CONFLICTS_SHOWN = 3


def chunklets(links: "Links", n_rows: int) -> Ints:
    """Number the must-link components: rows with one number belong to one class.

    Only certain must-links count, as in ``conflicts``: without a conflict no certain cannot-link lies within a
    chunklet. To take every must-link at its word, ask ``Links(links.must).chunklets(n_rows)``.

    Parameters
    ----------
    n_rows : int
        Number of rows of the data.

    Returns
    -------
    array of int64, shape (n_rows,)
        The chunklet of each row, numbered by first appearance. A row in no must-link is alone.

    Examples
    --------
    >>> from linkmix import Links
    >>> Links(must=[(1, 4), (4, 2)]).chunklets(6)
    array([0, 1, 1, 2, 1, 3])
    """
    links.check_rows(n_rows)
    return component_ids(links.certain().must, n_rows)


def components(links: "Links", n_rows: int) -> Ints:
    """Number the components of all links, must and cannot, certain or not.

    These are the groups for cross-validation: with them no link is torn apart by a fold.

    Parameters
    ----------
    n_rows : int
        Number of rows of the data.

    Returns
    -------
    array of int64, shape (n_rows,)
        The component of each row, numbered by first appearance. A row in no link is alone.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import GroupKFold
    >>> from linkmix import Links
    >>> X = np.arange(12.0).reshape(6, 2)
    >>> links = Links(must=[(0, 3)], cannot=[(3, 5)])
    >>> links.components(len(X))
    array([0, 1, 2, 0, 3, 0])
    >>> for train, test in GroupKFold(n_splits=2).split(X, groups=links.components(len(X))):
    ...     print(train, links.restrict(train), test, links.restrict(test))
    [1 2 4] Links(0 must, 0 cannot) [0 3 5] Links(1 must, 1 cannot)
    [0 3 5] Links(1 must, 1 cannot) [1 2 4] Links(0 must, 0 cannot)
    """
    links.check_rows(n_rows)
    chains = (np.stack([other.sets[:, :-1], other.sets[:, 1:]], axis=-1).reshape(-1, 2) for other in links.relations)
    return component_ids(np.concatenate([links.must, links.cannot, *chains]), n_rows)


def closure(links: "Links") -> "Links":
    """Add all links that follow from these.

    Every pair within a chunklet must link, and every pair across two chunklets with a cannot-link between them
    cannot link. Their number grows with the square of the size of the chunklets.

    Returns
    -------
    Links
        Each pair once, smaller row first, in lexicographic order; without confidences and annotators.

    Raises
    ------
    LinkConflict
        If a pair must link and cannot link.
    ValueError
        If a confidence is below 1: what follows from uncertain links is not certain.

    Examples
    --------
    >>> from linkmix import Links
    >>> closed = Links(must=[(0, 1), (3, 1)], cannot=[(5, 3)]).closure()
    >>> closed.must.tolist(), closed.cannot.tolist()
    ([[0, 1], [0, 3], [1, 3]], [[0, 5], [1, 5], [3, 5]])
    """
    for kind, confidence in (("must", links.must_confidence), ("cannot", links.cannot_confidence)):
        if confidence is not None and (position := first_true(confidence < 1)) is not None:
            raise ValueError(
                f"{kind}_confidence[{position}] is {confidence[position]}, but only certain links have a closure: "
                "drop the uncertain links, or take them at their word with Links(links.must, links.cannot)"
            )
    links.check_consistent()
    _, cannot, points, chunklet = _compact(links.must, links.cannot)
    order = np.argsort(chunklet, kind="stable")
    _, first, size = np.unique(chunklet[order], return_index=True, return_counts=True)  # (n_chunklets,)
    within = pairs_within(chunklet[order])
    together = order[pairs_at(np.arange(within.counts.sum()), within)]
    sides = np.unique(np.sort(chunklet[cannot], axis=1), axis=0)  # (n, 2): chunklets that are apart
    which, place_a, place_b = pairs_across(size[sides])
    apart = order[first[sides[which]] + np.column_stack([place_a, place_b])]
    return type(links)(_sorted_pairs(points[together]), _sorted_pairs(points[apart]))


def conflicts(links: "Links", max_conflicts: int | None = None) -> list[Conflict]:
    """Find the cannot-links between rows that must-links hold together.

    Only certain links conflict; an uncertain one may simply be wrong.

    Parameters
    ----------
    max_conflicts : int, optional
        Stop after this many. Each conflict costs a search for its chain.

    Returns
    -------
    list of Conflict
        One per pair of rows, in the order of the cannot-links, each with a shortest chain of must-links.

    Examples
    --------
    >>> from linkmix import Links
    >>> for conflict in Links(must=[(4, 7), (7, 9)], cannot=[(4, 9), (4, 5)]).conflicts():
    ...     print(conflict)
    rows 4 and 9 must link (through 7) and cannot link: drop one of these 3 links
    """
    if max_conflicts is not None and max_conflicts < 0:
        raise ValueError(f"max_conflicts is {max_conflicts}: give 0 or more, or None for all")
    clashing, binding = _clashes(links)
    return _find_chains(clashing[:max_conflicts], binding)


def check_consistent(links: "Links") -> None:
    """Raise a LinkConflict that names the first few conflicts and counts the others, if there are any."""
    clashing, binding = _clashes(links)
    if len(clashing):
        shown = _find_chains(clashing[:_CONFLICTS_SHOWN], binding)
        lines = [str(conflict) for conflict in shown]
        if len(clashing) > len(shown):
            lines.append(f"and {len(clashing) - len(shown)} more conflicts: see links.conflicts()")
        raise LinkConflict("\n".join(lines), shown)


def _clashes(links: "Links") -> tuple[Ints, Ints]:
    """Cannot-links within a chunklet, each once, and the must-links of the chunklets that they lie in."""
    certain = links.certain()
    must, cannot, points, chunklet = _compact(certain.must, certain.cannot)
    ends = chunklet[cannot]  # (n_cannot, 2)
    inside = ends[:, 0] == ends[:, 1]
    binds = np.isin(chunklet[must[:, 0]], ends[inside, 0])
    return OneKind(points[cannot[inside]]).distinct().pairs, points[must[binds]]


def _find_chains(clashing: Ints, must: Ints) -> list[Conflict]:
    """Each clashing pair with a shortest chain of must-links."""
    neighbours: dict[int, list[int]] = {}
    for a, b in must.tolist():
        neighbours.setdefault(a, []).append(b)
        neighbours.setdefault(b, []).append(a)
    return [Conflict((a, b), shortest_chain(neighbours, a, b)) for a, b in clashing.tolist()]


def _compact(must: Ints, cannot: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Number the linked points alone, so that the work does not grow with the row numbers.

    Returns must and cannot in these numbers, the row of each point, and its chunklet.
    """
    points, number = np.unique(np.concatenate([must, cannot]), return_inverse=True)
    number = number.reshape(-1, 2)
    return number[: len(must)], number[len(must) :], points, component_ids(number[: len(must)], len(points))


def _sorted_pairs(pairs: Ints) -> Ints:
    ordered = np.sort(pairs, axis=1)
    return ordered[np.lexsort((ordered[:, 1], ordered[:, 0]))]
