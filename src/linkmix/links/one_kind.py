"""The links of one kind: their pairs, how sure and whose each of them is, and whether it was chosen."""

from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.links.reading import read_annotators, read_chosen, read_confidence, read_pairs


class OneKind(NamedTuple):
    """All must-links, or all cannot-links."""

    pairs: Ints  # (n, 2)
    confidence: Floats | None = None  # (n,)
    annotators: Array | None = None  # (n,)
    chosen: Array | None = None  # (n,)

    @classmethod
    def read(
        cls,
        kind: str,
        pairs: ArrayLike,
        confidence: ArrayLike | None,
        annotators: Iterable[Hashable] | None,
        chosen: ArrayLike | None,
    ) -> "OneKind":
        """Check what a user gives, and copy it."""
        checked = read_pairs(kind, pairs)
        return cls(
            checked,
            read_confidence(f"{kind}_confidence", confidence, len(checked)),
            read_annotators(f"{kind}_annotators", annotators, len(checked)),
            read_chosen(f"{kind}_chosen", chosen, len(checked)),
        )

    def take(self, kept: Array) -> "OneKind":
        """Some of the links, by position or mask."""
        return OneKind(*(None if part is None else part[kept] for part in self))  # type: ignore[arg-type]

    def certain(self) -> Ints:
        """Pairs of the links without doubt."""
        return self.pairs if self.confidence is None else self.pairs[self.confidence == 1]

    def tidy(self) -> "OneKind":
        """Drop confidences of no links, annotators that are all unknown, and that no pair was chosen."""
        return OneKind(
            self.pairs,
            self.confidence if len(self.pairs) else None,
            None if self.annotators is None or all(name is None for name in self.annotators) else self.annotators,
            None if self.chosen is None or not self.chosen.any() else self.chosen,
        )

    def distinct(self) -> "OneKind":
        """Each unordered pair once, or once for each annotator; with its highest confidence if nobody is named."""
        numbers_of: dict[Hashable, int] = {}
        keys = np.sort(self.pairs, axis=1).T  # (2, n)
        if self.annotators is not None:
            keys = np.vstack([keys, [numbers_of.setdefault(name, len(numbers_of)) for name in self.annotators]])
        order = np.lexsort(keys)  # stable: the first link comes first among equals
        is_first = np.ones(len(order), dtype=bool)
        is_first[1:] = (keys[:, order[1:]] != keys[:, order[:-1]]).any(axis=0)
        kept = order[is_first]
        links = self.take(kept)
        if self.confidence is not None and self.annotators is None:
            highest = np.maximum.reduceat(self.confidence[order], np.flatnonzero(is_first))
            links = links._replace(confidence=highest)
        return links.take(np.argsort(kept))

    def append(self, other: "OneKind") -> "OneKind":
        """Both, one after the other; links without a confidence are certain."""

        def joined(mine: Array | None, others: Array | None, absent: object) -> Array | None:
            if mine is None and others is None:
                return None
            parts = zip((mine, others), (self, other), strict=True)
            return np.concatenate([np.full(len(s.pairs), absent) if p is None else p for p, s in parts])

        return OneKind(
            np.concatenate([self.pairs, other.pairs]),
            joined(self.confidence, other.confidence, 1.0),
            joined(self.annotators, other.annotators, None),
            joined(self.chosen, other.chosen, False),
        )

    def restrict(self, rows: Ints) -> "OneKind":
        """Links between some rows, each given once, renumbered to their positions among them."""
        order = np.argsort(rows, kind="stable")
        ordered = rows[order]
        at = np.searchsorted(ordered, self.pairs)  # (n, 2)
        # Padded, because a row beyond the last one of the subset is found at the end.
        inside = (np.append(ordered, -1)[at] == self.pairs).all(axis=1)
        return self.take(inside)._replace(pairs=order[at[inside]])


def split(
    pairs: Ints,
    is_must: Array,
    confidence: Sequence[float | None],
    annotators: Sequence[Hashable],
    chosen: Sequence[bool] | None = None,
) -> tuple[OneKind, OneKind]:
    """Must-links and cannot-links from checked columns, where None stands for certain and for nobody."""
    sure, names = np.array([np.nan if c is None else c for c in confidence]), np.empty(len(pairs), dtype=object)
    names[:] = annotators
    asked = np.zeros(len(pairs), dtype=bool) if chosen is None else np.array(chosen, dtype=bool)

    def one(rows: Array) -> OneKind:
        given = sure[rows]
        known = None if np.isnan(given).all() else np.where(np.isnan(given), 1.0, given)
        return OneKind(pairs[rows], known, names[rows], asked[rows])

    return one(is_must), one(~is_must)
