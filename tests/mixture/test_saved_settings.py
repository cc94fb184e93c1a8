"""Every setting of every density, coupling and estimator survives a file.

The tables list a value other than the default for each setting. What is tested comes from the fields of the classes and
the parameters of the estimators, so that a new setting fails here until it is listed.
"""

from dataclasses import MISSING, fields, replace
from inspect import isabstract

import numpy as np
import pytest
from sklearn.datasets import load_iris

from linkmix import AutoLinkMixture, LinkMixture, Links, couplings, densities
from linkmix.couplings import Coupling, Graph, MeanField, Pairwise, Projection, SoftChunklets, Uncoupled
from linkmix.densities import (
    Bernoulli,
    Categorical,
    Contaminated,
    CovarianceForm,
    Density,
    Diagonal,
    Full,
    Gaussian,
    Poisson,
    Product,
    Spherical,
    StudentT,
    Tied,
)
from linkmix.mixture import model_file
from linkmix.rivals import EMPC, GMM, GMMEC, GMPR, PPC, SoftChunkletMixture

X, Y = load_iris(return_X_y=True)
X, Y = X[::2], Y[::2]
COUNTS = np.round(2 * X)
LINKS = Links.from_labels(Y, 20, random_state=0)
CANNOT = Links(cannot=LINKS.cannot)

PARTS = {"size": (Gaussian(), [0, 1, 2, 3])}
OTHER_VALUES = {
    **{form: {} for form in (Full, Tied, Diagonal, Spherical)},
    Gaussian: {"form": Diagonal(), "reg_covar": 1e-3, "shrinkage": 3.0},
    StudentT: {"form": Tied(), "reg_covar": 1e-3, "degrees_of_freedom": None, "shrinkage": 3.0},
    Bernoulli: {"smoothing": 0.5},
    Poisson: {"smoothing": 0.5},
    Categorical: {"smoothing": 0.5, "n_levels": [20, 20, 20, 20]},
    Product: {"parts": {"counts": (Poisson(2.0), [3, 1]), "size": (Gaussian(shrinkage=2.0), range(0, 3, 2))}},
    Contaminated: {"density": StudentT(Diagonal(), shrinkage=2.0), "n_known": 3},
    Uncoupled: {},
    Pairwise: {"learn_reliability": True},
    Graph: {"learn_reliability": True, "sampling": "points", "quick": True},
    MeanField: {"weight": 2.0},
    Projection: {"slack": 0.5},
    SoftChunklets: {"strength": 0.5},
}
NEEDED = {Product: {"parts": PARTS}, Contaminated: {"density": Gaussian()}}
"""Settings without a default."""

START = {
    "class_weights": [0.5, 0.5],
    "cluster_weights": np.ones((2, 1)),
    "means": X[[0, 50], None],
    "covariances": np.ones((2, 1, 4, 4)) + np.eye(4),
}
OF_RIVALS = {
    "n_classes": 3,
    "clusters_per_class": 2,
    "covariance_type": "tied",
    "init": START,
    "n_init": 2,
    "reg_covar": 1e-3,
    "tol": 1e-3,
    "max_iter": 7,
    "random_state": np.random.RandomState(3),
}
OTHER_SETTINGS = {
    LinkMixture: {
        **OF_RIVALS,
        "density": StudentT(Diagonal(), shrinkage=2.0),
        "shrinkage": "auto",
        "shared_clusters": True,
        "coupling": Graph(quick=True),
        "reliability": "learn",
        "linked_points": "both",
        "link_weight": 0.5,
        "warm_start": True,
        "links": CANNOT,
        "acceleration": "none",
    },
    AutoLinkMixture: {
        "n_classes": 3,
        "committee": 2,
        "budget": "small",
        "calibrate": False,
        "kinds": {"size": "number"},
        "noise": True,
        "warm_start": True,
        "links": CANNOT,
        "n_jobs": 2,
        "verbose": True,
        "random_state": np.random.RandomState(3),
    },
    **dict.fromkeys((GMM, GMPR, GMMEC, EMPC, SoftChunkletMixture), OF_RIVALS),
    PPC: {**OF_RIVALS, "weight": 3.0},
}
USABLE = {GMM: Links(), EMPC: CANNOT, SoftChunkletMixture: Links()}

VALUE_CASES = [(kind, name) for kind in OTHER_VALUES for name in (*(field.name for field in fields(kind)), None)]
SETTING_CASES = [(kind, name) for kind in OTHER_SETTINGS for name in kind().get_params()]


def identified(case):
    return getattr(case, "__name__", str(case))


def with_another(kind, name):
    """A value that differs from the default in one setting, or in none."""
    return kind(**{**NEEDED.get(kind, {}), **({name: OTHER_VALUES[kind][name]} if name else {})})


def reloaded(model, tmp_path):
    model.save(tmp_path / "model.linkmix")
    return type(model).load(tmp_path / "model.linkmix")


@pytest.fixture(scope="module")
def saver():
    """Puts one value through a file."""
    model = LinkMixture(2, random_state=0).fit(X)

    def through_a_file(value, path):
        model_file.save(path, model, {"value": value})
        return model_file.load(path, [LinkMixture]).notes["value"]

    return through_a_file


def all_of(base):
    """All classes of linkmix below a base of which values can be made."""
    for kind in base.__subclasses__():
        yield from all_of(kind)
        if kind.__module__.startswith("linkmix.") and not isabstract(kind):
            yield kind


def test_no_class_and_no_setting_is_forgotten():
    kinds = {kind for base in (Density, CovarianceForm, Coupling) for kind in all_of(base)}
    assert kinds == OTHER_VALUES.keys()
    assert kinds <= set(model_file.VALUES.values())
    assert {kind.__name__ for kind in kinds} <= {*densities.__all__, *couplings.__all__}
    for kind, others in OTHER_VALUES.items():
        defaults = {field.name: NEEDED.get(kind, {}).get(field.name, field.default) for field in fields(kind)}
        assert others.keys() == defaults.keys(), kind
        for name, default in defaults.items():
            assert default is not MISSING
            assert others[name] != default, f"{kind.__name__}.{name} needs a value other than the default"

    estimators = {kind for kind in all_of(LinkMixture) if not kind.__name__.startswith("_")}
    assert {LinkMixture, AutoLinkMixture, *estimators} == OTHER_SETTINGS.keys()
    for kind, others in OTHER_SETTINGS.items():
        defaults = kind().get_params()
        assert others.keys() == defaults.keys(), kind
        for name, default in defaults.items():
            assert others[name] is not default, f"{kind.__name__}.{name} needs a value other than the default"


@pytest.mark.parametrize(("kind", "name"), VALUE_CASES, ids=identified)
def test_a_value_compares_and_saves_by_its_fields(kind, name, saver, tmp_path):
    value = with_another(kind, name)
    again = saver(value, tmp_path / "model.linkmix")
    assert type(again) is kind
    assert again == value
    assert hash(again) == hash(value)
    assert (value == with_another(kind, None)) == (name is None)
    for field in fields(kind):
        assert type(getattr(again, field.name)) is type(getattr(value, field.name))
    assert eval(repr(value), {each.__name__: each for each in OTHER_VALUES}) == value
    assert replace(value) == value


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("kind", "name"), [case for case in VALUE_CASES if not issubclass(case[0], CovarianceForm)], ids=identified
)
def test_a_model_goes_on_from_a_file_whatever_its_density_and_coupling(kind, name, tmp_path):
    value = with_another(kind, name)
    part = {"density": value} if issubclass(kind, Density) else {"coupling": value}
    points = (X.mean(axis=0) < X).astype(float) if kind is Bernoulli else COUNTS
    if kind in (Gaussian, StudentT) or isinstance(value, Coupling):
        points = X
    links = {Uncoupled: Links(), Projection: CANNOT, SoftChunklets: Links(must=LINKS.must)}.get(kind, LINKS)
    model = LinkMixture(3, **part, warm_start=True, random_state=0)
    model.fit(points, links=links)
    again = reloaded(model, tmp_path)
    assert again.get_params() == model.get_params()
    np.testing.assert_array_equal(again.predict_proba(points), model.predict_proba(points))
    assert again.fit(points, links=links).log_likelihood_trace_[0] == pytest.approx(
        model.log_likelihood_trace_[-1], rel=1e-12
    )


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("kind", "name"), SETTING_CASES, ids=identified)
def test_an_estimator_keeps_every_setting(kind, name, tmp_path):
    settings = {"random_state": 0, **({"budget": "small"} if kind is AutoLinkMixture else {})}
    model = kind(**{**settings, name: OTHER_SETTINGS[kind][name]})
    links = LINKS if model.n_classes != 2 else Links(cannot=[(0, 74)])
    model.fit(X, links=USABLE.get(kind, links))
    again = reloaded(model, tmp_path)
    given, kept = model.get_params(), again.get_params()
    assert kept.keys() == given.keys()
    for setting, value in given.items():
        model_value, kept_value = (_comparable(each) for each in (value, kept[setting]))
        assert kept_value == model_value, setting
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.labels_, model.labels_)


def _comparable(value):
    """Settings that do not compare by themselves: a generator by its state, a start by its numbers."""
    if isinstance(value, np.random.RandomState):
        value = value.get_state(legacy=False)
    if isinstance(value, dict):
        return {key: _comparable(item) for key, item in value.items()}
    return value.tolist() if isinstance(value, np.ndarray) else value
