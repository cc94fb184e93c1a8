"""Baseline strategies to compare ours with. Each is a function of the state.

Explore-consolidate (Basu, Banerjee and Mooney 2004), min-max (Mallapragada, Jin and Jain 2008), NPU (Xiong, Azimi and
Fern 2014), and one modelled on COBRAS (Van Craenendonck, Dumancic, Van Wolputte and Blockeel 2018).
"""

from collections.abc import Callable, Iterable
from functools import lru_cache

import numpy as np
from sklearn.cluster import KMeans

from linkmix.basics.arrays import Floats, Ints
from linkmix.queries.answers import Pair, pair_of
from linkmix.queries.groups import Known
from linkmix.queries.state import Ground, State, squared_distances

Choose = Callable[[list[list[int]], Ints], Ints]
"""Picks the row to ask about, as an array of length one, from the neighbourhoods and the rows that are in none."""


class _Ask(Exception):
    """Raised when a procedure needs an answer that is not known yet."""

    def __init__(self, a: int, b: int) -> None:
        self.pair = (int(a), int(b))


class _Oracle:
    """Returns known answers; an unknown one ends the procedure with a question."""

    def __init__(self, state: State) -> None:
        self.known = state.known
        self.aside = state.set_aside()

    def same(self, a: int, b: int) -> bool | None:
        """Whether two rows are in the same class; None if the pair was answered "unsure" or skipped recently."""
        said = self.known.relation(a, b)
        if said is not None:
            return said == "same"
        if pair_of(a, b) in self.aside:
            return None
        raise _Ask(a, b)


def random(state: State) -> Pair | None:
    """A random pair about which nothing is known."""
    pairs = _unknown_pairs(state, 50)
    return _pair(pairs[0]) if len(pairs) else None


def uncertainty(state: State) -> Pair | None:
    """The pair whose probability of being in the same class is nearest to one half."""
    pairs = _unknown_pairs(state, state.ground.settings.random_pairs)
    if not len(pairs):
        return None
    together = np.einsum("ij,ij->i", state.probabilities[pairs[:, 0]], state.probabilities[pairs[:, 1]])
    return _pair(pairs[np.argmin(np.abs(together - 0.5))])


def explore_consolidate(state: State) -> Pair | None:
    """Farthest points first until each class has been seen; then random points, each placed in its neighbourhood."""
    return _neighbourhoods(state, lambda groups, rows: state.random().permutation(rows)[:1])


def min_max(state: State) -> Pair | None:
    """Explore-consolidate with a second phase that picks the point least similar to its nearest neighbourhood."""
    Z = state.ground.Z

    def choose(groups: list[list[int]], rows: Ints) -> Ints:
        width = float(np.var(Z[state.ground.candidates], axis=0).sum()) or 1.0
        nearest = squared_distances(Z[rows], Z[np.concatenate(groups).astype(int)]).min(axis=1)
        return rows[[int(np.argmin(np.exp(-nearest / width)))]]

    return _neighbourhoods(state, choose)


def npu(state: State) -> Pair | None:
    """The point with the highest uncertainty about its neighbourhood per question needed to find it."""

    def choose(groups: list[list[int]], rows: Ints) -> Ints:
        belongs = _belongs(state, groups, rows)
        ordered = -np.sort(-belongs, axis=1)
        entropy = -(belongs * np.log(np.maximum(belongs, 1e-300))).sum(axis=1)
        questions = ordered @ np.arange(1, ordered.shape[1] + 1)
        return rows[[int(np.argmax(entropy / questions))]]

    return _neighbourhoods(state, choose, explore=False)


def cobras(state: State) -> Pair | None:
    """Split cells in two, largest first, and merge those whose central rows are in the same class."""
    oracle, ground = _Oracle(state), state.ground
    parts = [tuple(ground.candidates.tolist())]
    try:
        while True:
            groups: list[list[int]] = []  # numbers of the parts of each class, so far
            middles = [_middle(ground, part) for part in parts]
            apart = squared_distances(ground.Z[middles], ground.Z[middles])
            for i in range(len(parts)):
                order = sorted(groups, key=lambda group: apart[i, group].min())
                home = next((group for group in order if oracle.same(middles[i], middles[group[0]])), None)
                if home is None:
                    groups.append([i])
                else:
                    home.append(i)
            largest = max(range(len(parts)), key=lambda i: len(parts[i]))
            if len(parts[largest]) < 2:
                return None
            parts[largest : largest + 1] = _split(ground, parts[largest])
    except _Ask as question:
        return question.pair


def _neighbourhoods(state: State, choose: "Choose", explore: bool = True) -> Pair | None:
    """Shared by the strategies that assign points to neighbourhoods, one by one, asking about the likeliest first."""
    ground = state.ground
    known, aside = state.known, state.set_aside()
    candidates = ground.candidates
    placed = {row for members in known.members.values() if len(members) > 1 for row in members}
    groups = _cores(known, ground.n_classes, state)
    placed.update(row for group in groups for row in group)
    left = np.array([row for row in candidates.tolist() if row not in placed], dtype=np.int64)
    focus = [answer.a for answer in state.answers[-1:] if answer.a not in placed]  # keep asking until it is placed
    for _ in range(len(left) + 1):
        if focus:
            rows: Ints = np.array(focus, dtype=np.int64)
        elif not len(left):
            return None
        elif not groups:
            rows = state.random().permutation(left)[:1]
            groups = [[int(state.random().permutation(left)[1 % len(left)])]]
        elif explore and len(groups) < ground.n_classes:
            distance = squared_distances(ground.Z[left], ground.Z[np.concatenate(groups).astype(int)]).min(axis=1)
            rows = left[[int(np.argmax(distance))]]
        else:
            rows = choose(groups, left)
        x = int(rows[0])
        for g in np.argsort(-_belongs(state, groups, rows)[0], kind="stable"):
            member = groups[g][int(np.argmin(squared_distances(ground.Z[rows], ground.Z[groups[g]])[0]))]
            if x != member and known.relation(x, member) is None and pair_of(x, member) not in aside:
                return x, member
        focus = []
        left = left[left != x]
    return None


def _cores(known: Known, n_classes: int, state: State) -> list[list[int]]:
    """Neighbourhoods: groups of rows that are known to differ from each other, largest first."""
    last = {state.answers[-1].a} if state.answers else set()
    chosen: list[int] = []
    order = sorted(known.members, key=lambda g: (-len(known.members[g]), -len(known.apart[g])))
    for g in order:
        if len(known.members[g]) == 1 and known.members[g][0] in last and chosen and len(chosen) >= n_classes:
            continue
        if all(other in known.apart[g] for other in chosen):
            chosen.append(g)
    return [known.members[g] for g in chosen[:n_classes]]


def _belongs(state: State, groups: list[list[int]], rows: Ints) -> Floats:
    """Probability that each row belongs to each neighbourhood, shape (n, n_groups)."""
    p = state.probabilities
    mean = np.stack([p[group].mean(axis=0) for group in groups])
    like = p[rows] @ mean.T + 1e-9
    near = np.stack([squared_distances(state.ground.Z[rows], state.ground.Z[g]).min(axis=1) for g in groups], axis=1)
    like = like + 1e-6 / (1 + near)  # ties are broken by distance
    return np.asarray(like / like.sum(axis=1, keepdims=True))


def _unknown_pairs(state: State, n: int) -> Ints:
    """Random pairs of candidates about which nothing is known, shape (at most n, 2)."""
    candidates, random = state.ground.candidates, state.random()
    pairs = candidates[random.randint(len(candidates), size=(4 * n, 2))]
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    known, aside = state.known, state.set_aside()
    free = [p for p in map(_pair, pairs) if known.relation(*p) is None and pair_of(*p) not in aside]
    if not free and len(candidates) <= 300:  # nearly everything is known: look at every pair
        every = [(int(a), int(b)) for i, a in enumerate(candidates) for b in candidates[:i]]
        free = [p for p in every if known.relation(*p) is None and pair_of(*p) not in aside]
    return np.array(free[:n], dtype=np.int64).reshape(-1, 2)


def _pair(two: Iterable[int]) -> Pair:
    a, b = two
    return int(a), int(b)


@lru_cache(maxsize=4000)
def _middle(ground: Ground, part: tuple[int, ...]) -> int:
    """The row nearest to the mean."""
    Z = ground.Z[list(part)]
    return part[int(np.argmin(((Z - Z.mean(axis=0)) ** 2).sum(axis=1)))]


@lru_cache(maxsize=4000)
def _split(ground: Ground, part: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Two parts by k-means, neither of them empty."""
    rows = np.array(part)
    Z = ground.Z[rows]
    if len(np.unique(Z, axis=0)) < 2:
        return [part[:1], part[1:]]
    side = KMeans(2, n_init=1, random_state=ground.seed).fit_predict(Z)
    return [tuple(rows[side == k].tolist()) for k in (0, 1)]
