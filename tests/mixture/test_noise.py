"""Points that belong to no class: labels, links, known noise, names and files."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from linkmix import AutoLinkMixture, Blocks, LinkMixture, Links, links_satisfied
from linkmix.basics.errors import LinkConflict
from linkmix.densities import Categorical, Contaminated, Gaussian, Product
from linkmix.engine.fitting import Knowledge
from linkmix.links.checks import apart_from_noise
from linkmix.links.relation import Relation
from linkmix.mixture.fitted import without_noise

N_CLEAN = 120
rng = np.random.default_rng(0)
CLASSES = np.repeat([0, 1, 2], N_CLEAN // 3)
CLEAN = np.array([[0.0, 0.0], [8.0, 0.0], [0.0, 8.0]])[CLASSES] + rng.normal(size=(N_CLEAN, 2))
FAR = np.array([[40.0, 40.0], [-30.0, 20.0], [25.0, -30.0], [-40.0, -40.0], [60.0, 5.0], [30.0, 20.0]])
X = np.concatenate([CLEAN, FAR])
NOISE = np.arange(N_CLEAN, len(X))
TRUTH = np.concatenate([CLASSES, np.full(len(FAR), -1)])
LINKS = Links.from_labels(TRUTH.tolist(), 15, random_state=0)
START = {"init": "links", "n_init": 3, "random_state": 0}


def mixture(**settings):
    return LinkMixture(3, density=Contaminated(Gaussian(shrinkage=4.0)), coupling="graph", **{**START, **settings})


def auto(**settings):
    return AutoLinkMixture(3, noise=True, budget="small", random_state=0, **settings)


@pytest.fixture(scope="module")
def fitted():
    return auto().fit(X, links=LINKS)


every_estimator = pytest.mark.parametrize("make", [mixture, auto])


@every_estimator
def test_far_points_get_minus_one(make):
    model = make().fit(X, links=LINKS)
    np.testing.assert_array_equal(np.flatnonzero(model.labels_ == -1), NOISE)
    np.testing.assert_array_equal(model.predict(X) == -1, model.predict_noise(X) > 0.5)
    np.testing.assert_array_equal(model.predict(X) == -1, model.labels_ == -1)
    assert model.classes_.tolist() == [0, 1, 2]
    assert 0.02 < float(model.noise_share_) < 0.1
    probabilities = model.predict_proba(X)
    assert probabilities.shape == (len(X), 3)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.predict_proba(CLEAN).argmax(axis=1), model.predict(CLEAN))


def test_a_committee_agrees_on_noise():
    model = auto(committee=3).fit(X, links=LINKS)
    np.testing.assert_array_equal(np.flatnonzero(model.labels_ == -1), NOISE)
    each = [member.mixture(model._committee().members[0].view).noise(X) for member in model.estimators_]
    np.testing.assert_allclose(model.predict_noise(X), np.mean(each, axis=0))
    np.testing.assert_array_equal(model.predict(X) == -1, model.predict_noise(X) > 0.5)


def test_density_is_that_of_classes_and_background(fitted):
    member, view = fitted.estimators_[0], fitted.mixture().view
    log_joint = member.mixture(view).log_joint(X)
    clean = np.log1p(-fitted.noise_share_) + np.logaddexp.reduce(log_joint, axis=1)
    of_class = np.exp(clean - fitted.score_samples(X))
    np.testing.assert_allclose(of_class, 1 - fitted.predict_noise(X), rtol=1e-6, atol=1e-12)


def test_without_noise_every_point_has_a_class():
    model = AutoLinkMixture(3, budget="small", random_state=0).fit(X, links=LINKS)
    assert model.labels_.min() == 0
    with pytest.raises(ValueError, match=r"fitted without noise: fit an AutoLinkMixture\(noise=True\)"):
        model.predict_noise(X)
    with pytest.raises(ValueError, match="fitted without noise"):
        LinkMixture(3, random_state=0).fit(X).predict_noise(X)


def test_clean_points_are_left_alone():
    model = auto().fit(CLEAN, links=Links.from_labels(CLASSES, 15, random_state=0))
    assert np.mean(model.labels_ == -1) <= 0.02


# Links.


def test_a_must_linked_group_is_noise_only_as_a_whole():
    links = Links(must=[(10, 11), (11, 12), (13, 14), (15, 16)], cannot=[(10, 13)], must_confidence=[1, 1, 1, 0.9])
    odds = np.array([5.0, -1.0, -2.0, -3.0, 1.0, 0.5, -0.5])  # of rows 10 to 16
    labels = np.array([0, 0, 0, 1, 1, 2, 2])
    given = Knowledge(X, links)
    assert without_noise(labels, odds, given).tolist() == [-1, -1, -1, 1, 1, -1, 2]
    known = np.full(len(X), -1)
    known[12] = 0
    assert without_noise(labels, odds, replace(given, known=known)).tolist() == [0, 0, 0, 1, 1, -1, 2]


@every_estimator
def test_a_far_point_takes_its_group_along(make):
    model = make().fit(X, links=LINKS.union(Links(must=[(NOISE[0], 0)])))
    assert model.labels_[NOISE[0]] == model.labels_[0] == -1
    assert model.predict(X[:1]) >= 0


@every_estimator
def test_a_group_of_which_a_class_is_known_is_no_noise(make):
    known = np.full(len(X), -1)
    known[0], known[50] = 0, 1
    model = make().fit(X, known, links=LINKS.union(Links(must=[(0, NOISE[0])])))
    assert model.labels_[NOISE[0]] == model.labels_[0] == 0
    known[NOISE[1]] = 1
    assert make().fit(X, known, links=LINKS).labels_[NOISE[1]] == 1


def test_cannot_linked_points_may_both_be_noise():
    links = LINKS.union(Links(cannot=[(NOISE[0], NOISE[1]), (NOISE[0], NOISE[2]), (NOISE[0], 3)]))
    model = auto().fit(X, links=links)
    assert np.all(model.labels_[NOISE] == -1)
    assert links_satisfied(model.labels_, links) == 1.0


def test_minus_one_is_nobodys_class():
    links = Links(must=[(0, 1), (2, 3)], cannot=[(0, 2), (0, 3), (3, 4)])
    assert links_satisfied([-1, -1, -1, 0, 0], links) == 3 / 5  # broken: must (2, 3), cannot (3, 4)
    assert links_satisfied(np.array(["-1", "-1", "-1", "a", "b"]), links) == 4 / 5
    assert links_satisfied([-1, -1, -1, -1, -1], links) == 1.0


# Known noise.


@every_estimator
def test_known_noise_gets_minus_one_and_counts_in_the_share(make):
    known = np.full(len(X), -1)
    known[:6] = -2  # in the middle of a class
    model, before = make().fit(X, known, links=LINKS.without(range(6))), make().fit(X, links=LINKS.without(range(6)))
    assert np.all(model.labels_[:6] == -1)
    assert np.all(model.predict(X[:6]) >= 0)  # from the point alone
    assert float(model.noise_share_) > float(before.noise_share_)


def test_known_noise_is_exactly_a_row_of_the_background():
    """A fit with known noise is that without these rows, except for the share, in which they count."""
    known = np.full(len(X), -1)
    known[NOISE[:3]] = -2
    density = Contaminated(Gaussian())
    weights = np.eye(3)[np.maximum(TRUTH, 0)]
    init = {
        "class_weights": np.full(3, 1 / 3),
        "cluster_weights": np.ones((3, 1)),
        **density.attributes(density.start(X, weights), (3, 1)),
    }
    kept = np.setdiff1d(np.arange(len(X)), NOISE[:3])
    settings = {"init": init, "max_iter": 50, "tol": 0.0}
    found = LinkMixture(3, density=density, **settings).fit(X, known)
    told = LinkMixture(3, density=Contaminated(Gaussian(), n_known=3), **settings).fit(X[kept])
    np.testing.assert_allclose(found.means_, told.means_)
    np.testing.assert_allclose(found.covariances_, told.covariances_)
    np.testing.assert_allclose(found.noise_share_, told.noise_share_)
    np.testing.assert_allclose(found.log_likelihood_trace_, told.log_likelihood_trace_)


@every_estimator
def test_what_must_link_to_known_noise_is_noise(make):
    known = np.full(len(X), -1)
    known[0] = -2
    links = LINKS.without([0, 1, 2]).union(Links(must=[(0, 1)], cannot=[(0, 2), (1, 70)]))
    model = make().fit(X, known, links=links)
    assert model.labels_[0] == model.labels_[1] == -1
    assert model.labels_[2] >= 0
    known[1] = 2
    with pytest.raises(LinkConflict, match=r"y\[1\] is 2 and y\[0\] is -2, no class, but must-links hold"):
        make().fit(X, known, links=links)


def test_known_noise_needs_noise():
    known = np.full(len(X), -1)
    known[0] = -2
    with pytest.raises(ValueError, match=r"y\[0\] is -2: .* -2, for a row of no class, is for an estimator with noise"):
        AutoLinkMixture(3).fit(X, known)


def test_known_noise_alone_is_known():
    known, noise = apart_from_noise([-2, 0, 1], 3, Links())
    assert known.tolist() == [-1, 0, 1]
    assert noise.tolist() == [True, False, False]
    assert apart_from_noise([0, 1, -1], 3, Links())[1] is None
    assert apart_from_noise(None, 3, Links()) == (None, None)


def test_links_without_rows_keep_everything_else():
    links = Links(
        must=[(0, 1), (2, 3)],
        cannot=[(1, 2), (3, 4)],
        must_confidence=[0.9, 0.8],
        cannot_annotators=["ann", "bob"],
        relations=[Relation([(0, 4), (2, 4)], np.eye(2))],
    )
    kept = links.without([1])
    assert kept.must.tolist() == [[2, 3]]
    assert kept.must_confidence.tolist() == [0.8]
    assert kept.cannot.tolist() == [[3, 4]]
    assert kept.cannot_annotators.tolist() == ["bob"]
    assert kept.relations[0].pairs.tolist() == [[0, 4], [2, 4]]
    assert links.without([4]).relations == ()


# Names, files, weights and rows outside memory.


@every_estimator
def test_with_names_noise_is_the_text_minus_one(make, tmp_path):
    known = np.full(len(X), None)
    known[0], known[50], known[100], known[3] = "a", "b", "c", -2
    model = make().fit(X, known, links=LINKS.without([3]))
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert set(model.labels_[[3, *NOISE]].tolist()) == {"-1"}
    assert model.labels_[[0, 50, 100]].tolist() == ["a", "b", "c"]
    assert set(model.predict(FAR).tolist()) == {"-1"}
    model.save(tmp_path / "model.linkmix")
    again = type(model).load(tmp_path / "model.linkmix")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.labels_, model.labels_)


@every_estimator
def test_a_saved_model_knows_the_noise(make, tmp_path):
    model = make().fit(X, links=LINKS)
    model.save(tmp_path / "model.linkmix")
    again = type(model).load(tmp_path / "model.linkmix")
    np.testing.assert_array_equal(again.predict_noise(X), model.predict_noise(X))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.noise_share_ == model.noise_share_
    assert clone(again).get_params()["random_state"] == 0


def test_weights_count_as_copies():
    weights = np.ones(len(X))
    weights[[5, 60, NOISE[0]]] = 2
    settings = {"init": "kmeans++", "n_init": 1, "tol": 0.0, "max_iter": 30}
    copies = np.concatenate([X, X[[5, 60, NOISE[0]]]])
    density = Contaminated(Gaussian())
    one = LinkMixture(3, density=density, random_state=0, **settings).fit(X, sample_weight=weights)
    two = LinkMixture(3, density=density, random_state=0, **settings).fit(copies)
    np.testing.assert_allclose(one.noise_share_, two.noise_share_, rtol=1e-6)
    np.testing.assert_allclose(one.log_likelihood_trace_[-1], two.log_likelihood_trace_[-1], rtol=1e-8)


def test_rows_outside_memory_give_the_same(fitted, monkeypatch):
    monkeypatch.setattr("linkmix.data.rows.PORTION_NUMBERS", 100)
    known = np.full(len(X), -1)
    known[:3] = -2
    links = LINKS.without(range(3))
    whole, parts = auto().fit(X, known, links=links), auto().fit(Blocks([X[:50], X[50:]]), known, links=links)
    np.testing.assert_array_equal(parts.labels_, whole.labels_)
    np.testing.assert_allclose(parts.predict_noise(Blocks([X[:50], X[50:]])), whole.predict_noise(X))


@every_estimator
def test_gaps_are_allowed(make):
    gaps = X.copy()
    gaps[::7, 0] = np.nan
    model = make().fit(gaps, links=LINKS)
    assert np.mean(model.labels_[NOISE] == -1) >= 0.8
    assert np.mean(model.labels_[:N_CLEAN] == -1) <= 0.05


def test_mixed_columns():
    table = np.column_stack([X, np.where(TRUTH < 0, rng.integers(0, 3, len(X)), TRUTH)])
    density = Contaminated(Product({"size": (Gaussian(shrinkage=4.0), [0, 1]), "kind": (Categorical(), [2])}))
    model = LinkMixture(3, density=density, coupling="graph", **START).fit(table, links=LINKS)
    np.testing.assert_array_equal(np.flatnonzero(model.labels_ == -1), NOISE)


def test_a_warm_start_goes_on_from_the_noise():
    model = mixture(warm_start=True).fit(X, links=LINKS)
    before = model.labels_
    model.fit(X, np.where(np.arange(len(X)) == NOISE[0], -2, -1), links=LINKS)
    np.testing.assert_array_equal(model.labels_, before)


def test_number_of_classes_is_chosen_with_noise():
    model = AutoLinkMixture("auto", noise=True, budget="small", random_state=0).fit(X, links=LINKS)
    assert model.n_classes_ == 3
    assert set(model.labels_[NOISE].tolist()) == {-1}
