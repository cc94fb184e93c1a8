"""Tables with categories: the search sees codes, and the user sees the table."""

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.stats import multivariate_normal, skew
from sklearn.metrics import adjusted_rand_score

from linkmix import AutoLinkMixture, LinkMixture, Links
from linkmix.columns import Coded, learn
from linkmix.data.scaling import CALM, COMPONENTS, scalings
from linkmix.densities import Categorical, Gaussian, Poisson, Product
from linkmix.queries import Questioner
from linkmix.search.budgets import BUDGETS
from linkmix.search.contest import densities
from linkmix.search.settings import SETTINGS
from linkmix.search.spaces import indicators

TRUTH = np.repeat([0, 1, 2], 30)


def made(seed=0):
    """90 rows of three classes, which no column tells apart on its own."""
    rng = np.random.default_rng(seed)
    n = len(TRUTH)
    right = rng.random(n) < 0.85
    table = pd.DataFrame(
        {
            "size": TRUTH % 2 * 2.0 + rng.normal(size=n),
            "plan": np.array(["basic", "plus", "gold"])[np.where(right, TRUTH, rng.integers(3, size=n))],
            "member": rng.random(n) < np.array([0.1, 0.5, 0.9])[TRUTH],
            "visits": rng.poisson(np.array([2.0, 9.0, 4.0])[TRUTH]),
        }
    )
    table.loc[rng.random(n) < 0.05, "plan"] = None
    return table


LINKS = Links.from_labels(TRUTH, 30, random_state=0)


@pytest.fixture(scope="module")
def fitted():
    return AutoLinkMixture(3, budget="small", random_state=0).fit(made(), links=LINKS)


def test_categories_decide_where_numbers_do_not(fitted):
    table = made()
    numbers = AutoLinkMixture(3, budget="small", random_state=0).fit(table[["size", "visits"]], links=LINKS)
    with_categories = adjusted_rand_score(TRUTH, fitted.predict(table))
    assert with_categories > adjusted_rand_score(TRUTH, numbers.predict(table[["size", "visits"]])) + 0.2
    assert with_categories > 0.6
    assert fitted.recipe_.level_names["plan"] == ("basic", "gold", "plus")
    assert fitted.feature_names_in_.tolist() == ["size", "plan", "member", "visits"]


@pytest.mark.parametrize("convert", [pl.from_pandas, pa.Table.from_pandas, lambda table: table.iloc[:, ::-1]])
def test_the_kind_of_table_and_the_order_of_columns_do_not_matter(fitted, convert):
    table = made()
    same = fitted.predict_proba(convert(table))
    assert np.array_equal(same, fitted.predict_proba(table))


def test_new_rows_may_have_new_levels_and_gaps(fitted):
    new = made(1).head(6)
    new.loc[0, "plan"] = "platinum"
    new.loc[1, ["size", "plan", "visits"]] = None, None, np.nan
    probabilities = fitted.predict_proba(new)
    assert np.allclose(probabilities.sum(axis=1), 1)
    without = new.copy()
    without.loc[0, "plan"] = None
    assert np.array_equal(probabilities, fitted.predict_proba(without))


def test_what_does_not_fit_the_table_of_the_fit_is_refused(fitted):
    with pytest.raises(ValueError, match=r"no columns 'plan', 'member'"):
        fitted.predict(made()[["size", "visits"]])
    with pytest.raises(ValueError, match="fitted to a table with the columns 'size', 'plan'"):
        fitted.predict(np.zeros((2, 4)))
    plain = LinkMixture(2, random_state=0).fit(np.random.default_rng(0).normal(size=(20, 2)))
    with pytest.raises(ValueError, match="fitted to plain numbers"):
        plain.predict(Coded(np.zeros((2, 2)), fitted.recipe_))


def test_a_saved_model_reads_tables(fitted, tmp_path):
    fitted.save(tmp_path / "m.linkmix")
    loaded = AutoLinkMixture.load(tmp_path / "m.linkmix")
    assert np.array_equal(loaded.predict_proba(made(2)), fitted.predict_proba(made(2)))
    assert loaded.recipe_.level_names == fitted.recipe_.level_names
    again = loaded.fit(made(), links=LINKS)
    assert np.array_equal(again.labels_, fitted.labels_)


def test_a_table_that_is_coded_already_gives_the_same_fit(fitted):
    recipe = learn(made())
    coded = AutoLinkMixture(3, budget="small", random_state=0).fit(Coded(recipe(made()), recipe), links=LINKS)
    assert np.array_equal(coded.labels_, fitted.labels_)
    assert np.array_equal(coded.predict(made()), fitted.predict(made()))


def test_columns_that_cannot_be_used_are_named():
    table = made().assign(code=[f"x{i:03}" for i in range(len(TRUTH))])
    model = AutoLinkMixture(3, budget="small", random_state=0, calibrate=False)
    with pytest.warns(UserWarning, match=r"columns that are not used: 'code' \("):
        model.fit(table, links=LINKS)
    assert "code" in model.recipe_.left_out


def test_kinds_are_taken_at_their_word():
    table = made()
    asked = AutoLinkMixture(3, kinds={"visits": "category"}, budget="small", random_state=0, calibrate=False)
    asked.fit(table, links=LINKS)
    assert "visits" in asked.recipe_.level_names
    with pytest.raises(ValueError, match="visit"):
        AutoLinkMixture(3, kinds={"visit": "category"}).fit(table)


@pytest.mark.parametrize("settings", [{"committee": 3}, {"n_classes": "auto"}, {"calibrate": False}])
def test_other_settings_work_with_categories(settings):
    model = AutoLinkMixture(**{"n_classes": 3, "budget": "small", "random_state": 0, **settings})
    model.fit(made(), links=LINKS)
    assert np.isfinite(model.score_samples(made())).all()
    assert len(model.labels_) == len(TRUTH)


def test_categories_alone():
    table = made()[["plan", "member"]].astype(object)
    known = np.where(np.arange(len(TRUTH)) % 8 == 0, TRUTH, -1)
    model = AutoLinkMixture(3, budget="small", random_state=0).fit(table, known, links=LINKS)
    assert adjusted_rand_score(TRUTH, model.predict(table)) > 0.4
    assert not any("heavy" in shape for shape in model.leaderboard_["shape"])


def test_the_density_is_the_product_of_its_parts():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(50, 2)), rng.integers(3, size=50), rng.integers(2, size=50)])
    X[3, 2] = np.nan
    density = densities(4, 1e-4, (3, 2))["gaussian"]
    parameters = density.start(X, np.eye(2)[rng.integers(2, size=50)])
    found = density.log_density(parameters, X)
    numbers, categories = parameters.parts["numbers"], parameters.parts["categories"]
    for c in range(2):
        whitener = numbers.whiteners[c]
        covariance = np.linalg.inv(whitener @ whitener.T)
        expected = multivariate_normal(numbers.means[c], covariance).logpdf(X[:, :2])
        for j, column in enumerate(X[:, 2:].T):
            known = ~np.isnan(column)
            expected[known] += np.log(categories.values[c, j, column[known].astype(int)])
        assert np.allclose(found[:, c], expected)


def test_indicators_vary_as_much_as_factor_analysis_of_mixed_data_says():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=200), rng.integers(4, size=200), rng.random(200) < 0.2]).astype(float)
    Z, even = indicators(X, (4, 2)), indicators(X, (4, 2), even=True)
    assert Z.shape == (200, 1 + 4 + 1)
    assert np.allclose(Z[:, 1:5].var(axis=0).sum(), 3)  # L - 1
    assert np.allclose(Z[:, 5].var(), 1)
    assert np.allclose(even[:, 1:5].var(axis=0).sum(), 1)
    share = np.bincount(X[:, 1].astype(int)) / 200
    a, b = np.flatnonzero(X[:, 1] == 0)[0], np.flatnonzero(X[:, 1] == 1)[0]
    assert np.isclose(((Z[a, 1:5] - Z[b, 1:5]) ** 2).sum(), 1 / share[0] + 1 / share[1])  # the chi-square distance


def test_codes_pass_through_every_view():
    rng = np.random.default_rng(0)
    codes = rng.integers(3, size=(80, 2)).astype(float)
    codes[5, 1] = np.nan
    few = np.column_stack([np.exp(2 * rng.normal(size=(80, 3))), codes])
    for scaling in scalings(few, SETTINGS, 2).values():
        assert np.array_equal(scaling(few)[:, -2:], codes, equal_nan=True)
        assert np.allclose(scaling.log_slope(few), scaling.numbers.log_slope(few[:, :-2]))
    many = np.column_stack([rng.normal(size=(80, 60)), codes])
    views = scalings(many, SETTINGS, 2)
    assert list(views) == [COMPONENTS]
    Z = views[COMPONENTS](many)
    assert Z.shape == (80, SETTINGS.n_components + 2)
    assert np.array_equal(Z[:, -2:], codes, equal_nan=True)
    assert views[COMPONENTS].on_one_scale(many).shape == Z.shape


def test_a_product_refers_to_columns_by_name():
    table = made().dropna().reset_index(drop=True)
    by_name = Product(
        {"size": (Gaussian(), ["size"]), "visits": (Poisson(), ["visits"]), "kind": (Categorical(), ["plan", "member"])}
    )
    model = LinkMixture(3, density=by_name, coupling="graph", random_state=0).fit(table)
    coded = learn(table, by_name.kinds)(table)  # numbers first: size, visits, plan, member
    by_number = Product({"size": (Gaussian(), [0]), "visits": (Poisson(), [1]), "kind": (Categorical(), [2, 3])})
    other = LinkMixture(3, density=by_number, coupling="graph", random_state=0).fit(coded)
    assert np.array_equal(model.labels_, other.labels_)
    assert model.log_likelihood_ == other.log_likelihood_
    assert np.array_equal(model.predict_proba(pl.from_pandas(table)), other.predict_proba(coded))


def test_names_that_the_table_does_not_have_are_refused():
    density = Product({"size": (Gaussian(), ["size"]), "kind": (Categorical(), ["colour"])})
    with pytest.raises(ValueError, match="colour"):
        LinkMixture(2, density=density).fit(made())
    with pytest.raises(ValueError, match="must be a data frame"):
        LinkMixture(2, density=density).fit(np.zeros((5, 2)))


def test_numbers_alone_cannot_describe_categories():
    with pytest.raises(
        ValueError, match=r"'plan' \(category, 3 levels\).*describes numbers alone: use AutoLinkMixture"
    ):
        LinkMixture(3).fit(made())


def test_a_categorical_mixture_reads_text():
    table = made()[["plan", "member"]].astype(object)
    model = LinkMixture(3, density="categorical", random_state=0).fit(table)
    assert model.probabilities_.shape == (3, 1, 2, 3)


def test_questions_about_a_table():
    table = made()
    asker = Questioner(table, 3)
    for _ in range(30):
        [[a, b]] = asker.next()
        asker.answer(a, b, "same" if TRUTH[a] == TRUTH[b] else "different")
    asker.refit()
    assert adjusted_rand_score(TRUTH, asker.labels) > 0.6
    assert np.allclose(asker.model.predict_proba(table), asker.probabilities, atol=1e-12)


@pytest.mark.parametrize("links", [LINKS, Links()], ids=["links", "no links"])
def test_beside_categories_only_starts_and_shapes_that_pay_are_tried(links):
    table = AutoLinkMixture(3, calibrate=False, random_state=0).fit(made(), links=links).leaderboard_
    starts, shapes = set(table["start"]), set(table["shape"])
    assert {"k-means", "MPCK-means"} <= starts
    assert ("E2CP" in starts) == bool(len(links.points))
    assert not any("sparse" in start or "by links" in start for start in starts)
    assert "1, alike" in shapes
    assert not any("heavy" in shape for shape in shapes)


def test_shapes_with_heavy_tails_are_tried_if_there_are_no_others():
    own = replace(BUDGETS["small"], guesses=("E2CP, sparse",), shapes=("1, heavy tails",), more_shapes=())
    table = AutoLinkMixture(3, budget=own, calibrate=False, random_state=0).fit(made(), links=LINKS).leaderboard_
    assert set(zip(table["start"], table["shape"], strict=True)) == {("E2CP, sparse", "1, heavy tails")}


@pytest.mark.parametrize("sign", [1, -1])
def test_beside_categories_tails_are_compressed_until_both_are_alike(sign):
    rng = np.random.default_rng(0)
    amounts = sign * np.exp(rng.normal(size=400))
    alone = scalings(amounts[:, None], SETTINGS)[CALM](amounts[:, None])[:, 0]
    table = np.column_stack([amounts, rng.integers(2, size=400)])
    beside = scalings(table, SETTINGS, 1)[CALM](table)[:, 0]
    assert abs(skew(alone)) > 0.5
    assert abs(skew(beside)) < 0.2
    assert np.all(np.diff(beside[np.argsort(amounts)]) > 0)
    assert abs(beside.mean()) < 1e-9
    assert beside.std() == pytest.approx(1)


def test_a_table_of_zeros_and_ones_has_categories():
    rng = np.random.default_rng(0)
    animals = pd.DataFrame(
        {f"trait {j}": rng.random(90) < np.array([0.1, 0.5, 0.9])[(TRUTH + j) % 3] for j in range(9)}
    )
    animals["legs"] = rng.integers(5, size=90)
    model = AutoLinkMixture(3, budget="small", random_state=0).fit(animals.astype(int), links=LINKS)
    assert sum(level == 2 for level in model.recipe_.levels) == 9
    plain = AutoLinkMixture(3, budget="small", random_state=0).fit(animals.astype(int).to_numpy(), links=LINKS)
    assert not hasattr(plain, "recipe_") or plain.recipe_ is None
