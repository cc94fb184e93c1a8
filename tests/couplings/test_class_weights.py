import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkmix.couplings.class_weights import log_probability_apart, normalise_class_weights, solve_class_weights
from oracles import class_weight_objective, class_weight_residual, class_weights_by_search

# The values of alpha_mstep.npz.
REFERENCE = [
    ([12.5, 9.5, 8.0], 10, [0.4686175099304997, 0.29604982966959176, 0.23533266039990858]),
    (
        [30.0, 20.0, 14.0, 6.0],
        15,
        [0.4693046280079707, 0.2751981372215632, 0.18212374177062096, 0.0733734929998452],
    ),
    ([5.0, 5.0, 5.0, 5.0, 4.0], 12, [4 / 19, 4 / 19, 4 / 19, 4 / 19, 3 / 19]),
]


def random_counts(rng, n_classes, n_free, n_cannot):
    """Counts as an E-step gives them: one label per free point, two different ones per cannot-link."""
    counts = n_free * rng.dirichlet(np.ones(n_classes)) if n_free else np.zeros(n_classes)
    for _ in range(n_cannot):
        joint = rng.random((n_classes, n_classes)) ** 3
        np.fill_diagonal(joint, 0.0)
        joint /= joint.sum()
        counts = counts + joint.sum(axis=0) + joint.sum(axis=1)
    return counts


@pytest.mark.parametrize(("counts", "n_cannot", "expected"), REFERENCE)
def test_reference_values(counts, n_cannot, expected):
    np.testing.assert_allclose(solve_class_weights(counts, n_cannot), expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("n_classes", [2, 3, 4, 6])
@pytest.mark.parametrize(("n_free", "n_cannot"), [(5, 1), (20, 20), (1, 30), (200, 3)])
def test_a_general_solver_finds_the_same(n_classes, n_free, n_cannot):
    counts = random_counts(np.random.default_rng(n_classes + n_free), n_classes, n_free, n_cannot)
    weights = solve_class_weights(counts, n_cannot)
    np.testing.assert_allclose(weights, class_weights_by_search(counts, n_cannot), rtol=0, atol=1e-6)
    np.testing.assert_allclose(class_weight_residual(weights, counts, n_cannot), 0, atol=1e-10)


@pytest.mark.parametrize(
    ("counts", "n_cannot", "previous"),
    [
        ([2536.544718698741, 2282.359710659483, 3598.0364899320875, 1587.0590807096862], 2, [0.1, 0.5, 0.2, 0.2]),
        (
            [2536.544718698741, 2282.359710659483, 3598.0364899320875, 1587.0590807096862],
            2,
            [0.10278581793080148, 0.5078838649094275, 0.19977077543415808, 0.18955954212561296],
        ),
        (
            [13.872423101292117, 11.157145072449653, 10.829587520553401, 11.008058672636178, 10.132785633068652],
            26,
            [0.5992660271797602, 0.1526574363575808, 0.00044083332015574714, 0.1713599608699432, 0.0762757427725601],
        ),
    ],
)
def test_the_solution_is_sharper_than_the_objective_can_tell(counts, n_cannot, previous):
    """Near the minimum the objective is flat to the last digit, but its gradient is still informative."""
    weights = solve_class_weights(counts, n_cannot, previous)
    np.testing.assert_allclose(class_weight_residual(weights, np.array(counts), n_cannot), 0, atol=1e-10)


counts_of_an_e_step = st.builds(
    lambda seed, n_classes, n_free, n_cannot: (
        random_counts(np.random.default_rng(seed), n_classes, n_free, n_cannot),
        n_cannot,
    ),
    seed=st.integers(0, 2**32 - 1),
    n_classes=st.integers(2, 6),
    n_free=st.integers(1, 50) | st.floats(1e-3, 1e6),
    n_cannot=st.integers(0, 30),
)


@given(counts_of_an_e_step, st.integers(0, 2**32 - 1))
def test_the_weights_are_the_global_minimum(counts_and_n_cannot, seed):
    counts, n_cannot = counts_and_n_cannot
    weights = solve_class_weights(counts, n_cannot)
    assert np.all(weights > 0)
    assert weights.sum() == pytest.approx(1, abs=1e-14)
    np.testing.assert_allclose(class_weight_residual(weights, counts, n_cannot), 0, atol=1e-10)
    lowest = class_weight_objective(weights, counts, n_cannot)
    for other in np.random.default_rng(seed).dirichlet(np.full(len(counts), 0.7), size=20):
        if np.all(other > 1e-9):
            assert lowest <= class_weight_objective(other, counts, n_cannot) + 1e-9 * abs(lowest)


@given(counts_of_an_e_step, st.floats(0.01, 100), st.integers(0, 2**32 - 1))
def test_neither_the_start_nor_a_common_factor_matters(counts_and_n_cannot, factor, seed):
    counts, n_cannot = counts_and_n_cannot
    weights = solve_class_weights(counts, n_cannot)
    start = np.random.default_rng(seed).dirichlet(np.ones(len(counts))) + 1e-10
    np.testing.assert_allclose(solve_class_weights(counts, n_cannot, previous=start), weights, atol=1e-9)
    np.testing.assert_allclose(solve_class_weights(factor * counts, factor * n_cannot), weights, atol=1e-9)


def test_the_objective_is_not_convex_in_the_weights():
    """Why the solver uses logarithms: halfway between two weights the objective can be above both."""
    counts, n_cannot = np.array([1.0, 0.5, 0.5]), 1
    at = np.array([0.1, 0.45, 0.45])
    curvature = np.diag(counts / at**2)
    apart = 1 - np.sum(at**2)
    curvature += n_cannot * (-2 * np.eye(3) / apart - 4 * np.outer(at, at) / apart**2)
    along = np.array([0.0, 1.0, -1.0])
    assert along @ curvature @ along < 0


def test_without_cannot_links_the_weights_are_shares():
    np.testing.assert_allclose(solve_class_weights([3, 5, 2], 0), [0.3, 0.5, 0.2], rtol=1e-15)


def test_two_classes_in_closed_form():
    np.testing.assert_allclose(solve_class_weights([3 + 4, 1 + 4], 4), [0.75, 0.25], rtol=1e-15)


def test_two_classes_and_cannot_links_only_keep_the_previous_weights():
    assert solve_class_weights([4.0, 4.0], 4, previous=[0.9, 0.1]).tolist() == [0.9, 0.1]
    assert solve_class_weights([4.0, 4.0], 4).tolist() == [0.5, 0.5]


def test_one_class_has_all_the_weight():
    assert solve_class_weights([7.0], 0).tolist() == [1.0]


def test_without_counts_the_previous_weights_stay():
    assert solve_class_weights([0.0, 0.0, 0.0], 0, previous=[0.2, 0.3, 0.5]).tolist() == [0.2, 0.3, 0.5]
    np.testing.assert_allclose(solve_class_weights([0.0, 0.0, 0.0], 0), np.full(3, 1 / 3))


@pytest.mark.parametrize(
    ("counts", "n_cannot"), [([6.0, 0.0], 0), ([10.0, 4.0], 4), ([6.0, 0.0, 4.0], 2), ([0.0, 0.0, 6.0, 8.0], 3)]
)
def test_a_class_without_counts_keeps_a_tiny_weight(counts, n_cannot):
    weights = solve_class_weights(counts, n_cannot)
    empty = np.array(counts) <= (n_cannot if len(counts) == 2 else 0)
    np.testing.assert_allclose(weights[empty], 1e-12, rtol=1e-6)
    assert np.all(weights[~empty] > 1e-3)
    assert weights.sum() == pytest.approx(1, abs=1e-14)


@pytest.mark.parametrize("counts", [[10.0, 5.0, 5.0], [10.0, 10.0, 0.0], [10.0, 8.0, 2.0], [10.0, 4.0, 3.0, 3.0]])
def test_a_class_at_one_end_of_every_cannot_link(counts):
    """Its weight tends to one, and the others keep their proportions as far as the lower bound permits."""
    weights = solve_class_weights(counts, 10)
    assert np.all(np.isfinite(weights))
    assert np.all(weights >= 1e-12 * (1 - 1e-9))
    assert weights.sum() == pytest.approx(1, abs=1e-14)
    np.testing.assert_allclose(class_weight_residual(weights, np.array(counts), 10), 0, atol=1e-5)


@given(st.lists(st.floats(1e-9, 1.0), min_size=2, max_size=6))
def test_probability_apart(values):
    weights = np.array(values) / np.sum(values)
    pairs = np.outer(weights, weights)
    np.fill_diagonal(pairs, 0.0)
    assert np.exp(log_probability_apart(np.log(weights))) == pytest.approx(pairs.sum(), rel=1e-12)


def test_probability_apart_does_not_cancel():
    weights = np.array([1 - 2e-17, 1e-17, 1e-17])
    assert 1 - np.sum(weights**2) == 0
    assert np.exp(log_probability_apart(np.log([1.0, 1e-17, 1e-17]))) == pytest.approx(4e-17, rel=1e-12)


def test_shares_are_floored_and_sum_to_one():
    weights = normalise_class_weights(np.array([1.0, 0.0, 3.0]))
    np.testing.assert_allclose(weights, [0.25, 1e-12, 0.75], rtol=1e-11)
    assert weights.sum() == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize(
    ("counts", "n_cannot", "previous", "message"),
    [
        ([[1.0, 2.0]], 0, None, r"counts must be one number per class, got shape \(1, 2\): pass"),
        ([], 0, None, r"counts must be one number per class, got shape \(0,\): pass"),
        (3.0, 0, None, r"counts must be one number per class, got shape \(\): pass"),
        ([1.0, -2.0], 0, None, r"not negative, got \[1.0, -2.0\]: pass"),
        ([1.0, np.nan], 0, None, r"finite and not negative, got \[1.0, nan\]: pass"),
        ([1.0, np.inf], 0, None, r"finite and not negative, got \[1.0, inf\]: pass"),
        ([1.0, 2.0], -1, None, r"n_cannot must be finite and not negative, got -1: pass"),
        ([1.0, 2.0], np.nan, None, r"n_cannot must be finite and not negative, got nan: pass"),
        ([1.0, 2.0, 3.0], 4, None, r"counts sum to 6, less than the 8 ends of 4 cannot-links: count both ends"),
        ([9.0], 2, None, r"cannot-links need at least two classes, got counts of one: pass more"),
        ([1.0, 2.0], 0, [0.5, 0.5, 0.0], r"previous must be 2 positive weights, got \[0.5, 0.5, 0.0\]: pass"),
        ([1.0, 2.0], 0, [1.0, 0.0], r"previous must be 2 positive weights, got \[1.0, 0.0\]: pass"),
    ],
)
def test_bad_input(counts, n_cannot, previous, message):
    with pytest.raises(ValueError, match=message):
        solve_class_weights(counts, n_cannot, previous)
