"""What answers that may be wrong say together: the probability that the rows of each pair are of one class.

Each row has a class, about which the model says something, and each answer about two rows is right with a known
probability. Messages between rows (loopy belief propagation) combine all of it: an answer is doubtful if what the other
answers and the model say about its two rows speaks against it. Messages are about classes, so answers that contradict
each other in a circle are noticed only as far as the model tells classes apart.
"""

from collections.abc import Sequence

import numpy as np
from scipy.special import expit

from linkmix.basics.arrays import Floats
from linkmix.queries.answers import Pair

ROUNDS = 50
"""Messages are sent so often at most."""
DAMPING = 0.3
"""Share of the last message that is kept, so that messages in circles come to rest."""
AT_REST = 0.01
"""Change of a message, in nats, below which it has come to rest; probabilities are then right to 0.001."""


def same_without(pairs: Sequence[Pair], evidence: Floats, rows: Sequence[int], prior: Floats) -> Floats:
    """For each pair, the probability that its rows are of one class, by everything but the answers about the pair.

    Parameters
    ----------
    pairs : sequence of tuple of int
        Pairs with answers, each once.
    evidence : ndarray of shape (n_pairs,)
        Log-odds of "same" by the answers about each pair.
    rows : sequence of int
        The rows of these pairs.
    prior : ndarray of shape (n_rows, n_classes)
        Probability of each class for each of these rows, none of them zero.

    Returns
    -------
    ndarray of shape (n_pairs,)

    Examples
    --------
    Rows 1 and 2 are said to be like row 0, but unlike each other. The model takes all three for alike.

    >>> pairs, evidence = [(0, 1), (0, 2), (1, 2)], np.array([2.2, 2.2, -2.2])
    >>> prior = np.array([[0.9, 0.1], [0.8, 0.2], [0.8, 0.2]])
    >>> same_without(pairs, evidence, range(3), prior).round(2).tolist()
    [0.43, 0.43, 0.89]
    """
    if not len(pairs):
        return np.empty(0)
    place = {row: i for i, row in enumerate(rows)}
    ends = np.array([(place[a], place[b]) for a, b in pairs])
    n, n_rows, n_classes = len(ends), *prior.shape
    source, target = ends.T.ravel(), ends[:, ::-1].T.ravel()
    back = np.concatenate([np.arange(n, 2 * n), np.arange(n)])
    same = np.tile(expit(evidence), 2)[:, None]
    alone, messages = np.log(prior), np.zeros((2 * n, n_classes))
    cells = (target[:, None] * n_classes + np.arange(n_classes)).ravel()

    def without_the_pair() -> Floats:
        heard = np.bincount(cells, messages.ravel(), n_rows * n_classes).reshape(n_rows, n_classes)
        log_p = (alone + heard)[source] - messages[back]
        p = np.exp(log_p - log_p.max(axis=1, keepdims=True))
        return np.asarray(p / p.sum(axis=1, keepdims=True))

    for _ in range(ROUNDS):
        p = without_the_pair()
        new = np.log(same * p + (1 - same) * (1 - p))
        new -= new.max(axis=1, keepdims=True)
        change = float(np.abs(new - messages).max())
        messages = DAMPING * messages + (1 - DAMPING) * new
        if change < AT_REST:
            break
    p = without_the_pair()
    return np.asarray((p[:n] * p[n:]).sum(axis=1))
