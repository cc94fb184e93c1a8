"""Points of no class in files, on the command line and in the report."""

import re

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.datasets import load_iris

from linkmix import AutoLinkMixture, Links
from linkmix.app.cli import main
from linkmix.app.report import Result, page
from linkmix.app.report.numbers import labels_alone, review
from linkmix.tables import Points, write_labels, write_links

IRIS, SPECIES = load_iris(return_X_y=True)
FAR = np.array([[20.0, 1, 20, 1], [1, 20, 1, 20], [20, 20, 20, 20], [-9, 0, 0, -9]])
X = np.concatenate([IRIS, FAR])
NOISE = np.arange(len(IRIS), len(X))
LINKS = Links.from_labels(SPECIES, 20, random_state=0).union(Links(cannot=[(150, 151), (0, 150)], must=[(152, 153)]))


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def model():
    return AutoLinkMixture(3, noise=True, random_state=0).fit(X, links=LINKS)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    pd.DataFrame(X, columns=["a", "b", "c", "d"]).to_csv(tmp_path / "points.csv", index=False)
    write_links(tmp_path / "links.csv", LINKS, [str(row) for row in range(len(X))])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_fit_and_predict_say_how_many(folder, model):
    result = run("fit", "points.csv", "--links", "links.csv", "--classes", 3, "--noise", "--out", "out")
    assert result.exit_code == 0, result.output
    n_noise = int((model.labels_ == -1).sum())
    said = f"{n_noise} points ({100 * n_noise / len(X):.1f} %) belong to no class (label -1).\n"
    assert said in result.stdout
    assert re.search(rf" none +{n_noise} +{100 * n_noise / len(X):.1f} % +label -1\n", result.stdout)
    assert "satisfied by the labels: 23 (100 %)" in result.stdout
    assert "noise is the probability of no class (not calibrated)" in result.stdout
    labels = pd.read_csv("out/labels.csv")
    assert list(labels)[-2:] == ["probability_2", "noise"]
    np.testing.assert_array_equal(labels["label"], model.labels_)
    np.testing.assert_allclose(labels["noise"], model.predict_noise(X), atol=1e-6)
    np.testing.assert_allclose(labels.filter(like="probability"), model.predict_proba(X), atol=1e-6)
    assert "belong to no class (label -1)" in (folder / "out" / "report.html").read_text()

    predicted = run("predict", "out/model.linkmix", "points.csv", "--out", "predicted.csv")
    assert predicted.exit_code == 0, predicted.output
    table = pd.read_csv("predicted.csv")
    np.testing.assert_array_equal(table["label"], model.predict(X))
    np.testing.assert_allclose(table["noise"], labels["noise"])
    assert said in predicted.stdout


def test_without_the_option_nothing_is_said(folder):
    result = run("fit", "points.csv", "--links", "links.csv", "--classes", 3)
    assert "no class" not in result.stdout
    assert "noise" not in pd.read_csv("linkmix-out/labels.csv")


def test_noise_is_only_for_auto(folder):
    result = run("fit", "points.csv", "--classes", 3, "--method", "paper", "--noise")
    assert result.exit_code == 2
    assert "--noise has no effect with --method paper: leave it out, or use --method auto" in result.output


def test_confidence_is_the_probability_of_the_label(tmp_path):
    p, noise = np.array([[0.25, 0.75], [0.9, 0.1], [0.5, 0.5]]), np.array([0.2, 0.7, 0.0])
    write_labels(tmp_path / "labels.csv", ["x", "y", "z"], np.array([1, -1, 0]), p, noise=noise)
    assert (tmp_path / "labels.csv").read_text().splitlines() == [
        "id,label,confidence,probability_0,probability_1,noise",
        "x,1,0.6,0.25,0.75,0.2",
        "y,-1,0.7,0.9,0.1,0.7",
        "z,0,0.5,0.5,0.5,0",
    ]


def result_of(model):
    ids = np.array([f"w{row}" for row in range(len(X))], dtype=object)
    return Result(
        *(Points(ids, ("a", "b", "c", "d"), X), LINKS, model.labels_, model.predict_proba(X), model, 3),
        *("auto", "the best", "linkmix fit", ("points.csv",), (), model.predict_noise(X)),
    )


def test_two_points_of_no_class_are_not_together(model):
    found = result_of(model)
    assert np.all(model.labels_[NOISE] == -1)
    table = review(found)
    of = {(int(row["a"]), int(row["b"]), bool(row["is_must"])): row for row in table}
    assert of[150, 151, False]["holds"]
    assert of[150, 151, False]["holds_alone"]
    assert of[0, 150, False]["holds"]
    assert of[152, 153, True]["holds"]
    np.testing.assert_array_equal(labels_alone(found, np.arange(len(X))), model.predict(X))


def test_report_has_a_row_and_grey_points(model):
    found = result_of(model)
    n_noise = int((model.labels_ == -1).sum())
    assert found.n_noise == n_noise
    assert found.sizes.tolist() == [int((model.labels_ == m).sum()) for m in range(3)]
    for m in range(3):
        np.testing.assert_allclose(found.profiles.means[m], X[model.labels_ == m].mean(axis=0))
    assert found.confidence.counts.sum() == len(X) - n_noise
    sure = found.confidence_of(np.arange(len(X)))
    np.testing.assert_allclose(sure[NOISE], model.predict_noise(FAR))
    shown = page(found)
    assert f"{n_noise} points ({100 * n_noise / len(X):.1f} %) belong to no class (label -1)." in shown
    drawn = re.findall(r'class="points nowhere s\d" d="([^"]*)"', shown)
    assert sum(path.count("M") for path in drawn) == n_noise
    assert "No class</h3>" in shown
