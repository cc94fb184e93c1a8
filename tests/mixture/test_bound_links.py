"""Links that an estimator brings along, for tools that call `fit(X)` or `fit(X, y)`."""

import pickle

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from linkmix import AutoLinkMixture, LinkMixture, Links, Relation, calibrate, links_satisfied

X, Y = load_iris(return_X_y=True)
LINKS = Links.from_labels(Y, 30, random_state=0)
OTHER = Links.from_labels(Y, 30, random_state=1)
FULL = Links(
    must=[(0, 1), (1, 2)],
    cannot=[(2, 60), (60, 120)],
    must_confidence=[1.0, 0.9],
    cannot_annotators=["eva", None],
    cannot_chosen=[True, False],
    relations=[Relation([(3, 9)], [[0.3, 0.1, 0.2], [0.1, 0.7, 0.3], [0.2, 0.3, 0.9]])],
)
MODELS = {
    "one": LinkMixture(3, coupling="graph", links=LINKS, random_state=0),
    "auto": AutoLinkMixture(3, budget="small", calibrate=False, links=LINKS, random_state=0),
}


@pytest.fixture(params=MODELS)
def model(request):
    return clone(MODELS[request.param])


class Topics(BaseEstimator):
    """A tool with a clusterer inside, which it clones and fits as BERTopic does, and of which it asks no more."""

    def __init__(self, clusterer):
        self.clusterer = clusterer

    def fit(self, X, y=None):
        self.clusterer_ = clone(self.clusterer)
        self.clusterer_.fit(X, y=y)
        self.labels_ = self.clusterer_.labels_
        self.probabilities_ = getattr(self.clusterer_, "probabilities_", None)
        return self


def without(model):
    return clone(model).set_params(links=None)


def test_a_tool_that_calls_fit_uses_them(model):
    expected = without(model).fit(X, links=LINKS).labels_
    assert links_satisfied(expected, LINKS) == 1
    assert links_satisfied(without(model).fit(X).labels_, LINKS) < 1
    for y in (None, Y, np.full(150, -1)):  # a y without unknown labels says nothing, nor does one without known ones
        np.testing.assert_array_equal(Topics(model).fit(X, y).labels_, expected)


def test_a_tool_that_passes_partial_labels_uses_both(model):
    y = np.full(150, -1)
    y[[7, 77, 133]] = Y[[7, 77, 133]]
    found = Topics(model).fit(X, y)
    np.testing.assert_array_equal(found.labels_, without(model).fit(X, y, links=LINKS).labels_)
    np.testing.assert_array_equal(found.labels_[[7, 77, 133]], Y[[7, 77, 133]])
    assert links_satisfied(found.labels_, LINKS) == 1


@pytest.mark.parametrize("committee", [1, 3])
def test_a_tool_finds_the_probabilities_of_the_labels(committee):
    model = clone(MODELS["auto"]).set_params(committee=committee, calibrate=True)
    tool = Topics(model).fit(X)
    each = tool.clusterer_.predict_proba(X)
    np.testing.assert_allclose(tool.probabilities_, each[np.arange(150), tool.labels_], rtol=1e-9)
    assert 0 < tool.probabilities_.min() < 0.9 < tool.probabilities_.max() <= 1


def test_probabilities_are_those_of_names_as_well():
    y = [None] * 150
    y[7], y[77], y[133] = "setosa", "versicolor", "virginica"
    model = clone(MODELS["auto"]).fit(X, y)
    numbers = np.searchsorted(model.classes_, model.labels_)
    np.testing.assert_allclose(model.probabilities_, model.predict_proba(X)[np.arange(150), numbers], rtol=1e-9)


def test_a_pipeline_needs_no_arguments(model):
    pipeline = make_pipeline(StandardScaler(), model).fit(X)
    scaled = StandardScaler().fit_transform(X)
    np.testing.assert_array_equal(pipeline[-1].labels_, without(model).fit(scaled, links=LINKS).labels_)
    np.testing.assert_array_equal(make_pipeline(StandardScaler(), model).fit_predict(X), pipeline[-1].labels_)


@pytest.mark.parametrize(
    "given", [{"links": OTHER}, {"must_link": OTHER.must, "cannot_link": OTHER.cannot}, {"links": Links()}], ids=str
)
def test_links_that_fit_is_given_win(model, given):
    expected = without(model).fit(X, **given)
    found = model.fit(X, **given)
    np.testing.assert_array_equal(found.predict_proba(X), expected.predict_proba(X))
    assert len(found.links_to_review_) == len(expected.links_to_review_)
    assert model.links == LINKS


@pytest.mark.parametrize("links", [LINKS, FULL], ids=["plain", "with everything"])
@pytest.mark.parametrize("kind", [LinkMixture, AutoLinkMixture])
def test_copies_have_equal_links(kind, links, tmp_path):
    model = kind(3, links=links, random_state=0)
    for copy in (clone(model), pickle.loads(pickle.dumps(model)), clone(clone(model))):
        assert copy.links == links
        assert hash(copy.links) == hash(links)
    assert "Links(" in repr(model)


@pytest.mark.parametrize(
    "model", [*MODELS.values(), LinkMixture(3, links=FULL, random_state=0)], ids=["one", "auto", "with everything"]
)
def test_a_model_file_holds_them(model, tmp_path):
    file = tmp_path / "model.linkmix"
    model.fit(X).save(file)
    again = type(model).load(file)
    assert again.links == model.links
    assert not again.links.must.flags.writeable
    np.testing.assert_array_equal(again.fit(X).labels_, model.labels_)


def test_a_grid_search_splits_rows_and_keeps_the_links(model):
    seen = {"n": 0}

    def links_kept(estimator, X, y=None):
        seen["n"] += len(estimator.links_to_review_)
        return estimator.score(X)

    search = GridSearchCV(without(model), {"links": [LINKS, OTHER]}, cv=3, scoring=links_kept, refit=False)
    search.fit(X, rows=np.arange(150))
    folds = np.repeat(np.arange(3), 50)  # KFold without shuffling
    within = [
        sum(
            int(np.all(folds[pairs] != fold, axis=1).sum()) for pairs in (links.must, links.cannot) for fold in range(3)
        )
        for links in (LINKS, OTHER)
    ]
    assert seen["n"] == sum(within) > 0


def test_a_part_of_the_rows_without_their_numbers_is_refused(model):
    message = r"links row 1\d\d, but there are 100 rows.*these are the links that the estimator was made with.*rows="
    with pytest.raises(ValueError, match=message):
        model.fit(X[:100])
    with pytest.raises(ValueError, match=message):
        cross_val_score(model, X, cv=3, error_score="raise")


def test_calibrate_uses_them():
    model = clone(MODELS["one"])
    found, expected = calibrate(model, X), calibrate(without(model), X, links=LINKS)
    assert found.temperature == expected.temperature
    assert found.model.links == LINKS
    assert calibrate(model, X, links=OTHER).temperature == calibrate(without(model), X, links=OTHER).temperature


@pytest.mark.parametrize("links", [LINKS.to_table(), [(0, 1)], "links.csv"], ids=["table", "pairs", "file"])
def test_other_things_than_links_are_refused(model, links):
    with pytest.raises(ValueError, match=r"The 'links' parameter of \w+ must be an instance of 'linkmix.links.*Links'"):
        model.set_params(links=links).fit(X)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_check_estimator():
    check_estimator(LinkMixture(links=Links()), on_skip=None, on_fail="raise")


def test_copies_of_relations_are_equal_to_the_last_bit():
    random = np.random.default_rng(0)
    for _ in range(200):
        relation = Relation([(0, 1)], random.random((3, 3)))
        assert relation.table.sum() == pytest.approx(1, abs=1e-12)
        assert pickle.loads(pickle.dumps(relation)) == relation


def test_a_point_of_no_class_has_no_probability():
    points = np.vstack([X, [[9.0, 9.0, 9.0, 9.0]]])
    model = clone(MODELS["auto"]).set_params(noise=True).fit(points)
    assert model.labels_[-1] == -1
    np.testing.assert_array_equal(model.probabilities_ == 0, model.labels_ == -1)
