"""The registry of methods: names, and the links that each method uses."""

import pytest
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from linkmix import Links
from linkmix.study.registry import METHODS


@pytest.mark.parametrize("name", METHODS)
def test_a_method_uses_the_links_that_it_says(name):
    X, y = load_wine(return_X_y=True)
    method, links = METHODS[name], Links.from_labels(y, 30, random_state=0).at_most(0.9)
    assert method.name == name
    assert method.what
    usable = method.usable(links)
    assert (usable.n_must > 0, usable.n_cannot > 0) == (method.uses_must, method.uses_cannot)
    assert method.uses_links == (usable.n_must + usable.n_cannot > 0)
    fitted = method.make(n_classes=3, random_state=0).fit(StandardScaler().fit_transform(X), links=usable)
    assert fitted.labels_.shape == y.shape
