"""Categories, ordered levels, truth values, identifiers, and kinds on request."""

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

from linkmix.columns import KINDS, BadColumns, describe, learn
from linkmix.columns.kinds import TRUTH


def levels(**counts):
    return [name for name, n in counts.items() for _ in range(n)]


@pytest.mark.parametrize(
    ("column", "names"),
    [
        (levels(red=50, blue=30, green=20), ("blue", "green", "red")),
        (levels(red=50, blue=30, green=4), ("blue", "red", "(other)")),
        (levels(red=50, blue=30, green=5), ("blue", "green", "red")),
        (levels(red=600, blue=390, green=9, white=1), ("blue", "red", "(other)")),  # below 1 % of the rows
        (levels(red=600, blue=390, green=10), ("blue", "green", "red")),
        (levels(red=80, blue=1), ("blue", "red")),  # two levels stay
        (levels(red=80, blue=1, green=1), ("red", "(other)")),
        (levels(a=4, b=4, c=4), ("a", "b", "c")),  # a small table
        (levels(a=4, b=4, c=1, d=1), ("a", "b", "(other)")),
    ],
)
def test_rare_levels_are_put_together(column, names):
    recipe = learn({"colour": column})
    assert recipe.level_names == {"colour": names}
    assert recipe.levels == (len(names),)
    codes = recipe({"colour": column}).ravel().astype(int)
    expected = [name if name in names else "(other)" for name in column]
    assert [names[code] for code in codes] == expected


def test_rare_levels_are_remarked():
    [remark] = learn({"colour": levels(red=50, blue=30, green=4, white=1)}).remarks
    assert remark == "'colour': 2 rare levels are read as '(other)', in 5 rows: 'green', 'white'"


def test_a_remark_cuts_long_levels():
    [remark] = learn({"note": levels(red=50, blue=30, **{"white " * 500: 4})}).remarks
    assert len(remark) < 120


def test_unseen_levels_are_other_or_missing():
    other = learn({"colour": levels(red=50, blue=30, green=4)})
    np.testing.assert_array_equal(other({"colour": ["pink", "red", None, "green"]}).ravel(), [2, 1, np.nan, 2])
    none = learn({"colour": levels(red=50, blue=30)})
    np.testing.assert_array_equal(none({"colour": ["pink", "red", None]}).ravel(), [np.nan, 1, np.nan])


def test_a_level_may_not_be_called_as_all_others():
    column = [*levels(red=50, blue=30, green=1), *["(other)"] * 20]
    with pytest.raises(BadColumns, match="rename it"):
        learn({"colour": column})


@given(st.lists(st.sampled_from(["a", "b", "c", "d", "e", None]), min_size=2, max_size=300))
def test_codes_name_the_levels_of_the_rows(column):
    table = {"x": np.arange(len(column)) ** 2, "level": column}
    recipe = learn(table, {"x": "number", "level": "category"})
    if "level" in recipe.left_out:
        assert len({name for name in column if name}) <= 1
        return
    names = recipe.level_names["level"]
    for name, code in zip(column, recipe(table)[:, -1], strict=True):
        if name is None:
            assert np.isnan(code)
        else:
            assert names[int(code)] == (name if name in names else "(other)")


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (["DE"] * 20, "the same value in every row"),
        ([*["DE"] * 19, None], "the same value in every row that has one"),
        ([3.0] * 20, "the same value in every row"),
        ([True] * 19 + [None], "the same value in every row that has one"),
        ([None] * 20, "no values"),
        ([""] * 20, "no values"),
        (list(range(100, 120)), "numbers the rows"),
        (list(range(20, 0, -1)), "numbers the rows"),
        ([str(row) for row in range(1, 21)], "numbers the rows"),
        ([f"C{row:04d}" for row in range(20)], "text, nearly all values differ"),
        ([f"{row * 7919:08x}-{row}" for row in range(20)], "text, nearly all values differ"),
        ([f"img{row}.png" for row in range(20)], "pictures, none of which is there"),
    ],
)
def test_columns_without_use_are_left_out(column, reason):
    assert learn({"x": column, "y": np.arange(20) ** 2}).left_out == {"x": reason}


def test_many_rare_levels_are_left_out():
    names = [f"name{row % 300}" for row in range(900)]
    recipe = learn({"x": names, "y": np.arange(900) ** 2})
    assert recipe.left_out == {"x": "text, 300 different values, hardly any of them frequent"}


@pytest.mark.parametrize("column", [list(range(9)), [*range(100, 119), 200], [*range(19), None]])
def test_numbers_that_do_not_number_the_rows_stay(column):
    assert describe(learn({"x": column})) == [("x", "number")]


def test_running_numbers_on_request():
    table = {"x": list(range(20))}
    assert learn({**table, "y": np.arange(20) ** 2}).left_out == {"x": "numbers the rows"}
    np.testing.assert_array_equal(learn(table, {"x": "number"})(table).ravel(), range(20))


@pytest.mark.parametrize("pair", TRUTH)
@pytest.mark.parametrize("case", [str.lower, str.upper, str.title])
def test_words_for_false_and_true(pair, case):
    no, yes = map(case, pair)
    column = [yes, no, "", yes, no]
    recipe = learn({"x": column})
    assert describe(recipe) == [("x", "true or false")]
    assert recipe.level_names == {"x": (no, yes)}
    np.testing.assert_array_equal(recipe({"x": column}).ravel(), [1, 0, np.nan, 1, 0])
    np.testing.assert_array_equal(recipe({"x": [True, None, False]}).ravel(), [1, np.nan, 0])


def test_spellings_of_false_and_true_may_differ():
    recipe = learn({"x": ["Yes", "yes", "yes", "NO", "no", "no"]})
    assert recipe.level_names == {"x": ("no", "yes")}
    np.testing.assert_array_equal(recipe({"x": ["YES", "No", "maybe"]}).ravel(), [1, 0, np.nan])


def test_truth_values_may_come_as_words_or_numbers():
    recipe = learn({"x": [True, False, True]})
    for column in ([True, False], ["yes", "no"], ["True", "FALSE"], [1, 0], ["1", "0"], pd.array([True, False])):
        np.testing.assert_array_equal(recipe({"x": column}).ravel(), [1, 0])


def test_two_numbers_are_a_category():
    table = {"year": [1999, 2008, 1999, None, 2008]}
    recipe = learn(table)
    assert recipe.level_names == {"year": ("1999", "2008")}
    np.testing.assert_array_equal(recipe(table).ravel(), [0, 1, 0, np.nan, 1])
    np.testing.assert_array_equal(recipe({"year": ["2008", "1999.0", "2010"]}).ravel(), [1, 0, np.nan])
    np.testing.assert_array_equal(recipe({"year": ["2010"]}), [[np.nan]])  # a number, though none of the two
    with pytest.raises(BadColumns, match="holds texts, none of which is one of the levels '1999', '2008'"):
        recipe({"year": ["new", "old"]})
    assert describe(learn(table, {"year": "number"})) == [("year", "number")]
    assert describe(learn({"x": [1.0, 2.0, 2.0]})) == [("x", "number")]  # 1 is there only once


def test_two_numbers_with_a_decimal_comma():
    recipe = learn({"x": ["1,5", "10,5", "1,5", "10,5"]})
    assert recipe.level_names == {"x": ("1.5", "10.5")}
    np.testing.assert_array_equal(recipe({"x": ["10,5", "1,50"]}).ravel(), [1, 0])


def test_declared_categories_are_no_numbers():
    column = [1, 2, 3, 1, 2, 3] * 5
    for made in (
        pd.Series(column, dtype="category"),
        pa.array(column).dictionary_encode(),
        pl.Series([str(value) for value in column], dtype=pl.Categorical),
    ):
        recipe = learn({"x": made})
        assert recipe.level_names == {"x": ("1", "2", "3")}
        np.testing.assert_array_equal(recipe({"x": made}).ravel(), np.array(column) - 1)


def test_ordered_levels_have_their_mean_rank():
    column = levels(low=10, high=30, mid=20)
    for made, kinds in (
        (pd.Categorical(column, ["low", "mid", "high"], ordered=True), None),
        (pa.array(pd.Categorical(column, ["low", "mid", "high"], ordered=True)), None),
        (column, {"x": "ordered:low<mid<high"}),
        (column, {"x": "ordered: low | mid | high"}),
        (column, {"x": ["low", "mid", "high"]}),
    ):
        table = {"x": pd.Series(made) if isinstance(made, pd.Categorical) else made}
        recipe = learn(table, kinds)
        assert describe(recipe) == [("x", "ordered, 3 levels")]
        assert recipe.levels == (0,)
        places = [("low", "mid", "high").index(name) for name in column]
        np.testing.assert_allclose(recipe(table).ravel(), (rankdata(places) - 0.5) / 60)


def test_unseen_ordered_levels_are_missing_and_wrong_ones_refused():
    recipe = learn({"x": levels(low=2, high=3)}, {"x": ["low", "mid", "high"]})
    np.testing.assert_allclose(recipe({"x": ["mid", "none", None, "low"]}).ravel(), [0.4, np.nan, np.nan, 0.2])
    with pytest.raises(BadColumns, match=r"not among the levels low < high: 'hihg' \(row 2\)"):
        learn({"x": ["low", "high", "hihg"]}, {"x": ["low", "high"]})
    with pytest.raises(BadColumns, match="the order of its levels is not known"):
        learn({"x": levels(low=2, high=3)}, {"x": "ordered"})


def test_ordered_numbers():
    table = {"grade": [1, 2, 2, 5, None]}
    recipe = learn(table, {"grade": "ordered"})
    np.testing.assert_allclose(recipe(table).ravel(), [0.125, 0.5, 0.5, 0.875, np.nan])
    np.testing.assert_allclose(recipe({"grade": [3.5, 9, 0]}).ravel(), [0.6875, 0.875, 0.125])
    texts = {"grade": ["1,0", "2,0", "2,0", "5,0", ""]}
    np.testing.assert_allclose(learn(texts, {"grade": "ordered"})(texts).ravel(), [0.125, 0.5, 0.5, 0.875, np.nan])


def test_kinds_on_request():
    table = {"x": [1, 2, 3, 1, 2, 3, 1, 2, 3]}
    assert learn(table, {"x": "category"}).level_names == {"x": ("1", "2", "3")}
    assert describe(learn(table, {"x": "count"})) == [("x", "count")]
    with pytest.raises(BadColumns, match=r"2 values are not counts: '-1' \(row 1\), '0.5' \(row 2\)"):
        learn({"x": [1, -1, 0.5, None]}, {"x": "count"})
    assert learn({"sex": ["m", "f", "f"]}, {"sex": "bool"}).level_names == {"sex": ("f", "m")}
    with pytest.raises(BadColumns, match="'a', 'b', 'c', are not true and false"):
        learn({"x": ["a", "b", "c"]}, {"x": "bool"})
    with pytest.raises(BadColumns, match="no number"):
        learn({"x": [[1, 2], [3, 4]]}, {"x": "number"})
    ids = {"id": [f"C{row}" for row in range(20)]}
    assert learn(ids, {"id": "category"}).levels == (20,)
    with pytest.raises(BadColumns, match="200 levels are too many"):
        learn({"id": [f"C{row}" for row in range(200)]}, {"id": "category"})


def test_numbers_as_categories_are_in_their_order():
    recipe = learn({"x": [10, 9, 100] * 5}, {"x": "category"})
    assert recipe.level_names == {"x": ("9", "10", "100")}
    np.testing.assert_array_equal(recipe({"x": ["100", "9.0", 10]}).ravel(), [2, 0, 1])


@pytest.mark.parametrize(
    "kind", ["numbr", "", "number:3", "sentences", "date+year", "ordered:a", "ordered:a<a", "category+x"]
)
def test_unknown_kinds_are_refused(kind):
    with pytest.raises(ValueError, match=r"kinds\['x'\]"):
        learn({"x": ["a", "b"]}, {"x": kind})


def test_kinds_of_columns_that_are_not_there_are_refused():
    with pytest.raises(ValueError, match="kinds names 'y', 'z', and the table has no such columns: choose from 'x'"):
        learn({"x": [1, 2]}, {"y": "number", "z": "number"})


def test_every_plain_kind_is_accepted_by_some_column():
    columns = {
        **{"number": [1, 2.5], "count": [1, 3], "category": ["a", "b"], "bool": ["a", "b"], "ordered": [1, 2]},
        **{"date": ["2024-01-01", "2024-01-02"], "date+month+weekday+hour": ["2024-01-01", "2024-01-02"]},
        **{"text": ["one two two", "two three three", "one three"], "vector": [[1, 2], [2, 1]]},
    }
    for kind, column in columns.items():
        assert kind in KINDS
        assert describe(learn({"x": column}, {"x": kind}))
    with pytest.raises(ValueError, match=r"no column can be used: 'x' \(as you asked\)"):
        learn({"x": [1, 2]}, {"x": "ignore"})


def test_a_column_of_another_kind_is_refused_with_all_others():
    table = {"a": levels(red=5, blue=5), "b": np.arange(10) ** 2, "c": [[row, row**2] for row in range(10)]}
    recipe = learn(table)
    with pytest.raises(BadColumns) as error:
        recipe({"a": [7.5, 8.5], "b": ["x", "y"], "c": [1, 2]})
    assert [problem.column for problem in error.value.problems] == ["a", "b", "c"]
    assert "holds numbers, none of which is one of the levels 'blue', 'red'" in str(error.value)
    assert "2 of 2 values are not numbers: 'x' (row 0), 'y' (row 1)" in str(error.value)
    assert "holds numbers, and no vectors" in str(error.value)


def real_tables():
    folder = os.environ.get("LINKMIX_DATA")
    path = Path(folder or "") / "data" / "mixed" / "kinds.json"
    if not folder or not path.exists():
        pytest.skip("LINKMIX_DATA is not set: the tables are not available")
    for name, about in json.loads(path.read_text()).items():
        yield path.with_name(f"{name}.csv"), about["kinds"]


def test_kinds_of_real_tables():
    n_columns = 0
    for path, kinds in real_tables():
        table = pd.read_csv(path, dtype=str, keep_default_na=False)[list(kinds)]
        asked = {name: kind for name, kind in kinds.items() if isinstance(kind, list)}
        recipe = learn(table, asked)
        found = dict(describe(recipe))
        for name, kind in kinds.items():
            n_columns += 1
            if table[name].nunique() == 1:
                assert recipe.left_out[name] == "the same value in every row"
                continue
            words = "ordered" if name in asked else {"bool": "true or false"}.get(kind, kind)
            if kind == "number" and table[name].nunique() == 2:
                words = "category, 2 levels"
            assert found[name].startswith(words), (path.stem, name)
        read_by_pandas = pd.read_csv(path)[list(kinds)]
        np.testing.assert_array_equal(learn(read_by_pandas, asked)(read_by_pandas), recipe(table))
    assert n_columns == 92
