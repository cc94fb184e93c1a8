"""Why two points are together: against densities by hand, and against the closure of links."""

from itertools import combinations
from math import comb

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax
from scipy.stats import multivariate_normal
from sklearn.datasets import load_iris, load_wine
from sklearn.preprocessing import StandardScaler

from linkmix import AutoLinkMixture, LinkMixture, Links
from linkmix.densities import Gaussian
from linkmix.links.forcing import forcing_links
from linkmix.search.explanation import explain

X, Y = load_iris(return_X_y=True)


def log_odds_by_hand(model, pair, columns, temperature=1.0):
    """Log-odds of one class from some of the columns alone, by SciPy."""
    p = np.array(
        [
            [
                np.log(weight)
                + multivariate_normal(mean[0][columns], covariance[0][np.ix_(columns, columns)]).logpdf(x[columns])
                if columns
                else np.log(weight)
                for weight, mean, covariance in zip(model.class_weights_, model.means_, model.covariances_, strict=True)
            ]
            for x in pair
        ]
    )
    p = softmax(p / temperature, axis=1)
    same = (p[0] * p[1]).sum()
    return np.log(same) - np.log(1 - same)


def shapley_by_hand(value, n_columns):
    """Shapley values by their definition: a weighted sum over all sets of the other columns."""
    found = np.zeros(n_columns)
    for j in range(n_columns):
        others = [column for column in range(n_columns) if column != j]
        for size in range(n_columns):
            weight = 1 / (n_columns * comb(n_columns - 1, size))
            for some in combinations(others, size):
                found[j] += weight * (value(sorted((*some, j))) - value(list(some)))
    return found


@pytest.mark.parametrize("rows", [(55, 120), (70, 133), (60, 80), (106, 75)])
def test_columns_add_up_to_the_log_odds(rows):
    model = LinkMixture(3, random_state=0).fit(X, links=Links.from_labels(Y, 20, random_state=0))
    pair = X[list(rows)]
    found = explain(model, pair)
    assert found.together == pytest.approx(1 / (1 + np.exp(-log_odds_by_hand(model, pair, [0, 1, 2, 3]))))
    assert found.prior == pytest.approx(log_odds_by_hand(model, pair, []))
    expected = shapley_by_hand(lambda columns: log_odds_by_hand(model, pair, columns), 4)
    np.testing.assert_allclose(found.drives, expected, atol=1e-6)
    assert found.prior + found.drives.sum() == pytest.approx(np.log(found.together / (1 - found.together)))


class AtTemperature:
    """A mixture whose log-densities are divided by a temperature, as calibration does."""

    def __init__(self, model, temperature):
        self.model, self.temperature = model, temperature

    def predict_proba(self, points):
        return softmax(self.model.predict_log_joint(points) / self.temperature, axis=1)

    def __sklearn_tags__(self):
        return self.model.__sklearn_tags__()


def test_columns_add_up_at_a_temperature():
    model = LinkMixture(3, random_state=0).fit(X, links=Links.from_labels(Y, 20, random_state=0))
    pair = X[[70, 133]]
    found = explain(AtTemperature(model, 3.0), pair)
    expected = shapley_by_hand(lambda columns: log_odds_by_hand(model, pair, columns, 3.0), 4)
    np.testing.assert_allclose(found.drives, expected, atol=1e-6)


@pytest.mark.parametrize("committee", [1, 3])
def test_calibrated_probabilities_of_many_columns_add_up(committee):
    wine, cultivar = load_wine(return_X_y=True)
    links = Links.from_labels(cultivar, 20, random_state=0)
    model = AutoLinkMixture(3, budget="small", committee=committee, random_state=0).fit(wine, links=links)
    assert model.temperatures_[0] > 1
    pair = wine[[158, 20]].copy()
    pair[:, 4] = np.nan
    found = explain(model, pair)
    p = model.predict_proba(pair)
    assert found.together == pytest.approx(p[0] @ p[1])
    assert found.prior + found.drives.sum() == pytest.approx(np.log(found.together / (1 - found.together)))
    assert found.drives[4] == 0  # missing anyway


def test_drawn_orders_come_close_to_all_of_them():
    """Seven columns: beyond what is enumerated."""
    wine, cultivar = load_wine(return_X_y=True)
    wine = StandardScaler().fit_transform(wine[:, [0, 1, 6, 9, 10, 11, 12]])
    model = LinkMixture(3, random_state=0).fit(wine, links=Links.from_labels(cultivar, 20, random_state=0))
    pair = wine[[61, 140]]
    drawn = explain(model, pair).drives
    expected = shapley_by_hand(lambda columns: log_odds_by_hand(model, pair, columns), 7)
    np.testing.assert_allclose(drawn, expected, atol=0.1 * np.abs(expected).max())


class Complete(Gaussian):
    """A density that needs all values."""

    allows_missing = False


def test_a_model_that_needs_all_values_does_not_say_which_count():
    model = LinkMixture(2, density=Complete(), random_state=0).fit(X)
    found = explain(model, X[:2])
    assert found.prior is None
    assert found.drives is None


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


@pytest.mark.parametrize("kind", [LinkMixture, AutoLinkMixture])
def test_a_data_frame_is_explained_as_its_numbers(kind):
    """Warnings are errors here: names of columns must not be lost on the way."""
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    settings = {"budget": "small", "calibrate": False} if kind is AutoLinkMixture else {}
    named, plain = (kind(3, random_state=0, **settings).fit(points) for points in (frame, X))
    found, expected = explain(named, frame.iloc[[3, 120]]), explain(plain, X[[3, 120]])
    np.testing.assert_allclose(found.drives, expected.drives, rtol=1e-9)
    assert found.together == pytest.approx(expected.together)


def test_a_table_is_explained_by_its_own_columns():
    days = pd.date_range("2024-01-01", periods=150, freq="D")
    table = pd.DataFrame({"hue": np.array(["red", "green", "blue"])[Y], "size": X[:, 2], "day": days})
    model = AutoLinkMixture(3, budget="small", calibrate=False, random_state=0).fit(table)
    found = explain(model, table.iloc[[3, 120]])
    assert found.drives.shape == (len(model.feature_names_in_),)
    assert found.prior + found.drives.sum() == pytest.approx(found.log_odds)
    by_name = dict(zip(model.feature_names_in_, found.drives, strict=True))
    assert min(by_name, key=by_name.get) in ("size", "hue", "day")
    assert by_name["size"] < -1
