"""What a density must offer to the EM engine.

A density describes ``C`` components at once: how likely each row is under each of them, which sums over weighted rows
are enough to estimate them, and how parameters follow from those sums. It knows nothing of classes or links.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Generic, Self, TypeVar

import numpy as np
from numpy.random import RandomState

from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.native import Components


@dataclass(frozen=True)
class Statistics:
    """Sums over weighted rows. Statistics of two sets of rows add up to those of both."""

    def __add__(self, other: Self) -> Self:
        return type(self)(**{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)})


class BadColumn(ValueError):
    """A column holds a value that the density can not describe.

    Parameters
    ----------
    column : int
        Number of the column.
    problem : str
        The value and the remedy, to be read after the name of the column.

    Examples
    --------
    >>> str(BadColumn(3, "holds 0.5 in row 7: round it"))
    'column 3 holds 0.5 in row 7: round it'
    """

    # Column and problem stay apart, so that whoever knows the column by another number or name can say so.
    def __init__(self, column: int, problem: str) -> None:
        super().__init__(column, problem)
        self.column = column
        self.problem = problem

    def __str__(self) -> str:
        return f"column {self.column} {self.problem}"


Parameters = TypeVar("Parameters")
Sums = TypeVar("Sums", bound=Statistics)


class Density(ABC, Generic[Parameters, Sums]):
    """A family of distributions over rows; parameters go in and come back as values.

    Attributes
    ----------
    allows_missing : bool
        Whether rows may hold NaN, which then stands for a value that is not known and is integrated out.
    """

    allows_missing: bool = False

    @abstractmethod
    def log_density(self, parameters: Parameters, X: Array) -> Floats:
        """Log-density of each row under each component, shape (n, C)."""

    @abstractmethod
    def statistics(self, parameters: Parameters, X: Array, weights: Floats) -> Sums:
        """Sums of the rows weighted by ``weights`` (n, C), taken with the current parameters as pivot."""

    def mixture_sums(
        self, parameters: Parameters, X: Array, log_weights: Floats, row_weights: Floats | None
    ) -> tuple[float, Sums, Floats] | None:
        """Log-likelihood, statistics and weight (C,) of rows from a mixture with ``log_weights`` (C,), in one pass.

        No value of the rows is missing; ``row_weights`` (n,) say how often each of them counts. None where the density
        has no such pass: the engine then goes by `log_density` and `statistics`.
        """
        return None

    def to_native(self, parameters: Parameters) -> Components | None:
        """The components as the native core knows them; None where it can not make both steps of EM by itself."""
        return None

    def from_native(self, components: Components) -> Parameters:
        """The way back from `to_native`."""
        raise NotImplementedError

    @abstractmethod
    def maximize(self, statistics: Sums, parameters: Parameters) -> Parameters:
        """Parameters that maximise the expected log-density; ``parameters`` are those the sums were taken with."""

    @abstractmethod
    def start(self, X: Array, weights: Floats) -> Parameters:
        """First parameters from rows that are assigned to components with ``weights`` (n, C)."""

    @abstractmethod
    def given(self, mapping: Mapping[str, Any], shape: tuple[int, ...], n_features: int) -> Parameters:
        """Parameters from the arrays of a user, whose leading axes have ``shape``; a wrong shape is a ValueError."""

    @abstractmethod
    def attributes(self, parameters: Parameters, shape: tuple[int, ...]) -> dict[str, Array]:
        """The arrays of ``given``, with the component axis unfolded to ``shape``."""

    @abstractmethod
    def sample(self, parameters: Parameters, component: int, n_samples: int, random: RandomState) -> Array:
        """Draw rows from one component, shape (n_samples, d)."""

    @abstractmethod
    def n_parameters(self, n_components: int, n_features: int) -> int:
        """Number of free parameters of all components together."""

    def free_parameters(self, parameters: Parameters, n_components: int, n_features: int) -> int:
        """Number of free parameters of a fit, for a density where it depends on the data, such as on their levels."""
        return self.n_parameters(n_components, n_features)

    def check(self, X: Array) -> None:
        """Refuse rows that the density can not describe, with a ValueError that names column, value and remedy."""
        return

    def log_prior(self, parameters: Parameters) -> float:
        """Logarithm of the prior of the parameters, for a density that has one. EM maximises J plus this."""
        return 0.0

    def take(self, parameters: Parameters, order: Ints) -> Parameters:
        """Parameters of the components in another order. As it stands, for a dataclass of arrays (C, ...)."""
        arrays = {f.name: getattr(parameters, f.name)[order] for f in fields(parameters)}  # type: ignore[arg-type]
        return replace(parameters, **arrays)  # type: ignore[type-var]

    def maximize_cautiously(self, statistics: Sums, parameters: Parameters) -> Parameters:
        """A step that never lowers the expected log-density, used when `maximize` made the likelihood fall.

        Only a density whose `maximize` is not an exact maximum, such as one that adds to a covariance, needs more
        than this: to stay where it is.
        """
        return parameters


def given_array(mapping: Mapping[str, Any], name: str, shape: tuple[int, ...]) -> Floats:
    """One array of a start that the user gave, checked for its name, shape and values."""
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
