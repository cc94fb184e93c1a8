"""Random pairs that tell how good labels are."""

import numpy as np
import pytest
from numpy.random import RandomState
from sklearn.datasets import load_iris

from linkmix.queries import Answer, Questioner
from linkmix.queries.audit import Audit, draw, interval
from linkmix.queries.groups import Known

LABELS = np.repeat([0, 1, 2], [30, 20, 10])
TRUTH = LABELS.copy()
TRUTH[[0, 1, 2, 31, 32, 50]] = [1, 1, 2, 0, 2, 0]


def pairs_of(n):
    return np.column_stack(np.triu_indices(n, 1))


def same(labels, pairs):
    return labels[pairs[:, 0]] == labels[pairs[:, 1]]


def right_share(labels, truth):
    pairs = pairs_of(len(labels))
    return float((same(labels, pairs) == same(truth, pairs)).mean())


def answered(audit, truth):
    """The audit when all was said."""
    while pairs := audit.next(audit.n):
        audit = audit.after({(a, b): "same" if truth[a] == truth[b] else "different" for a, b in pairs})
    return audit


def some_known():
    """Answers that are right about a third of the rows."""
    known = Known()
    for a, b in [(0, 1), (2, 3), (3, 4), (31, 0), (2, 31), (50, 31), (5, 31), (6, 5), (32, 33)]:
        known.take(Answer(a, b, "same" if TRUTH[a] == TRUTH[b] else "different"))
    return known


@pytest.mark.parametrize("n", [10, 20, 40])
def test_the_interval_covers_and_the_estimate_is_near(n):
    truth, labels = RandomState(0).randint(3, size=300), np.empty(300, dtype=np.int64)
    wrong = RandomState(1).permutation(300)[:45]
    labels[:] = truth
    labels[wrong] = (truth[wrong] + 1) % 3
    is_right = right_share(labels, truth)
    found = [answered(draw(labels, n, RandomState(seed)), truth).quality for seed in range(400)]
    covered = np.mean([one.low <= is_right <= one.high for one in found])
    assert 0.85 <= covered <= 0.96
    # A binomial of as many random pairs has this standard deviation; strata cannot make it worse by much.
    spread = np.sqrt(is_right * (1 - is_right) / n)
    assert np.sqrt(np.mean([(one.pairs_right - is_right) ** 2 for one in found])) < 1.1 * spread
    assert all(one.low <= one.pairs_right <= one.high for one in found)


@pytest.mark.parametrize("known", [None, some_known()], ids=["nothing", "some"])
def test_the_interval_covers_perfect_labels_always(known):
    for seed in range(20):
        found = answered(draw(TRUTH, 20, RandomState(seed), known), TRUTH).quality
        assert found.high == 1
        assert 0.8 < found.low < found.pairs_right < 1


def test_the_interval_is_that_of_independent_draws():
    """Against a posterior on a grid, which needs no draws."""
    right, total, shares = np.array([3, 15]), np.array([5, 18]), np.array([0.25, 0.7])
    grid = (np.arange(1500) + 0.5) / 1500
    weight = [
        np.exp((k - 0.5) * np.log(grid) + (n - k - 0.5) * np.log1p(-grid)) for k, n in zip(right, total, strict=True)
    ]
    joint = np.outer(weight[0] / weight[0].sum(), weight[1] / weight[1].sum()).ravel()
    value = (shares[0] * grid[:, None] + shares[1] * grid).ravel()
    order = np.argsort(value)
    expected = np.interp([0.05, 0.95], np.cumsum(joint[order]), value[order])
    np.testing.assert_allclose(interval(right, total, shares), 0.05 + expected, atol=0.005)
    np.testing.assert_allclose(interval(right, total, shares, 0.04), 0.01 + expected, atol=0.005)


def test_with_an_answer_about_every_pair_the_estimate_is_exact():
    rows = np.arange(0, 60, 3)
    audit = draw(LABELS[rows], 10_000, RandomState(0))
    assert audit.n == len(audit.pairs) == 190
    assert {tuple(pair) for pair in pairs_of(20).tolist()} == set(audit.pairs)
    found = answered(audit, TRUTH[rows]).quality
    assert found.pairs_right == pytest.approx(right_share(LABELS[rows], TRUTH[rows]), abs=0.01)
    assert (found.n_links, found.source) == (190, "audit")


def test_known_pairs_are_counted_and_not_asked():
    known, pairs = some_known(), pairs_of(60)
    relation = np.array([known.relation(a, b) or "" for a, b in pairs.tolist()])
    judged = np.where(same(LABELS, pairs), "same", "different")
    audit = draw(LABELS, 500, RandomState(0), known)
    assert not any(known.relation(*pair) for pair in audit.pairs)
    for i, said in enumerate(("same", "different")):
        assert audit.unknown[i] == pytest.approx(np.mean((relation == "") & (judged == said)))
        for j, how in enumerate(("same", "different")):
            assert audit.known[i][j] == pytest.approx(np.mean((relation == said) & (judged == how)))
    assert sum(audit.known[0]) + sum(audit.known[1]) == pytest.approx(np.mean(relation != ""))
    assert answered(audit, TRUTH).quality.pairs_right == pytest.approx(right_share(LABELS, TRUTH), abs=0.03)


def test_pairs_are_drawn_in_proportion_and_all_are_equally_likely():
    labels, counts = np.array([0, 0, 0, 1, 1, 2]), np.zeros((6, 6))
    for seed in range(3000):
        audit = draw(labels, 5, RandomState(seed))
        assert audit.wanted == (1, 4)  # of 4 pairs and 11
        for a, b in audit.next(5):
            counts[a, b] += 1
    drawn = counts[tuple(pairs_of(6).T)] / 3000
    together = same(labels, pairs_of(6))
    np.testing.assert_allclose(drawn[together], 1 / 4, atol=0.04)
    np.testing.assert_allclose(drawn[~together], 4 / 11, atol=0.04)


def test_what_says_nothing_is_replaced_by_a_pair_that_is_judged_alike():
    audit = draw(LABELS, 10, RandomState(0))
    kind = dict(zip(audit.pairs, audit.judged_same, strict=True))
    first = audit.next(10)
    assert len(first) == 10
    for word in ("unsure", "skip"):
        later = audit.after({first[0]: word})
        assert later.n_answered == 0
        (new,) = set(later.next(10)) - set(first)
        assert kind[new] == kind[first[0]]
    audit = audit.after(dict.fromkeys(first[:9], "same"))
    assert audit.next(5) == first[9:]
    assert not audit.is_complete
    assert audit.after({first[9]: "different"}).is_complete
    nothing = audit.after(dict.fromkeys(audit.pairs, "unsure"))
    assert nothing.is_complete
    assert nothing.quality is None


def test_answers_about_other_pairs_do_not_count():
    audit = draw(LABELS, 10, RandomState(0))
    other = next((a, b) for a, b in pairs_of(60).tolist() if (a, b) not in audit.pairs)
    assert audit.after({other: "same"}) == audit


@pytest.mark.parametrize("labels", [[0, 0, 0], [0, 1], [0, 1, 2], [1, 1, 1, 1, 0]])
def test_few_pairs_and_only_one_kind(labels):
    labels = np.array(labels)
    audit = draw(labels, 20, RandomState(0))
    assert audit.n == len(audit.pairs) == len(pairs_of(len(labels)))
    assert sum(audit.unknown) == pytest.approx(1)
    found = answered(audit, labels).quality
    assert found.low < found.pairs_right <= found.high <= 1 + 1e-9


def test_chance_is_what_unrelated_labels_reach():
    random = RandomState(0)
    truth, labels = random.randint(3, size=2000), random.randint(4, size=2000)
    found = answered(draw(labels, 2000, random), truth).quality
    assert found.by_chance == pytest.approx(right_share(labels, truth), abs=0.02)
    assert not found.better_than_chance or found.low - found.by_chance < 0.02


def test_an_audit_is_a_value():
    assert draw(LABELS, 10, RandomState(3)) == draw(LABELS, 10, RandomState(3))
    assert draw(LABELS, 10, RandomState(3)) != draw(LABELS, 10, RandomState(4))
    assert isinstance(draw(LABELS, 10, RandomState(3)), Audit)


# The questioner

IRIS, SPECIES = load_iris(return_X_y=True)


def said(a, b):
    return "same" if SPECIES[a] == SPECIES[b] else "different"


def asked(asker, n, refit_every=10):
    """Answer n questions; the pairs."""
    pairs = []
    for i in range(1, n + 1):
        [(a, b)] = asker.next().tolist()
        asker.answer(a, b, said(a, b))
        pairs.append((a, b))
        if i % refit_every == 0:
            asker.refit()
    return pairs


@pytest.fixture
def asker():
    asker = Questioner(IRIS, 3)
    asked(asker, 20)
    return asker


def test_answers_to_an_audit_are_not_used_before_it_is_complete(asker):
    alike = Questioner(IRIS, 3)
    asked(alike, 20)
    asker.audit(20)
    asked(asker, 19, refit_every=1000)
    assert (asker.said.audit.n_answered, asker.quality) == (19, None)
    for other in (asker, alike):
        other.refit()
    np.testing.assert_array_equal(asker.probabilities, alike.probabilities)
    assert asker._fit.links == alike._fit.links
    asker.said.give_up_audit()
    assert asker.quality is None
    assert asker._state.answers == tuple(asker.said)  # ordinary ones now
    asker.refit()
    assert len(asker._fit.links.points) > len(alike._fit.links.points)


def test_a_complete_audit_gives_the_quality_and_its_answers_are_ordinary(asker):
    labels = asker.labels.copy()
    asker.audit()
    pairs = asked(asker, 20, refit_every=1000)
    found = asker.quality
    assert asker.said.audit is None
    assert (found.n_links, found.source) == (20, "audit")
    assert found.low <= right_share(labels, SPECIES) <= found.high
    known = asker._state.known
    assert all(known.relation(a, b) == said(a, b) for a, b in pairs)
    asker.refit()
    assert {frozenset(pair) for pair in pairs} <= {
        frozenset(pair) for kind in (asker._fit.links.must, asker._fit.links.cannot) for pair in kind.tolist()
    }
    asked(asker, 10)
    assert asker.quality == found  # the estimate stays the one from before


def test_links_know_which_pairs_were_chosen(asker):
    asker.audit(5)
    random = {frozenset(pair) for pair in asked(asker, 5, refit_every=1000)}
    links = asker.links
    assert links.n_chosen == 20
    for pairs, chosen in ((links.must, links.must_chosen), (links.cannot, links.cannot_chosen)):
        assert [frozenset(pair) not in random for pair in pairs.tolist()] == chosen.tolist()
    again = Questioner(IRIS, 3, links=links)
    assert again.links == links
    by_chance = Questioner(IRIS, 3, strategy="random")
    asked(by_chance, 4)
    assert by_chance.links.n_chosen == 0
    doubted = Questioner(IRIS, 3, wrong=0.1)
    asked(doubted, 6)
    doubted.audit(3)
    asked(doubted, 3)
    assert doubted.links.n_chosen == doubted.links.n_must + doubted.links.n_cannot - 3


def test_undo_within_an_audit_and_over_its_end(asker):
    before = tuple(asker.said)
    asker.audit(4)
    pairs = asker.next(4).tolist()
    asked(asker, 3, refit_every=1000)
    assert tuple(asker.undo())[:2] == tuple(pairs[2])
    assert asker.said.audit.n_answered == 2
    asked(asker, 2, refit_every=1000)
    assert asker.quality.n_links == 4
    assert tuple(asker.undo())[:2] == tuple(pairs[3])
    assert asker.quality is None
    assert asker.next().tolist() == pairs[3:]
    for _ in range(3):
        asker.undo()
    assert tuple(asker.said) == before
    assert asker.said.audit.n_answered == 0
    asker.undo()  # an answer from before the audit
    assert tuple(asker.said) == before[:-1]
    assert asker.next(4).tolist() == pairs


def test_another_audit_keeps_the_last_result_until_it_is_complete(asker):
    asker.audit(5)
    first = {frozenset(pair) for pair in asked(asker, 5)}
    found = asker.quality
    asker.audit(6)
    second = {frozenset(pair) for pair in asked(asker, 5, refit_every=1000)}
    assert asker.quality is found
    assert not first & second
    asked(asker, 1)
    assert asker.quality.n_links == 6


def test_unsure_and_skip_in_an_audit_are_replaced(asker):
    asker.audit(4)
    for word in ("unsure", "skip"):
        [(a, b)] = asker.next().tolist()
        asker.answer(a, b, word)
        assert asker.said.audit.n_answered == 0
        assert [a, b] not in asker.next(4).tolist()
    assert len(asker.next(9)) == 4
    asked(asker, 4)
    assert asker.quality.n_links == 4


def test_other_pairs_can_be_answered_during_an_audit(asker):
    asker.audit(4)
    a, b = next(
        (a, b) for a, b in pairs_of(150).tolist() if not asker.said.is_audited(a, b) and not asker.said.words(a, b)
    )
    asker.answer(a, b, said(a, b))
    assert asker.said.audit.n_answered == 0
    assert asker.said.words(a, b)[0] in asker._state.answers


def test_an_audit_of_other_labels():
    asker = Questioner(IRIS, 3)
    mixed = RandomState(0).permutation(SPECIES)
    asker.audit(60, labels=mixed)
    asked(asker, 60, refit_every=1000)
    found = asker.quality
    assert found.low < right_share(mixed, SPECIES) < found.high
    assert not found.better_than_chance
    with pytest.raises(ValueError, match="labels has shape"):
        asker.audit(labels=[0, 1])
    with pytest.raises(ValueError, match="n=0"):
        asker.audit(0)


def test_a_removed_link_does_not_reopen_a_complete_audit(asker):
    asker.audit(3)
    [(a, b), *_] = asked(asker, 3)
    found = asker.quality
    asker.said.add(Answer(a, b, "remove"))
    assert asker.said.audit is None
    assert asker.quality == found
