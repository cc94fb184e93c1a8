import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import config_context
from sklearn.base import clone, is_clusterer
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from linkmix import LinkMixture, Links, purity

SETTINGS = [
    {},
    {"clusters_per_class": 2},
    {"covariance_type": "tied"},
    {"covariance_type": "diag"},
    {"covariance_type": "spherical"},
    {"coupling": "none"},
    {"linked_points": "both", "n_classes": 3},
]


@pytest.fixture(scope="module")
def iris():
    data = load_iris(as_frame=True)
    links = Links.from_labels(data.target.to_numpy(), 25, random_state=0)
    return data.data, data.target.to_numpy(), links


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_check_estimator(settings):
    """All of scikit-learn's checks; it skips those that need array API support to be switched on, we skip none."""
    results = check_estimator(LinkMixture(**settings), on_skip=None, on_fail="raise")
    statuses = {result["check_name"]: result["status"] for result in results}
    skipped = {name for name, status in statuses.items() if status != "passed"}
    assert len(statuses) > 30
    assert skipped <= {"check_array_api_input"}
    assert all(not result["expected_to_fail"] for result in results)


def test_it_is_a_clusterer():
    assert is_clusterer(LinkMixture())


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_clone_and_parameters(settings):
    model = LinkMixture(random_state=0, **settings)
    copy = clone(model)
    assert copy is not model
    assert copy.get_params() == model.get_params()
    assert model.set_params(n_classes=7).n_classes == 7


def test_clone_keeps_a_start(iris):
    X, _, links = iris
    first = LinkMixture(3, random_state=0).fit(X, links=links)
    names = ("class_weights", "cluster_weights", "means", "covariances")
    model = LinkMixture(3, init={name: getattr(first, f"{name}_") for name in names}, max_iter=0)
    copy = clone(model).fit(X, links=links)
    assert copy.log_likelihood_ == pytest.approx(first.log_likelihood_, rel=1e-12)


def test_pickle(iris):
    X, _, links = iris
    model = LinkMixture(3, clusters_per_class=2, random_state=0).fit(X, links=links)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(copy.labels_, model.labels_)
    np.testing.assert_array_equal(copy.feature_names_in_, model.feature_names_in_)
    assert copy.log_likelihood(X, links) == model.log_likelihood(X, links)
    np.testing.assert_array_equal(copy.fit(X, links=links).means_, model.means_)


def test_fit_predict_gives_the_labels_of_the_fit(iris):
    X, y, links = iris
    labels = LinkMixture(3, n_init=3, random_state=0).fit_predict(X, links=links)
    np.testing.assert_array_equal(labels, LinkMixture(3, n_init=3, random_state=0).fit(X, links=links).labels_)
    assert purity(y, labels) > 0.9


# Pipelines.


def test_pipeline_with_a_prefix(iris):
    X, _, links = iris
    pipeline = make_pipeline(StandardScaler(), LinkMixture(3, random_state=0))
    pipeline.fit(X, linkmixture__links=links)
    expected = LinkMixture(3, random_state=0).fit(StandardScaler().fit_transform(X), links=links)
    np.testing.assert_allclose(pipeline[-1].means_, expected.means_, rtol=1e-12)
    np.testing.assert_array_equal(pipeline.predict(X), expected.predict(StandardScaler().fit_transform(X)))
    assert pipeline.score(X) == pytest.approx(expected.score(StandardScaler().fit_transform(X)), rel=1e-12)
    labels = pipeline.fit_predict(X, linkmixture__links=links)
    np.testing.assert_array_equal(labels, expected.labels_)


def test_pipeline_with_metadata_routing(iris):
    X, _, links = iris
    with config_context(enable_metadata_routing=True):
        model = LinkMixture(3, random_state=0).set_fit_request(links=True)
        pipeline = make_pipeline(StandardScaler(), model).fit(X, links=links)
        expected = LinkMixture(3, random_state=0).fit(StandardScaler().fit_transform(X), links=links)
        np.testing.assert_allclose(pipeline[-1].means_, expected.means_, rtol=1e-12)
        np.testing.assert_array_equal(pipeline.fit_predict(X, links=links), expected.labels_)


@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_pipeline_with_frames_inside(iris, container):
    X, _, links = iris
    pipeline = make_pipeline(StandardScaler(), LinkMixture(3, random_state=0)).set_output(transform=container)
    pipeline.fit(X, linkmixture__links=links)
    np.testing.assert_array_equal(pipeline[-1].feature_names_in_, X.columns)
    assert isinstance(pipeline.predict(X), np.ndarray)
    assert isinstance(pipeline.predict_proba(X), np.ndarray)


# Frames.


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_frames(iris, frame):
    data, _, links = iris
    X = frame({name: data[name].to_numpy() for name in data.columns})
    model = LinkMixture(3, random_state=0).fit(X, links=links)
    expected = LinkMixture(3, random_state=0).fit(data.to_numpy(), links=links)
    np.testing.assert_array_equal(model.feature_names_in_, data.columns)
    assert model.n_features_in_ == 4
    assert not hasattr(expected, "feature_names_in_")
    # Up to rounding, which depends on the order of the numbers in memory.
    for name in ("means_", "covariances_", "labels_", "log_likelihood_trace_"):
        np.testing.assert_allclose(getattr(model, name), getattr(expected, name), rtol=1e-9)
    for name in ("predict", "predict_proba", "score_samples", "score", "bic", "aic", "log_likelihood"):
        np.testing.assert_allclose(getattr(model, name)(X), getattr(expected, name)(data.to_numpy()), 1e-9, 1e-12)
    assert model.bic(X, links) == pytest.approx(expected.bic(data.to_numpy(), links), rel=1e-9)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(X.rename({"sepal length (cm)": "height"}) if frame is pl.DataFrame else X.add_prefix("new "))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(data.to_numpy())


def test_integers_and_single_precision_are_taken(iris):
    X, _, links = iris
    tenths = (10 * X.to_numpy()).round()
    expected = LinkMixture(3, random_state=0).fit(tenths, links=links)
    for dtype in (np.int64, np.int8, np.float32):
        model = LinkMixture(3, random_state=0).fit(tenths.astype(dtype), links=links)
        np.testing.assert_array_equal(model.means_, expected.means_)
        assert model.means_.dtype == model.predict_proba(tenths).dtype == np.float64


# Cross-validation.


class RecordingMixture(LinkMixture):
    """Remembers all fits of all its copies."""

    fits: list[tuple[np.ndarray, LinkMixture]] = []  # noqa: RUF012

    def fit(self, X, y=None, *, links=None, rows=None):
        super().fit(X, links=links, rows=rows)
        self.fits.append((rows, self))
        return self


def renumbered(pairs, rows):
    """Pairs between the rows, by their positions in it."""
    place = {int(row): position for position, row in enumerate(rows)}
    return [(place[a], place[b]) for a, b in pairs.tolist() if a in place and b in place]


def test_grid_search_with_links_inside_the_folds(iris):
    X, _, links = iris
    X = X.to_numpy()
    groups = links.components(len(X))
    RecordingMixture.fits.clear()
    with config_context(enable_metadata_routing=True):
        model = RecordingMixture(random_state=0, covariance_type="tied").set_fit_request(links=True, rows=True)
        search = GridSearchCV(model, {"n_classes": [2, 3, 4]}, cv=GroupKFold(3), error_score="raise")
        search.fit(X, links=links, rows=np.arange(len(X)), groups=groups)
    assert search.best_params_["n_classes"] in (2, 3, 4)
    assert search.predict(X).shape == (150,)
    assert len(RecordingMixture.fits) == 3 * 3 + 1

    n_seen = 0
    for rows, fitted in RecordingMixture.fits:
        inside = Links(must=renumbered(links.must, rows), cannot=renumbered(links.cannot, rows))
        # Every link of a row that is in the fold is in the fold: none was torn apart.
        touching = np.isin(np.concatenate([links.must, links.cannot]), rows).any(axis=1)
        assert inside.n_must + inside.n_cannot == touching.sum() > 0
        settings = {"random_state": 0, "covariance_type": "tied"}
        expected = LinkMixture(fitted.n_classes, **settings).fit(X[rows], links=inside)
        np.testing.assert_allclose(fitted.log_likelihood_trace_, expected.log_likelihood_trace_, rtol=1e-12)
        alone = LinkMixture(fitted.n_classes, **settings).fit(X[rows])
        assert alone.log_likelihood_ != pytest.approx(fitted.log_likelihood_, rel=1e-6), "the links made no difference"
        if len(rows) < len(X) and fitted.n_classes == 2:
            n_seen += inside.n_must + inside.n_cannot
    assert n_seen == 2 * (links.n_must + links.n_cannot)  # each link is in the training rows of two folds of three


def test_cross_validation_with_links(iris):
    X, _, links = iris
    with config_context(enable_metadata_routing=True):
        model = LinkMixture(3, random_state=0, covariance_type="tied").set_fit_request(links=True, rows=True)
        params = {"links": links, "rows": np.arange(len(X)), "groups": links.components(len(X))}
        scores = cross_val_score(model, X, cv=GroupKFold(3), params=params, error_score="raise")
    assert scores.shape == (3,)
    assert np.all(np.isfinite(scores))


def test_grid_search_without_links(iris):
    X, _, _ = iris
    search = GridSearchCV(LinkMixture(random_state=0, n_init=2), {"n_classes": [1, 3]}, cv=3, error_score="raise")
    assert search.fit(X).best_params_["n_classes"] in (1, 3)
