"""Which pair to ask about next."""

import threading
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from sklearn.datasets import load_iris
from sklearn.metrics import adjusted_rand_score

from linkmix import Links, engine
from linkmix.basics.arrays import shares
from linkmix.mixture.calibration import N_ROWS
from linkmix.queries import SAID, STRATEGIES, Answer, Questioner, QuestionSettings
from linkmix.queries.cover import Neighbourhoods
from linkmix.queries.doubts import settled
from linkmix.queries.groups import Known
from linkmix.queries.state import Ground, State
from linkmix.search import AutoLinkMixture

IRIS, SPECIES = load_iris(return_X_y=True)
CENTRES = np.array([[0, 0], [8, 0], [0, 8], [8, 8]])
BLOBS = np.random.default_rng(0).normal(size=(120, 2)) + np.repeat(CENTRES, 30, axis=0)
TRUTH = np.repeat([0, 1, 1, 0], 30)  # each class is two blobs, so that only answers can tell


def said(truth, a, b):
    return "same" if truth[a] == truth[b] else "different"


def converse(asker, truth, n, refit_every=10):
    """Ask and answer; the pairs that were asked about."""
    asked = []
    for i in range(1, n + 1):
        pairs = asker.next()
        if not len(pairs):
            break
        a, b = pairs[0].tolist()
        asked.append((a, b))
        asker.answer(a, b, said(truth, a, b))
        if i % refit_every == 0:
            asker.refit()
    return asked


def implied(pairs, truth, n_rows):
    """Whether each pair followed from those before it, by the closure of links."""
    found = []
    for i, (a, b) in enumerate(pairs):
        before = pairs[:i]
        links = Links(
            [p for p in before if said(truth, *p) == "same"], [p for p in before if said(truth, *p) == "different"]
        ).closure()
        known = {tuple(p) for p in np.concatenate([links.must, links.cannot]).tolist()}
        found.append((min(a, b), max(a, b)) in known)
    return found


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_no_pair_is_known_or_follows_from_the_answers(strategy):
    rows = np.arange(0, 120, 4)
    asker = Questioner(BLOBS[rows], 2, strategy=strategy)
    pairs = converse(asker, TRUTH[rows], 40, refit_every=20)
    assert len(pairs) >= 15
    assert all(a != b for a, b in pairs)
    assert not any(implied(pairs, TRUTH[rows], len(rows)))


@pytest.mark.parametrize("strategy", ["cover", "random", "explore-consolidate"])
def test_it_asks_until_all_is_known(strategy):
    X, truth = BLOBS[::10], TRUTH[::10]
    asker = Questioner(X, 2, strategy=strategy)
    converse(asker, truth, 100, refit_every=1000)
    assert not len(asker.next())
    # Of two classes: rows that answers connect, of whichever kind, are known relative to each other.
    a, b, _ = zip(*asker.answers, strict=True)
    n_parts, _ = connected_components(csr_array((np.ones(len(a)), (a, b)), shape=(len(X), len(X))), directed=False)
    assert n_parts == 1


def test_answers_teach_what_points_alone_do_not_say():
    asker = Questioner(BLOBS, 2)
    before = adjusted_rand_score(TRUTH, asker.labels)
    converse(asker, TRUTH, 20)
    assert before < 0.6
    assert adjusted_rand_score(TRUTH, asker.labels) == 1
    assert adjusted_rand_score(TRUTH, asker.model.predict(BLOBS)) > 0.9


def test_the_model_is_for_the_points_as_they_came():
    X = IRIS * [1, 10, 100, 0.1] + [5, 0, -7, 1000]
    asker = Questioner(X, 3)
    converse(asker, SPECIES, 10)
    np.testing.assert_allclose(asker.model.predict_proba(X), asker.probabilities, atol=1e-6)


def all_probabilities(asker):
    """The class probabilities of all points by the model that questions are chosen by."""
    fit = asker._fit
    return shares(engine.class_log_joint(fit.density, fit.parameters, asker._ground.Z))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("wrong", [0.0, 0.1])
def test_questions_are_those_of_a_table_of_all_points(strategy, wrong):
    """Also with answers about points that are no candidates, so that the model has not seen them."""
    asker = Questioner(IRIS, 3, strategy=strategy, wrong=wrong, max_candidates=60)
    others = np.setdiff1d(np.arange(len(IRIS)), asker._ground.candidates)
    for turn in range(12):
        for a, b in [others[2 * turn : 2 * turn + 2].tolist(), *asker.next(2).tolist()]:
            asker.answer(a, b, said(SPECIES, a, b))
        state = asker._state
        table = all_probabilities(asker)
        believed, again = settled(replace(state, probabilities=table))
        pair = again or asker._strategy(believed)
        assert asker.next().tolist() == [list(pair)]
        rows = np.array([[others[0], asker._ground.candidates[0]], [others[-1], others[1]]])
        np.testing.assert_allclose(state.probabilities[rows], table[rows], atol=1e-12)
        if turn % 4 == 3:
            asker.refit()
            unlinked = np.setdiff1d(np.arange(len(IRIS)), asker.links.points)
            np.testing.assert_array_equal(asker.labels[unlinked], all_probabilities(asker)[unlinked].argmax(axis=1))


def test_no_table_of_all_points_is_made(monkeypatch):
    X = np.random.default_rng(0).normal(size=(3000, 2)) + np.repeat(CENTRES, 750, axis=0)
    truth = np.repeat(np.arange(4), 750)
    sizes = []

    def noting(compute):
        return lambda mixture, X, *args: sizes.append(len(X)) or compute(mixture, X, *args)

    for name in ("log_joint", "probabilities"):
        monkeypatch.setattr(engine.Mixture, name, noting(getattr(engine.Mixture, name)))
    asker = Questioner(X, 4, max_candidates=40)
    converse(asker, truth, 10, refit_every=5)
    assert 40 <= max(sizes) <= N_ROWS < len(X)
    assert asker.probabilities.shape == (3000, 4)
    assert max(sizes) == 3000
    assert adjusted_rand_score(truth, asker.labels) > 0.9


def test_labels_keep_rows_together_that_were_said_to_be():
    asker = Questioner(IRIS, 3)
    converse(asker, SPECIES, 20)
    for a, b in asker.links.must:
        assert asker.labels[a] == asker.labels[b]


@pytest.mark.parametrize("said_so", ["unsure", "skip"])
def test_a_pair_that_was_put_aside_is_not_asked_at_once(said_so):
    asker = Questioner(IRIS, 3)
    seen = set()
    for _ in range(8):
        a, b = asker.next()[0].tolist()
        assert frozenset((a, b)) not in seen
        seen.add(frozenset((a, b)))
        asker.answer(a, b, said_so)
    assert asker.links.empty


def test_a_batch_holds_different_pairs():
    asker = Questioner(IRIS, 3)
    pairs = asker.next(6)
    assert pairs.shape == (6, 2)
    assert len({frozenset(pair) for pair in pairs.tolist()}) == 6
    np.testing.assert_array_equal(pairs[:1], asker.next())
    assert asker.answers == ()


def test_undo_brings_the_question_back():
    asker = Questioner(IRIS, 3)
    first = asker.next()
    asker.answer(*first[0], "same")
    assert asker.undo() == Answer(*first[0], "same")
    np.testing.assert_array_equal(asker.next(), first)
    assert asker.undo() is None
    assert asker.links.empty


def test_given_links_are_known_and_cannot_be_undone():
    links = Links.from_labels(SPECIES, 12, random_state=0)
    asker = Questioner(IRIS, 3, links=links)
    assert asker.answers == ()
    assert asker.undo() is None
    assert asker.links == links
    given = Known()
    for a, b in np.concatenate([links.must, links.cannot]).tolist():
        given.take(Answer(a, b, said(SPECIES, a, b)))
    a, b = asker.next()[0]
    assert given.relation(int(a), int(b)) is None


def test_the_same_seed_asks_the_same():
    one, other = (Questioner(IRIS, 3, random_state=4) for _ in range(2))
    assert converse(one, SPECIES, 12) == converse(other, SPECIES, 12)
    assert (one.labels == other.labels).all()


def test_a_refit_of_a_snapshot_changes_nothing_until_it_is_adopted():
    asker = Questioner(IRIS, 3)
    converse(asker, SPECIES, 9)
    snapshot = asker.snapshot()
    labels = asker.labels.copy()
    pair = asker.next()
    asker.answer(*pair[0], said(SPECIES, *pair[0]))
    found = asker.fit(snapshot)
    assert (asker.labels == labels).all()
    assert found.links.n_must + found.links.n_cannot == 9
    asker.adopt(found)
    assert len(asker.answers) == 10
    assert asker.links.n_must + asker.links.n_cannot == 10


def test_questions_come_while_a_refit_runs():
    asker = Questioner(IRIS, 3)
    converse(asker, SPECIES, 9)
    snapshot, results = asker.snapshot(), []
    thread = threading.Thread(target=lambda: results.append(asker.fit(snapshot)))
    thread.start()
    for _ in range(3):
        pair = asker.next()[0]
        asker.answer(*pair, said(SPECIES, *pair))
    thread.join()
    asker.adopt(results[0])
    assert len(asker.answers) == 12


def test_a_question_looks_at_a_sample_of_the_points():
    X = np.random.default_rng(0).normal(size=(200_000, 4)) + 4 * np.arange(200_000)[:, None] % 3
    asker = Questioner(X, 3)
    state, _, _ = asker.snapshot()
    assert len(state.ground.candidates) == 2000
    assert set(asker.next(5).ravel().tolist()) <= set(state.ground.candidates.tolist())
    assert asker.labels.shape == (200_000,)


def test_rows_that_are_no_candidates_can_be_linked():
    X = np.concatenate([BLOBS] * 5)
    truth = np.concatenate([TRUTH] * 5)
    asker = Questioner(X, 2, max_candidates=60)
    outside = np.setdiff1d(np.arange(len(X)), asker.snapshot()[0].ground.candidates)
    a, b = int(outside[0]), int(outside[-1])
    asker.answer(a, b, said(truth, a, b))
    asker.refit()
    assert {a, b} <= set(asker.snapshot()[1].rows.tolist())
    assert len(asker.review) == 1


def test_answers_that_contradict_each_other_do_no_harm():
    asker = Questioner(BLOBS, 2)
    converse(asker, TRUTH, 20)
    for a, b in [(3, 4), (4, 5), (3, 5)]:
        asker.answer(a, b, "different")  # no two classes meet these, and they are of one blob
    asker.answer(3, 4, "same")
    asker.refit()
    assert len(asker.next()) == 1
    assert adjusted_rand_score(TRUTH, asker.model.predict(BLOBS)) > 0.9
    assert {*asker.review[0].tolist()[:2]} <= {3, 4, 5}


def test_the_most_doubtful_link_is_the_wrong_one():
    asker = Questioner(BLOBS, 2, wrong=0.1)
    converse(asker, TRUTH, 30)
    a, b = 0, 45
    asker.answer(a, b, "same")
    asker.refit()
    assert {int(asker.review["a"][0]), int(asker.review["b"][0])} == {a, b}


def test_a_surprising_answer_is_asked_for_again_and_outvoted():
    p = np.array([[0.99, 0.01], [0.99, 0.01], [0.01, 0.99]])
    ground = Ground(np.zeros((3, 1)), np.arange(3), 2, wrong=0.1)
    state = State(ground, (Answer(0, 1, "different"), Answer(0, 2, "different")), p)
    believed, again = settled(state)
    assert again == (0, 1)
    assert believed.answers == state.answers
    believed, again = settled(state.with_answer(0, 1, "same"))  # one against one
    assert again == (0, 1)
    assert believed.answers == (Answer(0, 2, "different"),)
    believed, again = settled(state.with_answer(0, 1, "same").with_answer(1, 0, "same"))
    assert again is None
    assert believed.answers == (Answer(0, 1, "same"), Answer(0, 2, "different"))


def test_nothing_is_asked_again_where_answers_are_right():
    p = np.array([[0.99, 0.01], [0.99, 0.01]])
    state = State(Ground(np.zeros((2, 1)), np.arange(2), 2), (Answer(0, 1, "different"),), p)
    assert settled(state) == (state, None)


def test_the_stop_signal_falls_when_labels_settle():
    asker = Questioner(BLOBS, 2)
    assert asker.stop_signal == 1
    assert asker.stop_meaning == "too early to say whether more answers change the labels"
    converse(asker, TRUTH, 40)
    assert asker.stop_signal < 0.03
    assert "settled" in asker.stop_meaning


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"strategy": "magic"}, "strategy='magic' is not known"),
        ({"n_classes": 0}, "n_classes=0 is not a whole number"),
        ({"n_classes": 200}, "150 points cannot make 200 classes"),
        ({"wrong": 0.5}, "wrong=0.5 is not a share"),
        ({"max_candidates": 1}, "max_candidates=1"),
        ({"links": Links(must=[(0, 150)])}, "links row 150"),
        ({"labels": np.full(150, 3)}, "use class numbers from 0 to 2"),
        ({"labels": [0, 1]}, "give one class number each"),
    ],
)
def test_bad_input_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Questioner(IRIS, **({"n_classes": 3} | arguments))


def test_bad_answers_are_refused():
    asker = Questioner(IRIS, 3)
    with pytest.raises(ValueError, match="said='maybe' is not known"):
        asker.answer(0, 1, "maybe")
    with pytest.raises(ValueError, match="row 150 does not exist"):
        asker.answer(0, 150, "same")
    with pytest.raises(ValueError, match="row 3 is compared with itself"):
        asker.answer(3, 3, "same")
    assert asker.answers == ()
    assert SAID == ("same", "different", "unsure", "skip")


@pytest.mark.parametrize(("wrong", "n_answers", "expected"), [(0.0, 0, 1.0), (0.0, 40, 3.0), (0.1, 0, 3.0)])
def test_doubt_leads_at_first_and_distance_later_or_where_answers_may_be_wrong(wrong, n_answers, expected):
    """Near and doubtful points against far and sure ones, about which nothing is known."""
    ground = Ground(np.array([[0.0], [1.0], [1.0], [3.0], [3.0]]), np.arange(5), 2, wrong=wrong)
    probabilities = np.array([[1.0, 0.0], [0.5, 0.5], [0.5, 0.5], [1.0, 0.0], [1.0, 0.0]])
    unsure = tuple(Answer(0, 0, "unsure") for _ in range(n_answers))
    row, beside = STRATEGIES["cover"](State(ground, unsure, probabilities, tentative=(0,)))
    assert (ground.Z[row, 0], beside) == (expected, 0)


def test_a_strategy_uses_the_settings_that_were_given():
    ground = Ground(np.array([[0.0], [1.0], [1.0], [3.0], [3.0]]), np.arange(5), 2, settings=QuestionSettings(early=0))
    probabilities = np.array([[1.0, 0.0], [0.5, 0.5], [0.5, 0.5], [1.0, 0.0], [1.0, 0.0]])
    row, _ = STRATEGIES["cover"](State(ground, (), probabilities, tentative=(0,)))
    assert ground.Z[row, 0] == 3.0
    assert Questioner(IRIS, 3, settings=QuestionSettings(early=7)).settings.early == 7


@pytest.mark.parametrize("wrong", [0.0, 0.1])
@pytest.mark.parametrize("strategy", ["cover", "npu", "random"])
def test_what_was_kept_of_earlier_questions_changes_no_question(strategy, wrong):
    """After answers, undo and batches, against a state that has seen nothing before."""
    asker, random = Questioner(IRIS, 3, strategy=strategy, wrong=wrong), np.random.default_rng(0)
    for i in range(40):
        pairs = asker.next(1 + i % 3)
        a, b = pairs[0].tolist()
        state, _, _ = asker.snapshot()
        ground = state.ground
        fresh = Ground(ground.Z, ground.candidates, ground.n_classes, ground.wrong, ground.seed)
        believed, again = settled(replace(state, ground=fresh))
        assert (a, b) == (again or STRATEGIES[strategy](believed))
        asker.answer(a, b, random.choice(SAID, p=[0.4, 0.4, 0.1, 0.1]))
        if i % 5 == 4:
            asker.undo()


def test_an_answer_makes_the_next_question_take_in_one_answer(monkeypatch):
    taken = []
    take = Neighbourhoods.take
    monkeypatch.setattr(Neighbourhoods, "take", lambda self, answer: (taken.append(answer), take(self, answer))[1])
    asker = Questioner(BLOBS, 2)
    counts = []
    for _ in range(30):
        taken.clear()
        a, b = asker.next(2)[0].tolist()
        asker.answer(a, b, said(TRUTH, a, b))
        counts.append(len(taken))
    assert max(counts) <= 2  # the new answer, and the one that is expected to the first pair of the batch


def test_given_links_keep_their_confidence_and_their_annotators():
    X = np.concatenate([np.random.default_rng(0).normal(size=(15, 2)) + 6 * k for k in range(2)])
    given = Links(must=[(0, 1), (2, 3)], must_confidence=[1.0, 0.7], cannot=[(0, 20)], cannot_annotators=["eva"])
    asker = Questioner(X, 2, links=given)
    assert asker.links == given


def test_nothing_follows_from_a_given_link_that_may_be_wrong():
    """With 0-1 unsure, 1-20 being apart does not tell 0 from 20."""
    X = np.concatenate([np.random.default_rng(0).normal(size=(15, 2)) + 6 * k for k in range(2)])
    for confidence, relation in ((1.0, "different"), (0.7, None)):
        asker = Questioner(X, 2, links=Links(must=[(0, 1)], must_confidence=confidence, cannot=[(1, 20)]))
        assert asker.snapshot()[0].known.relation(0, 20) == relation


def test_a_table_of_0_and_1_is_one_of_categories_as_for_the_search():
    truth = np.repeat([0, 1], 30)
    random = np.random.default_rng(0)
    table = pd.DataFrame({f"c{j}": (random.uniform(size=60) < 0.2 + 0.6 * truth).astype(int) for j in range(6)})
    asker = Questioner(table, 2)
    assert asker.model.recipe_.levels == AutoLinkMixture(2, calibrate=False).fit(table).recipe_.levels == (2,) * 6
    assert asker.model.predict(table).shape == (60,)
