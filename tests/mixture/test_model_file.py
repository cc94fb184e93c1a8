"""Models in files: what was saved is loaded to the last bit, and any other file is refused."""

import hashlib
import json
import struct
from dataclasses import fields, is_dataclass
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

from linkmix import AutoLinkMixture, LinkMixture, Links
from linkmix.basics.errors import BadFile
from linkmix.couplings import Graph, MeanField, Pairwise, Projection, Uncoupled
from linkmix.densities import Bernoulli, Categorical, Diagonal, Gaussian, Poisson, Product, StudentT
from linkmix.mixture import model_file
from linkmix.rivals import GMM, GMMEC, GMPR, PPC

X, Y = load_iris(return_X_y=True)
COUNTS = np.round(X * 2)
LINKS = Links.from_labels(Y, 20, random_state=0)
FIXTURE = Path(__file__).parent / "models" / "format-1.linkmix"

START = {
    "class_weights": [0.5, 0.5],
    "cluster_weights": np.ones((2, 1)),
    "means": X[[0, 100], None],
    "covariances": np.ones((2, 1, 4, 4)) + np.eye(4),
}
PARTS = {"n": (Gaussian(shrinkage=3.0), [0, 2]), "c": (Poisson(2.0), (1,)), "b": (Bernoulli(), [3])}

MODELS = {
    **{form: (LinkMixture(3, covariance_type=form), X) for form in ("full", "tied", "diag", "spherical")},
    "clusters": (LinkMixture(3, clusters_per_class=2, shrinkage="auto", shared_clusters=True), X),
    "student": (LinkMixture(3, density="student"), X),
    "student, learned": (LinkMixture(3, density=StudentT(Diagonal(), degrees_of_freedom=None)), X),
    "bernoulli": (LinkMixture(3, density="bernoulli"), (X.mean(axis=0) < X).astype(float)),
    "categorical": (LinkMixture(3, density="categorical"), COUNTS),
    "categorical, levels": (LinkMixture(3, density=Categorical(0.5, n_levels=[20, 20, 20, 20])), COUNTS),
    "poisson": (LinkMixture(3, density="poisson"), COUNTS),
    "product": (
        LinkMixture(3, density=Product(PARTS)),
        np.column_stack([X[:, :1], COUNTS[:, :1], X[:, 2:3], X[:, 3] > 1]),
    ),
    **{
        type(coupling).__name__: (LinkMixture(3, coupling=coupling), X)
        for coupling in (Graph(quick=True), MeanField(weight=2.0), Pairwise(True), Uncoupled())
    },
    "Projection": (LinkMixture(3, coupling=Projection(slack=0.5)), X),
    "given start": (LinkMixture(2, init=START), X),
    "random state": (LinkMixture(3, random_state=np.random.RandomState(3)), X),
    **{
        f"generator {kind.__name__}": (LinkMixture(3, random_state=np.random.Generator(kind(3))), X)
        for kind in (np.random.MT19937, np.random.PCG64, np.random.PCG64DXSM, np.random.Philox, np.random.SFC64)
    },
    "missing": (LinkMixture(3), np.where(np.arange(600).reshape(150, 4) % 7 == 0, np.nan, X)),
    **{kind.__name__: (kind(3, n_init=2), X) for kind in (GMM, GMPR, GMMEC, PPC)},
    "auto": (AutoLinkMixture(3, budget="small"), X),
    "committee": (AutoLinkMixture(3, budget="small", committee=3), X),
    "auto number": (AutoLinkMixture("auto", budget="small"), X),
}
SLOW = {"auto number"}


def fitted(name):
    model, points = MODELS[name]
    model = clone(model)
    if model.random_state is None:
        model.set_params(random_state=0)
    links = Links() if name in ("GMM", "Uncoupled") else LINKS if name != "Projection" else Links(cannot=LINKS.cannot)
    if name in ("given start", "auto number"):
        links = Links(must=[(0, 1)])
    return model.fit(points, links=links), points


def same(a, b):
    if isinstance(a, np.ndarray):
        assert type(b) is np.ndarray
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    elif isinstance(a, dict):
        assert list(a) == list(b)
        for key in a:
            same(a[key], b[key])
    elif isinstance(a, (list, tuple)):
        assert type(a) is type(b)
        assert len(a) == len(b)
        for one, other in zip(a, b, strict=True):
            same(one, other)
    elif isinstance(a, np.random.RandomState):
        same(a.get_state(legacy=False), b.get_state(legacy=False))
    elif isinstance(a, np.random.Generator):
        same(a.bit_generator.state, b.bit_generator.state)
    elif is_dataclass(a):
        assert type(a) is type(b)
        for field in fields(a):
            same(getattr(a, field.name), getattr(b, field.name))
    elif hasattr(a, "__dict__"):
        assert type(a) is type(b)
        same(vars(a), vars(b))
    else:
        assert type(a) is type(b)
        assert a == b


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in MODELS]
)
def test_a_model_is_loaded_as_it_was(name, tmp_path):
    model, points = fitted(name)
    path = tmp_path / "model.linkmix"
    model.save(path)
    loaded = type(model).load(path)
    same(vars(model), vars(loaded))
    np.testing.assert_array_equal(model.predict_proba(points), loaded.predict_proba(points))
    assert [file.name for file in tmp_path.iterdir()] == ["model.linkmix"]
    if name in ("committee", "auto"):
        assert loaded.best_estimator_ is loaded.estimators_[0]


def test_a_loaded_model_goes_on(tmp_path):
    model = LinkMixture(3, warm_start=True, random_state=0).fit(X, links=LINKS)
    model.save(tmp_path / "model")
    again = LinkMixture.load(tmp_path / "model").fit(X, links=LINKS)
    assert again.n_iter_ <= 2
    assert again.log_likelihood_ == pytest.approx(model.log_likelihood_)
    np.testing.assert_array_equal(again.labels_, model.labels_)


@pytest.mark.parametrize("density", ["student", StudentT(shrinkage=5.0)])
def test_a_student_mixture_keeps_its_shrinkage(density, tmp_path):
    """A file once lost it: the loaded mixture had another density, and a warm start was dropped without a word."""
    shrinkage = 5.0 if density == "student" else 0.0
    model = LinkMixture(3, density=density, shrinkage=shrinkage, warm_start=True, random_state=0).fit(X, links=LINKS)
    model.save(tmp_path / "model")
    again = LinkMixture.load(tmp_path / "model")
    assert again.density == model.density
    again.fit(X, links=LINKS)
    assert again.log_likelihood_trace_[0] == pytest.approx(model.log_likelihood_trace_[-1], rel=1e-12)
    assert again.n_iter_ <= 2


def test_annotators_and_feature_names_are_kept(tmp_path):
    pandas = pytest.importorskip("pandas")
    links = Links(LINKS.must, LINKS.cannot, must_annotators="eva", cannot_annotators=[7] * LINKS.n_cannot)
    model = LinkMixture(3, reliability="learn", random_state=0)
    model.fit(pandas.DataFrame(X, columns=list("abcd")), links=links)
    model.save(tmp_path / "model")
    loaded = LinkMixture.load(tmp_path / "model")
    assert loaded.annotator_reliability_ == model.annotator_reliability_
    assert set(loaded.annotator_reliability_) == {"eva", 7}
    assert loaded.feature_names_in_.tolist() == list("abcd")


def test_notes_come_along(tmp_path):
    model, _ = fitted("full")
    notes = {"columns": ["a", "b"], "id": None, "scale": np.array([1.0, np.inf]), "nan": float("inf"), "$odd": (1, 2)}
    model_file.save(tmp_path / "m", model, notes)
    loaded = model_file.load(tmp_path / "m", [LinkMixture])
    same(loaded.notes, notes)


def test_an_unfitted_model_is_not_saved(tmp_path):
    with pytest.raises(NotFittedError):
        LinkMixture(3).save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_a_part_that_is_not_of_linkmix_is_not_saved(tmp_path):
    class Mine(Gaussian):
        pass

    with pytest.raises(ValueError, match="class Mine cannot be saved in a model file"):
        LinkMixture(2, density=Mine(), random_state=0).fit(X).save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def content():
    return model_file.to_bytes(fitted("full")[0], {"columns": ["a"]})


def load(content, tmp_path, kind=LinkMixture):
    path = tmp_path / "model.linkmix"
    path.write_bytes(content)
    return kind.load(path)


def test_a_file_that_is_cut_off_anywhere_is_refused(content, tmp_path):
    for size in [*range(40), *range(40, len(content), 997), len(content) - 1]:
        with pytest.raises(BadFile, match=r"cut off|is empty"):
            load(content[:size], tmp_path)


def test_a_file_that_was_changed_anywhere_is_refused(content, tmp_path):
    for place in [*range(0, 60), *range(60, len(content), 499), len(content) - 1]:
        changed = bytearray(content)
        changed[place] ^= 1
        with pytest.raises(
            BadFile, match=r"model\.linkmix: (is not a linkmix model|has format|was changed|is cut off)"
        ):
            load(bytes(changed), tmp_path)
    with pytest.raises(BadFile, match="was changed"):
        load(content + b"more", tmp_path)


@pytest.mark.parametrize("foreign", [b"id,x\n1,2\n", b"PK\x03\x04", b"\x80\x04\x95", b"\x93NUMPY\x01\x00"])
def test_a_file_of_another_kind_is_refused(foreign, tmp_path):
    with pytest.raises(BadFile, match="is not a linkmix model file"):
        load(foreign * 50, tmp_path)


def test_a_model_of_another_class_is_refused(content, tmp_path):
    with pytest.raises(BadFile, match="holds a model of class LinkMixture, not AutoLinkMixture"):
        load(content, tmp_path, AutoLinkMixture)
    with pytest.raises(BadFile, match="not GMPR"):
        load(content, tmp_path, GMPR)


def rewritten(content, change, version=None):
    """The file with another header and a matching checksum, as only another program could have written it."""
    magic, given_version, header_size, arrays_size = struct.unpack_from("<8sIQQ", content)
    header = json.loads(content[28 : 28 + header_size])
    change(header)
    packed = json.dumps(header).encode()
    arrays = content[28 + header_size : -32]
    body = struct.pack("<8sIQQ", magic, version or given_version, len(packed), arrays_size) + packed + arrays
    return body + hashlib.sha256(body).digest()


def test_a_newer_format_is_named(content, tmp_path):
    with pytest.raises(BadFile, match="has format 2, and this linkmix reads formats up to 1: install a newer linkmix"):
        load(rewritten(content, lambda header: None, version=2), tmp_path)


def test_a_setting_that_came_later_has_its_default(content, tmp_path):
    def older(header):
        del header["estimators"][0]["settings"]["link_weight"]

    np.testing.assert_array_equal(
        load(rewritten(content, older), tmp_path).predict(X), load(content, tmp_path).predict(X)
    )


def values_of(tree):
    """Name and fields of every dataclass in a header."""
    if isinstance(tree, dict):
        yield from [tree["$value"]] if "$value" in tree else []
        tree = list(tree.values())
    if isinstance(tree, list):
        for item in tree:
            yield from values_of(item)


def test_a_field_that_came_later_has_its_default(tmp_path):
    """Files of linkmix 0.1.0 have no shrinkage of a Student density."""
    model = LinkMixture(3, density=StudentT(Diagonal(), shrinkage=3.0), random_state=0).fit(X, links=LINKS)

    def older(header):
        students = [settings for name, settings in values_of(header["estimators"]) if name == "StudentT"]
        assert len(students) == 2  # as it was given, and as it was fitted
        for settings in students:
            del settings["shrinkage"]

    loaded = load(rewritten(model_file.to_bytes(model, {}), older), tmp_path)
    assert loaded.density == StudentT(Diagonal())
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda header: header["estimators"][0]["settings"].update(colour="red"),
            "holds a LinkMixture with the setting 'colour', which this linkmix does not know: install a newer one",
        ),
        (
            lambda header: header.update(notes={"$value": ["Poisson", {"zeros": 0.5}]}),
            "holds a Poisson with the setting 'zeros', which this linkmix does not know: install a newer one",
        ),
        (lambda header: header.update(notes={"$value": ["Poisson", {"smoothing": -1.0}]}), "that cannot be read"),
        (lambda header: header.update(notes={"$pickle": "x"}), r"a value of kind '\$pickle'"),
        (lambda header: header.update(notes={"$value": ["os.system", {"command": "ls"}]}), r"holds a os\.system"),
        (lambda header: header.update(estimator={"$estimator": 7}), "holds a model that cannot be read"),
        (lambda header: header["arrays"][0].update(shape=[10**12]), "outside the file"),
        (lambda header: header["arrays"][0].update(at=-64), "outside the file"),
        (lambda header: header["arrays"][0].update(type="|O"), "holds a model that cannot be read"),
        (lambda header: header.pop("estimators"), "holds a model that cannot be read"),
        (lambda header: header.update(estimator=[]), "holds a model that cannot be read"),
    ],
)
def test_a_header_that_makes_no_sense_is_refused(change, message, content, tmp_path):
    with pytest.raises(BadFile, match=message):
        load(rewritten(content, change), tmp_path)


def test_nothing_is_unpickled(content, tmp_path, monkeypatch):
    import pickle

    def refuse(*arguments, **options):
        raise AssertionError("pickle was asked")

    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, refuse)
    load(content, tmp_path)


def test_a_file_of_format_1_still_loads():
    """Written by linkmix 0.1.0 and never rewritten, so that users' files stay readable."""
    model = AutoLinkMixture.load(FIXTURE)
    expected = json.loads(FIXTURE.with_suffix(".json").read_text())
    np.testing.assert_allclose(model.predict_proba(expected["points"]), expected["probabilities"], atol=1e-9)
    assert model.committee == 2
    assert model_file.load(FIXTURE, [AutoLinkMixture], [LinkMixture]).version == "0.1.0"
