"""`links=` may be a table of ids: these come from `ids=`, or from the index of a data frame of pandas."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris

from linkmix import AutoLinkMixture, Blocks, LinkMixture, Links, calibrate
from linkmix.queries import Questioner
from linkmix.rivals import GMMEC, COPKMeans

X, Y = load_iris(return_X_y=True)
IDS = [f"flower {3 * row % 150 + row // 50}" for row in range(150)]
LINKS = Links.from_labels(Y, 30, random_state=0)
TABLE = {name: column[::-1] for name, column in LINKS.to_table(IDS).items()}
"""The links by ids, in another order."""
ESTIMATORS = [
    LinkMixture(3, coupling="graph", random_state=0),
    AutoLinkMixture(3, budget="small", calibrate=False, random_state=0),
    GMMEC(3, random_state=0),
    COPKMeans(3, random_state=0),
]


@pytest.fixture(params=ESTIMATORS, ids=lambda model: type(model).__name__)
def model(request):
    return request.param


def test_ids_are_those_of_the_rows_in_another_order():
    assert len(set(IDS)) == 150
    assert Links.from_table(TABLE, IDS).distinct() != Links.from_table(TABLE, IDS[::-1]).distinct()


@pytest.mark.parametrize("kind", [dict, pd.DataFrame, pl.DataFrame, pa.table])
def test_a_table_with_ids_is_the_links_that_it_means(model, kind):
    expected = model.fit(X, links=Links.from_table(TABLE, IDS)).labels_
    for ids in (IDS, np.array(IDS), pd.Index(IDS), pl.Series(IDS), pa.chunked_array([IDS])):
        np.testing.assert_array_equal(model.fit(X, links=kind(TABLE), ids=ids).labels_, expected)
    np.testing.assert_array_equal(model.fit_predict(X, links=kind(TABLE), ids=IDS), expected)


def test_the_index_of_a_data_frame_holds_the_ids(model):
    expected = model.fit(X, links=Links.from_table(TABLE, IDS)).labels_
    np.testing.assert_array_equal(model.fit(pd.DataFrame(X, index=IDS), links=TABLE).labels_, expected)


def test_a_default_index_holds_row_numbers_and_a_selection_keeps_its_ids(model):
    frame = pd.DataFrame(X)
    expected = model.fit(X, links=LINKS).labels_
    np.testing.assert_array_equal(model.fit(frame, links=LINKS.to_table()).labels_, expected)
    expected = model.fit(X[::-1], links=Links.from_table(LINKS.to_table(), range(149, -1, -1))).labels_
    np.testing.assert_array_equal(model.fit(frame[::-1], links=LINKS.to_table()).labels_, expected)


def test_ids_win_over_the_index(model):
    frame = pd.DataFrame(X, index=IDS[::-1])
    expected = model.fit(X, links=Links.from_table(TABLE, IDS)).labels_
    np.testing.assert_array_equal(model.fit(frame, links=TABLE, ids=IDS).labels_, expected)


def test_other_names_of_columns():
    table = pd.DataFrame(TABLE).rename(columns={"a": "left", "b": "right", "kind": "same"})
    table["same"] = table["same"] == "must"
    expected = LinkMixture(3, random_state=0).fit(X, links=Links.from_table(TABLE, IDS))
    found = LinkMixture(3, random_state=0).fit(X, links=table, ids=IDS)
    assert found.log_likelihood_ == pytest.approx(expected.log_likelihood_, rel=1e-12)


def test_calibrate_takes_a_table():
    model = LinkMixture(3, coupling="graph", random_state=0)
    expected = calibrate(model, X, links=Links.from_table(TABLE, IDS)).temperature
    assert calibrate(model, X, links=TABLE, ids=IDS).temperature == expected
    assert calibrate(model, pd.DataFrame(X, index=IDS), links=TABLE).temperature == pytest.approx(expected, rel=1e-9)


def test_ids_of_rows_that_are_read_block_by_block():
    blocks = Blocks.from_array(X)
    found = LinkMixture(3, random_state=0).fit(blocks, links=TABLE, ids=IDS)
    expected = LinkMixture(3, random_state=0).fit(blocks, links=Links.from_table(TABLE, IDS))
    np.testing.assert_array_equal(found.labels_, expected.labels_)


@pytest.mark.parametrize("points", [X, X.tolist(), pl.DataFrame(X), Blocks.from_array(X)], ids=lambda X: str(type(X)))
def test_without_ids_a_table_is_refused(points):
    with pytest.raises(ValueError, match=r"X has no ids: pass these as ids=, or use Links.from_table\(links\) if"):
        LinkMixture(3).fit(points, links=TABLE)


def test_a_wrong_number_of_ids_is_refused(model):
    with pytest.raises(ValueError, match="ids has 149 entries for 150 points: give the id of each row of X"):
        model.fit(X, links={"a": IDS[:1], "b": IDS[1:2], "kind": ["must"]}, ids=IDS[:-1])


def test_an_index_with_an_id_twice_is_refused(model):
    frame = pd.DataFrame(X, index=[*IDS[:-1], IDS[0]])
    with pytest.raises(ValueError, match=f"'{IDS[0]}' stands in the index of X more than once, so links cannot name"):
        model.fit(frame, links=TABLE)


def test_unknown_ids_are_listed_up_to_ten(model):
    frame = pd.DataFrame(X, index=IDS)
    table = {"a": [IDS[0], "x0", "x0"], "b": ["x1", IDS[4], "x2"], "kind": ["must"] * 3}
    message = (
        rf"table row 0: b is 'x1', which is not among the ids \(such as '{IDS[0]}'\): correct it, .*; the same holds "
        r"for 'x0', 'x2'$"
    )
    with pytest.raises(ValueError, match=message):
        model.fit(frame, links=table)
    many = {"a": [f"x{i}" for i in range(14)], "b": [IDS[0]] * 14, "kind": ["must"] * 14}
    with pytest.raises(ValueError, match=r"; the same holds for 'x1', .*, 'x9' and 4 more$"):
        model.fit(frame, links=many)


def test_a_number_is_not_the_text_of_it():
    with pytest.raises(ValueError, match=r"a is '3', which is not among the ids \(such as 0\)"):
        LinkMixture(3).fit(pd.DataFrame(X), links={"a": ["3"], "b": [4], "kind": ["must"]})


@pytest.mark.parametrize("model", ESTIMATORS[:2], ids=lambda model: type(model).__name__)
def test_likelihood_and_criteria_take_a_table(model):
    frame = pd.DataFrame(X, index=IDS).add_prefix("column ")
    links = Links.from_table(TABLE, IDS)
    model = clone(model).fit(frame, links=TABLE)
    assert model.log_likelihood(frame, TABLE) == model.log_likelihood(frame, links)
    assert model.bic(frame, TABLE) == model.bic(frame, links)
    assert model.aic(frame, TABLE) == model.aic(frame, links)


def test_a_questioner_takes_a_table():
    frame = pd.DataFrame(X, index=IDS)
    assert Questioner(frame, 3, links=TABLE).links == Questioner(frame, 3, links=Links.from_table(TABLE, IDS)).links


@pytest.mark.parametrize("name", ["must", "cannot"])
def test_a_frame_in_place_of_pairs_is_told_of_from_table(name):
    frame = pd.DataFrame({"a": [0], "b": [1], "kind": ["must"]})
    with pytest.raises(ValueError, match=rf"{name} is a DataFrame with the columns 'a', 'b', 'kind': use Links.from_"):
        Links(**{name: frame})
    assert Links(**{name: frame[["a", "b"]]}) == Links(**{name: [(0, 1)]})


@pytest.mark.parametrize("model", ESTIMATORS[:2], ids=lambda model: type(model).__name__)
def test_a_frame_bound_to_an_estimator_is_told_of_from_table(model):
    frame = pd.DataFrame({"a": [0], "b": [1], "kind": ["must"]})
    with pytest.raises(ValueError, match=r"links is a DataFrame, .*: use links=Links.from_table\(table, ids\)"):
        clone(model).set_params(links=frame).fit(X)
