"""What mixtures tell about single rows: the native core against NumPy, and single against double precision."""

import numpy as np
import pytest

from linkmix import AutoLinkMixture, Blocks, LinkMixture, Links, engine, native
from linkmix.data.scaling import Scaling
from linkmix.densities import FORMS, Gaussian, StudentT
from linkmix.densities.gaussian import GaussianParameters
from linkmix.densities.student import StudentParameters

needs_core = pytest.mark.skipif(not native.active(), reason="the native core is not built, or LINKMIX_NATIVE=0")
every_level = pytest.mark.parametrize("level", native.levels())
every_form = pytest.mark.parametrize("form", list(FORMS))
both_kinds = pytest.mark.parametrize("kind", [Gaussian, StudentT])

# Rows, columns, classes, clusters of each class, and whether classes share them: each side of every branch.
LAYOUTS = [
    *[(1, 1, 1, 1, False), (7, 2, 3, 1, False), (240, 3, 4, 1, False), (241, 4, 5, 2, False), (500, 5, 2, 3, False)],
    *[(300, 7, 9, 1, False), (250, 10, 4, 2, True), (100, 17, 2, 1, True), (130, 2, 1, 3, True)],
]
every_layout = pytest.mark.parametrize("layout", LAYOUTS, ids=str)


def random_mixture(kind, form, layout, seed=0, spread=3.0):
    """A mixture, and rows around its components, some of them far away."""
    n, d, n_classes, per_class, shared = layout
    rng = np.random.default_rng(seed)
    n_components = n_classes * per_class
    means = spread * rng.normal(size=(n_components, d))
    roots = rng.normal(size=(n_components, d, d))
    matrices = np.eye(d) + roots @ roots.swapaxes(1, 2) / d
    covariances = {
        "full": matrices,
        "tied": matrices[0],
        "diag": np.diagonal(matrices, axis1=1, axis2=2),
        "spherical": matrices[:, 0, 0],
    }[form]
    whiteners = FORMS[form].whiten(covariances)
    components = GaussianParameters(means, covariances, whiteners)
    if kind is StudentT:
        degrees = rng.uniform(0.5, 30, size=n_components)
        components = StudentParameters(means, covariances, whiteners, degrees)
    weights = rng.dirichlet(np.ones(n_components if shared else per_class), size=n_classes)
    parameters = engine.Parameters(rng.dirichlet(np.ones(n_classes)), weights, components, shared_clusters=shared)
    X = means[rng.integers(n_components, size=n)] + rng.normal(size=(n, d)) * rng.choice([1, 1, 1, 60], size=(n, 1))
    return engine.Mixture(kind(FORMS[form]), parameters), X


def a_view(d, seed=0):
    """A scaling of d columns that leaves out the first one and compresses about half of the others."""
    rng = np.random.default_rng(seed)
    scale, width = rng.uniform(0.5, 2, size=(2, d))
    scale[0] = 0
    width[rng.random(d) < 0.5] = 0
    return Scaling(rng.normal(size=d), scale, rng.normal(size=d), np.where(scale > 0, width, 0.0))


def everything(mixture, X):
    return {
        "log_joint": mixture.log_joint(X),
        "log_density": mixture.log_density(X),
        "probabilities": mixture.probabilities(X),
        "calibrated": mixture.probabilities(X, 7.0),
        "classes": mixture.classes(X),
    }


def by_numpy(mixture, X):
    with native.using("off"):
        return everything(mixture, X)


def assert_same(found, expected, rtol=1e-12, atol=1e-10):
    for name, value in expected.items():
        assert found[name].dtype == value.dtype
        if name == "classes":
            np.testing.assert_array_equal(found[name], value)
        else:
            np.testing.assert_allclose(found[name], value, rtol=rtol, atol=atol, err_msg=name)


def computed_by_the_core(mixture, monkeypatch):
    """Make sure that NumPy does not take over."""
    monkeypatch.setattr(type(mixture), "_log_joint", None)


@needs_core
@every_level
@both_kinds
@every_form
@every_layout
def test_the_core_tells_what_numpy_tells(level, kind, form, layout, monkeypatch):
    mixture, X = random_mixture(kind, form, layout)
    expected = by_numpy(mixture, X)
    computed_by_the_core(mixture, monkeypatch)
    with native.using(level):
        assert_same(everything(mixture, X), expected)


@needs_core
@every_level
@both_kinds
@every_form
@pytest.mark.parametrize("layout", [LAYOUTS[2], LAYOUTS[4], LAYOUTS[6]], ids=str)
def test_scaled_columns_are_computed_from_the_columns_as_they_came(level, kind, form, layout, monkeypatch):
    """Left-out columns, compressed tails, and log-densities in the units of the rows."""
    mixture, Z = random_mixture(kind, form, layout)
    n, d = Z.shape
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, d + 1)) * rng.choice([1, 10, 100], size=(n, 1))
    mixture = engine.Mixture(mixture.density, mixture.parameters, a_view(d + 1))
    expected = by_numpy(mixture, X)
    np.testing.assert_allclose(
        expected["log_density"],
        by_numpy(engine.Mixture(mixture.density, mixture.parameters), mixture.view(X))["log_density"]
        + mixture.view.log_slope(X),
        rtol=1e-12,
    )
    computed_by_the_core(mixture, monkeypatch)
    with native.using(level):
        assert_same(everything(mixture, X), expected)


@needs_core
@every_level
@both_kinds
@every_form
@every_layout
@pytest.mark.parametrize("scaled", [False, True])
def test_single_precision_is_right_to_its_digits(level, kind, form, layout, scaled):
    """Also for rows that are far away: those are computed in double precision."""
    mixture, X = random_mixture(kind, form, layout, seed=3)
    if scaled:
        view = a_view(X.shape[1] + 1)
        X = 5 * np.random.default_rng(0).normal(size=(len(X), X.shape[1] + 1))
        mixture = engine.Mixture(mixture.density, mixture.parameters, view)
    X = X.astype(np.float32)
    expected = by_numpy(mixture, X.astype(np.float64))
    with native.using(level):
        found = everything(mixture, X)
    np.testing.assert_allclose(found["log_joint"], expected["log_joint"], rtol=2e-6, atol=1e-4)
    np.testing.assert_allclose(found["log_density"], expected["log_density"], rtol=2e-6, atol=1e-4)
    np.testing.assert_allclose(found["probabilities"], expected["probabilities"], atol=1e-4)
    np.testing.assert_allclose(found["calibrated"], expected["calibrated"], atol=1e-4)
    chosen = np.take_along_axis(expected["probabilities"], found["classes"][:, None], axis=1)[:, 0]
    assert np.all(chosen >= expected["probabilities"].max(axis=1) - 1e-4), "another class only where they tie"


@needs_core
@every_level
@pytest.mark.parametrize("trouble", ["offset", "correlated", "outliers", "overflow"])
def test_single_precision_gives_way_where_it_would_lose_digits(level, trouble):
    rng = np.random.default_rng(0)
    d, n = 4, 500
    mixture, X = random_mixture(Gaussian, "full", (n, d, 3, 1, False))
    means, covariances = mixture.parameters.components.means, mixture.parameters.components.covariances
    if trouble == "offset":  # the digits that are left in the rows must not be lost by rounding the means
        X, means = X + 1e5, means + 1e5
    elif trouble == "correlated":
        direction = np.ones(d) / np.sqrt(d)
        covariances = covariances * 1e-6 + 10 * np.outer(direction, direction)
        X = X.mean(axis=1, keepdims=True) + 1e-3 * rng.normal(size=(n, d))
        means = np.zeros((3, d)) + 1e-3 * rng.normal(size=(3, d))
    elif trouble == "outliers":
        X[::50] *= 3000
    else:
        X[7] = 1e30
    components = GaussianParameters(means, covariances, FORMS["full"].whiten(covariances))
    parameters = engine.Parameters(np.full(3, 1 / 3), np.ones((3, 1)), components)
    mixture = engine.Mixture(Gaussian(), parameters)
    X = X.astype(np.float32)
    expected = by_numpy(mixture, X.astype(np.float64))
    with native.using(level):
        found = everything(mixture, X)
    for name in ("log_joint", "log_density", "probabilities", "calibrated"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-6, atol=1e-4, err_msg=name)


@needs_core
@every_level
def test_logarithms_are_right_to_the_last_digits(level):
    """At distances from tiny to far beyond what a Gaussian can describe, by the tails of a Student-t density."""
    X = np.concatenate([np.geomspace(1e-12, 1e150, 5000), np.linspace(0, 3, 500)])[:, None]
    components = StudentParameters(np.zeros((1, 1)), np.ones(1), np.ones(1), np.array([3.0]))
    parameters = engine.Parameters(np.ones(1), np.ones((1, 1)), components)
    mixture = engine.Mixture(StudentT(FORMS["spherical"]), parameters)
    wide = np.log1p(X[:, 0].astype(np.longdouble) ** 2 / 3)
    height = mixture.log_density(np.zeros((1, 1)))[0]
    with native.using(level):
        np.testing.assert_allclose(mixture.log_density(X), (height - 2 * wide).astype(np.float64), rtol=2e-15)
        no_tails = Scaling(np.zeros(1), np.ones(1), np.zeros(1), np.ones(1))
        compressed = engine.Mixture(mixture.density, parameters, no_tails)
        both = np.concatenate([X, -X])
        expected = by_numpy(compressed, both)
        np.testing.assert_allclose(compressed.log_density(both), expected["log_density"], rtol=1e-14)


@needs_core
@both_kinds
def test_missing_values_are_left_to_numpy(kind):
    mixture, X = random_mixture(kind, "full", (700, 3, 2, 2, False))
    X[650, 1] = np.nan
    assert_same(everything(mixture, X), by_numpy(mixture, X), rtol=0, atol=0)
    rounded = X.astype(np.float32)
    assert_same(everything(mixture, rounded), by_numpy(mixture, rounded.astype(np.float64)))
    with np.errstate(over="ignore"):
        assert (
            mixture.classes(np.full((1, 3), 1e200)).tolist()
            == by_numpy(mixture, np.full((1, 3), 1e200))["classes"].tolist()
        )


@needs_core
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_digit_depends_on_threads_or_layout(dtype):
    mixture, X = random_mixture(Gaussian, "full", (60_000, 10, 4, 2, True))
    X = X.astype(dtype)
    assert len(X) > 1.5 * native.chunk_rows("full", 8, 10), "nothing to share"
    with native.using(threads=1):
        expected = everything(mixture, X)
    for threads, rows in ((2, X), (3, np.asfortranarray(X)), (1, np.repeat(X, 2, axis=0)[::2])):
        with native.using(threads=threads):
            assert_same(everything(mixture, rows), expected, rtol=0, atol=0)


@needs_core
def test_operands_that_do_not_fit_are_refused():
    X, means, whiteners, none = np.zeros((10, 3)), np.zeros((4, 2)), np.ones((4, 2)), np.empty(0)
    columns, no_columns = np.array([0, 2]), np.empty(0, dtype=np.int64)
    out = np.empty((10, 2))

    def predict(**other):
        given = {
            "what": 1, "form": 1, "shared": False, "X": X, "columns": columns, "means": means, "whiteners": whiteners,
            "degrees": None, "log_weights": np.zeros(4), "log_mixing": None, "n_classes": 2, "temperature": 1.0,
            "compressed": no_columns, "middles": none, "widths": none, "lowest": None, "first": 0, "stop": 10,
            "out": out,
        }  # fmt: skip
        return native._core.predict(*(given | other).values())

    assert predict() is True
    np.testing.assert_allclose(out, 0.5)
    for wrong in (
        {"stop": 11},
        {"columns": np.array([0, 3])},
        {"columns": None},
        {"degrees": np.ones(3)},
        {"log_weights": np.zeros(3)},
        {"log_mixing": np.zeros((1, 4))},
        {"n_classes": 3},
        {"compressed": np.array([2]), "middles": np.zeros(1), "widths": np.ones(1)},
        {"compressed": np.array([1]), "middles": none, "widths": np.ones(1)},
        {"out": out[:9]},
        {"what": 2},
        {"X": X.astype(int)},
    ):
        with pytest.raises(ValueError):  # noqa: PT011
            predict(**wrong)


# --- estimators -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def scene():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 60)
    X = rng.normal(size=(180, 4)) + 2.5 * rng.normal(size=(3, 4))[y]
    X[:, 1] = np.sinh(2 * X[:, 1])  # a long tail
    X[:, 3] = 7.0  # a constant
    return X, Links.from_labels(y, 30, random_state=0)


@pytest.fixture(scope="module", params=["mixture", "student", "auto", "committee"])
def fitted(request, scene):
    X, links = scene
    if request.param in ("auto", "committee"):
        committee = 3 if request.param == "committee" else 1
        return AutoLinkMixture(3, budget="small", committee=committee, random_state=0).fit(X, links=links)
    settings = {"density": "student", "clusters_per_class": 2, "shared_clusters": True}
    return LinkMixture(3, random_state=0, **settings if request.param == "student" else {}).fit(X, links=links)


def told(model, X):
    return {
        "classes": model.predict(X),
        "probabilities": model.predict_proba(X),
        "log_density": model.score_samples(X),
    }


@needs_core
def test_estimators_do_not_tell_who_computed(fitted, scene):
    X, _ = scene
    with native.using("off"):
        expected = told(fitted, X)
    assert_same(told(fitted, X), expected)
    np.testing.assert_allclose(expected["probabilities"].sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_array_equal(expected["classes"], expected["probabilities"].argmax(axis=1))
    gaps = X.copy()
    gaps[::9, 0] = np.nan
    with native.using("off"):
        expected = told(fitted, gaps)
    assert_same(told(fitted, gaps), expected)


def test_blocks_and_memory_maps_are_told_the_same(fitted, scene, tmp_path):
    X, _ = scene
    expected = told(fitted, X)
    assert_same(told(fitted, Blocks([X[:7], X[7:7], X[7:100], X[100:]])), expected, rtol=1e-13, atol=1e-13)
    mapped = np.lib.format.open_memmap(tmp_path / "X.npy", mode="w+", dtype=np.float64, shape=X.shape)
    mapped[:] = X
    assert_same(told(fitted, mapped), expected, rtol=0, atol=0)


def test_rows_of_single_precision_are_not_converted(fitted, scene, monkeypatch):
    X, _ = scene
    seen = []
    predict = native.predict

    def recorded(what, rows, *operands, **settings):
        seen.append(rows.dtype)
        return predict(what, rows, *operands, **settings)

    expected = told(fitted, X.astype(np.float32).astype(np.float64))
    monkeypatch.setattr(native, "predict", recorded)
    found = told(fitted, X.astype(np.float32))
    assert not native.active() or set(seen) == {np.dtype(np.float32)}
    np.testing.assert_allclose(found["probabilities"], expected["probabilities"], atol=1e-4)
    np.testing.assert_allclose(found["log_density"], expected["log_density"], rtol=2e-6, atol=1e-4)
    assert np.mean(found["classes"] != expected["classes"]) < 0.02
