"""Why two points must be together or apart: the shortest chain of links that forces it."""

from collections import deque

from linkmix.links.links import Links


def forcing_links(links: Links, a: int, b: int) -> tuple[bool, list[tuple[int, int, bool]]] | None:
    """Find the fewest certain links that put two rows together, or apart.

    Parameters
    ----------
    links : Links
        Links between rows.
    a, b : int
        Two rows.

    Returns
    -------
    tuple of bool and list, or None
        Whether they are together, and the links from `a` to `b`, each with its two rows and whether it is a must-link.
        None if no links force anything.

    Examples
    --------
    >>> forcing_links(Links(must=[(0, 1), (2, 3)], cannot=[(1, 2)]), 0, 3)
    (False, [(0, 1, True), (1, 2, False), (2, 3, True)])
    """
    neighbours: dict[int, list[tuple[int, bool]]] = {}
    certain = links.certain()
    for pairs, is_must in ((certain.must, True), (certain.cannot, False)):
        for one, other in pairs.tolist():
            neighbours.setdefault(one, []).append((other, is_must))
            neighbours.setdefault(other, []).append((one, is_must))
    # A chain may have one cannot-link: with two of them nothing follows for its ends.
    start = (a, True)
    came_from: dict[tuple[int, bool], tuple[int, bool]] = {start: start}
    queue = deque([start])
    while queue:
        row, together = queue.popleft()
        for other, is_must in neighbours.get(row, ()):
            state = (other, together and is_must)
            if (together or is_must) and state not in came_from:
                came_from[state] = (row, together)
                queue.append(state)
    for together in (True, False):
        if (b, together) in came_from:
            chain, state = [], (b, together)
            while state != start:
                before = came_from[state]
                chain.append((before[0], state[0], before[1] == state[1]))
                state = before
            return together, chain[::-1]
    return None
