"""LinkMixture: one mixture with links, as a scikit-learn estimator."""

import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.random import Generator, RandomState
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from linkmix import engine
from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.basics.checks import Constraints
from linkmix.columns import describe, learn, needs_recipe
from linkmix.couplings import Coupling
from linkmix.data.blocks import Door, Table
from linkmix.data.scaling import Scaling
from linkmix.densities import Contaminated, Density, Product
from linkmix.densities.contaminated import alike, counting
from linkmix.engine import starts
from linkmix.engine.fitting import Knowledge, Start, at_hand, best_fit, bind, few_threads, fresh_starts, part
from linkmix.links import Links
from linkmix.links.checks import check_links
from linkmix.mixture.door import PointsLike, Request, names_in
from linkmix.mixture.fitted import Fitted, each_row, finished, label_points, settled, trusted
from linkmix.mixture.generative import Generative
from linkmix.mixture.settings import (
    CONSTRAINTS,
    Acceleration,
    CouplingName,
    CovarianceType,
    DensityName,
    LinkedPoints,
    Reliability,
    StartName,
    accelerates,
    allows_missing,
    check_combinations,
    coupling_of,
    density_of,
    door_of,
    learns_reliability,
    shape_of,
)


class LinkMixture(Generative):
    """Mixture model in which must-links and cannot-links are part of the likelihood.

    Each class is a mixture of ``clusters_per_class`` clusters, Gaussian by default. A must-link is a pair of points
    that share one label, a cannot-link a pair whose labels differ. Both have a joint label distribution, and EM
    maximises the likelihood of free points and pairs together.

    Parameters
    ----------
    n_classes : int, default=2
        Number of classes to find.
    clusters_per_class : int, or list of int, default=1
        Number of clusters that make up one class, or one number for each class.
    density : {"gaussian", "student", "bernoulli", "categorical", "poisson"} or Density, default="gaussian"
        How the points of a cluster are distributed. A `Product` describes columns of different kinds.
    covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
        Form of the covariances, as in scikit-learn.
    shrinkage : float or "auto", default=0.0
        Number of pseudo-observations that pull each covariance towards the pooled one; "auto" is the number of columns
        plus two. This helps a lot when clusters have few points.
    shared_clusters : bool, default=False
        Whether all classes mix one pool of all clusters instead of having their own.
    coupling : {"pairwise", "graph", "none"} or Coupling, default="pairwise"
        How links tie labels together. ``"pairwise"`` is the model of the paper, ``"graph"`` takes all links as one
        network and is exact where links share points, ``"none"`` is an ordinary mixture.
    reliability : {"auto", "given", "learn"}, default="auto"
        Whether the confidence of links is taken as given (certain, if none is given), or the share of correct links of
        each annotator is learned. "auto" takes them as given until they contradict each other, and learns then, if
        links name their annotators. A coupling object has its own setting.
    linked_points : {"apart", "both"}, default="apart"
        Whether a linked point counts in its links only, or also as a free point.
    link_weight : float, default=1.0
        Weight of a link in the likelihood, relative to a free point.
    init : {"kmeans++", "links"} or mapping, default="kmeans++"
        The start. ``"kmeans++"`` is the paper's, ``"links"`` seeds the classes from linked groups. A mapping gives the
        start directly: ``class_weights`` (M,), ``cluster_weights`` (M, K), ``means`` (M, K, d) and ``covariances`` in
        the shape of ``covariances_``.
    n_init : int, default=1
        Number of starts; the fit with the highest log-likelihood is kept. Ten or more are a thorough search.
    warm_start : bool, default=False
        Whether a second `fit` starts from the result of the first. Classes then keep their numbers, even if another of
        the ``n_init`` starts wins.
    reg_covar : float, default=1e-6
        Added to the diagonal of each covariance.
    tol : float, default=1e-5
        EM stops when a step gains at most this much log-likelihood per row. It does not depend on the units of the
        columns. With 0, EM makes ``max_iter`` steps.
    max_iter : int, default=300
        Maximum number of EM steps.
    acceleration : {"auto", "squarem", "none"}, default="auto"
        ``"none"`` is plain EM. ``"squarem"`` extrapolates along every two steps where this raises the log-likelihood
        (Varadhan and Roland, 2008), and needs fewer passes over the rows. ``"auto"`` does so if a step takes more than
        about a millisecond, which depends on the numbers of rows, columns and clusters. With ``tol=0``, and with a
        density of your own that has no ``to_vector``, EM is plain.
    links : Links, optional
        Links that `fit` uses where it is given none, for tools that call ``fit(X)`` or ``fit(X, y)``. Their row numbers
        are those of the X that they will pass; to fit to some of its rows, as in cross-validation, pass ``rows``.
    random_state : int, RandomState, Generator or None, default=None
        Determines the starts and the draws of `sample`.

    Attributes
    ----------
    class_weights_ : ndarray of shape (n_classes,)
        Probability of each class.
    cluster_weights_ : ndarray of shape (n_classes, clusters_per_class)
        Probability of each cluster within its class. If ``clusters_per_class`` is a list of different numbers: of shape
        (n_classes, n_clusters), zero for clusters of other classes; `means_` and the like then have one entry for each
        cluster, those of the first class first.
    means_ : ndarray of shape (n_classes, clusters_per_class, n_features)
        Mean of each cluster.
    covariances_ : ndarray
        (M, K, d, d), (d, d), (M, K, d) or (M, K) for full, tied, diagonal and spherical covariance. Other densities
        have other arrays in place of means and covariances.
    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of all arrays: 0, 1 and so on; or, if `y` had names, these in alphabetical order as
        text, and after them the other classes by the text of their numbers, such as "2".
    labels_ : ndarray of shape (n_samples,)
        Class of each training point, an entry of ``classes_``: the jointly most probable labels of all linked points,
        so that certain links hold. `predict` looks at each point alone.
    links_to_review_ : structured ndarray of shape (n_links,)
        Every link with the probability that it is wrong, the most doubtful first: fields ``a``, ``b``, ``kind`` and
        ``probability_wrong``. A certain link is ranked as if it had a confidence of 0.95.
    annotator_reliability_ : dict
        Share of correct links of each annotator, if it was learned; otherwise empty.
    relation_probability_ : ndarray of shape (n_relations,)
        Probability that each relation is satisfied, in the order of ``links.relations``, learned or given.
    relations_to_review_ : structured ndarray
        Every set of every relation with the probability that its labels do not satisfy it, the most doubtful first:
        fields ``relation`` and ``set``, its positions, and ``probability_wrong``.
    log_likelihood_ : float
        J of the fit, a sum over free points and links.
    log_likelihood_trace_ : ndarray of shape (n_iter_ + 1,)
        J at the start and after each step, plus the log-prior if ``shrinkage``, learned reliability or the density
        have one. EM never decreases it.
    converged_ : bool
        Whether the tolerance was met, by a plain step.
    n_iter_ : int
        Number of EM steps: passes over the rows after the first one. A step whose extrapolation failed counts as well,
        and repeats its value in the trace.
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

    _parameter_constraints: ClassVar[Constraints] = CONSTRAINTS

    # Set by a fit.
    class_weights_: Floats
    cluster_weights_: Floats
    means_: Floats
    covariances_: Floats
    annotator_reliability_: dict[Hashable, float]
    log_likelihood_: float
    log_likelihood_trace_: Floats
    converged_: bool
    n_iter_: int
    _parameters: engine.Parameters
    _fitted_density: Density[Any, Any]
    _fitted_shape: starts.Shape

    def __init__(
        self,
        n_classes: int = 2,
        *,
        clusters_per_class: int | Sequence[int] = 1,
        density: DensityName | Density[Any, Any] = "gaussian",
        covariance_type: CovarianceType = "full",
        shrinkage: float | Literal["auto"] = 0.0,
        shared_clusters: bool = False,
        coupling: CouplingName | Coupling = "pairwise",
        reliability: Reliability = "auto",
        linked_points: LinkedPoints = "apart",
        link_weight: float = 1.0,
        init: StartName | Mapping[str, Any] = "kmeans++",
        n_init: int = 1,
        reg_covar: float = 1e-6,
        tol: float = 1e-5,
        max_iter: int = 300,
        acceleration: Acceleration = "auto",
        warm_start: bool = False,
        links: Links | None = None,
        random_state: int | RandomState | Generator | None = None,
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
        self.acceleration = acceleration
        self.warm_start = warm_start
        self.links = links
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
            Entries of ``classes_``: class numbers, or names if `y` had names in the fit.
        """
        points = self._seen(X)
        return self._classes_of(label_points(self._fitted_density, self._parameters, points), points)

    def predict_proba(self, X: PointsLike) -> Floats:
        """Probability of each class for each point, from the point alone.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Blocks
            The points.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Rows sum to one; columns are in the order of ``classes_``. Points of single precision (float32) take about
            half the time, and their probabilities are right to about 1e-4.
        """
        return each_row(self.row_probabilities(), self._seen(X))

    def row_probabilities(self) -> Callable[[Array], Floats]:
        """The function from checked rows to the probability of each class."""
        return self.mixture().probabilities

    def predict_noise(self, X: PointsLike) -> Floats:
        """Probability that each point belongs to no class, from the point alone.

        Needs a density with noise, as in ``LinkMixture(density=Contaminated(Gaussian()))``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Blocks
            The points.

        Returns
        -------
        ndarray of shape (n_samples,)
            What the background takes of the density of each point, ``e b(x) / p(x)``. `predict` gives -1 where it is
            above 1/2.
        """
        points = self._seen(X)
        self._check_noise()
        return each_row(self.mixture().noise, points)

    def predict_log_joint(self, X: PointsLike) -> Floats:
        """Log of class weight times density, for each point and class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Blocks
            The points.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            `predict_proba` is the softmax of each row, `score_samples` its log-sum-exp.
        """
        return each_row(self.mixture().log_joint, self._seen(X))

    def score_samples(self, X: PointsLike) -> Floats:
        """Log-density of each point.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Blocks
            The points.

        Returns
        -------
        ndarray of shape (n_samples,)
            Log-densities under the mixture.
        """
        return each_row(self.mixture().log_density, self._seen(X))

    def mixture(self, view: Scaling | None = None) -> engine.Mixture:
        """The fitted density and its parameters, which tell about single rows without further checks.

        Parameters
        ----------
        view : Scaling or None
            How rows are to be scaled first.

        Returns
        -------
        Mixture
            A value.
        """
        check_is_fitted(self)
        return engine.mixture_of(self._fitted_density, self._parameters, view)

    def reliability_parameters(self) -> Floats:
        """What was learned about annotators and relations, as couplings number it."""
        check_is_fitted(self)
        return np.asarray(self._parameters.reliability)

    def _log_likelihood(self, points: Floats | Table, links: Links) -> float:
        n_classes = len(self.class_weights_)
        links = trusted(links, self.annotator_reliability_)
        # Models from early files know no relations that are learned.
        links = settled(links, getattr(self, "relation_probability_", np.empty(0)))
        links = check_links(links, len(points), n_classes)
        model = engine.Model(self._fitted_density, bind(coupling_of(self), links, n_classes), self.link_weight)
        data = part(Knowledge(points, links), keep_linked=self.linked_points == "both")
        parameters = replace(self._parameters, reliability=model.coupling.first_reliability())
        return engine.expect(model, data, parameters).log_likelihood

    def __sklearn_tags__(self) -> Tags:
        """Say whether missing values are allowed."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = allows_missing(self)
        return tags

    def check_settings(self) -> None:
        """Raise an error if a setting is invalid, alone or in combination with others."""
        super().check_settings()
        check_combinations(self)

    def _door(self, *, reset: bool, columns: tuple[str, ...] = ()) -> Door:
        return door_of(self, density_of(self, 1).named(columns) if reset else self._fitted_density)

    def _kinds(self, X: Any) -> Mapping[str, str] | None:
        density = density_of(self, 1)
        density = density.density if isinstance(density, Contaminated) else density
        if isinstance(density, Product) and density.kinds:
            return density.kinds
        if not needs_recipe(X):
            return None
        if density.kind == "category":
            return dict.fromkeys(names_in(X), "category")
        others = [f"{name!r} ({words})" for name, words in describe(learn(X)) if words != "number"]
        raise ValueError(
            f"X has columns other than plain numbers, {', '.join(others) or 'which cannot be used'}, and density="
            f"{self.density!r} describes numbers alone: use AutoLinkMixture, drop these columns, or pass "
            "density=Product({...}) with a part such as 'hue': (Categorical(), ['colour'])"
        )

    def _solve(self, request: Request, random: RandomState) -> Fitted:
        learn = learns_reliability(self, contradicted=request.contradicted)
        noise = isinstance(self.density, Contaminated)
        given = request.knowledge(self.n_classes, learn_reliability=learn, noise=noise)
        n, d = given.X.shape
        density = counting(density_of(self, d).named(request.columns), given.noise)
        shape = shape_of(self)
        n_counted = n if given.sample_weight is None else np.count_nonzero(given.sample_weight)
        if n_counted < shape.n_components:
            raise ValueError(
                f"n_samples={n_counted} is less than the {shape.n_components} clusters asked for (n_classes="
                f"{self.n_classes}, clusters_per_class={self.clusters_per_class}): pass more points or ask for fewer"
            )
        coupling = bind(coupling_of(self, learn), given.links, self.n_classes, given.sample_weight)
        model = engine.Model(density, coupling, self.link_weight)
        candidates: list[Start] = []
        if not isinstance(self.init, str):
            start = starts.given_start(density, self.init, shape, d)
            candidates = [lambda: start]
        some = at_hand(given, random) if self.warm_start or not candidates else None
        before = None
        if some is not None and request.before is not None:
            seen = some.X if request.before is request.points else np.asarray(request.before)
            before = self._numbers_of(seen)
        if some is not None and not candidates:
            warm = self._warm_starts(model, shape) if request.before is request.points else []
            candidates = warm + self._fresh_starts(some, density, shape, self.n_init - len(warm), random)
        data = part(given, keep_linked=self.linked_points == "both")
        with few_threads(n, d):
            fit = best_fit(
                *(model, data, candidates, given.links),
                tol=self.tol,
                max_iter=self.max_iter,
                accelerate=accelerates(self, n, d),
            )
        if self.tol > 0 and self.max_iter > 0 and not fit.converged:
            warnings.warn(
                f"EM made max_iter={self.max_iter} steps and still gains more log-likelihood per row than "
                f"tol={self.tol:g}: raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=3,
            )
        if some is not None and before is not None and not shape.uneven:
            found = engine.most_probable_classes(density, fit.parameters, some.X)
            place = starts.kept_numbers(found, before, self.n_classes, given.known, given.links)
            if place is not None:
                fit = replace(fit, parameters=engine.renumber(density, fit.parameters, place))
        return finished(model, data, given, shape, fit)

    def _attributes(self, found: Fitted) -> dict[str, Any]:
        parameters, shape = found.fit.parameters, found.shape
        arrays = found.density.attributes(parameters.components, shape.layout)
        return {
            "classes_": np.arange(shape.n_classes),
            "class_weights_": parameters.class_weights,
            "cluster_weights_": parameters.cluster_weights,
            **{f"{name}_": array for name, array in arrays.items()},
            "labels_": found.labels,
            "links_to_review_": found.links_to_review,
            "annotator_reliability_": found.reliability,
            "relation_probability_": found.relation_probability,
            "relations_to_review_": found.relations_to_review,
            "log_likelihood_": found.fit.log_likelihood,
            "log_likelihood_trace_": found.fit.trace,
            "converged_": found.fit.converged,
            "n_iter_": len(found.fit.trace) - 1,
            "_parameters": parameters,
            "_fitted_density": found.density,
            "_fitted_shape": shape,
        }

    def _numbers_of(self, X: Array) -> Ints:
        return engine.most_probable_classes(self._fitted_density, self._parameters, X)

    def _fresh_starts(
        self,
        some: Knowledge[Array],
        density: Density[Any, Any],
        shape: starts.Shape,
        n_starts: int,
        random: RandomState,
    ) -> list[Start]:
        """Starts by the method that `init` names."""
        return fresh_starts(some, density, str(self.init), shape, n_starts, random)

    def _warm_starts(self, model: engine.Model, shape: starts.Shape) -> list[Start]:
        """The earlier fit as a start, if it has the same shape and density."""
        if self._fitted_shape != shape or not alike(self._fitted_density, model.density):
            return []
        previous = self._parameters
        first = model.coupling.first_reliability()
        if tuple(self.annotator_reliability_) != model.coupling.annotators or len(first) != len(previous.reliability):
            previous = replace(previous, reliability=first)
        return [lambda: previous]

    def _n_components(self) -> int:
        pooled = self._parameters.shared_clusters
        return int(self.cluster_weights_.shape[1] if pooled else self.cluster_weights_.size)

    def _sample(self, n_samples: int, random: RandomState) -> tuple[Array, Ints]:
        return engine.sample(self._fitted_density, self._parameters, n_samples, random)

    def _n_parameters(self) -> int:
        # M - 1 class weights, and in each class one cluster weight fewer than there are clusters.
        density, components = self._fitted_density, self._parameters.components
        weights = np.count_nonzero(self.cluster_weights_) - 1
        n_free: int = density.free_parameters(components, self._n_components(), self.n_features_in_)
        return int(weights) + n_free
