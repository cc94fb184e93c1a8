"""Chooses the number of clusters per class, the covariance type and the number of classes by cross-validation.

Each fold hides some points and all links that touch them. A mixture is fitted to the rest, and judged by what it has
not seen: how probable the hidden points are, and whether its labels from the points alone agree with the hidden links.
The links come first, since they say which classes are wanted; a better likelihood may be that of other classes.
"""

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike

from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.basics.checks import refuse_sparse
from linkmix.basics.errors import DegenerateCluster, InfeasibleLinks
from linkmix.data.sample import sample_around
from linkmix.densities import FORMS
from linkmix.links import Links
from linkmix.mixture import LinkMixture
from linkmix.search.ranking import weigh

TABLE = np.dtype(
    [
        ("n_classes", np.int64),
        ("clusters_per_class", "U64"),
        ("covariance_type", "U9"),
        ("n_parameters", np.int64),
        ("log_likelihood", np.float64),
        ("log_likelihood_error", np.float64),
        ("links_agree", np.float64),
        ("links_agree_error", np.float64),
        ("log_probability_of_links", np.float64),
        ("log_probability_of_links_error", np.float64),
        ("chosen", np.bool_),
    ]
)
MOST_ROWS = 5000
"""With more rows than this, shapes are compared on the linked ones and a random sample of the others."""
FEWEST_LINKS = 10
"""With fewer links than this, the share of hidden links that agree says nothing: two in each of five folds."""


class Shape(NamedTuple):
    """What is chosen.

    Attributes
    ----------
    n_classes : int
        Number of classes.
    clusters_per_class : int or list of int
        Clusters that make up a class, or one number for each class.
    covariance_type : {"full", "tied", "diag", "spherical"}
        Form of the covariances.
    """

    n_classes: int
    clusters_per_class: int | list[int]
    covariance_type: str

    @property
    def clusters(self) -> str:
        """The number of clusters as the command line takes it.

        Examples
        --------
        >>> Shape(3, [1, 2, 1], "full").clusters
        '1,2,1'
        """
        each = self.clusters_per_class
        return ",".join(map(str, each)) if isinstance(each, list) else str(each)

    def __str__(self) -> str:
        """The shape in words.

        Examples
        --------
        >>> str(Shape(3, 2, "diag"))
        '3 classes of 2 clusters with diag covariances'
        """
        one = self.clusters == "1"
        return (
            f"{self.n_classes} classes of {self.clusters} cluster{'' if one else 's'} with {self.covariance_type} "
            "covariances"
        )


@dataclass(frozen=True, eq=False)
class Judged:
    """A shape and how it did in each fold.

    Attributes
    ----------
    shape : Shape
        What was fitted.
    n_parameters : int
        Number of its free parameters.
    likelihood : ndarray of shape (n_folds,)
        Mean log-density of the hidden points.
    agree : ndarray of shape (n_folds,)
        Share of the hidden links that the labels agree with; missing in a fold that hides none.
    log_probability : ndarray of shape (n_folds,)
        Mean log-probability of the hidden links, each no less than that of a link that is surely broken.
    """

    shape: Shape
    n_parameters: int
    likelihood: Floats
    agree: Floats
    log_probability: Floats


@dataclass(frozen=True, eq=False)
class Choice:
    """What cross-validation says about shapes.

    Attributes
    ----------
    judged : tuple of Judged
        Every shape that could be fitted, in the order in which they were given.
    chosen : Shape
        The recommended one.
    reason : str
        Why, in a sentence or two.
    left_out : tuple of (Shape, str)
        Shapes that could not be fitted, and why.
    """

    judged: tuple[Judged, ...]
    chosen: Shape
    reason: str
    left_out: tuple[tuple[Shape, str], ...]

    @property
    def table(self) -> Array:
        """All shapes with means over the folds and their standard errors, as a structured array."""
        rows = [
            (
                one.shape.n_classes,
                one.shape.clusters,
                one.shape.covariance_type,
                one.n_parameters,
                *mean_and_error(one.likelihood),
                *mean_and_error(one.agree),
                *mean_and_error(one.log_probability),
                one.shape == self.chosen,
            )
            for one in self.judged
        ]
        return np.array(rows, dtype=TABLE)


def choose(
    X: ArrayLike,
    links: Links,
    n_classes: int | Sequence[int],
    *,
    clusters_per_class: Sequence[int | list[int]] = (1, 2, 3),
    covariance_types: Sequence[str] = tuple(FORMS),
    n_folds: int = 5,
    random_state: int = 0,
    make: Callable[..., LinkMixture] | None = None,
    progress: Callable[[Iterable[Any]], Iterable[Any]] = iter,
) -> Choice:
    """Choose the shape of a mixture by points and links that it has not seen.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        The points, preferably with columns of unit variance.
    links : Links
        Links between them.
    n_classes : int or sequence of int
        Number of classes, or several to choose from.
    clusters_per_class : sequence of int, or of lists
        Numbers to choose from; a list has one number for each class.
    covariance_types : sequence of str
        Forms to choose from.
    n_folds : int, default=5
        Number of parts of the points, each of which is hidden once.
    random_state : int, default=0
        Seed of the folds, of the starts, and of the sample of rows if there are more than 5000.
    make : callable, optional
        Makes the mixture, from keyword arguments with the names of the fields of `Shape` and ``random_state``. By
        default that of ``linkmix fit --method linkmix``, with three starts instead of ten: links as one network, starts
        that know the links, covariances shrunk to the pooled one.
    progress : callable, optional
        Wraps the list of fits, for example to show a progress bar.

    Returns
    -------
    Choice
        The rule of one standard error, three times: shapes whose share of hidden links that agree is no more than one
        standard error behind the best; among these, the same for the likelihood of hidden points; among these, the one
        with the fewest parameters. Errors are those of paired differences over folds. With fewer than ten links the
        likelihood alone decides, and ``reason`` says so.

    Examples
    --------
    >>> import linkmix
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> links = linkmix.Links.from_labels(y, 40, random_state=0)
    >>> found = linkmix.choose(X, links, 3, clusters_per_class=[1, 2], covariance_types=["full", "diag"])
    >>> found.chosen
    Shape(n_classes=3, clusters_per_class=1, covariance_type='full')
    >>> found.table["links_agree"].round(2).tolist()
    [0.98, 0.94, 0.89, 0.9]
    """
    refuse_sparse(X)
    points = np.asarray(X, dtype=np.float64)
    links.check_rows(len(points))
    links = links.distinct()
    if len(points) > MOST_ROWS:
        rows = sample_around(len(points), links.points, MOST_ROWS, RandomState(random_state))
        points, links = points[rows], links.restrict(rows)
    folds = hidden_rows(len(points), n_folds, random_state)
    numbers = [n_classes] if isinstance(n_classes, int | np.integer) else list(n_classes)
    shapes = [Shape(int(m), k, form) for m in numbers for k in clusters_per_class for form in covariance_types]
    if not shapes:
        raise ValueError("there are no shapes to choose from: give at least one number of classes, clusters and a form")
    found: dict[int, list[tuple[int, float, float, float]]] = {}
    failed: dict[int, str] = {}
    for number, hidden in progress([(number, hidden) for number in range(len(shapes)) for hidden in folds]):
        if number in failed:
            continue
        shape = shapes[number]
        model = (make or _mixture)(**shape._asdict(), random_state=random_state)
        try:
            found.setdefault(number, []).append(_judge(model, points, links, hidden))
        except (DegenerateCluster, InfeasibleLinks) as error:
            failed[number] = str(error)
        except ValueError as error:
            if "n_samples=" not in str(error):
                raise
            failed[number] = str(error)
    left_out = tuple((shapes[number], why) for number, why in failed.items())
    judged = tuple(
        Judged(shapes[number], int(scores[0][0]), *(np.array(part) for part in list(zip(*scores, strict=True))[1:]))
        for number, scores in found.items()
        if number not in failed
    )
    if not judged:
        raise ValueError(f"no shape can be fitted to {len(points)} rows, such as {shapes[0]}: {failed[0]}")
    chosen, reason = decide(judged, links.n_must + links.n_cannot)
    return Choice(judged, chosen, reason, left_out)


def hidden_rows(n_rows: int, n_folds: int, random_state: int) -> list[Ints]:
    """Rows that each fold hides.

    Examples
    --------
    >>> [len(rows) for rows in hidden_rows(12, 5, 0)]
    [3, 3, 2, 2, 2]
    """
    from sklearn.model_selection import KFold  # late: the module takes 0.2 s to import

    if not 2 <= n_folds <= n_rows:
        raise ValueError(f"n_folds={n_folds} with {n_rows} rows: use at least 2 and at most as many folds as rows")
    dealt = KFold(n_folds, shuffle=True, random_state=random_state).split(np.empty((n_rows, 1)))
    return [hidden for _, hidden in dealt]


def decide(judged: Sequence[Judged], n_links: int) -> tuple[Shape, str]:
    """The shape that the rule of one standard error recommends, and why."""
    likelihood = np.array([one.likelihood for one in judged])
    near, which = np.arange(len(judged)), f"the {len(judged)} shapes"
    if n_links >= FEWEST_LINKS:
        agree = np.array([one.agree for one in judged])
        near, means = near[within_one_error(agree)], np.nanmean(agree, axis=1)
        which = f"these {len(near)}"
        said = (
            f"{100 * means.max():.1f} % of the hidden links agree with the best shape; {len(near)} of {len(judged)} "
            f"shapes are no more than one standard error behind ({100 * means[near].min():.1f} % or more). "
        )
    else:
        counted = "no links" if not n_links else "1 link" if n_links == 1 else f"{n_links} links"
        said = (
            f"There are {counted}, too few to hide some (at least {FEWEST_LINKS} are needed), so the likelihood of "
            "hidden points decides alone; it may prefer other classes than you want. "
        )
    close = near[within_one_error(likelihood[near])]
    first = int(close[np.argmin([judged[number].n_parameters for number in close])])
    if len(near) > 1:
        said += (
            f"Of {which}, {len(close)} {'is' if len(close) == 1 else 'are'} no more than one standard error behind the "
            f"best log-likelihood of hidden points, {likelihood[near].mean(axis=1).max():.3f} per point. "
        )
    if len(close) > 1:
        said += f"Of these {len(close)} it has the fewest parameters, {judged[first].n_parameters}."
    return judged[first].shape, said.strip()


def within_one_error(scores: Floats) -> Array:
    """Which rows of scores are behind the best on average by no more than the standard error of the difference.

    Parameters
    ----------
    scores : ndarray of shape (n_candidates, n_folds)
        A score that should be high; missing where a fold has none.

    Examples
    --------
    >>> within_one_error(np.array([[1.0, 2.0, 3.0], [0.9, 2.1, 2.9], [0.5, 1.5, 2.5]])).tolist()
    [True, True, False]
    """
    best = scores[np.nanmean(scores, axis=1).argmax()]
    behind = [mean_and_error(best - one) for one in scores]
    return np.array([mean <= error + 1e-12 for mean, error in behind])


def mean_and_error(values: Floats) -> tuple[float, float]:
    """Mean over the folds that have a value, and its standard error; both missing without any.

    Examples
    --------
    >>> mean_and_error(np.array([1.0, 3.0, np.nan]))
    (2.0, 1.0)
    """
    there = values[~np.isnan(values)]
    if not len(there):
        return float("nan"), float("nan")
    error = float(there.std(ddof=1) / np.sqrt(len(there))) if len(there) > 1 else 0.0
    return float(there.mean()), error


def _mixture(**settings: Any) -> LinkMixture:
    return LinkMixture(**settings, coupling="graph", init="links", n_init=3, shrinkage="auto")


def _judge(model: LinkMixture, X: Floats, links: Links, hidden: Ints) -> tuple[int, float, float, float]:
    """Number of parameters, log-likelihood of hidden points, share and log-probability of hidden links."""
    is_hidden = np.zeros(len(X), dtype=np.bool_)
    is_hidden[hidden] = True
    seen = np.flatnonzero(~is_hidden)
    kept = links.restrict(seen)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a fit that did not converge is judged as it is
        model.fit(X[seen], links=kept)
    n_parameters = round(model.aic(X[seen], kept) / 2 + model.log_likelihood(X[seen], kept))
    unseen = links.where(is_hidden[links.must].any(axis=1), is_hidden[links.cannot].any(axis=1))
    score = model.score(X[hidden])
    found = weigh(model.predict_proba(X), unseen)
    if not found.n_links:
        return n_parameters, score, float("nan"), float("nan")
    return n_parameters, score, 1 - found.broken / found.n_links, found.log_probability / found.n_links
