"""AutoLinkMixture: candidates, the rule that ranks them, and what users rely on."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine, make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from linkmix import AutoLinkMixture, Blocks, LinkMixture, Links, links_satisfied, purity
from linkmix.data import rows
from linkmix.plots import choice_of_classes
from linkmix.search import BUDGETS, guesses
from linkmix.search.guesses import LABELINGS, by_links, first_guesses
from linkmix.search.ranking import Evidence, agreement, by_links_structure_and_agreement, weigh
from linkmix.search.settings import SETTINGS
from linkmix.search.shapes import SHAPES
from linkmix.search.spaces import Space, one_scale
from linkmix.search.structure import graphs, modularity, structure

X, y = load_wine(return_X_y=True)
LINKS = Links.from_labels(y, 20, random_state=0)


@pytest.fixture(scope="module")
def wine():
    return AutoLinkMixture(3, random_state=0).fit(X, links=LINKS)


@pytest.fixture(scope="module")
def committee():
    return AutoLinkMixture(3, committee=5, random_state=0).fit(X, links=LINKS)


@parametrize_with_checks(
    [AutoLinkMixture(budget="small", random_state=0)],
    expected_failed_checks=lambda _: {
        "check_sample_weight_equivalence_on_dense_data": "the first guesses do not weigh points"
    },
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def scaled_as_by(model, points):
    """What its mixtures see."""
    far = (points - model.middle_) / np.where(model.width_ > 0, model.width_, 1)
    return (np.where(model.width_ > 0, np.arcsinh(far), points) - model.center_) / model.scale_


def test_raw_units_are_no_obstacle(wine):
    assert adjusted_rand_score(y, wine.predict(X)) > 0.85  # k-means on these units reaches 0.37
    assert links_satisfied(wine.labels_, LINKS) == 1.0


def test_the_unit_of_a_column_does_not_matter(wine):
    units = 10.0 ** np.linspace(-6, 6, X.shape[1])
    names = ("k-means", "PCK-means", "E2CP")
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    other = (X * units - (X * units).mean(axis=0)) / (X * units).std(axis=0)
    np.testing.assert_allclose(Z, other, atol=1e-9)
    here = dict(first_guesses({"columns": Space(Z)}, LINKS, 3, names, 0))
    there = dict(first_guesses({"columns": Space(other.round(12) + 0)}, LINKS, 3, names, 0))
    assert here.keys() == there.keys() == set(names)
    for name in names:
        assert adjusted_rand_score(here[name](), there[name]()) == 1.0
    density = wine.score_samples(X)
    scaled = clone(wine).fit(X * 4.0, links=LINKS)  # a power of two: the same bits after scaling
    np.testing.assert_array_equal(scaled.predict(X * 4.0), wine.predict(X))
    np.testing.assert_allclose(scaled.score_samples(X * 4.0), density - 13 * np.log(4.0), rtol=0, atol=1e-9)


def test_the_density_integrates_to_one():
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal(100, 5, (60, 1)), rng.normal(140, 8, (60, 1))])
    model = AutoLinkMixture(2, committee=3, budget="small", random_state=0).fit(points)
    grid = np.linspace(-2000, 2260, 200_001)  # tails may be heavy
    assert np.trapezoid(np.exp(model.score_samples(grid[:, None])), grid) == pytest.approx(1, abs=1e-6)
    assert model.score(points) == pytest.approx(model.score_samples(points).mean())


def test_the_density_of_calmed_columns_integrates_to_one():
    rng = np.random.default_rng(0)
    points = np.exp(np.concatenate([rng.normal(1, 0.3, (80, 1)), rng.normal(4, 0.6, (80, 1))]))
    links = Links.from_labels(np.repeat([0, 1], 80), 40, random_state=0)
    model = AutoLinkMixture(2, budget="small", random_state=0).fit(points, links=links)
    assert model.width_[0] > 0
    grid = model.middle_ + model.width_ * np.sinh(np.linspace(-25, 25, 200_001))
    assert np.trapezoid(np.exp(model.score_samples(grid[:, None])), grid) == pytest.approx(1, abs=1e-4)


def test_a_long_tail_is_calmed_and_no_other_column():
    rng = np.random.default_rng(0)
    amounts = np.exp(np.concatenate([rng.normal(0, 0.5, 140), rng.normal(3, 0.5, 60)]))
    points = np.column_stack([amounts, rng.normal(size=200), np.where(np.arange(200) % 50, 0.0, 1.0)])
    model = AutoLinkMixture(2, budget="small", random_state=0).fit(points)
    assert model.width_[0] == pytest.approx(1.4826 * np.median(np.abs(amounts - np.median(amounts))))
    assert model.width_[1] == 0
    assert model.width_[2] == 0  # skewed, but one value for most rows, and no tail
    np.testing.assert_allclose(scaled_as_by(model, points).std(axis=0), 1)
    assert adjusted_rand_score(np.repeat([0, 1], [140, 60]), model.predict(points)) > 0.9


def test_the_leaderboard_tells_of_every_candidate(wine):
    table = pd.DataFrame(wine.leaderboard_)
    assert set(table["start"]) <= {*LABELINGS, "the best"}
    assert {"1", "1, heavy tails", "2, shared", "3, shared"} <= set(table["shape"]) <= set(SHAPES)
    assert not table.duplicated(["columns", "start", "shape"]).any()
    finished = table[~table["given_up"]]
    assert len(finished) >= 8
    assert finished["score"].is_monotonic_decreasing
    assert table["given_up"].is_monotonic_increasing  # those that were given up come last
    assert (table["seconds"] > 0).all()
    best, Z = wine.best_estimator_, scaled_as_by(wine, X)
    assert isinstance(best, LinkMixture)
    # It goes on from there. The table has all in units of plain columns, whatever the winner sees.
    units = float((wine.score_samples(X) - best.score_samples(Z)).sum()) + len(X) * np.log(X.std(axis=0)).sum()
    assert best.log_likelihood_ + units == pytest.approx(table["log_likelihood"][0], rel=1e-3)
    assert best.bic(Z, LINKS) - 2 * units == pytest.approx(table["bic"][0], rel=1e-3)


def test_new_points(wine, committee):
    rows = np.arange(0, len(X), 7)
    for model in (wine, committee):
        probability = model.predict_proba(X)
        np.testing.assert_allclose(probability.sum(axis=1), 1, atol=1e-12)
        np.testing.assert_array_equal(model.predict(X[rows]), probability.argmax(axis=1)[rows])


def test_a_committee_is_the_mean_of_its_members(committee):
    assert len(committee.estimators_) == 5
    assert committee.best_estimator_ is committee.estimators_[0]
    Z = scaled_as_by(committee, X)
    first = committee.estimators_[0].predict_proba(Z)
    for model in committee.estimators_[1:]:  # classes are matched
        assert adjusted_rand_score(model.predict(Z), first.argmax(axis=1)) > 0.5
    assert links_satisfied(committee.labels_, LINKS) == 1.0
    assert adjusted_rand_score(y, committee.predict(X)) > 0.85


def test_a_seed_makes_it_repeat(wine):
    again = clone(wine).fit(X, links=LINKS)
    np.testing.assert_array_equal(again.predict_proba(X), wine.predict_proba(X))


def test_known_labels_number_the_classes():
    known = np.full(len(y), -1)
    known[::10] = (y[::10] + 1) % 3
    model = AutoLinkMixture(3, budget="small", random_state=0).fit(X, known)
    np.testing.assert_array_equal(model.labels_[known >= 0], known[known >= 0])
    assert np.mean(model.predict(X) == (y + 1) % 3) > 0.9


def test_values_may_be_missing_and_columns_constant():
    holes = np.column_stack([X, np.full(len(X), 7.0)])
    holes[np.random.default_rng(0).random(holes.shape) < 0.05] = np.nan
    model = AutoLinkMixture(3, budget="small", random_state=0).fit(holes, links=LINKS)
    assert model.scale_[-1] == 0
    assert adjusted_rand_score(y, model.predict(holes)) > 0.8


def test_many_points_are_sampled_for_the_search_and_all_fitted_at_the_end():
    points, truth = make_blobs(20_000, centers=[[0, 0], [6, 0], [0, 6]], random_state=0)
    links = Links.from_labels(truth, 30, random_state=0)
    model = AutoLinkMixture(3, budget="small", random_state=0).fit(points, links=links)
    assert model.labels_.shape == (20_000,)
    assert purity(truth, model.predict(points)) > 0.99
    Z = scaled_as_by(model, points)
    assert model.best_estimator_.log_likelihood_ == pytest.approx(model.best_estimator_.log_likelihood(Z, links))


def test_the_number_of_classes_is_found():
    points, truth = make_blobs(300, centers=[[0, 0], [6, 0], [0, 6], [6, 6]], cluster_std=0.8, random_state=1)
    links = Links.from_labels(truth, 40, random_state=0)
    model = AutoLinkMixture("auto", budget="small", random_state=0).fit(points, links=links)
    assert model.n_classes_ == 4
    assert purity(truth, model.labels_) > 0.98
    tried, score = model.choice_["n_classes"].tolist(), model.choice_["score"]
    assert tried == [*range(2, tried[-1] + 1)]
    assert tried[score.argmax()] == 4
    behind = score < score.max() - SETTINGS.behind  # it ends after three such numbers in a row
    assert behind[-3:].all()
    assert not any(behind[i : i + 3].all() for i in range(3, len(tried) - 3))
    figure = choice_of_classes(model.choice_, model.n_classes_)
    upper, lower = figure.axes
    np.testing.assert_allclose(upper.lines[0].get_ydata(), -model.choice_["log_probability_of_links"])
    assert set(upper.lines[1].get_xdata()) == {4}
    assert min(lower.lines[0].get_ydata()) == 0


def test_wrong_links_of_a_named_annotator_do_little_harm():
    iris, truth = load_iris(return_X_y=True)
    good = Links.from_labels(truth, 60, random_state=0)
    rng = np.random.default_rng(0)
    must_flipped, cannot_flipped = rng.random(good.n_must) < 0.2, rng.random(good.n_cannot) < 0.2
    must = np.concatenate([good.must[~must_flipped], good.cannot[cannot_flipped]])
    cannot = np.concatenate([good.cannot[~cannot_flipped], good.must[must_flipped]])
    noisy = Links(must, cannot, must_annotators=["a"] * len(must), cannot_annotators=["a"] * len(cannot))
    model = AutoLinkMixture(3, random_state=0).fit(iris, links=noisy)
    assert adjusted_rand_score(truth, model.predict(iris)) > 0.8
    wrong = {tuple(pair) for pair in np.concatenate([good.cannot[cannot_flipped], good.must[must_flipped]]).tolist()}
    named = [(int(a), int(b)) for a, b in model.links_to_review_[["a", "b"]][: len(wrong)].tolist()]
    assert len(wrong & set(named)) / len(wrong) > 0.6


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"n_classes": "many"},
            "'n_classes' parameter of AutoLinkMixture must be an int .* or a str among {'auto'}. Got 'many'",
        ),
        ({"n_classes": 0}, "n_classes"),
        ({"committee": 0}, "committee"),
        ({"budget": "huge"}, "'budget' parameter .* Got 'huge'"),
        ({"n_classes": 200}, "n_samples=178 is less than n_classes=200"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        AutoLinkMixture(**settings).fit(X)


def test_a_failed_fit_leaves_the_earlier_one():
    model = AutoLinkMixture(3, budget="small", random_state=0).fit(X, links=LINKS)
    before = model.predict(X)
    with pytest.raises(ValueError, match="7000"):
        model.fit(X, must_link=[(0, 7000)])
    np.testing.assert_array_equal(model.predict(X), before)


def test_agreement_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    labelings = [rng.integers(0, m, 200) for m in (1, 2, 3, 5, 5)] + [np.zeros(200, dtype=int)]
    by_hand = [[adjusted_rand_score(a, b) for b in labelings] for a in labelings]
    np.testing.assert_allclose(agreement(labelings, 5), by_hand, atol=1e-9)


def test_links_structure_and_agreement_are_weighed_in_one_unit():
    rule = by_links_structure_and_agreement
    one, other = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])

    def evidence(labels, log_probability=-1.0, structure=0.0, n_links=12.0):
        return Evidence(0.0, log_probability, labels, structure, n_links)

    many = [evidence(one)] * 9
    assert rule([*many, evidence(other)], 2).argmax() < 9
    enough = 1.6 * SETTINGS.agreement * 12 / SETTINGS.structure
    assert rule([*many, evidence(other, structure=enough)], 2).argmax() == 9
    assert rule([*many, evidence(other, -1.0 - 2 * SETTINGS.agreement * 12, enough)], 2).argmax() < 9
    without = [evidence(one, n_links=0.0)] * 9  # no link says who is to be believed, so all have the same say
    assert rule([*without, evidence(other, structure=0.01, n_links=0.0)], 2).argmax() < 9
    enough = 1.6 * SETTINGS.agreement_alone / SETTINGS.structure
    assert rule([*without, evidence(other, structure=enough, n_links=0.0)], 2).argmax() == 9


def test_who_is_behind_has_a_say_where_no_candidate_keeps_the_links():
    one, other = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    for broken, expected in ((0.0, 0), (50.0, 1)):
        best, *behind = (Evidence(broken, lp, labels, 0.0, 60.0) for lp, labels in ((0, one), *[(-9, other)] * 9))
        assert (by_links_structure_and_agreement([best, *behind], 2).argmax() > 0) == expected


def test_guesses_with_many_points_and_links_use_some_of_them(monkeypatch):
    points, truth = make_blobs(300, centers=3, random_state=0, cluster_std=0.7)
    links = Links.from_labels(truth, 60, random_state=0)
    spaces = {"columns": Space(one_scale(points))}
    monkeypatch.setattr(guesses, "MOST_LINKS", 20)
    monkeypatch.setattr(guesses, "MOST_DENSE", 100)
    for name, guess in first_guesses(spaces, links, 3, ("PCK-means", "E2CP", "E2CP, sparse"), 0):
        labels = guess()
        assert labels.shape == (300,), name
        assert adjusted_rand_score(truth, labels) > 0.9, name


def graphs_of(views, X):
    """Graphs of points scaled in several ways, and in their own units."""
    return graphs([Space(one_scale(view)) for view in views], Space(one_scale(X)), X)


def test_modularity_is_its_definition():
    """Sum over all pairs of the weight less what chance would give it."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(40, 3))
    labels = rng.integers(0, 3, 40)
    (graph,) = graphs_of([Z], Z)
    W = graph.toarray()
    np.testing.assert_array_equal(W, W.T)
    degree, total = W.sum(axis=1), W.sum()
    same = labels[:, None] == labels
    by_definition = ((W - np.outer(degree, degree) / total) * same).sum() / total
    assert modularity(graph, labels, 3) == pytest.approx(by_definition, abs=1e-12)
    assert structure([graph, graph], labels, 3) == pytest.approx(by_definition, abs=1e-12)
    assert structure(graphs_of([Z[:1]], Z[:1]), labels[:1], 3) == 0.0


def test_labels_that_follow_the_gaps_have_more_structure():
    points, truth = make_blobs(200, centers=3, random_state=0, cluster_std=0.7)
    of = graphs_of([points / points.std(axis=0)], points)
    assert structure(of, truth, 3) > structure(of, np.roll(truth, 30), 3) + 0.2


def test_a_column_in_small_units_does_not_decide_who_are_neighbours():
    """Wine's proline is a hundred times as spread as the other columns together."""
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    assert len(graphs_of([Z], X)) == 1
    assert len(graphs_of([Z], Z * np.linspace(1, 3, 13))) == 2
    assert len(graphs_of([Z, np.arcsinh(5 * Z)], X)) == 2  # tails were calmed: neighbours by both


def test_heavy_tails_and_missing_values(wine):
    gaps = X.copy()
    gaps[::7, 3] = np.nan
    model = AutoLinkMixture(3, budget="small", random_state=0).fit(gaps, links=LINKS)
    for each in (wine, model):
        assert any("heavy tails" in shape for shape in each.leaderboard_["shape"])
        assert adjusted_rand_score(y, each.predict(gaps)) > 0.8


def test_more_clusters_are_tried_only_where_the_links_ask_for_them():
    """Each class is two bars of a cross of bars; Gaussians of one cluster per class cannot have them."""
    rng = np.random.default_rng(0)
    centres = np.array([[0, 0], [6, 6], [0, 6], [6, 0]])
    which = np.repeat(np.arange(4), 60)
    points = centres[which] + rng.normal(size=(240, 2))
    classes = which // 2
    links = Links.from_labels(classes, 60, random_state=0)
    asked = AutoLinkMixture(2, random_state=0).fit(points, links=links)
    assert adjusted_rand_score(classes, asked.predict(points)) > 0.95
    easy = AutoLinkMixture(4, random_state=0).fit(points, links=Links.from_labels(which, 10, random_state=0))
    assert "the best" not in easy.leaderboard_["start"]
    assert easy.leaderboard_["links_broken"][0] == 0


def test_no_labels_are_rewarded_for_meeting_links_that_are_likely_wrong():
    """Of five links, each right with probability 0.8, right labels break one, or two: to meet all five is no merit."""
    links = Links(must=[(0, 1), (0, 2), (0, 3), (4, 5), (4, 6)], must_confidence=0.8)
    all_met, one_broken, two_broken = np.zeros(7, int), np.array([0, 0, 0, 1, 0, 0, 0]), np.array([0, 0, 0, 1, 0, 0, 1])
    expected = 5 * (0.8 * np.log(0.8) + 0.2 * np.log(0.2)) - np.sqrt(5 * 0.8 * 0.2) * np.log(0.8 / 0.2)
    found = [weigh(np.eye(2)[labels], links).log_probability for labels in (all_met, one_broken, two_broken)]
    np.testing.assert_allclose(found[:2], expected)
    assert found[2] == pytest.approx(3 * np.log(0.8) + 2 * np.log(0.2))


@pytest.mark.filterwarnings("ignore:a component of")
@pytest.mark.filterwarnings("ignore:the points alone predict")
def test_an_annotator_who_errs_is_not_believed_though_nobody_said_so():
    """Two fifths of one annotator's links are wrong; the fit is about as good as without them."""
    points, truth = make_blobs(150, centers=[[0, 0], [2.6, 0], [1.3, 2.4]], cluster_std=0.7, random_state=3)
    right = Links.from_labels(truth, 40, random_state=10)
    more = Links.from_labels(truth, 60, random_state=11)
    must, cannot = more.must, more.cannot
    wrong_must, wrong_cannot = cannot[:14], must[: len(must) // 3]
    bad = Links(
        np.concatenate([must[len(must) // 3 :], wrong_must]), np.concatenate([cannot[14:], wrong_cannot])
    )  # every third of both kinds turned round
    both = Links(
        np.concatenate([right.must, bad.must]),
        np.concatenate([right.cannot, bad.cannot]),
        must_annotators=["good"] * right.n_must + ["bad"] * bad.n_must,
        cannot_annotators=["good"] * right.n_cannot + ["bad"] * bad.n_cannot,
    )
    without = AutoLinkMixture(3, random_state=0).fit(points, links=right)
    fitted = AutoLinkMixture(3, random_state=0).fit(points, links=both)
    assert (
        adjusted_rand_score(truth, fitted.predict(points)) > adjusted_rand_score(truth, without.predict(points)) - 0.1
    )
    reliability = fitted.best_estimator_.annotator_reliability_
    assert reliability["good"] > reliability["bad"] + 0.1


def test_links_weigh_as_far_as_they_are_sure():
    p = np.array([[0.9, 0.1], [0.2, 0.8]])
    sure, unsure = Links(must=[(0, 1)]), Links(must=[(0, 1)], must_confidence=[0.7])
    together = 0.9 * 0.2 + 0.1 * 0.8
    assert weigh(p, sure).broken == 1
    assert weigh(p, sure).log_probability == pytest.approx(np.log(together))
    assert weigh(p, unsure).broken == pytest.approx(0.4)
    p = np.array([[1.0, 0.0], [0.01, 0.99]])
    assert weigh(p, unsure).log_probability == pytest.approx(np.log(0.7 * 0.01 + 0.3 * 0.99))
    assert weigh(np.eye(2), sure).log_probability == pytest.approx(np.log(0.05))


def test_scaling_by_links_shrinks_what_links_say_is_noise():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(200, 2))
    Z[:, 1] += 4 * np.repeat([0, 1], 100)
    Z /= Z.std(axis=0)
    links = Links.from_labels(np.repeat([0, 1], 100), 80, random_state=0)
    scaled = by_links(Z, links)
    before, after = Z.std(axis=0), scaled.std(axis=0)
    assert after[0] / after[1] < 0.8 * before[0] / before[1]


@pytest.fixture
def small_portions(monkeypatch):
    """So that a few hundred rows are too many to be held at once."""
    monkeypatch.setattr(rows, "PORTION_NUMBERS", 300)


@pytest.mark.parametrize("committee", [1, 3])
def test_rows_read_block_by_block(small_portions, tmp_path, committee):
    """The same clustering as of the array, also with gaps, and of a memory-mapped file."""
    points = np.column_stack([X, np.ones(len(X))])  # a constant column is left out
    points[:, :4] = np.exp(points[:, :4] / X[:, :4].std(axis=0))  # long tails
    points[::11, 2] = np.nan
    few = replace(BUDGETS["small"], guesses=("k-means", "PCK-means"), shapes=("1", "1, heavy tails"), more_shapes=())
    model = AutoLinkMixture(3, budget=few, committee=committee, random_state=0)
    here = clone(model).fit(points, links=LINKS)
    blocks = Blocks([points[:50], points[50:51], points[51:]])
    there = clone(model).fit(blocks, links=LINKS)
    np.testing.assert_allclose(there.center_, here.center_, rtol=1e-12)
    np.testing.assert_allclose(there.scale_, here.scale_, rtol=1e-12)
    np.testing.assert_array_equal(there.width_, here.width_)
    assert {*here.leaderboard_["columns"]} == {"plain", "calm"}
    assert list(there.leaderboard_["columns"]) == list(here.leaderboard_["columns"])
    assert list(there.leaderboard_["start"]) == list(here.leaderboard_["start"])
    np.testing.assert_array_equal(there.labels_, here.labels_)
    np.testing.assert_allclose(there.predict_proba(blocks), here.predict_proba(points), atol=1e-6)
    np.testing.assert_allclose(there.score_samples(blocks), here.score_samples(points), atol=1e-6)
    np.testing.assert_array_equal(there.predict(blocks), here.predict(points))
    np.save(tmp_path / "points.npy", points)
    mapped = np.load(tmp_path / "points.npy", mmap_mode="r")
    np.testing.assert_array_equal(clone(model).fit(mapped, links=LINKS).labels_, here.labels_)


def test_blocks_of_which_a_column_has_no_value(small_portions):
    points = np.column_stack([X, np.full(len(X), np.nan)])
    with pytest.raises(ValueError, match="column 13 of X has no value in any row: drop it"):
        AutoLinkMixture(3).fit(Blocks([points[:90], points[90:]]))


def test_points_without_weight_do_not_count_as_points_for_the_classes() -> None:
    X = np.random.default_rng(0).normal(size=(30, 2))
    weights = np.zeros(30)
    weights[:2] = 1.0
    with pytest.raises(ValueError, match="n_samples=2 is less than n_classes=3"):
        AutoLinkMixture(3, random_state=0, budget="small").fit(X, sample_weight=weights)
    weights[:5] = 1.0
    model = AutoLinkMixture("auto", random_state=0, budget="small").fit(X, sample_weight=weights)
    assert model.choice_["n_classes"].tolist() == [2, 3, 4, 5]
