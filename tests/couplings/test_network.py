import os
import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkmix import Links
from linkmix.basics.errors import InfeasibleLinks
from linkmix.couplings.network import (
    ApproximateInference,
    InfeasibleNetwork,
    LabelNetwork,
    UndecidedNetwork,
    label_network,
)
from linkmix.couplings.network.elimination import clique_tree, eliminate, exact_cliques, largest_clique
from linkmix.couplings.network.junction_tree import JunctionTree
from linkmix.couplings.network.loopy import LoopyPropagation
from linkmix.couplings.network.search import most_probable_labels
from linkmix.links.feasibility.colouring import UndecidedError, find_labels, neighbour_lists
from linkmix.links.feasibility.conflicts import find_conflict, odd_cycle
from linkmix.links.feasibility.tempering import temper
from network_oracle import Network, enumerate_labels, networks, random_network, scores


def build(network, hard=True, **settings):
    return LabelNetwork(*network.size, network.edges, hard=network.hard if hard else None, **settings)


def build_wide(network, **settings):
    with pytest.warns(ApproximateInference):
        return build(network, max_table=1, **settings)


def assert_answers(posterior, answer, atol=1e-10):
    np.testing.assert_allclose(posterior.marginals, answer.marginals, rtol=0, atol=atol)
    np.testing.assert_allclose(posterior.edge_same, answer.edge_same, rtol=0, atol=atol)
    np.testing.assert_allclose(posterior.log_partition, answer.log_partition, rtol=1e-12, atol=atol)
    np.testing.assert_allclose(posterior.component_log_partition.sum(), answer.log_partition, rtol=1e-12, atol=atol)


# Exact inference against enumeration


@given(networks(), st.booleans())
def test_all_is_as_in_the_sum_over_all_labellings(network, hard):
    answer = enumerate_labels(network)
    if answer is None:
        with pytest.raises(InfeasibleNetwork):
            build(network, hard).infer(*network.potentials)
        return
    label_network = build(network, hard)
    assert label_network.is_exact
    posterior = label_network.infer(*network.potentials)
    assert posterior.converged
    assert_answers(posterior, answer)
    labels = label_network.most_probable(*network.potentials)
    np.testing.assert_allclose(scores(network, labels[None])[0], answer.best, rtol=1e-12, atol=1e-10)


@given(networks())
def test_no_answer_changes_its_input(network):
    before = pickle.dumps(network)
    try:
        label_network = build(network)
        label_network.infer(*network.potentials)
        label_network.most_probable(*network.potentials)
    except InfeasibleNetwork:
        pass
    assert pickle.dumps(network) == before


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_a_junction_tree_on_a_tree_is_belief_propagation(seed, n_classes):
    network = random_network(seed, n_nodes=9, n_classes=n_classes, tree=True, forbidden=0.05)
    n = len(network.nodes)
    same = np.empty(len(network.edges))
    marginals, log_partition, labels = np.empty(network.size), np.zeros(1), np.empty(n, dtype=np.int64)
    junction_tree = JunctionTree(n_classes, [(0, exact_cliques(network.edges, n_classes, 2**20))], network.edges)
    posterior = build(network, hard=False).infer(*network.potentials)
    with np.errstate(divide="ignore"):
        same = junction_tree.infer(network.nodes, network.same, network.different, marginals, log_partition)
    np.testing.assert_allclose(posterior.marginals, marginals, atol=1e-12)
    np.testing.assert_allclose(posterior.edge_same, same, atol=1e-12)
    np.testing.assert_allclose(posterior.log_partition, log_partition[0], rtol=1e-12)
    junction_tree.most_probable(network.nodes, network.same, network.different, labels, log_partition)
    assert labels.tolist() == build(network).most_probable(*network.potentials).tolist()


@pytest.mark.parametrize("seed", range(10))
def test_two_colouring_is_what_the_tables_say(seed):
    random = np.random.default_rng(seed)
    side = random.integers(2, size=12)
    edges = random.integers(12, size=(40, 2))
    edges = edges[side[edges[:, 0]] != side[edges[:, 1]]]
    network = Network(
        20 * random.normal(size=(12, 2)), edges, np.full(len(edges), -np.inf), random.normal(size=len(edges))
    )
    by_colours, by_tables = (build(network, hard) for hard in (True, False))
    first, second = (built.infer(*network.potentials) for built in (by_colours, by_tables))
    np.testing.assert_allclose(first.marginals, second.marginals, atol=1e-12)
    np.testing.assert_allclose(first.component_log_partition, second.component_log_partition, rtol=1e-12)
    assert first.edge_same.tolist() == [0.0] * len(edges)
    labels = [built.most_probable(*network.potentials).tolist() for built in (by_colours, by_tables)]
    assert labels[0] == labels[1]


def copies(network, n):
    """Disjoint copies of a network with all nodes shuffled, and the nodes of each copy."""
    size = len(network.nodes)
    numbers = np.random.default_rng(0).permutation(n * size).reshape(n, size)
    nodes = np.empty((n * size, network.size[1]))
    nodes[numbers] = network.nodes
    edges = numbers[np.arange(n)[:, None, None], network.edges].reshape(-1, 2)
    return Network(nodes, edges, np.tile(network.same, n), np.tile(network.different, n)), numbers


@pytest.mark.parametrize("tree", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_many_components_are_as_one(seed, tree):
    network = random_network(seed, n_nodes=7, n_edges=9, tree=tree, hard=0.4)
    answer = enumerate_labels(network)
    many, numbers = copies(network, 50)
    built = build(many)
    posterior = built.infer(*many.potentials)
    np.testing.assert_allclose(posterior.log_partition, 50 * answer.log_partition, rtol=1e-12)
    np.testing.assert_allclose(posterior.marginals[numbers], np.tile(answer.marginals, (50, 1, 1)), atol=1e-10)
    np.testing.assert_allclose(posterior.edge_same, np.tile(answer.edge_same, 50), atol=1e-10)
    assert (built.most_probable(*many.potentials)[numbers] == answer.best_labels).all()


def test_the_log_partition_is_told_for_each_component():
    network = random_network(3, n_nodes=8, n_edges=5, hard=0.3)
    built = build(network)
    posterior = built.infer(*network.potentials)
    assert built.n_components == len(posterior.component_log_partition) > 2
    for component in range(built.n_components):
        nodes = np.flatnonzero(built.components == component)
        inside = np.flatnonzero(np.isin(network.edges[:, 0], nodes))
        part = Network(
            network.nodes[nodes],
            np.searchsorted(nodes, network.edges[inside]),
            network.same[inside],
            network.different[inside],
        )
        expected = enumerate_labels(part).log_partition
        np.testing.assert_allclose(posterior.component_log_partition[component], expected, rtol=1e-12, atol=1e-12)


def test_potentials_as_large_as_densities_get_do_not_overflow():
    for seed in range(20):
        network = random_network(seed, scale=1e4, hard=0.7, n_edges=9)
        answer = enumerate_labels(network)
        assert_answers(build(network).infer(*network.potentials), answer)


def test_what_underflows_as_a_number_is_exact_as_a_logarithm():
    nodes = np.array([[0.0, -800.0, -805.0], [0.0, -900.0, -2000.0], [0.0, -1000.0, -1000.0]])
    network = Network(nodes, np.array([(0, 1), (1, 2), (0, 2)]), np.full(3, -np.inf), np.zeros(3))
    assert_answers(build(network).infer(*network.potentials), enumerate_labels(network))


def test_a_long_chain_and_a_hub_are_done_by_levels():
    n, random = 2000, np.random.default_rng(0)
    nodes = random.normal(size=(n, 3))
    for edges in ([(j, j + 1) for j in range(n - 1)], [(0, j) for j in range(1, n)]):
        network = Network(nodes, np.array(edges), np.full(n - 1, -np.inf), np.zeros(n - 1))
        posterior = build(network).infer(*network.potentials)
        np.testing.assert_allclose(posterior.marginals.sum(axis=1), 1, atol=1e-10)
        # The marginals are the derivatives of the log-partition.
        for node in (0, 1, 700):
            step = np.zeros_like(nodes)
            step[node, 1] = 1e-4
            up, down = (build(network).infer(nodes + s, network.same, network.different) for s in (step, -step))
            slope = (up.log_partition - down.log_partition) / 2e-4
            np.testing.assert_allclose(posterior.marginals[node, 1], slope, atol=1e-6)


def test_a_hundred_thousand_nodes():
    n, random = 100_000, np.random.default_rng(0)
    edges = np.column_stack([random.integers(np.arange(1, n)), np.arange(1, n)])
    built = LabelNetwork(n, 3, edges)
    nodes = random.normal(size=(n, 3))
    posterior = built.infer(nodes, np.full(n - 1, -np.inf), np.zeros(n - 1))
    np.testing.assert_allclose(posterior.marginals.sum(axis=1), 1, atol=1e-9)
    labels = built.most_probable(nodes, np.full(n - 1, -np.inf), np.zeros(n - 1))
    assert (labels[edges[:, 0]] != labels[edges[:, 1]]).all()


def test_the_reference_values_come_out():
    if "LINKMIX_DATA" not in os.environ:
        pytest.skip("LINKMIX_DATA is not set: it names the folder with the reference values")
    data = np.load(Path(os.environ["LINKMIX_DATA"]) / "reference" / "gmmec_cannotlink_mrf.npz")
    prior = np.tile(np.log(data["alpha"]), (7, 1))
    for edges, nodes, marginals, log_partition in (
        ("E", data["B"], "marg", "logZ"),
        ("E", prior, "prior_marg", "prior_logZ"),
        ("tree_edges", data["B"], "tree_marg", "tree_logZ"),
    ):
        n_edges = len(data[edges])
        posterior = LabelNetwork(7, 3, data[edges]).infer(nodes, np.full(n_edges, -np.inf), np.zeros(n_edges))
        np.testing.assert_allclose(posterior.marginals, data[marginals], atol=1e-8)
        np.testing.assert_allclose(posterior.log_partition, data[log_partition], atol=1e-8)
        np.testing.assert_allclose(posterior.edge_same, 0, atol=1e-8)


def test_a_network_without_edges_or_nodes():
    nodes = np.log([[0.5, 1.5], [1.0, 1.0]])
    posterior = LabelNetwork(2, 2, []).infer(nodes, np.empty(0), np.empty(0))
    np.testing.assert_allclose(posterior.marginals, [[0.25, 0.75], [0.5, 0.5]])
    np.testing.assert_allclose(posterior.log_partition, 2 * np.log(2))
    empty = LabelNetwork(0, 3, [])
    assert empty.infer(np.empty((0, 3)), np.empty(0), np.empty(0)).log_partition == 0
    assert empty.most_probable(np.empty((0, 3)), np.empty(0), np.empty(0)).tolist() == []


@pytest.mark.parametrize("edges", [[(0, 1), (1, 2)], [(0, 1), (1, 2), (2, 0)]])
def test_the_smallest_labels_among_equals(edges):
    same, different = np.full(len(edges), -np.inf), np.zeros(len(edges))
    labels = LabelNetwork(3, 3, edges).most_probable(np.zeros((3, 3)), same, different)
    assert labels.tolist() in ([[1, 0, 1]] if len(edges) == 2 else [[0, 1, 2], [2, 1, 0]])
    labels = LabelNetwork(3, 2, edges[:2], hard=[True] * 2).most_probable(np.zeros((3, 2)), same[:2], different[:2])
    assert labels.tolist() == [0, 1, 0]
    assert LabelNetwork(2, 3, []).most_probable(np.zeros((2, 3)), np.empty(0), np.empty(0)).tolist() == [0, 0]


# Elimination and clique trees


@pytest.mark.parametrize("seed", range(20))
def test_cliques_make_a_tree_that_holds_every_edge(seed):
    pairs = np.unique(np.sort(random_network(seed, n_nodes=12, n_edges=25).edges, axis=1), axis=0)
    neighbours = {node: set() for node in np.unique(pairs).tolist()}
    for a, b in pairs.tolist():
        neighbours[a].add(b)
        neighbours[b].add(a)
    cliques = clique_tree(eliminate(neighbours, 12))
    nodes = [{*clique.residual, *clique.separator} for clique in cliques]
    assert sorted(node for clique in cliques for node in clique.residual) == np.unique(pairs).tolist()
    assert all(any({a, b} <= members for members in nodes) for a, b in pairs.tolist())
    for number, clique in enumerate(cliques):
        assert clique.parent < number
        assert set(clique.separator) <= (nodes[clique.parent] if clique.parent >= 0 else set())
        assert not any(nodes[number] <= other for place, other in enumerate(nodes) if place != number)


def test_a_cycle_has_width_two_and_a_clique_has_none_to_spare():
    cycle = np.array([(j, (j + 1) % 9) for j in range(9)])
    assert max(len(c.residual) + len(c.separator) for c in exact_cliques(cycle, 3, 2**20)) == 3
    assert exact_cliques(cycle, 3, 26) is None
    clique = np.array([(a, b) for a in range(5) for b in range(a)])
    assert len(exact_cliques(clique, 3, 3**5)) == 1
    assert exact_cliques(clique, 3, 3**5 - 1) is None


@pytest.mark.parametrize(("n_classes", "max_table", "expected"), [(3, 27, 3), (3, 26, 2), (2, 2**20, 20), (3, 1, 0)])
def test_the_largest_clique_fits_the_table(n_classes, max_table, expected):
    assert largest_clique(n_classes, max_table) == expected


# Links that contradict each other


@given(networks())
def test_what_is_infeasible_is_named_and_minimal(network):
    if enumerate_labels(network) is not None:
        return
    with pytest.raises(InfeasibleNetwork) as caught:
        build(network, hard=False).infer(*network.potentials)
    named = caught.value.edges
    assert [tuple(network.edges[edge]) for edge in named] == caught.value.links
    structure = network.without_data()
    if np.isneginf(network.nodes).all(axis=1).any():
        return
    assert enumerate_labels(structure.with_edges(named)) is None
    for edge in named:
        assert enumerate_labels(structure.with_edges([other for other in named if other != edge])) is not None


@pytest.mark.parametrize("length", [3, 5, 7])
def test_an_odd_cycle_with_two_classes_is_refused_at_once(length):
    edges = [(j, (j + 1) % length) for j in range(length)] + [(length, 0), (length, length + 1)]
    with pytest.raises(InfeasibleLinks, match=f"2 classes meets these {length} links") as caught:
        LabelNetwork(length + 2, 2, edges, hard=[True] * len(edges))
    assert sorted(caught.value.edges) == list(range(length))
    with pytest.raises(InfeasibleNetwork, match=f"these {length} links"):
        LabelNetwork(length + 2, 2, edges).infer(
            np.zeros((length + 2, 2)), np.full(len(edges), -np.inf), np.zeros(len(edges))
        )


def test_a_short_odd_cycle_is_preferred():
    long = [(j, (j + 1) % 9) for j in range(9)]
    assert sorted(odd_cycle(12, np.array([*long, (9, 10), (10, 11), (11, 9), (8, 9)]))) == [9, 10, 11]
    assert odd_cycle(4, np.array([(0, 1), (1, 2), (2, 3), (3, 0)])) == []


@pytest.mark.parametrize("n_classes", [3, 4])
@pytest.mark.parametrize("settings", [{}, {"max_table": 3}])
def test_a_clique_with_one_node_too_many_is_named(n_classes, settings):
    clique = [(a, b) for a in range(n_classes + 1) for b in range(a)]
    edges = [*clique, (5, 6), (6, 0), (5, 1), (7, 5)]
    same, different = np.full(len(edges), -np.inf), np.zeros(len(edges))
    with pytest.raises(InfeasibleNetwork, match="drop one of them, or ask for more classes") as caught:
        LabelNetwork(8, n_classes, edges, hard=[True] * len(edges), **settings).infer(
            np.zeros((8, n_classes)), same, different
        )
    assert sorted(caught.value.edges) == list(range(len(clique)))


def test_a_conflict_without_cycle_or_clique_is_reduced():
    # A wheel: the rim needs three labels besides that of the hub.
    rim = [(j, (j + 1) % 5) for j in range(5)]
    spokes = [(5, j) for j in range(5)]
    pairs = np.array([*rim, *spokes, (5, 6), (6, 7)])
    conflict = find_conflict(np.ones((8, 3), dtype=bool), pairs, np.zeros(len(pairs), dtype=bool))
    assert conflict == list(range(10))


def test_labels_that_nodes_can_not_have_take_part_in_a_conflict():
    nodes = np.array([[0.0, -np.inf, -np.inf], [0.0, -np.inf, -np.inf], [0.0, 0.0, 0.0]])
    network = LabelNetwork(3, 3, [(0, 1), (1, 2)])
    with pytest.raises(InfeasibleNetwork, match="this link, given the labels that these nodes can have") as caught:
        network.infer(nodes, np.full(2, -np.inf), np.zeros(2))
    assert caught.value.links == [(0, 1)]
    with pytest.raises(InfeasibleNetwork, match="this link"):
        network.most_probable(nodes, np.full(2, -np.inf), np.zeros(2))
    nodes[2] = -np.inf
    with pytest.raises(InfeasibleNetwork, match="node 2 has no label"):
        network.infer(nodes, np.zeros(2), np.zeros(2))


def test_a_node_apart_from_itself_is_named():
    with pytest.raises(InfeasibleNetwork, match="node 1 cannot have a label other than its own") as caught:
        LabelNetwork(2, 3, [(0, 1), (1, 1)]).infer(np.zeros((2, 3)), np.full(2, -np.inf), np.zeros(2))
    assert caught.value.edges == [1]


def test_the_error_crosses_a_process_border():
    error = pickle.loads(pickle.dumps(InfeasibleNetwork("no", [(0, 1)], [3])))
    assert (str(error), error.links, error.edges) == ("no", [(0, 1)], [3])


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="hard has 2 entries for 1 edges"):
        LabelNetwork(2, 2, [(0, 1)], hard=[True, True])
    with pytest.raises(ValueError, match="finite log_same"):
        LabelNetwork(2, 2, [(0, 1)], hard=[True]).infer(np.zeros((2, 2)), np.zeros(1), np.zeros(1))


# Above the width limit


def test_a_wide_core_warns_with_its_size_and_a_remedy():
    edges = [(a, b) for a in range(6) for b in range(a)] + [(6, 0)]
    words = r"7 nodes and 16 links .* core of 6 nodes has a width of 4 or more.*3\^5 = 243 .*max_table=100.*pairwise"
    with pytest.warns(ApproximateInference, match=words) as caught:
        assert not LabelNetwork(7, 3, edges, max_table=100).is_exact
    assert len(caught) == 1
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert LabelNetwork(7, 3, edges, max_table=3**6).is_exact


@pytest.mark.parametrize("seed", range(10))
def test_loopy_propagation_is_exact_on_a_tree(seed):
    network = random_network(seed, n_nodes=8, tree=True, forbidden=0.1)
    answer = enumerate_labels(network)
    loopy = LoopyPropagation(network.edges, tol=1e-12, max_iter=1000)
    with np.errstate(divide="ignore", invalid="ignore"):
        result = loopy.infer(*network.potentials)
    assert result.converged
    np.testing.assert_allclose(result.marginals, answer.marginals, atol=1e-9)
    np.testing.assert_allclose(result.edge_same, answer.edge_same, atol=1e-9)
    bethe = result.node_log_partition.sum() + result.edge_log_partition.sum()
    np.testing.assert_allclose(bethe, answer.log_partition, atol=1e-8)


@pytest.mark.parametrize("seed", range(5))
def test_loopy_propagation_is_close_on_a_graph_with_cycles(seed):
    network = random_network(seed, n_nodes=8, n_edges=12, n_classes=4)
    answer = enumerate_labels(network)
    built = build_wide(network)
    posterior = built.infer(*network.potentials)
    assert posterior.converged
    np.testing.assert_allclose(posterior.marginals, answer.marginals, atol=0.15)
    np.testing.assert_allclose(posterior.edge_same, answer.edge_same, atol=0.15)
    np.testing.assert_allclose(posterior.log_partition, answer.log_partition, atol=0.15)
    assert np.abs(posterior.marginals - answer.marginals).mean() < 0.03


def test_loopy_propagation_notices_labels_that_leave_nothing():
    edges = [(0, 1), (1, 2), (2, 0)]
    network = Network(np.zeros((3, 3)), np.array(edges), np.full(3, -np.inf), np.zeros(3))
    network.nodes[:2, 1:] = -np.inf
    with pytest.raises(InfeasibleNetwork, match="nodes 0-1"):
        build_wide(network).infer(*network.potentials)


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_search_finds_the_most_probable_labels_of_small_cores(seed, n_classes):
    network = random_network(
        seed, n_nodes=7, n_edges=14, n_classes=n_classes, hard=0.3, together=0.1, forbidden=0.05, scale=3.0
    )
    answer = enumerate_labels(network)
    found = most_probable_labels(network.nodes, network.edges, network.same, network.different)
    if answer is None:
        assert found is None
    else:
        np.testing.assert_allclose(scores(network, found[None])[0], answer.best, atol=1e-9)
    if answer is not None and n_classes == 3:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ApproximateInference)
            labels = build(network, max_table=1).most_probable(*network.potentials)
        np.testing.assert_allclose(scores(network, labels[None])[0], answer.best, atol=1e-9)


def links_from_labels(n_points, n_classes, n_links, kind, separation, seed=0):
    """Chunklets and cannot-links from links drawn from true labels, with noisy potentials of the points."""
    random = np.random.default_rng(seed)
    y = random.integers(n_classes, size=n_points)
    links = Links.from_labels(y, n_links, kind=kind, random_state=seed)
    chunklet = links.chunklets(n_points)
    points = random.normal(size=(n_points, n_classes))
    points[np.arange(n_points), y] += separation
    nodes = np.zeros((chunklet.max() + 1, n_classes))
    np.add.at(nodes, chunklet, points)
    edges = chunklet[links.cannot]
    truth = np.empty(len(nodes), dtype=np.int64)
    truth[chunklet] = y
    return Network(nodes, edges, np.full(len(edges), -np.inf), np.zeros(len(edges))), truth


@pytest.mark.parametrize(
    ("n_classes", "n_links", "kind", "separation"),
    [
        (3, 500, "both", 1.0),
        (3, 5000, "both", 0.0),
        (10, 2000, "both", 1.0),
        (10, 5000, "both", 0.0),
        (3, 1200, "cannot", 1.0),
        (3, 5000, "cannot", 0.0),
        (5, 5000, "cannot", 1.0),
        (8, 5000, "cannot", 0.5),
    ],
)
def test_links_drawn_from_true_labels_are_all_met(n_classes, n_links, kind, separation):
    network, truth = links_from_labels(500, n_classes, n_links, kind, separation)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ApproximateInference)
        built = build(network)
    labels = built.most_probable(*network.potentials)
    assert (labels[network.edges[:, 0]] != labels[network.edges[:, 1]]).all()
    if separation:  # if the points are informative, the labels found are more probable than the true ones
        assert scores(network, labels[None])[0] >= scores(network, truth[None])[0]


def temper_labels(allowed, edges):
    return temper(allowed, neighbour_lists(len(allowed), edges), np.zeros(allowed.shape), 2000)


def test_labels_are_found_where_backtracking_gives_up():
    network, _ = links_from_labels(200, 4, 800, "cannot", 0.0)
    allowed = np.ones(network.size, dtype=bool)
    labels = find_labels(allowed, network.edges, backtracking_steps=0)
    assert (labels[network.edges[:, 0]] != labels[network.edges[:, 1]]).all()
    with pytest.raises(UndecidedError):
        find_labels(allowed, network.edges, backtracking_steps=0, tempering_sweeps=0)


@pytest.mark.parametrize("find", [find_labels, temper_labels])
def test_only_allowed_labels_are_given(find):
    random = np.random.default_rng(0)
    network, truth = links_from_labels(100, 4, 300, "cannot", 0.0)
    allowed = random.random(network.size) < 0.6
    allowed[np.arange(100), truth] = True
    labels = find(allowed, network.edges)
    assert (labels[network.edges[:, 0]] != labels[network.edges[:, 1]]).all()
    assert allowed[np.arange(100), labels].all()


def test_a_search_that_ends_without_a_verdict_says_so(monkeypatch):
    def give_up(*_arguments, **_settings):
        raise UndecidedError

    network = random_network(0, n_nodes=6, n_edges=12, n_classes=4, hard=1.0)
    built = build_wide(network)
    monkeypatch.setattr(label_network, "most_probable_labels", give_up)
    with pytest.raises(UndecidedNetwork, match="though there may be some") as caught:
        built.most_probable(*network.potentials)
    assert caught.value.links == [tuple(edge) for edge in network.edges.tolist()]


@pytest.mark.parametrize("n_classes", [1, 3])
def test_the_search_of_a_large_core_knows_what_is_not_allowed(n_classes):
    random = np.random.default_rng(0)
    edges = np.stack([np.arange(400) % 150, (np.arange(400) * 7 + 1) % 150], axis=1)
    nodes = random.normal(size=(150, n_classes))
    nodes[::3, 1:] = -np.inf
    labels = most_probable_labels(nodes, edges, np.ones(400), np.zeros(400))
    assert (labels[::3] == 0).all()
