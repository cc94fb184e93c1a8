"""Graph colouring by parallel tempering, for graphs with too many links for backtracking.

Copies of the graph draw new labels again and again, each copy with its own price of a broken link (an inverse
temperature), and copies of neighbouring prices swap places. Copies with a low price explore, those with a high price
settle. Nodes that are not joined draw at the same time, in all copies, so that a sweep takes a few calls. Links drawn
from true labels are hardest where they just begin to leave no other labelling; there this finds one within seconds for
500 nodes, where backtracking and integer programs do not.
"""

import numpy as np
from scipy.sparse import csr_array

from linkmix.basics.arrays import Array, Floats, Ints

_PRICES = np.geomspace(1.5, 6.0, 10)  # of a broken link, one for each copy
_SCORE_WEIGHT = 0.5
_LOWEST_SCORE = -3.0


def temper(allowed: Array, neighbours: list[Ints], score: Floats, n_sweeps: int) -> Ints | None:
    """Labels that differ between neighbours, or None if none were found.

    Parameters
    ----------
    allowed : ndarray of bool, shape (n, n_classes)
        Which labels a node may have.
    neighbours : list of ndarray
        The nodes that cannot have the label of each node.
    score : ndarray of shape (n, n_classes)
        Labels with a high score are preferred, but less than met links.
    n_sweeps : int
        How often all nodes draw their labels.
    """
    random = np.random.default_rng(0)
    n, n_classes = allowed.shape
    n_copies = len(_PRICES)
    classes = np.arange(n_classes)
    source = np.repeat(np.arange(n), [len(around) for around in neighbours])
    target = np.concatenate(neighbours)
    graph = csr_array((np.ones(len(source), dtype=np.float32), (source, target)), shape=(n, n))
    groups = _independent_groups(neighbours)
    rows = [graph[group] for group in groups]
    relative = np.where(allowed, score, -np.inf)
    relative -= relative.max(axis=1, keepdims=True)
    wanted = np.where(allowed, _SCORE_WEIGHT * np.maximum(relative, _LOWEST_SCORE), -np.inf)
    preference = wanted.astype(np.float32)[:, None]  # (n, 1, M)

    price = _PRICES.astype(np.float32)
    labels = np.zeros((n, n_copies), dtype=np.int64)
    chosen = np.zeros((n, n_copies, n_classes), dtype=np.float32)  # one for the label of each node in each copy
    for sweep in range(n_sweeps):
        for group, to_group in zip(groups, rows, strict=True):
            broken = (to_group @ chosen.reshape(n, -1)).reshape(-1, n_copies, n_classes)
            potential = preference[group] - price[:, None] * broken
            potential -= potential.max(axis=2, keepdims=True)
            weights = np.exp(potential).cumsum(axis=2)
            total = weights[:, :, -1:]
            draw = random.random(total.shape, dtype=np.float32) * total
            # Rounding may draw the whole weight, which stands for the last possible label.
            new = (weights <= np.minimum(draw, np.nextafter(total, np.float32(0)))).sum(axis=2)
            labels[group] = new
            chosen[group] = new[:, :, None] == classes
        n_broken = (labels[source] == labels[target]).sum(axis=0)  # (n_copies,)
        if not n_broken.all():
            return labels[:, n_broken.argmin()]
        by_price = np.argsort(price)[sweep % 2 :]
        cheap, dear = by_price[: len(by_price) // 2 * 2].reshape(-1, 2).T
        trades = np.log(random.random(len(cheap))) < (price[dear] - price[cheap]) * (n_broken[dear] - n_broken[cheap])
        cheap, dear = cheap[trades], dear[trades]
        price[cheap], price[dear] = price[dear], price[cheap]
    return None


def _independent_groups(neighbours: list[Ints]) -> list[Ints]:
    """Divide the nodes into groups without links inside, largest degrees first."""
    group = np.full(len(neighbours), -1)
    for node in sorted(range(len(neighbours)), key=lambda node: -len(neighbours[node])):
        taken = set(group[neighbours[node]].tolist())
        group[node] = next(number for number in range(len(neighbours)) if number not in taken)
    return [np.flatnonzero(group == number) for number in range(group.max() + 1)]
