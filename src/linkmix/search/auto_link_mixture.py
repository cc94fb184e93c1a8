"""AutoLinkMixture: the best clustering from the links there are."""

import os
import warnings
from collections.abc import Callable, Iterable
from dataclasses import astuple
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from linkmix.basics.arrays import Array, Floats, Ints, log_sum_exp
from linkmix.basics.checks import check_choice, check_number, check_sample_weight
from linkmix.basics.errors import InfeasibleLinks
from linkmix.couplings import Graph
from linkmix.couplings.graph import unwarned
from linkmix.couplings.statements import FIRST_RELIABILITY
from linkmix.data.blocks import Blocks, Door, Source, Table
from linkmix.data.scaling import PLAIN, Rows, Scaling, scaled_blocks
from linkmix.engine import starts
from linkmix.engine.fitting import Knowledge, bind, few_threads, linked_labels, part
from linkmix.links import Links
from linkmix.links.checks import as_links, check_known_labels, check_links
from linkmix.mixture import model_file
from linkmix.mixture.link_mixture import LinkMixture, Points
from linkmix.search.budgets import BUDGETS, Budget
from linkmix.search.contest import REG_COVAR, Candidate, Contest, View, densities, leaderboard, place_of, run
from linkmix.search.guesses import first_guesses
from linkmix.search.shapes import SHAPES
from linkmix.search.structure import graphs

MOST_CLASSES = 10
"""Largest number of classes that is tried by itself."""
LAST_STEPS = 10
"""EM steps of the winner on all rows, if the search saw but a part of them; one step, if it saw all."""
ABOUT_AS_WELL = 3.0
"""Nats of the log-probability of the links by which a smaller number of classes may be behind."""

CHOICE = np.dtype(
    [
        ("n_classes", np.int64),
        ("links_broken", np.float64),
        ("log_probability_of_links", np.float64),
        ("structure", np.float64),
        ("log_likelihood", np.float64),
        ("bic", np.float64),
    ]
)


class AutoLinkMixture(ClusterMixin, BaseEstimator):
    """Mixture with links that chooses its start and its shape by the links.

    Fits mixtures from many first guesses, some of them made with the links, of Gaussian and of Student-t clusters, one
    or several per class, and takes the best one: by how well labels that do not know the links explain them, by how
    few neighbours they part, and by what the candidates agree on. EM stops after 30 steps, as more of them lead away
    from the user's classes. Columns are brought to unit variance first, and constant ones are left out, so the unit of
    a column does not matter; where some have long tails, half of the mixtures see these calmed by asinh. All links are
    coupled as a network. Where a link has a confidence, or a named annotator whose reliability is then learned, a
    wrong one does little harm.

    Parameters
    ----------
    n_classes : int or "auto", default=2
        Number of classes. "auto" tries 2 to 10 with a small budget and takes the fewest that explain the links about
        as well as any.
    committee : int, default=1
        Average the probabilities of so many of the best candidates. Probabilities are smoother then, and labels on
        average no better.
    budget : {"small", "default", "large"} or Budget, default="default"
        How many first guesses and shapes are tried, and on how many points: at most 1000, 2000 or 10,000 of them, the
        linked ones always among them. The winner is then fitted to all points.
    verbose : bool, default=False
        Whether to show progress bars, if the package tqdm is there.
    random_state : int, RandomState or None, default=None
        Source of randomness.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Class of each training point, honouring its links.
    best_estimator_ : LinkMixture
        The winner, fitted to the scaled points.
    estimators_ : list of LinkMixture
        The committee; the winner is the first.
    leaderboard_ : structured ndarray
        Every candidate, the best first: columns (plain, or calm tails), start, shape, links broken, log-probability of
        the links, structure (modularity of the labels), score, log-likelihood, BIC, number of EM steps, whether it was
        given up early, and seconds. ``pandas.DataFrame`` takes it as it is.
    choice_ : structured ndarray
        With ``n_classes="auto"`` the best candidate for each number of classes.
    links_to_review_ : structured ndarray
        Every link with the probability that it is wrong, the most suspicious first.
    n_classes_ : int
        Number of classes.
    center_, scale_ : ndarray of shape (n_features,)
        What was subtracted from each column, and what it was divided by; a scale of 0 marks a column left out.
    middle_, width_ : ndarray of shape (n_features,)
        If the winner sees long tails calmed: such a column was first replaced by ``arcsinh((x - middle_) / width_)``,
        which is linear in the middle and a logarithm far out. A width of 0 marks a column that was not.

    See Also
    --------
    LinkMixture : One mixture with settings of your own.

    Notes
    -----
    Candidates run in threads where joblib is told to: ``with joblib.parallel_config(n_jobs=4): model.fit(X)``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from linkmix import AutoLinkMixture, Links, purity
    >>> X, y = load_iris(return_X_y=True)
    >>> model = AutoLinkMixture(3, random_state=0).fit(X, links=Links.from_labels(y, 10, random_state=0))
    >>> purity(y, model.predict(X)) > 0.9
    True
    >>> float(model.leaderboard_["links_broken"][0])
    0.0
    """

    labels_: Ints

    def __init__(
        self,
        n_classes: int | str = 2,
        *,
        committee: int = 1,
        budget: str | Budget = "default",
        verbose: bool = False,
        random_state: int | RandomState | None = None,
    ) -> None:
        self.n_classes = n_classes
        self.committee = committee
        self.budget = budget
        self.verbose = verbose
        self.random_state = random_state

    def fit(
        self,
        X: Points,
        y: ArrayLike | None = None,
        *,
        links: Links | None = None,
        must_link: ArrayLike | None = None,
        cannot_link: ArrayLike | None = None,
        rows: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit mixtures to points and links, and keep the best.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Blocks
            The points. NaN stands for a value that is not known. `Blocks` and memory-mapped arrays are read block by
            block, and only linked rows and a sample are held in memory.
        y : array-like of shape (n_samples,), optional
            Known labels: class numbers from 0, and -1 where the class is not known.
        links : Links, optional
            Links between rows of `X`.
        must_link, cannot_link : array-like of shape (n_links, 2), optional
            The same as plain pairs of row numbers, instead of `links`.
        rows : array-like of shape (n_samples,), optional
            Number of each row of `X` in the table that the links speak of.
        sample_weight : array-like of shape (n_samples,), optional
            How often each point counts in the fits. Scaling and first guesses do not heed it.

        Returns
        -------
        AutoLinkMixture
            The fitted estimator.
        """
        before = dict(vars(self))
        try:
            return self._fit(X, y, as_links(links, must_link, cannot_link), rows, sample_weight)
        except BaseException:  # an earlier fit stays as it was
            self.__dict__ = before
            raise

    def _fit(self, X: Points, y: object, links: Links, rows: ArrayLike | None, sample_weight: ArrayLike | None) -> Self:
        self._check_parameters()
        points, blocks = self._points(X, reset=True)
        table = Rows(points, blocks)
        weights = check_sample_weight(sample_weight, len(table))
        learn = links.must_annotators is not None or links.cannot_annotators is not None
        links = links.at_most(FIRST_RELIABILITY) if learn else links
        random = check_random_state(self.random_state)
        seed = int(random.randint(2**31 - 1))

        def contest(n_classes: int, budget: Budget) -> tuple[Contest, list[Candidate]]:
            checked = check_links(links, len(table), n_classes, rows)
            known = check_known_labels(y, len(table), n_classes, checked)
            return self._contest(table, checked, weights, known, n_classes, learn, budget, seed)

        self.n_classes_ = self._choose(contest, len(table)) if self.n_classes == "auto" else int(self.n_classes)
        budget = self.budget if isinstance(self.budget, Budget) else BUDGETS[self.budget]
        ground, candidates = contest(self.n_classes_, budget)
        self.leaderboard_ = leaderboard(ground, candidates)

        checked = check_links(links, len(table), self.n_classes_, rows)
        known = check_known_labels(y, len(table), self.n_classes_, checked)
        columns = candidates[0].columns
        scaling = table.scalings[columns]
        self.center_, self.scale_, self.middle_, self.width_ = astuple(scaling)
        finished = [candidate for candidate in candidates if candidate.finished and candidate.columns == columns]
        chosen = finished[: self.committee] or candidates[:1]
        Z = table.all(scaling)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the search has its own number of steps
            self.estimators_ = [
                self._mixture(ground, candidate, len(table)).fit(Z, known, links=checked, sample_weight=weights)
                for candidate in chosen
            ]
        self.best_estimator_ = self.estimators_[0]
        self.links_to_review_ = self.best_estimator_.links_to_review_
        self._align(ground.views[columns].X)
        self._label(table, scaling, Z, checked, known, learn)
        return self

    def predict(self, X: Points) -> Ints:
        """Most probable class of each point, from the point alone.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points, also ones that the fit has not seen.

        Returns
        -------
        ndarray of shape (n_samples,)
            Class numbers.
        """
        return self._by_blocks(lambda Z: self._mean_probability(Z).argmax(axis=1), self._seen(X))

    def predict_proba(self, X: Points) -> Floats:
        """Probability of each class for each point, from the point alone; the mean over the committee.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Rows sum to one.
        """
        return self._by_blocks(self._mean_probability, self._seen(X))

    def score_samples(self, X: Points) -> Floats:
        """Log-density of each point, in the units of `X`; columns that were constant in the fit are left out.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points.

        Returns
        -------
        ndarray of shape (n_samples,)
            Log-densities under the mixture, or under the mean of the committee's mixtures.
        """
        scaling = self._scaling()

        def log_density(block: Array) -> Floats:
            densities = np.stack([model.score_samples(scaling(block)) for model in self.estimators_], axis=1)
            return np.asarray(log_sum_exp(densities) - np.log(densities.shape[1]) + scaling.log_slope(block))

        points, blocks = self._points(X, reset=False)
        if isinstance(points, Table):
            assert blocks is not None
            return np.concatenate([log_density(points.door.numbers(block)) for block in blocks])
        return log_density(points)

    def score(self, X: Points, y: object = None) -> float:
        """Mean log-density of the points.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points.
        y : object
            Not used.

        Returns
        -------
        float
            Mean of `score_samples`.
        """
        return float(self.score_samples(X).mean())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted estimator to one file, which holds no code and can be read on any machine.

        Parameters
        ----------
        path : path
            Where; a file of this name is replaced, and never half.
        """
        model_file.save(path, self)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read an estimator from a file that `save` wrote.

        Parameters
        ----------
        path : path
            The file. One that is cut off, changed or of another kind is refused.

        Returns
        -------
        AutoLinkMixture
            The fitted estimator.
        """
        estimator: Self = model_file.load(path, [cls], [LinkMixture]).estimator
        return estimator

    def __sklearn_tags__(self) -> Tags:
        """Missing values are fine."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _check_parameters(self) -> None:
        if self.n_classes != "auto":
            if isinstance(self.n_classes, str):
                raise ValueError(f"n_classes={self.n_classes!r}: give a number of classes, or 'auto'")
            check_number("n_classes", self.n_classes, Integral, 1)
        check_number("committee", self.committee, Integral, 1)
        if not isinstance(self.budget, Budget):
            check_choice("budget", self.budget, BUDGETS, " or a Budget")

    def _contest(
        self,
        table: Rows,
        links: Links,
        weights: Floats | None,
        known: Ints | None,
        n_classes: int,
        learn: bool,
        budget: Budget,
        seed: int,
    ) -> tuple[Contest, list[Candidate]]:
        """Fit all candidates to the points, or to a sample of them that holds all linked ones."""
        if len(table) < n_classes:
            raise ValueError(
                f"n_samples={len(table)} is less than n_classes={n_classes}: pass more points or ask for fewer"
            )
        rows = _sample(len(table), links, weights, known, budget.n_points, seed)
        X = table.take(rows)
        links = links if len(rows) == len(table) else links.restrict(rows)
        weights = None if weights is None else weights[rows]
        known = None if known is None else known[rows]
        plain = table.scalings[PLAIN].log_slope(X)
        seen = {name: Knowledge(scaling(X), links, weights, known) for name, scaling in table.scalings.items()}
        views = {
            name: View(some.X, part(some), float((table.scalings[name].log_slope(X) - plain).sum()))
            for name, some in seen.items()
        }
        coupling = Graph(learn, quick=True)
        with unwarned():  # the winner is fitted with all there is
            models = {
                name: bind(density, coupling, links, n_classes, 1.0)
                for name, density in densities(views[PLAIN].X.shape[1]).items()
            }
        filled = {name: starts.without_gaps(view.X) for name, view in views.items()}
        X = starts.without_gaps(X[:, table.scalings[PLAIN].scale > 0])
        ground = Contest(views, links, weights, models, graphs([*filled.values()], X), n_classes)
        if known is not None:  # for the guesses, known labels are links like others
            links = links.union(Links.from_labels(known))
        guesses = [
            (view, name, _renumbered(labels, known, n_classes))
            for view, Z in filled.items()
            for name, labels in first_guesses(
                Z, X if len(views) == 1 else Z, links, n_classes, budget.guesses, RandomState(seed)
            )
        ]
        with few_threads(*X.shape):
            return ground, run(ground, guesses, budget, seed, self._progress)

    def _choose(self, contest: Any, n_rows: int) -> int:
        """Try all numbers of classes with a small budget and choose one by the best candidate of each."""
        found, reason = [], None
        for n_classes in range(2, min(MOST_CLASSES, n_rows) + 1):
            try:
                ground, (best, *_) = contest(n_classes, BUDGETS["small"])
            except InfeasibleLinks as error:  # more classes may do
                reason = error
                continue
            evidence = best.evidence
            seen = evidence.broken, evidence.log_probability, evidence.structure, best.log_likelihood, ground.bic(best)
            found.append((n_classes, *seen))
        if not found:
            raise reason or ValueError(f"n_samples={n_rows} is too few to choose a number of classes: give n_classes")
        self.choice_ = np.array(found, dtype=CHOICE)
        return number_of_classes(self.choice_)

    def _mixture(self, ground: Contest, candidate: Candidate, n_rows: int) -> LinkMixture:
        """The candidate as an estimator that goes on from where it is."""
        shape, parameters = SHAPES[candidate.shape], candidate.parameters
        density = ground.model(candidate.shape).density
        start = {
            "class_weights": parameters.class_weights,
            "cluster_weights": parameters.cluster_weights,
            **density.attributes(parameters.components, (ground.n_classes, shape.clusters)),
        }
        return LinkMixture(
            ground.n_classes,
            clusters_per_class=shape.clusters,
            shared_clusters=shape.shared,
            density=shape.density,
            coupling="graph",
            shrinkage="auto",
            reg_covar=REG_COVAR,
            init=start,
            max_iter=LAST_STEPS if ground.shape[0] < n_rows else 1,
            random_state=0,
        )

    def _align(self, Z: Floats) -> None:
        """Which class of each member is which class of the first one."""
        all_of_them = [model.predict_proba(Z) for model in self.estimators_]
        self._places = [place_of(each, all_of_them[0]) for each in all_of_them]

    def _mean_probability(self, Z: Floats) -> Floats:
        each = [model.predict_proba(Z)[:, place] for model, place in zip(self.estimators_, self._places, strict=True)]
        return np.asarray(np.mean(each, axis=0))

    def _label(
        self, table: Rows, scaling: Scaling, Z: Floats | Blocks, links: Links, known: Ints | None, learn: bool
    ) -> None:
        """Labels of the training points: of the only member, or of the committee with the links put in again."""
        if len(self.estimators_) == 1:
            self.labels_ = self.best_estimator_.labels_
            return
        self.labels_ = self._by_blocks(lambda block: self._mean_probability(block).argmax(axis=1), Z)
        if known is not None:
            self.labels_ = np.where(known >= 0, known, self.labels_)
        points = links.points
        if len(points):
            linked = scaling(table.take(points))
            with np.errstate(divide="ignore"):
                log_probability = np.maximum(np.log(self._mean_probability(linked)), -1e3)
            parameters = self.best_estimator_._parameters
            even = np.full(self.n_classes_, 1 / self.n_classes_)
            density = densities(linked.shape[1])["gaussian"]  # which has no part in this
            model = bind(density, Graph(learn), links, self.n_classes_, 1.0)
            parameters = type(parameters)(even, parameters.cluster_weights, None, parameters.reliability)
            among = Knowledge(linked, links.restrict(points), None, None if known is None else known[points])
            self.labels_[points] = linked_labels(model, part(among), links, parameters, log_probability)

    def _points(self, X: Points, *, reset: bool) -> tuple[Floats | Table, Blocks | None]:
        """Checked points: an array, or a table and where it comes from."""
        if isinstance(X, np.memmap) and X.ndim == 2:
            X = Blocks.from_array(X)
        if not isinstance(X, Source):
            points: Floats = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=reset)
            return points, None
        if not isinstance(X, Blocks):
            raise ValueError(
                f"X is a {type(X).__name__}, and AutoLinkMixture reads arrays and Blocks: fit it to a sample, and give "
                "what it found to LinkMixture as init"
            )
        table = X.enter(Door([np.float64], True, densities(1)["gaussian"].check))
        validate_data(self, table.head, skip_check_array=True, reset=reset)
        return table.gathered(), X

    def _scaling(self) -> Scaling:
        check_is_fitted(self)
        none = np.zeros_like(self.center_)  # models of early files calm no tails
        return Scaling(self.center_, self.scale_, getattr(self, "middle_", none), getattr(self, "width_", none))

    def _seen(self, X: Points) -> Floats | Blocks:
        scaling = self._scaling()
        points, blocks = self._points(X, reset=False)
        return scaled_blocks(blocks, points, scaling) if isinstance(points, Table) else scaling(points)

    @staticmethod
    def _by_blocks(function: Callable[[Floats], Array], Z: Floats | Blocks) -> Array:
        """What a function says of all rows, of a block at a time if they come in blocks."""
        return np.concatenate([function(block) for block in Z]) if isinstance(Z, Blocks) else np.asarray(function(Z))

    def _progress(self, results: Iterable[Any], total: int) -> Iterable[Any]:
        if self.verbose:
            try:
                from tqdm.auto import tqdm
            except ImportError:
                pass
            else:
                return tqdm(results, total=total, desc="candidates", unit="fit")  # type: ignore[no-any-return]
        return results


def number_of_classes(table: Array) -> int:
    """Fewest classes that explain the links about as well as any number; by BIC, if links rule out no number.

    Parameters
    ----------
    table : structured ndarray
        The best candidate for each number of classes, with the fewest classes first.

    Returns
    -------
    int

    Examples
    --------
    >>> table = np.zeros(3, dtype=CHOICE)
    >>> table["n_classes"], table["bic"] = [2, 3, 4], [9.0, 8.0, 7.0]
    >>> number_of_classes(table)
    4
    >>> table["log_probability_of_links"] = [-20.0, -2.0, -1.0]
    >>> number_of_classes(table)
    3
    """
    misfit = table["log_probability_of_links"].max() - table["log_probability_of_links"]
    fits = np.flatnonzero(misfit <= ABOUT_AS_WELL)
    best = fits[0] if fits[0] > 0 else fits[np.argmin(table["bic"][fits])]
    return int(table["n_classes"][best])


def _sample(n: int, links: Links, weights: Floats | None, known: Ints | None, at_most: int, seed: int) -> Ints:
    """Numbers of all rows, or of those that are linked or known and a random choice of the others."""
    if n <= at_most:
        return np.arange(n)
    needed = np.zeros(n, dtype=bool)
    needed[links.points] = True
    if known is not None:
        needed |= known >= 0
    others = np.flatnonzero(~needed if weights is None else ~needed & (weights > 0))
    n_others = min(len(others), max(at_most - int(needed.sum()), at_most // 2))
    drawn = RandomState(seed).choice(others, n_others, replace=False)
    return np.sort(np.concatenate([np.flatnonzero(needed), drawn]))


def _renumbered(labels: Ints, known: Ints | None, n_classes: int) -> Ints:
    """Labels with the numbers that the known ones have, and the known ones themselves."""
    if known is None:
        return labels
    labels = starts.match_labels(labels, known, n_classes)[labels]
    return np.where(known >= 0, known, labels)
