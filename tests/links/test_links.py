"""Links: what they hold, what they imply, what they refuse, and where they come from."""

import copy
import itertools
import pickle
import re
from dataclasses import FrozenInstanceError, fields

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import chisquare
from sklearn.base import BaseEstimator
from sklearn.model_selection import GroupKFold, cross_validate

from linkmix.basics.errors import Conflict, DegenerateCluster, InfeasibleLinks, LinkConflict
from linkmix.links import Links, Relation, SetRelation
from linkmix.links.label_tables import Rule
from linkmix.links.pairs import shortest_chain

N_ROWS = 8  # of the small examples, few enough for brute force
LARGEST_ROW = 2**63 - 1

pairs_of_rows = st.tuples(st.integers(0, N_ROWS - 1), st.integers(0, N_ROWS - 1)).filter(
    lambda pair: pair[0] != pair[1]
)
lists_of_pairs = st.lists(pairs_of_rows, max_size=7)
certain_links = st.builds(Links, lists_of_pairs, lists_of_pairs)


@st.composite
def any_links(draw):
    """Links with or without confidences and annotators."""
    arguments = {}
    for kind in ("must", "cannot"):
        pairs = draw(lists_of_pairs)
        n = len(pairs)
        arguments[kind] = pairs
        if draw(st.booleans()):
            arguments[f"{kind}_confidence"] = draw(st.lists(st.sampled_from([0.3, 0.8, 1.0]), min_size=n, max_size=n))
        if draw(st.booleans()):
            names = st.sampled_from(["eva", "ida", 3, None])
            arguments[f"{kind}_annotators"] = draw(st.lists(names, min_size=n, max_size=n))
        if draw(st.booleans()):
            arguments[f"{kind}_chosen"] = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)), dtype=bool)
    return Links(**arguments)


@pytest.fixture
def full():
    """Links of which every part is there."""
    return Links(
        must=[(3, 1), (1, 2)],
        cannot=[(0, 3)],
        must_confidence=[0.5, 1.0],
        cannot_confidence=0.9,
        must_annotators=["eva", None],
        cannot_annotators="ida",
        must_chosen=[False, True],
        cannot_chosen=True,
    )


def unordered(pairs):
    return {tuple(sorted(pair)) for pair in np.asarray(pairs).tolist()}


def together_by_brute_force(must):
    """Matrix of rows that chains of must-links hold together, by Warshall's algorithm."""
    together = np.eye(N_ROWS, dtype=bool)
    for a, b in must:
        together[a, b] = together[b, a] = True
    for middle in range(N_ROWS):
        together |= together[:, [middle]] & together[[middle], :]
    return together


def distance_by_brute_force(must, start, end):
    """Fewest must-links from one row to another, None if there is no way."""
    reached = {start}
    for distance in range(N_ROWS):
        if end in reached:
            return distance
        reached |= {b for a, b in must if a in reached} | {a for a, b in must if b in reached}
    return None


def is_numbered_by_first_appearance(ids):
    return list(dict.fromkeys(ids.tolist())) == list(range(len(set(ids.tolist()))))


# What they hold


def test_pairs_keep_their_order_and_orientation():
    links = Links(must=[(3, 1), (0, 2), (1, 3)], cannot=[(5, 4)])
    assert links.must.tolist() == [[3, 1], [0, 2], [1, 3]]
    assert links.cannot.tolist() == [[5, 4]]
    assert (links.n_must, links.n_cannot) == (3, 1)
    assert links.points.tolist() == [0, 1, 2, 3, 4, 5]
    assert repr(links) == "Links(3 must, 1 cannot)"
    assert links.must.dtype == links.cannot.dtype == links.points.dtype == np.int64


@pytest.mark.parametrize(
    "pairs",
    [
        [(0, 1), (2, 5)],
        ((0, 1), (2, 5)),
        [[0, 1], [2, 5]],
        [np.array([0, 1]), np.array([2, 5])],
        np.array([[0, 1], [2, 5]]),
        np.array([[0, 1], [2, 5]], dtype=np.int8),
        np.array([[0, 1], [2, 5]], dtype=np.uint64),
        np.array([[0, 1], [2, 5]], dtype=">i4"),
        np.array([[0, 2], [1, 5]]).T,
        pd.DataFrame({"a": [0, 2], "b": [1, 5]}),
        pl.DataFrame({"a": [0, 2], "b": [1, 5]}),
    ],
)
def test_pairs_come_in_many_forms(pairs):
    links = Links(must=pairs, cannot=pairs)
    assert links.must.tolist() == links.cannot.tolist() == [[0, 1], [2, 5]]
    assert links == Links(must=[(0, 1), (2, 5)], cannot=[(0, 1), (2, 5)])


@pytest.mark.parametrize("nothing", [(), [], np.empty((0, 2)), np.array([]), pd.DataFrame({"a": [], "b": []})])
def test_no_pairs(nothing):
    links = Links(nothing, nothing)
    assert links == Links()
    assert links.must.shape == links.cannot.shape == (0, 2)
    assert links.must.dtype == np.int64
    assert links.points.tolist() == []
    assert links.closure() == links.distinct() == links.union(Links()) == links.restrict([]) == links
    assert links.conflicts() == []
    assert links.chunklets(3).tolist() == links.components(3).tolist() == [0, 1, 2]
    assert links.chunklets(0).shape == (0,)


def test_confidence_is_kept_or_broadcast():
    links = Links(must=[(0, 1), (1, 2)], cannot=[(0, 3), (1, 3)], must_confidence=[0.25, 1], cannot_confidence=0.5)
    assert links.must_confidence.tolist() == [0.25, 1.0]
    assert links.cannot_confidence.tolist() == [0.5, 0.5]
    assert links.must_confidence.dtype == links.cannot_confidence.dtype == np.float64
    assert Links(must=[(0, 1)]).must_confidence is None


def test_annotators_are_kept_or_broadcast():
    links = Links(
        must=[(0, 1), (1, 2), (2, 3)],
        cannot=[(0, 3)],
        must_annotators=["eva", float("nan"), 7],
        cannot_annotators="ida",
    )
    assert links.must_annotators.tolist() == ["eva", None, 7]
    assert links.cannot_annotators.tolist() == ["ida"]
    assert Links(must=[(0, 1)]).must_annotators is None
    assert Links(must=[(0, 1)], must_annotators=pd.Series(["eva"])).must_annotators.tolist() == ["eva"]
    assert Links(must=[(0, 1)], must_annotators=pl.Series(["eva"])).must_annotators.tolist() == ["eva"]
    assert Links(must=[(0, 1), (1, 2)], must_annotators=[(1, 2), pd.NA]).must_annotators.tolist() == [(1, 2), None]


def test_what_says_nothing_is_none():
    assert Links(must=[(0, 1)], must_annotators=[None]) == Links(must=[(0, 1)])
    assert Links(cannot=[(0, 1)], must_confidence=0.5, must_annotators="eva") == Links(cannot=[(0, 1)])
    assert Links(cannot=[(0, 1)], must_chosen=True, cannot_chosen=[False]) == Links(cannot=[(0, 1)])


def test_chosen_links_are_kept_apart_from_random_ones(full):
    assert full.must_chosen.tolist() == [False, True]
    assert full.cannot_chosen.tolist() == [True]
    assert full.n_chosen == 2
    assert full.where([0], [False]).n_chosen == 0
    assert full != Links(*(full.must, full.cannot), must_confidence=full.must_confidence, cannot_confidence=0.9)
    random = Links(must=[(5, 6)], cannot=[(6, 7)])
    assert random.must_chosen is None
    assert full.union(random).must_chosen.tolist() == [False, True, False]
    assert random.union(full).cannot_chosen.tolist() == [False, True]
    assert full.restrict([1, 2]).must_chosen.tolist() == [True]
    assert full.restrict([3, 1]).must_chosen is None
    assert full.where([1], [0]).must_chosen.tolist() == [True]
    assert full.at_most(0.7).must_chosen.tolist() == [False, True]
    repeated = Links(must=[(0, 1), (1, 0), (1, 2)], must_chosen=[False, True, True])
    assert repeated.distinct().must_chosen.tolist() == [False, True]


@pytest.mark.parametrize(
    ("chosen", "problem"),
    [
        ([True], "must_chosen has shape (1,) for 2 links: give True or False per link, or a single one"),
        ([1, 0], "must_chosen holds int64, such as 1: give True or False"),
    ],
)
def test_chosen_is_checked(chosen, problem):
    with pytest.raises(ValueError, match=re.escape(problem)):
        Links(must=[(0, 1), (1, 2)], must_chosen=chosen)


# A value


def test_it_never_changes(full):
    for field in fields(full):
        with pytest.raises(FrozenInstanceError):
            setattr(full, field.name, None)
        if field.name == "relations":
            continue
        with pytest.raises(ValueError, match="read-only"):
            getattr(full, field.name)[0] = getattr(full, field.name)[0]
    with pytest.raises(AttributeError):
        full.another = 1
    with pytest.raises(AttributeError):
        del full.must


def test_it_shares_no_memory_with_what_was_given():
    pairs, confidence = np.array([[0, 1]]), np.array([0.5])
    annotators = np.array(["eva"], dtype=object)
    links = Links(must=pairs, must_confidence=confidence, must_annotators=annotators)
    pairs[0, 0], confidence[0], annotators[0] = 9, 0.1, "ida"
    assert links == Links(must=[(0, 1)], must_confidence=0.5, must_annotators="eva")
    assert pairs.flags.writeable
    assert confidence.flags.writeable


@pytest.mark.parametrize(
    "other",
    [
        Links(must=[(1, 0)], cannot=[(2, 3)]),
        Links(must=[(0, 1)]),
        Links(cannot=[(0, 1)], must=[(2, 3)]),
        Links(must=[(0, 1), (0, 1)], cannot=[(2, 3)]),
        Links(must=[(0, 1)], cannot=[(2, 3)], must_confidence=0.5),
        Links(must=[(0, 1)], cannot=[(2, 3)], cannot_confidence=0.5),
        Links(must=[(0, 1)], cannot=[(2, 3)], must_annotators="eva"),
        Links(must=[(0, 1)], cannot=[(2, 3)], cannot_annotators="eva"),
        "links",
        None,
    ],
)
def test_it_differs_from(other):
    links = Links(must=[(0, 1)], cannot=[(2, 3)])
    assert links != other
    assert len({links, other}) == 2


@given(any_links())
def test_equal_links_are_equal(links):
    again = Links(**{field.name: getattr(links, field.name) for field in fields(links)})
    assert again == links
    assert len({again, links}) == 1


@pytest.mark.parametrize("clone", [copy.copy, copy.deepcopy, lambda links: pickle.loads(pickle.dumps(links))])
def test_copies_are_equal_and_frozen(clone, full):
    cloned = clone(full)
    assert cloned == full
    assert hash(cloned) == hash(full)
    for field in fields(cloned):
        value = getattr(cloned, field.name)
        assert isinstance(value, tuple) or not value.flags.writeable
    with pytest.raises(FrozenInstanceError):
        cloned.must = None


def test_it_crosses_a_process_border():
    rows = np.arange(100_000)  # over a megabyte, so that joblib puts the arrays into a file
    links = Links(must=np.column_stack([rows, rows + 1]), must_confidence=0.5)
    (back,) = joblib.Parallel(n_jobs=2)([joblib.delayed(copy.copy)(links)])
    assert back == links
    assert not back.must.flags.writeable


@pytest.mark.parametrize("name", ["__len__", "shape", "__array__", "__iter__", "__getitem__"])
def test_it_does_not_look_like_an_array(name, full):
    assert not hasattr(full, name)


class Recorder(BaseEstimator):
    """Remembers what scikit-learn routes to fit."""

    def fit(self, X, y=None, *, links=None):
        self.links_ = links
        return self

    def score(self, X, y=None):
        return 0.0


def test_metadata_routing_does_not_cut_it():
    X = np.zeros((6, 1))
    pairs = np.array([[0, 1]] * len(X))  # as many links as rows: an array of them would be cut
    with sklearn.config_context(enable_metadata_routing=True):
        for sent, is_whole in ((Links(must=pairs), True), (pairs, False)):
            estimator = Recorder().set_fit_request(links=True)
            folds = cross_validate(estimator, X, cv=2, params={"links": sent}, return_estimator=True)["estimator"]
            assert [fold.links_ is sent for fold in folds] == [is_whole, is_whole]


# What they refuse


@pytest.mark.parametrize("kind", ["must", "cannot"])
@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([(0, 1), (2, 3), (4, 5), (7, 7)], r"KIND\[3\] links row 7 to itself: remove it"),
        ([(0, 1), (2, -1)], r"KIND\[1\] is \(2, -1\): give row numbers from 0"),
        ([(0, 1), (2,)], r"KIND\[1\] has 1 entries: give pairs"),
        ([(0, 1), 5], r"KIND\[1\] has 1 entries: give pairs"),
        ([(0, 1), (2, 3, 4)], r"KIND\[1\] has 3 entries: give pairs"),
        ([(0, 1, 2)], r"KIND has shape \(1, 3\): give pairs"),
        ((0, 1), r"KIND has shape \(2,\): give pairs of row numbers, such as \[\(0, 1\), \(2, 5\)\]"),
        ([[(0, 1)]], r"KIND has shape \(1, 1, 2\): give pairs"),
        (np.empty((0, 3), dtype=int), r"KIND has shape \(0, 3\): give pairs"),
        (np.empty((3, 0), dtype=int), r"KIND has shape \(3, 0\): give pairs"),
        (7, r"KIND has shape \(\): give pairs"),
        (None, r"KIND has shape \(\): give pairs"),
        ({(0, 1)}, r"KIND has shape \(\): give pairs"),
        ([("x", "y")], r"KIND holds .*: give row numbers, or links by ids to Links\.from_table, such as"),
        ([(0.0, 1.0)], r"KIND holds float64, KIND\[0\] is \(0\.0, 1\.0\): give row numbers of an integer type"),
        ([(0, 1.5)], "KIND holds float64"),
        ([(0, float("nan"))], "KIND holds float64"),
        ([(False, True)], "KIND holds bool"),
        ([("0", "1")], r"KIND holds <U1, KIND\[0\] is \('0', '1'\)"),
        ([(0, None)], "KIND holds object"),
        (np.array([[0, 1]], dtype=object), "KIND holds object"),
        ([(0, 2**70)], "KIND holds object"),
        (np.array([[0, 1], [0, 2**63]], dtype=np.uint64), rf"KIND\[1\] is \(0, {2**63}\): .* to {LARGEST_ROW}"),
        (pd.DataFrame({"a": [0], "b": [None]}), "KIND holds object"),
    ],
)
def test_bad_pairs(kind, pairs, message):
    with pytest.raises(ValueError, match="^" + message.replace("KIND", kind)):
        Links(**{kind: pairs})


def test_the_largest_row_number_is_allowed():
    links = Links(must=np.array([[0, LARGEST_ROW]], dtype=np.uint64))
    assert links.must.tolist() == [[0, LARGEST_ROW]]
    assert links.closure() == links  # and nothing allocates up to it
    assert links.conflicts() == []
    assert links.restrict([LARGEST_ROW, 0]).must.tolist() == [[1, 0]]


@pytest.mark.parametrize("kind", ["must", "cannot"])
@pytest.mark.parametrize(
    ("confidence", "message"),
    [
        ([1, 0], r"\[1\] is 0\.0: give a number above 0 and at most 1"),
        ([0.5, -0.1], r"\[1\] is -0\.1: give a number above 0"),
        ([0.5, 1.01], r"\[1\] is 1\.01: give a number above 0"),
        ([0.5, float("nan")], r"\[1\] is nan: give a number above 0"),
        ([float("inf"), 0.5], r"\[0\] is inf: give a number above 0"),
        (0, r" is 0\.0: give a number above 0"),
        (2, r" is 2\.0: give a number above 0"),
        ([0.5], r" has shape \(1,\) for 2 links: give one number per link, or a single one"),
        ([0.5, 0.5, 0.5], r" has shape \(3,\) for 2 links"),
        ([[0.5, 0.5]], r" has shape \(1, 2\) for 2 links"),
        ([0.5, None], r" holds object, such as 0\.5: give numbers"),
        (["0.5", "1"], r" holds <U3, such as '0\.5': give numbers"),
        ("high", r" holds <U4, such as 'high': give numbers"),
        ([True, True], r" holds bool, such as True: give numbers"),
    ],
)
def test_bad_confidence(kind, confidence, message):
    with pytest.raises(ValueError, match=f"^{kind}_confidence{message}"):
        Links(**{kind: [(0, 1), (1, 2)], f"{kind}_confidence": confidence})


def test_bad_confidence_without_links():
    with pytest.raises(ValueError, match=r"must_confidence is 2\.0"):
        Links(must_confidence=2)
    with pytest.raises(ValueError, match=r"must_confidence has shape \(1,\) for 0 links"):
        Links(must_confidence=[0.5])


@pytest.mark.parametrize("kind", ["must", "cannot"])
@pytest.mark.parametrize(
    ("annotators", "message"),
    [
        (["eva"], " has 1 entries for 2 links: give one per link, or a single name"),
        (["eva", ["ida"]], r"\[1\] is \['ida'\]: give something hashable"),
        (7, " is 7: give a sequence"),
        ({"eva": 1, "ida": 2}, " is {.*}: give a sequence"),
        (np.array([["eva", "ida"]]), r" has shape \(1, 2\): give a sequence"),
    ],
)
def test_bad_annotators(kind, annotators, message):
    with pytest.raises(ValueError, match=f"^{kind}_annotators{message}"):
        Links(**{kind: [(0, 1), (1, 2)], f"{kind}_annotators": annotators})


@pytest.mark.parametrize("method", ["check_rows", "chunklets", "components"])
def test_rows_out_of_range(method):
    links = Links(must=[(0, 1), (4, 2)], cannot=[(3, 5)])
    getattr(links, method)(6)
    with pytest.raises(ValueError, match=r"^cannot\[0\] links row 5, but there are 5 rows, .*: correct the row number"):
        getattr(links, method)(5)
    with pytest.raises(ValueError, match=r"^must\[1\] links row 4, but there are 4 rows"):
        getattr(links, method)(4)


def test_errors_are_value_errors_and_cross_a_process_border():
    conflict = Conflict((0, 1), (0, 1))
    links = Links(must=[(0, 1)])
    error = pickle.loads(pickle.dumps(LinkConflict("clash", [conflict])))
    assert (str(error), error.conflicts) == ("clash", (conflict,))
    error = pickle.loads(pickle.dumps(InfeasibleLinks("too few classes", links)))
    assert (str(error), error.links) == ("too few classes", links)
    assert LinkConflict("clash").conflicts == ()
    assert InfeasibleLinks("too few classes").links is None
    for kind in (LinkConflict, InfeasibleLinks, DegenerateCluster):
        assert issubclass(kind, ValueError)


# Distinct statements, unions, subsets


def test_distinct_keeps_the_first_of_each_pair_and_kind():
    links = Links(must=[(5, 1), (0, 1), (1, 5), (1, 0), (2, 0)], cannot=[(1, 0), (0, 1)]).distinct()
    assert links.must.tolist() == [[5, 1], [0, 1], [2, 0]]
    assert links.cannot.tolist() == [[1, 0]]


def test_distinct_keeps_the_highest_confidence():
    links = Links(must=[(2, 1), (0, 1), (1, 2), (2, 1)], must_confidence=[0.5, 0.6, 0.9, 0.7]).distinct()
    assert links.must.tolist() == [[2, 1], [0, 1]]
    assert links.must_confidence.tolist() == [0.9, 0.6]


def test_distinct_keeps_each_annotator():
    links = Links(
        must=[(0, 1), (1, 0), (0, 1), (0, 1), (1, 0), (2, 1)],
        must_confidence=[0.5, 0.6, 0.9, 0.3, 0.4, 0.2],
        must_annotators=["eva", "ida", "eva", None, None, "eva"],
    ).distinct()
    assert links.must.tolist() == [[0, 1], [1, 0], [0, 1], [2, 1]]
    assert links.must_annotators.tolist() == ["eva", "ida", None, "eva"]
    assert links.must_confidence.tolist() == [0.5, 0.6, 0.3, 0.2]  # of the first, not the highest


@given(any_links())
def test_distinct_by_brute_force(links):
    distinct = links.distinct()
    for kind in ("must", "cannot"):
        pairs, confidence, annotators = (getattr(links, kind + part) for part in ("", "_confidence", "_annotators"))
        expected = {}
        for i, pair in enumerate(pairs.tolist()):
            who = None if annotators is None else annotators[i]
            sure = None if confidence is None else confidence[i]
            first = expected.setdefault((*sorted(pair), who), [pair, who, sure])
            if confidence is not None and annotators is None:
                first[2] = max(first[2], sure)
        assert getattr(distinct, kind).tolist() == [pair for pair, _, _ in expected.values()]
        if confidence is not None:
            assert getattr(distinct, f"{kind}_confidence").tolist() == [sure for _, _, sure in expected.values()]
        if annotators is not None:
            assert getattr(distinct, f"{kind}_annotators").tolist() == [who for _, who, _ in expected.values()]
    assert distinct.distinct() == distinct


def test_union_appends(full):
    joined = full.union(Links(must=[(3, 1)], cannot=[(5, 6)], cannot_confidence=0.4))
    assert joined.must.tolist() == [[3, 1], [1, 2], [3, 1]]
    assert joined.must_confidence.tolist() == [0.5, 1.0, 1.0]
    assert joined.must_annotators.tolist() == ["eva", None, None]
    assert joined.cannot.tolist() == [[0, 3], [5, 6]]
    assert joined.cannot_confidence.tolist() == [0.9, 0.4]
    assert joined.cannot_annotators.tolist() == ["ida", None]


@given(any_links(), any_links(), any_links())
def test_union_is_associative_and_nothing_is_its_unit(one, two, three):
    assert one.union(two).union(three) == one.union(two.union(three))
    assert one.union(Links()) == Links().union(one) == one
    assert len(one.union(two).must) == one.n_must + two.n_must


def test_restrict_keeps_what_belongs_to_each_link(full):
    kept = full.restrict([2, 3, 1])
    named = {"must_annotators": ["eva", None], "must_chosen": [False, True]}
    assert kept == Links(must=[(1, 2), (2, 0)], must_confidence=[0.5, 1.0], **named)
    kept = full.restrict(np.array([True, False, True, True]))
    assert kept == Links(cannot=[(0, 2)], cannot_confidence=0.9, cannot_annotators="ida", cannot_chosen=True)


@given(any_links(), st.permutations(range(N_ROWS)), st.integers(0, N_ROWS))
def test_restrict_by_brute_force(links, order, size):
    rows = order[:size]
    kept = links.restrict(rows)
    for kind in ("must", "cannot"):
        pairs = getattr(links, kind).tolist()
        inside = [i for i, (a, b) in enumerate(pairs) if a in rows and b in rows]
        assert getattr(kept, kind).tolist() == [[rows.index(a), rows.index(b)] for a, b in (pairs[i] for i in inside)]
        for part in ("confidence", "annotators"):
            values = getattr(links, f"{kind}_{part}")
            found = getattr(kept, f"{kind}_{part}")
            if found is None:
                assert values is None or all(values[i] is None for i in inside)
            else:
                assert found.tolist() == [values[i] for i in inside]


@given(any_links(), st.permutations(range(N_ROWS)))
def test_restrict_to_all_rows_can_be_undone(links, order):
    assert links.restrict(order).restrict(np.argsort(order)) == links


@given(any_links(), st.lists(st.booleans(), min_size=N_ROWS, max_size=N_ROWS))
def test_a_mask_is_its_row_numbers(links, mask):
    assert links.restrict(mask) == links.restrict(np.flatnonzero(mask)) == links.restrict(pd.Series(mask))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([4, 2, 4], "rows holds row 4 more than once: give each row once"),
        ([0, -1], r"rows\[1\] is -1: give row numbers from 0"),
        (np.array([0, 2**63], dtype=np.uint64), rf"rows\[1\] is {2**63}: give row numbers from 0 to {LARGEST_ROW}"),
        ([0.0, 1.0], r"rows holds float64, such as 0\.0: give integers, or a mask"),
        (["0"], "rows holds <U1"),
        ([[0, 1]], r"rows has shape \(1, 2\): give"),
        (3, r"rows has shape \(\): give"),
        ([True, False], r"must\[0\] links row 2, but there are 2 rows"),
    ],
)
def test_bad_rows_to_restrict_to(rows, message):
    with pytest.raises(ValueError, match="^" + message):
        Links(must=[(0, 2)]).restrict(rows)


# Components


@given(any_links(), st.integers(0, 2**32 - 1))
def test_where_keeps_whole_statements_by_brute_force(links, seed):
    rng = np.random.default_rng(seed)
    masks = {kind: rng.random(len(getattr(links, kind))) < 0.5 for kind in ("must", "cannot")}
    some = links.where(**masks)
    for kind, mask in masks.items():
        positions = [i for i, keep in enumerate(mask) if keep]
        assert getattr(some, kind).tolist() == [getattr(links, kind)[i].tolist() for i in positions]
        for what in ("confidence", "annotators"):
            given, kept = getattr(links, f"{kind}_{what}"), getattr(some, f"{kind}_{what}")
            nothing = None if what == "annotators" else 1.0
            expected = [nothing if given is None else given[i] for i in positions]
            assert ([nothing] * len(positions) if kept is None else list(kept)) == expected
    by_position = links.where(*(np.flatnonzero(mask) for mask in masks.values()))
    assert by_position == some
    everything = links.where(*(np.ones(len(mask), dtype=bool) for mask in masks.values()))
    assert everything == Links(
        links.must,
        links.cannot,
        must_confidence=links.must_confidence,
        cannot_confidence=links.cannot_confidence,
        must_annotators=links.must_annotators,
        cannot_annotators=links.cannot_annotators,
        must_chosen=links.must_chosen,
        cannot_chosen=links.cannot_chosen,
    )
    nothing = links.where(*(np.zeros(len(mask), dtype=bool) for mask in masks.values()))
    assert nothing == Links()


@given(any_links())
def test_certain_links_by_brute_force(links):
    for kind in ("must", "cannot"):
        pairs, confidence = getattr(links, kind), getattr(links, f"{kind}_confidence")
        sure = [pair for i, pair in enumerate(pairs.tolist()) if confidence is None or confidence[i] == 1]
        assert getattr(links.certain(), kind).tolist() == sure
    assert links.certain().certain() == links.certain()


@given(any_links())
def test_chunklets_are_the_rows_that_certain_must_links_hold_together(links):
    certain = [
        pair
        for i, pair in enumerate(links.must.tolist())
        if links.must_confidence is None or links.must_confidence[i] == 1
    ]
    ids = links.chunklets(N_ROWS)
    assert ids.dtype == np.int64
    np.testing.assert_array_equal(ids[:, None] == ids, together_by_brute_force(certain))
    assert is_numbered_by_first_appearance(ids)


@given(any_links())
def test_components_are_the_rows_that_any_links_join(links):
    ids = links.components(N_ROWS)
    assert ids.dtype == np.int64
    joined = together_by_brute_force([*links.must.tolist(), *links.cannot.tolist()])
    np.testing.assert_array_equal(ids[:, None] == ids, joined)
    assert is_numbered_by_first_appearance(ids)


@given(any_links())
def test_folds_by_components_tear_no_link(links):
    groups = links.components(N_ROWS)
    assume(len(set(groups)) >= 2)
    for train, test in GroupKFold(n_splits=2).split(np.zeros((N_ROWS, 1)), groups=groups):
        parts = [links.restrict(train), links.restrict(test)]
        assert sum(part.n_must for part in parts) == links.n_must
        assert sum(part.n_cannot for part in parts) == links.n_cannot


# Closure


def test_closure_of_two_chunklets():
    closed = Links(must=[(4, 0), (0, 2), (5, 3)], cannot=[(3, 2)]).closure()
    assert closed.must.tolist() == [[0, 2], [0, 4], [2, 4], [3, 5]]
    assert closed.cannot.tolist() == [[0, 3], [0, 5], [2, 3], [2, 5], [3, 4], [4, 5]]


@given(certain_links)
def test_closure_by_brute_force(links):
    together = together_by_brute_force(links.must)
    if any(together[a, b] for a, b in links.cannot):
        with pytest.raises(LinkConflict):
            links.closure()
        return
    apart = np.zeros_like(together)
    for a, b in links.cannot:
        apart |= np.outer(together[a], together[b]) | np.outer(together[b], together[a])
    closed = links.closure()
    every_pair = [list(pair) for pair in itertools.combinations(range(N_ROWS), 2)]  # lexicographic
    assert closed.must.tolist() == [pair for pair in every_pair if together[tuple(pair)]]
    assert closed.cannot.tolist() == [pair for pair in every_pair if apart[tuple(pair)]]
    assert closed.closure() == closed


def test_closure_drops_who_and_how_sure():
    closed = Links(must=[(1, 0)], must_confidence=1, must_annotators="eva").closure()
    assert closed == Links(must=[(0, 1)])


@pytest.mark.parametrize("kind", ["must", "cannot"])
def test_uncertain_links_have_no_closure(kind):
    links = Links(**{kind: [(0, 1), (1, 2)], f"{kind}_confidence": [1, 0.9]})
    with pytest.raises(
        ValueError, match=rf"^{kind}_confidence\[1\] is 0\.9, but only certain links .*: drop"
    ) as caught:
        links.closure()
    assert not isinstance(caught.value, LinkConflict)


# Conflicts


@pytest.mark.parametrize(
    ("must", "cannot", "message"),
    [
        ([(9, 4)], [(4, 9)], "rows 4 and 9 must link and cannot link: drop one of these 2 links"),
        ([(7, 4), (7, 9)], [(4, 9)], "rows 4 and 9 must link (through 7) and cannot link: drop one of these 3 links"),
        (
            [(1, 2), (2, 3), (3, 4)],
            [(4, 1)],
            "rows 4 and 1 must link (through 3, 2) and cannot link: drop one of these 4 links",
        ),
        (
            [(i, i + 1) for i in range(10)],
            [(0, 10)],
            "rows 0 and 10 must link (through 1, 2, 3, 4, 5 and 4 more) and cannot link: drop one of these 11 links",
        ),
    ],
)
def test_a_conflict_says_what_to_do(must, cannot, message):
    (conflict,) = Links(must, cannot).conflicts()
    assert str(conflict) == message
    assert conflict.cannot == cannot[0]
    assert all(type(row) is int for row in (*conflict.cannot, *conflict.chain))


@given(any_links())
def test_conflicts_by_brute_force(links):
    def certain(kind):
        pairs, confidence = getattr(links, kind).tolist(), getattr(links, f"{kind}_confidence")
        return [tuple(pair) for i, pair in enumerate(pairs) if confidence is None or confidence[i] == 1]

    must, expected = certain("must"), {}
    for a, b in certain("cannot"):
        distance = distance_by_brute_force(must, a, b)
        if distance is not None:
            expected.setdefault(frozenset((a, b)), ((a, b), distance))
    conflicts = links.conflicts()
    assert [(c.cannot, len(c.chain) - 1) for c in conflicts] == list(expected.values())
    for conflict in conflicts:
        assert (conflict.chain[0], conflict.chain[-1]) == conflict.cannot
        assert unordered(itertools.pairwise(conflict.chain)) <= unordered(must)
    for limit in range(len(conflicts) + 2):
        assert links.conflicts(max_conflicts=limit) == conflicts[:limit]
    if conflicts:
        with pytest.raises(LinkConflict):
            links.check_consistent()
    else:
        links.check_consistent()


@given(st.lists(pairs_of_rows, min_size=7, max_size=28), pairs_of_rows)
def test_chains_through_dense_links_are_shortest(must, cannot):
    distance = distance_by_brute_force(must, *cannot)
    assume(distance is not None)
    (conflict,) = Links(must, [cannot]).conflicts()
    assert len(conflict.chain) - 1 == distance
    assert unordered(itertools.pairwise(conflict.chain)) <= unordered(must)


def test_the_chain_takes_the_shortcut():
    ring = [(i, (i + 1) % 30) for i in range(30)]
    (conflict,) = Links(ring, [(0, 20)]).conflicts()
    assert conflict.chain == (0, *range(29, 19, -1))
    (conflict,) = Links([*ring, (5, 19)], [(0, 20)]).conflicts()
    assert conflict.chain == (0, 1, 2, 3, 4, 5, 19, 20)


def test_check_consistent_names_a_few_conflicts_and_counts_the_others():
    rows = range(0, 20, 2)
    pairs = [(row, row + 1) for row in rows]
    with pytest.raises(LinkConflict) as caught:
        Links(pairs, pairs).check_consistent()
    lines = str(caught.value).splitlines()
    assert lines[0] == "rows 0 and 1 must link and cannot link: drop one of these 2 links"
    assert [conflict.cannot for conflict in caught.value.conflicts] == pairs[: len(lines) - 1]
    assert len(lines) == 4
    assert lines[-1] == "and 7 more conflicts: see links.conflicts()"

    with pytest.raises(LinkConflict) as caught:
        Links(pairs[:3], pairs[:3]).check_consistent()
    assert str(caught.value).splitlines() == [str(conflict) for conflict in caught.value.conflicts]
    assert len(caught.value.conflicts) == 3


def test_a_negative_number_of_conflicts():
    with pytest.raises(ValueError, match="max_conflicts is -1: give 0 or more"):
        Links().conflicts(max_conflicts=-1)


class NeverScanned(list):
    def __iter__(self):
        raise AssertionError("all neighbours of the hub were looked at")


def test_the_search_does_not_scan_a_hub():
    n = 100
    neighbours = {row: [0] for row in range(1, n)}
    neighbours[0] = NeverScanned(range(1, n))
    assert shortest_chain(neighbours, 5, 9) == (5, 0, 9)
    neighbours[9] = [8]
    neighbours[8] = [0, 9]
    assert shortest_chain(neighbours, 5, 9) == (5, 0, 8, 9)
    assert shortest_chain(neighbours, 9, 5) == (9, 8, 0, 5)


def test_conflicts_in_many_links():
    rows = np.arange(100_000)
    chain = np.column_stack([rows[:-1], rows[1:]])
    near = np.column_stack([rows[:20_000], rows[:20_000] + 3])
    conflicts = Links(chain, near).conflicts()
    assert [conflict.chain for conflict in conflicts] == [(a, a + 1, a + 2, a + 3) for a in range(20_000)]


# Tables


TABLE = {"a": [0, 4, 2], "b": [1, 3, 0], "kind": ["must", "cannot", "must"]}


@pytest.mark.parametrize(
    "table",
    [
        TABLE,
        {name: np.array(column) for name, column in TABLE.items()},
        {name: tuple(column) for name, column in TABLE.items()},
        {**TABLE, "remark": ["x"]},  # not ours: never read
        pd.DataFrame(TABLE),
        pd.DataFrame(TABLE, index=[5, 6, 7]),
        pd.DataFrame(TABLE).convert_dtypes(),
        pl.DataFrame(TABLE),
        pd.DataFrame(TABLE).to_dict(orient="records"),
        iter(pl.DataFrame(TABLE).to_dicts()),
    ],
)
def test_tables_come_in_many_forms(table):
    assert Links.from_table(table) == Links(must=[(0, 1), (2, 0)], cannot=[(4, 3)])


@pytest.mark.parametrize("must", ["must", "must-link", "same", 1, "Must", "SAME", " must ", "1", 1.0, np.int64(1)])
@pytest.mark.parametrize("cannot", ["cannot", "cannot-link", "different", -1, "CANNOT-LINK", "-1", -1.0, np.int8(-1)])
def test_kinds(must, cannot):
    table = {"a": [0, 2], "b": [1, 3], "kind": [must, cannot]}
    assert Links.from_table(table) == Links(must=[(0, 1)], cannot=[(2, 3)])


@pytest.mark.parametrize("frame", [dict, pd.DataFrame, pl.DataFrame])
def test_ids_are_looked_up(frame):
    table = frame({"a": ["p", "r"], "b": ["q", "p"], "kind": ["same", "different"]})
    for ids in (["q", "p", "r"], np.array(["q", "p", "r"]), pd.Series(["q", "p", "r"]), pl.Series(["q", "p", "r"])):
        assert Links.from_table(table, ids=ids) == Links(must=[(1, 0)], cannot=[(2, 1)])
    numbered = frame({"a": [10, 30], "b": [20, 10], "kind": ["same", "different"]})
    assert Links.from_table(numbered, ids=[20, 10, 30]) == Links(must=[(1, 0)], cannot=[(2, 1)])


def test_missing_cells():
    table = {
        "a": [0, 1, 2, 3],
        "b": [1, 2, 3, 4],
        "kind": ["must", "must", "cannot", "cannot"],
        "confidence": [0.5, None, None, None],
        "annotator": [None, None, "eva", None],
    }
    expected = Links(
        must=[(0, 1), (1, 2)],
        cannot=[(2, 3), (3, 4)],
        must_confidence=[0.5, 1.0],
        cannot_annotators=["eva", None],
    )
    rows = [{name: table[name][i] for name in table if table[name][i] is not None} for i in range(4)]
    for form in (table, pd.DataFrame(table), pd.DataFrame(table).convert_dtypes(), pl.DataFrame(table), rows):
        assert Links.from_table(form) == expected


@pytest.mark.parametrize("table", [[], iter(()), {"a": [], "b": [], "kind": []}, pd.DataFrame(TABLE)[:0]])
def test_empty_tables(table):
    assert Links.from_table(table) == Links()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"a": [0, 4.0, 2]}, r"table row 1: a is 4\.0, not a row number: give integers from 0"),
        ({"b": [1, 3, "0"]}, "table row 2: b is '0', not a row number: .*, or the ids of the rows as ids"),
        ({"a": [True, 4, 2]}, "table row 0: a is True, not a row number"),
        ({"a": [0, None, 2]}, "table row 1: a is None, not a row number"),
        ({"a": [0, -4, 2]}, "table row 1: a is -4, not a row number"),
        ({"a": [0, 4, 2**63]}, f"table row 2: a is {2**63}, not a row number: .* to {LARGEST_ROW}"),
        ({"b": [1, 4, 0]}, "table row 1 links 4 to itself: remove it"),
        (
            {"kind": ["must", "cannot", "maybe"]},
            "table row 2, column 'kind': 'maybe' is not a .*: use 'must' or 'cannot'",
        ),
        ({"kind": ["must", None, "must"]}, "table row 1, column 'kind': None is not a kind of link: use"),
        ({"kind": ["must", pd.NA, "must"]}, "table row 1, column 'kind': <NA> is not a kind of link: use"),
        ({"kind": [1, 2, 1]}, "table row 1, column 'kind': 2 is not a kind of link: use"),
        ({"kind": ["must", ["must"], "must"]}, r"table row 1, column 'kind': \['must'\] is not a kind of link: use"),
        ({"confidence": [1, 0, 1]}, "table row 1, column 'confidence': 0 is not a number above 0"),
        (
            {"confidence": [1, 1, 1.5]},
            r"table row 2, column 'confidence': 1\.5 is not a number above 0 and at most 1",
        ),
        (
            {"confidence": [1, "0.5", 1]},
            r"table row 1, column 'confidence': '0\.5' is not a number .*, or leave it empty",
        ),
        ({"confidence": [1, True, 1]}, "table row 1, column 'confidence': True is not a number above 0"),
        ({"annotator": ["eva", "ida", ["eva"]]}, r"table row 2: annotator is \['eva'\]: give something hashable"),
        ({"a": [0, 4]}, r"the columns of table differ in length, \{'a': 2, 'b': 3, 'kind': 3\}: give one entry"),
        ({"kind": "must"}, "table column 'kind' is 'must': give a sequence"),
        ({"a": 0}, "table column 'a' is 0: give a sequence"),
        ({"a": np.zeros((3, 1), dtype=int)}, r"table column 'a' has shape \(3, 1\): give a sequence"),
    ],
)
def test_bad_tables(changes, message):
    with pytest.raises(ValueError, match="^" + message):
        Links.from_table({**TABLE, **changes})


@pytest.mark.parametrize("missing", ["a", "b", "kind"])
def test_missing_columns(missing):
    table = {name: column for name, column in TABLE.items() if name != missing}
    for form in (table, pd.DataFrame(table), pl.DataFrame(table), pl.DataFrame(table).to_dicts()):
        with pytest.raises(ValueError, match=rf"^table: there is no column '{missing}' \(columns: .*\): name"):
            Links.from_table(form)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([{"a": 0, "b": 1, "kind": "must"}, (0, 1, "must")], r"table row 1 is \(0, 1, 'must'\): give a mapping"),
        ([{"a": 0, "b": 1, "kind": "must"}, {"a": 0, "kind": "must"}], "table row 1: b is None, not a row number"),
        ("links.csv", "table is 'links.csv': give a sequence"),
        (None, "table is None: give a sequence"),
    ],
)
def test_tables_that_are_none(table, message):
    with pytest.raises(ValueError, match="^" + message):
        Links.from_table(table)


@pytest.mark.parametrize(
    ("ids", "a", "message"),
    [
        (["p", "q"], "x", r"table row 0: a is 'x', which is not among the ids \(such as 'p'\): correct it"),
        ([7, 8], "7", r"table row 0: a is '7', which is not among the ids \(such as 7\): .* with the same type"),
        (["p", "q"], ["p"], r"table row 0: a is \['p'\], which is not among"),
        (["p", "q"], None, "table row 0: a is None, which is not among"),
        ([], "p", r"table row 0: a is 'p', which is not among the ids \(there are none\)"),
        (["p", "q", "r", "q"], "p", r"ids\[1\] and ids\[3\] are both 'q': give every row an id of its own"),
        (["p", "q", None], "p", r"ids\[2\] is None: give every row an id"),
        (["p", float("nan")], "p", r"ids\[1\] is nan: give every row an id"),
        (["p", ["q"]], "p", r"ids\[1\] is \['q'\]: give something hashable"),
        ("pq", "p", "ids is 'pq': give a sequence"),
        (["p", "q"], "q", "table row 0 links 'q' to itself: remove it"),
    ],
)
def test_bad_ids(ids, a, message):
    with pytest.raises(ValueError, match="^" + message):
        Links.from_table({"a": [a], "b": ["q"], "kind": ["must"]}, ids=ids)


def test_to_table(full):
    assert full.to_table() == {
        "a": [3, 1, 0],
        "b": [1, 2, 3],
        "kind": ["must", "must", "cannot"],
        "confidence": [0.5, 1.0, 0.9],
        "annotator": ["eva", None, "ida"],
        "chosen": [False, True, True],
    }
    assert Links(must=[(0, 2)]).to_table(ids=["p", "q", "r"]) == {"a": ["p"], "b": ["r"], "kind": ["must"]}
    half = Links(must=[(0, 1)], cannot=[(1, 2)], must_annotators="eva", cannot_confidence=0.5).to_table()
    assert (half["confidence"], half["annotator"]) == ([None, 0.5], ["eva", None])


def test_to_table_checks_its_ids():
    links = Links(must=[(0, 2)])
    with pytest.raises(ValueError, match=r"must\[0\] links row 2, but there are 2 rows"):
        links.to_table(ids=["p", "q"])
    with pytest.raises(ValueError, match=r"ids\[0\] and ids\[1\] are both 'p'"):
        links.to_table(ids=["p", "p", "q"])


ID_LISTS = [None, [f"id {row}" for row in range(N_ROWS)], [row / 2 - 1 for row in range(N_ROWS)]]


@given(any_links(), st.sampled_from(ID_LISTS))
def test_tables_can_be_read_back(links, ids):
    table = links.to_table(ids)
    assert Links.from_table(table, ids) == links
    assert (
        Links.from_table([dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)], ids)
        == links
    )
    if links.n_must + links.n_cannot:  # an empty data frame has no types
        assert Links.from_table(pd.DataFrame(table), ids) == links
        assert Links.from_table(pl.DataFrame(table, strict=False), ids).must.tolist() == links.must.tolist()


# Labels


def test_fewest_links_from_labels():
    links = Links.from_labels([2, 0, 2, 1, 2, 0])
    assert links.must.tolist() == [[0, 2], [2, 4], [1, 5]]
    assert links.cannot.tolist() == [[0, 1], [0, 3], [1, 3]]
    assert Links.from_labels([2, 0, 2, 1, 2, 0], kind="must") == Links(must=links.must)
    assert Links.from_labels([2, 0, 2, 1, 2, 0], kind="cannot") == Links(cannot=links.cannot)


@given(st.lists(st.sampled_from([0, 1, 2, 3, -1]), max_size=N_ROWS))
def test_fewest_links_imply_all_links(y):
    known = [row for row, label in enumerate(y) if label != -1]
    pairs = list(itertools.combinations(known, 2))
    must = [pair for pair in pairs if y[pair[0]] == y[pair[1]]]
    cannot = [pair for pair in pairs if y[pair[0]] != y[pair[1]]]
    links = Links.from_labels(y)
    assert links.closure() == Links(must, cannot)
    n_labels = len({y[row] for row in known})
    assert links.n_must == len(known) - n_labels
    assert links.n_cannot == n_labels * (n_labels - 1) // 2


@pytest.mark.parametrize(
    "y",
    [
        [5, -1, 7, 5],
        np.array([5, -1, 7, 5]),
        np.array([5.0, np.nan, 7.0, 5.0]),
        np.array([5.0, -1.0, 7.0, 5.0]),
        ["x", None, "y", "x"],
        ["x", float("nan"), "y", "x"],
        ["-1", -1, "y", "-1"],
        np.array(["x", None, "y", "x"], dtype=object),
        pd.Series(["x", None, "y", "x"]),
        pd.Series(["x", None, "y", "x"], dtype="category"),
        pd.Series([5, None, 7, 5], dtype="Int64"),
        pl.Series([5, None, 7, 5]),
        [("a", 1), None, ("a", 2), ("a", 1)],
        [True, None, False, True],
        iter([5, -1, 7, 5]),
    ],
)
def test_labels_of_many_types(y):
    assert Links.from_labels(y) == Links(must=[(0, 3)], cannot=[(0, 2)])


def test_no_known_labels():
    assert Links.from_labels([]) == Links.from_labels([-1, -1]) == Links.from_labels([None], n_links=0) == Links()


LABELS = [0, 1, -1, 0, 2, 1, 0]  # 15 pairs of labelled rows: 4 must, 11 cannot
ALL_PAIRS = {
    kind: [
        pair
        for pair in itertools.combinations([row for row, label in enumerate(LABELS) if label != -1], 2)
        if kind == "both" or (LABELS[pair[0]] == LABELS[pair[1]]) == (kind == "must")
    ]
    for kind in ("both", "must", "cannot")
}


@pytest.mark.parametrize("kind", ["both", "must", "cannot"])
def test_draws_are_distinct_pairs_of_the_right_kind(kind):
    for n_links in range(len(ALL_PAIRS[kind]) + 1):
        for seed in range(20):
            links = Links.from_labels(LABELS, n_links, kind=kind, random_state=seed)
            drawn = [tuple(pair) for pair in [*links.must.tolist(), *links.cannot.tolist()]]
            assert len(drawn) == len(set(drawn)) == n_links
            assert set(drawn) <= set(ALL_PAIRS[kind])
            assert all(LABELS[a] == LABELS[b] for a, b in links.must)
            assert all(LABELS[a] != LABELS[b] for a, b in links.cannot)


# One link and many: both ways to draw, with and without a list of all pairs.
@pytest.mark.parametrize("n_links", [1, 2, 3])
@pytest.mark.parametrize("kind", ["both", "must", "cannot"])
def test_every_set_of_pairs_is_equally_likely(kind, n_links):
    sets = {frozenset(chosen): 0 for chosen in itertools.combinations(ALL_PAIRS[kind], n_links)}
    random = np.random.RandomState(0)
    for _ in range(20 * len(sets)):
        links = Links.from_labels(LABELS, n_links, kind=kind, random_state=random)
        sets[frozenset(map(tuple, [*links.must.tolist(), *links.cannot.tolist()]))] += 1
    assert chisquare(list(sets.values())).pvalue > 0.001


@pytest.mark.parametrize("n_links", [2, 4])
def test_the_order_of_draws_is_random(n_links):
    firsts = dict.fromkeys(ALL_PAIRS["must"], 0)
    for seed in range(400):
        firsts[tuple(Links.from_labels(LABELS, n_links, kind="must", random_state=seed).must[0].tolist())] += 1
    assert chisquare(list(firsts.values())).pvalue > 0.001


@pytest.mark.parametrize("kind", ["both", "must", "cannot"])
def test_draws_from_a_million_rows(kind):
    y = np.random.default_rng(0).integers(-1, 4, size=1_000_000)  # 3e11 pairs: more than any list holds
    links = Links.from_labels(y, 20_000, kind=kind, random_state=1)
    assert links.n_must + links.n_cannot == 20_000
    assert links.distinct() == links
    for pairs, same in ((links.must, True), (links.cannot, False)):
        labels = y[pairs]
        assert (labels >= 0).all()
        assert ((labels[:, 0] == labels[:, 1]) == same).all()
    if kind == "both":
        assert 0.23 < links.n_must / 20_000 < 0.27  # four classes of equal size
    else:
        assert {"must": links.n_cannot, "cannot": links.n_must}[kind] == 0
    assert abs(links.points.mean() / 1_000_000 - 0.5) < 0.01  # all over the rows


def test_all_pairs_can_be_drawn():
    y = np.arange(300) % 3
    links = Links.from_labels(y, 300 * 299 // 2, random_state=0)
    assert links.closure() == Links.from_labels(y).closure()
    assert (links.n_must, links.n_cannot) == (3 * 100 * 99 // 2, 3 * 100 * 100)


def test_random_state():
    y = np.arange(50) % 5

    def draw(random_state):
        return Links.from_labels(y, 10, random_state=random_state)

    assert draw(3) == draw(3) == draw(np.random.RandomState(3))
    assert draw(3) != draw(4)
    assert draw(np.random.default_rng(3)) == draw(np.random.default_rng(3))
    for source in (np.random.RandomState(3), np.random.default_rng(3), None):
        assert draw(source) != draw(source)  # a source moves on
    with pytest.raises(ValueError, match="cannot be used to seed"):
        draw("seed")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_links": 16}, "n_links is 16, but the 6 labelled rows make 15 pairs: ask for at most 15"),
        (
            {"n_links": 5, "kind": "must"},
            "n_links is 5, .* make 4 must-link pairs: ask for at most 4",
        ),
        ({"n_links": 12, "kind": "cannot"}, "n_links is 12, .* make 11 cannot-link pairs: ask for at most 11"),
        ({"n_links": -1}, "n_links is -1: give a whole number of links, 0 or more"),
        ({"n_links": 2.0}, r"n_links is 2\.0: give a whole number"),
        ({"n_links": True}, "n_links is True: give a whole number"),
        ({"n_links": "all"}, "n_links is 'all': give a whole number"),
        ({"kind": "same"}, "kind is 'same': use 'both', 'must' or 'cannot'"),
        ({"y": [0, [1]]}, r"y\[1\] is \[1\]: give something hashable"),
        ({"y": np.zeros((3, 1))}, r"y has shape \(3, 1\): give a sequence"),
        ({"y": "labels"}, "y is 'labels': give a sequence"),
        ({"y": 3}, "y is 3: give a sequence"),
        ({"y": [], "n_links": 1}, "n_links is 1, but the 0 labelled rows make 0 pairs: ask for at most 0"),
    ],
)
def test_bad_labels(arguments, message):
    with pytest.raises(ValueError, match="^" + message):
        Links.from_labels(**{"y": LABELS, **arguments})


def test_relations_are_checked():
    with pytest.raises(ValueError, match=r"table has shape \(2, 3\): give one row and one column for each class"):
        Relation([(0, 1)], np.ones((2, 3)))
    with pytest.raises(ValueError, match=r"table holds -1\.0: give finite numbers of at least 0"):
        Relation([(0, 1)], [[1, -1], [0, 1]])
    with pytest.raises(ValueError, match="table is 0 everywhere"):
        Relation([(0, 1)], np.zeros((2, 2)))
    with pytest.raises(ValueError, match="links row 3 to itself"):
        Relation([(3, 3)], np.eye(2))
    with pytest.raises(ValueError, match=r"relations\[1\] is 'no'"):
        Links(relations=[Relation([(0, 1)], np.eye(2)), "no"])


def test_relations_go_where_the_links_go():
    relation = Relation([(4, 2), (2, 9)], [[3, 1], [0, 4]])
    links = Links(must=[(0, 1)], relations=[relation])
    assert links.points.tolist() == [0, 1, 2, 4, 9]
    assert repr(links) == "Links(1 must, 0 cannot, 2 related)"
    assert pickle.loads(pickle.dumps(links)) == links != Links(must=[(0, 1)])
    assert hash(pickle.loads(pickle.dumps(links))) == hash(links)
    part = links.restrict([2, 4, 7])
    assert part.relations[0].pairs.tolist() == [[1, 0]]
    assert part.relations[0].table.tolist() == [[0.375, 0.125], [0, 0.5]]
    assert links.restrict([0, 1]) == Links(must=[(0, 1)])
    assert links.union(links).distinct() == links
    assert links.components(10).tolist() == [0, 0, 1, 2, 1, 3, 4, 5, 6, 1]
    with pytest.raises(ValueError, match=r"relations\[0\].pairs\[1\] links row 9, but there are 5 rows"):
        links.check_rows(5)
    with pytest.raises(ValueError, match="no place in a table"):
        links.to_table()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SetRelation([(0, 1, 2)]), "either a table or a rule"),
        (lambda: SetRelation([(0, 1, 2)], np.ones((2, 2))), r"table has shape \(2, 2\) for sets of 3 rows"),
        (lambda: SetRelation([(0, 1)], np.ones((2, 3))), r"table has shape \(2, 3\) for sets of 2 rows"),
        (lambda: SetRelation([0, 1, 2], np.ones((2, 2, 2))), r"rows has shape \(3,\): give sets of row numbers"),
        (lambda: SetRelation([(0,)], np.ones(2)), r"rows has shape \(1, 1\)"),
        (lambda: SetRelation([(0, 1), (1, 2, 3)], np.ones((2, 2))), "sets of different sizes"),
        (lambda: SetRelation([(0.0, 1.0)], np.ones((2, 2))), "rows holds float64"),
        (lambda: SetRelation([(0, 1, 0)], np.ones((2, 2, 2))), r"rows\[0\] is \(0, 1, 0\), with a row twice"),
        (lambda: SetRelation([(0, -1)], np.ones((2, 2))), r"rows\[0\] is \(0, -1\): give row numbers from 0"),
        (lambda: SetRelation([range(18)], np.ones((2,) * 18)), r"have 2\^18 combinations .* at most 17 points"),
        (lambda: SetRelation([(0, 1)], np.ones((2, 2)), probability=0.5), "probability=0.5 goes with a rule"),
        (lambda: SetRelation([(0, 1)], rule="alike"), "rule='alike': use SetRelation.alike"),
        (lambda: SetRelation([(0, 1)], rule=Rule("odd", 1, 1)), "use SetRelation.alike"),
        (lambda: SetRelation.alike([(0, 1, 2)]), "give exactly, or bounds"),
        (lambda: SetRelation.alike([(0, 1, 2)], exactly=2, at_most=2), "give exactly, or bounds"),
        (
            lambda: SetRelation.alike([(0, 1, 2)], exactly=4),
            "exactly=4 for sets of 3 rows: give a whole number from 1 to 3",
        ),
        (lambda: SetRelation.alike([(0, 1, 2)], at_most=True), "at_most=True"),
        (lambda: SetRelation.classes([(0, 1, 2)], at_least=1), "always so: give narrower bounds"),
        (lambda: SetRelation.classes([(0, 1, 2)], at_least=3, at_most=2), "at least 3 and at most 2"),
        (lambda: SetRelation.classes([(0, 1)], exactly=1, probability=0.0), "probability=0.0: give a number above 0"),
        (lambda: SetRelation.classes([(0, 1)], exactly=1, probability="yes"), "probability='yes'"),
        (lambda: SetRelation.classes([(0, 1)], exactly=1, learn=True), "give a first guess below 1"),
        (lambda: SetRelation.classes([(0, 1)], exactly=1, learn="yes"), "learn='yes'"),
        (lambda: Relation([(0, 1)], np.eye(2), learn=True), "leaves no chance to labels that do not satisfy it"),
        (lambda: Relation([(0, 1)], np.ones((2, 2)), learn=True), "has nothing to learn"),
        (lambda: Relation([(0, 1)], np.eye(2), learn=1), "learn=1: give True or False"),
        (
            lambda: Links(relations=[SetRelation.alike([(0, 1, 7)], exactly=2)]).check_rows(5),
            r"relations\[0\].rows\[0\]",
        ),
    ],
)
def test_bad_relations_of_sets(make, message):
    with pytest.raises(ValueError, match=message):
        make()


RELATIONS = {
    "alike": SetRelation.alike([(4, 2, 0), (2, 9, 1)], exactly=2, probability=0.7, learn=True),
    "classes": SetRelation.classes([(4, 2, 0, 1)], at_most=2),
    "table": SetRelation.from_function([(4, 2, 0)], lambda a, b, c: 1 + a * b + c, n_classes=3, learn=True),
    "pairs": Relation([(4, 2)], [[3, 1], [1, 4]], learn=True),
}


@pytest.mark.parametrize("relation", RELATIONS.values(), ids=RELATIONS)
def test_relations_of_sets_are_values(relation):
    links = Links(must=[(0, 1)], relations=[relation])
    assert pickle.loads(pickle.dumps(links)) == links
    assert hash(pickle.loads(pickle.dumps(relation))) == hash(relation)
    assert all(relation != other for other in RELATIONS.values() if other is not relation)
    assert links.points.tolist() == sorted({0, 1, *relation.sets.ravel().tolist()})
    part = links.restrict([9, 4, 2, 0, 1])
    assert [[9, 4, 2, 0, 1][row] for row in part.relations[0].sets[0]] == relation.sets[0].tolist()
    assert part.restrict([2, 4]) == Links()
    assert links.without([2]) == Links(must=[(0, 1)])
    assert len(set(links.components(10)[relation.sets[0]].tolist())) == 1
    with pytest.raises(ValueError, match="read-only"):
        relation.sets[0, 0] = 3
    settled = relation.settled(0.6)
    assert not settled.learn
    n_classes = 3 if relation.table is None else len(relation.table)
    mine, wanted = settled.parts(n_classes), relation.parts(n_classes).table(0.6)
    np.testing.assert_allclose(mine.table(mine.probability), wanted, atol=1e-15)


def test_what_satisfies_a_rule():
    labels = np.array([[0, 0, 0], [0, 1, 0], [2, 1, 0]])
    assert Rule("alike", 2, 2).holds(labels).tolist() == [False, True, False]
    assert Rule("alike", 1, 2).holds(labels).tolist() == [False, True, True]
    assert Rule("classes", 1, 2).holds(labels).tolist() == [True, True, False]
    assert Rule("classes", 3, 3).holds(labels).tolist() == [False, False, True]
    assert [str(rule) for rule in (Rule("alike", 2, 2), Rule("classes", 1, 2), Rule("classes", 2, 3))] == [
        *("exactly 2 alike", "at most 2 classes", "2 to 3 classes"),
    ]
    assert Rule("alike", 1, 2).fewest_classes(5) == 3
    names = np.array([["a", "a", "b"]])
    assert Rule("alike", 2, 2).holds(names).tolist() == [True]


def test_whether_a_relation_knows_classes_by_number():
    assert not Relation([(0, 1)], [[2, 1], [1, 2]]).names_classes()
    assert Relation([(0, 1)], [[2, 1], [1, 3]]).names_classes()
    assert Relation([(0, 1)], [[2, 1], [0, 2]]).names_classes()
    assert not RELATIONS["alike"].names_classes()
    assert RELATIONS["table"].names_classes()


def test_groups():
    links = Links.from_groups(together=[[3, 1, 2], [7]], apart=[([3, 1], [5]), ([8], [9])])
    assert links.chunklets(10).tolist() == [0, 1, 1, 1, 2, 3, 4, 5, 6, 7]
    assert links.cannot.tolist() == [[3, 5], [1, 5], [8, 9]]
    assert Links.from_groups() == Links()
    for bad, message in (
        ([[1, 1]], r"together\[0\] holds row 1 more than once"),
        ([[]], r"together\[0\] is \[\]: give a list of row numbers"),
        ([[0.5]], "give a list of row numbers"),
        ([[-1, 2]], "give a list of row numbers"),
    ):
        with pytest.raises(ValueError, match=message):
            Links.from_groups(together=bad)
    with pytest.raises(ValueError, match=r"apart\[0\] has row 2 in both groups"):
        Links.from_groups(apart=[([1, 2], [2, 3])])


@given(st.lists(st.sampled_from(["tax", "bank", -1, None, float("nan")]), max_size=N_ROWS))
def test_rows_of_one_source_are_apart(column):
    links = Links.apart_within(column)
    pairs = itertools.combinations(range(len(column)), 2)
    same = {(a, b) for a, b in pairs if column[a] is not None and column[a] == column[b]}
    assert len(links.cannot) == len(same)
    assert {tuple(pair) for pair in links.cannot.tolist()} == same
    assert links.n_must == 0
    assert links.cannot_chosen is None or links.cannot_chosen.all()  # they are no random pairs


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["x", None, "x"], index=[7, 8, 9]),
        pd.Series(["x", None, "x"], dtype="category"),
        pd.Series([-1, None, -1], dtype="Int64"),
        pl.Series([5, None, 5]),
        np.array([-1.0, np.nan, -1.0]),
        iter([("a", 1), pd.NaT, ("a", 1)]),
    ],
)
def test_sources_of_many_types(column):
    assert Links.apart_within(column).cannot.tolist() == [[0, 2]]


def test_sources_that_cannot_be_used():
    many = ["unknown"] * 4473 + ["tax"] * 3
    message = (
        "column would make 10,001,631 cannot-links, more than 10,000,000, and 'unknown' alone stands in 4,473 rows"
    )
    with pytest.raises(ValueError, match=f"{message}: write None"):
        Links.apart_within(many)
    assert Links.apart_within(many[1:4473]).n_cannot == 4472 * 4471 // 2
    with pytest.raises(ValueError, match=r"column\[1\] is \[\]: give something hashable"):
        Links.apart_within(["x", []])
    with pytest.raises(ValueError, match="column is 'tax': give a sequence with one entry per row"):
        Links.apart_within("tax")


def test_at_most_lowers_every_confidence(full):
    lowered = full.at_most(0.7)
    assert lowered.must_confidence.max() <= 0.7
    assert np.array_equal(lowered.must, full.must)
    assert lowered.at_most(1) == lowered
    assert Links(must=[(0, 1)]).at_most(0.9).must_confidence.tolist() == [0.9]
    named = Links([(0, 1), (1, 2)], [(3, 4)], must_annotators=["a", "b"], must_confidence=[0.5, 0.9])
    assert named.at_most({"a": 0.6, "b": 0.7}).must_confidence.tolist() == [0.5, 0.7]
    assert named.at_most({"a": 0.6}).cannot_confidence.tolist() == [1.0]
    assert named.at_most({None: 0.8}).cannot_confidence.tolist() == [0.8]  # links without a name
