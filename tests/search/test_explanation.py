"""Why two points are together: against densities by hand, and against the closure of links."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.datasets import load_iris

from linkmix import LinkMixture, Links
from linkmix.densities import Gaussian
from linkmix.links.forcing import forcing_links
from linkmix.search.explanation import explain

X, Y = load_iris(return_X_y=True)


def log_odds_by_hand(model, pair, columns):
    """Log-odds of one class from some of the columns alone, by SciPy."""
    p = np.array(
        [
            [
                weight * multivariate_normal(mean[0][columns], covariance[0][np.ix_(columns, columns)]).pdf(x[columns])
                for weight, mean, covariance in zip(model.class_weights_, model.means_, model.covariances_, strict=True)
            ]
            for x in pair
        ]
    )
    p /= p.sum(axis=1, keepdims=True)
    same = (p[0] * p[1]).sum()
    return np.log(same) - np.log(1 - same)


@pytest.mark.parametrize("rows", [(55, 120), (70, 133), (60, 80), (106, 75)])
def test_a_column_counts_as_much_as_is_lost_without_it(rows):
    model = LinkMixture(3, random_state=0).fit(X, links=Links.from_labels(Y, 20, random_state=0))
    pair = X[list(rows)]
    found = explain(model, pair)
    everything = log_odds_by_hand(model, pair, [0, 1, 2, 3])
    assert found.together == pytest.approx(1 / (1 + np.exp(-everything)))
    for j in range(4):
        others = [column for column in range(4) if column != j]
        assert found.drives[j] == pytest.approx(everything - log_odds_by_hand(model, pair, others), abs=1e-6)


class Complete(Gaussian):
    """A density that needs all values."""

    allows_missing = False


def test_a_model_that_needs_all_values_does_not_say_which_count():
    model = LinkMixture(2, density=Complete(), random_state=0).fit(X)
    assert explain(model, X[:2]).drives is None


def test_points_that_are_surely_together_have_finite_drives():
    model = LinkMixture(2, random_state=0).fit(np.vstack([X, X + 1000]))
    assert np.isfinite(explain(model, X[[0, 1]]).drives).all()
    assert np.isfinite(explain(model, np.vstack([X[0], X[1] + 1000])).drives).all()


@pytest.mark.parametrize("seed", range(40))
def test_links_force_what_their_closure_says(seed):
    rng = np.random.default_rng(seed)
    pairs = np.array([(a, b) for a in range(9) for b in range(a + 1, 9)])
    links = Links.from_labels(rng.integers(3, size=9), 7, random_state=seed)
    closure = links.closure()
    together, apart = (set(map(tuple, kind.tolist())) for kind in (closure.must, closure.cannot))
    given = {tuple(pair): True for pair in links.must.tolist()} | {tuple(pair): False for pair in links.cannot.tolist()}
    for a, b in pairs.tolist():
        found = forcing_links(links, a, b)
        if found is None:
            assert (a, b) not in together | apart
            continue
        is_together, way = found
        assert (a, b) in (together if is_together else apart)
        assert (way[0][0], way[-1][1]) == (a, b)
        assert [end for _, end, _ in way[:-1]] == [start for start, _, _ in way[1:]]
        assert all(given[min(one, other), max(one, other)] == is_must for one, other, is_must in way)
        assert sum(not is_must for _, _, is_must in way) == (not is_together)


def test_uncertain_links_force_nothing():
    assert forcing_links(Links(must=[(0, 1)], must_confidence=0.9), 0, 1) is None
