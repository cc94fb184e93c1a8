"""Links: statements that two rows belong to the same class, or to different ones."""

import functools
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.links import consequences, labels, table
from linkmix.links.one_kind import OneKind, split
from linkmix.links.pairs import first_true
from linkmix.links.reading import read_subset
from linkmix.links.relation import AnyRelation


@dataclass(frozen=True, init=False, repr=False, eq=False)
class Links:
    """Must-links and cannot-links between the rows of a data set.

    A value: it never changes, equal links are equal, and it can be a key of a dict. It has no length and no shape, and
    cannot be iterated, on purpose: scikit-learn's metadata routing would cut what looks like an array to the rows of
    a fold.

    Parameters
    ----------
    must, cannot : array-like of int, shape (n, 2)
        Pairs of row numbers: lists of tuples, arrays, or data frames with two integer columns.
    must_confidence, cannot_confidence : float or array-like of shape (n,), optional
        How sure each statement is, above 0 and at most 1. None means certain, as does 1.
    must_annotators, cannot_annotators : str or sequence of shape (n,), optional
        Who made each statement; None in the sequence if nobody knows.
    must_chosen, cannot_chosen : bool or array-like of shape (n,), optional
        Whether each pair was chosen, by a person or because its answer helps most. None means that all pairs are
        random. Only random ones can tell how good a model is.
    relations : sequence of Relation or SetRelation, optional
        Relations of any other kind, each with a joint distribution of the labels of two points, or of a set of them.

    Attributes
    ----------
    must, cannot : array of int64, shape (n, 2)
        The pairs in the order and orientation given. All arrays are read-only copies.
    must_confidence, cannot_confidence : array of float64, shape (n,), or None
        None if not given, or without links of the kind.
    must_annotators, cannot_annotators : array of object, shape (n,), or None
        None if nobody is named.
    must_chosen, cannot_chosen : array of bool, shape (n,), or None
        None if no pair was chosen.
    relations : tuple of Relation or SetRelation

    Examples
    --------
    >>> from linkmix import Links
    >>> links = Links(must=[(0, 1), (1, 4)], cannot=[(2, 3)], cannot_confidence=0.8)
    >>> links
    Links(2 must, 1 cannot)
    >>> links.points
    array([0, 1, 2, 3, 4])
    >>> Links(must=[(7, 7)])
    Traceback (most recent call last):
    ValueError: must[0] links row 7 to itself: remove it
    """

    must: Ints
    cannot: Ints
    must_confidence: Floats | None
    cannot_confidence: Floats | None
    must_annotators: Array | None
    cannot_annotators: Array | None
    must_chosen: Array | None
    cannot_chosen: Array | None
    relations: tuple[AnyRelation, ...]

    def __init__(
        self,
        must: ArrayLike = (),
        cannot: ArrayLike = (),
        *,
        must_confidence: ArrayLike | None = None,
        cannot_confidence: ArrayLike | None = None,
        must_annotators: Iterable[Hashable] | None = None,
        cannot_annotators: Iterable[Hashable] | None = None,
        must_chosen: ArrayLike | None = None,
        cannot_chosen: ArrayLike | None = None,
        relations: Iterable[AnyRelation] = (),
    ) -> None:
        if isinstance(relations, AnyRelation):
            raise ValueError(f"relations is {relations!r}: give a list of relations, such as [relation]")
        others = tuple(relations)
        for i, other in enumerate(others):
            if not isinstance(other, AnyRelation):
                raise ValueError(
                    f"relations[{i}] is {other!r}: give linkmix.Relation(pairs, table) or linkmix.SetRelation objects"
                )
        self._hold(
            OneKind.read("must", must, must_confidence, must_annotators, must_chosen),
            OneKind.read("cannot", cannot, cannot_confidence, cannot_annotators, cannot_chosen),
            others,
        )

    @classmethod
    def _of(cls, must: OneKind, cannot: OneKind, relations: Iterable[AnyRelation] = ()) -> "Links":
        """Links from parts that have been checked, and that nobody else holds."""
        links = object.__new__(cls)
        links._hold(must.tidy(), cannot.tidy(), tuple(relations))
        return links

    def _hold(self, must: OneKind, cannot: OneKind, relations: tuple[AnyRelation, ...]) -> None:
        values = (part for both in zip(must, cannot, strict=True) for part in both)
        for field, value in zip(fields(self), (*values, relations), strict=True):
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
            object.__setattr__(self, field.name, value)

    # Defined in the modules of their topics.
    from_labels = classmethod(labels.from_labels)
    from_groups = classmethod(labels.from_groups)
    apart_within = classmethod(labels.apart_within)
    from_table = classmethod(table.from_table)
    to_table = table.to_table
    chunklets = consequences.chunklets
    components = consequences.components
    closure = consequences.closure
    conflicts = consequences.conflicts
    check_consistent = consequences.check_consistent

    @classmethod
    def from_checked(
        cls,
        pairs: Ints,
        is_must: Array,
        confidence: Sequence[float | None],
        annotators: Sequence[Hashable],
        chosen: Sequence[bool] | None = None,
    ) -> "Links":
        """Make links from columns that were checked where they were read.

        Parameters
        ----------
        pairs : ndarray of int64, shape (n, 2)
            Pairs of different rows.
        is_must : ndarray of bool, shape (n,)
            Whether each link is a must-link.
        confidence : sequence of float or None
            Above 0 and at most 1; None stands for certain.
        annotators : sequence
            None stands for nobody.
        chosen : sequence of bool, optional
            Whether each pair was chosen.

        Examples
        --------
        >>> from linkmix import Links
        >>> Links.from_checked(np.array([[0, 1], [4, 2]]), np.array([True, False]), [None, 0.9], [None, None])
        Links(1 must, 1 cannot)
        """
        return cls._of(*split(pairs, is_must, confidence, annotators, chosen))

    # Through the constructor, because an unpickled or deep-copied array would be writable.
    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy by building the links again."""
        return functools.partial(Links, **{field.name: getattr(self, field.name) for field in fields(self)}), ()

    def _key(self) -> tuple[Hashable, ...]:
        arrays = (getattr(self, field.name) for field in fields(self))
        return tuple(
            a.tobytes() if isinstance(a, np.ndarray) and a.dtype != object else a if a is None else tuple(a)
            for a in arrays
        )

    def __eq__(self, other: object) -> bool:
        """Tell whether both make the same statements, in the same order and orientation."""
        return self._key() == other._key() if isinstance(other, Links) else NotImplemented

    def __hash__(self) -> int:
        """Hash of all statements."""
        return hash(self._key())

    def __repr__(self) -> str:
        """Say how many links of each kind there are."""
        related = f", {sum(len(other.sets) for other in self.relations)} related" if self.relations else ""
        return f"Links({self.n_must} must, {self.n_cannot} cannot{related})"

    @property
    def n_must(self) -> int:
        """Number of must-links."""
        return len(self.must)

    @property
    def n_cannot(self) -> int:
        """Number of cannot-links."""
        return len(self.cannot)

    @property
    def n_chosen(self) -> int:
        """Number of links whose pair was chosen, and is not a random one."""
        return sum(int(chosen.sum()) for chosen in (self.must_chosen, self.cannot_chosen) if chosen is not None)

    @property
    def empty(self) -> bool:
        """Whether there are neither links nor relations."""
        return not (len(self.must) or len(self.cannot) or self.relations)

    @property
    def points(self) -> Ints:
        """The rows in any link, sorted, each once."""
        if self.empty:
            return np.empty(0, dtype=np.int64)
        every = (self.must, self.cannot, *(other.sets for other in self.relations))
        return np.unique(np.concatenate([rows.ravel() for rows in every]))

    @property
    def _must(self) -> OneKind:
        return OneKind(self.must, self.must_confidence, self.must_annotators, self.must_chosen)

    @property
    def _cannot(self) -> OneKind:
        return OneKind(self.cannot, self.cannot_confidence, self.cannot_annotators, self.cannot_chosen)

    def check_rows(self, n_rows: int) -> None:
        """Raise a ValueError if a link names a row that data with ``n_rows`` rows do not have."""
        related = (
            (f"relations[{i}].{'pairs' if hasattr(other, 'pairs') else 'rows'}", other.sets)
            for i, other in enumerate(self.relations)
        )
        for kind, pairs in (("must", self.must), ("cannot", self.cannot), *related):
            if (position := first_true((pairs >= n_rows).any(axis=1))) is not None:
                raise ValueError(
                    f"{kind}[{position}] links row {pairs[position].max()}, but there are {n_rows} rows, "
                    "counted from 0: correct the row number or remove the link"
                )

    def distinct(self) -> "Links":
        """Drop repeated statements: keep each unordered pair once per kind, the first one.

        Where annotators are known, only a repetition by the same one is dropped: two people who agree have said more
        than one. Where only confidences are known, the pair keeps its highest.

        Examples
        --------
        >>> from linkmix import Links
        >>> Links(must=[(0, 1), (1, 0), (1, 2)], must_confidence=[0.6, 0.9, 1]).distinct().must_confidence
        array([0.9, 1. ])
        >>> Links(must=[(0, 1), (1, 0), (0, 1)], must_annotators=["eva", "ida", "eva"]).distinct()
        Links(2 must, 0 cannot)
        """
        return Links._of(self._must.distinct(), self._cannot.distinct(), dict.fromkeys(self.relations))

    def union(self, other: "Links") -> "Links":
        """Append the statements of ``other``. ``distinct`` drops what both say.

        Where only one of the two has confidences, the statements of the other one are certain.
        """
        return Links._of(
            self._must.append(other._must), self._cannot.append(other._cannot), (*self.relations, *other.relations)
        )

    def certain(self) -> "Links":
        """Keep the certain links alone: their pairs, and no relations of other kinds.

        Examples
        --------
        >>> from linkmix import Links
        >>> Links(must=[(0, 1), (1, 2)], must_confidence=[1, 0.6], cannot=[(2, 3)]).certain()
        Links(1 must, 1 cannot)
        """
        return Links(self._must.certain(), self._cannot.certain())

    def restrict(self, rows: ArrayLike) -> "Links":
        """Keep the links between the rows of a subset, renumbered to their positions in it.

        Parameters
        ----------
        rows : array-like of int, or of bool
            The row numbers of the subset, each once, or a mask over all rows.

        Examples
        --------
        >>> from linkmix import Links
        >>> links = Links(must=[(2, 5), (0, 2)], cannot=[(5, 9)])
        >>> subset = links.restrict([9, 5, 2])
        >>> subset.must, subset.cannot
        (array([[2, 1]]), array([[1, 0]]))
        """
        kept = read_subset(rows, self.check_rows)
        related = ((other, OneKind(other.sets).restrict(kept).pairs) for other in self.relations)
        return Links._of(
            self._must.restrict(kept),
            self._cannot.restrict(kept),
            (other.among(sets) for other, sets in related if len(sets)),
        )

    def without(self, rows: ArrayLike) -> "Links":
        """Keep the links to none of some rows; the numbers of the others stay.

        Parameters
        ----------
        rows : array-like of int
            Row numbers.

        Examples
        --------
        >>> from linkmix import Links
        >>> links = Links(must=[(0, 1), (1, 2)], cannot=[(2, 3)]).without([0])
        >>> links.must, links.cannot
        (array([[1, 2]]), array([[2, 3]]))
        """
        left_out = np.asarray(rows)

        def apart(pairs: Ints) -> Array:
            return np.asarray(~np.isin(pairs, left_out).any(axis=1))

        related = ((other, other.sets[apart(other.sets)]) for other in self.relations)
        return Links._of(
            self._must.take(apart(self.must)),
            self._cannot.take(apart(self.cannot)),
            (other.among(sets) for other, sets in related if len(sets)),
        )

    def where(self, must: ArrayLike, cannot: ArrayLike) -> "Links":
        """Keep some links and no relations of other kinds.

        Parameters
        ----------
        must, cannot : array-like of bool, or of int
            Which must-links and which cannot-links to keep: a mask, or positions.

        Examples
        --------
        >>> from linkmix import Links
        >>> Links(must=[(0, 1), (1, 2)], cannot=[(2, 3)]).where([True, False], [False]).must
        array([[0, 1]])
        """
        return Links._of(self._must.take(np.asarray(must)), self._cannot.take(np.asarray(cannot)))

    def without_relations(self) -> "Links":
        """Keep the must-links and cannot-links alone."""
        return Links._of(self._must, self._cannot) if self.relations else self

    def at_most(self, confidence: float | Mapping[Hashable, float]) -> "Links":
        """Lower confidences to at most the given one, or that of each annotator.

        Parameters
        ----------
        confidence : float or mapping of annotator to float
            The highest confidence. Links of annotators that a mapping does not name stay as they are.

        Returns
        -------
        Links

        Examples
        --------
        >>> from linkmix import Links
        >>> Links(must=[(0, 1), (1, 2)], must_confidence=[1.0, 0.6]).at_most(0.9).must_confidence
        array([0.9, 0.6])
        >>> Links(must=[(0, 1), (1, 2)], must_annotators=["a", "b"]).at_most({"a": 0.7}).must_confidence
        array([0.7, 1. ])
        """

        def lowered(links: OneKind) -> Floats:
            known = np.ones(len(links.pairs)) if links.confidence is None else links.confidence
            if not isinstance(confidence, Mapping):
                return np.minimum(known, confidence)
            names = [None] * len(known) if links.annotators is None else links.annotators
            return np.minimum(known, np.array([confidence.get(name, 1.0) for name in names], dtype=np.float64))

        return Links(
            self.must,
            self.cannot,
            must_confidence=lowered(self._must),
            cannot_confidence=lowered(self._cannot),
            must_annotators=self.must_annotators,
            cannot_annotators=self.cannot_annotators,
            must_chosen=self.must_chosen,
            cannot_chosen=self.cannot_chosen,
            relations=self.relations,
        )
