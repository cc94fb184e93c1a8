"""Commands on tables with columns of every kind: fit, predict, explain, the page, joined tables and earlier runs."""

import re

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.metrics import adjusted_rand_score

from linkmix import AutoLinkMixture, Links
from linkmix.app.cli import main
from linkmix.app.label.cards import Cards
from linkmix.tables import read_points, write_links

N = 240
RNG = np.random.default_rng(0)
Y = RNG.integers(2, size=N)
PLAN = np.where(RNG.random(N) < 0.85, np.array(["gold", "free"])[Y], RNG.choice(["gold", "free", "silver"], N))
CUSTOMERS = pd.DataFrame(
    {
        "customer": np.arange(N) + 7000,
        "plan": PLAN,
        "member": np.where(RNG.random(N) < 0.8, Y == 1, RNG.random(N) < 0.5),
        "spend": [f"{value:,.2f}" for value in RNG.gamma(2, 900, N) * (1 + 2 * Y)],
        "since": (pd.Timestamp("2021-01-05") + pd.to_timedelta(RNG.integers(700, size=N), unit="D")).strftime(
            "%d.%m.%Y"
        ),
        "zip": [f"0{1000 + row % 7}" for row in range(N)],
        "name": [f"N{row}a" for row in range(N)],
    }
)
CUSTOMERS.loc[5, "plan"], CUSTOMERS.loc[9, "spend"] = "?", "?"
LINKS = Links.from_labels(Y, 30, random_state=0)
FIT = ["--links", "links.csv", "--classes", 2, "--na", "?", "--leave-out", "zip"]


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A folder with a table, links and the result of a fit."""
    folder = tmp_path_factory.mktemp("mixed")
    CUSTOMERS.to_csv(folder / "points.csv", index=False)
    write_links(folder / "links.csv", LINKS, [str(row) for row in range(N)])
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        result = run("fit", "points.csv", *FIT, "--join")
    assert result.exit_code == 0, result.output
    return folder, result.output


@pytest.fixture
def folder(fitted, monkeypatch):
    monkeypatch.chdir(fitted[0])
    return fitted[0]


def test_fit_says_what_was_used(fitted):
    folder, said = fitted
    assert "240 points, 3 columns, 2 classes." in said
    assert (
        "Used 3 columns: plan (category, 3 levels), member (true or false), spend (number).\n"
        "Left out: since (independent of all other columns and of the links), customer (numbers the rows), "
        "zip (as you asked), name (text, nearly all values differ).\n"
    ) in said
    assert re.search(r"Decides: .*plan \d+ %", said)
    assert "Note: 'spend': read with a comma between thousands" in said
    assert "Note: 2 values are missing" in said
    assert re.search(r"plan = (gold|free) \d+ % \(overall \d+ %\)", said)
    labels = pd.read_csv(folder / "linkmix-out" / "labels.csv")
    assert adjusted_rand_score(Y, labels["label"]) > 0.4
    report = re.sub("</?bdi>", "", (folder / "linkmix-out" / "report.html").read_text())
    for part in ("plan (category, 3 levels)", "zip (as you asked)", "plan = ", "for a level of a category"):
        assert part in report


def test_predict_applies_the_recipe_to_other_files(folder):
    model = AutoLinkMixture.load("linkmix-out/model.linkmix")
    new = CUSTOMERS.iloc[::-1].head(20).drop(columns=["zip", "name", "customer"])
    new.insert(0, "more", "text")
    new.to_csv("new.csv.gz", index=False)
    new.to_parquet("new.parquet", index=False)
    expected = pd.read_csv("linkmix-out/labels.csv").filter(like="prob").iloc[::-1].head(20)
    for name in ("new.csv.gz", "new.parquet"):
        result = run("predict", "linkmix-out/model.linkmix", name, "--out", "new-labels.csv")
        assert result.exit_code == 0, result.output
        np.testing.assert_allclose(pd.read_csv("new-labels.csv").filter(like="prob"), expected, atol=2e-6)
    result = run("predict", "linkmix-out/model.linkmix", "new.parquet", "--out", "new-labels.csv")
    assert "new-labels.csv (in place of an earlier file)" in result.output
    assert model.recipe_.level_names["plan"] == ("free", "gold", "silver")
    new.assign(spend=["much", "3", *new["spend"][2:]]).to_csv("bad.csv", index=False)
    result = run("predict", "linkmix-out/model.linkmix", "bad.csv")
    assert result.exit_code == 2
    assert "Error: bad.csv, line 2, column 'spend': 'much' is not a number" in result.output
    new.drop(columns="plan").to_csv("bad.csv", index=False)
    assert "bad.csv: there is no column 'plan'" in run("predict", "linkmix-out/model.linkmix", "bad.csv").output


def test_one_row_is_predicted(folder):
    CUSTOMERS.head(1).to_csv("one.csv", index=False)
    result = run("predict", "linkmix-out/model.linkmix", "one.csv", "--out", "one-label.csv")
    assert result.exit_code == 0, result.output
    expected = pd.read_csv("linkmix-out/labels.csv").filter(like="prob").head(1)
    np.testing.assert_allclose(pd.read_csv("one-label.csv").filter(like="prob"), expected, atol=2e-6)


def test_explain_shows_values_as_they_stand_in_the_file(folder):
    result = run("explain", "linkmix-out/model.linkmix", "points.csv", 0, 5, "--links", "links.csv")
    assert result.exit_code == 0, result.output
    for name in ("member", "spend", "since"):
        assert f" {CUSTOMERS[name][0]} and {CUSTOMERS[name][5]}\n" in result.output
    assert f"{PLAN[0]} and ?" in result.output


def test_joined_tables_keep_every_value(folder):
    labels = pd.read_csv("linkmix-out/labels.csv", dtype=str)
    joined = pd.read_csv("linkmix-out/joined.csv", dtype=str)
    pd.testing.assert_frame_equal(joined[list(CUSTOMERS)], CUSTOMERS.astype(str))
    assert list(joined)[len(CUSTOMERS.columns) :] == list(labels)[1:]
    assert joined["label"].tolist() == labels["label"].tolist()
    np.testing.assert_allclose(joined["confidence"].astype(float), labels["confidence"].astype(float), atol=1e-5)
    CUSTOMERS.assign(label="own").to_parquet("points.parquet", index=False)
    result = run("predict", "linkmix-out/model.linkmix", "points.parquet", "--join", "--out", "p.csv")
    assert result.exit_code == 0, result.output
    assert "p-joined.csv\n" in result.output
    joined = pd.read_csv("p-joined.csv", dtype=str)
    assert (joined["label"] == "own").all()
    assert joined["label_2"].tolist() == pd.read_csv("p.csv", dtype=str)["label"].tolist()
    assert joined["spend"].tolist() == CUSTOMERS["spend"].tolist()


def test_parts_with_columns_in_another_order_are_joined(folder):
    (folder / "parts").mkdir()
    CUSTOMERS[:100].to_csv("parts/1.csv", index=False)
    CUSTOMERS[100:][list(CUSTOMERS)[::-1]].to_csv("parts/2.csv", index=False)
    result = run("predict", "linkmix-out/model.linkmix", "parts", "--join", "--out", "p.csv")
    assert result.exit_code == 0, result.output
    pd.testing.assert_frame_equal(pd.read_csv("p-joined.csv", dtype=str)[list(CUSTOMERS)], CUSTOMERS.astype(str))


def test_earlier_results_are_kept(folder):
    command = [
        "fit",
        "points.csv",
        "--classes",
        2,
        "--columns",
        "spend",
        "--method",
        "linkmix",
        "--na",
        "?",
        "--out",
        "o",
    ]
    first = run(*command)
    assert first.exit_code == 0, first.output
    before = {file.name: file.read_bytes() for file in (folder / "o").iterdir()}
    again = run(*command)
    assert "earlier" not in first.output + again.output  # the same files: nothing is lost
    other = run(*command, "--seed", 1, "--classes", 3)
    assert other.output.endswith("The files of the earlier run are in o/earlier-1.\n")
    assert {file.name: file.read_bytes() for file in (folder / "o" / "earlier-1").iterdir()} == before
    assert sorted(file.name for file in (folder / "o").iterdir()) == ["earlier-1", *sorted(before)]
    assert run(*command).output.endswith("o/earlier-2.\n")


def test_the_page_shows_values_as_they_stand_in_the_file(folder):
    points = read_points("points.csv", missing=["?"])
    pair = Cards(points, ".").pair(0, 5)
    fields = {field["name"]: field for field in pair["fields"]}
    assert [fields[name]["a"] for name in ("plan", "spend", "member")] == CUSTOMERS.loc[
        0, ["plan", "spend", "member"]
    ].astype(str).tolist()
    assert fields["spend"]["apart"] > 0
    assert fields["plan"]["apart"] is None
    assert fields["plan"]["differs"]
    places, _ = Cards(points, ".").places()
    assert places.shape == (2, N)
    assert np.isfinite(places).all()


def test_other_methods_use_the_numbers_and_say_so(folder):
    result = run("fit", "points.csv", *FIT, "--method", "gmm-ec", "--out", "gmm")
    assert "knows only numbers, so it does without plan, member; --method auto uses all columns" in result.output
    result = run("fit", "points.csv", *FIT, "--method", "linkmix", "--out", "linkmix", "--scale")
    assert result.exit_code == 0, result.output
    assert "Used 2 columns: spend (number), since (date)." in result.output
    result = run("predict", "linkmix/model.linkmix", "points.csv", "--out", "p.csv")
    assert result.exit_code == 0, result.output
    old, new = (pd.read_csv(name).filter(like="prob") for name in ("linkmix/labels.csv", "p.csv"))
    np.testing.assert_allclose(new, old, atol=2e-6)


def test_constant_columns_are_not_asked_for_when_predicting(folder):
    frame = pd.DataFrame({"x": RNG.normal(size=40), "same": 3, "n": np.arange(40)})
    frame.to_csv("plain.csv", index=False)
    result = run("fit", "plain.csv", "--classes", 2, "--method", "linkmix", "--out", "plain")
    assert "Left out: same (the same value in every row), n (numbers the rows)." in result.output
    frame[["x"]].head(3).to_csv("new.csv", index=False)
    result = run("predict", "plain/model.linkmix", "new.csv", "--out", "p.csv")
    assert result.exit_code == 0, result.output
