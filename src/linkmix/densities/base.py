"""What a density must offer to the EM engine.

A density describes ``C`` components at once: how likely each row is under each of them, which sums over weighted rows
suffice to estimate them, and how the parameters follow from those sums. It knows nothing of classes or links.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Generic, Self, TypeVar

import numpy as np
from numpy.random import RandomState

from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.native import Components, Elliptical


@dataclass(frozen=True, eq=False)
class Statistics:
    """Sums over weighted rows. The statistics of two sets of rows add up to those of both together."""

    def __add__(self, other: Self) -> Self:
        return type(self)(**{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)})


class BadColumn(ValueError):
    """A column holds a value that the density cannot describe.

    Parameters
    ----------
    column : int
        Number of the column.
    problem : str
        The value and the remedy, phrased to follow the name of the column.

    Examples
    --------
    >>> str(BadColumn(3, "holds 0.5 in row 7: round it"))
    'column 3 holds 0.5 in row 7: round it'
    """

    # Kept apart, so that a caller who knows the column by another number or name can say so.
    def __init__(self, column: int, problem: str) -> None:
        super().__init__(column, problem)
        self.column = column
        self.problem = problem

    def __str__(self) -> str:
        return f"column {self.column} {self.problem}"


ParametersT = TypeVar("ParametersT")
SumsT = TypeVar("SumsT", bound=Statistics)


class Density(ABC, Generic[ParametersT, SumsT]):
    """A family of distributions over rows; parameters go in and come back as values.

    The densities of linkmix are frozen dataclasses whose fields are their settings. Equality, representation and
    saving follow from the fields.
    """

    @property
    def allows_missing(self) -> bool:
        """Whether rows may hold NaN, which stands for an unknown value and is integrated out."""
        return False

    def named(self, columns: Sequence[str]) -> "Density[Any, Any]":
        """The same density for rows with columns of these names; it differs only where it refers to names."""
        return self

    @property
    def kind(self) -> str | None:
        """The kind of columns that it describes, as `linkmix.columns` calls it; None if it describes several."""
        return "number"

    @abstractmethod
    def log_density(self, parameters: ParametersT, X: Array) -> Floats:
        """Log-density of each row under each component, shape (n, C)."""

    @abstractmethod
    def statistics(self, parameters: ParametersT, X: Array, weights: Floats) -> SumsT:
        """Sums of the rows weighted by ``weights`` (n, C), taken with the current parameters as pivot."""

    def mixture_sums(
        self, parameters: ParametersT, X: Array, log_weights: Floats, row_weights: Floats | None
    ) -> tuple[float, SumsT, Floats] | None:
        """Log-likelihood, statistics and weight (C,) of rows from a mixture with ``log_weights`` (C,), in one pass.

        The rows have no missing values; ``row_weights`` (n,) say how often each of them counts. None if the density
        has no such pass: the engine then calls `log_density` and `statistics`.
        """
        return None

    def elliptical(self, parameters: ParametersT) -> Elliptical | None:
        """The components as the native core evaluates them; None if it cannot."""
        return None

    def to_native(self, parameters: ParametersT) -> Components | None:
        """The components as the native core represents them; None if the core cannot run both steps of EM alone."""
        return None

    def from_native(self, components: Components) -> ParametersT:
        """The inverse of `to_native`."""
        raise NotImplementedError

    def to_vector(self, parameters: ParametersT, about: ParametersT) -> Floats | None:
        """Coordinates (C, p) of parameters, for steps along a line; None if the density has none.

        ``about`` is at 0. Any numbers are valid coordinates, and units of columns do not change them. The distribution
        a small distance e away has a Kullback-Leibler divergence of about ``e**2 / 2``.
        """
        return None

    def from_vector(self, vector: Floats, about: ParametersT) -> ParametersT:
        """The inverse of `to_vector`."""
        raise NotImplementedError

    @abstractmethod
    def maximize(self, statistics: SumsT, parameters: ParametersT) -> ParametersT:
        """Parameters that maximise the expected log-density; the sums were taken with ``parameters``."""

    @abstractmethod
    def start(self, X: Array, weights: Floats) -> ParametersT:
        """First parameters, from rows that are assigned to components with ``weights`` (n, C)."""

    def wide(self, X: Array, weights: Floats) -> ParametersT:
        """One component that is at least as wide as all rows together: the background of `Contaminated`.

        By default what `start` makes of all rows, counted with ``weights`` (n,).
        """
        return self.start(X, weights[:, None])

    @abstractmethod
    def given(self, mapping: Mapping[str, Any], shape: tuple[int, ...], n_features: int) -> ParametersT:
        """Parameters from the user's arrays, whose leading axes have ``shape``; a wrong shape is a ValueError."""

    @abstractmethod
    def attributes(self, parameters: ParametersT, shape: tuple[int, ...]) -> dict[str, Array]:
        """The arrays that `given` accepts, with the component axis unfolded to ``shape``."""

    @abstractmethod
    def sample(self, parameters: ParametersT, component: int, n_samples: int, random: RandomState) -> Array:
        """Draw rows from one component, shape (n_samples, d)."""

    @abstractmethod
    def n_parameters(self, n_components: int, n_features: int) -> int:
        """Number of free parameters of all components together."""

    def free_parameters(self, parameters: ParametersT, n_components: int, n_features: int) -> int:
        """Number of free parameters of a fit, if it depends on the data, for example on the levels they contain."""
        return self.n_parameters(n_components, n_features)

    def check(self, X: Array) -> None:
        """Refuse rows that the density cannot describe, with a ValueError that names column, value and remedy."""
        return

    def log_prior(self, parameters: ParametersT) -> float:
        """Logarithm of the prior of the parameters, for a density that has one. EM maximises J plus this."""
        return 0.0

    def take(self, parameters: ParametersT, order: Ints) -> ParametersT:
        """Parameters with the components in another order. This default handles a dataclass of arrays (C, ...)."""
        arrays = {f.name: getattr(parameters, f.name)[order] for f in fields(parameters)}  # type: ignore[arg-type]
        return replace(parameters, **arrays)  # type: ignore[type-var]

    def maximize_cautiously(self, statistics: SumsT, parameters: ParametersT) -> ParametersT:
        """A step that never lowers the expected log-density, used when `maximize` made the likelihood fall.

        This default stays where it is. Only a density whose `maximize` is not an exact maximum needs more, for example
        one that adds a constant to a covariance.
        """
        return parameters


def given_array(mapping: Mapping[str, Any], name: str, shape: tuple[int, ...]) -> Floats:
    """One array of a start given by the user, checked for its name, shape and values."""
    if name not in mapping:
        raise ValueError(f"init has no {name!r} (it has {sorted(mapping)}): add an array of shape {shape}")
    try:
        array = np.array(mapping[name], dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"init[{name!r}] is no array of numbers ({error}): give one of shape {shape}") from None
    if array.shape != shape:
        raise ValueError(f"init[{name!r}] has shape {array.shape}, expected {shape}: reshape it")
    if not np.isfinite(array).all():
        raise ValueError(f"init[{name!r}] holds a value that is not finite: replace it by a number")
    return array
