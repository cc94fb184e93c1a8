"""Good labels of a network with tables that is too wide for exact inference."""

from collections.abc import Sequence

import numpy as np

from linkmix.basics.arrays import Floats, Ints
from linkmix.couplings.network.junction_tree import FactorTables

_SWEEPS = 100
_KICKS = 30
_KICKED = 0.1
"""Share of the nodes that get another label before the next try."""
_BROKEN = 1e9
"""What an impossible combination of labels costs. More than any log-potential that matters."""


def better_labels(guide: Floats, log_potential: Floats, families: Sequence[Ints], factors: FactorTables) -> Ints | None:
    """Labels with a large log-potential, by changing one label after the other; None if all found are impossible.

    The work is limited by counting sweeps, not seconds, so that labels do not depend on the speed of the machine.

    Parameters
    ----------
    guide : ndarray of shape (n, n_classes)
        Approximate marginals, from whose most probable labels the search starts.
    log_potential : ndarray of shape (n, n_classes)
        Log-potentials of the nodes.
    families : sequence of ndarray of shape (n_scopes, k)
        The nodes of each scope.
    factors : sequence of ndarray of shape (n_scopes or 1, n_classes, ...)
        Log-potentials of the labels of each scope.
    """
    search = _Search(np.maximum(log_potential, -_BROKEN), families, [np.maximum(table, -_BROKEN) for table in factors])
    random = np.random.default_rng(0)
    best = search.improve(np.nan_to_num(guide).argmax(axis=1))
    value = search.value(best)
    for _ in range(_KICKS):
        if value > -_BROKEN / 2 and search.n * _KICKS > 10**5:
            break  # kicks pay off in small networks, and where something is still broken
        kicked = best.copy()
        some = random.random(search.n) < max(_KICKED, 1.5 / search.n)
        kicked[some] = random.integers(log_potential.shape[1], size=int(some.sum()))
        trial = search.improve(kicked)
        if (found := search.value(trial)) > value:
            best, value = trial, found
    return best if value > -_BROKEN / 2 else None


class _Search:
    def __init__(self, score: Floats, families: Sequence[Ints], factors: Sequence[Floats]) -> None:
        self.n, self.n_classes = score.shape
        self.score, self.families, self.factors = score, families, factors
        self.at: list[list[tuple[int, int, int]]] = [[] for _ in range(self.n)]  # family, scope and axis of each node
        for family, scopes in enumerate(families):
            for scope, nodes in enumerate(scopes.tolist()):
                for axis, node in enumerate(nodes):
                    self.at[node].append((family, scope, axis))

    def value(self, labels: Ints) -> float:
        total = float(self.score[np.arange(self.n), labels].sum())
        for scopes, table in zip(self.families, self.factors, strict=True):
            which = np.zeros(len(scopes), dtype=np.int64) if len(table) == 1 else np.arange(len(scopes))
            total += float(table[(which, *labels[scopes].T)].sum())
        return total

    def improve(self, start: Ints) -> Ints:
        """Give each node its best label while the others keep theirs, until none changes."""
        labels = start.copy()
        waiting = dict.fromkeys(range(self.n))
        for _ in range(_SWEEPS * self.n):
            if not waiting:
                break
            node = next(iter(waiting))
            del waiting[node]
            gains = self.score[node].copy()
            for family, scope, axis in self.at[node]:
                table, place = self.factors[family], list(labels[self.families[family][scope]])
                place[axis] = slice(None)
                gains += table[(0 if len(table) == 1 else scope, *place)]
            best = int(gains.argmax())
            if gains[best] > gains[labels[node]] + 1e-12:
                labels[node] = best
                for family, scope, _ in self.at[node]:
                    waiting.update(dict.fromkeys(self.families[family][scope].tolist()))
        return labels
