"""COPKMeans: no link is broken, or the error names the links that could not be satisfied."""

import itertools

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import check_estimator

from linkmix import Links, links_satisfied
from linkmix.basics.errors import InfeasibleLinks, LinkConflict
from linkmix.rivals import cop_kmeans
from linkmix.rivals.cop_kmeans import COPKMeans

N_ROWS = 8
pairs_of_rows = st.tuples(st.integers(0, N_ROWS - 1), st.integers(0, N_ROWS - 1)).filter(
    lambda pair: pair[0] != pair[1]
)
lists_of_pairs = st.lists(pairs_of_rows, max_size=7)
points = arrays(np.float64, (N_ROWS, 2), elements=st.integers(-20, 20).map(float))


@st.composite
def consistent_links(draw):
    links = Links(draw(lists_of_pairs), draw(lists_of_pairs))
    assume(not links.conflicts())
    return links


def meets(links, labels):
    return links_satisfied(labels, links) == 1.0


def pairs_of(links):
    """The links, without the order of their ends."""
    return {
        (kind, min(pair), max(pair))
        for kind, pairs in (("must", links.must), ("cannot", links.cannot))
        for pair in pairs.tolist()
    }


def can_be_met(links, n_classes):
    return any(meets(links, labels) for labels in itertools.product(range(n_classes), repeat=N_ROWS))


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@given(points, consistent_links(), st.sampled_from([2, 3]), st.sampled_from([1, 4]), st.integers(0, 99))
def test_no_link_is_broken_or_the_error_names_what_could_not_be_met(X, links, n_classes, n_init, seed):
    model = COPKMeans(n_classes, n_init=n_init, random_state=seed)
    error = None
    try:
        labels = model.fit(X, links=links).labels_
    except InfeasibleLinks as raised:
        error = raised
    if error is None:
        assert can_be_met(links, n_classes)
        assert meets(links, labels)
        assert meets(links.closure(), labels)
        assert len(set(labels)) <= n_classes
        assert np.isfinite(model.cluster_centers_).all()
    else:
        row = int(str(error).split()[1])
        assert f"any of the {n_classes} classes" in str(error)
        assert pairs_of(error.links) <= pairs_of(links)
        # By the named links alone, as many chunklets as there are classes are kept apart from the row.
        chunklet = error.links.chunklets(N_ROWS)
        ends = chunklet[error.links.cannot]
        assert (ends == chunklet[row]).any(axis=1).all()
        assert len(set(ends.ravel().tolist()) - {int(chunklet[row])}) == error.links.n_cannot == n_classes


@given(points, consistent_links(), st.permutations(range(N_ROWS)))
def test_one_step_by_brute_force(X, links, order):
    """Each row goes to the nearest centre that breaks no link of the closure with the rows before it."""
    distances = ((X[:, None] - X[None, :3]) ** 2).sum(axis=2)
    closed = links.closure()
    must, cannot = (set(map(tuple, np.concatenate([p, p[:, ::-1]]).tolist())) for p in (closed.must, closed.cannot))
    expected: dict[int, int] = {}
    stuck = None
    linked = set(closed.points.tolist())
    rows = [i for i in order if i in linked]
    for i in rows:
        allowed = [
            m
            for m in range(3)
            if all(expected[j] == m for j in expected if (i, j) in must)
            and all(expected[j] != m for j in expected if (i, j) in cannot)
        ]
        if not allowed:
            stuck = i
            break
        expected[i] = min(allowed, key=lambda m: distances[i, m])
    apart = cop_kmeans.Apart.of(links, N_ROWS)
    if stuck is not None:
        with pytest.raises(cop_kmeans.Stuck) as error:
            cop_kmeans.place(distances, apart, np.array(rows, dtype=np.int64))
        assert error.value.row == stuck
    else:
        labels = cop_kmeans.place(distances, apart, np.array(rows, dtype=np.int64))
        for i in range(N_ROWS):
            assert labels[i] == expected.get(i, distances[i].argmin())


def test_without_links_it_is_k_means(iris):
    X, _ = iris
    model = COPKMeans(3, init=X[[0, 50, 100]]).fit(X)
    reference = KMeans(3, init=X[[0, 50, 100]], n_init=1, tol=0, algorithm="lloyd").fit(X)
    np.testing.assert_array_equal(model.labels_, reference.labels_)
    assert model.inertia_ == pytest.approx(reference.inertia_, rel=1e-12)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert model.converged_


def test_links_help(iris):
    X, y = iris
    links = Links.from_labels(y, 100, random_state=0)
    found = COPKMeans(3, n_init=10, random_state=0).fit(X, links=links)
    assert meets(links, found.labels_)
    alone = adjusted_rand_score(y, COPKMeans(3, n_init=10, random_state=0).fit(X).labels_)
    assert adjusted_rand_score(y, found.labels_) > alone


def test_more_runs_find_what_one_misses():
    # Rows 0 and 1 are near, and row 2 keeps both from the class that they choose differently: order matters.
    X = np.array([[0.0], [10.0], [5.0]])
    links = Links(cannot=[(0, 2), (1, 2)])
    with pytest.raises(InfeasibleLinks, match="row 2 cannot go to any of the 2 classes"):
        COPKMeans(2, init=[[0.0], [10.0]]).fit(X, links=links)
    model = COPKMeans(2, init=[[0.0], [10.0]], n_init=20, random_state=0).fit(X, links=links)
    assert meets(links, model.labels_)


def test_the_error_names_rows_and_links():
    links = Links(must=[(3, 4)], cannot=[(0, 1), (1, 3), (4, 0)])
    with pytest.raises(InfeasibleLinks) as error:
        COPKMeans(2, init=[[0.0], [4.0]]).fit(np.arange(5.0)[:, None], links=links)
    assert str(error.value) == (
        "row 3 cannot go to any of the 2 classes: rows 4 and 0 cannot link (class 0), rows 3 and 1 cannot link "
        "(class 1), through 1 must-links; 1 run ended at such a row: raise n_init to try more orders of the points, "
        "drop links, or raise n_classes"
    )
    assert error.value.links == Links(must=[(3, 4)], cannot=[(4, 0), (3, 1)])


def test_clashing_links_are_refused_at_the_door():
    with pytest.raises(LinkConflict, match="rows 0 and 2 must link"):
        COPKMeans().fit(np.eye(4), links=Links(must=[(0, 1), (1, 2)], cannot=[(0, 2)]))


def test_uncertain_links_are_refused():
    with pytest.raises(ValueError, match=r"takes every link as certain, but a must-link has confidence 0\.5"):
        COPKMeans().fit(np.eye(4), links=Links(must=[(0, 1)], must_confidence=0.5))


def test_the_iteration_cap_warns(iris):
    X, _ = iris
    with pytest.warns(ConvergenceWarning, match="max_iter=1 steps: raise max_iter"):
        model = COPKMeans(3, max_iter=1, random_state=0).fit(X)
    assert not model.converged_
    assert model.n_iter_ == 1


def test_the_same_seed_gives_the_same_classes(iris):
    X, y = iris
    links = Links.from_labels(y, 30, random_state=1)
    first, second = (COPKMeans(3, n_init=3, random_state=7).fit(X, links=links) for _ in range(2))
    np.testing.assert_array_equal(first.labels_, second.labels_)


def test_check_estimator():
    check_estimator(COPKMeans(), on_skip=None, on_fail="raise")


def test_predict_before_fit():
    with pytest.raises(NotFittedError):
        COPKMeans().predict(np.eye(3))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"n_init": 0}, r"'n_init' parameter of COPKMeans must be an int in the range \[1, inf\)\. Got 0"),
        ({"max_iter": 0}, r"'max_iter' parameter of COPKMeans must be an int in the range \[1, inf\)\. Got 0"),
        ({"max_iter": 2.5}, r"'max_iter' parameter of COPKMeans must be an int .* Got 2\.5 instead"),
        ({"init": np.eye(3)}, r"init has shape \(3, 3\): give one centre per class, shape \(2, 5\)"),
        ({"init": np.full((2, 5), np.nan)}, "init contains NaN"),
        ({"n_classes": 9}, "n_samples=5 is less than n_classes=9"),
    ],
)
def test_bad_settings(settings, words):
    with pytest.raises(ValueError, match=words):
        COPKMeans(**settings).fit(np.eye(5))
