"""Relations in the search, in model files and in scores."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

from linkmix import AutoLinkMixture, LinkMixture, Links, Relation, SetRelation, links_satisfied, purity
from linkmix.engine.starts import number_classes
from linkmix.search.number import fewest_classes
from linkmix.search.ranking import weigh

X, y = load_iris(return_X_y=True)


def drawn(size, n, wanted, seed=0):
    """Random sets of rows with so many different classes."""
    rng, found = np.random.default_rng(seed), []
    while len(found) < n:
        rows = rng.choice(len(y), size, replace=False)
        if len(set(y[rows])) in wanted:
            found.append(rows)
    return found


TRIPLES = SetRelation.alike(drawn(3, 25, {2}), exactly=2)
LOWER = Relation([(i, j) for i, j in drawn(2, 20, {2}, 1) if y[i] < y[j]], np.triu(np.ones((3, 3)), 1))
AGREE = SetRelation.classes(drawn(2, 30, {1, 2}, 2), exactly=1, probability=0.6, learn=True)
FIVE = SetRelation.classes(drawn(5, 4, {1, 2}, 3), at_most=2)


@pytest.fixture(scope="module")
def found():
    links = Links(must=[(0, 1)], cannot=[(60, 120)], relations=[TRIPLES, LOWER, AGREE, FIVE])
    return links, AutoLinkMixture(3, budget="small", random_state=0).fit(X, links=links)


def test_the_search_knows_relations(found):
    links, model = found
    assert purity(y, model.labels_) > 0.95
    assert np.mean(model.labels_ == y) > 0.95  # one relation knows the classes by number
    certain = Links(links.must, links.cannot, relations=[TRIPLES, LOWER, FIVE])
    assert links_satisfied(model.labels_, certain) == 1.0
    pairs = AGREE.sets
    share = (1 + np.sum(y[pairs[:, 0]] == y[pairs[:, 1]])) / (2 + len(pairs))
    assert model.relation_probability_ == pytest.approx([1, 1, share, 1], abs=0.1)
    assert len(model.relations_to_review_) == sum(len(one.sets) for one in links.relations)


def test_model_files_hold_relations(found, tmp_path):
    links, model = found
    model.save(tmp_path / "auto.linkmix")
    again = AutoLinkMixture.load(tmp_path / "auto.linkmix")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.relations_to_review_, model.relations_to_review_)
    function = SetRelation.from_function([(0, 60, 120)], lambda a, b, c: a <= b <= c, n_classes=3)
    bound = links.union(Links(relations=[function]))
    one = LinkMixture(3, coupling="pairwise", links=bound, n_init=2, random_state=0).fit(X)
    one.save(tmp_path / "one.linkmix")
    other = LinkMixture.load(tmp_path / "one.linkmix")
    assert other.links == bound
    np.testing.assert_array_equal(other.relation_probability_, one.relation_probability_)
    assert other.log_likelihood(X, bound) == one.log_likelihood(X, bound)


def test_relations_alone():
    links = Links(relations=[TRIPLES])
    model = AutoLinkMixture(3, budget="small", committee=2, random_state=0)
    model.fit(X, links=links)
    assert links_satisfied(model.labels_, links) == 1.0
    assert model.quality_ is None


def test_the_number_of_classes_meets_rules():
    apart = SetRelation.classes([(0, 60, 120)], exactly=3)
    assert fewest_classes(Links(relations=[apart])) == 3
    assert fewest_classes(Links(relations=[SetRelation.alike([range(7)], at_most=2)])) == 4
    assert fewest_classes(Links(relations=[SetRelation.alike([range(7)], at_most=2, probability=0.9)])) == 2
    model = AutoLinkMixture("auto", budget="small", random_state=0).fit(X, links=Links(relations=[apart]))
    assert model.n_classes_ >= 3
    assert len(set(model.labels_[[0, 60, 120]])) == 3


def test_relations_count_in_the_evidence():
    probabilities = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]])
    two = SetRelation.alike([(0, 1, 2)], exactly=2, probability=0.9)
    holds = 1 - (0.9 * 0.8 * 0.3 + 0.1 * 0.2 * 0.7)
    found = weigh(probabilities, Links(relations=[two]))
    assert found.broken == 0
    assert found.n_links == pytest.approx(0.8)
    wanted = np.log(0.9 * holds + 0.1 * (1 - holds))
    # It is capped at what is expected of right labels.
    most = 0.9 * np.log(0.9) + 0.1 * np.log(0.1) - np.sqrt(0.09) * np.log(9)
    assert found.log_probability == pytest.approx(min(wanted, most))
    unknown = SetRelation.alike([(0, 1, 2)], exactly=2, probability=0.9, learn=True)
    assert weigh(probabilities, Links(relations=[unknown])).n_links == 0
    all_alike = SetRelation.alike([(0, 1, 2)], exactly=3)
    found = weigh(probabilities, Links(relations=[all_alike]))
    assert found.broken == 1
    assert found.log_probability == pytest.approx(np.log(1 - holds))


@pytest.mark.parametrize("n_classes", [3, 8])
def test_classes_get_the_numbers_that_relations_give_them(n_classes):
    rng = np.random.default_rng(0)
    truth = rng.integers(n_classes, size=200)
    pairs = rng.choice(200, size=(150, 2))
    pairs = pairs[truth[pairs[:, 0]] < truth[pairs[:, 1]]]
    links = Links(relations=[Relation(pairs, np.triu(np.ones((n_classes, n_classes)), 1))])
    mixed = rng.permutation(n_classes)
    place = number_classes(mixed[truth], links, n_classes)
    np.testing.assert_array_equal(place[mixed[truth]], truth)
    kept = number_classes(truth, links, n_classes, fixed=np.arange(n_classes - 1))
    np.testing.assert_array_equal(kept, np.arange(n_classes))


def test_a_warm_start_keeps_the_numbers_that_relations_give():
    links = Links(relations=[LOWER])
    model = LinkMixture(3, coupling="graph", n_init=3, warm_start=True, random_state=0).fit(X, links=links)
    assert np.mean(model.labels_ == y) > 0.9
    model.fit(X, links=links)
    assert np.mean(model.labels_ == y) > 0.9


def test_relations_in_the_share_of_satisfied_links():
    links = Links(must=[(0, 1)], relations=[SetRelation.alike([(0, 1, 2), (1, 2, 3)], exactly=2)])
    assert links_satisfied([0, 0, 1, 2], links) == pytest.approx(2 / 3)
    assert links_satisfied(["a", "a", "b", "b"], links) == 1.0
    assert links_satisfied([0, 0, 0, -1], links) == pytest.approx(1 / 2)  # a set with a row of no class is not counted
    likes = Links(relations=[Relation([(0, 1), (0, 2)], [[2, 1], [1, 2]])])
    assert links_satisfied([0, 0, 1], likes) == 0.5
    for labels in (["a", "a", "b"], [0, 2, 1], [0.0, 0.0, 1.0]):
        with pytest.raises(ValueError, match="not class numbers below 2"):
            links_satisfied(labels, likes)
