"""The number of classes need not be known."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from linkmix import Links
from linkmix.queries import Questioner
from linkmix.queries.number import groups_apart, with_number
from linkmix.queries.state import Ground, State

CENTRES = np.array([[0, 0], [8, 0], [0, 8], [8, 8]])
BLOBS = np.random.default_rng(0).normal(size=(120, 2)) + np.repeat(CENTRES, 30, axis=0)
BLOB = np.repeat(np.arange(4), 30)


def converse(asker, truth, n, refit_every=10):
    for i in range(1, n + 1):
        for a, b in asker.next().tolist():
            asker.answer(a, b, "same" if truth[a] == truth[b] else "different")
        if i % refit_every == 0:
            asker.refit()


@pytest.mark.parametrize("truth", [BLOB, np.array([0, 1, 1, 0])[BLOB], 2 * BLOB + (BLOBS[:, 1] > CENTRES[BLOB, 1])])
def test_the_number_follows_the_answers(truth):
    asker = Questioner(BLOBS)
    assert asker.n_classes == 4  # what the points show
    converse(asker, truth, 80)
    assert asker.n_classes == len(set(truth.tolist()))
    assert asker.probabilities.shape == (120, asker.n_classes)
    assert asker.model.n_classes_ == asker.n_classes
    assert adjusted_rand_score(truth, asker.model.predict(BLOBS)) > 0.8


def test_the_number_is_never_below_that_of_groups_known_to_differ():
    asker = Questioner(BLOBS, 2)
    for a, b in [(0, 1), (30, 31), (60, 61)]:
        asker.answer(a, b, "same")
    for a, b in [(0, 30), (30, 60), (0, 60)]:
        asker.answer(a, b, "different")
    assert "3 groups" in asker.another_class
    asker.refit()
    assert asker.n_classes == 3
    assert asker.another_class is None
    assert len({*asker.labels[[0, 30, 60]].tolist()}) == 3
    asker.undo()
    asker.refit()
    assert asker.n_classes == 2


def test_classes_keep_their_numbers_when_one_is_split():
    asker = Questioner(BLOBS, 3)
    before = asker.labels
    asker.expect(4)
    assert asker.n_classes == 3
    asker.refit()
    assert asker.n_classes == 4
    assert adjusted_rand_score(BLOB, asker.labels) == 1
    assert np.mean(asker.labels == before) == 0.75  # the new class has the new number
    assert set(asker.labels[asker.labels != before].tolist()) == {3}
    asker.expect(None)
    asker.refit()
    assert asker.n_classes == 4


def test_an_expected_number_is_checked():
    asker = Questioner(BLOBS, 3)
    with pytest.raises(ValueError, match="120 points cannot make 121 classes"):
        asker.expect(121)
    with pytest.raises(ValueError, match="n_classes"):
        asker.expect(0)


def test_given_links_and_labels_tell_the_first_number():
    rows = [0, 10, 30, 40, 60, 70, 90, 100]
    links = Links(cannot=[(a, b) for i, a in enumerate(rows) for b in rows[:i]])
    assert Questioner(BLOBS, links=links).n_classes >= 8
    assert Questioner(BLOBS, labels=BLOB % 2).n_classes == 2


def test_a_slip_makes_no_group():
    state = State(Ground(np.zeros((4, 1)), np.arange(4), 2), (), np.full((4, 2), 0.5))
    state = state.with_answer(0, 1, "different").with_answer(1, 2, "different").with_answer(0, 2, "different")
    assert groups_apart(state) == 0


@pytest.mark.parametrize("n_classes", [1, 2, 3, 5, 7])
def test_labels_for_another_number_of_classes(n_classes):
    p = np.eye(4)[BLOB]
    state = State(Ground(BLOBS, np.arange(120), n_classes), (), p, (0, 30, 60, 90))
    state = state.with_answer(0, 31, "same").with_answer(5, 61, "different").with_answer(61, 62, "different")
    found = with_number(BLOB, state, np.arange(120), n_classes)
    assert sorted(set(found.tolist())) == list(range(n_classes))
    coarse, fine = (found, BLOB) if n_classes < 4 else (BLOB, found)
    assert all(len(set(coarse[fine == m].tolist())) == 1 for m in set(fine.tolist()))
    if n_classes == 3:
        assert found[0] == found[31]  # what the answers merged
