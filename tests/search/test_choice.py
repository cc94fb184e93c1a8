"""The choice of a shape: links first, then BIC."""

import numpy as np
from sklearn.datasets import load_iris

from linkmix import LinkMixture, Links
from linkmix.search.choice import MOST_ROWS, compare_shapes


def rings(seed=0):
    """Two classes of two far clusters each, crosswise: one round Gaussian per class can not tell them apart."""
    rng = np.random.default_rng(seed)
    centres = np.array([[0, 0], [6, 6], [0, 6], [6, 0]])
    component = np.repeat(np.arange(4), 40)
    return centres[component] + rng.normal(size=(160, 2)), component // 2


def test_links_choose_the_number_of_clusters():
    X, y = rings()
    links = Links.from_labels(y, 40, random_state=0)
    table = compare_shapes(X, links, 2, covariance_types=["tied", "diag", "spherical"])
    assert table["clusters_per_class"][0] >= 2
    assert table["links_broken"][0] == 0
    one = table[table["clusters_per_class"] == 1]
    assert (one["links_broken"] > 3).all()


def test_shapes_are_ranked_by_links_then_by_bic():
    X, y = load_iris(return_X_y=True)
    links = Links.from_labels(y, 30, random_state=0)
    table = compare_shapes(X, links, 3, clusters_per_class=[1, 2])
    assert len(table) == 8
    keys = list(zip(table["links_broken"].tolist(), table["bic"].tolist(), strict=True))
    assert keys == sorted(keys)
    best = table[table["covariance_type"] == "full"][0]
    settings = {"coupling": "graph", "init": "links", "n_init": 3, "random_state": 0}
    model = LinkMixture(3, clusters_per_class=int(best["clusters_per_class"]), **settings).fit(X, links=links)
    assert model.bic(X, links) == best["bic"]


def test_many_rows_are_sampled_with_all_linked_ones():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=3 * MOST_ROWS)
    X = 5.0 * y[:, None] + rng.normal(size=(len(y), 2))
    links = Links(must=[(0, int(np.flatnonzero(y == y[0])[-1]))], cannot=[(0, int(np.flatnonzero(y != y[0])[-1]))])
    table = compare_shapes(X, links, 2, clusters_per_class=[1], covariance_types=["full"])
    assert table["links_broken"][0] == 0
    per_row = -table["log_likelihood"][0] / MOST_ROWS
    assert 2.5 < per_row < 4.5  # about 1.42 for each column and log 2 for the class, of a sample and not of all rows


def test_a_shape_with_more_clusters_than_rows_is_left_out():
    X, _ = load_iris(return_X_y=True)
    assert compare_shapes(X[::30], Links(), 2, clusters_per_class=[1, 9])["clusters_per_class"].max() == 1
