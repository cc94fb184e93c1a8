"""Links and known labels dealt into folds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import RandomState

from linkmix import Links, Relation
from linkmix.mixture.folds import N_FOLDS, folds

PAIRS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)).filter(lambda pair: pair[0] != pair[1]), max_size=25)


def statements(links):
    """What is said, one tuple for each statement, in order."""
    kinds = (("must", links.must, links.must_confidence), ("cannot", links.cannot, links.cannot_confidence))
    return [
        (kind, *pair, None if confidence is None else confidence[i])
        for kind, pairs, confidence in kinds
        for i, pair in enumerate(pairs.tolist())
    ]


@given(PAIRS, PAIRS, st.integers(0, 1000), st.booleans())
@settings(max_examples=60)
def test_each_statement_is_left_out_once(must, cannot, seed, unsure):
    confidence = {"must_confidence": np.linspace(0.5, 1, len(must))} if unsure and must else {}
    links = Links(must, cannot, **confidence)
    everything = statements(links)
    of_pair: dict[tuple[int, int], set[int]] = {}
    seen = []
    for number, fold in enumerate(folds(links, None, RandomState(seed))):
        left = statements(fold.left)
        assert left == [everything[i] for i in fold.at]
        assert sorted(map(str, left + statements(fold.kept))) == sorted(map(str, everything))
        assert left  # a fold with nothing to leave out is not made
        assert fold.known is None
        assert not len(fold.rows)
        seen += fold.at.tolist()
        for _, a, b, _ in left:
            of_pair.setdefault((min(a, b), max(a, b)), set()).add(number)
    assert sorted(seen) == list(range(len(everything)))
    assert all(len(numbers) == 1 for numbers in of_pair.values())  # what is said about one pair stays together


def test_both_kinds_are_spread_evenly():
    y = np.random.default_rng(0).integers(4, size=100)
    links = Links.from_labels(y, 63, random_state=0)
    dealt = list(folds(links, None, RandomState(0)))
    assert len(dealt) == N_FOLDS
    for of_kind, n in (
        ([fold.left.n_must for fold in dealt], links.n_must),
        ([fold.left.n_cannot for fold in dealt], links.n_cannot),
    ):
        assert sum(of_kind) == n
        assert max(of_kind) - min(of_kind) <= 1
    sizes = [fold.left.n_must + fold.left.n_cannot for fold in dealt]
    assert max(sizes) - min(sizes) <= 1


def test_known_labels_are_left_out_once_and_each_class_evenly():
    known = np.full(90, -1)
    known[::2] = np.random.default_rng(0).integers(3, size=45)
    links = Links(must=[(1, 3), (5, 7)], cannot=[(9, 11)])
    seen, of_class = [], []
    for fold in folds(links, known, RandomState(0)):
        np.testing.assert_array_equal(fold.labels, known[fold.rows])
        expected = known.copy()
        expected[fold.rows] = -1
        np.testing.assert_array_equal(fold.known, expected)
        seen += fold.rows.tolist()
        of_class.append(np.bincount(fold.labels, minlength=3))
    assert sorted(seen) == np.flatnonzero(known >= 0).tolist()
    assert len(of_class) == N_FOLDS
    assert (np.ptp(of_class, axis=0) <= 1).all()
    assert (known[::2] >= 0).all()  # what was given is not changed


def test_few_links_make_few_folds():
    links = Links(must=[(0, 1)], cannot=[(1, 2)])
    dealt = list(folds(links, None, RandomState(0)))
    assert [fold.left.n_must + fold.left.n_cannot for fold in dealt] == [1, 1]
    assert list(folds(Links(), None, RandomState(0))) == []
    assert list(folds(Links(), np.full(5, -1), RandomState(0))) == []


def test_a_seed_makes_it_repeat():
    links = Links.from_labels(np.random.default_rng(0).integers(3, size=80), 40, random_state=0)

    def positions(seed):
        return [fold.at.tolist() for fold in folds(links, None, RandomState(seed))]

    assert positions(3) == positions(3)
    assert positions(3) != positions(4)


@pytest.mark.parametrize("named", [True, False])
def test_names_and_confidences_stay_with_their_links(named):
    links = Links(
        must=[(0, 1), (2, 3), (4, 5), (6, 7)],
        must_confidence=[0.6, 0.7, 0.8, 0.9],
        must_annotators=["a", "b", "c", "d"] if named else None,
    )
    for fold in folds(links, None, RandomState(0)):
        np.testing.assert_array_equal(fold.left.must_confidence, links.must_confidence[fold.at])
        if named:
            np.testing.assert_array_equal(fold.left.must_annotators, links.must_annotators[fold.at])
        else:
            assert fold.left.must_annotators is None


def test_relations_of_other_kinds_are_never_left_out():
    relation = Relation([(8, 9)], np.array([[0.4, 0.1], [0.2, 0.3]]))
    links = Links(must=[(0, 1), (2, 3)], cannot=[(4, 5)], relations=[relation])
    for fold in folds(links, None, RandomState(0)):
        assert fold.kept.relations == (relation,)
        assert fold.left.relations == ()
