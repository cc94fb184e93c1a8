"""From tables to arrays: the same recipe for every table, and all mistakes at once."""

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from linkmix import LinkMixture
from linkmix.columns import BadColumns, describe, is_table, learn, mostly_truth_values, needs_recipe
from linkmix.mixture.model_file import from_bytes, to_bytes


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


def test_tables_of_truth_values_are_recognised():
    animals = {"fins": [0, 1, 0], "milk": [True, False, True], "tail": [1.0, 0.0, 1.0], "legs": [4, 0, 2]}
    for make in PACKAGES.values():
        assert mostly_truth_values(make(animals))
        assert not mostly_truth_values(make({**animals, "tail": [1.0, 0.5, 1.0]}))  # two of four columns are too few
        assert not mostly_truth_values(make({**animals, "a": [2, 3, 4], "b": [2, 3, 4], "c": [2, 3, 4]}))
    assert mostly_truth_values(pd.DataFrame({**animals, "fins": [0, np.nan, 1]}))
    assert not mostly_truth_values(pd.DataFrame(animals).to_numpy())
    assert not mostly_truth_values(pd.DataFrame(np.eye(3), columns=["a", "a", "b"]))  # names that no recipe can have
    late = np.zeros(2000)
    late[1500] = 2
    assert not mostly_truth_values(pd.DataFrame(dict.fromkeys("abc", late)))


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


def everything(n=60):
    """A table with a column of every kind but pictures."""
    rng = np.random.default_rng(1)
    table = customers(n)
    days = np.datetime64("2020-01-01") + rng.integers(0, 1500, n).astype("timedelta64[D]")
    words = ["wine", "beer", "bread", "cheese", "apple", "pear", "fish", "meat", "tea", "milk"]
    table["since"] = [str(day) for day in days]
    table["note"] = [" ".join(rng.choice(words, 5)) for _ in range(n)]
    table["embedding"] = rng.normal(size=(n, 60)).tolist()
    table["size"] = rng.choice(["S", "M", "L"], n).tolist()
    table["at"] = [f"{hour:02d}:30" for hour in rng.integers(0, 24, n)]
    table["town"][5] = None
    return table


KINDS_OF_EVERYTHING = {"size": "ordered:S<M<L", "age": "ordered", "since": "date+month"}


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_gives_the_same_array(package):
    plain = everything()
    recipe = learn(plain, KINDS_OF_EVERYTHING)
    table = PACKAGES[package](plain)
    same = learn(table, KINDS_OF_EVERYTHING)
    assert (same.names, same.levels, same.left_out, same.remarks) == (
        recipe.names,
        recipe.levels,
        recipe.left_out,
        recipe.remarks,
    )
    np.testing.assert_array_equal(same(table), recipe(plain))
    np.testing.assert_array_equal(recipe(table), recipe(plain))


def test_a_model_file_holds_a_recipe():
    plain = everything()
    recipe = learn(plain, KINDS_OF_EVERYTHING)
    estimator = LinkMixture(1).fit(np.arange(6.0).reshape(-1, 1))
    read = from_bytes(Path("model"), to_bytes(estimator, {"recipe": recipe}), [LinkMixture]).notes["recipe"]
    np.testing.assert_array_equal(read(plain), recipe(plain))
    assert (read.names, read.owners, read.levels) == (recipe.names, recipe.owners, recipe.levels)
    assert (read.left_out, read.remarks, read.missing) == (recipe.left_out, recipe.remarks, recipe.missing)
    assert describe(read) == describe(recipe)


def test_rows_are_read_one_by_one_as_all_together():
    plain = everything()
    recipe = learn(plain, KINDS_OF_EVERYTHING)
    X = recipe(plain)
    for row in (0, 5, 17):
        one = recipe({name: column[row : row + 1] for name, column in plain.items()})
        np.testing.assert_allclose(one, X[row : row + 1], rtol=1e-12, atol=1e-12)


def test_other_columns_are_ignored_and_order_does_not_matter():
    plain = everything()
    recipe = learn(plain, KINDS_OF_EVERYTHING)
    turned = dict(reversed({**plain, "more": [b"x"] * 60}.items()))
    np.testing.assert_array_equal(recipe(turned), recipe(plain))


def test_a_recipe_and_its_errors_can_be_pickled():
    plain = everything()
    recipe = learn(plain, KINDS_OF_EVERYTHING)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(recipe))(plain), recipe(plain))
    with pytest.raises(BadColumns) as error:
        recipe({**plain, "spent": ["much"] * 60})
    copy = pickle.loads(pickle.dumps(error.value))
    assert (str(copy), copy.problems) == (str(error.value), error.value.problems)
