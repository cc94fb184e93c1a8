"""Refits that have not seen some of the links: what they say about these is what they would say about new links.

Each fold of the links is left out in turn. The candidates of the search are ranked once more without that fold, and the
recipe of the best one (columns, first guess and shape) is fitted without it. The ranked candidates themselves have seen
the fold, but the recipe's refit has not.
"""

from collections.abc import Sequence
from itertools import islice

from numpy.random import RandomState

from linkmix import engine
from linkmix.engine.fitting import few_threads
from linkmix.mixture.calibration import LeftOut
from linkmix.mixture.folds import folds
from linkmix.search.contest import THE_BEST, Candidate, Contest
from linkmix.search.guesses import WITHOUT
from linkmix.search.ranking import agreement


def left_outs(ground: Contest, candidates: Sequence[Candidate], n_folds: int | None = None) -> list[LeftOut]:
    """A refit for each fold of the links and the known labels.

    Parameters
    ----------
    ground : Contest
        The contest.
    candidates : sequence of Candidate
        Its candidates.
    n_folds : int, optional
        Only the first folds.

    Returns
    -------
    list of LeftOut
        Empty if there is nothing to leave out.
    """
    found = []
    for fold in islice(folds(ground.links, ground.known, RandomState(ground.seed)), n_folds):
        without = ground.given(fold.kept, fold.known)
        refit = _refit(without, candidates)
        if refit is not None:
            X = without.views[refit.view].X
            log_joint = engine.class_log_joint(without.density(refit.shape), refit.parameters, X)
            found.append(LeftOut(log_joint, fold.left, fold.at, *fold.comparable()))
    return found


def mean_agreement(candidates: Sequence[Candidate], n_classes: int) -> float:
    """Mean adjusted Rand index of all pairs of candidates that were run to the end."""
    labels = [one.evidence.labels for one in candidates if one.finished]
    if len(labels) < 2:
        return 1.0
    likeness = agreement(labels, n_classes)
    n = len(labels)
    return float((likeness.sum() - n) / (n * (n - 1)))


def _refit(without: Contest, candidates: Sequence[Candidate]) -> Candidate | None:
    """The best recipe, judged and fitted without a fold; None if no recipe works without it."""
    ranked = without.ranked([without.judged(one) for one in candidates if one.start != THE_BEST])
    with few_threads(*without.shape):
        for one in ranked:
            name = one.start.removesuffix(WITHOUT)
            labels = dict(without.guesses_of(one.view, (name,))).get(one.start)
            begun = None if labels is None else without.begin(one.view, one.start, labels, one.shape)
            done = None if begun is None else without.finish(begun)
            if done is not None:
                return done
    return None
