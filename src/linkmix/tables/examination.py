"""What is wrong with a file of links, and what follows from its links."""

import os
from dataclasses import dataclass

import numpy as np

from linkmix.basics.errors import BadFile, Conflict
from linkmix.links import Links
from linkmix.links.feasibility.colouring import UndecidedError, find_labels
from linkmix.tables.ids import Ids
from linkmix.tables.links import LinkLine, between_rows, find_rows, read_link_lines

MOST_CLASSES = 50


@dataclass(frozen=True)
class Examination:
    """What was found in a file of links.

    Attributes
    ----------
    n_lines : int
        Number of links in the file.
    unknown : list of BadFile
        Links with ids that no point has, and links of a point to itself.
    repeated : list of (LinkLine, LinkLine)
        Links that repeat an earlier line of the same annotator, each with the first such line.
    links : Links
        All links but the unknown ones.
    conflicts : list of Conflict
        Contradictions between certain links, with the shortest chain of must-links.
    n_groups : int
        Number of groups of points that must-links hold together.
    closure : tuple of two ints or None
        Number of must-links and cannot-links that follow from the certain ones; None if these contradict each other.
    fewest_classes : int or None
        Smallest number of classes with which all certain links can be met; None if there is none, or none was found.
    """

    n_lines: int
    unknown: list[BadFile]
    repeated: list[tuple[LinkLine, LinkLine]]
    links: Links
    conflicts: list[Conflict]
    n_groups: int
    closure: tuple[int, int] | None
    fewest_classes: int | None

    @property
    def sound(self) -> bool:
        """Whether a fit could use the links."""
        return not (self.unknown or self.conflicts)


def examine_links(path: str | os.PathLike[str], ids: Ids) -> Examination:
    """Read a file of links, find everything that is wrong with it, and what follows from it.

    Parameters
    ----------
    path : path
        A file of links, as for `read_links`.
    ids : sequence of str
        Ids of the points, in their order.

    Returns
    -------
    Examination
    """
    lines = read_link_lines(path)
    unknown: list[BadFile] = []
    known: list[LinkLine] = []
    pairs: list[tuple[int, int]] = []
    first_of: dict[object, LinkLine] = {}
    repeated = []
    for line, rows in find_rows(path, lines, ids):
        if isinstance(rows, BadFile):
            unknown.append(rows)
            continue
        known.append(line)
        pairs.append(rows)
        key = (frozenset(rows), line.is_must, line.annotator)
        if first_of.setdefault(key, line) is not line:
            repeated.append((line, first_of[key]))
    links = between_rows(known, pairs)
    certain = links.certain()
    conflicts = certain.conflicts()
    groups = certain.chunklets(len(ids))
    _, sizes = np.unique(groups, return_counts=True)
    closure = None
    if not conflicts:
        closure = _closure_size(certain, groups, sizes)
    return Examination(
        len(lines),
        unknown,
        repeated,
        links,
        conflicts,
        int((sizes > 1).sum()),
        closure,
        None if conflicts else fewest_classes(certain),
    )


def fewest_classes(links: Links) -> int | None:
    """Smallest number of classes with which certain links can all be met.

    Parameters
    ----------
    links : Links
        Links without contradictions.

    Returns
    -------
    int or None
        None if the search ended without a result.

    Examples
    --------
    Three rows that are all apart, and a fourth one that belongs to the first.

    >>> fewest_classes(Links(must=[(0, 3)], cannot=[(0, 1), (1, 2), (2, 3)]))
    3
    """
    points = links.points
    if not links.n_cannot:
        return 1
    within = links.restrict(points)
    for n_classes in range(2, min(MOST_CLASSES, len(points)) + 1):
        try:
            if find_labels(np.ones((len(points), n_classes), dtype=bool), within.cannot, within.must) is not None:
                return n_classes
        except UndecidedError:
            return None
    return None


def _closure_size(links: Links, groups: np.ndarray, sizes: np.ndarray) -> tuple[int, int]:
    """Number of links in the closure, without building it: it may be very large."""
    apart = np.unique(np.sort(groups[links.cannot], axis=1), axis=0) if links.n_cannot else np.empty((0, 2), dtype=int)
    return int((sizes * (sizes - 1) // 2).sum()), int(sizes[apart].prod(axis=1).sum())
