"""AutoLinkMixture: tries many starts and shapes, and keeps the mixture that explains the links best."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, replace
from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.random import Generator, RandomState
from sklearn.utils import Tags
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from linkmix import engine
from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.basics.checks import Constraints, at_least
from linkmix.basics.progress import LOG, follow
from linkmix.columns import mostly_truth_values, needs_recipe
from linkmix.couplings.review import links_to_review_by
from linkmix.couplings.statements import FIRST_RELIABILITY
from linkmix.data.blocks import Door, Table, take
from linkmix.data.scaling import Scaling
from linkmix.engine.fitting import few_threads, naming_rows
from linkmix.links import Links
from linkmix.mixture import LinkMixture
from linkmix.mixture.calibration import Quality, left_out_together, level, quality, temperatures, tempered
from linkmix.mixture.door import PointsLike, Request
from linkmix.mixture.fitted import each_row, trusted
from linkmix.mixture.generative import Generative
from linkmix.search.belief import search
from linkmix.search.budgets import BUDGETS, Budget, BudgetName
from linkmix.search.contest import THE_LAST, Guessed, place_of
from linkmix.search.number import compare_numbers, fewest_classes, largest_number, number_of_classes
from linkmix.search.settings import SearchSettings
from linkmix.search.winner import (
    Committee,
    Found,
    as_member,
    committee_labels,
    contest_of,
    numbered_as_before,
    probabilities_of,
    rows_of,
    views_of,
)


class AutoLinkMixture(Generative):
    """Mixture with links that chooses its start and its shape by the links.

    Fits mixtures of Gaussian and Student-t clusters, one or several per class, from many first guesses, and takes the
    best one. Candidates are judged by how well labels computed without the links explain the links, by how few
    neighbours they separate, and by how well they agree with the other candidates. EM stops after 30 steps, since more
    steps lead away from the user's classes. Columns are scaled to unit variance first, so units do not matter. Columns
    of noise are left out, as constant ones are: those that are independent of all others, do not fall into two parts,
    and have nothing to do with the links or with known labels. Where columns have long tails, half of the mixtures see
    the tails compressed by asinh. If there are more than 50 columns, the mixtures see their principal components. All
    links are coupled as one network. A wrong link does little harm if it has a confidence. Links are believed until
    they contradict each other; if they name their annotators, how often each of these is right is learned then.

    Parameters
    ----------
    n_classes : int or "auto", default=2
        Number of classes. "auto" compares up to 50 by short fits and takes the number that explains links and points
        best; the search is then run once, for this number. Classes that no link separates and that have no gap between
        them cannot be told apart.
    committee : int, default=1
        Number of best candidates whose probabilities are averaged. More than one gives smoother probabilities, but on
        average no better labels.
    budget : {"small", "default", "large"} or Budget, default="default"
        How many first guesses and shapes are tried, and on how many points: at most 1000, 2000 or 10,000 of them, the
        linked ones always among them. The winner is then fitted to all points.
    kinds : mapping of str to str, optional
        For a table of pandas, polars or pyarrow: what some of its columns are, such as ``{"zip": "category"}``; the
        others are looked at. `linkmix.columns.KINDS` lists the kinds.
    calibrate : bool, default=True
        Whether to estimate, by refits without some of the links, how sure the probabilities may be and how good the
        result is. Without it a fit takes about a quarter less time, and probabilities are those of the mixture, which
        are nearly always too close to 0 and 1.
    noise : bool, default=False
        Whether points may belong to no class, as in HDBSCAN. A wide background then competes with the classes for
        every point; `predict` and ``labels_`` give -1 to a point that it wins, or the text "-1" if classes have names.
        Clusters have no heavy tails then, which would compete for the same points.
    warm_start : bool, default=False
        Whether a second `fit` also starts from the classes that the first one gives to its points, besides all other
        guesses, and numbers its classes like the first. So class 0 stays class 0 as far as there is one like it, and
        names of classes are kept if their number is the same. The first fit may have seen links that are now left out
        to calibrate, so no refit for `quality_` and the probabilities starts from it. A fit takes no less time.
    links : Links, optional
        Links that `fit` uses where it is given none, for tools that call ``fit(X)`` or ``fit(X, y)``. Their row numbers
        are those of the X that they will pass; to fit to some of its rows, as in cross-validation, pass ``rows``.
    n_jobs : int, optional
        Number of threads that make guesses and candidates: None for one, unless joblib is configured otherwise; -1 for
        all processors. The result does not depend on it.
    verbose : bool, default=False
        Whether to show progress bars, if the package tqdm is installed. The logger "linkmix" tells more: see
        `logging` in the standard library.
    random_state : int, RandomState, Generator or None, default=None
        Determines all random choices.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes_,)
        The classes, in the order of all arrays: 0, 1 and so on; or, if `y` had names, these in alphabetical order as
        text, and after them the other classes by the text of their numbers, such as "2".
    labels_ : ndarray of shape (n_samples,)
        Class of each training point, as an entry of ``classes_``, honouring its links; with noise, -1 for a point of no
        class. Points that certain must-links hold together are noise together or not at all.
    probabilities_ : ndarray of shape (n_samples,) or None
        Probability of the label of each training point, from the point alone as in `predict_proba`: a low one may mean
        that links decided. It is 0 for a point of no class. None for points that are not in memory.
    best_estimator_ : LinkMixture
        The winner, fitted to the scaled points; its classes have numbers.
    estimators_ : list of LinkMixture
        The committee; the winner is the first.
    leaderboard_ : structured ndarray
        Every candidate, the best first: columns ("plain", "calm" with long tails compressed, or "components" of many
        columns), start, shape, links broken, log-probability of the links, structure (modularity of the labels), score,
        log-likelihood, BIC, number of EM steps, whether it was given up early, and seconds. It can be passed to
        ``pandas.DataFrame``.
    choice_ : structured ndarray
        With ``n_classes="auto"``, a short fit for each number of classes that was tried: number of classes, links
        broken, log-probability of the links and known labels, structure, log-likelihood, BIC, and the score by which
        the number is chosen. Other columns are as in `leaderboard_`, which has longer fits.
    quality_ : Quality or None
        How good the result is: ``pairs_right``, the share of all pairs of points that are judged as the user would,
        with a 90 % interval from ``low`` to ``high``. None if that cannot be told: without links, or with links of one
        kind. ``print(model.quality_)`` says it in words. It rests on links that were not chosen.
    temperatures_ : ndarray of shape (committee,)
        What the log-densities of each member are divided by, so that probabilities are honest.
    links_to_review_ : structured ndarray
        Every link with the probability that it is wrong, the most suspicious first, by refits that have not seen it. A
        certain link is ranked as if it had a confidence of 0.95.
    relation_probability_ : ndarray of shape (n_relations,)
        Probability that each relation is satisfied, in the order of ``links.relations``, learned or given.
    relations_to_review_ : structured ndarray
        Every set of every relation with the probability that its labels do not satisfy it, as in `LinkMixture`.
    n_classes_ : int
        Number of classes.
    noise_share_ : float
        With noise, the expected share of points that belong to no class, as learned.
    center_, scale_ : ndarray of shape (n_features,)
        What was subtracted from each column, and what it was divided by; a scale of 0 marks a column left out, as
        constant or as noise.
    middle_, width_ : ndarray of shape (n_features,)
        If the winner sees compressed tails: a column with a long tail was first replaced by
        ``arcsinh((x - middle_) / width_)``, which is linear near the middle and logarithmic far from it. A width of 0
        marks a column that was left as it is.
    components_ : ndarray of shape (n_components, n_features) or None
        With more than 50 columns: the principal components, as combinations of the scaled columns, that the mixtures
        see in their place; at most 20, without those that are noise. Columns share one scale then if they vary alike,
        as pixels do. A missing value counts as the mean of its column.
    noise_variance_ : float
        Variance of the scaled columns in each direction that the components leave out; 0 without components.

    See Also
    --------
    LinkMixture : One mixture, with settings that you choose.

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

    A flower that is none of these:

    >>> import numpy as np
    >>> links = Links.from_labels(y, 10, random_state=0)
    >>> model = AutoLinkMixture(3, noise=True, random_state=0).fit(np.vstack([X, [[9.0, 9.0, 9.0, 9.0]]]), links=links)
    >>> int(model.labels_[-1]), int(np.sum(model.labels_ == -1)) <= 3
    (-1, True)
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "n_classes": [at_least(1), StrOptions({"auto"})],
        "committee": [at_least(1)],
        "budget": [StrOptions(set(BUDGETS)), Budget],
        "calibrate": ["boolean"],
        "kinds": [Mapping, None],
        "noise": ["boolean"],
        "warm_start": ["boolean"],
        "links": [Links, None],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
        "random_state": ["random_state", Generator],
    }
    _parts: ClassVar[tuple[type, ...]] = (LinkMixture,)

    # Set by a fit.
    n_classes_: int
    probabilities_: Floats | None
    best_estimator_: LinkMixture
    estimators_: list[LinkMixture]
    leaderboard_: Array
    choice_: Array
    quality_: Quality | None
    temperatures_: Floats
    center_: Floats
    scale_: Floats
    middle_: Floats
    width_: Floats
    components_: Floats | None
    noise_variance_: float
    _places: list[Ints]

    def __init__(
        self,
        n_classes: int | Literal["auto"] = 2,
        *,
        committee: int = 1,
        budget: BudgetName | Budget = "default",
        calibrate: bool = True,
        kinds: Mapping[str, str] | None = None,
        noise: bool = False,
        warm_start: bool = False,
        links: Links | None = None,
        n_jobs: int | None = None,
        verbose: bool = False,
        random_state: int | RandomState | Generator | None = None,
    ) -> None:
        self.n_classes = n_classes
        self.committee = committee
        self.budget = budget
        self.calibrate = calibrate
        self.kinds = kinds
        self.noise = noise
        self.warm_start = warm_start
        self.links = links
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def predict(self, X: PointsLike) -> Array:
        """Most probable class of each point, from the point alone.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Blocks
            The points, including ones that the fit has not seen.

        Returns
        -------
        ndarray of shape (n_samples,)
            Entries of ``classes_``: class numbers, or names if `y` had names in the fit. With noise, -1 for a point of
            no class; the text "-1" among names.
        """
        return self._classes_of(each_row(self._committee().classes, self._seen(X)))

    def predict_proba(self, X: PointsLike) -> Floats:
        """Probability of each class for each point, from the point alone; the mean over the committee.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Blocks
            The points.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Rows sum to one; columns are in the order of ``classes_``. Points of single precision (float32) take about
            half the time, and their probabilities are right to about 1e-4. With noise, these are the probabilities of
            the classes if the point belongs to one; see `predict_noise`.
        """
        return each_row(self.row_probabilities(), self._seen(X))

    def row_probabilities(self) -> Callable[[Array], Floats]:
        """The function from checked rows to the probability of each class."""
        return self._committee().probabilities

    def predict_noise(self, X: PointsLike) -> Floats:
        """Probability that each point belongs to no class, from the point alone; needs ``noise=True``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Blocks
            The points.

        Returns
        -------
        ndarray of shape (n_samples,)
            What the background takes of the density of each point, ``e b(x) / p(x)``; the mean over the committee. It
            is a probability under the model and is not calibrated: links tell little about points without a class.
            `predict` gives -1 where it is above 1/2.
        """
        points = self._seen(X)
        self._check_noise()
        return each_row(self._committee().noise, points)

    def score_samples(self, X: PointsLike) -> Floats:
        """Log-density of each point, in the units of `X`; columns that the fit left out do not count.

        With components, what these leave of a point is Gaussian noise, the same in all directions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Blocks
            The points.

        Returns
        -------
        ndarray of shape (n_samples,)
            Log-densities under the mixture, or under the mean of the committee's mixtures.
        """
        return each_row(self._committee().log_density, self._seen(X))

    def mixture(self) -> engine.Mixture:
        """The winner's density and its parameters, with the scaling of the columns.

        Returns
        -------
        Mixture
            A value.
        """
        return self._committee().members[0]

    def __sklearn_tags__(self) -> Tags:
        """Say that missing values are allowed."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _kinds(self, X: Any) -> Mapping[str, str] | None:
        return (self.kinds or {}) if self.kinds or needs_recipe(X) or mostly_truth_values(X) else None

    def _door(self, *, reset: bool, columns: tuple[str, ...] = ()) -> Door:
        return Door([np.float64] if reset else [np.float64, np.float32], True, lambda X: None)

    def _solve(self, request: Request, random: RandomState) -> Found:
        learn = request.contradicted
        seed = int(random.randint(2**31 - 1))
        budget = self.budget if isinstance(self.budget, Budget) else BUDGETS[self.budget]
        settings = budget.settings
        levels = request.levels
        options: dict[str, Any] = {"learn_reliability": learn, "noise": self.noise, "levels": levels}
        options["n_jobs"] = self.n_jobs
        n_classes = self._largest(request, settings) if self.n_classes == "auto" else int(self.n_classes)
        given = request.knowledge(n_classes, learn_reliability=learn, noise=self.noise)
        views = views_of(given, settings, len(levels))
        ground = contest_of(given, views, n_classes, budget, seed, **options)
        LOG.info("search: %d of %d points, %r, columns as %s", ground.shape[0], len(given.X), given.links, [*views])
        choice = compare_numbers(ground, self._progress) if self.n_classes == "auto" else None
        if choice is not None:
            ground = ground.with_classes(number_of_classes(choice))
            LOG.info("number of classes: %d, of %s", ground.n_classes, choice["n_classes"].tolist())
        before = (
            None if request.before is None else self._numbers_of(take(request.before, rows_of(given, budget, seed)))
        )
        warm: list[Guessed] = []
        if before is not None and self.n_classes_ == ground.n_classes:
            warm = [(view, THE_LAST, before) for view in views]
        found = search(ground, self._progress, warm, leave_out=self.calibrate)
        ground, candidates, left = found.ground, found.candidates, found.left
        if ground.learn_reliability:
            given = replace(given, links=given.links.at_most(FIRST_RELIABILITY))
        best, n, broken = candidates[0], len(candidates), candidates[0].evidence.broken
        LOG.info("best of %d candidates: start %r, shape %r, %g links broken", n, best.start, best.shape, broken)
        view = best.view
        finished = [candidate for candidate in candidates if candidate.finished and candidate.view == view]
        chosen = finished[: self.committee] or candidates[:1]
        if before is not None:  # the other members are matched to the winner
            chosen[0] = numbered_as_before(ground, chosen[0], before)
        whole = replace(given, X=views[view].of(given.X))
        with few_threads(*whole.X.shape):
            with naming_rows(whole.links, ground.n_classes):
                coupling = ground.coupling.careful()
            members = [as_member(ground, candidate, whole, coupling) for candidate in chosen]
        log_joints = [member.mixture().log_joint(ground.views[view].X) for member in members]
        heat, review, how_good = np.ones(len(members)), members[0].links_to_review_, None
        if self.calibrate:
            sure = level(left, found.agreement)
            heat = np.array([temperatures(one, np.array([sure]))[0] for one in log_joints])
            believed = trusted(given.links, members[0].annotator_reliability_)
            review = links_to_review_by(believed, left_out_together(left, sure, len(review)))
        each = [tempered(one, T) for one, T in zip(log_joints, heat.tolist(), strict=True)]
        places = [place_of(one, each[0]) for one in each]
        labels = members[0].labels_
        committee = Committee([member.mixture() for member in members], places, heat)
        if len(members) > 1:
            labels = committee_labels(committee, whole, coupling, members[0].reliability_parameters())
        if self.calibrate:
            matched = [one[:, place] for one, place in zip(each, places, strict=True)]
            how_good = quality(np.mean(matched, axis=0), left)
        board = ground.leaderboard(candidates)
        sure_of = probabilities_of(labels, whole.X, committee)
        return Found(views[view], members, places, heat, how_good, board, review, labels, choice, sure_of)

    def _numbers_of(self, X: Array) -> Ints:
        return np.asarray(self._committee().probabilities(X).argmax(axis=1), dtype=np.int64)

    @staticmethod
    def _largest(request: Request, settings: SearchSettings) -> int:
        """Largest number of classes that is tried."""
        weights = request.sample_weight
        n_counted = len(request.points) if weights is None else int(np.count_nonzero(weights))
        given = request.knowledge(max(2, n_counted), learn_reliability=request.contradicted)
        return largest_number(fewest_classes(given.links, given.known), n_counted, settings)

    def _attributes(self, found: Found) -> dict[str, Any]:
        names = ("center_", "scale_", "middle_", "width_", "components_", "noise_variance_", "_n_codes")
        return {
            **dict(zip(names, astuple(found.scaling), strict=True)),
            "estimators_": found.members,
            "best_estimator_": found.members[0],
            "n_classes_": found.members[0].n_classes,
            "classes_": found.members[0].classes_,
            "leaderboard_": found.leaderboard,
            "links_to_review_": found.links_to_review,
            "relation_probability_": found.members[0].relation_probability_,
            "relations_to_review_": found.members[0].relations_to_review_,
            "labels_": found.labels,
            "probabilities_": found.probabilities,
            **({} if found.choice is None else {"choice_": found.choice}),
            "temperatures_": found.temperatures,
            "quality_": found.quality,
            **({"noise_share_": noise_share(found.members)} if self.noise else {}),
            "_places": found.places,
        }

    def _committee(self) -> Committee:
        """The members as mixtures of points in the units of the user."""
        view = self._view()
        temperatures = getattr(self, "temperatures_", np.ones(len(self.estimators_)))
        return Committee([member.mixture(view) for member in self.estimators_], self._places, temperatures)

    def _view(self) -> Scaling:
        """How the winner sees the points."""
        check_is_fitted(self)
        # Models from early files have neither compressed tails nor components nor temperatures.
        none = np.zeros_like(self.center_)
        tails = getattr(self, "middle_", none), getattr(self, "width_", none)
        components = getattr(self, "components_", None), getattr(self, "noise_variance_", 0.0)
        return Scaling(self.center_, self.scale_, *tails, *components, getattr(self, "_n_codes", 0))

    def _log_likelihood(self, points: Floats | Table, links: Links) -> float:
        view = self._view()
        scaled: float = self.best_estimator_._log_likelihood(view.of(points), links)
        return scaled + float(each_row(view.log_slope, points).sum())

    def _sample(self, n_samples: int, random: RandomState) -> tuple[Array, Ints]:
        X, classes = self.best_estimator_._sample(n_samples, random)
        return self._view().back(X, random), classes

    def _n_parameters(self) -> int:
        return int(self.best_estimator_._n_parameters())

    def _progress(self, results: Iterable[Any], total: int) -> Iterable[Any]:
        return follow(results, total, "candidates", "fit", verbose=self.verbose)


def noise_share(members: Sequence[LinkMixture]) -> float:
    """Mean of the shares of noise of some mixtures."""
    return float(np.mean([member.noise_share_ for member in members]))
