"""From tables to arrays: the same recipe for every table, and all mistakes at once."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from linkmix.columns import BadColumns, describe, is_table, learn, needs_recipe


def customers(n=40):
    rng = np.random.default_rng(0)
    return {
        "town": rng.choice(["Ulm", "Rom", "Oslo"], n).tolist(),
        "age": rng.integers(18, 80, n).tolist(),
        "member": (rng.random(n) < 0.5).tolist(),
        "spent": [f"€{amount:,.2f}" for amount in rng.lognormal(7, 1, n)],
        "paid": rng.choice(["yes", "no"], n).tolist(),
        "customer": rng.permutation(n).tolist(),
        "country": ["DE"] * n,
    }


PACKAGES = {"dict": dict, "pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}


@pytest.mark.parametrize("package", PACKAGES)
def test_numbers_come_first_then_codes(package):
    table = PACKAGES[package](customers())
    recipe = learn(table)
    assert recipe.names == ("age", "spent", "town", "member", "paid")
    assert recipe.owners == recipe.names
    assert recipe.levels == (0, 0, 3, 2, 2)
    assert recipe.level_names == {"town": ("Oslo", "Rom", "Ulm"), "member": ("False", "True"), "paid": ("no", "yes")}
    assert recipe.left_out == {"customer": "numbers the rows", "country": "the same value in every row"}
    plain = customers()
    expected = np.column_stack(
        [
            plain["age"],
            [float(text[1:].replace(",", "")) for text in plain["spent"]],
            [["Oslo", "Rom", "Ulm"].index(town) for town in plain["town"]],
            plain["member"],
            [text == "yes" for text in plain["paid"]],
        ]
    )
    np.testing.assert_array_equal(recipe(table), expected)


@pytest.mark.parametrize("package", PACKAGES)
def test_missing_values_are_nan_in_numbers_and_codes(package):
    columns = {
        "size": [1.5, None, 3.0, 2.5],
        "flag": [True, None, False, True],
        "town": ["Ulm", "Rom", None, "Ulm"],
        "price": ["$1", "$2", "N/A", "$3"],
    }
    X = learn(PACKAGES[package](columns))(PACKAGES[package](columns))
    np.testing.assert_array_equal(X, [[1.5, 1, 1, 1], [np.nan, 2, np.nan, 0], [3, np.nan, 0, np.nan], [2.5, 3, 1, 1]])


def test_tables_are_recognised():
    table = customers()
    assert all(is_table(make(table)) for make in PACKAGES.values())
    assert not any(map(is_table, (np.eye(2), [[1, 2]], "text", None, pd.Series([1]))))
    numbers = {"a": [1, 2], "b": [0.5, 0.25], "c": [True, False]}
    for name, make in PACKAGES.items():
        assert needs_recipe(make(table))
        assert needs_recipe(make(numbers)) == (name == "dict")
    assert not needs_recipe(np.eye(2))


def test_all_missing_columns_are_named():
    recipe = learn(customers())
    with pytest.raises(BadColumns, match="has no columns 'age', 'paid'") as error:
        recipe({name: column for name, column in customers().items() if name not in ("age", "paid")})
    assert [problem.column for problem in error.value.problems] == ["age", "paid"]


def test_all_mistakes_are_in_one_error_with_their_rows():
    table = customers()
    table["age"] = [*map(str, table["age"][:-2]), "old", "?"]
    table["spent"][3] = "free"
    with pytest.raises(BadColumns) as error:
        learn(table)
    age, spent = error.value.problems
    assert (age.column, age.examples) == ("age", (("old", 38), ("?", 39)))
    assert (spent.column, spent.examples) == ("spent", (("free", 3),))
    assert "2 columns cannot be used" in str(error.value)
    assert learn(table, missing={"old", "?", "free"}).names[:2] == ("age", "spent")


def test_describe_says_the_kinds():
    assert dict(describe(learn(customers()))) == {
        "town": "category, 3 levels",
        "age": "number",
        "member": "true or false",
        "spent": "number, in €",
        "paid": "true or false",
    }
