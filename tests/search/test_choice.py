"""The choice of a shape by points and links that it has not seen."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import KFold

import linkmix
from linkmix import LinkMixture, Links
from linkmix.rivals import GMPR
from linkmix.search.choice import MOST_ROWS, Judged, Shape, choose, decide, within_one_error


def crosswise(seed=0, n_each=40):
    """Two classes of two far clusters each, crosswise: one Gaussian per class can not tell them apart."""
    rng = np.random.default_rng(seed)
    centres = np.array([[0, 0], [6, 6], [0, 6], [6, 0]])
    component = np.repeat(np.arange(4), n_each)
    return centres[component] + rng.normal(size=(len(component), 2)), component // 2


def judged(n_parameters, likelihood, agree):
    return Judged(Shape(2, n_parameters, "full"), n_parameters, np.array(likelihood), np.array(agree), np.array(agree))


def test_scores_are_those_of_a_direct_loop():
    X, y = load_iris(return_X_y=True)
    links = Links.from_labels(y, 40, random_state=0)
    settings = {"coupling": "graph", "init": "links", "n_init": 3, "shrinkage": "auto", "random_state": 3}
    found = choose(X, links, 3, clusters_per_class=[1, 2], covariance_types=["diag"], n_folds=4, random_state=3)
    for one, k in zip(found.judged, (1, 2), strict=True):
        likelihood, agree, log_probability = [], [], []
        for seen, hidden in KFold(4, shuffle=True, random_state=3).split(X):
            place = {row: i for i, row in enumerate(seen.tolist())}
            kept = {
                kind: [(place[a], place[b]) for a, b in pairs.tolist() if a in place and b in place]
                for kind, pairs in (("must", links.must), ("cannot", links.cannot))
            }
            model = LinkMixture(3, clusters_per_class=k, covariance_type="diag", **settings)
            model.fit(X[seen], links=Links(**{kind: pairs or None for kind, pairs in kept.items()}))
            likelihood.append(model.score(X[hidden]))
            labels, P = model.predict(X), model.predict_proba(X)
            rows = set(hidden.tolist())
            right, logs = [], []
            for same, pairs in ((True, links.must), (False, links.cannot)):
                for a, b in pairs.tolist():
                    if a in rows or b in rows:
                        right.append((labels[a] == labels[b]) == same)
                        together = P[a] @ P[b]
                        logs.append(np.log(together if same else 1 - together))
            agree.append(np.mean(right))
            log_probability.append(logs)
        np.testing.assert_allclose(one.likelihood, likelihood, rtol=1e-9)
        np.testing.assert_allclose(one.agree, agree)
        for ours, logs in zip(one.log_probability, log_probability, strict=True):
            assert ours == pytest.approx(np.maximum(logs, np.log(linkmix.search.settings.SETTINGS.least)).mean())
    row = found.table[0]
    assert row["log_likelihood_error"] == pytest.approx(found.judged[0].likelihood.std(ddof=1) / 2)


def test_hidden_links_choose_the_number_of_clusters():
    X, y = crosswise()
    found = choose(X, Links.from_labels(y, 80, random_state=0), 2, clusters_per_class=[1, 2], covariance_types=["diag"])
    assert found.chosen == Shape(2, 2, "diag")
    assert found.table["links_agree"][0] < 0.8 < 0.95 < found.table["links_agree"][1]


def test_clusters_may_differ_between_classes():
    X, y = crosswise()
    y = np.minimum(y + (np.arange(len(y)) >= 120), 2)  # the second class falls into two
    links = Links.from_labels(y, 120, random_state=0)
    found = choose(X, links, 3, clusters_per_class=[1, [2, 1, 1]], covariance_types=["spherical"])
    assert found.table["clusters_per_class"].tolist() == ["1", "2,1,1"]
    assert found.table["n_parameters"].tolist() == [3 * 3 + 2, 4 * 3 + 3]


def test_the_number_of_classes_is_chosen_from_several():
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1, 2], 50)
    X = np.array([[0, 0], [5, 0], [0, 5]])[y] + rng.normal(size=(150, 2))
    links = Links.from_labels(y, 60, random_state=0)
    found = choose(X, links, [2, 3, 4], clusters_per_class=[1], covariance_types=["spherical"])
    assert found.chosen.n_classes == 3


def test_the_rule_of_one_standard_error():
    good, near, far = [0.9, 0.95, 1.0, 0.9], [0.95, 0.9, 0.98, 0.9], [0.5, 0.6, 0.7, 0.5]
    assert within_one_error(np.array([good, near, far])).tolist() == [True, True, False]
    many = judged(9, [-1.0, -1.1, -0.9, -1.0], good)
    few = judged(3, [-1.0, -1.0, -1.0, -1.0], near)
    likely = judged(1, [-0.1, -0.1, -0.2, -0.1], far)  # the most likely one, but of other classes
    assert decide([many, few, likely], 40)[0] == few.shape
    unlikely = judged(1, [-5.0, -5.1, -4.9, -5.0], near)
    assert decide([many, few, unlikely], 40)[0] == few.shape
    shape, reason = decide([many, few, likely], 9)
    assert shape == likely.shape
    assert reason.startswith("There are 9 links, too few to hide some (at least 10 are needed), so the likelihood")


def test_without_links_the_likelihood_decides():
    X, _ = crosswise()
    found = choose(X, Links(), 2, clusters_per_class=[1, 2], covariance_types=["spherical"])
    assert found.chosen.clusters_per_class == 2
    assert found.reason.startswith("There are no links, too few to hide some")
    assert np.isnan(found.table["links_agree"]).all()


def test_another_mixture_can_be_chosen_for():
    X, y = crosswise()
    links = Links.from_labels(y, 30, random_state=0)
    found = choose(X, links, 2, clusters_per_class=[1], covariance_types=["full"], make=GMPR)
    hidden = next(iter(KFold(5, shuffle=True, random_state=0).split(X)))[1]
    seen = np.setdiff1d(np.arange(len(X)), hidden)
    expected = GMPR(2, random_state=0).fit(X[seen], links=links.restrict(seen)).score(X[hidden])
    assert found.judged[0].likelihood[0] == pytest.approx(expected)


def test_many_rows_are_sampled_with_all_linked_ones():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=3 * MOST_ROWS)
    X = 5.0 * y[:, None] + rng.normal(size=(len(y), 2))
    links = Links.from_labels(y, 30, random_state=0)
    sizes = []

    def make(**settings):
        model = GMPR(**settings)
        fit = model.fit
        model.fit = lambda X, **known: (sizes.append((len(X), known["links"].n_must)), fit(X, **known))[1]
        return model

    found = choose(X, links, 2, clusters_per_class=[1], covariance_types=["full"], make=make)
    assert 0.79 * MOST_ROWS < sizes[0][0] <= 0.8 * MOST_ROWS
    assert sum(n for _, n in sizes) > 0
    assert found.table["links_agree"][0] > 0.95


def test_shapes_that_cannot_be_fitted_are_named():
    X, _ = load_iris(return_X_y=True)
    few = X[::12]
    found = choose(few, Links(), 2, clusters_per_class=[1, 9], covariance_types=["spherical"])
    assert found.table["clusters_per_class"].tolist() == ["1"]
    [(shape, why)] = found.left_out
    assert shape.clusters_per_class == 9
    assert "n_samples=10" in why
    with pytest.raises(ValueError, match=r"no shape can be fitted to 13 rows, such as 2 classes of 9 clusters .*: "):
        choose(few, Links(), 2, clusters_per_class=[9], covariance_types=["spherical"])
    with pytest.raises(ValueError, match="n_folds=20 with 13 rows: use at least 2 and at most as many folds as rows"):
        choose(few, Links(), 2, n_folds=20)
    with pytest.raises(ValueError, match="no shapes to choose from"):
        choose(few, Links(), [])


def test_the_picture_shows_both_criteria():
    figures = pytest.importorskip("linkmix.plots.choices")
    X, y = crosswise()
    links = Links.from_labels(y, 40, random_state=0)
    found = choose(X, links, 2, clusters_per_class=[1, 2], covariance_types=["diag", "full"])
    figure = figures.choice_of_shape(found.table)
    assert [ax.get_title() for ax in figure.axes] == [
        "share of hidden links that agree",
        "log-likelihood of a hidden point",
    ]
    for ax, column in zip(figure.axes, ("links_agree", "log_likelihood"), strict=True):
        rings = [line for line in ax.get_lines() if line.get_label() == "_chosen"]
        (row,) = np.flatnonzero(found.table["chosen"])
        assert [line.get_ydata()[0] for line in rings] == [found.table[column][row]]
    alone = choose(X, Links(), [2, 3], clusters_per_class=[1], covariance_types=["diag"])
    (ax,) = figures.choice_of_shape(alone.table).axes
    assert ax.get_xlabel() == "number of classes"
