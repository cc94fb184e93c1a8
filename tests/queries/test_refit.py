"""A bad refit does not undo what was reached, and wrong answers count for what they are worth."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.metrics import adjusted_rand_score

from linkmix.queries import Answer, Questioner, QuestionSettings
from linkmix.queries.doubts import believed_links, settled, weights
from linkmix.queries.state import Ground, State
from linkmix.search.contest import Contest

IRIS, SPECIES = load_iris(return_X_y=True)


def converse(asker, truth, n):
    for _ in range(n):
        for a, b in asker.next().tolist():
            asker.answer(a, b, "same" if truth[a] == truth[b] else "different")


@pytest.fixture
def only_the_worst(monkeypatch):
    run = Contest.run
    monkeypatch.setattr(Contest, "run", lambda *args: [one for one in run(*args) if one.finished][-1:])


def test_the_last_fit_stays_if_all_others_are_worse(request):
    asker = Questioner(IRIS, 3)
    converse(asker, SPECIES, 20)
    asker.refit()
    reached, labels = asker.model.predict(IRIS), asker.labels
    assert adjusted_rand_score(SPECIES, reached) > 0.9
    request.getfixturevalue("only_the_worst")
    converse(asker, SPECIES, 10)
    asker.refit()
    np.testing.assert_array_equal(asker.model.predict(IRIS), reached)
    assert np.mean(asker.labels == labels) > 0.95  # new answers hold all the same
    assert len(asker.review) >= 30


def test_a_fit_that_explains_the_answers_better_replaces_the_last_one(request):
    request.getfixturevalue("only_the_worst")
    asker = Questioner(IRIS, 3)
    before = adjusted_rand_score(SPECIES, asker.model.predict(IRIS))
    request.getfixturevalue("monkeypatch").undo()
    converse(asker, SPECIES, 30)
    asker.refit()
    assert adjusted_rand_score(SPECIES, asker.model.predict(IRIS)) > before + 0.2


def two_people(n=40, careless=0.4):
    """Every pair of a few rows, answered by both in turn; the careless one is often wrong."""
    random, truth = np.random.default_rng(0), np.arange(12) % 2
    p = np.where(np.eye(2)[truth] > 0, 0.8, 0.2)
    state = State(Ground(np.zeros((12, 1)), np.arange(12), 2, wrong=0.1), (), p)
    said = []
    for k in range(n):
        a, b = sorted(random.choice(12, 2, replace=False).tolist())
        slip = k % 2 and random.random() < careless
        word = "same" if (truth[a] == truth[b]) != slip else "different"
        said.append(Answer(a, b, word, "careless" if k % 2 else "careful"))
    return State(state.ground, tuple(said), p), truth


def test_answers_of_a_careless_person_count_less():
    state, _ = two_people()
    found = weights(state)
    assert 0 < found["careless"] < 0.7 < 1 < found["careful"]
    one = State(state.ground, tuple(Answer(*answer, "eva") for answer in state.answers), state.probabilities)
    assert weights(one) == {"eva": 1.0}  # nobody to compare her with


def test_the_careful_person_outvotes_the_careless_one():
    state, truth = two_people()
    a, b = 0, 2
    said = (Answer(a, b, "different", "careless"), Answer(a, b, "same", "careful"))
    kept = tuple(one for one in state.answers if one.pair != (a, b))
    believed, _ = settled(State(state.ground, (*kept, *said), state.probabilities))
    assert truth[a] == truth[b]
    assert next(one.said for one in believed.answers if one.pair == (a, b)) == "same"


def test_a_refit_trusts_answers_more_than_their_confidence_says():
    ground = Ground(np.zeros((4, 1)), np.arange(4), 2, wrong=0.1, settings=QuestionSettings())
    state = State(ground, (Answer(0, 1, "same"),), np.full((4, 2), 0.5))
    assert believed_links(state).must_confidence == pytest.approx([0.9])
    assert believed_links(state, trust=2.0).must_confidence == pytest.approx([0.81 / 0.82])


def test_an_answer_on_which_many_rows_hang_is_asked_for_again():
    p = np.full((10, 3), 1 / 3)
    ground = Ground(np.zeros((10, 1)), np.arange(10), 3, wrong=0.1, settings=QuestionSettings(again=0.0))
    state = State(ground, (), p)
    for a, b in [(0, 1), (1, 2), (2, 3), (4, 5), (5, 6), (6, 7)]:
        state = state.with_answer(a, b, "same")
    assert settled(state)[1] is None
    state = state.with_answer(3, 4, "same")
    assert settled(state)[1] == (3, 4)
    assert settled(state.with_answer(0, 7, "same"))[1] is None  # a second one holds them together
    assert settled(state.with_answer(3, 4, "same"))[1] is None
    assert settled(state.with_answer(3, 4, "different"))[1] == (3, 4)


def starts_of(asker):
    return set(asker.model.leaderboard_["start"].tolist())


def test_answers_that_may_be_wrong_make_no_labels_to_start_from():
    copied, linked = {"nearest answer", "spread answers"}, {"E2CP", "E2CP, sparse"}
    for wrong, made, not_made in ((0.0, copied, linked - {"E2CP, sparse"}), (0.1, linked, copied)):
        asker = Questioner(IRIS, 3, wrong=wrong)
        converse(asker, SPECIES, 20)
        asker.refit()
        assert made <= starts_of(asker)
        assert not not_made & starts_of(asker)


def tables():
    """Two classes each: in a long tail, in a few of many columns, and beside categories."""
    random, truth = np.random.default_rng(0), np.repeat([0, 1], 60)
    near = random.normal(size=(120, 2)) + 4 * truth[:, None]
    pandas = pytest.importorskip("pandas")
    kind = np.where(truth == (random.random(120) < 0.1), "red", "blue")
    return truth, {
        "calm": np.exp(near),
        "components": near @ random.normal(size=(2, 60)) + 0.3 * random.normal(size=(120, 60)),
        "plain": pandas.DataFrame({"a": near[:, 0], "b": near[:, 1], "kind": kind}),
    }


@pytest.mark.parametrize("view", ["calm", "components", "plain"])
@pytest.mark.parametrize("wrong", [0.0, 0.1])
def test_refits_see_the_points_as_the_search_does(view, wrong):
    truth, points = tables()
    asker = Questioner(points[view], 2, wrong=wrong)
    converse(asker, truth, 20)
    asker.refit()
    assert view in asker.model.leaderboard_["columns"]
    assert adjusted_rand_score(truth, asker.model.predict(points[view])) > 0.9
    np.testing.assert_allclose(asker.model.predict_proba(points[view]), asker.probabilities, atol=1e-8)
    again = asker.model.predict(points[view])
    free = np.setdiff1d(np.arange(120), asker.links.points)
    np.testing.assert_array_equal(asker.labels[free], again[free])


def test_beside_categories_answers_that_may_be_wrong_go_over_no_graph_of_few_neighbours():
    truth, points = tables()
    asker = Questioner(points["plain"], 2, wrong=0.1)
    converse(asker, truth, 20)
    asker.refit()
    assert "E2CP" in starts_of(asker)
    assert "E2CP, sparse" not in starts_of(asker)
