"""Questions about several rows at once: what a reply stands for, and which question is asked."""

import time
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.metrics import adjusted_rand_score

from linkmix.queries import KINDS, STRATEGIES, Question, Questioner, QuestionSettings, answers_to
from linkmix.queries.answers import pair_of
from linkmix.queries.groups import Known
from linkmix.queries.questions import seconds_for
from linkmix.queries.quick import gain_of_confirming, gain_of_placing, quick
from linkmix.queries.state import Ground, State

IRIS, SPECIES = load_iris(return_X_y=True)
CENTRES = np.array([[0, 0], [8, 0], [0, 8], [8, 8]])
BLOBS = np.random.default_rng(0).normal(size=(120, 2)) + np.repeat(CENTRES, 30, axis=0)
TRUTH = np.repeat([0, 1, 1, 0], 30)  # each class is two blobs, so that only answers can tell


def blobs(n_classes, n_each, seed=0):
    random = np.random.default_rng(seed)
    centres = random.normal(size=(n_classes, 3)) * 10
    truth = np.repeat(np.arange(n_classes), n_each)
    return centres[truth] + random.normal(size=(len(truth), 3)), truth


def reply(asker, question, truth):
    """Answer as someone who is always right."""
    first, *cards = question.rows
    same = [card for card in cards if truth[card] == truth[first]]
    if question.kind == "pair":
        asker.reply(question, said="same" if same else "different")
    else:
        asker.reply(question, same if question.kind == "which" else set(cards) - set(same))


def converse(asker, truth, n, kinds=KINDS, refit_every=6):
    """Ask and answer; the questions that were asked."""
    asked = []
    for i in range(1, n + 1):
        questions = asker.ask(kinds=kinds)
        if not questions:
            break
        asked += questions
        reply(asker, questions[0], truth)
        if i % refit_every == 0:
            asker.refit()
    return asked


def pairs_of(question):
    first, *cards = question.rows
    return [(first, card) for card in cards]


# What a reply stands for


@given(
    st.sampled_from(["which", "group"]), st.lists(st.integers(0, 50), min_size=2, max_size=9, unique=True), st.data()
)
def test_a_reply_says_something_about_every_card(kind, rows, data):
    first, *cards = rows
    picked = data.draw(st.sets(st.sampled_from(cards)))
    answers = answers_to(kind, rows, picked, annotator="eva")
    assert {(one.a, one.b) for one in answers} == {(first, card) for card in cards}
    assert len(answers) == len(cards)
    for one in answers:
        assert one.said == ("same" if (one.b in picked) == (kind == "which") else "different")
        assert one.annotator == "eva"
        assert one.chosen
    assert [one.said for one in answers] == sorted((one.said for one in answers), reverse=True)  # "same" comes first


@pytest.mark.parametrize("said", ["unsure", "skip"])
@pytest.mark.parametrize("kind", ["which", "group"])
def test_no_answer_says_so_about_every_card(kind, said):
    answers = answers_to(kind, (3, 1, 2), said=said, chosen=False)
    assert [(one.a, one.b, one.said, one.chosen) for one in answers] == [(3, 1, said, False), (3, 2, said, False)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("triple", (0, 1)), "kind"),
        (("pair", (0, 1)), "nothing was said"),
        (("pair", (0, 1, 2), (), "same"), "two rows"),
        (("which", (0, 1, 1)), "different rows"),
        (("which", (0,)), "two or more"),
        (("which", (0, 1), [2]), "no card"),
        (("which", (0, 1), [0]), "no card"),
        (("which", (0, 1), [], "same"), "said"),
        (("group", (0, 1), [1], "skip"), "one of both"),
        (("pair", (0, 1), [], "maybe"), "said"),
    ],
)
def test_a_reply_that_makes_no_sense_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        answers_to(*arguments)


def test_a_row_that_does_not_exist_is_refused_and_nothing_recorded():
    asker = Questioner(IRIS, 3)
    with pytest.raises(ValueError, match="row 150 does not exist"):
        asker.reply(Question("which", (0, 1, 150), "", 1.0), [1])
    assert asker.answers == ()


def test_a_reply_is_one_turn_of_undo():
    asker = Questioner(IRIS, 3)
    [question] = asker.ask(kinds=["which"])
    reply(asker, question, SPECIES)
    assert len(asker.answers) == len(question.rows) - 1
    asker.undo()
    assert asker.answers == ()
    assert asker.ask(kinds=["which"]) == [question]


# Which question is asked


@pytest.mark.parametrize("kinds", [KINDS, ("which",), ("group",), ("pair", "which"), ("pair", "group")])
@pytest.mark.parametrize(("X", "truth"), [(BLOBS, TRUTH), (IRIS, SPECIES)])
def test_nothing_known_is_asked_and_right_answers_never_contradict(X, truth, kinds):
    asker = Questioner(X, len(set(truth.tolist())))
    known, n_asked = Known(), 0
    for turn in range(25):
        questions = asker.ask(kinds=kinds)
        if not questions:
            break
        [question] = questions
        assert len(set(question.rows)) == len(question.rows)
        for pair in pairs_of(question):
            assert known.relation(*pair) is None
        reply(asker, question, truth)
        answers = asker.answers[n_asked:]
        n_asked = len(asker.answers)
        for one in answers:
            known.take(one)
        assert len(known.kept) == n_asked  # an answer that contradicts others would not be kept
        if turn % 6 == 5:
            asker.refit()
    assert n_asked > 20


def test_the_kinds_are_those_that_were_asked_for():
    for kinds in (KINDS, ("pair", "which"), ("pair", "group"), ("pair",)):
        asker = Questioner(IRIS, 3)
        assert {question.kind for question in converse(asker, SPECIES, 12, kinds)} <= {*kinds}
    asker = Questioner(IRIS, 3)
    assert {question.kind for question in converse(asker, SPECIES, 12)} >= {"which", "group"}


def test_pairs_alone_are_those_of_next():
    asker = Questioner(BLOBS, 2)
    for turn in range(30):
        [question] = asker.ask(kinds=["pair"])
        assert [list(question.rows)] == asker.next().tolist()
        reply(asker, question, TRUTH)
        if turn % 10 == 9:
            asker.refit()


def test_it_asks_until_all_is_known():
    X, truth = BLOBS[::5], TRUTH[::5]
    asker = Questioner(X, 2)
    asked = converse(asker, truth, 100, refit_every=1000)
    assert len(asked) < 30
    assert asker.ask() == []
    assert not len(asker.next())


def test_answers_teach_what_points_alone_do_not_say():
    asker = Questioner(BLOBS, 2)
    before = adjusted_rand_score(TRUTH, asker.labels)
    asked = converse(asker, TRUTH, 8, refit_every=4)
    assert before < 0.6
    assert adjusted_rand_score(TRUTH, asker.model.predict(BLOBS)) > 0.9
    assert sum(question.seconds for question in asked) < 80  # 20 pairs


@pytest.mark.parametrize("said", ["unsure", "skip"])
def test_a_question_without_an_answer_is_not_asked_at_once_again(said):
    asker = Questioner(IRIS, 3)
    aside = set()
    for _ in range(8):
        [question] = asker.ask()
        asked = {pair_of(*pair) for pair in pairs_of(question)}
        assert not asked & aside
        if said == "unsure" or len(aside) < QuestionSettings().skipped_for - 8:
            aside |= asked
        asker.reply(question, said=said)


def test_rows_about_which_someone_was_unsure_do_not_come_back_in_other_company():
    asker = Questioner(IRIS, 3)
    [question] = asker.ask(kinds=["group"])
    assert question.kind == "group"
    asker.reply(question, said="unsure")
    unsure = {pair_of(one.a, one.b) for one in asker.answers}
    for question in converse(asker, SPECIES, 20):
        assert not {pair_of(*pair) for pair in pairs_of(question)} & unsure


@pytest.mark.parametrize(("n_classes", "n_each"), [(1, 30), (2, 20), (12, 10), (50, 4)])
def test_any_number_of_classes(n_classes, n_each):
    X, truth = blobs(n_classes, n_each)
    asker = Questioner(X, n_classes)
    asked = converse(asker, truth, 12, refit_every=12)
    assert len(asked) == 12 or not asker.ask()
    assert max(len(question.rows) for question in asked) <= 9
    for question in asked:
        assert question.seconds == seconds_for(question.kind, len(question.rows), QuestionSettings())
        assert question.why.endswith(".")


def test_rows_of_no_class_are_never_asked_about():
    X = np.concatenate([BLOBS, np.random.default_rng(1).uniform(-20, 28, size=(10, 2))])
    asker = Questioner(X, 4, noise=True)
    truth = np.concatenate([np.repeat(np.arange(4), 30), np.arange(4, 14)])
    first = {row for question in asker.ask(3) for row in question.rows}
    asker.nowhere(*first)
    for question in converse(asker, truth, 12):
        assert not {*question.rows} & first


def test_categories():
    random = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], 25)
    table = pd.DataFrame(
        {
            "size": truth * 4 + random.normal(size=75),
            "colour": np.array(["red", "green", "blue"])[(truth + (random.random(75) < 0.2)) % 3],
        }
    )
    asker = Questioner(table, 3)
    assert {question.kind for question in converse(asker, truth, 8)} >= {"group"}
    assert adjusted_rand_score(truth, asker.labels) > 0.6


def test_where_answers_may_be_wrong_surprising_pairs_are_asked_again():
    asker = Questioner(IRIS, 3, wrong=0.1)
    converse(asker, SPECIES, 8)
    table = asker._beliefs[np.arange(150)]
    a, b = next((a, b) for a, b in product(range(50), range(50, 100)) if table[a] @ table[b] < 0.01)
    asker.answer(a, b, "same")
    [question] = asker.ask()
    assert (question.kind, question.rows, question.again) == ("pair", (a, b), True)


def test_during_an_audit_its_pairs_come_and_are_kept_apart():
    asker = Questioner(IRIS, 3)
    asker.audit(4)
    questions = asker.ask(2)
    assert [list(question.rows) for question in questions] == asker.next(2).tolist()
    for _ in range(4):
        [question] = asker.ask()
        assert question.kind == "pair"
        reply(asker, question, SPECIES)
    assert asker.quality.n_links == 4
    assert not any(one.chosen for one in asker.answers)


def test_other_strategies_ask_about_pairs():
    for strategy in set(STRATEGIES) - {"cover"}:
        asker = Questioner(IRIS, 3, strategy=strategy)
        [question] = asker.ask()
        assert question.kind == "pair"
        assert [list(question.rows)] == asker.next().tolist()


def test_a_batch_is_asked_as_if_each_had_been_answered():
    asker = Questioner(IRIS, 3)
    questions = asker.ask(6)
    assert questions[:1] == asker.ask()
    pairs = [pair_of(*pair) for question in questions for pair in pairs_of(question)]
    assert len(set(pairs)) == len(pairs)
    assert asker.answers == ()


@pytest.mark.parametrize(("kinds", "message"), [((), "empty"), (("triple",), "kinds")])
def test_kinds_are_checked(kinds, message):
    with pytest.raises(ValueError, match=message):
        Questioner(IRIS, 3).ask(kinds=kinds)


def test_the_number_of_classes_may_change_with_the_ground():
    asker = Questioner(IRIS, 2)
    converse(asker, SPECIES, 6)
    state = asker._state
    more = replace(state.ground, n_classes=3)
    question = quick(replace(state, ground=more), KINDS)
    known = Known()
    for one in state.answers:
        known.take(one)
    assert all(known.relation(*pair) is None for pair in pairs_of(question))


def test_slow_kinds_are_asked_less():
    slow = QuestionSettings(which_seconds=200, which_row_seconds=70, group_row_seconds=100)
    asker = Questioner(IRIS, 3, settings=slow)
    assert {question.kind for question in converse(asker, SPECIES, 10)} == {"pair"}


def test_the_next_question_takes_little_time():
    random = np.random.default_rng(0)
    truth = random.integers(10, size=2000)
    asker = Questioner(random.normal(size=(10, 20))[truth] * 2 + random.normal(size=(2000, 20)), 10)
    times = []
    for _ in range(60):
        begin = time.process_time()
        [question] = asker.ask()
        times.append(time.process_time() - begin)
        reply(asker, question, truth)
    assert len(asker.answers) > 300
    assert np.median(times[30:]) < 0.05


# Expected gain, by brute force


def outcomes(q):
    """All classes that a row may have, with their probabilities; the last one is none of the neighbourhoods."""
    return [*enumerate(q), (None, 1 - sum(q))]


@pytest.mark.parametrize("seed", range(20))
def test_the_gain_of_placing_is_the_mean_over_all_outcomes(seed):
    random = np.random.default_rng(seed)
    n = int(random.integers(1, 6))
    q = -np.sort(-random.dirichlet(np.ones(n + 1))[:n])
    apart = np.triu(random.random((n, n)) < 0.4, 1)
    apart = apart | apart.T
    news, n_classes = float(random.random()), 6
    found = gain_of_placing(q[None], np.array([n]), ~apart[None], False, n_classes, np.array([news]))[0]
    for k in range(1, n + 1):
        expected = 0.0
        for home, probability in outcomes(q):
            if home is not None and home < k:
                told = sum(1 for other in range(k) if other != home and not apart[home, other])
                expected += probability * (news + told / (n_classes - 1))
        assert found[k - 1] == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(5))
def test_if_all_classes_are_known_the_last_one_needs_no_card(seed):
    q = -np.sort(-np.random.default_rng(seed).dirichlet(np.ones(4)))
    found = gain_of_placing(q[None], np.array([4]), np.zeros((1, 4, 4), dtype=bool), True, 4, np.ones(1))[0]
    np.testing.assert_allclose(found, [q[0], q[:2].sum(), 1.0, 1.0])


def test_the_gain_of_confirming_grows_with_the_probability_and_is_all_of_it_for_two_classes():
    gain = gain_of_confirming(np.linspace(0, 1, 5), 5, np.ones(5))
    assert (np.diff(gain) > 0).all()
    assert gain[-1] == 1
    np.testing.assert_array_equal(gain_of_confirming(np.array([0.1, 0.9]), 2, np.ones(2)), [1, 1])


def test_the_question_has_the_largest_gain_for_a_second():
    """Two classes known apart, one row in doubt, many rows that are nearly certain."""
    Z = np.array([[0.0], [10.0], [5.0], *([0.1 * i] for i in range(1, 9))])
    p = np.array([[1.0, 0], [0, 1], [0.5, 0.5], *([[0.99, 0.01]] * 8)])
    ground = Ground(Z, np.arange(len(Z)), 2)
    state = State(ground, (), p, tentative=(0, 1)).with_answer(0, 1, "different")
    question = quick(state, ("pair", "which"))
    assert (question.kind, question.rows[0]) == ("pair", 2)
    cheap = replace(ground, settings=QuestionSettings(group_row_seconds=0.001, fit=0.5))
    question = quick(replace(state, ground=cheap), KINDS)
    assert question.kind == "group"
    assert question.rows[0] == 0
