"""What is said about the labels of a set of points: a table of weights, or a rule that knows no class by number.

Either divides the combinations of labels into those that satisfy it and those that do not. How probable the first are
is one number, which can be learned.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from linkmix.basics.arrays import Array, Floats

LARGEST_TABLE = 2**17
"""Most combinations of labels of one set of points."""
ROUNDING = 1e-12
"""How far from one the sum of a table may be that was divided by its sum."""
MEASURES = ("alike", "classes")


@dataclass(frozen=True)
class Rule:
    """Bounds on how many points of a set are alike, or on how many classes they have.

    Parameters
    ----------
    measure : {"alike", "classes"}
        The number of points in the largest class of the set, or the number of different classes.
    least, most : int
        Bounds of this number, both included.

    Examples
    --------
    >>> Rule("classes", 1, 2).holds(np.array([[0, 1, 0], [0, 1, 2]])).tolist()
    [True, False]
    """

    measure: str
    least: int
    most: int

    def holds(self, labels: Array) -> Array:
        """Whether it holds for each of many sets of labels (n, k)."""
        ordered = np.sort(labels, axis=1)
        new = ordered[:, 1:] != ordered[:, :-1]  # (n, k - 1)
        if self.measure == "classes":
            found = 1 + new.sum(axis=1)
        else:
            run = found = np.ones(len(labels), dtype=np.int64)
            for column in new.T:
                run = np.where(column, 1, run + 1)
                found = np.maximum(found, run)
        return np.asarray((self.least <= found) & (found <= self.most))

    def fewest_classes(self, size: int) -> int:
        """Number of classes that there must be for the rule to hold in a set of this size."""
        return self.least if self.measure == "classes" else -(-size // self.most)

    def __str__(self) -> str:
        """Say it in words."""
        bounds = {
            self.least == self.most: f"exactly {self.most}",
            self.least == 1 < self.most: f"at most {self.most}",
        }
        number = bounds.get(True, f"{self.least} to {self.most}")
        return f"{number} alike" if self.measure == "alike" else f"{number} class{'es' * (self.most != 1)}"


@dataclass(frozen=True, eq=False)
class Parts:
    """A table of weights of labels, divided into the combinations that satisfy a relation and the others.

    The table is ``probability * inside + (1 - probability) * outside``, for any probability.

    Attributes
    ----------
    satisfied : ndarray of bool, shape (n_classes, ...), one axis for each point
    inside, outside : ndarray of the same shape
        Weights of the combinations that satisfy it, and of the others; zero where the other one is not.
    probability : float
        Probability that it is satisfied, as far as the relation says.
    is_open : bool
        Whether labels may satisfy it or not, so that the probability matters. Otherwise the table is the sum of both.
    """

    satisfied: Array
    inside: Floats
    outside: Floats
    probability: float
    is_open: bool

    @property
    def knows_only_agreement(self) -> bool:
        """Whether all that matters about two labels is whether they agree; of one label, nothing matters."""
        return all(_is_plain(part) for part in (self.satisfied, self.inside, self.outside))

    def of_groups(self, group: tuple[int, ...]) -> "Parts":
        """The same for points of which some share a label: point ``i`` is in group ``group[i]``, counted from 0."""
        labels = np.indices((len(self.satisfied),) * (max(group) + 1))
        at = tuple(labels[number] for number in group)
        return Parts(self.satisfied[at], self.inside[at], self.outside[at], self.probability, self.is_open)

    def table(self, probability: float) -> Floats:
        """The table for some probability that the relation is satisfied."""
        if not self.is_open:
            return self.inside + self.outside
        return np.asarray(probability * self.inside + (1 - probability) * self.outside)

    def log_table(self, probability: float) -> Floats:
        """Its logarithm."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.table(probability)))

    def chance(self, probabilities: Floats) -> Floats:
        """Probability that independent labels (n, k, n_classes) satisfy it, shape (n,)."""
        n, k, n_classes = probabilities.shape
        left = probabilities[:, -1] @ self.satisfied.reshape(-1, n_classes).T.astype(np.float64)  # (n, M^(k-1))
        for axis in range(k - 2, -1, -1):
            left = np.einsum("nam,nm->na", left.reshape(n, -1, n_classes), probabilities[:, axis])
        return np.asarray(left[:, 0])

    def doubted(self, highest: float) -> "Parts":
        """The same, satisfied with at most this probability: what is impossible gets the rest in equal shares."""
        others = ~self.satisfied
        outside = self.outside if self.outside.any() or not others.any() else others / others.sum()
        return Parts(self.satisfied, self.inside, outside, min(self.probability, highest), bool(others.any()))


def parts_of_table(table: Floats) -> Parts:
    """Divide a table that sums to one: combinations with at least an equal share satisfy it.

    Examples
    --------
    >>> parts = parts_of_table(np.array([[0.4, 0.1], [0.1, 0.4]]))
    >>> parts.satisfied.tolist(), parts.probability
    ([[True, False], [False, True]], 0.8)
    """
    satisfied = table * table.size >= 1 - ROUNDING
    probability = float(table[satisfied].sum())
    inside = np.where(satisfied, table, 0.0) / probability
    rest = np.where(satisfied, 0.0, table)
    if not rest.any():
        return Parts(satisfied, table, rest, 1.0, False)
    return Parts(satisfied, inside, rest / rest.sum(), probability, True)


def parts_of_rule(rule: Rule, size: int, n_classes: int, probability: float, *, joint: bool) -> Parts:
    """The table of a rule about sets of this size.

    As a ``joint`` distribution of labels, all combinations that satisfy the rule are equally probable, and so are the
    others. Otherwise it is the probability that the rule is observed, given the labels.
    """
    labels = np.indices((n_classes,) * size).reshape(size, -1).T  # (M^k, k)
    satisfied = rule.holds(labels).reshape((n_classes,) * size)
    if not satisfied.any():
        raise ValueError(
            f"{rule} among {size} points is impossible with n_classes={n_classes}: "
            f"ask for at least {rule.fewest_classes(size)} classes, or drop the relation"
        )
    inside, outside = satisfied.astype(np.float64), (~satisfied).astype(np.float64)
    if joint:
        inside /= inside.sum()
        outside /= max(outside.sum(), 1.0)
    return Parts(satisfied, inside, outside, probability, not satisfied.all())


def check_size(size: int, n_classes: int) -> None:
    """Raise a ValueError if the labels of a set have too many combinations."""
    if n_classes**size > LARGEST_TABLE:
        largest = max(k for k in range(1, size + 1) if n_classes**k <= LARGEST_TABLE)
        raise ValueError(
            f"{size} points of {n_classes} classes have {n_classes}^{size} combinations of labels, more than "
            f"{LARGEST_TABLE}: relate at most {largest} points at once"
        )


def read_table(given: ArrayLike) -> Floats:
    """Read a table of weights, and divide it by its sum."""
    weights = np.array(given, dtype=np.float64)
    if not np.all(np.isfinite(weights)) or weights.min() < 0:
        worst = weights[~(np.isfinite(weights) & (weights >= 0))][0]
        raise ValueError(f"table holds {worst}: give finite numbers of at least 0")
    if weights.sum() == 0:
        raise ValueError("table is 0 everywhere: give at least one combination of labels a chance")
    if abs(weights.sum() - 1.0) > ROUNDING:  # a table that sums to one stays as it is, so that a copy is equal
        weights /= weights.sum()
    return weights


def _is_plain(table: Array) -> bool:
    """Whether a vector is constant, or a matrix is so on its diagonal and beside it."""
    if table.ndim == 1:
        return bool((table == table[0]).all())
    beside = table[~np.eye(len(table), dtype=bool)]
    return table.ndim == 2 and _is_plain(np.diagonal(table)) and bool((beside == beside[:1]).all())


def knows_no_numbers(table: Floats) -> bool:
    """Whether a table stays the same when two classes are swapped, whichever they are."""
    first = np.arange(len(table))
    for a, b in combinations(range(len(table)), 2):
        swapped = first.copy()
        swapped[[a, b]] = b, a
        if not np.allclose(table[np.ix_(*(swapped,) * table.ndim)], table, rtol=1e-12, atol=0):
            return False
    return True
