"""Columns of all packages and types become the same values."""

import datetime as dt
import subprocess
import sys
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from linkmix.columns import BadColumns, describe, learn, needs_recipe
from linkmix.columns.problems import Unfit
from linkmix.columns.sources import columns_of, read_column
from linkmix.columns.values import Flags, Foreign, Numbers, Texts, Vectors

NAN = np.nan


@pytest.mark.parametrize(
    "column",
    [
        [1, None, 3],
        (1, None, 3.0),
        [1, float("nan"), Decimal(3)],
        np.array([1, NAN, 3]),
        np.array([1, None, 3], dtype=object),
        pd.Series([1, None, 3]),
        pd.Series([1, None, 3], dtype="Int64"),
        pd.Series([1, None, 3], dtype="Float32"),
        pd.Series([1, None, 3], dtype="int64[pyarrow]"),
        pd.Series([1, pd.NA, 3], dtype=object),
        pd.arrays.SparseArray([1, NAN, 3]).to_dense(),
        pd.Series(pd.arrays.SparseArray([1, NAN, 3])),
        pl.Series([1, None, 3]),
        pl.Series([Decimal(1), None, Decimal(3)]),
        pa.array([1, None, 3]),
        pa.array([Decimal("1.00"), None, Decimal("3.00")]),
        pa.chunked_array([[1], [None, 3]]),
    ],
    ids=lambda column: f"{type(column).__module__}.{getattr(column, 'dtype', '')}",
)
def test_numbers(column):
    found = read_column(column)
    assert isinstance(found, Numbers)
    np.testing.assert_array_equal(found.numbers, [1, NAN, 3])


@pytest.mark.parametrize(
    "column",
    [
        [True, None, False],
        np.array([True, None, False], dtype=object),
        pd.Series([True, None, False]),
        pd.Series([True, None, False], dtype="boolean"),
        pd.Series([True, None, False], dtype="bool[pyarrow]"),
        pd.Series([True, None, False], dtype="category"),
        pl.Series([True, None, False]),
        pa.array([True, None, False]),
        pa.chunked_array([[True], [None, False]]),
        pa.array([True, None, False]).dictionary_encode(),
    ],
    ids=lambda column: f"{type(column).__module__}.{getattr(column, 'dtype', '')}",
)
def test_truth_values(column):
    found = read_column(column)
    assert isinstance(found, Flags)
    np.testing.assert_array_equal(found.numbers, [1, NAN, 0])


TOWNS = ["Ulm", None, "Rom ", "Ulm", "NA"]


@pytest.mark.parametrize(
    ("column", "declared"),
    [
        (TOWNS, False),
        (np.array(TOWNS, dtype=object), False),
        (np.array(["Ulm", "", "Rom ", "Ulm", "NA"]), False),
        (pd.Series(TOWNS), False),
        (pd.Series(TOWNS, dtype=object), False),
        (pd.Series(TOWNS, dtype="string"), False),
        (pd.Series(TOWNS, dtype="string[pyarrow]"), False),
        (pd.Series(TOWNS, dtype=pd.ArrowDtype(pa.string())), False),
        (pd.Series(TOWNS, dtype="category"), True),
        (pl.Series(TOWNS), False),
        (pl.Series(TOWNS, dtype=pl.Categorical), True),
        (pl.Series(TOWNS, dtype=pl.Enum(["NA", "Rom ", "Paris", "Ulm"])), True),
        (pa.array(TOWNS), False),
        (pa.array(TOWNS, pa.large_string()), False),
        (pa.array(TOWNS, pa.string_view()), False),
        (pa.array(TOWNS).dictionary_encode(), True),
        (pa.chunked_array([TOWNS[:2], TOWNS[2:]]), False),
        (pa.chunked_array([TOWNS[:2], TOWNS[2:]]).dictionary_encode(), True),
        (pa.chunked_array([pa.array(TOWNS[:2]).dictionary_encode(), pa.array(TOWNS[2:]).dictionary_encode()]), True),
    ],
    ids=lambda column: f"{type(column).__module__}.{getattr(column, 'dtype', '')}",
)
def test_texts(column, declared):
    found = read_column(column)
    assert isinstance(found, Texts)
    assert [found.texts[code] if code >= 0 else None for code in found.codes] == ["Ulm", None, "Rom", "Ulm", None]
    assert len(set(found.texts)) == len(found.texts)
    assert found.declared == declared
    assert not found.ordered


def test_objects_of_several_classes_are_texts():
    found = read_column([1.0, "x", True, 2.5, None, float("nan")])
    assert [found.texts[code] if code >= 0 else None for code in found.codes] == ["1", "x", "True", "2.5", None, None]


@pytest.mark.parametrize(
    "column",
    [
        [[1, 2], None, [3, 4.5]],
        [np.array([1, 2]), None, (3, 4.5)],
        pd.Series([[1, 2], None, [3, 4.5]]),
        pd.Series([[1.0, 2.0], None, [3, 4.5]], dtype=pd.ArrowDtype(pa.list_(pa.float32()))),
        pl.Series([[1.0, 2.0], None, [3.0, 4.5]]),
        pl.Series([[1.0, 2.0], None, [3.0, 4.5]], dtype=pl.Array(pl.Float32, 2)),
        pa.array([[1, 2], None, [3, 4.5]]),
        pa.array([[1, 2], None, [3, 4.5]], pa.large_list(pa.float64())),
        pa.array([[1, 2], None, [3, 4.5]], pa.list_(pa.float32(), 2)),
        pa.chunked_array([[[1, 2.0]], [None, [3, 4.5]]]),
        pa.chunked_array([[[1, 2.0]], [None, [3, 4.5]]], pa.list_(pa.float64(), 2)),
    ],
    ids=lambda column: f"{type(column).__module__}.{getattr(column, 'dtype', '')}",
)
def test_vectors(column):
    found = read_column(column)
    assert isinstance(found, Vectors)
    np.testing.assert_array_equal(found.rows, [[1, 2], [NAN, NAN], [3, 4.5]])


def test_an_array_of_rows_is_a_column_of_vectors():
    assert isinstance(read_column(np.eye(3)), Vectors)


@pytest.mark.parametrize("make", [list, pd.Series, lambda rows: pl.Series(rows, strict=False), pa.array])
def test_vectors_of_different_lengths_are_refused_by_row(make):
    with pytest.raises(Unfit, match="most have 2 numbers, row 3 has 3"):
        read_column(make([[1.0, 2.0], None, [3.0, 4.0], [5.0, 6.0, 7.0]]))


def test_a_row_without_numbers_is_named():
    with pytest.raises(Unfit, match="row 1 is not a list of numbers"):
        read_column([[1.0, 2.0], ["a", "b"]])


@pytest.mark.parametrize(
    "column",
    [
        [b"abc", b"d"],
        [{"a": 1}, {"a": 2}],
        [{1, 2}, {3}],
        [["a"], ["b", "c"]],
        [[[1, 2]], [[3, 4]]],
        np.array([1j, 2]),
        np.zeros((2, 2, 2)),
        pa.array([b"abc", b"d"]),
        pa.array([{"a": 1}, {"a": 2}]),
        pa.array([["a"], ["b", "c"]]),
        pl.Series([{"a": 1}, {"a": 2}]),
        pl.Series([["a"], ["b", "c"]]),
        pd.Series([b"abc", b"d"]),
        pd.Series([1j, 2j]),
    ],
    ids=lambda column: f"{type(column).__module__}.{getattr(column, 'dtype', '')}",
)
def test_what_cannot_be_used_is_left_out_with_a_reason(column):
    found = read_column(column)
    assert isinstance(found, Foreign)
    assert learn({"odd": column, "x": [1.5, 3.0]}).left_out == {"odd": found.what}


@pytest.mark.parametrize("make", [list, np.array, pd.Series, pl.Series, pa.array])
def test_empty_columns_are_left_out(make):
    assert learn({"empty": make([None, None]), "x": [1.5, 3.0]}).left_out == {"empty": "no values"}
    assert learn({"empty": ["", " NA "], "x": [1.5, 3.0]}).left_out == {"empty": "no values"}


def test_names_that_are_no_texts():
    table = pd.DataFrame([[1.5, "a"], [2.5, "b"], [3.5, "a"]])
    assert learn(table).names == ("0", "1")
    assert learn(table, {"0": "ignore"}).left_out == {"0": "as you asked"}


def test_two_columns_of_one_name_are_refused():
    with pytest.raises(ValueError, match="more than one column called 'a'"):
        columns_of(pd.DataFrame([[1, 2]], columns=["a", "a"]))


def test_columns_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match="'a' 2, 'b' 3"):
        learn({"a": [1, 2], "b": [1, 2, 4]})
    recipe = learn({"a": [1, 2.5], "b": [1, 2.5]})
    with pytest.raises(ValueError, match="'a' 1, 'b' 2"):
        recipe({"a": [1], "b": [1, 2]})


def test_what_is_no_table_is_refused():
    with pytest.raises(ValueError, match="the table is a list"):
        learn([[1, 2]])


def test_plain_numbers_need_no_recipe():
    assert not needs_recipe(pd.DataFrame({"a": pd.array([1, None], dtype="Int64"), "b": [True, False]}))
    assert not needs_recipe(pa.table({"a": pa.array([1, None]), "b": pa.array([Decimal(1), None])}))
    assert not needs_recipe(pl.DataFrame({"a": [1, None], "b": [True, None]}))
    for odd in (["a", "b"], [dt.date(2024, 1, 1), None], [[1.0], [2.0]]):
        assert all(needs_recipe(make({"a": odd})) for make in (pd.DataFrame, pl.DataFrame, pa.table))
    assert needs_recipe(pd.DataFrame({"a": pd.Series([1, 2], dtype="category")}))


def test_record_batches_are_tables():
    batch = pa.RecordBatch.from_pydict({"a": [1.5, 2.5], "b": ["x", "y"]})
    np.testing.assert_array_equal(learn(batch)(batch), [[1.5, 0], [2.5, 1]])


def test_infinite_numbers_are_named():
    with pytest.raises(BadColumns, match=r"1 value is not finite: 'inf' \(row 1\)"):
        learn({"a": [1.0, np.inf, 2.0, 3.0]})
    with pytest.raises(BadColumns, match="not finite"):
        learn({"a": ["1.0", "-inf", "2.0"]})
    with pytest.raises(BadColumns, match="not finite"):
        learn({"a": [1.0, np.inf, 1.0, np.inf]})
    with pytest.raises(BadColumns, match="the vector of row 1 has a number that is not finite"):
        learn({"a": [[1.0, 2.0], [np.inf, 3.0]]})


@pytest.mark.parametrize(("package", "make"), [("", "dict"), ("polars", "DataFrame"), ("pyarrow", "table")])
def test_no_package_is_needed_that_the_table_is_not_of(package, make):
    script = f"""
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top in {{"pandas", "polars", "pyarrow", "PIL"}} - {{{package!r}}}:
            raise ModuleNotFoundError(f"{{name}} is blocked", name=name)

sys.meta_path.insert(0, Blocker())
from linkmix.columns import is_table, learn, needs_recipe
from {package or "builtins"} import {make} as make
table = make({{
    "a": [1.0, 2.5, None], "b": ["x", "y", "x"], "c": ["2024-01-01", "2024-01-02", "2024-02-01"], "d": [[1], [2], [3]],
}})
assert is_table(table) and needs_recipe(table)
print(learn(table)(table).shape)
"""
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert result.stdout.strip() == "(3, 4)", result.stderr


def test_a_million_rows_of_a_category():
    codes = np.random.default_rng(0).integers(5, size=1_000_000)
    column = np.array(["red", "green", "blue", "white", "black"], dtype=object)[codes]
    recipe = learn({"colour": column})
    assert describe(recipe) == [("colour", "category, 5 levels")]
    places = [recipe.level_names["colour"].index(name) for name in ("red", "green", "blue", "white", "black")]
    np.testing.assert_array_equal(recipe({"colour": column})[:, 0], np.array(places)[codes])
