"""Programs that answer: batches, threads, repeats, budgets, and what becomes of bad answers."""

import copy
import os
import signal
import threading
import time
from itertools import pairwise

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.metrics import adjusted_rand_score

from linkmix.queries import Answer, BadAnswer, PairQuestion, Questioner, Reply, Tally, run
from linkmix.queries.asking import QuestionerDesk

X, TRUTH = (every[::2] for every in load_iris(return_X_y=True))


class Truthful:
    """Answers by the true classes, wrong in a share of the cases; notes what it was asked."""

    def __init__(self, wrong=0.0, seed=0):
        self.wrong, self.random, self.batches = wrong, np.random.default_rng(seed), []

    def said(self, question):
        a, b = question.rows
        return "same" if (TRUTH[a] == TRUTH[b]) != (self.random.random() < self.wrong) else "different"

    def answer(self, questions):
        self.batches.append(list(questions))
        return [Reply(one.id, self.said(one)) for one in questions]

    @property
    def asked(self):
        return [one for batch in self.batches for one in batch]


@pytest.fixture(scope="module")
def fresh():
    return Questioner(X, 3, wrong=0.1)


@pytest.fixture
def asker(fresh):
    """A questioner that was asked nothing."""
    return copy.deepcopy(fresh)


def test_a_right_program_finds_the_classes(asker):
    before = adjusted_rand_score(TRUTH, asker.labels)
    outcome = run(asker, Truthful(), 60, name="rule")
    assert (outcome.asked, outcome.answered, outcome.ended) == (60, 60, "budget")
    assert outcome.counts["same"] + outcome.counts["different"] == 60
    assert adjusted_rand_score(TRUTH, asker.labels) > max(before, 0.9)
    assert {one.annotator for one in asker.said} == {"rule"}
    assert outcome.tally.repeated > 0
    assert outcome.tally.contradicted == 0


def test_batches_are_full_and_the_last_one_keeps_the_budget(asker):
    program = Truthful()
    run(asker, program, 25, batch=10, repeat=0)
    assert len(program.batches[0]) == 10
    assert all(8 <= len(batch) <= 10 for batch in program.batches[:-1])
    assert [one.id for one in program.asked] == list(range(1, 26))
    for batch in program.batches:
        assert [one.more for one in batch] == list(range(len(batch)))[::-1]
        assert len({frozenset(one.rows) for one in batch}) == len(batch)


def test_fields_are_those_of_the_records_or_the_row_numbers(asker):
    program = Truthful()
    records = [{"petal": float(row[2])} for row in X]
    run(asker, program, 5, records=records)
    assert all(one.a == records[one.rows[0]] and one.b == records[one.rows[1]] for one in program.asked)
    other = Truthful()
    run(Questioner(X, 3), other, 2)
    assert other.asked[0].a == {"row": other.asked[0].rows[0]}


def test_repeats_come_with_swapped_rows_and_tell_how_often_it_errs():
    program = Truthful(wrong=0.25)
    outcome = run(Questioner(X, 3, wrong=0.2), program, 300, repeat=0.4)
    tally = outcome.tally
    assert 60 < tally.repeated < 150
    assert tally.interval[0] < 0.25 < tally.interval[1]
    first = {}
    swapped = 0
    for one in program.asked:
        swapped += first.setdefault(frozenset(one.rows), one.rows) == one.rows[::-1]
    assert swapped >= tally.repeated


def test_each_pair_is_asked_until_the_answers_agree():
    program = Truthful(wrong=0.2)
    asker = Questioner(X, 3)
    outcome = run(asker, program, 200, agree=2)
    assert outcome.ended == "budget"
    assert 198 <= outcome.answered == outcome.asked <= 200
    asked = {}
    for one in program.asked:
        asked.setdefault(frozenset(one.rows), []).append(one.rows)
    kept = [one for one in asker.said if one.is_link]
    assert len(kept) == len({one.pair for one in kept}) > 50  # each pair once
    assert all(2 <= len(asked[frozenset(one.pair)]) <= 7 for one in kept)
    assert all(first == second[::-1] for rows in asked.values() for first, second in pairwise(rows))
    right = [(TRUTH[one.a] == TRUTH[one.b]) == (one.said == "same") for one in kept]
    assert np.mean(right) > 0.87  # 0.94 are expected, and 0.8 of single answers
    assert outcome.tally.repeated >= len(kept)
    assert outcome.tally.interval[0] < 0.2 < outcome.tally.interval[1]
    aside = [one for one in asker.said if one.said == "skip"]
    assert len(aside) <= 5  # begun, and not finished when the budget was used up


def test_votes_that_never_agree_are_settled_by_the_majority(asker):
    class Wavering:
        """Says same in four of seven cases, by turns."""

        def __init__(self):
            self.times = {}

        def answer(self, questions):
            for one in questions:
                n = self.times[frozenset(one.rows)] = self.times.get(frozenset(one.rows), 0) + 1
                yield Reply(one.id, "same" if n % 2 else "different")

    run(asker, Wavering(), 70, agree=2, batch=10)
    kept = [one for one in asker.said if one.is_link]
    assert kept
    assert {one.said for one in kept} == {"same"}


def test_unsure_ends_the_vote(asker):
    class Unsure(Truthful):
        def answer(self, questions):
            return [Reply(one.id, "unsure") for one in questions]

    outcome = run(asker, Unsure(), 10, agree=2)
    assert 9 <= outcome.counts["unsure"] == outcome.asked <= 10  # no pair is begun that could not be asked about twice
    assert all(one.said == "unsure" for one in asker.said)


def test_without_repeats_nothing_is_known(asker):
    outcome = run(asker, Truthful(), 20, repeat=0)
    assert outcome.tally == Tally()
    assert str(outcome.tally) == "How often it is wrong is not known: no pair was asked twice."


def test_it_is_compared_with_what_people_said():
    asker = Questioner(X, 3, wrong=0.1)
    pairs = asker.next(10).tolist()
    for a, b in pairs:  # a person who says the opposite of the truth
        asker.said.add(Answer(a, b, "different" if TRUTH[a] == TRUTH[b] else "same", "ida"))
    outcome = run(asker, Truthful(), 40, name="rule", repeat=1.0)
    assert (outcome.tally.compared, outcome.tally.disagreed) == (10, 10)
    assert "of 10 pairs that others answered, it disagrees on 10" in str(outcome.tally)
    assert outcome.tally.wrong > 0.3


def test_a_tally_goes_on():
    assert Tally(1, 1).after(["same"], [], "different") == Tally(2, 2)
    assert Tally().after(["same", "different"], ["different"], "same") == Tally(1, 0)
    assert Tally().after([], ["same", "same", "different"], "different") == Tally(compared=1, disagreed=1)
    assert Tally().after([], ["same", "different"], "different") == Tally()
    assert Tally().after(["same"], [], "unsure") == Tally()


def test_the_estimate_of_a_tally_is_the_share_of_wrong_answers():
    random = np.random.default_rng(0)
    first, second = random.random((2, 4000)) < 0.2
    tally = Tally(4000, int((first != second).sum()))
    assert abs(tally.wrong - 0.2) < 0.02
    assert tally.interval[0] < tally.wrong < tally.interval[1]
    assert Tally(50, 0).wrong < Tally().wrong < Tally(50, 20).wrong < 0.5


def test_answerers_work_in_parallel(asker):
    barrier = threading.Barrier(3, timeout=60)

    class Meeting(Truthful):
        """Answers its first batch only when the two others have one as well."""

        def answer(self, questions):
            if not self.batches:
                barrier.wait()
            return super().answer(questions)

    programs = [Meeting() for _ in range(3)]
    outcome = run(asker, programs, 60, batch=5, repeat=0)
    assert outcome.answered == 60
    first = [frozenset(one.rows) for program in programs for one in program.batches[0]]
    assert len(set(first)) == len(first), "two were asked about the same pair at the same time"


def test_unsure_is_kept_and_not_asked_again(asker):
    class Unsure:
        def answer(self, questions):
            return [Reply(one.id, "unsure") for one in questions]

    outcome = run(asker, Unsure(), 30)
    assert outcome.counts == {"same": 0, "different": 0, "unsure": 30}
    pairs = [one.pair for one in asker.said]
    assert len(set(pairs)) == 30
    assert asker.links.n_must + asker.links.n_cannot == 0


def test_answers_that_it_is_not_sure_of_count_as_unsure(asker):
    class Hesitant(Truthful):
        def answer(self, questions):
            return [Reply(one.id, self.said(one), 0.9 if one.id % 2 else 0.55) for one in questions]

    outcome = run(asker, Hesitant(), 20, repeat=0, least_confidence=0.6)
    assert outcome.counts["unsure"] == 10


def test_it_ends_when_nothing_is_left():
    asker = Questioner(X[:6], 2)
    outcome = run(asker, Truthful(), 100, repeat=0)
    assert outcome.ended == "nothing left"
    assert outcome.answered == outcome.asked < 16


def test_it_ends_when_the_time_is_over(asker):
    class Slow(Truthful):
        def answer(self, questions):
            time.sleep(0.05)
            return super().answer(questions)

    outcome = run(asker, Slow(), 1000, seconds=0.2, batch=2)
    assert outcome.ended == "time"
    assert 0 < outcome.answered == outcome.asked < 1000


def test_an_interrupt_keeps_what_has_come(asker):
    class Streaming(Truthful):
        def answer(self, questions):
            for one in questions:
                yield Reply(one.id, self.said(one))

    def interrupt(outcome):
        if outcome.answered == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(asker, Streaming(), 20, progress=interrupt)
    assert len(asker.said) >= 3


@pytest.mark.skipif(os.name == "nt", reason="sends a signal")
def test_an_interrupt_while_an_answer_is_kept_loses_nothing(asker):
    class Interrupted(QuestionerDesk):
        def keep(self, *answer, **votes):
            if len(self.asker.said) == 4:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.05)  # the main thread gets it now
            super().keep(*answer, **votes)

    seen = []
    with pytest.raises(KeyboardInterrupt):
        run(Interrupted(asker), Truthful(), budget=40, progress=seen.append)
    assert seen[-1].answered == len(asker.said) >= 5


def test_an_error_of_the_program_is_raised_and_earlier_answers_are_kept(asker):
    class Failing(Truthful):
        def answer(self, questions):
            for one in questions[:4]:
                yield Reply(one.id, self.said(one))
            raise ConnectionError("the service is down")

    with pytest.raises(ConnectionError, match="the service is down"):
        run(asker, Failing(), 20, repeat=0)
    assert len(asker.said) == 4


@pytest.mark.parametrize(
    ("replies", "message"),
    [
        (lambda questions: [], "10 of 10 questions got no answer, those with id 1, 2, 3, 4, 5 ...: answer all"),
        (lambda questions: [Reply(99, "same")], "id 99 was not asked, or was answered before"),
        (lambda questions: [Reply(1, "same"), Reply(1, "same")], "id 1 was not asked, or was answered before"),
        (lambda questions: ["same"], "the answerer gave 'same': give a Reply for each question"),
        (lambda questions: [Reply(1, "yes")], "the answer is 'yes': use one of 'same', 'different', 'unsure'"),
        (lambda questions: [Reply("1", "same")], "the id is '1': repeat the id of the question"),
        (lambda questions: [Reply(True, "same")], "the id is True"),
        (lambda questions: [Reply(1, "same", 2)], "the confidence is 2: give a number from 0 to 1"),
        (lambda questions: [Reply(1, "same", "high")], "the confidence is 'high'"),
        (lambda questions: [Reply(1, "same", None, 7)], "the reason is 7: give a text"),
    ],
)
def test_bad_answers_are_named(asker, replies, message):
    class Bad:
        def answer(self, questions):
            return replies(questions)

    with pytest.raises(BadAnswer) as error:
        run(asker, Bad(), 10, repeat=0)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": 0}, "budget=0"),
        ({"batch": 0}, "batch=0"),
        ({"agree": 0}, "agree=0"),
        ({"seconds": -1}, "seconds=-1"),
        ({"repeat": 1.5}, "repeat=1.5 is not a share from 0 to 1"),
        ({"least_confidence": True}, "least_confidence=True"),
    ],
)
def test_bad_options_are_refused(asker, options, message):
    with pytest.raises(ValueError, match=message):
        run(asker, Truthful(), **options)


def test_progress_is_told_after_every_answer(asker):
    seen = []
    run(asker, Truthful(), 12, progress=lambda outcome: seen.append(outcome.answered))
    assert sorted(set(seen)) == list(range(1, 13))
    assert seen == sorted(seen)


def test_a_question_is_a_value():
    assert PairQuestion(1, (0, 1)) == PairQuestion(1, (0, 1), {}, {}, 0)
