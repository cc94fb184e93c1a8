"""Whether annotators are believed: as long as left-out links do not speak against it."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine
from sklearn.metrics import adjusted_rand_score

from linkmix import AutoLinkMixture, Links
from linkmix.basics.errors import LinkConflict

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


@pytest.mark.parametrize(
    ("data", "n_links"), [("iris", 15), ("iris", 60), ("wine", 15), pytest.param("wine", 60, marks=pytest.mark.slow)]
)
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


def wrong_share_of_suspects(table, links, y, n):
    """Of the first links to review, how many are wrong."""
    must = {frozenset(pair) for pair in links.must.tolist()}
    says_same = [frozenset((int(row["a"]), int(row["b"]))) in must for row in table[:n]]
    return np.mean(says_same != (y[table["a"][:n]] == y[table["b"][:n]]))


@pytest.mark.filterwarnings("ignore:a component of")
@pytest.mark.filterwarnings("ignore:the points alone predict")
@pytest.mark.slow
@pytest.mark.parametrize(("data", "n_links", "seed"), [("iris", 150, 0), ("wine", 190, 2)])
def test_someone_who_is_wrong_in_many_links_contradicts_himself_and_is_doubted(data, n_links, seed):
    X, y = DATA[data]
    links = partly_wrong(y, n_links, 0.4, seed=seed)
    with pytest.raises(LinkConflict):
        links.check_consistent()
    model = small().fit(X, links=named(links))
    assert 0.5 < model.best_estimator_.annotator_reliability_["ann"] < 0.8
    assert adjusted_rand_score(y, model.predict(X)) > 0.7
    assert wrong_share_of_suspects(model.links_to_review_, links, y, 30) > 0.8


@pytest.mark.filterwarnings("ignore:the points alone predict")
@pytest.mark.slow
@pytest.mark.parametrize("data", ["iris", "wine"])
def test_someone_who_errs_is_doubted_by_left_out_links_though_nobody_contradicts_him(data):
    X, y = DATA[data]
    links = partly_wrong(y, 75, 0.2, seed=1)
    links.check_consistent()
    believing, model = small().fit(X, links=links), small().fit(X, links=named(links))
    assert believing.best_estimator_.annotator_reliability_ == {}
    assert 0.7 < model.best_estimator_.annotator_reliability_["ann"] < 0.95
    assert adjusted_rand_score(y, model.predict(X)) > adjusted_rand_score(y, believing.predict(X)) + 0.1
    assert wrong_share_of_suspects(model.links_to_review_, links, y, 15) > 0.6


@pytest.mark.filterwarnings("ignore:the points alone predict")
@pytest.mark.slow
def test_of_two_people_the_one_who_errs_is_doubted():
    X, y = DATA["wine"]
    true = Links.from_labels(y, 80, random_state=3)
    links = named(true).union(named(partly_wrong(y, 80, 0.4, seed=4), "bob", "bob"))
    with pytest.raises(LinkConflict):
        links.check_consistent()
    reliability = small().fit(X, links=links).best_estimator_.annotator_reliability_
    assert reliability["bob"] < 0.8 < 0.9 < reliability["ann"]


def test_answers_that_contradict_each_other_need_no_proof():
    X, y = DATA["iris"]
    links = named(Links.from_labels(y, 20, random_state=0))
    twice = links.union(Links(must=[(0, 1)], must_annotators="ann"))
    twice = twice.union(Links(cannot=[(1, 0)], cannot_annotators="bob"))
    model = small().fit(X, links=twice)
    reliability = model.best_estimator_.annotator_reliability_
    assert reliability["bob"] < reliability["ann"]
    with pytest.raises(ValueError, match="must link"):
        small().fit(X, links=Links(twice.must, twice.cannot))


def test_answers_that_tell_less_than_the_points_cost_nothing():
    X, y = DATA["iris"]
    links = named(partly_wrong(y, 75, 0.2, seed=0))
    with pytest.warns(UserWarning, match=r"the points alone predict \d+ of 75 links"):
        model = small().fit(X, links=links)
    assert all(name.startswith("points alone, ") for name in model.leaderboard_["start"])
    assert model.leaderboard_["links_broken"][0] > 10  # judged by the links all the same
    assert adjusted_rand_score(small().fit(X).predict(X), model.predict(X)) > 0.95
    assert 0.7 < model.best_estimator_.annotator_reliability_["ann"] < 0.95
