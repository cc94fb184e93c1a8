"""Calibrates the probabilities of one mixture, and estimates how good it is, by refits without some of the links."""

import warnings
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike
from sklearn.base import clone

from linkmix.basics.arrays import Floats, Ints
from linkmix.basics.checks import check_sample_weight
from linkmix.basics.errors import DegenerateCluster
from linkmix.data.blocks import Source
from linkmix.links.checks import LinksLike, as_links, check_ids, check_known_labels, check_y
from linkmix.links.names import check_names, number_names
from linkmix.links.reading import read_random_state
from linkmix.mixture.calibration import LeftOut, Quality, level, quality, temperatures, tempered
from linkmix.mixture.door import LinkEstimator, PointsLike
from linkmix.mixture.folds import folds
from linkmix.mixture.link_mixture import LinkMixture


@dataclass(frozen=True, eq=False)
class Calibration:
    """A fitted mixture with honest probabilities.

    Attributes
    ----------
    model : LinkMixture
        The mixture, fitted to all links.
    level : float
        How sure it may be, from 0 (all classes equally probable) to 1 (no doubt).
    temperature : float
        What its log-densities are divided by; at least 1.
    quality : Quality or None
        How good its labels are; None if that cannot be told from links of one kind.
    """

    model: LinkMixture
    level: float
    temperature: float
    quality: Quality | None

    def predict_proba(self, X: PointsLike) -> Floats:
        """Calibrated probability of each class for each point, from the point alone.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Blocks
            The points.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Rows sum to one. The most probable class is that of ``model.predict``.
        """
        return tempered(self.model.predict_log_joint(X), self.temperature)


def calibrate(
    model: LinkMixture,
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    links: LinksLike | None = None,
    ids: Iterable[Hashable] | None = None,
    sample_weight: ArrayLike | None = None,
) -> Calibration:
    """Make the probabilities of a mixture honest, and estimate how good its labels are.

    The mixture is fitted again five times, each time without a fifth of the links and of the known labels. What these
    refits say about what they have not seen tells how sure the mixture may be.

    Parameters
    ----------
    model : LinkMixture
        An unfitted one is cloned and fitted. A fitted one is kept as it is; its settings are used for the refits.
    X : array-like of shape (n_samples, n_features)
        The points, or a sample of those that a fitted model has seen. All linked rows should be among them.
    y : array-like of shape (n_samples,), optional
        Known labels, as in ``LinkMixture.fit``: class numbers from 0, and -1 where the class is not known, or names.
    links : Links, or a table of links, optional
        Links between rows of `X`: those that the model is, or was, fitted to. By default the model's own ``links``.
    ids : sequence of shape (n_samples,), optional
        For a table of links: the ids of the rows of `X`, as in ``LinkMixture.fit``.
    sample_weight : array-like of shape (n_samples,), optional
        How often each point counts in the fits.

    Returns
    -------
    Calibration
        The fitted model with its temperature and its quality.

    Notes
    -----
    `AutoLinkMixture` calibrates itself. Links are assumed to be between random points; fewer than about ten tell
    little.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> import linkmix
    >>> X, y = load_wine(return_X_y=True)
    >>> links = linkmix.Links.from_labels(y, 60, random_state=0)
    >>> model = linkmix.LinkMixture(3, coupling="graph", covariance_type="diag", random_state=0)
    >>> found = linkmix.calibrate(model, X, links=links)
    >>> found.temperature > 1
    True
    >>> float(found.predict_proba(X).max(axis=1).mean()) < float(found.model.predict_proba(X).max(axis=1).mean())
    True
    >>> print(found.quality)
    About 93 % of all pairs are judged as you would (86 to 100 %), from 60 links.
    """
    _check(model, X)
    given = as_links(model.links if links is None else links, ids=ids, X=X).distinct()
    points: Any = X if hasattr(X, "shape") else np.asarray(X)  # a data frame keeps its names of columns
    n = len(points)
    check_ids(ids, n)
    check_y(y, n)
    given.check_rows(n)
    weights = check_sample_weight(sample_weight, n)
    numbers, names = number_names(y, n, getattr(model, "_names", ()))
    check_names(names, model.n_classes)
    known = check_known_labels(numbers, n, model.n_classes, given.certain())
    random = read_random_state(model.random_state)
    dealt = list(folds(given, known, RandomState(random.randint(2**31 - 1))))
    if not dealt:
        raise ValueError("there are neither links nor known labels to leave out: pass some to calibrate by")
    whole = model
    if not hasattr(model, "n_features_in_"):
        whole = clone(model).fit(points, y, links=given, sample_weight=weights)
    log_joint = whole.predict_log_joint(points)
    left = []
    for fold in dealt:
        refit = clone(model).set_params(random_state=int(random.randint(2**31 - 1)))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # the fit to everything has warned already
                refit.fit(points, fold.known, links=fold.kept, sample_weight=weights)
        except DegenerateCluster:
            continue
        left.append(LeftOut(refit.predict_log_joint(points), fold.left, fold.at, *fold.comparable()))
    sure = level(left, _agreement([log_joint.argmax(axis=1), *(one.log_joint.argmax(axis=1) for one in left)]))
    temperature = float(temperatures(log_joint, np.array([sure]))[0])
    return Calibration(whole, sure, temperature, quality(tempered(log_joint, temperature), left))


def _check(model: object, X: object) -> None:
    """Raise an error for what cannot be calibrated."""
    if isinstance(model, LinkEstimator) and not isinstance(model, LinkMixture):
        raise ValueError(
            f"model is an {type(model).__name__}, whose fit calibrates its probabilities already: use its "
            "predict_proba and quality_, with calibrate=True"
        )
    if not isinstance(model, LinkMixture):
        raise ValueError(f"model is a {type(model).__name__}: give a LinkMixture")
    if isinstance(X, Source):
        raise ValueError(
            f"X is a {type(X).__name__}, and calibrate needs points in memory: fit the model to all of them, and "
            "calibrate it with the linked rows and a sample of the others"
        )


def _agreement(labels: Sequence[Ints]) -> float:
    """Mean adjusted Rand index of all pairs of labellings."""
    from sklearn.metrics import adjusted_rand_score  # late: a fit does without it, and the module takes 0.1 s to import

    found = [adjusted_rand_score(one, other) for one, other in combinations(labels, 2)]
    return float(np.mean(found)) if found else 0.0
