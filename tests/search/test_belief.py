"""Whether annotators are believed: as long as left-out links do not speak against it."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine
from sklearn.metrics import adjusted_rand_score

from linkmix import AutoLinkMixture, Links

DATA = {"iris": load_iris(return_X_y=True), "wine": load_wine(return_X_y=True)}


def named(links, must="ann", cannot="ann"):
    return Links(links.must, links.cannot, must_annotators=must, cannot_annotators=cannot)


def partly_wrong(y, n_links, share, seed):
    """Random links, a share of which says the opposite."""
    links = Links.from_labels(y, n_links, random_state=seed)
    pairs = np.concatenate([links.must, links.cannot])
    rng = np.random.default_rng(seed)
    wrong = np.zeros(n_links, dtype=bool)
    wrong[rng.choice(n_links, round(share * n_links), replace=False)] = True
    same = (np.arange(n_links) < links.n_must) != wrong
    return Links(pairs[same], pairs[~same])


def small(**settings):
    return AutoLinkMixture(3, budget="small", random_state=0, **settings)


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("n_links", [15, 60])
def test_truthful_people_are_believed(data, n_links):
    """The fit is that of the same links without names: labels, probabilities, quality and links to review."""
    X, y = DATA[data]
    links = Links.from_labels(y, n_links, random_state=1)
    people = [("ann", "bob")[i % 2] for i in range(n_links)]
    plain = small().fit(X, links=links)
    for with_names in (named(links), named(links, people[: links.n_must], people[links.n_must :])):
        model = small().fit(X, links=with_names)
        assert model.best_estimator_.annotator_reliability_ == {}
        np.testing.assert_array_equal(model.labels_, plain.labels_)
        np.testing.assert_array_equal(model.predict_proba(X), plain.predict_proba(X))
        np.testing.assert_array_equal(model.links_to_review_, plain.links_to_review_)
        assert model.quality_ == plain.quality_


def test_someone_who_is_often_wrong_is_doubted():
    X, y = DATA["iris"]
    links = partly_wrong(y, 100, 0.4, seed=0)
    model = small().fit(X, links=named(links))
    assert 0.5 < model.best_estimator_.annotator_reliability_["ann"] < 0.8
    assert adjusted_rand_score(y, model.predict(X)) > 0.6
    # Of those called most likely wrong, more are wrong than of all.
    pairs = {frozenset(pair): True for pair in links.must.tolist()} | {
        frozenset(pair): False for pair in links.cannot.tolist()
    }
    first = model.links_to_review_[:20]
    wrong = [pairs[frozenset((int(row["a"]), int(row["b"])))] != (y[row["a"]] == y[row["b"]]) for row in first]
    assert np.mean(wrong) > 0.7


def test_of_two_people_the_one_who_errs_is_doubted():
    X, y = DATA["wine"]
    true = Links.from_labels(y, 50, random_state=3)
    links = named(true).union(named(partly_wrong(y, 50, 0.4, seed=4), "bob", "bob"))
    reliability = small().fit(X, links=links).best_estimator_.annotator_reliability_
    assert reliability["bob"] < 0.8 < reliability["ann"]


def test_answers_that_contradict_each_other_need_no_proof():
    X, y = DATA["iris"]
    links = named(Links.from_labels(y, 20, random_state=0))
    twice = links.union(Links(must=[(0, 1)], must_annotators="ann"))
    twice = twice.union(Links(cannot=[(1, 0)], cannot_annotators="bob"))
    model = small().fit(X, links=twice)
    reliability = model.best_estimator_.annotator_reliability_
    assert reliability["bob"] < reliability["ann"]
    with pytest.raises(ValueError, match="must link"):
        small().fit(X, links=twice.stated())
