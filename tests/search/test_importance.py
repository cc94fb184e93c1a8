"""How much columns decide: against Shapley values by their definition, and on columns that tell nothing."""

from itertools import combinations
from math import comb

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import multivariate_normal
from sklearn.datasets import load_iris, load_wine

from linkmix import AutoLinkMixture, LinkMixture, Links
from linkmix.rivals import PCKMeans
from linkmix.search.importance import column_weights

X, Y = load_iris(return_X_y=True)


def probabilities_by_hand(model, points, columns):
    """Probabilities of the classes from some of the columns alone, by SciPy."""
    columns = list(columns)
    log_joint = [
        np.full(len(points), np.log(weight))
        + (
            multivariate_normal(mean[0][columns], covariance[0][np.ix_(columns, columns)]).logpdf(points[:, columns])
            if columns
            else 0.0
        )
        for weight, mean, covariance in zip(model.class_weights_, model.means_, model.covariances_, strict=True)
    ]
    return softmax(np.stack(log_joint, axis=1), axis=1)


def test_shares_are_shapley_values_of_the_information():
    model = LinkMixture(3, random_state=0).fit(X, links=Links.from_labels(Y, 20, random_state=0))
    points = X[::2]  # fewer than are drawn of many, so all of them count
    p = probabilities_by_hand(model, points, range(4))

    def value(columns):
        q = probabilities_by_hand(model, points, sorted(columns))
        return (p * np.log(np.maximum(q, 1e-12))).sum(axis=1).mean()

    expected = np.zeros(4)
    for j in range(4):
        others = [column for column in range(4) if column != j]
        for size in range(4):
            for some in combinations(others, size):
                expected[j] += (value((*some, j)) - value(some)) / (4 * comb(3, size))
    assert expected.sum() == pytest.approx(value(range(4)) - value(()))
    np.testing.assert_allclose(column_weights(model, points), expected / expected.sum(), atol=1e-6)


def test_left_out_columns_do_not_decide():
    wine, y = load_wine(return_X_y=True)
    Z = np.c_[wine, np.random.default_rng(0).normal(size=(len(y), 3)), np.ones(len(y))]
    model = AutoLinkMixture(3, calibrate=False, random_state=0).fit(Z, links=Links.from_labels(y, 30, random_state=0))
    shares = column_weights(model, Z)
    assert (shares[13:] == 0).all()
    assert (shares >= 0).all()
    assert shares.sum() == pytest.approx(1)
    assert shares[[6, 12]].sum() > 2.5 / 13  # flavanoids and proline
    np.testing.assert_array_equal(shares, column_weights(model, Z))


def test_a_model_that_knows_nothing_has_no_shares():
    one = LinkMixture(1, random_state=0).fit(X)
    assert column_weights(one, X).tolist() == [0, 0, 0, 0]


def test_a_model_without_missing_values_has_no_weights():
    assert column_weights(PCKMeans(3, random_state=0).fit(X), X) is None


def test_columns_of_a_table_have_one_share_each():
    rng = np.random.default_rng(0)
    y = np.arange(240) % 2
    when = np.where(rng.random(240) < 0.5, "2024-03-01", "2024-03-02")
    hue = np.where(rng.random(240) < 0.95, np.array(["red", "blue"])[y], "green")
    table = {"size": rng.normal(size=240) + 1.5 * y, "hue": hue, "day": when}
    model = AutoLinkMixture(2, calibrate=False, random_state=0)
    model.fit(table, links=Links.from_labels(y, 60, random_state=0))
    shares = column_weights(model, table)
    assert [column.name for column in model.recipe_.columns] == ["size", "hue", "day"]
    assert shares.sum() == pytest.approx(1)
    assert shares[1] > 0.5 > shares[0] > shares[2]
