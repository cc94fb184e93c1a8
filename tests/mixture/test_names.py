"""Known labels that are names of classes."""

import pickle
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from linkmix import AutoLinkMixture, Blocks, LinkMixture, Links, calibrate, links_satisfied, purity
from linkmix.data import blocks, scratch
from linkmix.links.names import all_names, number_names

NAMES = ["Grignolino", "Barolo", "Barbera"]
IN_ORDER = sorted(NAMES)
both = pytest.mark.parametrize(
    "estimator",
    [LinkMixture(3, n_init=3, random_state=0), AutoLinkMixture(3, budget="small", random_state=0)],
    ids=["mixture", "search"],
)


def blobs(n=90):
    return make_blobs(n, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)


def told(y, every=9, names=NAMES, unknown=None):
    """Some names; ``every`` and the number of classes are such that each class is among them."""
    return [names[m] if i % every in (0, 1) else unknown for i, m in enumerate(y)]


def as_numbers(names):
    return np.array([-1 if name is None else IN_ORDER.index(name) for name in names])


@both
def test_names_are_numbers_in_alphabetical_order(estimator):
    X, y = blobs()
    names = told(y)
    by_number = pickle.loads(pickle.dumps(estimator)).fit(X, as_numbers(names))
    by_name = pickle.loads(pickle.dumps(estimator)).fit(X, names)
    assert by_number.classes_.tolist() == [0, 1, 2]
    assert by_number.labels_.dtype == by_number.predict(X).dtype == np.int64
    assert by_name.classes_.tolist() == IN_ORDER
    np.testing.assert_array_equal(by_name.labels_, by_name.classes_[by_number.labels_])
    np.testing.assert_array_equal(by_name.predict(X), by_name.classes_[by_number.predict(X)])
    np.testing.assert_array_equal(by_name.predict_proba(X), by_number.predict_proba(X))
    np.testing.assert_array_equal(by_name.classes_[by_name.predict_proba(X).argmax(axis=1)], by_name.predict(X))
    truth = np.array(NAMES)[y]
    assert np.mean(by_name.predict(X) == truth) > 0.98
    assert purity(truth, by_name.labels_) > 0.98


@both
def test_names_are_in_model_files_and_pickles(estimator, tmp_path):
    X, y = blobs()
    model = pickle.loads(pickle.dumps(estimator)).fit(X, told(y, names=["Ü", "two words", None]))
    assert model.classes_.tolist() == ["two words", "Ü", "2"]
    model.save(tmp_path / "model")
    for again in (type(model).load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert again.classes_.tolist() == model.classes_.tolist()
        np.testing.assert_array_equal(again.labels_, model.labels_)
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        assert again.predict(X).dtype == model.classes_.dtype


def test_models_from_early_files_have_classes():
    model = AutoLinkMixture.load(Path(__file__).parent / "models" / "format-1.linkmix")
    assert model.classes_.tolist() == list(range(model.n_classes_))


@both
def test_a_fit_without_names_forgets_them(estimator):
    X, y = blobs()
    model = pickle.loads(pickle.dumps(estimator)).fit(X, told(y)).fit(X)
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.labels_.dtype == model.predict(X).dtype == np.int64


@pytest.mark.parametrize("unknown", [None, np.nan, -1, -1.0])
@pytest.mark.parametrize("container", [list, tuple, lambda names: np.array(names, dtype=object)])
def test_what_stands_for_unknown(unknown, container):
    _, y = blobs()
    codes, names = number_names(container(told(y, unknown=unknown)), len(y))
    assert list(names) == IN_ORDER
    np.testing.assert_array_equal(codes, as_numbers(told(y)))


def test_columns_of_data_frames_and_masks():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    _, y = blobs()
    names = told(y)
    masked = np.ma.masked_array([name or "?" for name in names], mask=[name is None for name in names])
    columns = [pandas.Series(names, dtype=kind, index=range(5, 95)) for kind in (object, "string", "category", "str")]
    for column in (*columns, pandas.array(names, dtype="string"), polars.Series(names), masked):
        codes, found = number_names(column, len(y))
        assert list(found) == IN_ORDER
        np.testing.assert_array_equal(codes, as_numbers(names))


def test_classes_without_a_name_have_the_text_of_a_number():
    X, y = blobs()
    model = LinkMixture(3, n_init=5, random_state=0).fit(X, told(y, names=[None, "Barolo", None]))
    assert model.classes_.tolist() == ["Barolo", "1", "2"]
    assert np.mean((model.predict(X) == "Barolo") == (y == 1)) > 0.98
    points, classes = model.sample(50)
    assert points.shape == (50, 2)
    assert set(classes) <= set(model.classes_)


def test_a_name_that_is_a_number_is_not_given_twice():
    for names in (["1"], ["2"], ["1", "2"], ["3", "4", "5"], ["0", "2", "3"]):
        every = all_names(names, 5).tolist()
        assert every[: len(names)] == names
        assert len(set(every)) == 5


@pytest.mark.parametrize("n_classes", [3, "auto"])
def test_the_number_of_classes_may_be_found(n_classes):
    X, y = blobs()
    model = AutoLinkMixture(n_classes, budget="small", random_state=0).fit(X, told(y))
    assert model.n_classes_ == len(model.classes_) == 3
    assert model.best_estimator_.classes_.tolist() == [0, 1, 2]
    assert np.mean(model.labels_ == np.array(NAMES)[y]) > 0.98


def test_names_beside_links():
    X, y = blobs()
    links = Links.from_labels(y, 30, random_state=0)
    names = told(y)
    for committee in (1, 2):
        model = AutoLinkMixture(3, budget="small", committee=committee, random_state=0).fit(X, names, links=links)
        assert links_satisfied(model.labels_, links) == 1.0
        assert all(name in (None, label) for name, label in zip(names, model.labels_, strict=True))
    with pytest.raises(ValueError, match="the links contradict the known labels"):
        model.fit(X, names, links=Links(must=[(0, int(np.flatnonzero((y != y[0]) & (np.arange(90) % 9 == 0))[0]))]))


def test_blocks_and_a_scratch_file(monkeypatch):
    X, y = blobs()
    in_memory = LinkMixture(3, random_state=0).fit(X, told(y))
    parts = Blocks([X[:40], X[40:]])
    np.testing.assert_array_equal(LinkMixture(3, random_state=0).fit(parts, told(y)).labels_, in_memory.labels_)
    monkeypatch.setattr(scratch, "IN_MEMORY", 100)
    monkeypatch.setattr(blocks, "NAMED_AT_ONCE", 13)
    monkeypatch.setattr(blocks, "portion_rows", lambda d: 20)
    far = LinkMixture(3, random_state=0).fit(parts, told(y))
    assert isinstance(far.labels_, np.memmap)
    np.testing.assert_array_equal(far.labels_, in_memory.labels_)
    np.testing.assert_array_equal(far.predict(parts), in_memory.predict(X))


def test_fit_predict_uses_the_labels():
    X, y = blobs()
    found = LinkMixture(3, random_state=0).fit_predict(X, told(y))
    np.testing.assert_array_equal(found, LinkMixture(3, random_state=0).fit(X, told(y)).labels_)


def test_calibration_knows_names():
    X, y = blobs()
    names = told(y)
    found = calibrate(LinkMixture(3, random_state=0), X, names)
    by_number = calibrate(LinkMixture(3, random_state=0), X, as_numbers(names))
    assert found.model.classes_.tolist() == IN_ORDER
    assert found.temperature == by_number.temperature
    assert calibrate(found.model, X, names).temperature == by_number.temperature


# A second fit.


def test_a_warm_start_keeps_names():
    X, y = blobs()
    model = LinkMixture(3, n_init=3, warm_start=True, random_state=0).fit(X, told(y, names=["b", "c", None]))
    before = model.predict(X)
    assert model.classes_.tolist() == ["b", "c", "2"]
    assert np.mean(before == model.fit(X, links=Links.from_labels(y, 20, random_state=0)).predict(X)) > 0.98
    model.fit(X, told(y, names=[None, None, "a"]))  # a new name takes the next number
    assert model.classes_.tolist() == ["b", "c", "a"]
    assert np.mean(model.predict(X) == np.array(["b", "c", "a"])[y]) > 0.98
    with pytest.raises(ValueError, match="y names 4 classes, 'b', 'c', 'a', 'd', for at most 3"):
        model.fit(X, told(y, names=["d", "c", None]))
    assert model.fit(X[:, :1]).classes_.tolist() == [0, 1, 2]  # nothing to start from


@pytest.mark.parametrize("seed", range(4))
def test_a_warm_start_with_some_labels_keeps_the_other_numbers(seed):
    """Classes without known labels keep their numbers too, even if another start wins."""
    X, _ = blobs()
    model = LinkMixture(3, warm_start=True, n_init=8, random_state=seed).fit(X)
    before = model.predict(X)
    known = np.where(np.arange(90) % 9 == 0, before, -1)
    known[known != 1] = -1
    assert np.mean(model.fit(X, known).predict(X) == before) > 0.95


# What cannot be used.


@both
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda names: names[:-1], r"y has shape \(89,\) for 90 points"),
        (lambda names: [*names[:5], "Dolcetto", *names[6:]], r"y names 4 classes, 'Barbera', .*: give n_classes=4"),
        (lambda names: [*names[:5], 2, *names[6:]], r"y\[5\] is 2 of class int, and another label is 'G.*: give names"),
        (lambda names: [*names[:5], b"x", *names[6:]], r"y\[5\] is b'x' of class bytes"),
        (lambda names: [(1, 2) if name else None for name in names], "shape|inhomogeneous|class tuple"),
        (lambda names: np.array([np.nan if name is None else name for name in names]), r"y\[2\] is the text 'nan'"),
        (lambda names: [name or "" for name in names], r"y\[2\] is the text ''"),
        (lambda names: np.array([[name] for name in names], dtype=object), r"y has shape \(90, 1\) for 90 points"),
    ],
)
def test_what_cannot_be_used_is_refused(estimator, change, message):
    X, y = blobs()
    model = pickle.loads(pickle.dumps(estimator))
    with pytest.raises(ValueError, match=message):
        model.fit(X, change(told(y)))
    assert not hasattr(model, "classes_")


def test_labels_of_another_kind_are_refused_with_gaps_only():
    X, y = blobs()
    dates = (np.datetime64("2020-01-01", "D") + y.astype("timedelta64[D]")).astype(object)
    plain = LinkMixture(3, random_state=0).fit(X)
    np.testing.assert_array_equal(LinkMixture(3, random_state=0).fit(X, dates).labels_, plain.labels_)
    dates[3] = None
    with pytest.raises(ValueError, match=r"y\[0\] is datetime.date\(.*\) of class date, neither a name nor"):
        LinkMixture(3, random_state=0).fit(X, dates)
