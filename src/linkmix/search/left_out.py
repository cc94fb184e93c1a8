"""Refits that have not seen some of the links: what they say about these is what they would say about new links.

Links that a model was fitted to tell little about how good it is. So links and known labels are dealt into folds, and
the best recipes of the search (columns, first guess and shape) are fitted again without those of each fold.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.random import RandomState

from linkmix import engine
from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.engine.fitting import few_threads
from linkmix.links import Links
from linkmix.search.contest import THE_BEST, Candidate, Contest
from linkmix.search.guesses import WITHOUT


@dataclass(frozen=True, eq=False)
class Fold:
    """What a refit sees, and what it does not.

    Attributes
    ----------
    kept, left : Links
        Links that it sees, and those that it does not.
    known : ndarray of shape (n_samples,) or None
        Known labels that it sees.
    rows : ndarray of shape (n_left,)
        Rows whose known labels it does not see.
    """

    kept: Links
    left: Links
    known: Ints | None
    rows: Ints


@dataclass(frozen=True, eq=False)
class Refit:
    """A recipe fitted without one fold.

    Attributes
    ----------
    fold : Fold
    candidate : Candidate
    log_joint : ndarray of shape (n_samples, n_classes)
        Log of class weight times density of all points of the search.
    """

    fold: Fold
    candidate: Candidate
    log_joint: Floats


def folds(links: Links, known: Ints | None, n_folds: int, random: RandomState) -> Iterator[Fold]:
    """Deal pairs and labelled rows into folds, those of each kind and of each class apart.

    Parameters
    ----------
    links : Links
        All links. What is said about one pair of points stays together.
    known : ndarray of shape (n_samples,) or None
        Known labels, -1 where not known.
    n_folds : int
        Largest number of folds; empty ones are left out.
    random : RandomState
        Source of the deal.

    Yields
    ------
    Fold
    """
    ends = np.sort(np.concatenate([links.must, links.cannot]), axis=1)
    _, first, pair = np.unique(ends, axis=0, return_index=True, return_inverse=True)
    of_link = _deal((first < links.n_must).astype(np.int64), n_folds, random)[pair.ravel()]
    must, cannot = of_link[: links.n_must], of_link[links.n_must :]
    told = np.empty(0, dtype=np.int64) if known is None else np.flatnonzero(known >= 0)
    of_row = _deal(told if known is None else known[told], n_folds, random)
    for fold in range(n_folds):
        rows, seen = told[of_row == fold], known
        if not len(rows) and fold not in of_link:
            continue
        if known is not None:
            seen = known.copy()
            seen[rows] = -1
        yield Fold(links.where(must != fold, cannot != fold), links.where(must == fold, cannot == fold), seen, rows)


def recipes(candidates: list[Candidate], n_recipes: int) -> list[Candidate]:
    """The best candidates that start from a first guess, rather than from other candidates."""
    return [one for one in candidates if one.finished and one.start != THE_BEST][:n_recipes]


def refits(ground: Contest, fold: Fold, chosen: list[Candidate]) -> list[Refit]:
    """Fit the chosen recipes without a fold, from guesses made without it; the best first."""
    contest = ground.given(fold.kept, fold.known)
    found = []
    with few_threads(*contest.shape):
        for view in dict.fromkeys(one.view for one in chosen):
            mine = [one for one in chosen if one.view == view]
            names = tuple(dict.fromkeys(one.start.removesuffix(WITHOUT) for one in mine))
            labels = dict(contest.guesses_of(view, names))
            for one in mine:
                if one.start not in labels:
                    continue
                begun = contest.begin(view, one.start, labels[one.start], one.shape)
                done = None if begun is None else contest.finish(begun)
                if done is not None:
                    found.append(done)
    judge = contest.believing(found) if found else contest
    return [Refit(fold, one, log_joint(contest, one)) for one in judge.ranked([judge.judged(one) for one in found])]


def log_joint(contest: Contest, candidate: Candidate) -> Floats:
    """Log of class weight times density of all points of the search."""
    X = contest.views[candidate.view].X
    return engine.class_log_joint(contest.density(candidate.shape), candidate.parameters, X)


def _deal(strata: Array, n_folds: int, random: RandomState) -> Ints:
    """Fold of each item, those of each stratum spread evenly."""
    order = random.permutation(len(strata))
    order = order[np.argsort(strata[order], kind="stable")]
    fold = np.empty(len(strata), dtype=np.int64)
    fold[order] = np.arange(len(strata)) % n_folds
    return fold
