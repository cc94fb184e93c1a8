"""Sparse points are refused with a remedy that does not need all the memory, wherever points come in."""

import numpy as np
import pytest
from scipy.sparse import coo_matrix, csr_array

from linkmix import AutoLinkMixture, LinkMixture, Links, choose
from linkmix.queries import Questioner
from linkmix.rivals import GMPR, PCKMeans

DENSE = np.random.default_rng(0).normal(size=(30, 4))
REMEDY = r"sparse matrix of shape \(30, 4\), but dense data is required: reduce it first with .*TruncatedSVD\(50\)"
DOORS = {
    "AutoLinkMixture": lambda X: AutoLinkMixture(2).fit(X),
    "LinkMixture": lambda X: LinkMixture(2).fit(X),
    "predict": lambda X: LinkMixture(2, random_state=0).fit(DENSE).predict(X),
    "a rival": lambda X: PCKMeans(2).fit(X),
    "a rival that is a mixture": lambda X: GMPR(2).fit(X),
    "Questioner": lambda X: Questioner(X, 2),
    "choose": lambda X: choose(X, Links(must=[(0, 1)]), 2),
}


@pytest.mark.parametrize("kind", [csr_array, coo_matrix])
@pytest.mark.parametrize("door", DOORS)
def test_sparse_points_are_refused_with_a_remedy(door, kind):
    with pytest.raises(TypeError, match=REMEDY):
        DOORS[door](kind(DENSE))
