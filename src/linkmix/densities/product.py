"""Columns of different kinds in one model: given the component, each group of columns has its own density."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.random import RandomState

from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.densities.base import BadColumn, Density, Statistics


@dataclass(frozen=True, eq=False)
class ProductParameters:
    """Parameters of each part, by name."""

    parts: dict[str, Any]


@dataclass(frozen=True, eq=False)
class ProductSums(Statistics):
    """Sums of each part, by name."""

    parts: dict[str, Any]

    def __add__(self, other: Self) -> Self:
        return type(self)({name: sums + other.parts[name] for name, sums in self.parts.items()})


class _Part(NamedTuple):
    """A density and its columns."""

    density: Density[Any, Any]
    columns: tuple[int, ...]

    @property
    def where(self) -> slice | list[int]:
        """The columns as an index; a slice if they are adjacent, which copies nothing."""
        first, last = self.columns[0], self.columns[-1]
        if self.columns == tuple(range(first, last + 1)):
            return slice(first, last + 1)
        return list(self.columns)


@dataclass(frozen=True)
class Product(Density[ProductParameters, ProductSums]):
    """A density for each group of columns; the groups are independent given the component.

    Missing values are allowed if all parts allow them.

    Parameters
    ----------
    parts : mapping of str to (Density, sequence of int or str)
        Name, density and columns of each part: column numbers, or names of the columns of a data frame. Each column of
        the data belongs to exactly one part. The name of a part becomes a prefix of its attributes: ``counts`` and
        ``rates`` give ``counts_rates``. If columns have names, those of a `Categorical` part may hold text.

    Examples
    --------
    >>> import numpy as np
    >>> from linkmix.densities import Bernoulli, Gaussian, Poisson
    >>> density = Product({"size": (Gaussian(), [0, 1]), "visits": (Poisson(), [3]), "member": (Bernoulli(), [2])})
    >>> X = np.array([[1.5, 2.0, 1, 0], [1.0, 1.5, 1, 2], [9.0, 8.0, 0, 7], [8.0, 8.5, np.nan, 9]])
    >>> parameters = density.start(X, np.repeat(np.eye(2), 2, axis=0))
    >>> density.log_density(parameters, X).argmax(axis=1).tolist()
    [0, 0, 1, 1]
    >>> list(density.attributes(parameters, (2, 1)))[:3]
    ['size_means', 'size_covariances', 'visits_rates']
    """

    parts: Mapping[str, tuple[Density[Any, Any], Sequence[int] | Sequence[str]]] = field(hash=False)

    def __post_init__(self) -> None:
        if not isinstance(self.parts, Mapping) or not self.parts:
            raise ValueError(f"parts={self.parts!r} names no part: pass {{name: (density, columns)}}")
        # A copy of plain values, so that equal settings compare equal, whatever sequences they came in.
        object.__setattr__(self, "parts", {name: _checked(name, part) for name, part in self.parts.items()})
        owner: dict[int | str, str] = {}
        for name, (_, columns) in self.parts.items():
            for column in columns:
                if column in owner:
                    where = f"twice in part {name!r}" if owner[column] == name else f"in {owner[column]!r} and {name!r}"
                    raise ValueError(f"column {column!r} is {where}: name each column once")
                owner[column] = name
        if len({isinstance(column, str) for column in owner}) > 1:
            raise ValueError(f"parts refer to columns by numbers and by names ({[*owner]!r}): use one or the other")

    @property
    def kind(self) -> None:
        """None, since the parts describe columns of different kinds."""
        return

    @property
    def kinds(self) -> dict[str, str]:
        """The kind of each column that is referred to by its name."""
        return {
            column: density.kind
            for density, columns in self.parts.values()
            for column in columns
            if isinstance(column, str) and density.kind is not None
        }

    def named(self, columns: Sequence[str]) -> "Product":
        """The same product with column numbers in place of names; several columns may come from one of the user's."""
        wanted = self.kinds
        if not wanted:
            return self
        absent = [name for name in wanted if name not in columns]
        if absent:
            raise ValueError(
                f"parts name the columns {', '.join(map(repr, absent))}, and X has "
                f"{', '.join(map(repr, dict.fromkeys(columns))) or 'no names'}: name columns of X, which must be a "
                "data frame, or use column numbers"
            )
        return Product(
            {
                name: (density, [i for i, column in enumerate(columns) if column in own])
                for name, (density, own) in self.parts.items()
            }
        )

    @cached_property
    def _parts(self) -> dict[str, _Part]:
        return {name: _Part(density, tuple(map(int, columns))) for name, (density, columns) in self.parts.items()}

    @cached_property
    def _columns(self) -> dict[int, str]:
        """The part that each column belongs to."""
        return {column: name for name, part in self._parts.items() for column in part.columns}

    @property
    def allows_missing(self) -> bool:
        """Whether all parts allow missing values."""
        return all(density.allows_missing for density, _ in self.parts.values())

    def log_density(self, parameters: ProductParameters, X: Array) -> Floats:
        """Sum of the log-densities of the parts, shape (n, C)."""
        total: Floats | None = None
        for name, part in self._parts.items():
            with _naming_columns(name, part):
                log_density = part.density.log_density(parameters.parts[name], X[:, part.where])
            total = log_density if total is None else total + log_density
        assert total is not None
        return total

    def statistics(self, parameters: ProductParameters, X: Array, weights: Floats) -> ProductSums:
        """Sums of each part."""
        return ProductSums(
            self._each(lambda name, part: part.density.statistics(parameters.parts[name], X[:, part.where], weights))
        )

    def to_vector(self, parameters: ProductParameters, about: ProductParameters) -> Floats | None:
        """Coordinates of the parts side by side; None if a part has none."""
        vectors = self._vectors(parameters, about)
        return None if any(vector is None for vector in vectors) else np.concatenate(vectors, axis=1)

    def from_vector(self, vector: Floats, about: ProductParameters) -> ProductParameters:
        """Parameters of each part."""
        sizes = [own.shape[1] for own in self._vectors(about, about)]
        vectors = dict(zip(self._parts, np.split(vector, np.cumsum(sizes)[:-1], axis=1), strict=True))
        return ProductParameters(
            self._each(lambda name, part: part.density.from_vector(vectors[name], about.parts[name]))
        )

    def _vectors(self, parameters: ProductParameters, about: ProductParameters) -> list[Any]:
        return [part.density.to_vector(parameters.parts[name], about.parts[name]) for name, part in self._parts.items()]

    def maximize(self, statistics: ProductSums, parameters: ProductParameters) -> ProductParameters:
        """The maximum of each part."""
        return ProductParameters(
            self._each(lambda name, part: part.density.maximize(statistics.parts[name], parameters.parts[name]))
        )

    def maximize_cautiously(self, statistics: ProductSums, parameters: ProductParameters) -> ProductParameters:
        """The cautious step of each part."""
        return ProductParameters(
            self._each(
                lambda name, part: part.density.maximize_cautiously(statistics.parts[name], parameters.parts[name])
            )
        )

    def log_prior(self, parameters: ProductParameters) -> float:
        """Sum of the log-priors of the parts."""
        return sum(part.density.log_prior(parameters.parts[name]) for name, part in self._parts.items())

    def start(self, X: Array, weights: Floats) -> ProductParameters:
        """The start of each part."""
        self._check_columns(X.shape[1])
        return ProductParameters(self._each(lambda _, part: part.density.start(X[:, part.where], weights)))

    def wide(self, X: Array, weights: Floats) -> ProductParameters:
        """The background of each part."""
        return ProductParameters(self._each(lambda _, part: part.density.wide(X[:, part.where], weights)))

    def given(self, mapping: Mapping[str, Any], shape: tuple[int, ...], n_features: int) -> ProductParameters:
        """Arrays given by the user, each prefixed with the name of its part."""
        self._check_columns(n_features)

        def of_part(name: str, part: _Part) -> Any:
            own = {key.removeprefix(f"{name}_"): mapping[key] for key in mapping if key.startswith(f"{name}_")}
            try:
                return part.density.given(own, shape, len(part.columns))
            except ValueError as error:
                raise ValueError(f"part {name!r}, whose entries of init begin with '{name}_': {error}") from None

        return ProductParameters(self._each(of_part))

    def attributes(self, parameters: ProductParameters, shape: tuple[int, ...]) -> dict[str, Array]:
        """The arrays of all parts, each prefixed with the name of its part."""
        return {
            f"{name}_{key}": array
            for name, part in self._parts.items()
            for key, array in part.density.attributes(parameters.parts[name], shape).items()
        }

    def take(self, parameters: ProductParameters, order: Ints) -> ProductParameters:
        """Parameters with the components in another order."""
        return ProductParameters(self._each(lambda name, part: part.density.take(parameters.parts[name], order)))

    def sample(self, parameters: ProductParameters, component: int, n_samples: int, random: RandomState) -> Array:
        """Draw rows from one component, each column in its place."""
        out = np.empty((n_samples, len(self._columns)))
        for name, part in self._parts.items():
            out[:, part.where] = part.density.sample(parameters.parts[name], component, n_samples, random)
        return out

    def n_parameters(self, n_components: int, n_features: int) -> int:
        """Free parameters of all parts."""
        return sum(part.density.n_parameters(n_components, len(part.columns)) for part in self._parts.values())

    def free_parameters(self, parameters: ProductParameters, n_components: int, n_features: int) -> int:
        """Free parameters of all parts in a fit."""
        return sum(
            part.density.free_parameters(parameters.parts[name], n_components, len(part.columns))
            for name, part in self._parts.items()
        )

    def check(self, X: Array) -> None:
        """Refuse columns that no part describes, and values that a part refuses."""
        self._check_columns(X.shape[1])
        self._each(lambda _, part: part.density.check(X[:, part.where]))

    def _each(self, function: Callable[[str, _Part], Any]) -> dict[str, Any]:
        results = {}
        for name, part in self._parts.items():
            with _naming_columns(name, part):
                results[name] = function(name, part)
        return results

    def _check_columns(self, n_features: int) -> None:
        absent = sorted(column for column in self._columns if column >= n_features)
        if absent:
            raise ValueError(
                f"part {self._columns[absent[0]]!r} names column {absent[0]}, but the data have {n_features} columns "
                f"(0 to {n_features - 1}): count columns from 0"
            )
        unused = sorted(set(range(n_features)) - set(self._columns))
        if unused:
            raise ValueError(f"no part describes {_listed(unused)}: add them to a part, or drop them from the data")


@contextmanager
def _naming_columns(name: str, part: _Part) -> Iterator[None]:
    """Make an error about a column name its part, and its number in the whole table."""
    try:
        yield
    except BadColumn as error:
        raise BadColumn(part.columns[error.column], f"(part {name!r}) {error.problem}") from None


def _checked(
    name: str, part: tuple[Density[Any, Any], Iterable[int | str]]
) -> tuple[Density[Any, Any], tuple[int, ...] | tuple[str, ...]]:
    if not isinstance(name, str) or not name.isidentifier():
        raise ValueError(
            f"part {name!r} has no usable name: use letters, digits and underscores, as in names of attributes"
        )
    try:
        density, given = part
        columns = tuple(given)
    except (TypeError, ValueError):
        raise ValueError(f"part {name!r} is {part!r}: pass (density, list of column numbers)") from None
    if not isinstance(density, Density):
        raise ValueError(f"part {name!r} has no density but {density!r}: pass an object such as Gaussian()")
    if not columns:
        raise ValueError(f"part {name!r} has no columns: name some, or leave the part out")
    if isinstance(given, str):
        raise ValueError(f"part {name!r} has the columns {given!r}: pass a list, [{given!r}]")
    if all(isinstance(column, str) for column in columns):
        if density.kind is None:
            raise ValueError(f"part {name!r} is a product inside a product: give its parts to the outer one")
        return density, tuple(map(str, columns))
    numbers: list[int] = []
    for column in columns:
        if isinstance(column, str | bool) or not isinstance(column, int | np.integer) or column < 0:
            raise ValueError(f"part {name!r} has the column {column!r}: use column numbers from 0, or names alone")
        numbers.append(int(column))
    return density, tuple(numbers)


def _listed(columns: list[int], most: int = 8) -> str:
    shown = ", ".join(map(str, columns[:most])) + (f" and {len(columns) - most} more" if len(columns) > most else "")
    return f"column{'s' if len(columns) > 1 else ''} {shown}"
