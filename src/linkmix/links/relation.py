"""Relations beyond "same" and "different": any joint distribution of the labels of two points, or of a set of them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.links.label_tables import (
    MEASURES,
    Parts,
    Rule,
    check_size,
    knows_no_numbers,
    parts_of_rule,
    parts_of_table,
    read_table,
)
from linkmix.links.reading import read_pairs, read_sets


class AnyRelation(ABC):
    """What couplings see of a relation: sets of rows, and a table of weights of their labels."""

    learn: bool

    @property
    @abstractmethod
    def sets(self) -> Ints:
        """Row numbers of each set, shape (n, k)."""

    @abstractmethod
    def parts(self, n_classes: int, *, joint: bool = True) -> Parts:
        """The table for this many classes, divided into what satisfies the relation and what does not.

        As a ``joint`` distribution of labels, or as the probability that the relation is observed, given the labels.
        These differ for a rule, by factors that do not depend on the labels that satisfy it.
        """

    @abstractmethod
    def among(self, sets: Ints) -> "AnyRelation":
        """The same about other sets of rows, checked by the caller."""

    @abstractmethod
    def settled(self, probability: float) -> "AnyRelation":
        """The same with a probability that is not learned any more."""

    @abstractmethod
    def names_classes(self) -> bool:
        """Whether it treats some classes differently from others, so that their numbers matter."""

    @abstractmethod
    def satisfied(self, labels: Array) -> Array:
        """Whether labels (n, k) of the sets satisfy it."""

    def fewest_classes(self) -> int:
        """Number of classes that there must be."""
        return 1

    @abstractmethod
    def key(self) -> Hashable:
        """What equal relations have in common."""

    def __eq__(self, other: object) -> bool:
        """Tell whether both say the same about the same rows."""
        return self.key() == other.key() if isinstance(other, type(self)) else NotImplemented

    def __hash__(self) -> int:
        """Hash of all fields."""
        return hash(self.key())


@dataclass(frozen=True, init=False, repr=False, eq=False)
class Relation(AnyRelation):
    """Pairs of rows whose two labels have a given joint distribution.

    It is satisfied by the combinations of labels to which the table gives at least an equal share.

    Parameters
    ----------
    pairs : array-like of int, shape (n, 2)
        Pairs of row numbers.
    table : array-like of shape (n_classes, n_classes)
        How probable each combination of labels is, up to a factor: rows are the label of the first point of a pair,
        columns that of the second.
    learn : bool, default=False
        Whether to learn how probable it is that the relation is satisfied, starting from the table. The proportions
        among the combinations that satisfy it, and among the others, stay.

    Attributes
    ----------
    pairs : array of int64, shape (n, 2)
    table : array of float64, shape (n_classes, n_classes)
        Sums to one.
    learn : bool

    Examples
    --------
    Same class more often than not:

    >>> from linkmix import Relation
    >>> Relation(pairs=[(0, 5)], table=[[2, 1], [1, 2]]).table
    array([[0.33333333, 0.16666667],
           [0.16666667, 0.33333333]])
    """

    pairs: Ints
    table: Floats
    learn: bool

    def __init__(self, pairs: ArrayLike, table: ArrayLike, *, learn: bool = False) -> None:
        checked = read_pairs("pairs", pairs)
        weights = np.asarray(table, dtype=np.float64)
        if weights.ndim != 2 or weights.shape[0] != weights.shape[1]:
            raise ValueError(f"table has shape {weights.shape}: give one row and one column for each class")
        weights = read_table(weights)
        _check_learn(learn, parts_of_table(weights))
        _hold(self, pairs=checked, table=weights, learn=learn)

    @property
    def sets(self) -> Ints:
        """The pairs."""
        return self.pairs

    def parts(self, n_classes: int, *, joint: bool = True) -> Parts:
        """The table, divided."""
        return _parts_of_given(self.table, n_classes)

    def among(self, sets: Ints) -> "Relation":
        """The same about other pairs."""
        return Relation(sets, self.table, learn=self.learn)

    def settled(self, probability: float) -> "Relation":
        """The same, with the table for this probability."""
        return Relation(self.pairs, parts_of_table(self.table).table(probability))

    def names_classes(self) -> bool:
        """Whether the table changes when classes are swapped."""
        return not knows_no_numbers(self.table)

    def satisfied(self, labels: Array) -> Array:
        """Whether the table gives labels (n, 2) at least an equal share."""
        return _satisfied(self.table, labels)

    def key(self) -> Hashable:
        """What equal relations have in common."""
        return self.pairs.tobytes(), self.table.tobytes(), self.learn

    # By building it again, because an unpickled array would be writable.
    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy."""
        return _again, (Relation, {"pairs": self.pairs, "table": self.table, "learn": self.learn})

    def __repr__(self) -> str:
        """Say how many pairs and classes there are."""
        return f"Relation({len(self.pairs)} pairs, {len(self.table)} classes)"


@dataclass(frozen=True, init=False, repr=False, eq=False)
class SetRelation(AnyRelation):
    """Sets of rows whose labels have a given joint distribution, or obey a rule.

    `alike` and `classes` make the usual rules, `from_function` makes a table from any function of labels.

    Parameters
    ----------
    rows : array-like of int, shape (n, k)
        Row numbers of ``n`` sets of ``k`` rows each.
    table : array-like of shape (n_classes, ..., n_classes), with ``k`` axes
        How probable each combination of labels is, up to a factor. Without it, a ``rule`` is needed.
    rule : Rule, optional
        What holds among the labels of a set.
    probability : float, default=1.0
        How probable it is that the rule holds. It goes with a rule only.
    learn : bool, default=False
        Whether to learn how probable it is that the relation is satisfied, starting from the table or from
        ``probability``. The proportions among the combinations that satisfy it, and among the others, stay.

    Attributes
    ----------
    rows : array of int64, shape (n, k)
    table : array of float64, or None
        Sums to one.
    rule : Rule or None
    probability : float
    learn : bool

    Examples
    --------
    >>> from linkmix import SetRelation
    >>> SetRelation.alike([(0, 1, 2)], exactly=2)
    SetRelation(1 sets of 3 rows, exactly 2 alike)
    >>> SetRelation.classes([(3, 4, 5, 6, 7)], at_most=2, probability=0.9)
    SetRelation(1 sets of 5 rows, at most 2 classes, probability 0.9)
    """

    rows: Ints
    table: Floats | None
    rule: Rule | None
    probability: float
    learn: bool

    def __init__(
        self,
        rows: ArrayLike,
        table: ArrayLike | None = None,
        *,
        rule: Rule | None = None,
        probability: float = 1.0,
        learn: bool = False,
    ) -> None:
        checked = read_sets("rows", rows)
        size = checked.shape[1]
        if (table is None) == (rule is None):
            raise ValueError("a relation has either a table or a rule: give one of them")
        weights = None
        if rule is not None:
            _check_rule(rule, size, probability, learn)
        else:
            weights = np.asarray(table, dtype=np.float64)
            if weights.ndim != size or len(set(weights.shape)) > 1:
                raise ValueError(
                    f"table has shape {weights.shape} for sets of {size} rows: "
                    "give one axis for each row of a set, and in each one entry for each class"
                )
            check_size(size, len(weights))
            weights = read_table(weights)
            if probability != 1.0:
                raise ValueError(f"probability={probability!r} goes with a rule: a table says how probable labels are")
            _check_learn(learn, parts_of_table(weights))
        _hold(self, rows=checked, table=weights, rule=rule, probability=float(probability), learn=learn)

    @classmethod
    def alike(
        cls,
        rows: ArrayLike,
        *,
        exactly: int | None = None,
        at_least: int | None = None,
        at_most: int | None = None,
        probability: float = 1.0,
        learn: bool = False,
    ) -> "SetRelation":
        """Sets in which a number of rows are alike: the largest class of a set has so many of its rows.

        Parameters
        ----------
        rows : array-like of int, shape (n, k)
            Row numbers of the sets.
        exactly, at_least, at_most : int
            The number of rows: exactly that many, or within bounds.
        probability, learn
            As for the class.

        Examples
        --------
        "At most two of these four belong together":

        >>> SetRelation.alike([(0, 1, 2, 3)], at_most=2).satisfied(np.array([[0, 0, 1, 1], [0, 0, 0, 1]])).tolist()
        [True, False]
        """
        checked = read_sets("rows", rows)
        rule = _rule("alike", checked.shape[1], exactly, at_least, at_most)
        return cls(checked, rule=rule, probability=probability, learn=learn)

    @classmethod
    def classes(
        cls,
        rows: ArrayLike,
        *,
        exactly: int | None = None,
        at_least: int | None = None,
        at_most: int | None = None,
        probability: float = 1.0,
        learn: bool = False,
    ) -> "SetRelation":
        """Sets whose rows belong to a number of classes. Of one class, with a probability: neighbours that agree.

        Parameters
        ----------
        rows : array-like of int, shape (n, k)
            Row numbers of the sets.
        exactly, at_least, at_most : int
            The number of different classes: exactly that many, or within bounds.
        probability, learn
            As for the class.

        Examples
        --------
        >>> SetRelation.classes([(0, 1), (1, 2)], exactly=1, probability=0.8, learn=True)
        SetRelation(2 sets of 2 rows, exactly 1 class, probability 0.8, learned)
        """
        checked = read_sets("rows", rows)
        rule = _rule("classes", checked.shape[1], exactly, at_least, at_most)
        return cls(checked, rule=rule, probability=probability, learn=learn)

    @classmethod
    def from_function(
        cls, rows: ArrayLike, function: Callable[..., float | bool], n_classes: int, *, learn: bool = False
    ) -> "SetRelation":
        """Weigh each combination of labels by a function of ``k`` labels.

        Parameters
        ----------
        rows : array-like of int, shape (n, k)
            Row numbers of the sets.
        function : callable
            Gets ``k`` class numbers, returns their weight, or whether they are possible.
        n_classes : int
            Number of classes.
        learn : bool, default=False
            As for the class.

        Examples
        --------
        >>> SetRelation.from_function([(0, 1, 2)], lambda a, b, c: a <= b <= c, n_classes=2).table.round(2).tolist()
        [[[0.25, 0.25], [0.0, 0.25]], [[0.0, 0.0], [0.0, 0.25]]]
        """
        checked = read_sets("rows", rows)
        size = checked.shape[1]
        check_size(size, n_classes)
        labels = np.indices((n_classes,) * size).reshape(size, -1).T
        weights = np.array([function(*one) for one in labels.tolist()], dtype=np.float64)
        return cls(checked, weights.reshape((n_classes,) * size), learn=learn)

    @property
    def sets(self) -> Ints:
        """The rows."""
        return self.rows

    def parts(self, n_classes: int, *, joint: bool = True) -> Parts:
        """The table for this many classes."""
        if self.table is not None:
            return _parts_of_given(self.table, n_classes)
        assert self.rule is not None
        check_size(self.rows.shape[1], n_classes)
        return parts_of_rule(self.rule, self.rows.shape[1], n_classes, self.probability, joint=joint)

    def among(self, sets: Ints) -> "SetRelation":
        """The same about other sets of rows."""
        return SetRelation(sets, self.table, rule=self.rule, probability=self.probability, learn=self.learn)

    def settled(self, probability: float) -> "SetRelation":
        """The same, with this probability."""
        if self.table is not None:
            return SetRelation(self.rows, parts_of_table(self.table).table(probability))
        return SetRelation(self.rows, rule=self.rule, probability=probability)

    def names_classes(self) -> bool:
        """Whether classes are known by number; never so in a rule."""
        return self.table is not None and not knows_no_numbers(self.table)

    def satisfied(self, labels: Array) -> Array:
        """Whether labels (n, k) obey the rule, or have at least an equal share in the table."""
        if self.table is not None:
            return _satisfied(self.table, labels)
        assert self.rule is not None
        return self.rule.holds(labels)

    def fewest_classes(self) -> int:
        """Number of classes that a rule without doubt needs."""
        if self.rule is None or self.probability < 1 or self.learn:
            return 1
        return self.rule.fewest_classes(self.rows.shape[1])

    def key(self) -> Hashable:
        """What equal relations have in common."""
        table = None if self.table is None else self.table.tobytes()
        return self.rows.tobytes(), self.rows.shape, table, self.rule, self.probability, self.learn

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy by building it again, read-only arrays included."""
        names = ("rows", "table", "rule", "probability", "learn")
        return _again, (SetRelation, {name: getattr(self, name) for name in names})

    def __repr__(self) -> str:
        """Say how many sets there are, and what is said about them."""
        n, k = self.rows.shape
        said = f"{len(self.table)} classes" if self.table is not None else str(self.rule)
        sure = "" if self.table is not None or self.probability == 1 else f", probability {self.probability:g}"
        return f"SetRelation({n} sets of {k} rows, {said}{sure}{', learned' if self.learn else ''})"


def _parts_of_given(table: Floats, n_classes: int) -> Parts:
    if len(table) != n_classes:
        axes = "one row and one column" if table.ndim == 2 else f"{table.ndim} axes, each with one entry"
        raise ValueError(
            f"the relation has a table for {len(table)} classes, but n_classes={n_classes}: "
            f"give a table with {axes} for each class"
        )
    return parts_of_table(table)


def _satisfied(table: Floats, labels: Array) -> Array:
    if labels.dtype.kind not in "iu" or labels.max(initial=0) >= len(table) or labels.min(initial=0) < 0:
        raise ValueError(
            f"labels are not class numbers below {len(table)}, by which the table of a relation knows them: "
            "give class numbers from 0"
        )
    return np.asarray(parts_of_table(table).satisfied[tuple(labels.T)])


def _again(kind: type[AnyRelation], settings: dict[str, Any]) -> AnyRelation:
    return kind(**settings)


def _hold(relation: AnyRelation, **values: Any) -> None:
    for name, value in values.items():
        if isinstance(value, np.ndarray):
            value.setflags(write=False)
        object.__setattr__(relation, name, value)


def _check_learn(learn: object, parts: Parts) -> None:
    if not isinstance(learn, bool):
        raise ValueError(f"learn={learn!r}: give True or False")
    if learn and not parts.is_open:
        raise ValueError(
            "learn=True has nothing to learn, since the table leaves no chance to labels that do not satisfy it: "
            "give these a positive weight"
        )


def _rule(measure: str, size: int, exactly: int | None, at_least: int | None, at_most: int | None) -> Rule:
    given = {"exactly": exactly, "at_least": at_least, "at_most": at_most}
    for name, value in given.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, Integral) or not 1 <= value <= size):
            raise ValueError(f"{name}={value!r} for sets of {size} rows: give a whole number from 1 to {size}")
    if (exactly is None) == (at_least is None and at_most is None):
        raise ValueError(f"got {given}: give exactly, or bounds by at_least and at_most")
    if exactly is not None:
        return Rule(measure, int(exactly), int(exactly))
    return Rule(measure, int(at_least or 1), int(at_most or size))


def _check_rule(rule: object, size: int, probability: object, learn: object) -> None:
    if not isinstance(rule, Rule) or rule.measure not in MEASURES:
        raise ValueError(f"rule={rule!r}: use SetRelation.alike(...) or SetRelation.classes(...)")
    if rule.least > rule.most:
        raise ValueError(f"no set has at least {rule.least} and at most {rule.most}: correct the bounds")
    if rule.least <= 1 and rule.most >= size:
        raise ValueError(f"from {rule.least} to {rule.most} of {size} rows is always so: give narrower bounds")
    if isinstance(probability, bool) or not isinstance(probability, Real) or not 0 < float(probability) <= 1:
        raise ValueError(f"probability={probability!r}: give a number above 0 and at most 1")
    if not isinstance(learn, bool):
        raise ValueError(f"learn={learn!r}: give True or False")
    if learn and probability == 1:
        raise ValueError(
            "learn=True with probability=1 has nothing to learn, since a rule without doubt always holds: "
            "give a first guess below 1, such as probability=0.9"
        )
