"""LinkMixture: the scikit-learn face of the engine, and the door where everything is checked."""

import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from linkmix import engine
from linkmix.basics.arrays import Array, Floats, Ints, log_sum_exp, shares
from linkmix.basics.checks import (
    check_choice,
    check_flag,
    check_number,
    check_sample_weight,
)
from linkmix.couplings import Coupling, Graph, Pairwise, Uncoupled
from linkmix.couplings.review import REVIEW, links_to_review
from linkmix.couplings.statements import FIRST_RELIABILITY
from linkmix.data.blocks import LARGEST, Blocks, Door, Source, Table, check_size, has_values
from linkmix.densities import (
    FORMS,
    Bernoulli,
    Categorical,
    CovarianceForm,
    Density,
    Gaussian,
    Poisson,
    StudentT,
)
from linkmix.engine import starts
from linkmix.engine.fitting import (
    STARTS,
    FarKnowledge,
    Knowledge,
    Start,
    at_hand,
    best_fit,
    bind,
    few_threads,
    fresh_starts,
    linked_labels,
    part,
)
from linkmix.links import Links
from linkmix.links.checks import as_links, check_known_labels, check_links
from linkmix.mixture import model_file

COUPLINGS: dict[str, Callable[[bool], Coupling]] = {
    "none": lambda learn_reliability: Uncoupled(),
    "pairwise": Pairwise,
    "graph": Graph,
}
DENSITIES: dict[str, Callable[[CovarianceForm, float, float], Density[Any, Any]]] = {
    "gaussian": lambda form, reg_covar, shrinkage: Gaussian(form, reg_covar, shrinkage),
    "student": lambda form, reg_covar, shrinkage: StudentT(form, reg_covar, shrinkage=shrinkage),
    "bernoulli": lambda form, reg_covar, shrinkage: Bernoulli(),
    "categorical": lambda form, reg_covar, shrinkage: Categorical(),
    "poisson": lambda form, reg_covar, shrinkage: Poisson(),
}
NO_ROWS = np.empty(0, dtype=np.int64)
Points = ArrayLike | Source
LINKED_POINTS = ("apart", "both")
RELIABILITY = ("auto", "given", "learn")


class LinkMixture(ClusterMixin, BaseEstimator):
    """Mixture model in which must-links and cannot-links are part of the likelihood.

    Each class is a mixture of ``clusters_per_class`` clusters, Gaussian unless said
    otherwise. A must-link is a pair of points that share
    one label, a cannot-link a pair whose labels differ; both have a joint label distribution, and EM maximises the
    likelihood of free points and pairs together.

    Parameters
    ----------
    n_classes : int, default=2
        Number of classes to find.
    clusters_per_class : int, default=1
        Number of clusters that make up one class.
    density : {"gaussian", "student", "bernoulli", "categorical", "poisson"} or Density, default="gaussian"
        How the points of a cluster are distributed. A `Product` describes columns of different kinds.
    covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
        Form of the covariances, as in scikit-learn.
    shrinkage : float or "auto", default=0.0
        Pulls each covariance towards the pooled one, as if that had been seen on so many points; "auto" is the number
        of columns plus two. With few points in a cluster this is worth a lot.
    shared_clusters : bool, default=False
        Whether all classes mix one pool of ``n_classes * clusters_per_class`` clusters instead of having their own.
    coupling : {"pairwise", "graph", "none"} or Coupling, default="pairwise"
        How links tie labels together. ``"pairwise"`` is the model of the paper, ``"graph"`` takes all links as one
        network and is exact where links share points, ``"none"`` is an ordinary mixture.
    reliability : {"auto", "given", "learn"}, default="auto"
        Whether the confidence of links is taken as given (certain, where none is given), or the share of right links
        of each annotator is learned. "auto" learns when links name annotators. A coupling that is given as an object
        has a setting of its own.
    linked_points : {"apart", "both"}, default="apart"
        Whether a linked point counts in its links only, or also as a free point.
    link_weight : float, default=1.0
        How much a link counts in the likelihood against a free point.
    init : {"kmeans++", "links"} or mapping, default="kmeans++"
        The start. ``"kmeans++"`` is the paper's, ``"links"`` seeds the classes from linked groups. A mapping gives the
        start directly: ``class_weights`` (M,), ``cluster_weights`` (M, K), ``means`` (M, K, d) and ``covariances`` in
        the shape of ``covariances_``.
    n_init : int, default=1
        Number of starts; the fit with the highest log-likelihood is kept. To try hard, ask for 10 or more.
    warm_start : bool, default=False
        Whether a second `fit` starts from the result of the first. Classes then keep their numbers, also in those of
        the ``n_init`` starts that are new.
    reg_covar : float, default=1e-6
        Added to the diagonal of each covariance.
    tol : float, default=1e-6
        EM stops when the log-likelihood gains less than this share of itself. With 0 it makes ``max_iter`` steps.
    max_iter : int, default=300
        Number of EM steps at most.
    random_state : int, RandomState or None, default=None
        Decides the starts and `sample`.

    Attributes
    ----------
    class_weights_ : ndarray of shape (n_classes,)
        Probability of each class.
    cluster_weights_ : ndarray of shape (n_classes, clusters_per_class)
        Probability of each cluster within its class.
    means_ : ndarray of shape (n_classes, clusters_per_class, n_features)
        Mean of each cluster.
    covariances_ : ndarray
        (M, K, d, d), (d, d), (M, K, d) or (M, K) for full, tied, diagonal and spherical covariance. Other densities
        have other arrays in place of means and covariances.
    labels_ : ndarray of shape (n_samples,)
        Class of each training point: the most probable labels of all linked points together, so that certain links
        hold. `predict` looks at the point alone.
    links_to_review_ : structured ndarray of shape (n_links,)
        Every link with the probability that it is wrong, the most doubtful first: fields ``a``, ``b``, ``kind`` and
        ``probability_wrong``. A certain link is ranked as if it had a confidence of 0.95.
    annotator_reliability_ : dict
        Share of right links of each annotator, where it was learned; else empty.
    log_likelihood_ : float
        J of the fit, a sum over free points and links.
    log_likelihood_trace_ : ndarray of shape (n_iter_ + 1,)
        J of the start and after each step, plus the logarithm of the priors if ``shrinkage``, learned reliability or
        the density bring any. It never falls.
    converged_ : bool
        Whether the tolerance was met.
    n_iter_ : int
        Number of EM steps.
    n_features_in_ : int
        Number of columns seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, when the input had them.

    See Also
    --------
    sklearn.mixture.GaussianMixture : The same model without links.

    Examples
    --------
    >>> import numpy as np
    >>> from linkmix import Links, LinkMixture
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [0.2, 0.4], [4.0, 0.1], [4.0, 1.0], [4.1, 0.5]])
    >>> links = Links(must=[(0, 1)], cannot=[(1, 4)])
    >>> model = LinkMixture(n_classes=2, covariance_type="diag", random_state=0).fit(X, links=links)
    >>> bool(model.labels_[0] == model.labels_[1] != model.labels_[4])
    True
    >>> float(model.predict_proba([[0.1, 0.5]]).max().round(3))
    1.0
    """

    def __init__(
        self,
        n_classes: int = 2,
        *,
        clusters_per_class: int = 1,
        density: str | Density[Any, Any] = "gaussian",
        covariance_type: str = "full",
        shrinkage: float | str = 0.0,
        shared_clusters: bool = False,
        coupling: str | Coupling = "pairwise",
        reliability: str = "auto",
        linked_points: str = "apart",
        link_weight: float = 1.0,
        init: str | Mapping[str, Any] = "kmeans++",
        n_init: int = 1,
        reg_covar: float = 1e-6,
        tol: float = 1e-6,
        max_iter: int = 300,
        warm_start: bool = False,
        random_state: int | RandomState | None = None,
    ) -> None:
        self.n_classes = n_classes
        self.clusters_per_class = clusters_per_class
        self.density = density
        self.covariance_type = covariance_type
        self.shrinkage = shrinkage
        self.shared_clusters = shared_clusters
        self.coupling = coupling
        self.reliability = reliability
        self.linked_points = linked_points
        self.link_weight = link_weight
        self.init = init
        self.n_init = n_init
        self.reg_covar = reg_covar
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
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
        """Fit the mixture to points and links.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Blocks
            The points. NaN stands for a value that is not known, where the density allows it. A memory-mapped array
            and `Blocks` are read block by block and never held in memory as a whole; starts by name are then drawn
            from a sample, in which all linked points are.
        y : array-like of shape (n_samples,), optional
            Known labels: class numbers from 0, and -1 where the class is not known. A `y` without any -1 is left
            alone, as scikit-learn's clusterers do.
        links : Links, optional
            Links between rows of `X`.
        must_link, cannot_link : array-like of shape (n_links, 2), optional
            The same as plain pairs of row numbers, instead of `links`.
        rows : array-like of shape (n_samples,), optional
            Number of each row of `X` in the table that the links speak of. Links to other rows are left out. Made
            for cross-validation, which cuts this array along with `X`.
        sample_weight : array-like of shape (n_samples,), optional
            How often each point counts. A linked point of weight 2 counts as two copies that share its label.

        Returns
        -------
        LinkMixture
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
        points = self._points(X, reset=True)
        density = self._density(points.shape[1])
        learn = self._learns(links)
        links = check_links(links.at_most(FIRST_RELIABILITY) if learn else links, len(points), self.n_classes, rows)
        known = check_known_labels(y, len(points), self.n_classes, links)
        weights = check_sample_weight(sample_weight, len(points))
        shape = starts.Shape(self.n_classes, self.clusters_per_class, self.shared_clusters)
        n_counted = len(points) if weights is None else np.count_nonzero(weights)
        if n_counted < shape.n_components:
            raise ValueError(
                f"n_samples={n_counted} is less than the {shape.n_components} clusters asked for (n_classes="
                f"{self.n_classes}, clusters_per_class={self.clusters_per_class}): pass more points or ask for fewer"
            )
        given = _knowledge(points, links, weights, known)
        given_start = None
        if not isinstance(self.init, str):
            given_start = starts.given_start(density, self.init, shape, points.shape[1])
        random = check_random_state(self.random_state)
        some = None if given_start and not self.warm_start else at_hand(given, random)
        before = None if some is None else self._previous_labels(some.X)
        model = bind(density, self._coupling(learn), links, self.n_classes, self.link_weight)
        candidates: list[Start] = [lambda: given_start] if given_start else []
        if some is not None and not candidates:
            warm = [] if before is None else self._warm_starts(model, shape)
            candidates = warm + fresh_starts(some, density, str(self.init), shape, self.n_init - len(warm), random)
        data = part(given, keep_linked=self.linked_points == "both")
        with few_threads(*points.shape):
            fit = best_fit(model, data, candidates, links, tol=self.tol, max_iter=self.max_iter)
        if self.tol > 0 and self.max_iter > 0 and not fit.converged:
            warnings.warn(
                f"EM made max_iter={self.max_iter} steps and the log-likelihood still gained more than "
                f"tol={self.tol:g} of itself: raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=3,
            )
        parameters = fit.parameters
        if known is None and some is not None and before is not None:
            found = engine.most_probable_classes(density, parameters, some.X)
            parameters = engine.renumber(density, parameters, starts.match_labels(found, before, self.n_classes))
        self._keep(density, shape, parameters, fit)
        self._explain(model, data, given)
        return self

    def predict(self, X: Points) -> Ints:
        """Most probable class of each point, from the point alone.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Blocks
            Points, also ones that the fit has not seen.

        Returns
        -------
        ndarray of shape (n_samples,)
            Class numbers.
        """
        return self._classes(self._seen(X))

    def predict_proba(self, X: Points) -> Floats:
        """Probability of each class for each point, from the point alone.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Blocks
            Points.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Rows sum to one.
        """
        log_joint = self._log_joint(X)
        return shares(log_joint)

    def score_samples(self, X: Points) -> Floats:
        """Log-density of each point.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Blocks
            Points.

        Returns
        -------
        ndarray of shape (n_samples,)
            Log-densities under the mixture.
        """
        return log_sum_exp(self._log_joint(X))

    def score(self, X: Points, y: object = None, *, sample_weight: ArrayLike | None = None) -> float:
        """Mean log-density of the points.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Blocks
            Points.
        y : object
            Not used.
        sample_weight : array-like of shape (n_samples,), optional
            How often each point counts.

        Returns
        -------
        float
            Mean of `score_samples`.
        """
        log_density = self.score_samples(X)
        return float(np.average(log_density, weights=check_sample_weight(sample_weight, len(log_density))))

    def log_likelihood(self, X: Points, links: Links | None = None) -> float:
        """Log-likelihood J of these parameters on any points and links.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Blocks
            Points.
        links : Links, optional
            Links between rows of `X`.

        Returns
        -------
        float
            Sum over free points and links, as in the fit.
        """
        return self._log_likelihood(self._seen(X), links)

    def _log_likelihood(self, points: Floats | Table, links: Links | None) -> float:
        links = check_links(self._trusted(as_links(links)), len(points), len(self.class_weights_))
        model = bind(self._fitted_density, self._coupling(), links, len(self.class_weights_), self.link_weight)
        data = part(_knowledge(points, links), keep_linked=self.linked_points == "both")
        return engine.expect(model, data, self._parameters).log_likelihood

    def bic(self, X: Points, links: Links | None = None) -> float:
        """Bayesian information criterion; lower is better.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Blocks
            Points.
        links : Links, optional
            Links between rows of `X`.

        Returns
        -------
        float
            ``-2 J + n_parameters log n_samples``.
        """
        points = self._seen(X)
        return -2 * self._log_likelihood(points, links) + self._n_parameters() * float(np.log(len(points)))

    def aic(self, X: Points, links: Links | None = None) -> float:
        """Akaike information criterion; lower is better.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Blocks
            Points.
        links : Links, optional
            Links between rows of `X`.

        Returns
        -------
        float
            ``-2 J + 2 n_parameters``.
        """
        return -2 * self.log_likelihood(X, links) + 2 * self._n_parameters()

    def sample(self, n_samples: int = 1) -> tuple[Array, Ints]:
        """Draw points from the mixture.

        Parameters
        ----------
        n_samples : int, default=1
            Number of points.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            The points, in order of their classes.
        y : ndarray of shape (n_samples,)
            Their classes.
        """
        check_is_fitted(self)
        check_number("n_samples", n_samples, Integral, 1)
        random = check_random_state(self.random_state)
        weights = self.class_weights_[:, None] * self.cluster_weights_  # (M, K), or (M, M * K)
        counts = random.multinomial(n_samples, weights.ravel() / weights.sum())
        n_components = self._n_components()
        density, components = self._fitted_density, self._parameters.components
        X = [density.sample(components, c % n_components, count, random) for c, count in enumerate(counts)]
        y = np.repeat(np.arange(len(counts)) // weights.shape[1], counts)
        return np.concatenate(X), y

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted mixture to one file, which holds no code and can be read on any machine.

        Parameters
        ----------
        path : path
            Where; a file of this name is replaced, and never half.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from linkmix import LinkMixture
        >>> file = Path(tempfile.mkdtemp()) / "heights.linkmix"
        >>> LinkMixture(2, random_state=0).fit([[1.0], [1.1], [5.0], [5.2]]).save(file)
        >>> LinkMixture.load(file).predict([[1.2], [4.0]]).tolist()
        [1, 0]
        """
        model_file.save(path, self)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a mixture from a file that `save` wrote.

        Parameters
        ----------
        path : path
            The file. One that is cut off, changed or of another kind is refused.

        Returns
        -------
        LinkMixture
            The fitted estimator.
        """
        estimator: Self = model_file.load(path, [cls]).estimator
        return estimator

    def __sklearn_tags__(self) -> Tags:
        """Say whether missing values are fine."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._allows_missing()
        return tags

    def _density(self, n_features: int) -> Density[Any, Any]:
        """The density as an object."""
        if isinstance(self.density, Density):
            return self.density
        shrinkage = n_features + 2.0 if isinstance(self.shrinkage, str) else self.shrinkage
        return DENSITIES[self.density](FORMS[self.covariance_type], self.reg_covar, shrinkage)

    def _allows_missing(self) -> bool:
        return self.density.allows_missing if isinstance(self.density, Density) else True

    def _points(self, X: Points, *, reset: bool) -> Floats | Table:
        """Points that are in memory, or elsewhere: then each block is checked, by the density as well."""
        if isinstance(X, np.memmap) and X.ndim == 2:
            X = Blocks.from_array(X)
        if isinstance(X, Source):
            density = self._density(1) if reset else self._fitted_density
            return self._let_in(X.enter(Door(self._kinds(), self._allows_missing(), density.check)), reset=reset)
        if isinstance(X, Iterator):
            raise ValueError(
                f"X is a {type(X).__name__}, which can be read only once: give linkmix.Blocks of the function that "
                "makes it"
            )
        points = self._array(X, reset=reset)
        (self._density(points.shape[1]) if reset else self._fitted_density).check(points)
        return points

    def _kinds(self) -> list[type]:
        """Kinds of numbers; single precision where the density reads it as it is."""
        gaussian = self.density == "gaussian" or type(self.density) is Gaussian
        return [np.float64, np.float32] if gaussian else [np.float64]

    def _array(self, X: ArrayLike, *, reset: bool) -> Floats:
        """Points as numbers; in single precision where they came so."""
        kinds = self._kinds()
        if reset and type(X) is np.ndarray and X.dtype in kinds and X.ndim == 2 and X.size:
            largest = float(max(X.max(), -X.min()))
            if largest <= LARGEST:  # nothing for scikit-learn to find: no number is missing, infinite or too large
                self.n_features_in_ = X.shape[1]
                self.__dict__.pop("feature_names_in_", None)
                return X
        finite = "allow-nan" if self._allows_missing() else True
        points: Floats = validate_data(self, X, dtype=kinds, ensure_all_finite=finite, reset=reset)
        check_size(points)
        if reset:
            _check_columns(has_values(points))
        return points

    def _let_in(self, table: Table, *, reset: bool) -> Floats | Table:
        """A table whose columns are those of the fit."""
        validate_data(self, table.head, skip_check_array=True, reset=reset)
        if reset:
            _check_columns(table.seen)
        return table.gathered()

    def _seen(self, X: Points) -> Floats | Table:
        """Points of the same kind as those of the fit."""
        check_is_fitted(self)
        return self._points(X, reset=False)

    def _learns(self, links: Links) -> bool:
        """Whether the reliability of annotators is to be learned."""
        if isinstance(self.coupling, Coupling):
            return self.coupling.learn_reliability
        named = links.must_annotators is not None or links.cannot_annotators is not None
        return self.reliability == "learn" or (self.reliability == "auto" and named)

    def _coupling(self, learn_reliability: bool = False) -> Coupling:
        """The coupling as an object."""
        if not isinstance(self.coupling, Coupling):
            return COUPLINGS[self.coupling](learn_reliability)
        if self.coupling.learn_reliability and not learn_reliability:
            return replace(self.coupling, learn_reliability=False)  # type: ignore[type-var]
        return self.coupling

    def _previous_labels(self, X: Floats) -> Ints | None:
        """Labels by an earlier fit to go on from; None if there is none, or it can not describe these points."""
        if not (self.warm_start and hasattr(self, "_parameters") and self._fitted_columns == X.shape[1]):
            return None
        try:
            self._fitted_density.check(X)
            return engine.most_probable_classes(self._fitted_density, self._parameters, X)
        except ValueError:
            return None

    def _warm_starts(self, model: engine.Model, shape: starts.Shape) -> list[Start]:
        """The earlier fit as a start, if it is of the same make."""
        if self._fitted_shape != shape or self._fitted_density != model.density:
            return []
        previous = self._parameters
        if tuple(self.annotator_reliability_) != model.coupling.annotators:
            previous = replace(previous, reliability=model.coupling.first_reliability())
        return [lambda: previous]

    def _keep(
        self, density: Density[Any, Any], shape: starts.Shape, parameters: engine.Parameters, fit: engine.Fit
    ) -> None:
        for name in getattr(self, "_fitted_arrays", ()):  # another density may have other arrays
            delattr(self, name)
        self._fitted_density, self._fitted_shape, self._fitted_columns = density, shape, self.n_features_in_
        self._parameters = parameters
        self.class_weights_ = parameters.class_weights
        self.cluster_weights_ = parameters.cluster_weights
        arrays = density.attributes(parameters.components, (self.n_classes, self.clusters_per_class))
        self._fitted_arrays = [f"{name}_" for name in arrays]
        for name, array in arrays.items():
            setattr(self, f"{name}_", array)
        self.log_likelihood_ = fit.log_likelihood
        self.log_likelihood_trace_ = fit.trace
        self.converged_ = fit.converged
        self.n_iter_ = len(fit.trace) - 1

    def _explain(self, model: engine.Model, data: engine.Data, given: Knowledge | FarKnowledge) -> None:
        """Labels of the training points, and what the fit thinks of the links."""
        self.annotator_reliability_ = dict(zip(model.coupling.annotators, self._parameters.reliability, strict=True))
        self.links_to_review_ = np.empty(0, dtype=REVIEW)
        points = given.links.points
        labels = np.empty(0, dtype=np.int64)
        if len(points):
            log_joint = engine.class_log_joint(model.density, self._parameters, data.linked)
            log_density = log_joint - np.log(self.class_weights_)
            labels = linked_labels(model, data, given.links, self._parameters, log_density)
            table = links_to_review(self._trusted(given.links.restrict(points)), log_density, self.class_weights_)
            table["a"], table["b"] = points[table["a"]], points[table["b"]]
            self.links_to_review_ = table
        if given.known is not None:
            told = np.setdiff1d(np.flatnonzero(given.known >= 0), points)
            points, labels = np.concatenate([points, told]), np.concatenate([labels, given.known[told]])
        order = np.argsort(points)
        self.labels_ = self._classes(given.X, points[order], labels[order])

    def _classes(self, points: Floats | Table, rows: Ints = NO_ROWS, labels: Ints = NO_ROWS) -> Ints:
        """Most probable class of each point, from the point alone, but for rows whose labels are told."""
        if isinstance(points, Table):
            function = partial(engine.most_probable_classes, self._fitted_density, self._parameters)
            return points.label(function, rows, labels)  # type: ignore[no-any-return]
        classes = engine.most_probable_classes(self._fitted_density, self._parameters, points)
        classes[rows] = labels
        return classes

    def _trusted(self, links: Links) -> Links:
        """Links with the confidence that their annotators have earned, where that was learned."""
        earned = self.annotator_reliability_
        if not earned:
            return links

        def confidence(annotators: Array | None, n: int) -> list[float]:
            names = [None] * n if annotators is None else annotators
            return [float(earned.get(name, FIRST_RELIABILITY)) for name in names]

        return Links(
            links.must,
            links.cannot,
            must_confidence=confidence(links.must_annotators, links.n_must),
            cannot_confidence=confidence(links.cannot_annotators, links.n_cannot),
            must_annotators=links.must_annotators,
            cannot_annotators=links.cannot_annotators,
            relations=links.relations,
        )

    def _log_joint(self, X: Points) -> Floats:
        points = self._seen(X)
        log_joint = partial(engine.class_log_joint, self._fitted_density, self._parameters)
        return np.concatenate(list(points.map(log_joint))) if isinstance(points, Table) else log_joint(points)

    def _n_components(self) -> int:
        return int(self.cluster_weights_.shape[1] if self.shared_clusters else self.cluster_weights_.size)

    def _n_parameters(self) -> int:
        # M - 1 class weights, and in each class one cluster weight less than there are clusters.
        density, components = self._fitted_density, self._parameters.components
        weights: int = self.cluster_weights_.size - 1
        return weights + density.free_parameters(components, self._n_components(), self.n_features_in_)

    def _check_parameters(self) -> None:
        check_number("n_classes", self.n_classes, Integral, 1)
        check_number("clusters_per_class", self.clusters_per_class, Integral, 1)
        check_number("n_init", self.n_init, Integral, 1)
        check_number("max_iter", self.max_iter, Integral, 0)
        check_number("tol", self.tol, Real, 0)
        check_number("reg_covar", self.reg_covar, Real, 0)
        check_number("link_weight", self.link_weight, Real, 0)
        if self.link_weight == 0:
            raise ValueError("link_weight=0 would drop the linked points: pass no links instead")
        check_flag("shared_clusters", self.shared_clusters)
        check_flag("warm_start", self.warm_start)
        if not (isinstance(self.shrinkage, str) and self.shrinkage == "auto"):
            check_number("shrinkage", self.shrinkage, Real, 0)
        check_choice("covariance_type", self.covariance_type, FORMS)
        check_choice("linked_points", self.linked_points, LINKED_POINTS)
        check_choice("reliability", self.reliability, RELIABILITY)
        if not isinstance(self.density, Density):
            check_choice("density", self.density, DENSITIES, " or a Density")
        if self.density not in ("gaussian", "student") and self.shrinkage != 0:
            raise ValueError(
                f"shrinkage={self.shrinkage!r} has no meaning for density={self.density!r}: leave it at 0, or give it "
                "to the density itself, as in density=Gaussian(shrinkage=5.0)"
            )
        if isinstance(self.density, Density) and self.covariance_type != "full":
            raise ValueError(
                f"covariance_type={self.covariance_type!r} has no meaning for density={self.density!r}: leave it at "
                "'full', and give the form to the density itself, as in density=Gaussian(Diagonal())"
            )
        if isinstance(self.coupling, Coupling) and self.reliability == "learn" and not self.coupling.learn_reliability:
            raise ValueError(
                f"reliability='learn' does not reach into coupling={self.coupling!r}: give it to the coupling itself, "
                "as in coupling=Pairwise(learn_reliability=True)"
            )
        if not isinstance(self.coupling, Coupling):
            check_choice("coupling", self.coupling, COUPLINGS, " or a Coupling")
        if not isinstance(self.init, Mapping):
            check_choice("init", self.init, STARTS, " or a mapping with the start")


def _knowledge(
    points: Floats | Table, links: Links, weights: Floats | None = None, known: Ints | None = None
) -> Knowledge | FarKnowledge:
    """All that is given, of points in memory or elsewhere."""
    if isinstance(points, Table):
        return FarKnowledge(points, links, weights, known)
    return Knowledge(points, links, weights, known)


def _check_columns(seen: Array) -> None:
    """Refuse a column without any value."""
    if not seen.all():
        raise ValueError(f"column {int(np.argmin(seen))} of X has no value in any row: drop it")
