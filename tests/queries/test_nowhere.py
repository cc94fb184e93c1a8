"""Points that belong to no class, while questions are asked."""

import numpy as np
import pytest

from linkmix.queries import Answer, Answers, Questioner
from linkmix.queries.audit import draw

TRUTH = np.repeat([0, 1, 2], 20)
CLEAN = np.concatenate([np.random.default_rng(0).normal(size=(20, 2)) + 7 * k for k in range(3)])
FAR = np.array([[50.0, -40.0], [-45.0, 50.0]])
X = np.concatenate([CLEAN, FAR])


def answered(asker, n):
    """Right answers to so many questions; a point of no class is said to be one."""
    for _ in range(n):
        [[a, b]] = asker.next()
        strange = [row for row in (a, b) if row >= len(CLEAN)]
        if strange:
            asker.nowhere(*strange)
        else:
            asker.answer(a, b, "same" if TRUTH[a] == TRUTH[b] else "different")


def test_the_model_finds_noise_and_what_is_said_is_noise():
    asker = Questioner(X, 3, noise=True)
    assert asker.labels[60:].tolist() == [-1, -1]
    asker.answer(0, 1, "same")
    asker.answer(1, 20, "different")
    asker.nowhere(0)
    asker.refit()
    assert asker.labels[[0, 1]].tolist() == [-1, -1]  # the second must link with the first
    assert asker.labels[20] >= 0
    assert np.all(asker.model.predict(FAR) == -1)
    assert asker.model.noise
    asker.undo()
    asker.refit()
    assert asker.labels[0] == asker.labels[1] >= 0


def test_rows_that_are_like_others_or_stand_for_a_class_have_one():
    asker = Questioner(X, 3, noise=True)
    asker.answer(60, 0, "same")  # far from everything: the model alone would call it noise
    asker.refit()
    assert asker.labels[60] == asker.labels[0] >= 0
    assert asker.labels[61] == -1
    asker.adopt(asker.fit(asker.snapshot()), placed=[61])
    assert asker.labels[61] >= 0
    asker.nowhere(0)
    asker.refit()
    assert asker.labels[[0, 60, 61]].tolist() == [-1, -1, -1]


def test_points_of_no_class_are_not_asked_about():
    asker = Questioner(X, 3, noise=True)
    asker.nowhere(*asker._tentative, 5)
    gone = {*asker._tentative, 5}
    for _ in range(25):
        [[a, b]] = asker.next()
        assert not gone & {a, b}
        asker.answer(a, b, "same" if TRUTH[min(a, 59)] == TRUTH[min(b, 59)] else "different")
    asker.refit()
    assert np.all(asker.labels[sorted(gone)] == -1)


def test_questions_with_noise_find_the_classes():
    asker = Questioner(X, 3, noise=True)
    answered(asker, 15)
    asker.refit()
    assert len(set(zip(asker.labels[:60].tolist(), TRUTH.tolist(), strict=True))) == 3
    assert np.all(asker.labels[60:] == -1)


def test_an_audit_is_about_points_that_have_a_class():
    labels = np.array([0, 0, 0, 1, 1, -1, -1])
    audit = draw(labels, 10, np.random.RandomState(0))
    assert not {5, 6} & {row for pair in audit.pairs for row in pair}
    assert sum(audit.unknown) == pytest.approx(1.0)
    asker = Questioner(X, 3, noise=True)
    answered(asker, 10)
    asker.audit(8)
    answered(asker, 8)
    assert asker.quality.n_links == 8


def test_nowhere_needs_noise_and_rows():
    with pytest.raises(ValueError, match="made without noise: give noise=True"):
        Questioner(X, 3).nowhere(1)
    with pytest.raises(ValueError, match="row 99 does not exist"):
        Questioner(X, 3, noise=True).nowhere(99)


def test_what_is_nowhere_can_be_undone_and_removed():
    said = Answers()
    said.add(Answer(1, 1, "nowhere"), Answer(2, 2, "nowhere"), key="k1")
    said.add(Answer(2, 2, "nowhere"), key="k2")
    assert [one.a for one in said.nowhere] == [1, 2]
    assert said.links == ()
    said.add(Answer(1, 1, "remove"), key="k3")
    assert [one.a for one in said.nowhere] == [2]
    said.undo("k3")
    said.undo("k1")
    assert [one.a for one in said.nowhere] == [2]
