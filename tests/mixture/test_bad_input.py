"""What users get wrong. Each is a ValueError with the fact, the value and the remedy, before any work is done."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from linkmix import AutoLinkMixture, LinkMixture, Links, calibrate
from linkmix.densities import Gaussian
from linkmix.engine import loop
from linkmix.rivals import GMMEC, PCKMeans

X = np.random.default_rng(0).normal(size=(12, 2))
INIT = {
    "class_weights": [0.5, 0.5],
    "cluster_weights": [[1.0], [1.0]],
    "means": [[[0.0, 0.0]], [[1.0, 1.0]]],
    "covariances": [[np.eye(2)], [np.eye(2)]],
}
METHODS = ["predict", "predict_proba", "score", "score_samples", "bic", "aic", "log_likelihood"]


@pytest.fixture
def no_work(monkeypatch):
    """EM must not even begin."""

    def begin(*args, **kwargs):
        raise AssertionError("EM began in spite of bad input")

    monkeypatch.setattr(loop, "fit", begin)
    monkeypatch.setattr(Gaussian, "start", begin)


before_any_work = pytest.mark.usefixtures("no_work")


def with_value(value):
    changed = X.copy()
    changed[3, 1] = value
    return changed


def without(name):
    return {key: value for key, value in INIT.items() if key != name}


class GaussianWithoutGaps(Gaussian):
    allows_missing = False


POINTS = [
    ("infinity", with_value(np.inf), {}, ["infinity"]),
    ("minus infinity", with_value(-np.inf), {}, ["infinity"]),
    ("NaN where the density has no use for it", with_value(np.nan), {"density": GaussianWithoutGaps()}, ["NaN"]),
    ("one dimension", X[:, 0], {}, ["Expected 2D array, got 1D array", "reshape"]),
    ("no rows", X[:0], {}, ["0 sample(s)", "minimum of 1"]),
    ("no columns", X[:, :0], {}, ["0 feature(s)", "minimum of 1"]),
    ("text", [["a", "b"]] * 5, {}, ["could not convert", "'a'"]),
    ("complex numbers", X + 1j, {}, ["Complex data not supported"]),
    (
        "fewer points than components",
        X,
        {"n_classes": 5, "clusters_per_class": 3},
        ["n_samples=12", "15 clusters", "n_classes=5", "clusters_per_class=3", "more points or ask for fewer"],
    ),
    ("fewer points than classes", X[:2], {"n_classes": 3}, ["n_samples=2", "3 clusters", "n_classes=3", "fewer"]),
    ("numbers whose squares are infinite", X * 1e160, {}, ["too large", "scale X"]),
]


@before_any_work
@pytest.mark.parametrize(
    ("points", "settings", "fragments"), [row[1:] for row in POINTS], ids=[row[0] for row in POINTS]
)
def test_points(points, settings, fragments):
    assert_refused(lambda: LinkMixture(**settings).fit(points), fragments)


def assert_refused(call, fragments):
    with pytest.raises(ValueError, match=re.escape(fragments[0])) as caught:
        call()
    for fragment in fragments:
        assert fragment in str(caught.value)


LINKS = [
    ("row out of range", {"must_link": [(0, 1), (2, 12)]}, ["must[1]", "row 12", "12 rows", "correct"]),
    ("row out of range", {"cannot_link": [(40, 1)]}, ["cannot[0]", "row 40", "12 rows", "correct"]),
    ("negative row", {"must_link": [(0, -1)]}, ["must[0]", "(0, -1)", "give row numbers from 0"]),
    ("negative row", {"cannot_link": [(0, 1), (-3, 2)]}, ["cannot[1]", "(-3, 2)", "give row numbers from 0"]),
    ("float rows", {"must_link": [(0.0, 1.0)]}, ["must holds float64", "(0.0, 1.0)", "integer"]),
    ("float rows", {"cannot_link": np.array([[0.5, 1]])}, ["cannot holds float64", "(0.5, 1.0)", "integer"]),
    ("boolean rows", {"must_link": [(True, False)]}, ["must holds bool", "(True, False)", "integer"]),
    ("text rows", {"must_link": [("0", "1")]}, ["must holds", "('0', '1')", "Links.from_table"]),
    ("a row and itself", {"must_link": [(0, 1), (3, 3)]}, ["must[1] links row 3 to itself", "remove it"]),
    ("a row and itself", {"cannot_link": [(5, 5)]}, ["cannot[0] links row 5 to itself", "remove it"]),
    ("a list that is not of pairs", {"must_link": [0, 1]}, ["must has shape (2,)", "give pairs", "[(0, 1)"]),
    ("triples", {"cannot_link": [(0, 1, 2)]}, ["cannot has shape (1, 3)", "give pairs"]),
    ("pairs of different length", {"must_link": [(0, 1), (1, 2, 3)]}, ["must[1] has 3 entries", "give pairs"]),
    (
        "a pair both must and cannot",
        {"must_link": [(3, 4)], "cannot_link": [(3, 4)]},
        ["rows 3 and 4 must link and cannot link", "drop one of these 2 links"],
    ),
    (
        "a pair both must and cannot, turned",
        {"must_link": [(3, 4)], "cannot_link": [(4, 3)]},
        ["rows 4 and 3 must link and cannot link", "drop one of these 2 links"],
    ),
    (
        "a pair both must and cannot through others",
        {"must_link": [(3, 4), (7, 9), (9, 4), (1, 2)], "cannot_link": [(1, 7), (3, 7)]},
        ["rows 3 and 7 must link (through 4, 9) and cannot link", "drop one of these 4 links"],
    ),
    (
        "a pair both must and cannot in Links",
        {"links": Links(must=[(3, 4), (4, 5)], cannot=[(3, 5)])},
        ["rows 3 and 5 must link (through 4) and cannot link", "drop one of these 3 links"],
    ),
    ("pairs as links", {"links": [(0, 1)]}, ["links must be a linkmix.Links", "got list", "use Links(must=pairs"]),
    ("a dict as links", {"links": {"must": [(0, 1)]}}, ["linkmix.Links", "got dict", "use Links(must=pairs"]),
    (
        "a table as links",
        {"links": pd.DataFrame({"a": [0], "b": [1], "kind": ["must"]})},
        ["got DataFrame", "use Links.from_table(links) if", "or Links.from_table(links, ids=X.index) if"],
    ),
    ("columns as links", {"links": {"a": [0], "b": [1], "kind": ["must"]}}, ["got dict", "Links.from_table(links)"]),
    (
        "a table of links without a kind",
        {"links": {"id1": [0], "id2": [1]}, "ids": range(12)},
        ["there is no column 'kind'", "name the columns a, b and kind"],
    ),
    ("ids and no links", {"ids": range(12)}, ["ids has no effect", "leave it out, or give links as a table"]),
    ("ids and row numbers", {"ids": range(12), "links": Links(must=[(0, 1)])}, ["ids has no effect", "leave it out"]),
    (
        "a table of links and must_link",
        {"links": {"a": [0], "b": [1], "kind": ["must"]}, "ids": range(12), "must_link": [(2, 3)]},
        ["got links and also must_link or cannot_link", "put all of them into links"],
    ),
    (
        "a table of links and rows",
        {"links": {"a": [0], "b": [1], "kind": ["must"]}, "ids": range(12), "rows": np.arange(12)},
        ["got rows and also a table of links", "Links.from_table(links, ids)"],
    ),
    ("a file as links", {"links": "links.csv"}, ["got str", "use linkmix.tables.read_links(file, ids)"]),
    (
        "links and must_link",
        {"links": Links(must=[(0, 1)]), "must_link": [(2, 3)]},
        ["got links and also must_link or cannot_link", "put all of them into links"],
    ),
    (
        "links and cannot_link",
        {"links": Links(must=[(0, 1)]), "cannot_link": [(2, 3)]},
        ["got links and also must_link or cannot_link", "put all of them into links"],
    ),
    ("rows of a wrong length", {"links": Links(must=[(0, 1)]), "rows": [3, 4]}, ["rows has shape (2,)", "12 points"]),
    ("rows of a wrong shape", {"rows": np.zeros((12, 1), dtype=int)}, ["rows has shape (12, 1)", "12 points"]),
    ("float rows of X", {"rows": np.arange(12.0)}, ["rows holds float64", "0.0", "give integers"]),
    ("a mask as rows of X", {"rows": np.arange(12) > 3}, ["rows", "bool", "give"]),
    ("a row of X twice", {"rows": np.zeros(12, dtype=int)}, ["rows holds row 0 more than once", "each row once"]),
    ("a negative row of X", {"rows": np.arange(12) - 1}, ["rows[0] is -1", "give row numbers from 0"]),
]


@before_any_work
@pytest.mark.parametrize(("arguments", "fragments"), [row[1:] for row in LINKS], ids=[row[0] for row in LINKS])
def test_links(arguments, fragments):
    assert_refused(lambda: LinkMixture().fit(X, **arguments), fragments)


@before_any_work
def test_cannot_links_with_one_class():
    fragments = ["2 cannot-links need at least two classes", "n_classes=1", "raise n_classes"]
    assert_refused(lambda: LinkMixture(1).fit(X, cannot_link=[(0, 1), (1, 2)]), fragments)


@before_any_work
def test_links_without_a_coupling():
    fragments = ["coupling 'none' makes no use of links", "Links(1 must, 0 cannot)", "pass no links or choose"]
    assert_refused(lambda: LinkMixture(coupling="none").fit(X, must_link=[(0, 1)]), fragments)


@pytest.mark.parametrize("kind", ["must", "cannot"])
@pytest.mark.parametrize("confidence", [0.0, -0.5, 1.5, np.nan, np.inf])
def test_confidence(kind, confidence):
    pairs = {kind: [(0, 1), (2, 3)]}
    fragments = [f"{kind}_confidence[1] is {confidence}", "above 0 and at most 1", "or remove the link"]
    assert_refused(lambda: Links(**pairs, **{f"{kind}_confidence": [1.0, confidence]}), fragments)
    fragments = [f"{kind}_confidence is {confidence}", "above 0 and at most 1", "or remove the link"]
    assert_refused(lambda: Links(**pairs, **{f"{kind}_confidence": confidence}), fragments)


def test_confidence_of_a_wrong_shape():
    fragments = ["must_confidence has shape (3,) for 2 links", "give one number per link"]
    assert_refused(lambda: Links(must=[(0, 1), (2, 3)], must_confidence=[1, 1, 1]), fragments)


STARTS = [
    ("class_weights", [1.0], ["init['class_weights'] has shape (1,)", "expected (2,)", "reshape"]),
    ("cluster_weights", [1.0, 1.0], ["init['cluster_weights'] has shape (2,)", "expected (2, 1)", "reshape"]),
    ("means", [[0.0, 0.0], [1.0, 1.0]], ["init['means'] has shape (2, 2)", "expected (2, 1, 2)", "reshape"]),
    ("means", np.zeros((2, 1, 3)), ["init['means'] has shape (2, 1, 3)", "expected (2, 1, 2)", "reshape"]),
    ("covariances", np.eye(2), ["init['covariances'] has shape (2, 2)", "expected (2, 1, 2, 2)", "reshape"]),
    ("means", [[[0.0, np.nan]], [[1.0, 1.0]]], ["init['means'] holds a value that is not finite", "replace"]),
    ("covariances", np.full((2, 1, 2, 2), np.inf), ["init['covariances'] holds a value that is not finite", "replace"]),
    ("class_weights", [0.0, 1.0], ["init['class_weights'] must be positive", "got 0", "small number"]),
    ("class_weights", [-0.5, 1.5], ["init['class_weights'] must be positive", "got -0.5", "small number"]),
    ("cluster_weights", [[1.0], [-1.0]], ["init['cluster_weights'] must be positive", "got -1", "small number"]),
    ("class_weights", [0.5, 0.6], ["init['class_weights'] must sum to one", "1.1", "divide by the sum"]),
    ("cluster_weights", [[1.0], [0.5]], ["init['cluster_weights'] must sum to one", "0.5", "divide by the sum"]),
    (
        "covariances",
        [[[[1.0, 2.0], [2.0, 1.0]]], [np.eye(2)]],
        ["init['covariances'] must be positive definite", "smallest eigenvalue -1"],
    ),
    (
        "covariances",
        [[np.eye(2)], [[[1.0, 0.5], [0.0, 1.0]]]],
        ["init['covariances']", "symmetric"],
    ),
    ("means", "origin", ["init['means']"]),
    ("means", [[[0.0, 0.0]], [[1.0]]], ["init['means']"]),
    ("weights", [1.0], ["init has unknown entries ['weights']", "remove"]),
]


@before_any_work
@pytest.mark.parametrize(("name", "value", "fragments"), STARTS)
def test_start(name, value, fragments):
    assert_refused(lambda: LinkMixture(init=INIT | {name: value}).fit(X), fragments)


@before_any_work
@pytest.mark.parametrize("name", INIT)
def test_incomplete_start(name):
    shape = np.shape(INIT[name])
    fragments = [f"init has no {name!r}", f"{sorted(without(name))}", f"add an array of shape {shape}"]
    assert_refused(lambda: LinkMixture(init=without(name)).fit(X), fragments)


@before_any_work
@pytest.mark.parametrize(
    ("covariance_type", "expected"), [("tied", (2, 2)), ("diag", (2, 1, 2)), ("spherical", (2, 1))]
)
def test_covariances_of_another_form(covariance_type, expected):
    fragments = ["init['covariances'] has shape (2, 1, 2, 2)", f"expected {expected}"]
    assert_refused(lambda: LinkMixture(covariance_type=covariance_type, init=INIT).fit(X), fragments)


@before_any_work
@pytest.mark.parametrize(
    ("covariance_type", "covariances"),
    [("diag", [[[1.0, 0.0]], [[1.0, 1.0]]]), ("diag", -np.ones((2, 1, 2))), ("spherical", [[1.0], [-1.0]])],
)
def test_variances_that_are_not_positive(covariance_type, covariances):
    settings = {"covariance_type": covariance_type, "init": INIT | {"covariances": covariances}}
    assert_refused(lambda: LinkMixture(**settings).fit(X), ["init['covariances'] must be positive"])


WHOLE, NUMBER = "an int in the range [{}, inf)", "a float in the range [0.0, inf)"
NOT_WHOLE = [1.5, 2.0, "2", None, True, np.nan]
NOT_A_NUMBER = [-1, -1e-9, np.nan, np.inf, "1", None, True]
PARAMETERS = {
    "n_classes": ([0, -1, *NOT_WHOLE], [WHOLE.format(1)]),
    "clusters_per_class": ([0, -1, *NOT_WHOLE], [WHOLE.format(1)]),
    "n_init": ([0, -1, *NOT_WHOLE], [WHOLE.format(1)]),
    "max_iter": ([-1, *NOT_WHOLE], [WHOLE.format(0)]),
    "tol": (NOT_A_NUMBER, [NUMBER]),
    "reg_covar": (NOT_A_NUMBER, [NUMBER]),
    "link_weight": ([0, *NOT_A_NUMBER], ["a float in the range (0.0, inf)"]),
    "shrinkage": ([*NOT_A_NUMBER, np.array([1, 2])], [NUMBER, "'auto'"]),
    "covariance_type": (["ful", "FULL", None, 3, ["full"]], ["'full'", "'tied'", "'diag'", "'spherical'"]),
    "density": (["normal", None, 3], ["'gaussian'", "'poisson'", "linkmix.densities.base.Density"]),
    "coupling": (["pair", None, 3], ["'pairwise'", "'none'", "linkmix.couplings.base.Coupling"]),
    "reliability": (["maybe", None], ["'auto'", "'given'", "'learn'"]),
    "linked_points": (["none", None, True], ["'apart'", "'both'"]),
    "init": (["kmeans", None, 3, [1, 2]], ["'kmeans++'", "'links'", "Mapping"]),
    "acceleration": (["fast", None, True], ["'auto'", "'squarem'", "'none'"]),
    "shared_clusters": ([1, "yes", None], ["an instance of 'bool'"]),
    "warm_start": ([1, "yes", None], ["an instance of 'bool'"]),
    "links": ([[(0, 1)], {"a": [0], "b": [1], "kind": ["must"]}, "links.csv"], ["linkmix.links.links.Links"]),
    "random_state": (["a", 1.5, -1], ["an int in the range [0, 4294967295]"]),
}


@before_any_work
@pytest.mark.parametrize(
    ("name", "value", "fragments"),
    [(name, value, fragments) for name, (values, fragments) in PARAMETERS.items() for value in values],
)
def test_parameter(name, value, fragments):
    message = [f"The {name!r} parameter of LinkMixture must be", f"Got {value!r} instead", *fragments]
    assert_refused(lambda: LinkMixture(**{name: value}).fit(X), message)


def test_every_parameter_has_its_bad_values():
    assert PARAMETERS.keys() == LinkMixture().get_params().keys()


# After the fit.


@pytest.mark.parametrize("method", METHODS)
def test_before_the_fit(method):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        getattr(LinkMixture(), method)(X)


def test_sample_before_the_fit():
    with pytest.raises(NotFittedError, match="not fitted yet"):
        LinkMixture().sample()


@pytest.fixture(scope="module")
def fitted():
    return LinkMixture(random_state=0).fit(X)


@pytest.mark.parametrize("method", METHODS)
def test_a_wrong_number_of_columns(fitted, method):
    with pytest.raises(ValueError, match="X has 1 features, but LinkMixture is expecting 2 features"):
        getattr(fitted, method)(X[:, :1])


@pytest.mark.parametrize("method", METHODS)
def test_infinity_after_the_fit(fitted, method):
    with pytest.raises(ValueError, match="infinity"):
        getattr(fitted, method)(with_value(np.inf))


@pytest.mark.parametrize("method", ["log_likelihood", "bic", "aic"])
def test_links_after_the_fit(fitted, method):
    call = getattr(fitted, method)
    assert_refused(lambda: call(X[:5], Links(must=[(0, 5)])), ["must[0] links row 5", "there are 5 rows"])
    assert_refused(lambda: call(X, [(0, 1)]), ["links must be a linkmix.Links, got list", "use Links(must=pairs"])
    conflict = Links(must=[(3, 4), (4, 5)], cannot=[(3, 5)])
    assert_refused(lambda: call(X, conflict), ["rows 3 and 5 must link (through 4) and cannot link"])


@pytest.mark.parametrize("n_samples", [0, -1, 1.5, None, True])
def test_number_of_samples(fitted, n_samples):
    fragments = [f"n_samples={n_samples!r} is not a whole number of at least 1", "choose one"]
    assert_refused(lambda: fitted.sample(n_samples), fragments)


def test_a_refused_fit_leaves_the_last_one(fitted):
    before = fitted.means_.copy()
    with pytest.raises(ValueError, match="infinity"):
        fitted.fit(with_value(np.inf))
    np.testing.assert_array_equal(fitted.means_, before)
    assert fitted.predict(X).shape == (12,)


@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag", "spherical"])
def test_flat_data_without_reg_covar_are_an_error_with_a_remedy(covariance_type):
    flat = np.zeros((12, 2)) if covariance_type == "spherical" else np.column_stack([X[:, 0], np.zeros(12)])
    with pytest.raises(ValueError, match="raise reg_covar"):
        LinkMixture(covariance_type=covariance_type, reg_covar=0, n_init=3, random_state=0).fit(flat)


LABELS_THAT_ARE_NONE = [
    (Links([(0, 1)]), "y, the second argument, is for known labels, got Links: pass it as links="),
    (pd.DataFrame({"a": [0], "b": [1], "kind": ["must"]}), "got DataFrame: pass it as links="),
    ({"a": [0], "b": [1], "kind": ["must"]}, "got dict: pass it as links="),
    ([(0, 1), (2, 3)], "y has shape (2, 2) for 12 points: give one label for each, -1 or None for unknown; links are"),
    ([(0, 1), (2, 3, 4)], "y has shape (2, 0) for 12 points"),
    ([0, 1], "y has shape (2,) for 12 points"),
]


@before_any_work
@pytest.mark.parametrize(("y", "message"), LABELS_THAT_ARE_NONE)
@pytest.mark.parametrize(
    "model", [LinkMixture(2), AutoLinkMixture(), PCKMeans(2), GMMEC(2)], ids=lambda m: type(m).__name__
)
def test_links_in_the_place_of_labels(model, y, message):
    """Methods that ignore labels would ignore links in their place as well, in silence."""
    with pytest.raises(ValueError, match=re.escape(message)):
        model.fit(X, y)


@before_any_work
@pytest.mark.parametrize(("y", "message"), LABELS_THAT_ARE_NONE)
def test_calibrate_with_links_in_the_place_of_labels(y, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        calibrate(LinkMixture(2), X, y, links=Links([(0, 1)], [(0, 2)]))
