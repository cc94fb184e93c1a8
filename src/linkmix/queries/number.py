"""How many classes there are, by the answers, and starts for another number of them.

Before any answer the structure of the points decides, as in ``AutoLinkMixture(n_classes="auto")``. From then on the
answers do. Neighbourhoods that are known to differ are so many classes at least. Each of the others is a class of its
own or part of another one, and the answers that have compared two neighbourhoods so far tell how likely that is.
"""

import numpy as np

from linkmix.basics.arrays import Floats, Ints
from linkmix.basics.errors import InfeasibleLinks
from linkmix.links import Links
from linkmix.queries.cover import Neighbourhoods, seeds
from linkmix.queries.state import State, squared_distances
from linkmix.search.contest import Contest
from linkmix.search.number import compare_numbers, fewest_classes, largest_clique, largest_number, number_of_classes


def first_number(contest: Contest, links: Links) -> int:
    """The number of classes by points and links; see `linkmix.search.number`."""
    n = contest.shape[0]
    most = largest_number(fewest_classes(links), n, contest.budget.settings)
    try:
        return number_of_classes(compare_numbers(contest.with_classes(most).given(links, None)))
    except (InfeasibleLinks, ValueError):  # contradictory links, or points that are all alike
        return min(n, 2)


def groups_apart(state: State) -> int:
    """Number of groups of rows that are all known to differ from each other.

    Parameters
    ----------
    state : State
        With answers to believe. A single row is a group only if answers are right and the number of classes is not
        known: a slip does not make a class.

    Examples
    --------
    >>> from linkmix.queries.state import Ground
    >>> state = State(Ground(np.zeros((4, 1)), np.arange(4), 2, unknown=True), (), np.full((4, 2), 0.5))
    >>> state = state.with_answer(0, 1, "different").with_answer(1, 2, "different")
    >>> groups_apart(state), groups_apart(state.with_answer(0, 2, "different"))
    (2, 3)
    """
    known = state.known
    counted = {g for g, rows in known.members.items() if len(rows) >= _fewest_rows(state)}
    edges = [(g, other) for g in counted for other in known.apart[g] & counted if g < other]
    return largest_clique(edges) if edges else min(1, len(counted))


def likely_number(state: State) -> int:
    """The number of classes that the answers speak for.

    Parameters
    ----------
    state : State
        With answers to believe.

    Returns
    -------
    int
        Groups known to differ; of the other neighbourhoods, and of the classes of the model without any answer, the
        share that are likely classes of their own.
    """
    known, answered = Neighbourhoods.after(state), state.known.of
    n_groups = sum(g in answered and len(rows) >= _fewest_rows(state) for g, rows in known.members.items())
    classes = set(state.probabilities[state.ground.candidates].argmax(axis=1).tolist())
    if answered:
        classes -= set(state.probabilities[[*answered]].argmax(axis=1).tolist())
    n_groups += len(classes)  # of these nothing is known yet
    apart, prior = groups_apart(state), state.ground.settings.own_class
    own = (known.n_apart + prior) / (known.n_apart + known.n_merged + prior)
    return max(1, apart, round(apart + own * (n_groups - apart)))


def _fewest_rows(state: State) -> int:
    """Number of rows that make a group."""
    return 1 if state.ground.unknown and not state.ground.wrong else 2


def number_by_answers(state: State) -> int:
    """The number of classes of the next refit, by a state with answers to believe.

    It is that of the state, or more if more groups are certain to differ. If it is not known, `likely_number` counts;
    but a difference of one changes nothing as long as it is a guess, since another number is another model.
    """
    ground, apart = state.ground, groups_apart(state)
    if not ground.unknown:
        return ground.n_classes if ground.wrong else max(ground.n_classes, apart)
    likely = min(likely_number(state), len(ground.Z))
    is_guess = apart <= ground.n_classes and likely > apart
    return ground.n_classes if is_guess and abs(likely - ground.n_classes) == 1 else likely


def with_number(labels: Ints, state: State, rows: Ints, n_classes: int) -> Ints:
    """Labels of some rows, changed to another number of classes by as little as possible.

    Classes that hold a part of the same neighbourhood are merged, the smallest ones first; a class that holds several
    is divided between them. Where the answers do not say how, the smallest class joins the nearest one, and the largest
    is divided in two.
    """
    of, chosen = seeds(state)
    Z = state.ground.Z[rows]
    names, labels = np.unique(labels, return_inverse=True)
    answered = np.array([row for row in of if of[row] in set(chosen)], dtype=np.int64)
    place = np.searchsorted(rows, answered)
    answered, place = answered[rows[place] == answered], place[rows[place] == answered]
    group = np.array([chosen.index(of[row]) for row in answered.tolist()], dtype=np.int64)
    n = len(names)
    while n > n_classes:
        sizes = np.bincount(labels, minlength=n)
        held = np.zeros((n, len(chosen)))
        np.add.at(held, (labels[place], group), 1)
        shared = held @ held.T
        np.fill_diagonal(shared, 0)
        if shared.any():
            one, other = np.unravel_index(np.argmax(shared), shared.shape)
        else:
            centres = np.stack([Z[labels == m].mean(axis=0) for m in range(n)])
            one = np.argmin(sizes)
            other = np.argsort(((centres - centres[one]) ** 2).sum(axis=1))[1]
        labels = np.where(labels == one, other, labels)
        labels = np.unique(labels, return_inverse=True)[1]
        n -= 1
    while n < n_classes:
        home = [np.bincount(labels[place[group == k]], minlength=n).argmax() for k in range(len(chosen))]
        held_by = np.bincount(home, minlength=n) if home else np.zeros(n)
        if held_by.max() > 1:
            whole = int(held_by.argmax())
            inside = [k for k, m in enumerate(home) if m == whole]
            smallest = min(inside, key=lambda k: int((group == k).sum()))
            near = answered[np.isin(group, inside)]
            part = group[np.isin(group, inside)][squared_distances(Z, state.ground.Z[near]).argmin(axis=1)] == smallest
        else:
            whole = int(np.bincount(labels, minlength=n).argmax())
            part = _half(Z, labels == whole)
        part &= labels == whole
        if not part.any() or part.sum() == (labels == whole).sum():
            part = _half(Z, labels == whole)
        labels = np.where(part, n, labels)
        n += 1
    return labels


def _half(Z: Floats, inside: Ints) -> Ints:
    """Those of some rows that lie on one side of their mean, along the direction in which they vary most."""
    points = Z - Z[inside].mean(axis=0)
    direction = np.linalg.svd(points[inside], full_matrices=False)[2][0]
    along = points @ direction
    order = np.flatnonzero(inside)[np.argsort(along[inside], kind="stable")]
    part = np.zeros(len(Z), dtype=bool)
    part[order[len(order) // 2 :]] = True
    return part
