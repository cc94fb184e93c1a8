"""The tables of the experiment that asks which method needs the fewest links."""

import numpy as np
import pandas as pd
import pytest

from linkmix.study.paper import fewest


@pytest.fixture
def runs():
    rows = []
    for data, ours in (("iris", 0.9), ("wine", 0.5)):
        for seed in (0, 1):
            rows.append((data, "gmm", 0, seed, 0.6, np.nan))
            for n_links in (10, 50):
                rows.append((data, "auto", n_links, seed, 0.99, ours + 0.1 * seed))
                rows.append((data, "e2cp", n_links, seed, 0.7 + 0.001 * n_links, np.nan))
    table = pd.DataFrame(rows, columns=["data", "method", "n_links", "seed", "ari", "ari_predict"])
    return table.assign(purity=table["ari"], purity_predict=table["ari_predict"], seconds=1.0, kind="both")


def test_means_are_over_data_sets(runs):
    table = fewest.mean_scores(runs).set_index("method")
    assert table.loc["auto", 10] == pytest.approx((0.95 + 0.55) / 2)
    assert table.loc["e2cp", 50] == pytest.approx(0.75)  # it has no predict: the labels count
    assert table.loc["gmm", 10] == table.loc["gmm", 50] == pytest.approx(0.6)
    assert list(table.index) == ["auto", "e2cp", "gmm"]
    labels = fewest.mean_scores(runs, "ARI of labels_").set_index("method")
    assert labels.loc["auto", 10] == pytest.approx(0.99)


def test_an_uneven_number_of_trials_does_not_weigh(runs):
    fewer = runs[~((runs["data"] == "wine") & (runs["seed"] == 1) & (runs["method"] == "auto"))]
    assert fewest.mean_scores(fewer).set_index("method").loc["auto", 10] == pytest.approx((0.95 + 0.5) / 2)


def test_cells_in_which_a_rival_is_ahead(runs):
    cells = fewest.against_rivals(runs).set_index(["data", "n_links"])
    assert not cells.loc[("iris", 10), "behind"]
    assert cells.loc[("wine", 50), "behind"]
    assert cells.loc[("wine", 50), "rival"] == "e2cp"
    assert cells.loc[("wine", 50), "best"] == pytest.approx(0.75)


def test_the_curves_are_the_means(runs):
    (axes,) = fewest.mean_curves(runs).axes
    heights = {tuple(np.round(line.get_ydata(), 6)) for line in axes.lines}
    assert heights == {(0.75, 0.75), (0.71, 0.75), (0.6, 0.6)}
    assert {text.get_text() for text in axes.texts} == {"AutoLinkMixture", "E2CP", "GMM"}
