from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import expon, poisson

from density_checks import check_climbs, check_protocol
from linkmix.basics.errors import DegenerateCluster
from linkmix.densities import (
    FORMS,
    BadColumn,
    Bernoulli,
    Categorical,
    Density,
    Gaussian,
    Poisson,
    Product,
    Statistics,
    StudentT,
    given_array,
)

rng = np.random.default_rng(0)
GROUPS = np.repeat([0, 1], 40)
TABLE = np.column_stack(
    [
        rng.choice(3, size=80),
        GROUPS * 2 + rng.normal(size=80),
        rng.poisson(2 + 4 * GROUPS),
        rng.random(80) < 0.2 + 0.6 * GROUPS,
        GROUPS - rng.normal(size=80),
    ]
).astype(float)
HOLES = np.where(rng.random(TABLE.shape) < 0.2, np.nan, TABLE)


def mixed(numeric=None):
    return Product(
        {
            "size": (Gaussian() if numeric is None else numeric, [4, 1]),
            "visits": (Poisson(), [2]),
            "kind": (Categorical(), [0]),
            "member": (Bernoulli(), [3]),
        }
    )


def test_log_density_is_the_sum_of_the_parts():
    density = mixed()
    weights = np.random.default_rng(1).random((80, 2))
    parameters = density.start(TABLE, weights)
    parts = [
        (Gaussian(), [4, 1], "size"),
        (Poisson(), [2], "visits"),
        (Categorical(), [0], "kind"),
        (Bernoulli(), [3], "member"),
    ]
    expected = 0.0
    for part, columns, name in parts:
        own = part.start(TABLE[:, columns], weights)
        expected = expected + part.log_density(own, TABLE[:, columns])
        for key, array in part.attributes(own, (2, 1)).items():
            found = density.attributes(parameters, (2, 1))[f"{name}_{key}"]
            np.testing.assert_allclose(found, array, rtol=1e-14)
    np.testing.assert_allclose(density.log_density(parameters, TABLE), expected, rtol=1e-14)
    np.testing.assert_allclose(
        density.log_prior(parameters),
        sum(part.log_prior(parameters.parts[name]) for part, _, name in parts),
        rtol=1e-14,
    )


@pytest.mark.parametrize("X", [TABLE, HOLES], ids=["complete", "holes"])
def test_protocol(X):
    check_protocol(mixed(), X)
    check_protocol(mixed(Gaussian(FORMS["tied"], shrinkage=2.0)), X)


@pytest.mark.parametrize("X", [TABLE, HOLES], ids=["complete", "holes"])
@pytest.mark.parametrize("clusters_per_class", [1, 2])
@pytest.mark.parametrize("numeric", [Gaussian(), Gaussian(FORMS["diag"], 0.5), Gaussian(reg_covar=0.5, shrinkage=4.0)])
def test_the_objective_never_falls(X, clusters_per_class, numeric):
    check_climbs(mixed(numeric), X, clusters_per_class)


class Complete(Gaussian):
    """A density that needs all values."""

    allows_missing = False


def test_missing_values_are_allowed_if_all_parts_allow_them():
    assert mixed().allows_missing
    assert not mixed(Complete()).allows_missing
    check_protocol(mixed(StudentT(degrees_of_freedom=None)), TABLE)
    check_climbs(mixed(StudentT(degrees_of_freedom=None)), TABLE)


def test_each_part_takes_its_own_step():
    density = mixed()
    weights = np.random.default_rng(1).random((80, 2))
    parameters = density.start(TABLE, weights)
    sums = density.statistics(parameters, TABLE, weights**2)
    for step in ("maximize", "maximize_cautiously"):
        found = getattr(density, step)(sums, parameters)
        for name, part in (("size", Gaussian()), ("kind", Categorical())):
            expected = getattr(part, step)(sums.parts[name], parameters.parts[name])
            np.testing.assert_array_equal(
                part.attributes(found.parts[name], (2, 1)).popitem()[1],
                part.attributes(expected, (2, 1)).popitem()[1],
            )


def test_samples_have_their_columns_in_place():
    density = mixed()
    parameters = density.start(TABLE, np.eye(2)[GROUPS])
    drawn = density.sample(parameters, 1, 5000, np.random.RandomState(0))
    density.check(drawn)
    np.testing.assert_allclose(drawn.mean(axis=0), TABLE[40:].mean(axis=0), atol=0.25)


def test_number_of_parameters():
    density = mixed()
    parameters = density.start(TABLE, np.eye(2)[GROUPS])
    assert density.free_parameters(parameters, 2, 5) == 2 * (5 + 1 + 2 + 1)
    known = Product({"kind": (Categorical(n_levels=3), [0]), "visits": (Poisson(), [1])})
    assert known.n_parameters(2, 2) == 2 * (2 + 1)


def test_errors_name_the_column_of_the_whole_table():
    bad = TABLE.copy()
    bad[3, 2] = 0.5
    with pytest.raises(BadColumn, match=r"column 2 \(part 'visits'\) holds 0.5 in row 3, where Poisson needs"):
        mixed().check(bad)
    density = Product({"numbers": (Gaussian(), [1, 2, 4]), "codes": (Categorical(), [3, 0])})
    parameters = density.start(TABLE, np.ones((80, 1)))
    bad = TABLE.copy()
    bad[3, 0] = 3
    for failing in (density.log_density, lambda p, X: density.statistics(p, X, np.ones((80, 1)))):
        with pytest.raises(BadColumn, match=r"column 0 \(part 'codes'\) holds the code 3, .* seen only 0 to 2"):
            failing(parameters, bad)
    bad[:, 4] = np.nan
    with pytest.raises(BadColumn, match=r"column 4 \(part 'numbers'\) holds no value, only NaN: drop it"):
        density.start(bad, np.ones((80, 1)))


def test_a_part_within_a_part():
    inner = Product({"visits": (Poisson(), [1]), "member": (Bernoulli(), [0])})
    outer = Product({"yes": (inner, [3, 2]), "rest": (Gaussian(), [0, 1, 4])})
    check_protocol(outer, TABLE)
    with pytest.raises(BadColumn, match=r"column 3 \(part 'yes'\) \(part 'member'\) holds 7 in row 0"):
        outer.check(np.full((1, 5), 7.0))


def test_every_column_belongs_to_one_part():
    with pytest.raises(ValueError, match="no part describes columns 1, 4: add them to a part, or drop them"):
        Product({"a": (Gaussian(), [0, 2, 3])}).check(TABLE)
    with pytest.raises(ValueError, match="no part describes column 4: "):
        Product({"a": (Gaussian(), range(4))}).start(TABLE, np.ones((80, 1)))
    with pytest.raises(ValueError, match=r"part 'b' names column 5, but the data have 5 columns \(0 to 4\)"):
        Product({"a": (Gaussian(), range(5)), "b": (Poisson(), [5])}).check(TABLE)
    with pytest.raises(ValueError, match="no part describes columns 1, 2, 3, 4, 5, 6, 7, 8 and 11 more"):
        Product({"a": (Gaussian(), [0])}).check(np.zeros((2, 20)))


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({}, "names no part"),
        ([], "names no part"),
        ({"a": (Gaussian(), [0, 1]), "b": (Poisson(), [1])}, "column 1 is in 'a' and 'b': name each column once"),
        ({"a": (Gaussian(), [1, 1])}, "column 1 is twice in part 'a'"),
        ({"a": (Gaussian(), [-1])}, "part 'a' has the column -1: use column numbers from 0"),
        ({"a": (Gaussian(), ["size", 1])}, "part 'a' has the column 'size': use column numbers from 0, or names alone"),
        ({"a": (Gaussian(), "size")}, r"part 'a' has the columns 'size': pass a list, \['size'\]"),
        ({"a": (Gaussian(), ["size"]), "b": (Poisson(), [1])}, "by numbers and by names"),
        ({"a": (Gaussian(), ["size"]), "b": (Poisson(), ["size"])}, "column 'size' is in 'a' and 'b'"),
        ({"a": (Gaussian(), [True])}, "part 'a' has the column True"),
        ({"a": (Gaussian(), [])}, "part 'a' has no columns"),
        ({"a": (Gaussian(), 3)}, r"pass \(density, list of column numbers\)"),
        ({"a": Gaussian()}, r"pass \(density, list of column numbers\)"),
        ({"a": ("gaussian", [0])}, "part 'a' has no density but 'gaussian': pass an object"),
        ({"a b": (Gaussian(), [0])}, "part 'a b' has no usable name"),
        ({1: (Gaussian(), [0])}, "part 1 has no usable name"),
    ],
)
def test_bad_parts_are_refused(parts, message):
    with pytest.raises(ValueError, match=message):
        Product(parts)


def test_bad_starts_name_the_part():
    with pytest.raises(
        ValueError, match="part 'visits', whose entries of init begin with 'visits_': init has no 'rates'"
    ):
        Product({"visits": (Poisson(), [0])}).given({"rates": [[[1.0]]]}, (1, 1), 1)


def test_a_degenerate_part_stays_a_degenerate_cluster():
    """The estimator tries another start on this error, so its kind matters."""
    with pytest.raises(DegenerateCluster, match="raise reg_covar"):
        Product({"a": (Gaussian(reg_covar=0.0), [0])}).start(np.zeros((5, 1)), np.ones((5, 1)))


def test_representation():
    density = Product({"a": (Poisson(), [1]), "b": (Bernoulli(), range(1))})
    assert (
        repr(density) == "Product(parts={'a': (Poisson(smoothing=1.0), (1,)), 'b': (Bernoulli(smoothing=1.0), (0,))})"
    )


def test_parts_are_copied():
    parts = {"a": (Poisson(), [1]), "b": (Bernoulli(), [0])}
    density = Product(parts)
    parts["c"] = (Poisson(), [2])
    parts["a"][1].append(3)
    assert density == Product({"a": (Poisson(), (1,)), "b": (Bernoulli(), range(1))})


# A user-defined density: all that it takes.


@dataclass(frozen=True, eq=False)
class Rates:
    rates: np.ndarray  # (C, d)


@dataclass(frozen=True, eq=False)
class Sums(Statistics):
    weight: np.ndarray  # (C,)
    total: np.ndarray  # (C, d)


@dataclass(frozen=True)
class Exponential(Density[Rates, Sums]):
    """Waiting times."""

    def log_density(self, parameters, X):
        return np.log(parameters.rates).sum(axis=1) - X @ parameters.rates.T

    def statistics(self, parameters, X, weights):
        return Sums(weights.sum(axis=0), weights.T @ X)

    def maximize(self, statistics, parameters):
        return Rates(statistics.weight[:, None] / statistics.total)

    def start(self, X, weights):
        return self.maximize(self.statistics(None, X, weights), None)

    def given(self, mapping, shape, n_features):
        return Rates(given_array(mapping, "rates", (*shape, n_features)).reshape(-1, n_features))

    def attributes(self, parameters, shape):
        return {"rates": parameters.rates.reshape(*shape, -1)}

    def sample(self, parameters, component, n_samples, random):
        return random.exponential(1 / parameters.rates[component], (n_samples, parameters.rates.shape[1]))

    def n_parameters(self, n_components, n_features):
        return n_components * n_features


def test_a_density_of_ones_own_is_fitted():
    X = np.random.default_rng(0).exponential(np.repeat([[1.0, 9.0], [9.0, 1.0]], 40, axis=0))
    check_protocol(Exponential(), X)
    fit = check_climbs(Exponential(), X, max_iter=100)
    found = fit.parameters.components
    expected = expon(scale=1 / found.rates[0]).logpdf(X).sum(axis=1)
    np.testing.assert_allclose(Exponential().log_density(found, X)[:, 0], expected, rtol=1e-12)
    labels = Exponential().log_density(found, X).argmax(axis=1)
    share = np.mean(labels == np.repeat([0, 1], 40))
    assert max(share, 1 - share) > 0.85


def test_a_density_of_ones_own_is_part_of_a_product():
    waits = np.random.default_rng(0).exponential(1 + 4 * GROUPS)[:, None]
    X = np.column_stack([TABLE[:, 2], waits])
    density = Product({"count": (Poisson(), [0]), "wait": (Exponential(), [1])})
    check_protocol(density, X)
    found = check_climbs(density, X).parameters.components
    count = poisson(found.parts["count"].values[0, 0]).logpmf(X[:, 0])
    wait = expon(scale=1 / found.parts["wait"].rates[0, 0]).logpdf(X[:, 1])
    np.testing.assert_allclose(density.log_density(found, X)[:, 0], count + wait, rtol=1e-12)
