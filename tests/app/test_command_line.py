"""The commands that work on files: what they write, and what they say about files that are wrong."""

import gc
import os
import re
import resource
import signal
import subprocess
import sys
import time
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.datasets import load_iris

from bad_files import BAD
from linkmix import AutoLinkMixture, LinkMixture, Links, links_satisfied, purity
from linkmix.app.cli import main
from linkmix.app.cli.imports import imports_that_stay
from linkmix.mixture import model_file
from linkmix.study.registry import METHODS
from linkmix.tables import read_points, write_links

IRIS, SPECIES = load_iris(return_X_y=True)
IDS = [f"{i:03}" for i in range(len(IRIS))]
COLUMNS = ["sepal_length", "sepal_width", "petal_length", "petal_width"]
LINKS = Links.from_labels(SPECIES, 20, random_state=0)
QUICK = ["--classes", 3, "--method", "linkmix"]


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with iris as a table and links between its rows."""
    frame = pd.DataFrame(IRIS, columns=COLUMNS)
    frame.insert(0, "id", IDS)
    frame.to_csv(tmp_path / "points.csv", index=False)
    frame.to_parquet(tmp_path / "points.parquet", index=False)
    frame["species"] = np.array(["setosa", "versicolor", "virginica"])[SPECIES]
    frame.to_csv(tmp_path / "species.csv", index=False)
    write_links(tmp_path / "links.csv", LINKS, IDS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def listing(path):
    return sorted(file.name for file in path.iterdir())


@pytest.mark.parametrize("points", ["points.csv", "points.parquet"])
def test_fit_writes_labels_model_and_report(points, folder):
    result = run("fit", points, "--links", "links.csv", "--classes", 3, "--out", "new/out")
    assert result.exit_code == 0, result.output
    assert listing(folder / "new" / "out") == ["labels.csv", "model.linkmix", "report.html"]
    labels = pd.read_csv("new/out/labels.csv", dtype={"id": str})
    assert list(labels) == ["id", "label", "confidence", "probability_0", "probability_1", "probability_2"]
    assert labels["id"].tolist() == IDS
    assert purity(SPECIES, labels["label"]) > 0.9
    model = AutoLinkMixture.load("new/out/model.linkmix")
    expected = AutoLinkMixture(3, random_state=0).fit(IRIS, links=LINKS)
    np.testing.assert_array_equal(labels["label"], expected.labels_)
    np.testing.assert_allclose(labels.filter(like="probability"), expected.predict_proba(IRIS), atol=1e-6)
    np.testing.assert_allclose(
        labels["confidence"], expected.predict_proba(IRIS)[np.arange(150), expected.labels_], atol=1e-6
    )
    assert expected.temperatures_[0] > 1  # so these are calibrated, and that is said
    assert "labels.csv: id, label, confidence and probability of each class (calibrated)\n" in result.stdout
    said = result.stdout.splitlines()
    assert said[:3] == [str(expected.quality_), "", "150 points, 4 columns, 3 classes."]
    alone = links_satisfied(expected.predict(IRIS), LINKS)
    assert said[3] == (
        "20 links (4 must, 16 cannot); satisfied by the labels: 20 (100 %); "
        f"by the points alone: {20 * alone:.0f} ({100 * alone:.0f} %)."
    )
    report = (folder / "new" / "out" / "report.html").read_text()
    assert 0 < report.index(str(expected.quality_)) < report.index("candidates, the links agree best")
    np.testing.assert_allclose(model.predict_proba(IRIS), expected.predict_proba(IRIS), atol=1e-12)


def test_fit_says_when_annotators_are_not_believed(folder):
    """Two people contradict each other once, so no link is certain any more."""
    named = Links(LINKS.must, LINKS.cannot, must_annotators="ada", cannot_annotators="ada")
    [(a, b), *_] = LINKS.must.tolist()
    write_links("named.csv", named, IDS)
    write_links("both.csv", named.union(Links(cannot=[(a, b)], cannot_annotators="bob")), IDS)
    believed = run("fit", "points.csv", "--links", "named.csv", "--classes", 3, "--out", "one")
    assert "seem wrong" not in believed.stdout
    result = run("fit", "points.csv", "--links", "both.csv", "--classes", 3, "--out", "two")
    assert result.exit_code == 0, result.output
    shares = AutoLinkMixture.load("two/model.linkmix").best_estimator_.annotator_reliability_
    said = ", ".join(f"{who} {100 * share:.0f} %" for who, share in shares.items())
    assert sorted(shares) == ["ada", "bob"]
    assert (
        f"Some links seem wrong, so none is taken as certain. Estimated share of right ones: {said}." in result.stdout
    )


def test_fit_says_that_many_columns_are_searched_by_components(folder):
    rng = np.random.default_rng(0)
    wide = pd.DataFrame(np.repeat(4 * rng.normal(size=(2, 70)), 40, axis=0) + rng.normal(size=(80, 70)))
    wide.add_prefix("x").to_csv("wide.csv", index=False)
    result = run("fit", "wide.csv", "--classes", 2, "--out", "out")
    assert result.exit_code == 0, result.output
    assert "Note: classes were looked for on 20 principal components of the 70 columns" in result.stdout
    result = run("predict", "out/model.linkmix", "wide.csv", "--out", "again.csv")
    assert result.exit_code == 0, result.output
    assert pd.read_csv("again.csv")["label"].tolist() == pd.read_csv("out/labels.csv")["label"].tolist()


def test_fit_without_links_and_without_ids(folder):
    (folder / "plain.csv").write_text("".join(f"{a},{b}\n" for a, b in [("x", "y"), *IRIS[:, 2:].tolist()]))
    result = run("fit", "plain.csv", "--classes", 2, "--out", "out")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("No links, so nothing can be said about how good this is: give some, or run ")
    assert pd.read_csv("out/labels.csv")["id"].tolist() == list(range(150))
    assert "No links were given" in (folder / "out" / "report.html").read_text()


@pytest.mark.parametrize("method", METHODS)
def test_every_method_writes_what_it_can(method, folder):
    spec = METHODS[method]
    links = Links(LINKS.must if spec.uses_must else (), LINKS.cannot if spec.uses_cannot else ())
    given = []
    if not links.empty:
        write_links("some.csv", links, IDS)
        given = ["--links", "some.csv"]
    result = run("fit", "points.csv", *given, "--classes", 3, "--method", method, "--out", "out")
    assert result.exit_code == 0, result.output
    has_model = hasattr(spec.make(n_classes=2, random_state=0), "predict_proba")
    assert (folder / "out" / "model.linkmix").exists() == has_model
    labels = pd.read_csv("out/labels.csv")
    assert len(labels.columns) == (6 if has_model else 2)
    assert labels["label"].nunique() == 3
    if has_model:
        assert run("predict", "out/model.linkmix", "points.csv").exit_code == 0


def test_settings_reach_the_mixture(folder):
    options = ["--clusters-per-class", 2, "--covariance", "diag", "--coupling", "pairwise", "--scale", "--seed", 3]
    result = run("fit", "points.csv", "--links", "links.csv", *QUICK, *options, "--columns", "petal_width,sepal_width")
    assert result.exit_code == 0, result.output
    model = LinkMixture.load("linkmix-out/model.linkmix")
    assert (model.clusters_per_class, model.covariance_type, model.coupling) == (2, "diag", "pairwise")
    X = np.ascontiguousarray(IRIS[:, [3, 1]])
    X = (X - np.nanmean(X, axis=0)) / np.nanstd(X, axis=0)
    expected = METHODS["linkmix"].make(
        n_classes=3, clusters_per_class=2, covariance_type="diag", coupling="pairwise", random_state=3
    )
    np.testing.assert_allclose(model.predict_proba(X), expected.fit(X, links=LINKS).predict_proba(X), atol=1e-9)
    run("predict", "linkmix-out/model.linkmix", "points.parquet", "--out", "p.csv")
    np.testing.assert_allclose(pd.read_csv("p.csv").filter(like="prob"), model.predict_proba(X), atol=1e-6)


def test_clusters_per_class_one_by_one(folder):
    fit = ("fit", "points.csv", "--links", "links.csv", *QUICK, "--covariance", "diag")
    result = run(*fit, "--clusters-per-class", "1,2,1")
    assert result.exit_code == 0, result.output
    model = LinkMixture.load("linkmix-out/model.linkmix")
    assert model.clusters_per_class == [1, 2, 1]
    assert model.cluster_weights_.shape == (3, 4)
    for numbers, message in (("1,2", "one whole number from 1 for each class"), ("1,0,1", "nor a list such as 1,2,1")):
        result = run(*fit, "--clusters-per-class", numbers)
        assert result.exit_code == 2, result.output
        assert message in " ".join(result.output.split())


def test_the_scaling_of_an_earlier_model_file_is_applied(folder):
    """Files have held the notes columns, center and spread since --scale exists."""
    center, spread = IRIS.mean(axis=0), np.array([1.0, 2.0, 3.0, 4.0])
    model = METHODS["linkmix"].make(n_classes=3, random_state=0).fit((IRIS - center) / spread, links=LINKS)
    model_file.save("earlier.linkmix", model, {"columns": COLUMNS, "id": "id", "center": center, "spread": spread})
    expected = model.predict_proba((IRIS - center) / spread)
    assert run("predict", "earlier.linkmix", "points.csv").exit_code == 0
    np.testing.assert_allclose(pd.read_csv("predicted.csv").filter(like="prob"), expected, atol=1e-6)
    result = run("explain", "earlier.linkmix", "points.csv", "060", "120")
    assert f"In the same class with probability {expected[60] @ expected[120]:.3f}" in result.output


def test_try_hard_is_a_committee_of_five_on_a_large_budget(folder):
    pd.read_csv("points.csv", dtype={"id": str}).iloc[::5].to_csv("few.csv", index=False)
    result = run("fit", "few.csv", "--classes", 2, "--try-hard")
    assert result.exit_code == 0, result.output
    model = AutoLinkMixture.load("linkmix-out/model.linkmix")
    assert (model.budget, model.committee) == ("large", 5)


@pytest.mark.slow
def test_the_number_of_classes_is_chosen(folder):
    few = Links.from_labels(SPECIES[::5], 4, kind="must", random_state=0)
    write_links("links.csv", few, IDS[::5])
    pd.read_csv("points.csv", dtype={"id": str}).iloc[::5].to_csv("points.csv", index=False)
    result = run("choose", "points.csv", "--links", "links.csv")
    assert result.exit_code == 0, result.output
    chosen = re.search(r"--classes (\d+) ", result.output)[1]
    assert re.search(rf"^{chosen} .*chosen$", result.output, re.MULTILINE)
    result = run("fit", "points.csv", "--links", "links.csv")
    assert result.exit_code == 0, result.output
    assert f"{chosen} classes.\n" in result.output
    assert f"{chosen} classes were chosen, " in result.output
    assert "Number of classes" in (folder / "linkmix-out" / "report.html").read_text()


def test_the_same_command_writes_the_same_files(folder):
    for out in ("one", "two"):
        assert run("fit", "points.csv", "--links", "links.csv", *QUICK, "--out", out).exit_code == 0
    for name in ("labels.csv", "model.linkmix", "report.html"):
        assert (folder / "one" / name).read_bytes() == (folder / "two" / name).read_bytes()


def test_predict_labels_new_rows_by_the_names_of_columns(folder):
    assert run("fit", "points.csv", "--links", "links.csv", *QUICK).exit_code == 0
    frame = pd.read_csv("points.csv", dtype={"id": str})
    frame["species"] = "not known"
    shuffled = frame[["petal_width", "species", "id", "petal_length", "sepal_width", "sepal_length"]].iloc[::-1]
    shuffled.to_csv("new.tsv", sep="\t", index=False)
    result = run("predict", "linkmix-out/model.linkmix", "new.tsv", "--out", "new.csv")
    assert result.exit_code == 0, result.output
    new = pd.read_csv("new.csv", dtype={"id": str}).set_index("id")
    old = LinkMixture.load("linkmix-out/model.linkmix").predict(IRIS)
    assert new.loc[IDS, "label"].tolist() == old.tolist()


def test_check_links_finds_all_there_is(folder):
    (folder / "odd.csv").write_text(
        "a,b,kind\n000,001,must\n001,002,must\n000,002,cannot\n001,000,must\n999,003,must\n004,4,cannot\n005,005,must\n"
    )
    result = run("check-links", "points.csv", "odd.csv")
    assert result.exit_code == 2
    assert "7 links: 3 must-links and 1 cannot-links between 3 of 150 points can be used." in result.output
    assert "line 6, a: '999' is not among the ids of the points (ids are such as '000')" in result.output
    assert "line 7, b: '4' is not among the ids of the points (is it '004'?)" in result.output
    assert "line 8: '005' is linked to itself" in result.output
    assert "line 5: '001' and '000', as on line 2" in result.output
    assert "'000' and '002' must link through '001' and cannot link: remove one of these 3 links" in result.output


def test_check_links_says_what_follows(folder):
    (folder / "good.csv").write_text(
        "a,b,kind\n000,001,must\n001,002,must\n002,003,cannot\n003,004,cannot\n004,000,cannot\n"
    )
    result = run("check-links", "points.csv", "good.csv")
    assert result.exit_code == 0, result.output
    assert "follow 3 must-links and 7 cannot-links in all; must-links hold 1 groups" in result.output
    assert "They can be met with 3 classes or more." in result.output


def test_explain_names_columns_and_links(folder):
    run("fit", "points.csv", "--links", "links.csv", *QUICK)
    a, b = (IDS[row] for row in LINKS.cannot[0])
    result = run("explain", "linkmix-out/model.linkmix", "points.csv", a, b, "--links", "links.csv")
    assert result.exit_code == 0, result.output
    assert re.search(r"In the same class with probability 0\.\d+, judged by the points alone\.", result.output)
    assert "petal_length" in result.output
    assert f"Links force them apart:\n  {a} and {b} cannot link" in result.output
    same = run("explain", "linkmix-out/model.linkmix", "points.csv", "000", "001")
    assert "In the same class with probability 1.000" in same.output


def test_the_columns_of_explain_add_up_to_the_calibrated_probability(folder):
    X = np.hstack([IRIS, np.random.default_rng(0).normal(size=(150, 20))])  # more columns than are listed
    X[60, 2] = np.nan
    columns = COLUMNS + [f"noise{j}" for j in range(20)]
    pd.DataFrame(X, columns=columns).to_csv("wide.csv", index=False)
    model = AutoLinkMixture(3, budget="small", random_state=0).fit(X, links=LINKS)
    model_file.save("wide.linkmix", model, {"columns": columns, "id": None})
    result = run("explain", "wide.linkmix", "wide.csv", 60, 120)
    assert result.exit_code == 0, result.output
    p = model.predict_proba(X[[60, 120]])
    together = p[0] @ p[1]
    assert f"In the same class with calibrated probability {together:.3f}, judged by the points alone." in result.output
    rows = re.findall(r"^  (\S.*?) {2,}([-+]\d+\.\d\d)(?:  (.*))?$", result.output, re.MULTILINE)
    assert [name for name, _, _ in (rows[0], *rows[-2:])] == ["with no column", "4 more columns", "sum"]
    assert len(rows) == 1 + 20 + 2
    assert rows[-1][2] == f"the log-odds of probability {together:.3f}"
    assert float(rows[-1][1]) == pytest.approx(np.log(together / (1 - together)), abs=0.006)
    assert sum(float(value) for _, value, _ in rows[:-1]) == pytest.approx(float(rows[-1][1]), abs=0.006 * len(rows))
    assert "missing and " in result.output


SHAPES = ("--clusters-per-class", 1, "--clusters-per-class", "1,2,1", "--covariance", "tied", "--covariance", "diag")


def test_choose_ends_with_a_command_that_runs(folder):
    result = run("choose", "points.csv", "--links", "links.csv", "--classes", 3, *SHAPES)
    assert result.exit_code == 0, result.output
    table = pd.read_csv("choose/choose.csv", dtype={"clusters_per_class": str})
    assert table["clusters_per_class"].tolist() == ["1", "1", "1,2,1", "1,2,1"]
    best = table[table["chosen"]].iloc[0]
    assert result.output.count("chosen") == 1
    assert f"Recommended: 3 classes of {best['clusters_per_class']} cluster" in result.output
    assert f"{100 * best['links_agree']:.1f} ± {100 * best['links_agree_error']:.1f} %" in result.output
    assert f"{best['log_likelihood']:.3f} ± {best['log_likelihood_error']:.3f}" in result.output
    assert listing(folder / "choose") == ["choose.csv", "choose.png"]
    command = result.output.strip().splitlines()[-1].split()
    assert command[:2] == ["linkmix", "fit"]
    assert run(*command[1:]).exit_code == 0
    model = LinkMixture.load("linkmix-out/model.linkmix")
    assert model.covariance_type == best["covariance_type"]


def test_choose_without_links_says_what_decides(folder):
    result = run("choose", "points.csv", "--classes", 2, "--classes", 3, "--covariance", "tied")
    assert result.exit_code == 0, result.output
    assert "There are no links, too few to hide some (at least 10 are needed)" in result.output
    assert set(pd.read_csv("choose/choose.csv")["n_classes"]) == {2, 3}
    message = "--classes auto chooses from all numbers up to 50: give it alone, or give numbers alone"
    assert message in one_message(run("choose", "points.csv", "--classes", "auto", "--classes", 3))
    message = "clusters_per_class"
    assert message in one_message(run("choose", "points.csv", "--classes", 2, "--clusters-per-class", "1,2,1"))


def test_compare_runs_methods_and_goes_on(folder):
    options = ["--truth", "species", "--methods", "gmm,paper", "--n-links", "0,20", "--trials", 2, "--jobs", 1]
    result = run("compare", "species.csv", *options)
    assert result.exit_code == 0, result.output
    assert listing(folder / "compare") == ["compare.csv", "compare.png", "runs.jsonl"]
    table = pd.read_csv("compare/compare.csv")
    assert len(table) == 8
    assert table["error"].isna().all()
    assert re.search(r"^paper +0\.\d{3} +0\.\d{3}$", result.output, re.MULTILINE)
    journal = (folder / "compare" / "runs.jsonl").read_bytes()
    assert run("compare", "species.csv", *options).exit_code == 0
    assert (folder / "compare" / "runs.jsonl").read_bytes() == journal


@pytest.mark.parametrize("command", ["fit", "predict", "check-links", "compare", "choose", "explain"])
def test_help_has_two_examples_of_the_command(command):
    result = run(command, "--help")
    assert result.exit_code == 0
    assert result.output.count(f"\n    linkmix {command} ") >= 2


def test_a_misspelt_command_names_the_one_that_may_be_meant():
    assert "No such command 'fitt'. Did you mean 'fit'?" in one_message(run("fitt", "points.csv"))
    assert one_message(run("xyzzy")).strip() == "No such command 'xyzzy'."


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("linkmix che", "check-links"),
        ("linkmix fit points.csv --cov", "--covariance"),
        ("linkmix fit points.csv --method gmm", "gmm-ec"),
        ("linkmix fit points.csv --covariance d", "diag"),
        ("linkmix fit species.csv --id spe", "species"),
    ],
)
def test_the_shell_completes(line, expected, folder):
    words = line.split()
    variables = {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1), "_LINKMIX_COMPLETE": "bash_complete"}
    script = "import sys; from linkmix.app.cli import main; main(prog_name='linkmix')"
    result = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, **variables}, capture_output=True, text=True, check=False
    )
    assert expected in result.stdout, result.stderr


def one_message(result):
    """The message of a command that failed as it should, without the usage that click puts before some."""
    assert result.exit_code == 2, result.output
    assert isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.output
    assert result.output.count("Error: ") == 1, result.output
    return result.output.partition("Error: ")[2]


@pytest.mark.parametrize(("points", "links", "options", "message"), [b[1:] for b in BAD], ids=[b[0] for b in BAD])
def test_bad_input_has_one_message(points, links, options, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = ["points.csv"]
    if points is None:
        arguments, options = [options[0]], []
        (tmp_path / "FOLDER").mkdir()
        (tmp_path / "false.parquet").write_text("no")
        pd.DataFrame({"x": [1.0]}).to_parquet("whole.parquet")
        (tmp_path / "cut.parquet").write_bytes((tmp_path / "whole.parquet").read_bytes()[:-9])
    else:
        (tmp_path / "points.csv").write_bytes(points if isinstance(points, bytes) else points.encode())
    if links is not None:
        (tmp_path / "links.csv").write_bytes(links.encode())
        arguments += ["--links", "links.csv"]
    defaults = [] if "--method" in options else ["--method", "linkmix"]
    defaults += [] if "--classes" in options else ["--classes", "3"]
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    said = one_message(run("fit", *arguments, *defaults, *options))
    assert message in said
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_the_table_of_bad_input_is_long():
    assert len(BAD) >= 40


@pytest.mark.parametrize(
    ("points", "said"),
    [
        (
            "id,x,c\na,1,7\nb,2,7\nc,5,7\nd,6,7\n",
            "Used 1 column: x.\nLeft out: id (ids), c (the same value in every row).\n",
        ),
        ("id,x,gap\na,1,\nb,2,\nc,5,\nd,6,\n", "Used 1 column: x.\nLeft out: id (ids), gap (no values).\n"),
        (
            "name,x,y\na,1,2\nb,3,3\nc,5,7\nd,6,1\n",
            "Used 2 columns: x, y.\nLeft out: name (text, nearly all values differ).\n",
        ),
        (
            "sex,x,y\nf,1,2\nm,3,3\nf,5,7\nm,6,1\n",
            "Used 3 columns: sex (category, 2 levels), x (number), y (number).\n",
        ),
        ("x,y\n1,2\n,3\n5,\n6,1\n", "Used 2 columns: x, y.\nNote: 2 values are missing"),
    ],
)
def test_what_was_used_is_said(points, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "points.csv").write_text(points)
    result = run("fit", "points.csv", "--classes", 2)
    assert result.exit_code == 0, result.output
    assert said in result.output
    report = re.sub("</?bdi>", "", (tmp_path / "linkmix-out" / "report.html").read_text())
    assert all(line.removeprefix("Note: ") in report for line in said.splitlines())


def test_noise_and_what_decides_are_said(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    X = np.c_[rng.normal(size=200) + 5 * y, rng.normal(size=200) + y, rng.uniform(size=200)]
    rows = "".join(f"{a:.6f},{b:.6f},{c:.6f}\n" for a, b, c in X.tolist())
    (tmp_path / "points.csv").write_text("size,weight,dice\n" + rows)
    result = run("fit", "points.csv", "--classes", 2)
    assert result.exit_code == 0, result.output
    assert "Used 2 columns: size, weight.\n" in result.output
    assert "Left out: dice (independent of all other columns and of the links).\n" in result.output
    decides = re.search(r"Decides: size (\d+) %, weight (\d+) %\.\n", result.output)
    assert int(decides[1]) > 80
    assert int(decides[1]) + int(decides[2]) in (99, 100, 101)
    report = re.sub("</?bdi>", "", (tmp_path / "linkmix-out" / "report.html").read_text())
    assert "dice (independent of all other columns and of the links)" in report
    assert "What decides</h2>" in report
    assert f'<span class="value">{decides[1]} %</span>' in report


def test_only_the_first_of_many_columns_are_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 40)), columns=[f"c{j}" for j in range(40)])
    table.to_csv("points.csv", index=False)
    result = run("fit", "points.csv", "--classes", 2, "--method", "gmm", "--covariance", "diag", "--columns", "c0,c39")
    assert "Used 2 columns: c0, c39.\nLeft out: c1 (not chosen), c2 (not chosen)" in result.output
    assert "c15 (not chosen), and 23 more.\n" in result.output


def test_suspicious_columns_are_noted_and_can_be_left_out(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(40, 2)), columns=["age", "spend, total"])
    table.insert(0, "customer_id", np.arange(40) + 1000)
    table["copy"], table["class"] = table["spend, total"], rng.integers(2, size=40)
    table.to_csv("points.csv", index=False)
    simple = ("--classes", 2, "--method", "linkmix")
    result = run("fit", "points.csv", *simple)
    assert result.exit_code == 0, result.output
    assert "Used 4 columns: age, spend, total, copy, class.\n" in result.output
    assert "Left out: customer_id (numbers the rows).\n" in result.output
    back = run("fit", "points.csv", *simple, "--as", "customer_id=number")
    assert "Used 5 columns: customer_id, age, spend, total, copy, class.\n" in back.output
    notes = [line for line in back.output.splitlines() if line.startswith("Note: ")]
    assert [("customer_id" in note, "'class'" in note, "'copy' as 'spend, total'" in note) for note in notes] == [
        (True, False, False), (False, True, False), (False, False, True)
    ]  # fmt: skip
    for note in notes[1:]:
        option = note.removesuffix(".").split("add --leave-out ")[1]
        left = run("fit", "points.csv", *simple, "--leave-out", option)
        assert f"Left out: customer_id (numbers the rows), {option} (as you asked).\n" in left.output
        assert note not in left.output
    assert "numbers the rows" in (tmp_path / "linkmix-out" / "report.html").read_text()
    assert "column 'customer_id' numbers" in run("fit", "points.csv", *simple, "--columns", "age,customer_id").output
    result = run("fit", "points.csv", *simple, "--leave-out", "customer_id,copy,class")
    assert "Used 2 columns: age, spend, total.\n" in result.output
    assert "Note" not in result.output
    assert "take it out of --columns" in run("fit", "points.csv", *simple, "--columns", "age,class").output
    result = run("choose", "points.csv", "--classes", 2, "--leave-out", "customer_id,copy")
    assert "column 'class' may be the answer" in result.stderr
    assert "--classes 2 --method" in result.stdout.splitlines()[-1]
    assert " --leave-out customer_id,copy " in result.stdout.splitlines()[-1]
    result = run(
        "compare", "points.csv", "--truth", "class", "--methods", "gmm", "--n-links", 0, "--trials", 1, "--jobs", 1
    )
    assert "'copy' as 'spend, total'" in result.stderr
    assert "'class'" not in result.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--leave-out", "z"], "points.csv: there is no column 'z': choose from 'id', 'x', 'y'"),
        (["--leave-out", "x", "--columns", "x,y"], "column 'x' is left out and also chosen as a feature"),
        (["--leave-out", "id"], "column 'id' is left out and also chosen as the ids"),
        (["--leave-out", "x,y"], "no column can be used besides the ids in 'id' and 'x', 'y', which you leave out"),
    ],
)
def test_columns_that_cannot_be_left_out(options, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "points.csv").write_text("id,x,y\na,1,2\nb,2,3\nc,5,1\nd,6,1\n")
    for command in ("fit", "label", "choose"):
        assert message in one_message(run(command, "points.csv", "--classes", 2, *options))


def test_a_file_without_header_as_that_of_cop_kmeans(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savetxt("iris.data", IRIS, fmt="%g", delimiter="\t")
    kinds = [*((a, b, 1) for a, b in LINKS.must.tolist()), *((a, b, -1) for a, b in LINKS.cannot.tolist())]
    (tmp_path / "iris.constraints").write_text("".join(f"{a}\t{b}\t{kind}\n" for a, b, kind in kinds))
    result = run("fit", "iris.data", "--links", "iris.constraints", "--classes", 3)
    assert result.exit_code == 0, result.output
    assert "150 points, 4 columns, 3 classes.\n" in result.output
    assert "Note: the first line of iris.data holds only numbers" in result.output
    expected = AutoLinkMixture(3, random_state=0).fit(IRIS, links=LINKS)
    np.testing.assert_array_equal(pd.read_csv("linkmix-out/labels.csv")["label"], expected.labels_)
    np.savetxt("new.csv", [[1, 2, 3, 4], *IRIS[:2]], fmt="%g", delimiter=",")  # which might begin with names
    result = run("predict", "linkmix-out/model.linkmix", "new.csv")
    assert result.exit_code == 0, result.output
    assert pd.read_csv("predicted.csv")["label"].tolist() == expected.predict([[1, 2, 3, 4], *IRIS[:2]]).tolist()
    assert "Note: the first line of new.csv" in result.stderr
    result = run("check-links", "iris.data", "iris.constraints")
    assert "of 150 points can be used" in result.stdout
    assert "Note: the first line" in result.stderr


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "model: is empty"),
        (b"id,x\n1,2\n", "model: is not a linkmix model file"),
        (b"\x93LINKMIX\x01\0\0\0", "model: is cut off"),
    ],
)
def test_predict_refuses_what_is_no_model(content, message, folder):
    (folder / "model").write_bytes(content)
    assert message in one_message(run("predict", "model", "points.csv"))
    assert message in one_message(run("explain", "model", "points.csv", "000", "001"))


def test_predict_names_a_missing_column(folder):
    run("fit", "points.csv", *QUICK)
    pd.read_csv("points.csv").drop(columns="petal_width").to_csv("new.csv", index=False)
    assert "new.csv: there is no column 'petal_width'" in one_message(
        run("predict", "linkmix-out/model.linkmix", "new.csv")
    )
    assert not (folder / "predicted.csv").exists()


def test_explain_names_an_unknown_id(folder):
    run("fit", "points.csv", *QUICK)
    said = one_message(run("explain", "linkmix-out/model.linkmix", "points.csv", "000", "zz"))
    assert "points.csv: 'zz' is not among the ids in column 'id' (such as '000')" in said
    assert "are one point" in one_message(run("explain", "linkmix-out/model.linkmix", "points.csv", "000", "000"))


@pytest.mark.parametrize(
    ("truth", "message"),
    [
        ("color", "there is no column 'color'"),
        ("id", "150 different values in 150 rows are not classes"),
    ],
)
def test_compare_wants_classes(truth, message, folder):
    assert message in one_message(run("compare", "species.csv", "--truth", truth))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_an_unwritable_folder_is_found_before_the_work(folder):
    (folder / "locked").mkdir(mode=0o500)
    assert "locked" in one_message(run("fit", "points.csv", *QUICK, "--out", "locked"))


@pytest.mark.skipif(not os.path.isdir("/sys/kernel"), reason="this system has no /sys, where nobody can make a folder")
def test_a_folder_that_nobody_can_make_is_found_before_the_work(folder):
    (folder / "points.csv").write_text("not a table at all")
    assert "/sys/kernel/linkmix-out: " in one_message(
        run("fit", "points.csv", *QUICK, "--out", "/sys/kernel/linkmix-out")
    )


def test_a_missing_package_is_named(folder):
    script = "import sys; sys.modules['pyarrow'] = None\n" + SCRIPT
    words = ["fit", "points.csv", "--classes", "3"]
    result = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (1, 'Error: this command needs pyarrow: pip install "linkmix[app]"\n')


def test_a_small_fit_loads_little_and_keeps_the_collector_away_from_it(tmp_path):
    """Importing these parts of scikit-learn takes longer than the fit."""
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 3)), columns=["x", "y", "z"])
    X.to_csv(tmp_path / "points.csv", index=False)
    script = (
        "import gc, sys; from linkmix.app.cli import main; main(sys.argv[1:], standalone_mode=False); "
        "print(gc.isenabled(), gc.get_freeze_count() > 0, *sys.modules)"
    )
    words = ["fit", str(tmp_path / "points.csv"), "--classes", "2", "--out", str(tmp_path)]
    done = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, check=True)
    enabled, frozen, *loaded = done.stdout.splitlines()[-1].split()
    assert (enabled, frozen) == ("True", "True")
    heavy = ("cluster", "decomposition", "linear_model", "metrics", "mixture", "neighbors", "preprocessing")
    assert not {"matplotlib", "plotly", *(f"sklearn.{name}" for name in heavy)} & set(loaded)


def test_the_collector_works_as_always_where_scikit_learn_has_been_imported():
    before = gc.get_freeze_count()
    with imports_that_stay():
        assert gc.isenabled()
    assert gc.isenabled()
    assert gc.get_freeze_count() == before


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals")
def test_a_person_at_a_terminal_sees_progress(folder):
    import fcntl
    import pty
    import struct
    import termios

    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))  # rows and columns
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, "fit", "points.csv", "--classes", "2"], stdout=subprocess.PIPE, stderr=slave
    )
    os.close(slave)
    said = b""
    try:
        while chunk := os.read(master, 4096):
            said += chunk
    except OSError:  # the end of a terminal
        pass
    output, _ = process.communicate()
    os.close(master)
    assert process.returncode == 0
    for part in (b"Reading points.csv", b"Fitting 150 points", b"candidates: 100%", b"Writing to linkmix-out"):
        assert part in said
    assert b"candidates" not in output


SCRIPT = "from linkmix.app.cli import main; main(prog_name='linkmix')"


def start(*arguments, script=SCRIPT, **options):
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options,
    )  # fmt: skip


@pytest.mark.parametrize("limit", [0, 1000, 20_000])
def test_a_full_disk_leaves_no_file(limit, folder):
    """The system refuses to write more than so many bytes to a file, as it does when the disk is full."""

    def shrink():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    (folder / "out").mkdir()
    (folder / "out" / "labels.csv").write_text("of an earlier fit")
    process = start("fit", "points.csv", *QUICK, "--out", "out", preexec_fn=shrink)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 2, said
    assert "File too large" in said
    assert "Traceback" not in said
    assert listing(folder / "out") == ["labels.csv"]
    assert (folder / "out" / "labels.csv").read_text() == "of an earlier fit"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
def test_a_disk_without_room_is_named(folder, monkeypatch):
    import linkmix.basics.files

    def full(path):
        raise OSError(28, "No space left on device", str(path))

    run("fit", "points.csv", *QUICK)
    monkeypatch.setattr(linkmix.basics.files.os, "fsync", lambda number: full("/dev/full"))
    said = one_message(run("predict", "linkmix-out/model.linkmix", "points.csv"))
    assert "No space left on device: the disk is full: make room" in said
    assert "predicted.csv" not in listing(folder)


MARKED = """
from pathlib import Path
from linkmix import AutoLinkMixture

fit = AutoLinkMixture.fit
AutoLinkMixture.fit = lambda *given, **more: (Path("begun").touch(), fit(*given, **more))[1]
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("seconds", [0.1, 1.5])
def test_an_interrupt_leaves_no_file(seconds, number, folder):
    big = np.random.default_rng(0).normal(size=(60_000, 48))  # takes much longer than the interrupt waits
    frame = pd.DataFrame(big, columns=[f"x{i}" for i in range(48)])
    frame.to_parquet("big.parquet")
    process = start("fit", "big.parquet", "--classes", "auto", "--out", "out", script=MARKED + SCRIPT)
    while not (folder / "begun").exists():
        assert process.poll() is None
        time.sleep(0.05)
    time.sleep(seconds)
    process.send_signal(number)
    done, said = process.communicate(timeout=60)
    assert process.returncode == 1, done + said
    assert said.strip() == "Aborted!"
    assert not (folder / "out").exists()


class Page(HTMLParser):
    """What a browser would make of a page: elements, attributes, text."""

    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.text = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.text.append(data)


EVIL = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='x",
    "</title><b>",
    "&lt;&amp;",
    "\u202egnp",
]


def test_the_report_escapes_every_text_of_the_user(folder):
    """Ids, columns, annotators and file names that try to be HTML stay text."""
    rng = np.random.default_rng(0)
    ids = [f"{EVIL[i % len(EVIL)]}{i}" for i in range(60)]
    X = np.vstack([rng.normal(0, 1, (30, 3)), rng.normal(4, 1, (30, 3))])
    frame = pd.DataFrame(X, columns=EVIL[:3])
    frame.insert(0, EVIL[3], ids)
    frame.to_csv("<i>points<script>.csv", index=False)
    links = Links([(0, 1), (2, 3), (4, 40)], [(5, 33), (0, 31)], must_annotators=EVIL[:3], cannot_annotators=EVIL[4:6])
    write_links("<u>links.csv", links, ids)
    result = run("fit", "<i>points<script>.csv", "--links", "<u>links.csv", "--id", EVIL[3], "--classes", 2)
    assert result.exit_code == 0, result.output
    content = (folder / "linkmix-out" / "report.html").read_text(encoding="utf-8")
    page = Page()
    page.feed(content)
    assert not {"script", "img", "i", "u", "b", "iframe", "object", "link"} & set(page.tags) - {"b", "i"}
    assert page.tags.count("b") == 2  # the names of the two files, in the title line
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert not [value for name, value in page.attributes if name in ("src", "href")]
    shown = "".join(page.text)
    for text in EVIL[:5]:
        assert text in shown
    assert "\u202e" not in content  # cannot turn the text around it
    assert "default-src 'none'" in content
    assert read_points("linkmix-out/labels.csv", id=EVIL[3]).ids.tolist() == ids


def test_the_report_needs_nothing_from_outside(folder):
    run("fit", "points.csv", "--links", "links.csv", *QUICK)
    content = (folder / "linkmix-out" / "report.html").read_text()
    assert "http://" not in content
    assert "https://" not in content
    assert "url(" not in content
    assert "@import" not in content
    for part in (
        "The classes",
        "What sets each class apart",
        "Links",
        "Broken links",
        "Worth a second look",
        "Convergence",
    ):
        assert part in content
    assert "prefers-color-scheme: dark" in content


def test_the_report_of_many_points_stays_small(folder):
    X = np.random.default_rng(0).normal(size=(20_000, 3)) + 4 * np.arange(20_000)[:, None] % 2
    pd.DataFrame(X, columns=list("xyz")).to_parquet("many.parquet")
    result = run("fit", "many.parquet", "--classes", 2, "--method", "paper")
    assert result.exit_code == 0, result.output
    content = (folder / "linkmix-out" / "report.html").read_text()
    assert len(content) < 400_000
    assert "3,000 of the 20,000 points are drawn" in content
