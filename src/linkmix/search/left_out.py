"""Refits that have not seen some of the links: what they say about these is what they would say about new links.

Each fold of the links is left out in turn. The candidates of the search are ranked once more without that fold, and the
recipe of the best one (columns, first guess and shape) is fitted without it. The ranked candidates themselves have seen
the fold, but the recipe's refit has not.
"""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import islice

import numpy as np
from numpy.random import RandomState

from linkmix import engine
from linkmix.basics.arrays import shares
from linkmix.basics.progress import LOG
from linkmix.engine.fitting import few_threads
from linkmix.mixture.calibration import LeftOut
from linkmix.mixture.folds import folds
from linkmix.search.contest import THE_BEST, THE_LAST, Candidate, Contest, all_of
from linkmix.search.guesses import LABELINGS, WITHOUT
from linkmix.search.ranking import agreement, weigh


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
    dealt = list(islice(folds(ground.links, ground.known, RandomState(ground.seed)), n_folds))
    without = [ground.given(fold.kept, fold.known) for fold in dealt]
    # Neither the consensus nor an earlier fit is a recipe: both have seen the links that are left out.
    unseen = [one for one in candidates if one.start not in (THE_BEST, THE_LAST)]
    recipes = [one for one in unseen if one.finished] or unseen
    with few_threads(*ground.shape), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a guess may stop early
        LOG.info("calibration: %d refits without some of the links", len(without))
        refits = all_of([partial(_refit, one, recipes) for one in without], ground.n_jobs)
    found = []
    for fold, one, refit in zip(dealt, without, refits, strict=True):
        if refit is not None:
            X = one.views[refit.view].X
            log_joint = engine.class_log_joint(one.density(refit.shape), refit.parameters, X)
            found.append(LeftOut(log_joint, fold.left, fold.at, *fold.comparable()))
    return found


def mean_agreement(candidates: Sequence[Candidate], n_classes: int) -> float:
    """Mean adjusted Rand index of all pairs of candidates that were run to the end, without those of an earlier fit."""
    labels = [one.evidence.labels for one in candidates if one.finished and one.start != THE_LAST]
    if len(labels) < 2:
        return 1.0
    likeness = agreement(labels, n_classes)
    n = len(labels)
    return float((likeness.sum() - n) / (n * (n - 1)))


def _refit(without: Contest, recipes: Sequence[Candidate]) -> Candidate | None:
    """The best recipe, judged and fitted without a fold; None if no recipe works without it."""
    for one in without.ranked(_judged(without, recipes)):
        blind = one.start.endswith(WITHOUT) or not LABELINGS[one.start].uses_links  # the guess would be the same
        labels = one.guess if blind else without.guess_of(one.view, one.start)
        begun = None if labels is None else without.begin(one.view, one.start, labels, one.shape)
        done = None if begun is None else without.finish(begun)
        if done is not None:
            return done
    return None


def _judged(without: Contest, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Candidates with the evidence of the links that are not left out; their labels are the same."""
    points = without.links.points
    points = points if len(points) else np.zeros(1, dtype=np.int64)  # densities are of at least one point
    links, least = without.links.restrict(points), without.budget.settings.least
    judged = []
    for one in candidates:
        X = without.views[one.view].X[points]
        seen = weigh(shares(engine.class_log_joint(without.density(one.shape), one.parameters, X)), links, least)
        evidence = replace(seen, labels=one.evidence.labels, structure=one.evidence.structure)
        judged.append(replace(one, evidence=evidence))
    return judged
