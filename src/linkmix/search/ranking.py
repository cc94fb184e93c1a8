"""Ranks candidates: by how well they explain the links, follow the gaps between points, and agree with others.

A candidate is judged by labels computed without the links: links that hold only because they are enforced say nothing
about the points around them. With few links, many candidates break none. The likelihood does not help then, since the
likelihood of a wrong model does not favour the user's classes. Two other things do: whether neighbours share a label,
which assumes no shape of the classes, and what candidates from many starts and shapes agree on, weighted by how well
they explain the links. Both count as much as a fixed number of links, so with many links it is the links that decide.
To try another rule, write a function like `by_links_structure_and_agreement`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import xlogy

from linkmix.basics.arrays import Floats, Ints
from linkmix.links import Links
from linkmix.search.settings import SETTINGS, SearchSettings


@dataclass(frozen=True)
class Evidence:
    """The evidence for a candidate.

    Attributes
    ----------
    broken : float
        Number of links that its labels break, each weighted by ``2 * confidence - 1``.
    log_probability : float
        Log-probability of the links, capped at its expected value under correct labels minus one standard deviation:
        where links may be wrong, labels that meet nearly all of them also meet wrong ones.
    labels : ndarray of shape (n_samples,)
        Labels from the points alone.
    structure : float
        How well the labels follow the gaps between the points.
    n_links : float
        Number of links, weighted in the same way.
    """

    broken: float
    log_probability: float
    labels: Ints
    structure: float = 0.0
    n_links: float = 0.0


Rule = Callable[[Sequence[Evidence], int, SearchSettings], Floats]
"""Scores all candidates, given the evidence, the number of classes and the settings; the highest is the best."""


def weigh(probabilities: Floats, links: Links, least: float = SETTINGS.least) -> Evidence:
    """Compare class probabilities, computed from the points alone, with the links.

    Parameters
    ----------
    probabilities : ndarray of shape (n_samples, n_classes)
        Probability of each class.
    links : Links
        Links between the rows.
    least : float
        Lower bound on the probability of a broken link.

    Returns
    -------
    Evidence

    Examples
    --------
    >>> import numpy as np
    >>> evidence = weigh(np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]]), Links(must=[(0, 1), (1, 2)], cannot=[(0, 2)]))
    >>> evidence.broken, round(float(np.exp(evidence.log_probability)), 3)
    (1.0, 0.09)
    """
    labels = probabilities.argmax(axis=1)
    broken, total, n_links, most, variance = 0.0, 0.0, 0.0, 0.0, 0.0
    for holds, is_broken, confidence in _said(probabilities, labels, links):
        if confidence is None:  # all are certain
            n_links += len(holds)
            broken += int(np.count_nonzero(is_broken))
            total += float(np.log(np.maximum(holds, least)).sum())
            continue
        sure = confidence
        n_links += float((2 * sure - 1).sum())
        broken += float(((2 * sure - 1) * is_broken).sum())
        total += float(np.log(np.maximum(sure * holds + (1 - sure) * (1 - holds), least)).sum())
        most += float((xlogy(sure, sure) + xlogy(1 - sure, 1 - sure)).sum())
        unsure = sure[sure < 1]
        variance += float((unsure * (1 - unsure) * np.log(unsure / (1 - unsure)) ** 2).sum())
    return Evidence(broken, min(total, most - np.sqrt(variance)), labels, n_links=n_links)


def _said(
    probabilities: Floats, labels: Ints, links: Links
) -> Iterator[tuple[Floats, np.ndarray[tuple[int], np.dtype[np.bool_]], Floats | None]]:
    """Links of each kind and relations: probability that each holds, whether labels break it, and how sure it is.

    A relation whose probability is learned says nothing before that.
    """
    for pairs, confidence, wanted in (
        (links.must, links.must_confidence, True),
        (links.cannot, links.cannot_confidence, False),
    ):
        a, b = pairs.T
        together = np.einsum("ij,ij->i", probabilities[a], probabilities[b])
        yield together if wanted else 1 - together, (labels[a] == labels[b]) != wanted, confidence
    for relation in links.relations:
        parts = relation.parts(probabilities.shape[1])
        if parts.is_open and not relation.learn:
            sets = relation.sets
            met = parts.satisfied[tuple(labels[sets].T)]
            yield parts.chance(probabilities[sets]), ~met, np.full(len(sets), parts.probability)


def by_links_structure_and_agreement(
    candidates: Sequence[Evidence], n_classes: int, settings: SearchSettings = SETTINGS
) -> Floats:
    """Log-probability of the links, plus structure and agreement in the same unit.

    Candidates count in the agreement according to how well they explain the links.

    Parameters
    ----------
    candidates : sequence of Evidence
        The evidence for each.
    n_classes : int
        Number of classes.
    settings : SearchSettings
        How much each part counts.

    Returns
    -------
    ndarray of shape (n_candidates,)
        A score in nats; the highest is the best.

    Examples
    --------
    Two candidates agree, the third one is alone.

    >>> import numpy as np
    >>> one, other = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    >>> all_three = [Evidence(0, -1.0, labels, n_links=10) for labels in (one, 1 - one, other)]
    >>> by_links_structure_and_agreement(all_three, 2).round(2).tolist()
    [4.0, 4.0, -1.0]
    """
    log_probability = np.array([candidate.log_probability for candidate in candidates])
    structure = np.array([candidate.structure for candidate in candidates])
    temperature = settings.temperature + settings.doubt * min(candidate.broken for candidate in candidates)
    say = np.exp((log_probability - log_probability.max()) / temperature)
    likeness = agreement([candidate.labels for candidate in candidates], n_classes) @ say / say.sum()
    n_links = candidates[0].n_links
    weight = float(np.clip(settings.agreement * n_links, settings.least_agreement, settings.most_agreement))
    if not n_links:  # everybody has the same say, and structure is all there is besides
        weight = settings.agreement_alone
    return np.asarray(log_probability + settings.structure * structure + weight * likeness)


def agreement(labelings: Sequence[Ints], n_classes: int) -> Floats:
    """Adjusted Rand index of every pair of labelings.

    Parameters
    ----------
    labelings : sequence of ndarray of shape (n_samples,)
        Labels from 0.
    n_classes : int
        More than the largest label.

    Returns
    -------
    ndarray of shape (n_labelings, n_labelings)

    Examples
    --------
    >>> import numpy as np
    >>> agreement([np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0]), np.array([0, 1, 0, 1])], 2).round(2).tolist()
    [[1.0, 1.0, -0.5], [1.0, 1.0, -0.5], [-0.5, -0.5, 1.0]]
    """
    n = len(labelings[0])
    groups = np.concatenate([labels == np.arange(n_classes)[:, None] for labels in labelings]).astype(np.float32)
    shape = (len(labelings), n_classes)
    together = (groups @ groups.T).astype(np.float64).reshape(*shape, *shape)
    pairs = (together * (together - 1) / 2).sum(axis=(1, 3))
    sizes = groups.sum(axis=1, dtype=np.float64).reshape(shape)
    own = (sizes * (sizes - 1) / 2).sum(axis=1)
    by_chance = own[:, None] * own / max(n * (n - 1) / 2, 1)
    most = (own[:, None] + own) / 2
    same = most - by_chance < 1e-9  # both are one group, or all single rows
    return np.where(same, 1.0, (pairs - by_chance) / np.where(same, 1.0, most - by_chance))
