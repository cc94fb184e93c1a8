"""Refits in the background: one at a time, errors are kept, and the last wish is met."""

import threading

from linkmix.queries import Background


def test_wishes_during_a_fit_lead_to_one_more_fit_that_knows_all_answers():
    answers, fitted, go, begun = [], [], threading.Event(), threading.Event()

    def fit(snapshot):
        begun.set()
        assert go.wait(60)
        return snapshot

    with Background(lambda: len(answers), fit, fitted.append) as refits:
        answers.append("same")
        refits.want()
        assert begun.wait(60)
        assert refits.running
        for _ in range(3):
            with refits.lock:
                answers.append("different")
            refits.want()
        assert fitted == []
        go.set()
        assert refits.wait(60)
    assert fitted == [1, 4]


def test_a_fit_that_fails_is_not_adopted_and_the_next_one_is():
    results, adopted, changes = [ZeroDivisionError("no"), 7], [], []

    def fit(result):
        if isinstance(result, Exception):
            raise result
        return result

    with Background(lambda: results.pop(0), fit, adopted.append, changed=lambda: changes.append(1)) as refits:
        refits.want()
        assert refits.wait(60)
        assert str(refits.error) == "no"
        assert adopted == []
        refits.want()
        assert refits.wait(60)
        assert refits.error is None
    assert adopted == [7]
    assert len(changes) == 4  # a beginning and an end of each


def test_what_is_found_after_the_stop_is_not_adopted():
    go, begun, adopted = threading.Event(), threading.Event(), []

    def fit(snapshot):
        begun.set()
        assert go.wait(60)
        return snapshot

    refits = Background(lambda: 1, fit, adopted.append)
    refits.want()
    assert begun.wait(60)
    refits.stop()
    go.set()
    assert refits.wait(60)
    assert adopted == []
