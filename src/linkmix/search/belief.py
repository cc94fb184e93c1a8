"""Whether annotators are to be believed: links are certain, until what was left out of the fits speaks against it.

Densities are so sure of themselves that they overrule every link that is not certain. If all links are right, learning
how reliable people are therefore costs a lot; if many are wrong, believing them costs more. Nothing in the links a fit
has seen tells these cases apart, since a flexible mixture bends to wrong links as well. Links that it has not seen do:
those who err are better predicted by fits that do not believe them.

Answers of people who err may also lead away from the classes altogether. Once annotators are doubted, they are compared
with the points alone: if a search without links keeps more of the links than refits keep of those left out, the classes
are those of the points alone.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
from scipy.special import betainc, betaln

from linkmix.couplings.statements import FIRST_RELIABILITY
from linkmix.engine import class_log_joint
from linkmix.links import Links
from linkmix.mixture.calibration import LeftOut, n_kept
from linkmix.mixture.settings import names_annotators
from linkmix.search.contest import Candidate, Contest, Guessed, Progress
from linkmix.search.left_out import left_outs, mean_agreement

ALONE = "points alone, "
"""Begins the name of the start of a candidate that has not seen the links."""
GUESSES, SHAPE, N_FOLDS = ("k-means", "k-means, one scale"), "1", 3
"""What is tried first, because it is quick: guesses without links, one cluster per class, three of the folds."""
HINT, VETO = 2.0, 1.5
"""Nats by which doubting must predict left-out links better than believing in the quick trial, the points alone better
than doubting, and doubting may predict them worse than believing in the end. Chosen on 42 cases with a small budget. Of
ten with 40 right answers to questions one was doubted, without harm; doubting all of them would cost .16 in ARI. On
nine other draws of 75 random links on iris and wine, a fifth of them wrong, five were doubted, which
raised it from .63 to .93."""
ENOUGH_BROKEN = 0.1
"""Links are not doubted if refits that believe them break at most this share of those left out."""


@dataclass(frozen=True, eq=False)
class Searched:
    """A contest that has been run.

    Attributes
    ----------
    ground : Contest
    candidates : list of Candidate
        The best first.
    left : list of LeftOut
        Refits, and what they had not seen.
    agreement : float
        How well the candidates agree.
    """

    ground: Contest
    candidates: list[Candidate]
    left: list[LeftOut]
    agreement: float

    @classmethod
    def of(
        cls, ground: Contest, progress: Progress, before: Sequence[Guessed] = (), *, leave_out: bool = True
    ) -> "Searched":
        """Run a contest, also from guesses made before, and leave out each fold of its links if asked for."""
        candidates = ground.run(chain(before, ground.guesses()), progress)
        left = left_outs(ground, candidates) if leave_out else []
        return cls(ground, candidates, left, mean_agreement(candidates, ground.n_classes))


def search(ground: Contest, progress: Progress, before: Sequence[Guessed] = (), *, leave_out: bool) -> Searched:
    """Run a contest that believes annotators, or one that learns how reliable they are if there is reason to.

    Guesses made ``before`` may know the links, so nothing that is compared with the points alone starts from them.
    """
    if ground.learn_reliability:
        return _or_points_alone(Searched.of(ground, progress, before), progress)
    named = names_annotators(ground.links)
    believing = Searched.of(ground, progress, before, leave_out=leave_out or named)
    if named and _hint(believing):
        doubting = Searched.of(_doubting(ground), progress, before)
        if _gain(doubting.left, believing.left) > -VETO:
            return _or_points_alone(doubting, progress)
    return believing


def _or_points_alone(doubting: Searched, progress: Progress) -> Searched:
    """The same, or a contest without links if that tells more about them."""
    ground = doubting.ground
    blind = replace(ground.given(Links(), ground.known), learn_reliability=False)
    candidates = blind.run(blind.guesses(), progress)
    best = candidates[0]
    log_joint = class_log_joint(blind.density(best.shape), best.parameters, blind.views[best.view].X)
    none = np.empty(0, dtype=np.int64)
    n_links = ground.links.n_must + ground.links.n_cannot
    left = [LeftOut(log_joint, ground.links, np.arange(n_links), none, none)]
    if not doubting.left or _gain(left, doubting.left) <= HINT:
        return doubting
    warnings.warn(
        f"the points alone predict {n_kept(left)[0]} of {n_links} links, fits that use the others predict fewer: "
        "classes were found without the links, which seem to be wrong too often; look at links_to_review_, or have "
        "some pairs answered again",
        UserWarning,
        stacklevel=2,
    )
    reliability = doubting.candidates[0].parameters.reliability
    judged = [ground.judged(replace(one, start=f"{ALONE}{one.start}")) for one in candidates]
    named = [replace(one, parameters=replace(one.parameters, reliability=reliability)) for one in judged]
    return Searched(ground, named, left, mean_agreement(candidates, ground.n_classes))


def _doubting(ground: Contest) -> Contest:
    """The same contest, in which no link is certain and the reliability of annotators is learned."""
    links = ground.links.at_most(FIRST_RELIABILITY)
    return replace(ground, learn_reliability=True).given(links, ground.known)


def _hint(believing: Searched) -> bool:
    """Whether a quick trial suggests that some annotators err."""
    kept, n_links = n_kept(believing.left)
    if n_links - kept <= ENOUGH_BROKEN * n_links:
        return False
    soft = _doubting(believing.ground)
    begun = [
        soft.begin(view, name, labels, SHAPE) for view in soft.views for name, labels in soft.guesses_of(view, GUESSES)
    ]
    found = left_outs(soft, [one for one in begun if one is not None], N_FOLDS)
    if len(found) < min(N_FOLDS, len(believing.left)):
        return False
    return _gain(found, believing.left[:N_FOLDS]) > HINT


def _gain(doubted: Sequence[LeftOut], believed: Sequence[LeftOut]) -> float:
    """Nats by which refits that doubt links predict those left out better than refits that believe them.

    All that counts is how many are kept. That wrong links are broken is expected; what their share is, is not known,
    only that more are right than wrong.
    """

    def log_probability(left: Sequence[LeftOut]) -> float:
        kept, n_links = n_kept(left)
        mostly_right = betainc(n_links - kept + 1, kept + 1, 0.5)
        return float(betaln(kept + 1, n_links - kept + 1) + np.log(max(mostly_right, np.finfo(np.float64).tiny)))

    return log_probability(doubted) - log_probability(believed)
