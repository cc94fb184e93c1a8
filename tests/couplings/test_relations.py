"""Relations among sets of points, against enumeration of all labels."""

import warnings
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from linkmix import LinkMixture, Links, Relation, SetRelation, engine, links_satisfied
from linkmix.basics.errors import InfeasibleLinks
from linkmix.couplings import Graph, MeanField, Pairwise, Projection
from linkmix.couplings.network import ApproximateInference
from linkmix.couplings.network.factor_loopy import FactorPropagation
from linkmix.couplings.network.related import InfeasibleTables, RelatedNetwork
from linkmix.couplings.review import NOMINAL_CONFIDENCE
from relation_oracles import (
    Saying,
    Wish,
    assert_never_falls,
    assert_step,
    engine_input,
    enumerate_graph,
    enumerate_pairs,
    first_reliability,
    links_of,
    most_probable,
    random_scene,
    relation_of,
    settings_of,
)

WISHES = {
    "pairs": Wish(n_points=7, n_linked=6, n_certain=0, sizes=(2, 2, 2)),
    "two classes": Wish(n_classes=2, n_points=9, n_linked=8, n_certain=3, sizes=(3, 4, 2)),
    "sets and links": Wish(n_points=8, n_linked=7, n_certain=3, n_uncertain=2, sizes=(3, 4)),
    "all must link": Wish(n_points=8, n_linked=7, n_certain=4, kind="must", sizes=(3, 3, 2)),
    "learned": Wish(n_points=8, n_linked=7, n_certain=2, n_uncertain=1, sizes=(2, 3, 4), learn=True),
    "four classes": Wish(n_classes=4, n_points=7, n_linked=6, n_certain=2, sizes=(3, 2), clusters_per_class=2),
    "annotators": Wish(
        n_points=7, n_linked=6, n_certain=1, n_uncertain=3, sizes=(3, 2), learn=True, annotators=("eva", "ida")
    ),
}
NO_EDGES = np.empty((0, 2), dtype=np.int64), np.empty(0, dtype=bool)


@pytest.fixture(params=[f"{name} {seed}" for name in WISHES for seed in range(6)])
def scene(request):
    name, seed = request.param.rsplit(" ", 1)
    return random_scene(np.random.default_rng(int(seed)), WISHES[name])


@pytest.mark.parametrize("sampling", ["observed", "chunklets", "points"])
def test_a_step_of_the_network_is_that_of_all_labellings(scene, sampling):
    assert_step(scene, Graph(sampling=sampling), enumerate_graph(scene, sampling))


def test_a_step_of_items_is_that_of_all_labels_of_each_set(scene):
    assert_step(scene, Pairwise(), enumerate_pairs(scene))


@pytest.mark.parametrize("more", ["both", "weights", "known", "link weight"])
def test_with_the_other_options(more):
    wish = WISHES["sets and links"]
    for seed in range(4):
        rng = np.random.default_rng(seed)
        scene = random_scene(rng, wish)
        changes = {
            "both": {"linked_points": "both"},
            "weights": {"sample_weight": rng.uniform(0.5, 2, wish.n_points)},
            "known": {"known": np.where(rng.random(wish.n_points) < 0.3, scene.hidden, -1)},
            "link weight": {"link_weight": 0.6},
        }
        other = replace(scene, **changes[more])
        assert_step(other, Graph(), enumerate_graph(other))
        assert_step(other, Pairwise(), enumerate_pairs(other))


def test_labels_are_the_most_probable_ones(scene):
    model, data, parameters = engine_input(scene, Graph())
    log_class = engine.class_log_joint(model.density, parameters, data.linked) - np.log(parameters.class_weights)
    labels = model.coupling.labels(log_class, parameters.class_weights, parameters.reliability)
    np.testing.assert_array_equal(labels, most_probable(scene)[scene.linked])


def test_with_items_labels_are_possible(scene):
    model, data, parameters = engine_input(scene, Pairwise())
    log_class = engine.class_log_joint(model.density, parameters, data.linked) - np.log(parameters.class_weights)
    labels = model.coupling.labels(log_class, parameters.class_weights, parameters.reliability)
    place = {n: i for i, n in enumerate(scene.linked)}
    for saying in scene.sayings:
        weights = saying.weights(scene.n_classes, joint=False)
        for one in saying.sets:
            assert weights[tuple(labels[[place[n] for n in one]].tolist())] > 0


@pytest.mark.parametrize("coupling", [Pairwise(), Graph(), Graph(sampling="chunklets")], ids=str)
def test_the_objective_never_falls_and_ends_where_it_stays(coupling):
    for seed in range(4):
        scene = random_scene(np.random.default_rng(seed), replace(WISHES["learned"], n_points=40))
        settings = {**settings_of(scene), "reg_covar": 0.3, "max_iter": 60}
        model = LinkMixture(coupling=coupling, **settings).fit(scene.X, links=links_of(scene))
        assert_never_falls(model.log_likelihood_trace_)
        found = replace(
            scene,
            class_weights=model.class_weights_,
            cluster_weights=model.cluster_weights_,
            means=model.means_,
            covariances=model.covariances_,
            sayings=tuple(
                replace(saying, probability=float(p)) if saying.learn else saying
                for saying, p in zip(scene.sayings, model.relation_probability_, strict=True)
            ),
        )
        oracle = enumerate_pairs(found) if coupling == Pairwise() else enumerate_graph(found, coupling.sampling)
        assert model.log_likelihood_ == pytest.approx(oracle.log_likelihood, abs=1e-8)
        assert model.log_likelihood(scene.X, links_of(scene)) == pytest.approx(model.log_likelihood_, abs=1e-9)


def test_a_learned_probability_ends_at_the_share_that_satisfies_it():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=200)
    X = 8.0 * np.eye(3)[y] + rng.normal(size=(200, 3))
    pairs = rng.choice(200, size=(80, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    share = (1 + np.sum(y[pairs[:, 0]] == y[pairs[:, 1]])) / (2 + len(pairs))
    table = np.where(np.eye(3), 0.2, 0.4 / 6)
    for relation in (
        SetRelation.classes(pairs, exactly=1, probability=0.9, learn=True),
        Relation(pairs, table, learn=True),
    ):
        for coupling in ("pairwise", "graph"):
            links = Links(relations=[relation])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ApproximateInference)
                model = LinkMixture(3, coupling=coupling, n_init=5, random_state=0).fit(X, links=links)
            assert model.relation_probability_[0] == pytest.approx(share, abs=1e-3)


@pytest.mark.parametrize("coupling", ["pairwise", "graph"])
def test_a_rule_of_two_points_is_a_link(coupling):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 2))
    as_links = Links(must=[(0, 1), (2, 3)], cannot=[(4, 5)], must_confidence=0.8, cannot_confidence=0.8)
    as_rules = Links(
        relations=[
            SetRelation.classes([(0, 1), (2, 3)], exactly=1, probability=0.8),
            SetRelation.classes([(4, 5)], exactly=2, probability=0.8),
        ]
    )
    bound = [Graph().bind(links, 6, 3) for links in (as_links, as_rules)]
    F, a = rng.normal(size=(6, 3)), np.array([0.5, 0.3, 0.2])
    one, other = (graph.expect(F, a) for graph in bound)
    assert one.log_likelihood == pytest.approx(other.log_likelihood, abs=1e-12)
    np.testing.assert_allclose(one.label_weights, other.label_weights, rtol=0, atol=1e-12)
    assert bound[1].to_native() is not None  # a network of edges, whatever these are made from
    first, second = (
        LinkMixture(3, coupling="graph", random_state=0).fit(X, links=links) for links in (as_links, as_rules)
    )
    assert first.log_likelihood_ == pytest.approx(second.log_likelihood_, abs=1e-9)


# The network alone.


def random_families(rng, n_nodes, n_classes, sizes):
    families, tables = [], []
    for k in sizes:
        n = int(rng.integers(1, 4))
        families.append(np.array([rng.choice(n_nodes, k, replace=False) for _ in range(n)]))
        shape = (n if rng.random() < 0.5 else 1, *(n_classes,) * k)
        table = rng.normal(size=shape)
        table[rng.random(shape) < 0.2] = -np.inf
        tables.append(table)
    edges = np.array([rng.choice(n_nodes, 2, replace=False) for _ in range(int(rng.integers(0, 6)))], dtype=np.int64)
    edges = edges.reshape(-1, 2)
    same, different = 2 * rng.normal(size=(2, len(edges)))
    same[rng.random(len(edges)) < 0.3] = -np.inf
    return families, tables, edges, same, different


def enumerate_tables(nodes, families, tables, edges, same, different):
    n, M = nodes.shape
    labels = np.array(list(product(range(M), repeat=n)))
    total = nodes[np.arange(n), labels].sum(axis=1)
    for (a, b), yes, no in zip(edges, same, different, strict=True):
        total = total + np.where(labels[:, a] == labels[:, b], yes, no)
    for scopes, table in zip(families, tables, strict=True):
        for number, scope in enumerate(scopes):
            total = total + table[0 if len(table) == 1 else number][tuple(labels[:, scope].T)]
    return labels, total


@pytest.mark.parametrize("seed", range(60))
def test_networks_with_tables(seed):
    rng = np.random.default_rng(seed)
    n, M = int(rng.integers(5, 9)), int(rng.integers(2, 4))
    families, tables, edges, same, different = random_families(rng, n, M, rng.integers(2, 5, size=3))
    nodes = rng.normal(size=(n, M)) * rng.choice([1, 100])
    network = RelatedNetwork(n, M, edges, np.isneginf(same), families)
    labels, total = enumerate_tables(nodes, families, tables, edges, same, different)
    if np.isneginf(total.max()):
        with pytest.raises(ValueError, match="no label"):
            network.infer(nodes, same, different, tables)
        return
    found = network.infer(nodes, same, different, tables)
    weight = np.exp(total - total.max())
    share = weight / weight.sum()
    close = {"rtol": 0, "atol": 1e-10}
    assert network.is_exact
    np.testing.assert_allclose(found.log_partition, total.max() + np.log(weight.sum()), rtol=1e-12, atol=1e-10)
    np.testing.assert_allclose(
        found.marginals, [[share @ (labels[:, i] == m) for m in range(M)] for i in range(n)], **close
    )
    np.testing.assert_allclose(found.edge_same, [share @ (labels[:, a] == labels[:, b]) for a, b in edges], **close)
    for scopes, joint in zip(families, found.joint, strict=True):
        for scope, own in zip(scopes, joint, strict=True):
            wanted = np.zeros_like(own)
            np.add.at(wanted, tuple(labels[:, scope].T), share)
            np.testing.assert_allclose(own, wanted, **close)
    best = network.most_probable(nodes, same, different, tables)
    np.testing.assert_array_equal(best, labels[total.argmax()])


@pytest.mark.parametrize("seed", range(10))
def test_propagation_is_exact_on_trees(seed):
    rng = np.random.default_rng(seed)
    families = [np.array([[0, 1, 2], [2, 3, 4]]), np.array([[5, 4], [5, 6]])]
    tables = [rng.normal(size=(1, 3, 3, 3)), rng.normal(size=(2, 3, 3))]
    tables[0][0, 0, 0] = tables[0][0, 1, :, 1] = -np.inf
    nodes = rng.normal(size=(7, 3))
    exact = RelatedNetwork(7, 3, *NO_EDGES, families).infer(nodes, np.empty(0), np.empty(0), tables)
    loopy = FactorPropagation(7, 3, families, 1e-12).infer(nodes, tables)
    assert loopy.converged
    total = loopy.node_log_partition.sum() + sum(part.sum() for part in loopy.scope_log_partition)
    assert total == pytest.approx(exact.log_partition, abs=1e-9)
    np.testing.assert_allclose(loopy.marginals, exact.marginals, atol=1e-9)
    for mine, wanted in zip(loopy.joint, exact.joint, strict=True):
        np.testing.assert_allclose(mine, wanted, atol=1e-9)


def test_a_wide_network_is_approximated_with_a_warning():
    rng = np.random.default_rng(0)
    n, M = 10, 3
    families = [np.array([rng.choice(n, 3, replace=False) for _ in range(14)])]
    tables = [0.3 * rng.normal(size=(1, M, M, M))]
    nodes = rng.normal(size=(n, M))
    none = np.empty(0)
    exact = RelatedNetwork(n, M, *NO_EDGES, families)
    with pytest.warns(ApproximateInference, match=r"a component of 10 nodes with relations is too entangled"):
        wide = RelatedNetwork(n, M, *NO_EDGES, families, max_table=27)
    assert exact.is_exact
    assert not wide.is_exact
    one, other = (network.infer(nodes, none, none, tables) for network in (exact, wide))
    assert one.log_partition == pytest.approx(other.log_partition, abs=0.2)
    np.testing.assert_allclose(one.marginals, other.marginals, atol=0.05)
    best, found = (network.most_probable(nodes, none, none, tables) for network in (exact, wide))
    np.testing.assert_array_equal(best, found)


def test_labels_of_a_wide_network_meet_what_is_certain():
    rng = np.random.default_rng(0)
    hidden = rng.integers(3, size=40)
    sets = [rng.choice(40, 3, replace=False) for _ in range(60)]
    kept = [one for one in sets if len(set(hidden[one])) == 2]
    links = Links(cannot=[(0, 1)] if hidden[0] != hidden[1] else [], relations=[SetRelation.classes(kept, exactly=2)])
    F = 3 * np.eye(3)[hidden] + rng.normal(size=(40, 3))
    linked = links.points
    with pytest.warns(ApproximateInference):
        bound = Graph(quick=True).bind(links.restrict(linked), len(linked), 3)
    labels = bound.labels(F[linked], np.full(3, 1 / 3))
    assert links_satisfied(labels, links.restrict(linked)) == 1.0


# What users see.


def test_relations_to_review():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 40)
    X = 9.0 * np.eye(3)[y] + rng.normal(size=(120, 3))
    rule = SetRelation.alike([(0, 1, 40), (2, 41, 80), (3, 4, 81)], exactly=2)  # the second one is wrong
    lower = Relation([(0, 50), (90, 5)], np.triu(np.ones((3, 3)), 1))  # the second one is the wrong way round
    known = np.full(120, -1)
    known[[10, 51, 91]] = 0, 1, 2
    model = LinkMixture(3, coupling="graph", init="links", random_state=0).fit(
        X, known, links=Links(relations=[rule, lower])
    )
    found = model.relations_to_review_
    assert {(one["relation"], one["set"]) for one in found[:2]} == {(0, 1), (1, 1)}
    assert np.all(found["probability_wrong"][:2] > 0.99)
    assert np.all(found["probability_wrong"][2:] < 0.01)
    assert len(model.links_to_review_) == 0


def test_doubt_in_review_is_that_of_links():
    F = np.log(np.random.default_rng(0).dirichlet(np.ones(3), size=2))
    from linkmix.couplings.review import relations_to_review

    # Two labels of equal prior probability: the item of a link and that of a rule are the same up to a constant.
    inside = np.exp(F[0] + F[1]).sum() / 3
    outside = (np.exp(F[0]).sum() * np.exp(F[1]).sum() - 3 * inside) / 6
    q = NOMINAL_CONFIDENCE
    together = Links(relations=[SetRelation.classes([(0, 1)], exactly=1)])
    wanted = (1 - q) * outside / (q * inside + (1 - q) * outside)
    assert relations_to_review(together, F, np.ones(1))["probability_wrong"][0] == pytest.approx(wanted, abs=1e-12)


def test_relations_that_cannot_be_met():
    X = np.random.default_rng(0).normal(size=(20, 2))
    three = SetRelation.classes([(0, 1, 2)], exactly=3)
    with pytest.raises(
        ValueError, match=r"relations\[0\]: exactly 3 classes among 3 points is impossible with n_classes=2"
    ):
        LinkMixture(2, coupling="graph").fit(X, links=Links(relations=[three]))
    clash = Links(must=[(0, 1)], relations=[SetRelation.classes([(3, 4)], exactly=1, probability=0.9), three])
    with pytest.raises(InfeasibleLinks, match=r"no labels were found with 3 classes that meet relations\[1\] together"):
        LinkMixture(3, coupling="graph").fit(X, links=clash)
    apart = SetRelation.classes([(0, 1), (1, 2), (0, 2)], exactly=2)
    with pytest.raises(InfeasibleLinks, match=r"relations\[0\]"):
        LinkMixture(2, coupling="graph").fit(X, links=Links(relations=[apart]))
    three_of_two = Links(cannot=[(10, 11), (11, 12), (10, 12)], relations=[SetRelation.alike([(5, 6, 7)], exactly=2)])
    for n_classes in (2, 3):
        clique = three_of_two.union(Links(cannot=[(10, 13), (11, 13), (12, 13)])) if n_classes == 3 else three_of_two
        with pytest.raises(InfeasibleLinks, match="rows 10-11, ") as error:  # not those of the relation
            LinkMixture(n_classes, coupling="graph").fit(X, links=clique)
        assert set(error.value.links.cannot.ravel().tolist()) <= {10, 11, 12, 13}
    with pytest.raises(ValueError, match=r"18 points of 2 classes have 2\^18 combinations .* relate at most 17 points"):
        LinkMixture(2, coupling="graph").fit(X, links=Links(relations=[SetRelation.classes([range(18)], at_most=1)]))
    with pytest.raises(ValueError, match=r"relations\[0\]: the relation has a table for 2 classes, but n_classes=3"):
        LinkMixture(3, coupling="graph").fit(X, links=Links(relations=[Relation([(0, 1)], np.eye(2))]))


@pytest.mark.parametrize("coupling", [MeanField(), Projection()], ids=str)
def test_couplings_that_know_no_relations_say_so(coupling):
    X = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises(ValueError, match="relations"):
        LinkMixture(2, coupling=coupling).fit(
            X, links=Links(cannot=[(3, 4)], relations=[Relation([(0, 1)], np.eye(2))])
        )


def test_a_rule_that_always_holds_changes_nothing():
    rng = np.random.default_rng(0)
    F, a = rng.normal(size=(4, 2)), np.array([0.4, 0.6])
    links = Links(cannot=[(0, 1), (2, 3)])
    always = links.union(Links(relations=[SetRelation.classes([(0, 1, 2)], at_most=2, probability=0.7, learn=True)]))
    plain, ruled = (Graph().bind(one, 4, 2) for one in (links, always))
    assert len(ruled.first_reliability()) == 0
    assert plain.expect(F, a).log_likelihood == pytest.approx(ruled.expect(F, a).log_likelihood, abs=1e-12)


def test_infeasible_tables_name_their_families():
    table = np.full((1, 2, 2, 2), -np.inf)
    network = RelatedNetwork(4, 2, *NO_EDGES, [np.array([[0, 1, 2]]), np.array([[1, 2, 3]])])
    with pytest.raises(InfeasibleTables) as error:
        network.infer(np.zeros((4, 2)), np.empty(0), np.empty(0), [table, np.zeros((1, 2, 2, 2))])
    assert error.value.families == (0, 1)


def test_first_guess_of_what_is_learned():
    saying = Saying(((0, 1),), np.array([[3.0, 1.0], [1.0, 3.0]]), learn=True, probability=0.4)
    bound = Graph().bind(Links(relations=[relation_of(saying)]), 2, 2)
    assert bound.first_reliability().tolist() == [0.75]
    assert bound.relation_probabilities(np.array([0.4])).tolist() == [0.4]
    scene = replace(random_scene(np.random.default_rng(0), Wish(n_classes=2)), statements=(), sayings=(saying,))
    assert first_reliability(scene, bound).tolist() == [0.4]


def test_a_class_that_vanishes_is_reported():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 1)) + np.repeat([0, 1], 30)[:, None]
    chain = np.stack([np.arange(59), np.arange(1, 60)], axis=1)
    agree = SetRelation.classes(chain, exactly=1, probability=0.9, learn=True)
    with pytest.warns(UserWarning, match=r'has all the weight. .* use coupling="pairwise"'):
        model = LinkMixture(2, coupling="graph", random_state=0).fit(X, links=Links(relations=[agree]))
    assert model.relation_probability_[0] == pytest.approx(60 / 61, abs=1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LinkMixture(2, random_state=0).fit(X, links=Links(relations=[agree]))
