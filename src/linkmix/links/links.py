"""Links: statements that two rows belong to the same class, or to different ones."""

import functools
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from numbers import Integral
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.basics.errors import Conflict, LinkConflict
from linkmix.links.pairs import (
    Partners,
    component_ids,
    draw_distinct,
    first_true,
    pairs_across,
    pairs_at,
    pairs_within,
    shortest_chain,
)
from linkmix.links.reading import (
    LARGEST_ROW,
    check_hashable,
    read_annotators,
    read_columns,
    read_confidence,
    read_group,
    read_ids,
    read_kinds,
    read_labels,
    read_pairs,
    read_random_state,
    read_rows,
    read_table_confidence,
)
from linkmix.links.relation import Relation

_CONFLICTS_SHOWN = 3


@dataclass(frozen=True, init=False, repr=False, eq=False)
class Links:
    """Must-links and cannot-links between the rows of a data set.

    A value: it never changes, equal links are equal, and it can be a key of a dict. It has no length and no shape, and
    can not be iterated, on purpose: scikit-learn's metadata routing would cut what looks like an array to the rows of
    a fold.

    Parameters
    ----------
    must, cannot : array-like of int, shape (n, 2)
        Pairs of row numbers: lists of tuples, arrays, or data frames with two integer columns.
    must_confidence, cannot_confidence : float or array-like of shape (n,), optional
        How sure each statement is, above 0 and at most 1. None means certain, as does 1.
    must_annotators, cannot_annotators : str or sequence of shape (n,), optional
        Who made each statement; None in the sequence if nobody knows.
    relations : sequence of Relation, optional
        Relations of any other kind, each with a joint distribution of two labels.

    Attributes
    ----------
    must, cannot : array of int64, shape (n, 2)
        The pairs in the order and orientation given. All arrays are read-only copies.
    must_confidence, cannot_confidence : array of float64, shape (n,), or None
        None if not given, or without links of the kind.
    must_annotators, cannot_annotators : array of object, shape (n,), or None
        None if nobody is named.
    relations : tuple of Relation

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
    relations: tuple[Relation, ...]

    def __init__(
        self,
        must: ArrayLike = (),
        cannot: ArrayLike = (),
        *,
        must_confidence: ArrayLike | None = None,
        cannot_confidence: ArrayLike | None = None,
        must_annotators: Iterable[Hashable] | None = None,
        cannot_annotators: Iterable[Hashable] | None = None,
        relations: Iterable[Relation] = (),
    ) -> None:
        for kind, pairs, confidence, annotators in (
            ("must", must, must_confidence, must_annotators),
            ("cannot", cannot, cannot_confidence, cannot_annotators),
        ):
            checked = read_pairs(kind, pairs)
            for name, value in (
                (kind, checked),
                (f"{kind}_confidence", read_confidence(f"{kind}_confidence", confidence, len(checked))),
                (f"{kind}_annotators", read_annotators(f"{kind}_annotators", annotators, len(checked))),
            ):
                if value is not None:
                    value.setflags(write=False)
                object.__setattr__(self, name, value)
        if isinstance(relations, Relation):
            raise ValueError(f"relations is {relations!r}: give a list of relations, such as [relation]")
        others = tuple(relations)
        if (position := first_true(np.array([not isinstance(other, Relation) for other in others]))) is not None:
            raise ValueError(
                f"relations[{position}] is {others[position]!r}: give linkmix.Relation(pairs, table) objects"
            )
        object.__setattr__(self, "relations", others)

    # Through the constructor, because an unpickled or deep-copied array would be writable.
    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy by building the links again."""
        return functools.partial(Links, **{field.name: getattr(self, field.name) for field in fields(self)}), ()

    def _key(self) -> tuple[Hashable, ...]:
        arrays = (getattr(self, field.name) for field in fields(self))
        return tuple(a.tobytes() if isinstance(a, np.ndarray) and a.dtype != object else _tuple(a) for a in arrays)

    def __eq__(self, other: object) -> bool:
        """Tell whether both make the same statements, in the same order and orientation."""
        return self._key() == other._key() if isinstance(other, Links) else NotImplemented

    def __hash__(self) -> int:
        """Hash of the statements."""
        return hash(self._key())

    def __repr__(self) -> str:
        """Say how many links of each kind there are."""
        related = f", {sum(len(other.pairs) for other in self.relations)} related" if self.relations else ""
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
    def empty(self) -> bool:
        """Whether nothing is said of any row."""
        return not (len(self.must) or len(self.cannot) or self.relations)

    @property
    def points(self) -> Ints:
        """The rows in any link, sorted, each once."""
        if self.empty:
            return np.empty(0, dtype=np.int64)
        return np.unique(np.concatenate([self.must, self.cannot, *(other.pairs for other in self.relations)]))

    @property
    def _must(self) -> "_Statements":
        return _Statements(self.must, self.must_confidence, self.must_annotators)

    @property
    def _cannot(self) -> "_Statements":
        return _Statements(self.cannot, self.cannot_confidence, self.cannot_annotators)

    def check_rows(self, n_rows: int) -> None:
        """Raise a ValueError if a link names a row that data with ``n_rows`` rows do not have."""
        related = ((f"relations[{i}].pairs", other.pairs) for i, other in enumerate(self.relations))
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
        return _build(self._must.distinct(), self._cannot.distinct(), dict.fromkeys(self.relations))

    def union(self, other: "Links") -> "Links":
        """Append the statements of ``other``. ``distinct`` drops what both say.

        Where only one of the two has confidences, the statements of the other one are certain.
        """
        return _build(
            self._must.append(other._must), self._cannot.append(other._cannot), (*self.relations, *other.relations)
        )

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
        kept = np.asarray(rows)
        if kept.ndim != 1:
            raise ValueError(
                f"rows has shape {kept.shape}: give a list of row numbers, or a mask with one entry per row"
            )
        if kept.dtype.kind == "b":
            self.check_rows(len(kept))  # a mask says how many rows there are
            kept = np.flatnonzero(kept)
        elif len(kept) and kept.dtype.kind not in "iu":
            example = kept[:1].tolist()[0]
            raise ValueError(f"rows holds {kept.dtype}, such as {example!r}: give integers, or a mask of booleans")
        if (position := first_true((kept < 0) | (kept > LARGEST_ROW))) is not None:
            raise ValueError(f"rows[{position}] is {kept[position]}: give row numbers from 0 to {LARGEST_ROW}")
        order = np.argsort(kept, kind="stable")
        ordered = kept[order].astype(np.int64)
        if (position := first_true(ordered[1:] == ordered[:-1])) is not None:
            raise ValueError(f"rows holds row {ordered[position]} more than once: give each row once")

        def restricted(statements: _Statements) -> _Statements:
            at = np.searchsorted(ordered, statements.pairs)  # (n, 2)
            # Padded, because a row beyond the last one of the subset is found at the end.
            inside = (np.append(ordered, -1)[at] == statements.pairs).all(axis=1)
            return statements.take(inside)._replace(pairs=order[at[inside]])

        related = (Relation(restricted(_Statements(other.pairs)).pairs, other.table) for other in self.relations)
        return _build(
            restricted(self._must), restricted(self._cannot), (other for other in related if len(other.pairs))
        )

    def at_most(self, confidence: float | Mapping[Hashable, float]) -> "Links":
        """Make the same statements with a confidence that is at most the given one, or that of who made them.

        Parameters
        ----------
        confidence : float or mapping of annotator to float
            The highest confidence. Annotators that a mapping does not name are believed as before.

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

        def lowered(statements: _Statements) -> _Statements:
            known = np.ones(len(statements.pairs)) if statements.confidence is None else statements.confidence
            if not isinstance(confidence, Mapping):
                return statements._replace(confidence=np.minimum(known, confidence))
            names = [None] * len(known) if statements.annotators is None else statements.annotators
            each = np.array([confidence.get(name, 1.0) for name in names], dtype=np.float64)
            return statements._replace(confidence=np.minimum(known, each))

        return _build(lowered(self._must), lowered(self._cannot), self.relations)

    def chunklets(self, n_rows: int) -> Ints:
        """Number the must-link components: rows with one number belong to one class.

        Only certain must-links count, as in ``conflicts``: without a conflict no certain cannot-link lies within a
        chunklet. To take every must-link at its word, ask ``Links(links.must).chunklets(n_rows)``.

        Parameters
        ----------
        n_rows : int
            Number of rows of the data.

        Returns
        -------
        array of int64, shape (n_rows,)
            The chunklet of each row, numbered by first appearance. A row in no must-link is alone.

        Examples
        --------
        >>> from linkmix import Links
        >>> Links(must=[(1, 4), (4, 2)]).chunklets(6)
        array([0, 1, 1, 2, 1, 3])
        """
        self.check_rows(n_rows)
        return component_ids(self._must.certain(), n_rows)

    def components(self, n_rows: int) -> Ints:
        """Number the components of all links, must and cannot, certain or not.

        These are the groups for cross-validation: with them no link is torn apart by a fold.

        Parameters
        ----------
        n_rows : int
            Number of rows of the data.

        Returns
        -------
        array of int64, shape (n_rows,)
            The component of each row, numbered by first appearance. A row in no link is alone.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.model_selection import GroupKFold
        >>> from linkmix import Links
        >>> X = np.arange(12.0).reshape(6, 2)
        >>> links = Links(must=[(0, 3)], cannot=[(3, 5)])
        >>> links.components(len(X))
        array([0, 1, 2, 0, 3, 0])
        >>> for train, test in GroupKFold(n_splits=2).split(X, groups=links.components(len(X))):
        ...     print(train, links.restrict(train), test, links.restrict(test))
        [1 2 4] Links(0 must, 0 cannot) [0 3 5] Links(1 must, 1 cannot)
        [0 3 5] Links(1 must, 1 cannot) [1 2 4] Links(0 must, 0 cannot)
        """
        self.check_rows(n_rows)
        pairs = [self.must, self.cannot, *(other.pairs for other in self.relations)]
        return component_ids(np.concatenate(pairs), n_rows)

    def closure(self) -> "Links":
        """Add all links that follow from these.

        Every pair within a chunklet must link, and every pair across two chunklets with a cannot-link between them
        cannot link. Their number grows with the square of the size of the chunklets.

        Returns
        -------
        Links
            Each pair once, smaller row first, in lexicographic order; without confidences and annotators.

        Raises
        ------
        LinkConflict
            If a pair must link and cannot link.
        ValueError
            If a confidence is below 1: what follows from uncertain links is not certain.

        Examples
        --------
        >>> from linkmix import Links
        >>> closed = Links(must=[(0, 1), (3, 1)], cannot=[(5, 3)]).closure()
        >>> closed.must.tolist(), closed.cannot.tolist()
        ([[0, 1], [0, 3], [1, 3]], [[0, 5], [1, 5], [3, 5]])
        """
        for kind, confidence in (("must", self.must_confidence), ("cannot", self.cannot_confidence)):
            if confidence is not None and (position := first_true(confidence < 1)) is not None:
                raise ValueError(
                    f"{kind}_confidence[{position}] is {confidence[position]}, but only certain links have a closure: "
                    "drop the uncertain links, or take them at their word with Links(links.must, links.cannot)"
                )
        self.check_consistent()
        _, cannot, points, chunklet = _compact(self.must, self.cannot)
        order = np.argsort(chunklet, kind="stable")
        _, first, size = np.unique(chunklet[order], return_index=True, return_counts=True)  # (n_chunklets,)
        within = pairs_within(chunklet[order])
        together = order[pairs_at(np.arange(within.counts.sum()), within)]
        sides = np.unique(np.sort(chunklet[cannot], axis=1), axis=0)  # (n, 2): chunklets that are apart
        which, place_a, place_b = pairs_across(size[sides])
        apart = order[first[sides[which]] + np.column_stack([place_a, place_b])]
        return Links(_sorted_pairs(points[together]), _sorted_pairs(points[apart]))

    def conflicts(self, max_conflicts: int | None = None) -> list[Conflict]:
        """Find the cannot-links between rows that must-links hold together.

        Only certain links conflict; an uncertain one may simply be wrong.

        Parameters
        ----------
        max_conflicts : int, optional
            Stop after so many. Each conflict costs a search for its chain.

        Returns
        -------
        list of Conflict
            One per pair of rows, in the order of the cannot-links, each with a shortest chain of must-links.

        Examples
        --------
        >>> from linkmix import Links
        >>> for conflict in Links(must=[(4, 7), (7, 9)], cannot=[(4, 9), (4, 5)]).conflicts():
        ...     print(conflict)
        rows 4 and 9 must link (through 7) and cannot link: drop one of these 3 links
        """
        if max_conflicts is not None and max_conflicts < 0:
            raise ValueError(f"max_conflicts is {max_conflicts}: give 0 or more, or None for all")
        clashing, binding = self._clashes()
        return _find_chains(clashing[:max_conflicts], binding)

    def check_consistent(self) -> None:
        """Raise a LinkConflict that names the first few conflicts and counts the others, if there are any."""
        clashing, binding = self._clashes()
        if len(clashing):
            shown = _find_chains(clashing[:_CONFLICTS_SHOWN], binding)
            lines = [str(conflict) for conflict in shown]
            if len(clashing) > len(shown):
                lines.append(f"and {len(clashing) - len(shown)} more conflicts: see links.conflicts()")
            raise LinkConflict("\n".join(lines), shown)

    def _clashes(self) -> tuple[Ints, Ints]:
        """Return the cannot-links within a chunklet, each once, and the must-links of the chunklets they lie in."""
        must, cannot, points, chunklet = _compact(self._must.certain(), self._cannot.certain())
        ends = chunklet[cannot]  # (n_cannot, 2)
        clashes = ends[:, 0] == ends[:, 1]
        binds = np.isin(chunklet[must[:, 0]], ends[clashes, 0])
        return _Statements(points[cannot[clashes]]).distinct().pairs, points[must[binds]]

    @classmethod
    def from_table(cls, table: Any, ids: Iterable[Hashable] | None = None) -> "Links":
        """Read links from a table with one statement per row.

        Parameters
        ----------
        table : mapping of columns, pandas or polars data frame, or iterable of mappings (one per row)
            Columns ``a``, ``b`` and ``kind``, optionally ``confidence`` and ``annotator``; others are left alone.
            A kind is "must", "must-link", "same" or 1, or else "cannot", "cannot-link", "different" or -1, in upper or
            lower case. A missing confidence means certain.
        ids : sequence, optional
            The ids of the rows of X, in their order. ``a`` and ``b`` are then ids, compared as they are: "7" is not 7.
            Without ids, they are row numbers.

        Examples
        --------
        >>> from linkmix import Links
        >>> table = {"a": ["anna", "bob"], "b": ["carl", "anna"], "kind": ["same", "different"]}
        >>> links = Links.from_table(table, ids=["anna", "bob", "carl"])
        >>> links.must, links.cannot
        (array([[0, 2]]), array([[1, 0]]))
        """
        columns = read_columns(table)
        row_of = None if ids is None else read_ids(ids)
        pairs = np.array([read_rows(columns[end], end, row_of) for end in ("a", "b")], dtype=np.int64).T  # (n, 2)
        if (position := first_true(pairs[:, 0] == pairs[:, 1])) is not None:
            raise ValueError(f"table row {position} links {columns['a'][position]!r} to itself: remove it")
        is_must = np.array(read_kinds(columns["kind"]), dtype=bool)
        check_hashable(columns.get("annotator", ()), lambda i: f"table row {i}: annotator")
        arguments: dict[str, Any] = {}
        for kind, rows in (("must", np.flatnonzero(is_must)), ("cannot", np.flatnonzero(~is_must))):
            arguments[kind] = pairs[rows]
            if "confidence" in columns:
                arguments[f"{kind}_confidence"] = read_table_confidence(columns["confidence"], rows)
            if "annotator" in columns:
                arguments[f"{kind}_annotators"] = [columns["annotator"][i] for i in rows]
        return cls(**arguments)

    def to_table(self, ids: Iterable[Hashable] | None = None) -> dict[str, list[Any]]:
        """Write the links as columns that ``from_table``, pandas and polars read.

        Parameters
        ----------
        ids : sequence, optional
            The ids of the rows of X, in their order, to write in place of row numbers.

        Returns
        -------
        dict of lists
            Columns ``a``, ``b`` and ``kind``, must-links first; ``confidence`` and ``annotator`` if there are any, with
            None where one is missing.

        Examples
        --------
        >>> from linkmix import Links
        >>> Links(must=[(0, 2)], cannot=[(1, 0)]).to_table(ids=["anna", "bob", "carl"])
        {'a': ['anna', 'bob'], 'b': ['carl', 'anna'], 'kind': ['must', 'cannot']}
        """
        if self.relations:
            raise ValueError(f"{self} holds relations, which have no place in a table of links: write them apart")
        columns = np.concatenate([self.must, self.cannot]).T.tolist()
        if ids is not None:
            names = list(read_ids(ids))
            self.check_rows(len(names))
            columns = [[names[row] for row in column] for column in columns]
        table = {"a": columns[0], "b": columns[1], "kind": ["must"] * self.n_must + ["cannot"] * self.n_cannot}
        for name, must, cannot in (
            ("confidence", self.must_confidence, self.cannot_confidence),
            ("annotator", self.must_annotators, self.cannot_annotators),
        ):
            if must is not None or cannot is not None:
                table[name] = [None] * self.n_must if must is None else must.tolist()
                table[name] += [None] * self.n_cannot if cannot is None else cannot.tolist()
        return table

    @classmethod
    def from_groups(
        cls, together: Iterable[ArrayLike] = (), apart: Iterable[tuple[ArrayLike, ArrayLike]] = ()
    ) -> "Links":
        """Make links from statements about groups.

        Parameters
        ----------
        together : sequence of groups
            Rows that belong to one class, group by group: a chain of must-links each.
        apart : sequence of pairs of groups
            No row of the first group is of the class of any row of the second: a cannot-link for each such pair.

        Examples
        --------
        >>> from linkmix import Links
        >>> links = Links.from_groups(together=[[0, 1, 2]], apart=[([0, 1], [7, 8])])
        >>> links.must.tolist(), links.cannot.tolist()
        ([[0, 1], [1, 2]], [[0, 7], [0, 8], [1, 7], [1, 8]])
        """
        must: list[Ints] = [np.empty((0, 2), dtype=np.int64)]
        cannot: list[Ints] = [np.empty((0, 2), dtype=np.int64)]
        for name, groups in (("together", together), ("apart", apart)):
            if not isinstance(groups, Iterable):
                raise ValueError(f"{name} is {groups!r}: give a list, such as together=[[0, 1, 2]], apart=[([0], [5])]")
        for i, group in enumerate(together):
            rows = read_group(f"together[{i}]", group)
            must.append(np.column_stack([rows[:-1], rows[1:]]))
        for i, two in enumerate(apart):
            if not isinstance(two, Sequence) or len(two) != 2:
                raise ValueError(f"apart[{i}] is {two!r}: give two groups, such as ([0, 1], [5, 6])")
            first, second = two
            one, other = read_group(f"apart[{i}][0]", first), read_group(f"apart[{i}][1]", second)
            if len(both := np.intersect1d(one, other)):
                raise ValueError(f"apart[{i}] has row {both[0]} in both groups: remove it from one of them")
            cannot.append(np.column_stack([np.repeat(one, len(other)), np.tile(other, len(one))]))
        return cls(np.concatenate(must), np.concatenate(cannot))

    @classmethod
    def from_labels(
        cls,
        y: Iterable[Hashable],
        n_links: int | None = None,
        *,
        kind: Literal["both", "must", "cannot"] = "both",
        random_state: int | np.random.RandomState | np.random.Generator | None = None,
    ) -> "Links":
        """Make links from the labels of all rows or of some.

        Parameters
        ----------
        y : sequence of shape (n_rows,)
            Labels of any hashable type. The number -1, None and NaN stand for unknown.
        n_links : int, optional
            Draw so many different pairs of labelled rows, all pairs equally likely. If None, give the fewest links that
            imply all others: the rows of each label in a chain of must-links, and one cannot-link between the first
            rows of each two labels.
        kind : {"both", "must", "cannot"}
            Which links to give. A draw is then from the pairs of this kind.
        random_state : int, RandomState, Generator or None
            Source of the draw.

        Examples
        --------
        >>> from linkmix import Links
        >>> links = Links.from_labels(["x", "y", None, "x", "x"])
        >>> links.must.tolist(), links.cannot.tolist()
        ([[0, 3], [3, 4]], [[0, 1]])
        >>> Links.from_labels(["x", "y", "x", "x"], n_links=3, kind="must", random_state=0)
        Links(3 must, 0 cannot)
        """
        if kind not in ("both", "must", "cannot"):
            raise ValueError(f"kind is {kind!r}: use 'both', 'must' or 'cannot'")
        rows, codes = read_labels(y)
        order = np.argsort(codes, kind="stable")
        rows, codes = rows[order], codes[order]
        within = pairs_within(codes)
        if n_links is None:
            chain = np.column_stack([rows[:-1], rows[1:]])[codes[1:] == codes[:-1]]
            firsts = rows[within.lowest == np.arange(len(rows))]
            apart = firsts[np.column_stack(np.triu_indices(len(firsts), 1))]
            return cls(chain if kind != "cannot" else (), apart if kind != "must" else ())

        if isinstance(n_links, bool) or not isinstance(n_links, Integral) or n_links < 0:
            raise ValueError(f"n_links is {n_links!r}: give a whole number of links, 0 or more, or None")
        nothing = np.zeros_like(within.lowest)
        partners = {
            "must": within,
            "cannot": Partners(nothing, within.lowest),
            "both": Partners(nothing, np.arange(len(rows))),
        }[kind]
        n_pairs = int(partners.counts.sum())
        if n_links > n_pairs:
            what = "pairs" if kind == "both" else f"{kind}-link pairs"
            raise ValueError(
                f"n_links is {n_links}, but the {len(rows)} labelled rows make {n_pairs} {what}: "
                f"ask for at most {n_pairs}"
            )
        at = pairs_at(draw_distinct(n_pairs, int(n_links), read_random_state(random_state)), partners)
        pairs, same = np.sort(rows[at], axis=1), codes[at[:, 0]] == codes[at[:, 1]]
        return cls(pairs[same], pairs[~same])


class _Statements(NamedTuple):
    """The links of one kind."""

    pairs: Ints  # (n, 2)
    confidence: Floats | None = None  # (n,)
    annotators: Array | None = None  # (n,)

    def take(self, kept: Array) -> "_Statements":
        return _Statements(*(None if part is None else part[kept] for part in self))  # type: ignore[arg-type]

    def certain(self) -> Ints:
        return self.pairs if self.confidence is None else self.pairs[self.confidence == 1]

    def distinct(self) -> "_Statements":
        numbers_of: dict[Hashable, int] = {}
        keys = np.sort(self.pairs, axis=1).T  # (2, n)
        if self.annotators is not None:
            keys = np.vstack([keys, [numbers_of.setdefault(name, len(numbers_of)) for name in self.annotators]])
        order = np.lexsort(keys)  # stable: the first statement comes first among equals
        is_first = np.ones(len(order), dtype=bool)
        is_first[1:] = (keys[:, order[1:]] != keys[:, order[:-1]]).any(axis=0)
        kept = order[is_first]
        statements = self.take(kept)
        if self.confidence is not None and self.annotators is None:
            highest = np.maximum.reduceat(self.confidence[order], np.flatnonzero(is_first))
            statements = statements._replace(confidence=highest)
        return statements.take(np.argsort(kept))

    def append(self, other: "_Statements") -> "_Statements":
        def joined(mine: Array | None, others: Array | None, absent: object) -> Array | None:
            if mine is None and others is None:
                return None
            parts = zip((mine, others), (self, other), strict=True)
            return np.concatenate([np.full(len(s.pairs), absent) if p is None else p for p, s in parts])

        return _Statements(
            np.concatenate([self.pairs, other.pairs]),
            joined(self.confidence, other.confidence, 1.0),
            joined(self.annotators, other.annotators, None),
        )


def _tuple(values: Iterable[Hashable] | None) -> Hashable:
    return None if values is None else tuple(values)


def _build(must: _Statements, cannot: _Statements, relations: Iterable[Relation] = ()) -> Links:
    return Links(
        must.pairs,
        cannot.pairs,
        must_confidence=must.confidence,
        cannot_confidence=cannot.confidence,
        must_annotators=must.annotators,
        cannot_annotators=cannot.annotators,
        relations=relations,
    )


def _compact(must: Ints, cannot: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Number the linked points alone, so that the work does not grow with the row numbers.

    Returns must and cannot in these numbers, the row of each point, and its chunklet.
    """
    points, number = np.unique(np.concatenate([must, cannot]), return_inverse=True)
    number = number.reshape(-1, 2)
    return number[: len(must)], number[len(must) :], points, component_ids(number[: len(must)], len(points))


def _find_chains(clashing: Ints, must: Ints) -> list[Conflict]:
    neighbours: dict[int, list[int]] = {}
    for a, b in must.tolist():
        neighbours.setdefault(a, []).append(b)
        neighbours.setdefault(b, []).append(a)
    return [Conflict((a, b), shortest_chain(neighbours, a, b)) for a, b in clashing.tolist()]


def _sorted_pairs(pairs: Ints) -> Ints:
    ordered = np.sort(pairs, axis=1)
    return ordered[np.lexsort((ordered[:, 1], ordered[:, 0]))]
