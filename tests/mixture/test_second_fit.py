"""A second fit: nothing of it is left when it fails, and it starts from the first one only where that makes sense."""

import numpy as np
import pandas as pd
import pytest

from linkmix import LinkMixture, Links, Relation, links_satisfied
from linkmix.couplings import Pairwise
from linkmix.densities import Gaussian


@pytest.fixture
def blobs():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 40)
    return rng.normal(size=(120, 3)) + 4 * np.eye(3)[y], y


def test_a_fit_that_fails_leaves_the_earlier_one_alone(blobs):
    X, _ = blobs
    model = LinkMixture(3, random_state=0).fit(X)
    before = model.predict(X)
    with pytest.raises(ValueError, match="links row 999"):
        model.fit(X[:, :2], links=Links(must=[(0, 999)]))
    assert model.n_features_in_ == 3
    assert np.array_equal(model.predict(X), before)


def test_a_warm_start_that_can_not_describe_the_new_points_is_dropped():
    codes = np.random.default_rng(0).integers(0, 3, (60, 2))
    model = LinkMixture(2, density="categorical", warm_start=True, random_state=0).fit(codes)
    assert model.fit(np.where(codes == 2, 3, codes)).labels_.shape == (60,)
    assert model.set_params(density="gaussian").fit(codes + 0.5).means_.shape == (2, 1, 2)


def test_a_warm_start_keeps_what_it_learned_of_annotators(blobs):
    X, y = blobs
    links = Links.from_labels(y, 60, random_state=0)
    links = Links(links.must, links.cannot, must_annotators=["ada"] * links.n_must)
    model = LinkMixture(3, warm_start=True, random_state=0).fit(X, links=links)
    last = model.log_likelihood_trace_[-1]
    assert model.fit(X, links=links).log_likelihood_trace_[0] == pytest.approx(last, rel=1e-9)


@pytest.mark.parametrize("disguise", [list, lambda y: y.astype(object), lambda y: y.astype(float), pd.array])
def test_known_labels_in_any_dress(blobs, disguise):
    X, y = blobs
    known = np.where(np.arange(120) % 6 == 0, y, -1)
    model = LinkMixture(3, random_state=0).fit(X, disguise(known))
    assert np.array_equal(model.labels_[known >= 0], known[known >= 0])


@pytest.mark.parametrize("gap", [None, float("nan"), pd.NA])
def test_labels_that_are_missing_are_to_be_marked(blobs, gap):
    X, y = blobs
    known = [gap if i % 2 else int(label) for i, label in enumerate(y)]
    with pytest.raises(ValueError, match=r"y\[1\] is missing: write -1 for a label that is not known"):
        LinkMixture(3).fit(X, known)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"density": "poisson", "shrinkage": 5.0}, r"shrinkage=5\.0 has no effect with density='poisson'"),
        ({"density": Gaussian(), "shrinkage": 5.0}, "give it to the density itself"),
        (
            {"density": Gaussian(), "covariance_type": "diag"},
            "covariance_type='diag' has no effect with density=Gaussian",
        ),
        ({"coupling": Pairwise(), "reliability": "learn"}, "reliability='learn' has no effect with coupling=Pairwise"),
    ],
)
def test_settings_without_effect_are_refused(blobs, settings, message):
    with pytest.raises(ValueError, match=message):
        LinkMixture(3, **settings).fit(blobs[0])


def test_other_things_that_are_no_links():
    with pytest.raises(ValueError, match=r"links must be a linkmix\.Links, got list"):
        links_satisfied([0, 1], [(0, 1)])
    with pytest.raises(ValueError, match="give a list of relations"):
        Links(relations=Relation([(0, 1)], np.eye(2)))
    with pytest.raises(ValueError, match="together is 5: give a list"):
        Links.from_groups(together=5)
    for apart in ([5], [([0], [1], [2])]):
        with pytest.raises(ValueError, match=r"apart\[0\] is .*: give two groups"):
            Links.from_groups(apart=apart)


def test_points_beyond_all_squares_are_refused_by_predict_too(blobs):
    model = LinkMixture(3, random_state=0).fit(blobs[0])
    with pytest.raises(ValueError, match=r"X holds 1e\+160, too large to be squared: scale X"):
        model.predict_proba([[1e160] * 3])


class _WithoutArrays(Gaussian):
    def attributes(self, parameters, shape):
        raise RuntimeError("no arrays")


def test_a_density_that_fails_at_the_very_end_leaves_an_earlier_fit_unchanged():
    X = np.random.default_rng(0).normal(size=(40, 3))
    model = LinkMixture(2, random_state=0).fit(X)
    before = model.predict(X)
    model.set_params(density=_WithoutArrays())
    with pytest.raises(RuntimeError, match="no arrays"):
        model.fit(X[:, :2])
    assert model.n_features_in_ == 3
    assert np.array_equal(model.predict(X), before)


def test_a_warm_start_is_not_misled_by_other_codes_of_the_same_levels():
    """A level that is new comes first in the alphabet, so that all codes shift."""
    hue = np.repeat(["m", "n"], 40)
    table = pd.DataFrame({"hue": hue, "tone": hue})
    model = LinkMixture(2, density="categorical", warm_start=True, random_state=0).fit(table)
    before = model.labels_
    table.loc[[0, 41], "hue"] = "a"
    assert np.mean(model.fit(table).labels_ == before) > 0.95
