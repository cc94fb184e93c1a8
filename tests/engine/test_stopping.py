"""When EM stops: the gain per row, which does not depend on units."""

import numpy as np
import pytest
from sklearn.datasets import load_wine

from linkmix import LinkMixture, Links
from linkmix.data.blocks import Blocks, Door
from linkmix.engine.fitting import Knowledge, part


def test_rows_are_counted_by_their_weights_wherever_they_are():
    X, links = np.arange(60.0).reshape(30, 2), Links(must=[(3, 4)], cannot=[(4, 9), (0, 20)])
    weights = np.arange(1.0, 31.0)
    table = Blocks([X[:7], X[7:]]).enter(Door([np.float64], False, lambda block: None))
    for points in (X, table):
        assert part(Knowledge(points, links)).weight == 30
        assert part(Knowledge(points, links), keep_linked=True).weight == 30 + 5
        assert part(Knowledge(points, links, weights)).weight == weights.sum()
        assert part(Knowledge(points, links, weights), keep_linked=True).weight == weights.sum() + 4 + 5 + 10 + 1 + 21


@pytest.mark.parametrize("factor", [1e3, 1e-3])
def test_units_do_not_change_the_number_of_steps(factor):
    X, y = load_wine(return_X_y=True)
    links = Links.from_labels(y, 20, random_state=0)

    def fit(factor):
        return LinkMixture(3, reg_covar=1e-6 * factor**2, random_state=0).fit(X * factor, links=links)

    one, other = fit(1.0), fit(factor)
    assert other.converged_
    assert other.n_iter_ == one.n_iter_ > 5
    shift = X.shape[1] * np.log(factor) * (len(X) + _repeated(links))
    np.testing.assert_allclose(other.log_likelihood_ + shift, one.log_likelihood_, rtol=1e-9)


def _repeated(links):
    """How often linked points appear in links beyond the first time."""
    return 2 * (len(links.must) + len(links.cannot)) - len(links.points)
