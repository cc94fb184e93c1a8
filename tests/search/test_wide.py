"""Data with many columns: AutoLinkMixture sees principal components, and predicts from the columns as they came."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score

from linkmix import AutoLinkMixture, Links
from linkmix.data.blocks import Blocks, Door
from linkmix.data.scaling import COMPONENTS, PLAIN, scalings, unrelated_columns
from linkmix.engine.fitting import Knowledge
from linkmix.search.explanation import explain
from linkmix.search.settings import SETTINGS
from linkmix.search.winner import views_of

N, D = 240, 90


def wide(seed=0, units=1.0, n=N):
    """Three classes that differ in a few directions of many columns; one column is constant."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    X = (2 * rng.normal(size=(3, 4))[y] + rng.normal(size=(n, 4))) @ rng.normal(size=(4, D)) + rng.normal(size=(n, D))
    X[:, 7] = 3.0
    return X * units, y


X, Y = wide()
LINKS = Links.from_labels(Y, 40, random_state=0)


@pytest.fixture(scope="module")
def fitted():
    return AutoLinkMixture(3, budget="small", random_state=0).fit(X, links=LINKS)


@pytest.mark.parametrize("units", [1.0, 10.0 ** np.linspace(-5, 5, D)], ids=["alike", "mixed units"])
def test_the_view_is_the_principal_components(units):
    points, _ = wide(units=units)
    (scaling,) = scalings(points, SETTINGS).values()
    used = np.arange(D) != 7
    alike = np.ndim(units) == 0
    columns = points[:, used] if alike else points[:, used] / points[:, used].std(axis=0)
    pca = PCA(SETTINGS.n_components).fit(columns)
    expected = pca.transform(columns)
    Z = scaling(points)
    np.testing.assert_allclose(np.abs(Z), np.abs(expected / expected.std(axis=0, ddof=1)), rtol=0, atol=1e-6)
    own = scaling.on_one_scale(points)
    np.testing.assert_allclose(own / own[:, :1].std(), Z * expected.std(axis=0) / expected[:, 0].std(), atol=0.02)
    # With one Gaussian, the density is that of probabilistic principal components.
    log_density = multivariate_normal(cov=np.eye(Z.shape[1])).logpdf(Z) + scaling.log_slope(points)
    slope = 0.0 if alike else np.log(points[:, used].std(axis=0)).sum()
    np.testing.assert_allclose(log_density, pca.score_samples(columns) - slope, rtol=0, atol=1e-5)


def test_few_columns_and_few_rows_are_seen_as_they_are():
    assert PLAIN in scalings(X[:, : SETTINGS.most_columns], SETTINGS)
    assert PLAIN in scalings(X[: SETTINGS.n_components], SETTINGS)
    assert [*scalings(X, SETTINGS)] == [COMPONENTS]


def test_the_classes_are_found_and_it_is_said_how(fitted):
    assert adjusted_rand_score(Y, fitted.predict(X)) > 0.8
    assert set(fitted.leaderboard_["columns"]) == {COMPONENTS}
    assert fitted.components_.shape == (SETTINGS.n_components, D)
    assert fitted.noise_variance_ > 0
    assert fitted.best_estimator_.n_features_in_ == SETTINGS.n_components
    np.testing.assert_array_equal(fitted.components_[:, 7], 0)


@pytest.mark.parametrize("in_blocks", [False, True], ids=["array", "table"])
def test_components_that_are_noise_are_left_out_unless_links_need_them(in_blocks):
    X, y = wide(n=2400)
    points = Blocks([X[:100], X[100:]]).enter(Door([np.float64], True, lambda X: None)) if in_blocks else X
    first = scalings(points, SETTINGS)[COMPONENTS]
    noise = unrelated_columns(first(X), SETTINGS)
    assert not noise[:2].any()  # in which the classes differ
    assert noise.sum() > 10
    kept = views_of(Knowledge(points, Links.from_labels(y, 40, random_state=0)), SETTINGS)[COMPONENTS]
    assert 2 <= len(kept.components) < SETTINGS.n_components
    # Links that follow the last component alone.
    last = int(np.flatnonzero(noise)[-1])
    told = Links.from_labels(np.argsort(np.argsort(first(X)[:, last])) // 800, 200, random_state=0)
    needed = views_of(Knowledge(points, told), SETTINGS)[COMPONENTS]
    assert (needed.components == first.components[last]).all(axis=1).any()


def test_without_some_components_the_density_is_that_of_fewer_components():
    scaling = scalings(X, SETTINGS)[COMPONENTS].without(np.arange(SETTINGS.n_components) >= 3)
    used = np.arange(D) != 7
    pca = PCA(3).fit(X[:, used])
    Z = scaling(X)
    assert Z.shape == (N, 3)
    log_density = multivariate_normal(cov=np.eye(3)).logpdf(Z) + scaling.log_slope(X)
    np.testing.assert_allclose(log_density, pca.score_samples(X[:, used]), rtol=0, atol=1e-5)


def test_few_columns_have_no_components():
    model = AutoLinkMixture(3, budget="small", random_state=0).fit(X[:, :5], links=LINKS)
    assert model.components_ is None
    assert model.noise_variance_ == 0


def test_units_change_the_density_by_their_logarithm_alone(fitted):
    other = AutoLinkMixture(3, budget="small", random_state=0).fit(8 * X, links=LINKS)  # a power of two: the same bits
    np.testing.assert_array_equal(other.predict(8 * X), fitted.predict(X))
    gap = fitted.score_samples(X) - other.score_samples(8 * X)
    np.testing.assert_allclose(gap, (D - 1) * np.log(8), rtol=0, atol=1e-6)


def test_a_missing_value_counts_as_the_mean_of_its_column(fitted):
    gaps, means = X[:30].copy(), X[:30].copy()
    gaps[:, ::3] = np.nan
    means[:, ::3] = X.mean(axis=0)[::3]
    np.testing.assert_allclose(fitted.predict_proba(gaps), fitted.predict_proba(means), rtol=0, atol=1e-9)
    assert np.isfinite(fitted.score_samples(gaps)).all()
    nothing = fitted.predict_proba(np.full((1, D), np.nan))
    weights = np.log(fitted.best_estimator_.class_weights_) / fitted.temperatures_[0]
    np.testing.assert_allclose(nothing[0], np.exp(weights) / np.exp(weights).sum(), rtol=0, atol=1e-9)


def test_contributions_are_of_the_columns_as_they_came(fitted):
    pair = explain(fitted, X[[0, np.flatnonzero(Y[0] != Y)[0]]])
    assert pair.drives.shape == (D,)
    assert pair.prior + pair.drives.sum() == pytest.approx(pair.log_odds)
    assert pair.drives[7] == pytest.approx(0, abs=1e-9)  # it is constant


def test_a_model_file_keeps_the_components(fitted, tmp_path):
    fitted.save(tmp_path / "wide.linkmix")
    loaded = AutoLinkMixture.load(tmp_path / "wide.linkmix")
    np.testing.assert_array_equal(loaded.predict_proba(X), fitted.predict_proba(X))
    np.testing.assert_array_equal(loaded.score_samples(X), fitted.score_samples(X))


def test_several_threads_change_no_digit():
    links = Links.from_labels(Y, 40, random_state=1)
    one, two = (AutoLinkMixture(3, n_jobs=n, random_state=0).fit(X[:, :6], links=links) for n in (None, 2))
    np.testing.assert_array_equal(one.predict_proba(X[:, :6]), two.predict_proba(X[:, :6]))
    for column in one.leaderboard_.dtype.names:
        if column != "seconds":
            np.testing.assert_array_equal(one.leaderboard_[column], two.leaderboard_[column])
