"""The base class of both estimators: input is checked once, and nothing is stored until a fit is complete."""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.random import Generator, RandomState
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils._param_validation import make_constraint
from sklearn.utils.validation import check_is_fitted, validate_data

from linkmix import native
from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.basics.checks import Constraints, check_sample_weight, refuse_sparse
from linkmix.basics.errors import InfeasibleLinks, LinkConflict
from linkmix.basics.memory import reserve
from linkmix.columns import Coded, Recipe, code, is_table
from linkmix.couplings.statements import FIRST_RELIABILITY
from linkmix.data.blocks import LARGEST, Blocks, Door, Source, Table, check_size, named
from linkmix.data.summary import extent
from linkmix.engine.fitting import Knowledge
from linkmix.links import Links
from linkmix.links.checks import (
    LinksLike,
    apart_from_noise,
    as_links,
    check_bound,
    check_ids,
    check_known_labels,
    check_links,
    check_y,
)
from linkmix.links.names import all_names, check_names, names_of_labels, number_names
from linkmix.links.reading import read_random_state
from linkmix.mixture import model_file
from linkmix.mixture.card import card
from linkmix.mixture.settings import names_annotators

PointsLike = ArrayLike | Source | Coded
DASK = ("dask", "dask_expr")
"""Packages of Dask's arrays and data frames, which are recognised without importing them."""
FEW_ROWS = 1000
"""Rows outside memory by which a second fit tells whether it can start from the first."""


@dataclass(frozen=True, eq=False)
class SeenColumns:
    """The columns that a fit saw: how many, and their names where the input had them."""

    n: int
    names: Array | None = None

    @classmethod
    def of(cls, recipe: Recipe) -> "SeenColumns":
        """The columns of a table that a recipe uses."""
        names = [column.name for column in recipe.columns]
        return cls(len(names), np.array(names, dtype=object))


@dataclass(frozen=True, eq=False)
class Request:
    """What a user passed to `fit`: checked points; the rest is checked once the number of classes is known."""

    points: Floats | Table
    y: object
    links: Links
    rows: ArrayLike | None
    sample_weight: Floats | None
    names: tuple[str, ...] = ()  # of the first classes, if y had names
    columns: tuple[str, ...] = ()  # the user's name of each column of the points, if these have names
    levels: tuple[int, ...] = ()  # of each column of codes of categories, which are the last columns
    before: Floats | Table | None = None  # the points as an earlier fit sees them, if this one starts from it
    contradicted: bool = False  # links that name their annotators contradict each other, so some of them are wrong

    def knowledge(self, n_classes: int, *, learn_reliability: bool, noise: bool = False) -> Knowledge[Array | Table]:
        """All input, checked for consistency and against the number of classes."""
        links = self.links.at_most(FIRST_RELIABILITY) if learn_reliability else self.links
        links = check_links(links, len(self.points), n_classes, self.rows)
        check_names(self.names, n_classes)
        y, is_noise = apart_from_noise(self.y, len(self.points), links) if noise else (self.y, None)
        known = check_known_labels(y, len(self.points), n_classes, links)
        if is_noise is None:
            return Knowledge(self.points, links, self.sample_weight, known)
        weights = np.where(is_noise, 0.0, 1.0 if self.sample_weight is None else self.sample_weight)
        return Knowledge(self.points, links.without(np.flatnonzero(is_noise)), weights, known, is_noise)


class LinkEstimator(ClusterMixin, BaseEstimator, ABC):
    """Base class of `LinkMixture` and `AutoLinkMixture`."""

    _parameter_constraints: ClassVar[Constraints]
    _parts: ClassVar[tuple[type, ...]] = ()  # estimators that a saved one may contain
    n_classes: Any  # of an AutoLinkMixture also "auto"
    warm_start: bool
    links: Links | None
    random_state: int | RandomState | Generator | None

    # Set by a fit.
    classes_: Array
    labels_: Array
    links_to_review_: Array
    relation_probability_: Floats
    relations_to_review_: Array
    noise_share_: float
    n_features_in_: int
    feature_names_in_: Array
    recipe_: Recipe | None

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
        """Fit to points and links.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Blocks
            The points. NaN marks a missing value, if the density allows it. `Blocks` and memory-mapped arrays
            are read block by block; only linked rows and a sample are held in memory. A table of pandas, polars or
            pyarrow may have columns of every kind: categories, truth values, dates, texts, lists of numbers.
        y : array-like of shape (n_samples,), optional
            Known labels: class numbers from 0, and -1 where the class is not known; or names of classes as text, and
            None, NaN or pandas.NA where it is not known. With names, ``classes_``, ``labels_`` and `predict` have them
            as well. For an estimator with noise, -2 marks a row that is known to belong to no class: its label is -1,
            as are those of all rows that must link with it, and other links to it say nothing. A `y` in which no label
            is unknown is ignored, as by scikit-learn's clusterers.
        links : Links, or a table of links, optional
            Links between rows of `X`. A table (pandas, polars, pyarrow, or a dict of lists) names the rows by their
            ids, in columns as `Links.from_table` reads them. Where nothing is given, the estimator's own ``links`` are
            used.
        ids : sequence of shape (n_samples,), optional
            For a table of links: the ids of the rows of `X`, in their order. By default they are the index of `X`, if
            it is a data frame of pandas.
        must_link, cannot_link : array-like of shape (n_links, 2), optional
            The same as plain pairs of row numbers, instead of `links`.
        rows : array-like of shape (n_samples,), optional
            Number of each row of `X` in the table that the links refer to. Links to other rows are left out. Meant for
            cross-validation, which splits this array along with `X`.
        sample_weight : array-like of shape (n_samples,), optional
            How often each point counts. A linked point of weight 2 counts as two copies that share its label.

        Returns
        -------
        self
            The fitted estimator. If anything fails, an earlier fit stays as it was.
        """
        self.check_settings()
        native.warn_if_missing()
        reserve()
        bound = links is None and must_link is None and cannot_link is None
        given = as_links(self.links if bound else links, must_link, cannot_link, ids=ids, rows=rows, X=X)
        coded = self._code(X)
        names_of_columns = names_in(X) if coded is None else coded.recipe.owners
        door = self._door(reset=True, columns=names_of_columns)
        points, columns = let_in(self, X if coded is None else coded.X, door, reset=True)
        recipe = None if coded is None else coded.recipe
        levels: tuple[int, ...] = () if coded is None else coded.levels
        columns = columns if recipe is None else SeenColumns.of(recipe)
        check_ids(ids, len(points))
        check_y(y, len(points))
        if bound and rows is None:
            check_bound(given, len(points))
        weights = check_sample_weight(sample_weight, len(points))
        before = self._as_before(X, points, columns, recipe)
        numbers, names = number_names(y, len(points), () if before is None else self._earlier_names())
        request = Request(points, numbers, given, rows, weights, names, names_of_columns, levels, before)
        try:
            found = self._solve(request, read_random_state(self.random_state))
        except (LinkConflict, InfeasibleLinks):
            if not names_annotators(given):
                raise
            found = self._solve(replace(request, contradicted=True), read_random_state(self.random_state))
        self.take_over(found, columns, names, points, recipe)
        return self

    def fit_predict(
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
    ) -> Array:
        """Fit, and return the classes of the training points.

        Parameters
        ----------
        X, y, links, ids, must_link, cannot_link, rows, sample_weight
            As in `fit`.

        Returns
        -------
        ndarray of shape (n_samples,)
            ``labels_``.
        """
        told: dict[str, Any] = {"ids": ids, "must_link": must_link, "cannot_link": cannot_link, "rows": rows}
        return self.fit(X, y, links=links, sample_weight=sample_weight, **told).labels_

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted estimator to one file, which holds no code and can be read on any machine.

        ``labels_`` is part of it unless it is outside memory: in a scratch file, for more than 33 million rows that
        were read block by block, or on a cluster.

        Parameters
        ----------
        path : path
            The file. An existing one is replaced, completely or not at all.

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
        """Read an estimator from a file that `save` wrote.

        Parameters
        ----------
        path : path
            The file. One that is truncated, changed or of another kind is refused.

        Returns
        -------
        estimator
            The fitted estimator.
        """
        estimator: Self = model_file.load(path, [cls], cls._parts).estimator
        if "classes_" not in vars(estimator):  # early files do not have them
            n_classes = getattr(estimator, "n_classes_", None) or len(estimator.class_weights_)
            estimator.classes_ = all_names((), n_classes)
        return estimator

    @abstractmethod
    def score_samples(self, X: PointsLike) -> Floats:
        """Log-density of each point."""

    def score(self, X: PointsLike, y: object = None, *, sample_weight: ArrayLike | None = None) -> float:
        """Mean log-density of the points.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Blocks
            The points.
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

    def check_settings(self) -> None:
        """Raise an error if a setting is invalid."""
        if hasattr(self.links, "columns"):
            raise ValueError(
                f"links is a {type(self.links).__name__}, and an estimator holds links between row numbers: use "
                "links=Links.from_table(table, ids), or give the table to fit"
            )
        if not all(
            any(constraint.is_satisfied_by(getattr(self, name)) for constraint in allowed)
            for name, allowed in _constraints(type(self))
        ):
            self._validate_params()  # the same check, slower, which raises

    @abstractmethod
    def _door(self, *, reset: bool, columns: tuple[str, ...] = ()) -> Door:
        """The checks that points must pass, for a new fit to columns of these names or for the current one."""

    @abstractmethod
    def _kinds(self, X: Any) -> Mapping[str, str] | None:
        """Kinds of columns of a table as far as settings tell; None if its columns are to be taken as they are."""

    @abstractmethod
    def row_probabilities(self) -> Callable[[Array], Floats]:
        """The function from checked rows to the probability of each class, shape (n, n_classes)."""

    @abstractmethod
    def _numbers_of(self, X: Array) -> Ints:
        """Number of the most probable class of each row by the present fit, even of rows of no class."""

    @abstractmethod
    def _solve(self, request: Request, random: RandomState) -> Any:
        """Compute a fit, without changing the estimator."""

    @abstractmethod
    def _attributes(self, found: Any) -> dict[str, Any]:
        """The fitted attributes, from the result of `_solve`."""

    def take_over(
        self,
        found: Any,
        columns: SeenColumns,
        names: tuple[str, ...] = (),
        points: Floats | Table | None = None,
        recipe: Recipe | None = None,
    ) -> None:
        """Become a fitted estimator. Everything is computed first, and then assigned in one step.

        ``names`` are those of the first classes; with names, ``points`` are where the labels belong. The ``recipe`` is
        that of a table with columns of every kind.
        """
        state = {"n_features_in_": columns.n, **self._attributes(found), "_names": names, "recipe_": recipe}
        state["classes_"] = all_names(names, len(state["classes_"]))
        if names:
            state["labels_"] = named(points, state["labels_"], _label_names(state))
        if columns.names is not None:
            state["feature_names_in_"] = columns.names
        kept = {name: value for name, value in vars(self).items() if name.startswith("_") or not name.endswith("_")}
        self.__dict__ = {**kept, **state}

    def with_names(self, names: Sequence[str]) -> Self:
        """A copy of this fitted estimator whose classes have names, one for each.

        Parameters
        ----------
        names : sequence of str
            Names in the order of ``classes_``.

        Returns
        -------
        estimator
            Its ``classes_``, ``labels_`` and predictions are names; -1 stays the label of no class, as text.

        Examples
        --------
        >>> from linkmix import LinkMixture
        >>> model = LinkMixture(2, random_state=0).fit([[0.0], [0.1], [9.0], [9.1]])
        >>> sorted(model.with_names(["low", "high"]).predict([[0.0], [9.0]]).tolist())
        ['high', 'low']
        """
        check_is_fitted(self)
        given, n_classes = tuple(map(str, names)), len(self.classes_)
        if len(given) != n_classes or len(set(given)) < n_classes:
            raise ValueError(f"{given} names {len(set(given))} of {n_classes} classes: give each a name of its own")
        found = copy(self)
        found.__dict__ = {**vars(self), "_names": given, "classes_": np.array(given)}
        number_of = {name: number for number, name in enumerate(self.classes_.tolist())}
        labels = np.array([number_of.get(label, -1) for label in np.asarray(self.labels_).tolist()], dtype=np.int64)
        found.labels_ = _label_names(vars(found))[labels]
        return found

    def _as_before(
        self, X: PointsLike, points: Floats | Table, columns: SeenColumns, recipe: Recipe | None
    ) -> Floats | Table | None:
        """The points as an earlier fit sees them, if this one is to start from it.

        They are ``points`` itself, unless a recipe has been learned anew. None if the earlier fit cannot describe them.
        """
        if not (self.warm_start and hasattr(self, "n_features_in_")):
            return None
        learned: Recipe | None = getattr(self, "recipe_", None)
        try:
            if recipe is None and learned is None:
                names = getattr(self, "feature_names_in_", None)
                renamed = columns.names is not None and names is not None and [*columns.names] != [*names]
                if renamed or columns.n != self.n_features_in_:
                    return None
            elif isinstance(X, Coded):
                if recipe is not learned:
                    return None
            else:
                seen = self.seen(X)
                points = points if np.array_equal(seen, np.asarray(points), equal_nan=True) else seen
            few = points.take(np.arange(min(len(points), FEW_ROWS))) if isinstance(points, Table) else points
            self._door(reset=False).check(few)
            self._numbers_of(few)
        except ValueError:
            return None
        return points

    def _html_repr(self) -> str:
        """What notebooks show: scikit-learn's diagram and, once fitted, a small picture of the result."""
        diagram: str = super()._html_repr()
        return diagram + card(self) if hasattr(self, "n_features_in_") else diagram

    def _earlier_names(self) -> tuple[str, ...]:
        """Names of classes that this fit is to keep from an earlier one."""
        names: tuple[str, ...] = getattr(self, "_names", ())
        return names if self.n_classes == len(self.classes_) else ()

    def _classes_of(self, numbers: Ints, points: Floats | Table | None = None) -> Array:
        """Class numbers as the user knows them: by their names, if there are any."""
        if not getattr(self, "_names", ()):  # models from early files have none
            return numbers
        return named(points, numbers, _label_names(vars(self)))

    @property
    def label_dtype(self) -> np.dtype[Any]:
        """Type of the labels that `predict` gives."""
        return _label_names(vars(self)).dtype if getattr(self, "_names", ()) else np.dtype(np.int64)

    def _check_noise(self) -> None:
        """Raise an error if the fit has no noise."""
        if not hasattr(self, "noise_share_"):
            raise ValueError(
                "the model was fitted without noise: fit an AutoLinkMixture(noise=True), or a "
                "LinkMixture(density=Contaminated(Gaussian()))"
            )

    def seen(self, X: PointsLike) -> Floats:
        """Rows in memory as the fit saw them: checked, and turned into numbers if they are a table."""
        return np.asarray(self._seen(X))

    def _seen(self, X: PointsLike) -> Floats | Table:
        """Checked points, with the same columns as in the fit."""
        check_is_fitted(self)
        recipe: Recipe | None = getattr(self, "recipe_", None)  # models from early files have none
        if recipe is None:
            if isinstance(X, Coded):
                raise ValueError("X is coded, but this model was fitted to plain numbers: pass these")
            return let_in(self, X, self._door(reset=False), reset=False)[0]
        if isinstance(X, Coded):
            array = X.X
        elif is_table(X):
            array = recipe(X)
        else:
            raise ValueError(
                f"X is a {type(X).__name__}, but this model was fitted to a table with the columns "
                f"{', '.join(map(repr, self.feature_names_in_))}: pass a data frame with these columns"
            )
        return let_in(self, array, self._door(reset=False), reset=False, coded=True)[0]

    def _code(self, X: PointsLike) -> Coded | None:
        """A table with columns of every kind as numbers; None if it holds numbers already."""
        if isinstance(X, Coded):
            return X
        if not is_table(X):
            return None
        kinds = self._kinds(X)
        return None if kinds is None else code(X, kinds)


def _label_names(fitted: Mapping[str, Any]) -> Array:
    """Names of the classes, and of no class if the fit has noise."""
    classes: Array = fitted["classes_"]
    return names_of_labels(classes) if "noise_share_" in fitted else classes


@cache
def _constraints(kind: type[LinkEstimator]) -> list[tuple[str, list[Any]]]:
    """The declared constraints, built once: scikit-learn builds them in every fit, which slows down small fits."""
    return [(name, [make_constraint(one) for one in allowed]) for name, allowed in kind._parameter_constraints.items()]


def names_in(X: PointsLike) -> tuple[str, ...]:
    """Names of the columns of a data frame; none for other input."""
    names = getattr(X, "columns", ()) if is_table(X) else ()
    return tuple(map(str, names))


def let_in(
    estimator: LinkEstimator, X: PointsLike, door: Door, *, reset: bool, coded: bool = False
) -> tuple[Floats | Table, SeenColumns]:
    """Checked points in memory, or a table if they are elsewhere, and their columns.

    Rows that a recipe made (``coded``) have the right columns, so these are not compared with those of the fit.
    """
    if isinstance(X, np.memmap) and X.ndim == 2:
        X = Blocks.from_array(X)
    if type(X).__module__.partition(".")[0] in DASK:
        raise ValueError(
            f"X is a {type(X).__name__} of Dask, which this method would copy into the memory of this process: use "
            f"linkmix.distributed.{'fit' if reset else 'predict'}(model, X, ...), or pass X.compute() if it is small"
        )
    if hasattr(X, "obsm") and hasattr(X, "obs"):
        raise ValueError(
            f"X is an {type(X).__name__}, not a table: pass one of its tables, such as "
            'adata.obsm["X_pca"], and keep the result with adata.obs["class"] = model.labels_'
        )
    refuse_sparse(X)
    if isinstance(X, Iterator):
        raise ValueError(
            f"X is a {type(X).__name__}, which can be read only once: pass linkmix.Blocks of the function that makes it"
        )
    if type(X) is np.ndarray and (reset or coded or _has_columns_of(estimator, X)) and _is_plain(X, door):
        door.check(X)
        return X, SeenColumns(X.shape[1])
    seen_by = copy(estimator) if reset or coded else estimator  # scikit-learn stores on it which columns it saw
    points: Floats | Table
    if isinstance(X, Source):
        table = X.enter(door)
        validate_data(seen_by, table.head, skip_check_array=True, reset=reset or coded)
        known, points = table.summary.n_values > 0, table.gathered()
    else:
        finite = "allow-nan" if door.missing else True
        array: Floats = validate_data(seen_by, X, dtype=door.kinds, ensure_all_finite=finite, reset=reset or coded)
        low, high = extent(array)
        check_size(low, high)
        known, points = ~np.isnan(high), array
    if reset and not known.all():
        raise ValueError(f"column {int(np.argmin(known))} of X has no value in any row: drop it")
    if isinstance(points, np.ndarray):
        door.check(points)
    return points, SeenColumns(seen_by.n_features_in_, getattr(seen_by, "feature_names_in_", None))


def _has_columns_of(estimator: LinkEstimator, X: Array) -> bool:
    """Whether an array has as many columns as the fit, whose columns had no names."""
    return X.ndim == 2 and X.shape[1] == estimator.n_features_in_ and not hasattr(estimator, "feature_names_in_")


def _is_plain(X: Array, door: Door) -> bool:
    """Whether scikit-learn's checks would pass: no number is missing, infinite or too large to be squared."""
    return X.dtype in door.kinds and X.ndim == 2 and X.size > 0 and float(max(X.max(), -X.min())) <= LARGEST
