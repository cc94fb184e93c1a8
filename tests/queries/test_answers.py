"""Answers, what they come to, and how little has to be done for one more."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkmix.queries import SAID, Answer, Answers, answers
from linkmix.queries.answers import as_links, confidence, last_words
from linkmix.queries.groups import Known

PEOPLE = st.sampled_from([None, "ida", "eva"])
TWO = st.lists(st.integers(0, 4), min_size=2, max_size=2, unique=True)
ANSWER = st.builds(lambda two, said, who: Answer(*two, said, who), TWO, st.sampled_from([*SAID, "remove"]), PEOPLE)


def everything(said):
    return list(said), said.links, list(said.turns.values())


@given(
    given=st.lists(st.builds(lambda two, kind: Answer(*two, kind), TWO, st.sampled_from(SAID[:2])), max_size=3),
    steps=st.lists(st.lists(ANSWER, min_size=1, max_size=3) | st.integers(0, 5), max_size=15),
    wrong=st.sampled_from([0.0, 0.1]),
)
def test_undo_is_as_if_it_had_never_been_said(given, steps, wrong):
    said, lasting = Answers(given, wrong), []
    for number, step in enumerate(steps):
        if isinstance(step, list):
            lasting.append((number, step))
            said.add(*step, key=number)
        elif lasting:
            key, turn = lasting.pop(-1 - step % len(lasting))
            assert said.undo(key) == tuple(turn)
        fresh = Answers(given, wrong)
        for key, turn in lasting:
            fresh.add(*turn, key=key)
        assert everything(said) == everything(fresh)


def test_one_more_answer_looks_at_its_own_pair_only(monkeypatch):
    """The same work after 5,000 answers as after 10, undo included."""
    looked_at = []

    def counting(about, wrong):
        about = list(about)
        looked_at.append(len(about))
        return last_words(about, wrong)

    monkeypatch.setattr(answers, "last_words", counting)
    random, said, work = np.random.default_rng(0), Answers(), {}
    for number in range(5001):
        a, b = random.choice(10_000, 2, replace=False).tolist()
        looked_at.clear()
        said.add(Answer(a, b, "same"), key=number)
        if number in (10, 1000, 5000):
            said.undo(number)
            said.add(Answer(a, b, "different"), key=number)
            said.add(Answer(b, a, "different"), key=-number)
        work[number] = list(looked_at)
    assert work[10] == work[1000] == work[5000] == [1, 1, 2]


def test_a_file_read_later_replaces_all_and_cannot_be_undone():
    said = Answers()
    said.add(Answer(0, 1, "same"))
    said.restart([Answer(2, 3, "different", "eva", 0.7)])
    assert said.undo() == ()
    assert list(said) == [Answer(2, 3, "different", "eva", 0.7, given=True)]
    links = as_links(said.links)
    assert links.cannot.tolist() == [[2, 3]]
    assert links.cannot_confidence.tolist() == [0.7]
    assert links.cannot_annotators.tolist() == ["eva"]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (["same"], [("same", 0.9)]),
        (["same", "same"], [("same", 0.987805)]),
        (["same", "different"], [("different", 0.9)]),  # the last word counts
        (["same", "unsure", "same"], [("same", 0.9)]),
        (["same", "unsure"], []),
        (["same", "skip"], [("same", 0.9)]),
    ],
)
def test_confidence_follows_from_the_answers(said, expected):
    words = last_words([Answer(0, 1, one) for one in said], wrong=0.1)
    assert [(word.said, word.confidence) for word in words] == expected
    assert [word.confidence for word in last_words([Answer(0, 1, one) for one in said])] == [None] * len(expected)
    assert round(confidence(2, 0.1), 6) == 0.987805


def test_an_answer_unpacks_into_rows_and_what_was_said():
    a, b, said = Answer(3, 1, "same", "ida")
    assert (a, b, said) == (3, 1, "same")
    assert Answer(3, 1, "same").pair == Answer(1, 3, "different").pair == (1, 3)
    assert as_links([Answer(3, 1, "same"), Answer(0, 1, "skip")]).must.tolist() == [[3, 1]]


@given(st.lists(st.builds(lambda two, kind: Answer(*two, kind), TWO, st.sampled_from(SAID)), max_size=15))
def test_what_is_known_is_what_the_closure_of_the_links_says(some):
    known = Known()
    for answer in some:
        before = known.copy()
        known.take(answer)
        assert before.kept == known.kept[: len(before.kept)]  # a copy is not changed
    closure = as_links(known.kept).closure()
    must, cannot = ({tuple(sorted(pair)) for pair in pairs.tolist()} for pairs in (closure.must, closure.cannot))
    for b in range(5):
        for a in range(b):
            expected = "same" if (a, b) in must else "different" if (a, b) in cannot else None
            assert known.relation(a, b) == expected
