"""Columns of noise: against SciPy's tests, and on columns whose dependence is known."""

import numpy as np
import pytest
from scipy.stats import kruskal, mannwhitneyu, norm, rankdata
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.decomposition import PCA

from linkmix.data.dependence import _groups, _of_unit_length, divided, told_by_links, unrelated
from linkmix.data.scaling import CALM, COMPONENTS, PLAIN, scalings, unrelated_columns
from linkmix.search.settings import SETTINGS

CHANCE, LUMPS = SETTINGS.unrelated, SETTINGS.lumps


def noise(n, d, seed=0, kind="normal"):
    return getattr(np.random.default_rng(seed), kind)(size=(n, d))


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
@pytest.mark.parametrize("kind", ["normal", "uniform", "standard_exponential"])
def test_noise_is_found_among_real_columns(load, kind):
    X, _ = load(return_X_y=True)
    d = X.shape[1]
    found = unrelated(np.c_[X, noise(len(X), 30, kind=kind)], CHANCE, LUMPS)
    assert not found[:d].any()
    assert found[d:].sum() >= 29


def test_noise_is_kept_as_often_as_chance_says():
    kept = 0
    for seed in range(40):
        X = noise(300, 20, seed)
        X[:, 1] = X[:, 0] + 0.5 * X[:, 1]
        kept += np.count_nonzero(~unrelated(X, 0.05, LUMPS)[2:])
    assert 5 <= kept <= 60  # of 720; 36 are expected, fewer since the tests of a column are not independent


@pytest.mark.parametrize("seed", range(5))
def test_strength_is_that_of_rank_correlations(seed):
    random = np.random.default_rng(seed)
    x, y, z = random.normal(size=(3, 19))  # too few rows for groups
    X = np.c_[x, 3 * x + 0.1 * y, np.round(z + 0.3 * x, 1)]
    ranks = [rankdata(column) for column in X.T]
    both = [(rank, np.abs(rank - rank.mean())) for rank in ranks]
    strongest = max(abs(correlation(a, b)) for other in both[:2] for a in other for b in both[2])
    p = 2 * norm.sf(strongest * np.sqrt(18)) * 4 * 2  # four tests with each of two other columns
    assert not unrelated(X, 1.01 * p, 1.1)[2]
    assert unrelated(X, 0.99 * p, 1.1)[2] == (group_p(X) > 0.99 * p / 2)


def group_p(X):
    """The smaller p-value of Kruskal's tests of the third column between the groups by the other two."""
    groups = _groups(_of_unit_length(np.apply_along_axis(rankdata, 0, X[:, :2])))
    rank = rankdata(X[:, 2])
    folded = np.abs(rank - rank.mean())
    return min(kruskal(*(values[groups == g] for g in np.unique(groups))).pvalue for values in (rank, folded))


def correlation(ranks, others):
    return np.corrcoef(ranks, others)[0, 1]


def test_a_column_that_falls_and_rises_with_another_one_is_related():
    x, e, other = noise(400, 3).T
    assert unrelated(np.c_[x, x**2 + 0.3 * e, other], CHANCE, LUMPS).tolist() == [False, False, True]


def test_a_column_may_depend_on_two_others_together():
    a, b, e, more, other = noise(600, 5).T
    corner = np.arange(600) % 4  # of a square; the third column tells opposite corners from the others
    x, y = 2 * (corner > 1) + 0.2 * a, 2.0 * (corner % 2) + 0.2 * b
    X = np.c_[x, y, np.isin(corner, [0, 3]) + e, other, x + more]
    assert np.abs(np.corrcoef(X.T)[2, [0, 1, 4]]).max() < 0.1
    assert unrelated(X, CHANCE, LUMPS).tolist() == [False, False, False, True, False]


def test_without_dependent_columns_nothing_is_left_out():
    assert not unrelated(noise(500, 12), CHANCE, LUMPS).any()


def test_few_principal_components_are_never_noise():
    random = np.random.default_rng(0)
    labels = random.integers(3, size=2500)
    X = 3 * random.normal(size=(3, 6))[labels] + random.normal(size=(2500, 6))
    for n, found in ((600, False), (2500, True)):
        Z = PCA(random_state=0).fit_transform(X[:n])
        assert not unrelated(Z, CHANCE, LUMPS)[:2].any()
        assert unrelated(Z, CHANCE, LUMPS).any() == found
    # Columns that are as correlated as by chance are no components.
    assert unrelated(np.c_[X[:600, :2], noise(600, 4)], CHANCE, LUMPS)[2:].all()


def test_two_lumps_and_rare_values_are_not_noise():
    x, e, two, rare, plain = noise(400, 5).T
    X = np.c_[x, x + e, two + 4 * np.sign(two), np.maximum(rare - 1, 0), plain]
    assert unrelated(X, CHANCE, LUMPS).tolist() == [False, False, False, False, True]


def test_categories_relate_columns_and_are_never_noise():
    x, other = noise(400, 2).T
    code = np.arange(400) % 3.0
    assert not unrelated(np.c_[x, other], CHANCE, LUMPS).any()
    X = np.c_[x + (code == 1), other, code, np.arange(400) % 5]
    X[::7, 2] = np.nan
    assert unrelated(X[:, :2], CHANCE, LUMPS, X[:, 2:]).tolist() == [False, True]
    assert unrelated_columns(X, SETTINGS, 2).tolist() == [False, True, False, False]
    view = scalings(X, SETTINGS, 2, unrelated_columns(X, SETTINGS, 2))[PLAIN]
    assert (view.scale > 0).tolist() == [True, False, True, True]
    assert not unrelated_columns(X[:, 2:], SETTINGS, 2).any()


def test_gaps_and_constant_columns():
    X = noise(300, 5)
    X[:, 1] += 2 * X[:, 0]
    X[:, 3] = 7.0
    X[::3, [0, 2]] = np.nan
    X[:, 4] = np.nan
    assert unrelated(X, CHANCE, LUMPS).tolist() == [False, False, True, False, False]


def test_the_best_threshold_is_that_of_all_thresholds():
    values = np.r_[noise(30, 1).ravel(), 5 + noise(20, 1, 1).ravel()]
    ordered = np.sort(values)
    shares = [
        1 - (cut * ordered[:cut].var() + (50 - cut) * ordered[cut:].var()) / (50 * values.var()) for cut in range(5, 46)
    ]
    assert divided(values) == pytest.approx(max(shares))


@pytest.mark.parametrize("seed", range(8))
def test_links_tell_as_the_rank_sum_test_does(seed):
    random = np.random.default_rng(seed)
    together = np.abs(random.normal(size=(14, 6))).round(1)
    apart = np.abs(random.normal(size=(21, 6)) + np.linspace(0, 3, 6)).round(1)
    p = mannwhitneyu(together, apart, alternative="less", use_continuity=False, method="asymptotic").pvalue
    for chance in (0.3, 0.05, 0.01):
        np.testing.assert_array_equal(told_by_links(together, apart, chance), p < chance)


def test_links_of_one_kind_tell_nothing():
    assert not told_by_links(np.zeros((0, 2)), np.ones((5, 2)), 0.01).any()
    assert not told_by_links(np.zeros((5, 2)), np.ones((0, 2)), 0.01).any()


def test_few_rows_or_very_many_columns_are_left_as_they_are():
    X = noise(300, 6)
    X[:, 1] += 5 * X[:, 0]
    assert unrelated_columns(X, SETTINGS).tolist() == [False, False, True, True, True, True]
    assert not unrelated_columns(X[: SETTINGS.enough_rows - 1], SETTINGS).any()
    assert not unrelated_columns(np.tile(X, (1, 200)), SETTINGS).any()


def test_left_out_columns_are_in_no_view():
    X = np.exp(noise(300, 4))
    out = np.array([False, True, False, False])
    views = scalings(X, SETTINGS, left_out=out)
    assert list(views) == [PLAIN, CALM]
    for view in views.values():
        np.testing.assert_array_equal(view.scale == 0, out)
    wide = noise(300, 60)
    (view,) = (found := scalings(wide, SETTINGS, left_out=np.arange(60) == 3)).values()
    assert list(found) == [COMPONENTS]
    assert (view.components[:, 3] == 0).all()
    assert list(scalings(wide, SETTINGS, left_out=np.arange(60) >= 50)) == [PLAIN]
