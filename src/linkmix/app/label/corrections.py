"""What people said before that a correction contradicts: it is dropped, in the same turn."""

from collections.abc import Iterable

from linkmix.queries import Answer
from linkmix.queries.answers import Pair
from linkmix.queries.groups import Groups


def contradicted(what: str, rows: list[int], face: int | None, links: Iterable[Answer]) -> list[Pair]:
    """Pairs whose links contradict a correction.

    Parameters
    ----------
    what : {"belongs", "not", "split", "merge"}
        The correction.
    rows : list of int
        The rows that it is about.
    face : int or None
        A row of the class that they belong to, or do not; None for a merge.
    links : iterable of Answer
        Everything said before.

    Returns
    -------
    list of (int, int)
        If a row moves, it leaves the rows that it was linked with. If classes are merged, nothing keeps them apart any
        more. Links that do not contradict the correction stay.

    Examples
    --------
    >>> links = [Answer(0, 1, "same"), Answer(1, 2, "same"), Answer(2, 3, "different")]
    >>> contradicted("not", [2], 0, links), contradicted("merge", [0, 3], None, links)
    ([(1, 2)], [(2, 3)])
    >>> contradicted("belongs", [2], 3, links), contradicted("belongs", [4], 0, links)
    ([(1, 2), (2, 3)], [])
    """
    links = [link for link in links if link.is_link]
    groups = _groups(links)
    if what == "merge":
        one, other = (_of(groups, row) for row in rows)
        return _between("different", one, other, links)
    assert face is not None
    moved, home = set(rows), _of(groups, face)
    found = [] if what == "belongs" else _between("same", moved & home, home - moved, links)
    if what == "not":
        return found
    joined = home | moved if what == "belongs" else moved  # will be one group: what else is in theirs may be apart
    theirs = {groups.of[row] for row in joined if row in groups.of}
    apart = {
        group
        for link in links
        for a, b in _ends(link, "different")
        if (group := groups.of[a]) in theirs and groups.of[b] in theirs - {group}
    }
    torn = {row for row in rows if groups.of.get(row) in apart}
    found += _between("same", torn, groups.of.keys() - joined, links) + _between("different", moved, joined, links)
    return list(dict.fromkeys(found))


def _groups(links: Iterable[Answer]) -> Groups:
    """What belongs together by must-links alone."""
    groups = Groups()
    for link in links:
        for row in (link.a, link.b):
            if row not in groups.of:
                groups.found(row)
        if link.said == "same":
            groups.relate(groups.of[link.a], groups.of[link.b], same=True)
    return groups


def _of(groups: Groups, row: int) -> set[int]:
    """The group of a row."""
    return {*groups.members[groups.of[row]]} if row in groups.of else {row}


def _ends(link: Answer, said: str) -> tuple[tuple[int, int], ...]:
    """Both directions of a link, if it says this."""
    return ((link.a, link.b), (link.b, link.a)) if link.said == said else ()


def _between(said: str, one: Iterable[int], other: Iterable[int], links: Iterable[Answer]) -> list[Pair]:
    """Pairs of which this was said, with one row in each of two sets."""
    one, other = set(one), set(other)
    found = (link.pair for link in links if any(a in one and b in other for a, b in _ends(link, said)))
    return list(dict.fromkeys(found))
