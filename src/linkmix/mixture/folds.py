"""Links and known labels dealt into folds, so that a model can be judged by what it has not seen."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.random import RandomState

from linkmix.basics.arrays import Array, Ints
from linkmix.links import Links

N_FOLDS = 5


@dataclass(frozen=True, eq=False)
class Fold:
    """What a refit sees, and what it does not.

    Attributes
    ----------
    kept, left : Links
        Links that it sees, and those that it does not.
    at : ndarray of shape (n_left_links,)
        Positions of the latter among all links, must-links first.
    known : ndarray of shape (n_samples,) or None
        Known labels that it sees.
    rows, labels : ndarray of shape (n_left,)
        Rows whose known labels it does not see, and these labels.
    """

    kept: Links
    left: Links
    at: Ints
    known: Ints | None
    rows: Ints
    labels: Ints

    def comparable(self) -> tuple[Ints, Ints]:
        """Rows and labels of the classes of which the refit sees a label: only these have a number there."""
        if self.known is None:
            return self.rows, self.labels
        seen = np.isin(self.labels, self.known[self.known >= 0])
        return self.rows[seen], self.labels[seen]


def folds(links: Links, known: Ints | None, random: RandomState) -> Iterator[Fold]:
    """Deal pairs and labelled rows into folds, those of each kind and of each class apart.

    Parameters
    ----------
    links : Links
        All links. What is said about one pair of points stays together. Relations of other kinds are never left out.
    known : ndarray of shape (n_samples,) or None
        Known labels, -1 where not known.
    random : RandomState
        Source of the deal.

    Yields
    ------
    Fold
        Five, or fewer if there is less to leave out.

    Examples
    --------
    >>> links = Links(must=[(0, 1), (2, 3), (4, 5)], cannot=[(0, 2), (1, 4)])
    >>> dealt = list(folds(links, None, RandomState(0)))
    >>> [fold.left.n_must + fold.left.n_cannot for fold in dealt], dealt[0].kept.n_must + dealt[0].kept.n_cannot
    ([1, 1, 1, 1, 1], 4)
    """
    ends = np.sort(np.concatenate([links.must, links.cannot]), axis=1)
    _, first, pair = np.unique(ends, axis=0, return_index=True, return_inverse=True)
    of_link = _deal(first < links.n_must, random)[pair.ravel()]
    must, cannot = of_link[: links.n_must], of_link[links.n_must :]
    told = np.empty(0, dtype=np.int64) if known is None else np.flatnonzero(known >= 0)
    labels = told if known is None else known[told]
    of_row = _deal(labels, random)
    for fold in range(N_FOLDS):
        left, seen = of_row == fold, known
        if not left.any() and fold not in of_link:
            continue
        if known is not None:
            seen = known.copy()
            seen[told[left]] = -1
        yield Fold(
            links.where(must != fold, cannot != fold).union(Links(relations=links.relations)),
            links.where(must == fold, cannot == fold),
            np.flatnonzero(of_link == fold),
            seen,
            told[left],
            labels[left],
        )


def _deal(strata: Array, random: RandomState) -> Ints:
    """Fold of each item, those of each stratum spread evenly."""
    order = random.permutation(len(strata))
    order = order[np.argsort(strata[order], kind="stable")]
    fold = np.empty(len(strata), dtype=np.int64)
    fold[order] = np.arange(len(strata)) % N_FOLDS
    return fold
