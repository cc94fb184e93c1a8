"""Rivals that use the same engine with another coupling: GMM, GM-PR as printed, GMM-EC, EM-PC, PPC and one more."""

from collections.abc import Hashable, Iterable, Mapping
from numbers import Real
from typing import Any, ClassVar, Self

from numpy.random import RandomState
from numpy.typing import ArrayLike
from sklearn.utils.validation import _num_samples

from linkmix.basics.arrays import Array
from linkmix.basics.checks import Constraints, at_least
from linkmix.couplings import Coupling, Graph, MeanField, Pairwise, Projection, SoftChunklets, Uncoupled
from linkmix.densities import Density
from linkmix.engine import starts
from linkmix.engine.fitting import Knowledge, Start
from linkmix.links.checks import LinksLike, as_links, check_y
from linkmix.mixture import LinkMixture
from linkmix.mixture.door import PointsLike
from linkmix.mixture.settings import CovarianceType, StartName
from linkmix.rivals.base import refuse_useless


class _RivalMixture(LinkMixture):
    """A Gaussian LinkMixture with a fixed coupling and only the settings that the published methods have.

    The parameters are those of `LinkMixture` with the same names. With ``init="kmeans++"`` the first means are the
    k-means++ seeds themselves, as in the paper of GM-PR, so that all methods of its experiments start alike;
    `LinkMixture` starts at the means of the points nearest to the seeds.

    Attributes
    ----------
    published_coupling : Coupling
        What makes the method.
    uses_must, uses_cannot, uses_confidence : bool
        Whether the method uses must-links, cannot-links, and the confidence of links.
    """

    published_coupling: ClassVar[Coupling]
    uses_must: ClassVar[bool] = True
    uses_cannot: ClassVar[bool] = True
    uses_confidence: ClassVar[bool] = False

    def __init__(
        self,
        n_classes: int = 2,
        *,
        clusters_per_class: int = 1,
        covariance_type: CovarianceType = "full",
        init: StartName | Mapping[str, Any] = "kmeans++",
        n_init: int = 1,
        reg_covar: float = 1e-6,
        tol: float = 1e-6,
        max_iter: int = 300,
        random_state: int | RandomState | None = None,
    ) -> None:
        super().__init__(
            n_classes,
            clusters_per_class=clusters_per_class,
            covariance_type=covariance_type,
            init=init,
            n_init=n_init,
            reg_covar=reg_covar,
            tol=tol,
            max_iter=max_iter,
            random_state=random_state,
            # What the published methods fix.
            density="gaussian",
            shrinkage=0.0,
            shared_clusters=False,
            coupling=self.published_coupling,
            reliability="given",
            linked_points="apart",
            link_weight=1.0,
            acceleration="none",
            warm_start=False,
        )

    def fit(
        self,
        X: PointsLike,
        y: ArrayLike | None = None,
        *,
        links: LinksLike | None = None,
        ids: Iterable[Hashable] | None = None,
        must_link: ArrayLike | None = None,
        cannot_link: ArrayLike | None = None,
        rows: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit the mixture. The parameters are those of `LinkMixture.fit`, but `y` is ignored."""
        given = as_links(links, must_link, cannot_link, ids=ids, rows=rows, X=X)
        check_y(y, _num_samples(X))
        refuse_useless(type(self).__name__, given, self.uses_must, self.uses_cannot, self.uses_confidence)
        told: dict[str, Any] = {"ids": ids, "must_link": must_link, "cannot_link": cannot_link, "rows": rows}
        return super().fit(X, links=links, sample_weight=sample_weight, **told)

    def _fresh_starts(
        self,
        some: Knowledge[Array],
        density: Density[Any, Any],
        shape: starts.Shape,
        n_starts: int,
        random: RandomState,
    ) -> list[Start]:
        if self.init != "kmeans++":
            return super()._fresh_starts(some, density, shape, n_starts, random)
        return [lambda: starts.at_seeds(density, some.X, shape, random, some.sample_weight)] * n_starts


class GMM(_RivalMixture):
    """Gaussian mixture without links, the baseline of every comparison.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from linkmix import purity
    >>> from linkmix.rivals import GMM
    >>> X, y = load_iris(return_X_y=True)
    >>> round(purity(y, GMM(3, n_init=10, random_state=0).fit(X).labels_), 2)
    0.97
    """

    uses_must = False
    uses_cannot = False
    published_coupling = Uncoupled()


class GMPR(_RivalMixture):
    """GM-PR as printed: the paper's model with its start and a single fit (Yu, Elhabian and Whitaker).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from linkmix import Links
    >>> from linkmix.rivals import GMPR
    >>> X, y = load_iris(return_X_y=True)
    >>> GMPR(3, random_state=0).fit(X, links=Links.from_labels(y, 20, random_state=0)).converged_
    True
    """

    uses_confidence = True
    published_coupling = Pairwise()


class GMMEC(_RivalMixture):
    """GMM-EC: must-link closure and an exact network over cannot-links (Shental and others, 2003).

    Links are observations of points that are drawn independently. The original draws chunklets, or points, until they
    meet the links, and its class weights collapse where most points are linked; for these use
    ``LinkMixture(coupling=Graph(sampling="chunklets"))``, or ``"points"``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from linkmix import Links, links_satisfied
    >>> from linkmix.rivals import GMMEC
    >>> X, y = load_iris(return_X_y=True)
    >>> links = Links.from_labels(y, 20, random_state=0)
    >>> links_satisfied(GMMEC(3, random_state=0).fit(X, links=links).labels_, links)
    1.0
    """

    uses_confidence = True
    published_coupling = Graph()


class EMPC(_RivalMixture):
    """EM-PC: posteriors projected until cannot-links hold in expectation (Graca, Ganchev and Taskar, 2007).

    Must-links are refused. For slack use ``LinkMixture(coupling=Projection(slack=...))``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from linkmix import Links
    >>> from linkmix.rivals import EMPC
    >>> X, y = load_iris(return_X_y=True)
    >>> links = Links.from_labels(y, 20, kind="cannot", random_state=0)
    >>> EMPC(3, random_state=0).fit(X, links=links).labels_.shape
    (150,)
    """

    uses_must = False
    published_coupling = Projection()


class SoftChunkletMixture(_RivalMixture):
    """Must-links as random variables: a linked point may leave its group (Law, Topchy and Jain, 2004 and 2005).

    Cannot-links are refused. For another strength of the links use ``LinkMixture(coupling=SoftChunklets(...))``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from linkmix import Links
    >>> from linkmix.rivals import SoftChunkletMixture
    >>> X, y = load_iris(return_X_y=True)
    >>> links = Links.from_labels(y, 20, kind="must", random_state=0)
    >>> SoftChunkletMixture(3, random_state=0).fit(X, links=links).converged_
    True
    """

    uses_cannot = False
    uses_confidence = True
    published_coupling = SoftChunklets()


class PPC(_RivalMixture):
    """PPC: links as penalties in the label prior, with mean-field inference (Lu and Leen, 2004).

    Parameters
    ----------
    n_classes : int, default=2
        Number of classes.
    weight : float, default=10.0
        Log-probability gained by each must-link that holds and lost by each cannot-link that is broken. Ten nats make
        a link nearly certain; at one nat the points often outvote it.
    clusters_per_class, covariance_type, init, n_init, reg_covar, tol, max_iter, random_state
        As in `LinkMixture`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from linkmix import Links
    >>> from linkmix.rivals import PPC
    >>> X, y = load_iris(return_X_y=True)
    >>> PPC(3, random_state=0).fit(X, links=Links.from_labels(y, 20, random_state=0)).labels_.shape
    (150,)
    """

    uses_confidence = True
    published_coupling = MeanField()
    _parameter_constraints: ClassVar[Constraints] = {
        **_RivalMixture._parameter_constraints,
        "weight": [at_least(0, Real)],
    }

    def __init__(
        self,
        n_classes: int = 2,
        *,
        weight: float = 10.0,
        clusters_per_class: int = 1,
        covariance_type: CovarianceType = "full",
        init: StartName | Mapping[str, Any] = "kmeans++",
        n_init: int = 1,
        reg_covar: float = 1e-6,
        tol: float = 1e-6,
        max_iter: int = 300,
        random_state: int | RandomState | None = None,
    ) -> None:
        super().__init__(
            n_classes,
            clusters_per_class=clusters_per_class,
            covariance_type=covariance_type,
            init=init,
            n_init=n_init,
            reg_covar=reg_covar,
            tol=tol,
            max_iter=max_iter,
            random_state=random_state,
        )
        self.weight = weight

    @property
    def coupling(self) -> MeanField:
        """What the weight comes to."""
        return MeanField(self.weight)

    @coupling.setter
    def coupling(self, coupling: MeanField) -> None:
        self.weight = coupling.weight
