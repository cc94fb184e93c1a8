"""Labels of networks in the core against the NumPy classes, which are tested against enumeration."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkmix import native
from linkmix.couplings.network import ApproximateInference, InfeasibleNetwork, LabelNetwork
from linkmix.links.pairs import component_ids
from network_oracle import Network, enumerate_labels, networks, random_network

pytestmark = pytest.mark.skipif(not native.active(), reason="the native core is not built")


def build(network, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ApproximateInference)
        return LabelNetwork(*network.size, network.edges, hard=network.hard, **settings)


def both(built, network):
    """The answers of NumPy and of the core."""
    with native.using("off"):
        numpy = built.infer(*network.potentials)
    return numpy, built.infer(*network.potentials)


def assert_equal(numpy, core, atol=1e-10):
    np.testing.assert_allclose(core.marginals, numpy.marginals, rtol=0, atol=atol)
    np.testing.assert_allclose(core.edge_same, numpy.edge_same, rtol=0, atol=atol)
    np.testing.assert_allclose(core.log_partition, numpy.log_partition, rtol=1e-12, atol=atol)
    np.testing.assert_allclose(core.component_log_partition, numpy.component_log_partition, rtol=1e-12, atol=atol)
    assert core.converged == numpy.converged


def in_core(built, network):
    """Whether the core itself gives the answer."""
    total, *_ = native.infer_network(built.plan, *network.potentials, built.n_components)
    return not np.isnan(total)


@given(networks(), st.sampled_from(native.levels() or ["base"]))
def test_small_networks_of_every_kind(network, level):
    try:
        built = build(network)
        answer = enumerate_labels(network)
        with native.using(level):
            numpy, core = both(built, network)
    except InfeasibleNetwork:
        assert enumerate_labels(network) is None
        return
    assert in_core(built, network)
    assert_equal(numpy, core)
    np.testing.assert_allclose(core.marginals, answer.marginals, rtol=0, atol=1e-10)
    np.testing.assert_allclose(core.log_partition, answer.log_partition, rtol=1e-12, atol=1e-10)


@pytest.mark.parametrize("scale", [1.0, 300.0, 1e5])
@pytest.mark.parametrize("n_classes", [2, 3, 7, 20])
@pytest.mark.parametrize("kind", ["tree", "sparse", "hard"])
def test_larger_networks(kind, n_classes, scale):
    network = random_network(
        n_classes,
        n_nodes=200,
        n_classes=n_classes,
        n_edges={2: 200, 3: 200, 7: 140, 20: 115}[n_classes],
        hard=1.0 if kind == "hard" and n_classes > 2 else 0.4,
        tree=kind == "tree",
        scale=scale,
        forbidden=0.02 if n_classes > 2 else 0.0,
    )
    built = build(network)
    assert built.is_exact
    assert in_core(built, network)
    assert_equal(*both(built, network))


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_wide_tables(n_classes):
    """Cliques with many nodes, in trees with several children."""
    random = np.random.default_rng(n_classes)
    size = 7 if n_classes < 4 else 5
    cliques = [list(range(size))]
    for start in range(size, 60 - size, size - 3):  # each shares three nodes with one of the others
        shared = random.choice(cliques[random.integers(len(cliques))], size=3, replace=False)
        cliques.append([*shared, *range(start, start + size - 3)])
    edges = np.array([(a, b) for members in cliques for i, a in enumerate(members) for b in members[:i]])
    same, different = random.normal(size=(2, len(edges)))
    different[:5] = -np.inf
    same[random.random(len(edges)) < 0.02] = -np.inf
    network = Network(100 * random.normal(size=(60, n_classes)), edges, same, different)
    built = build(network, max_table=2**18)
    assert built._trees
    assert in_core(built, network)
    assert_equal(*both(built, network))


@pytest.mark.parametrize("hard", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("n_classes", [2, 3, 8])
@pytest.mark.parametrize("scale", [1.0, 1000.0])
def test_loopy_messages(n_classes, hard, scale):
    """The same rounds and the same damping, so the same digits even where the messages do not converge."""
    n_classes = max(n_classes, 4) if hard else n_classes
    network = random_network(3, n_nodes=60, n_classes=n_classes, n_edges=70, hard=hard, scale=scale)
    built = build(network, max_table=1, loopy_tol=1e-6)
    assert not built.is_exact
    assert in_core(built, network)
    assert_equal(*both(built, network))


@pytest.mark.parametrize("n_pairs", [0, 1, 30, 80, 400])
def test_connected_components(n_pairs):
    pairs = np.random.default_rng(n_pairs).integers(100, size=(n_pairs, 2))
    np.testing.assert_array_equal(native.components(pairs, 100), component_ids(pairs, 100))
    with pytest.raises(ValueError, match="none of 100"):
        native.components(np.array([[0, 100]]), 100)


def test_a_contradiction_is_told_as_without_the_core():
    network = random_network(0, n_nodes=4, n_classes=3, n_edges=0)
    edges = np.array([(a, b) for a in range(4) for b in range(a)])
    network = Network(network.nodes, edges, np.full(6, -np.inf), np.zeros(6))
    built = build(network)
    assert not in_core(built, network)
    with pytest.raises(InfeasibleNetwork):
        built.infer(*network.potentials)


def test_a_plan_for_another_number_of_classes_is_refused():
    network = random_network(0, n_nodes=4, n_classes=3)
    plan = build(network).plan
    with pytest.raises(ValueError, match="no plan"):
        native.infer_network(plan, network.nodes[:, :2], network.same, network.different, 1)
    with pytest.raises(ValueError, match="no plan"):
        native.infer_network(plan[:-1], *network.potentials, 1)
