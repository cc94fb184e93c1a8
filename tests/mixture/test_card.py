"""What a notebook shows of an estimator."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from sklearn import config_context
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from linkmix import AutoLinkMixture, LinkMixture, Links
from linkmix.basics.palette import MORE_COLOURS
from linkmix.mixture.card import MOST_CLASSES, card
from linkmix.mixture.fitted import light

Y = np.repeat([0, 1, 2], [40, 30, 10])
X = np.random.default_rng(0).normal(size=(80, 2)) + 9 * np.array([[0, 0], [1, 0], [0, 1]])[Y]
LINKS = Links.from_labels(Y, 10, random_state=0)


def shown(model):
    """The card as a tree, which only well-formed text gives, and its text."""
    tree = ElementTree.fromstring(card(model))
    return tree, [part for part in tree.itertext() if part.strip()]


def bars(tree):
    return [(float(bar.get("width")), bar.get("fill")) for bar in tree.iter("rect")]


@pytest.mark.parametrize("model", [LinkMixture(3, random_state=0), AutoLinkMixture(3, budget="small", random_state=0)])
def test_a_fitted_estimator_shows_its_diagram_and_its_classes(model):
    before = model._repr_html_()
    assert "<svg" not in before
    html = model.fit(X, links=LINKS)._repr_html_()
    assert type(model).__name__ in html
    assert "sk-container" in html
    assert html.endswith(card(model))
    assert model._repr_mimebundle_()["text/html"].endswith(card(model))
    tree, text = shown(model)
    assert text[0] == "80 points in 3 classes"
    assert {"40 (50 %)", "30 (38 %)", "10 (12 %)"} <= set(text)
    assert "10 of 10 links kept" in text
    widths = dict(zip(np.bincount(model.labels_).tolist(), [width for width, _ in bars(tree)], strict=True))
    assert widths[30] == pytest.approx(0.75 * widths[40], abs=0.1)
    assert widths[10] == pytest.approx(0.25 * widths[40], abs=0.1)
    assert [colour for _, colour in bars(tree)] == [*MORE_COLOURS[:3]]
    if isinstance(model, AutoLinkMixture):
        assert str(model.quality_) in text


def test_nothing_is_loaded_from_elsewhere():
    html = card(LinkMixture(3, random_state=0).fit(X, links=LINKS))
    assert not re.search(r"https?:|src=|href=|@import|url\(|<script", html)


def test_broken_links_are_counted():
    wrong = Links(cannot=[(0, 1), (0, 50)], cannot_confidence=[0.51, 0.99])
    _, text = shown(LinkMixture(3, coupling="graph", random_state=0).fit(X, links=wrong))
    assert "1 of 2 links kept" in text


def test_names_are_escaped_and_short():
    told = np.full(80, None, dtype=object)
    told[:3], told[45:48], told[75:] = '<script>alert("x")</script>', "a & b\n\x00", "long " * 20
    model = AutoLinkMixture(3, budget="small", random_state=0).fit(X, told)
    assert "<script>" not in card(model)
    _, text = shown(model)
    assert '<script>alert("x")</s…' in text
    assert "a & b " in text
    assert max(map(len, text)) < 150


def test_points_of_no_class_have_a_bar():
    model = AutoLinkMixture(3, noise=True, budget="small", random_state=0).fit(np.vstack([X, [[60.0, 60.0]]]))
    n_nowhere = int(np.sum(model.labels_ == -1))
    tree, text = shown(model)
    assert n_nowhere >= 1
    assert "no class (-1)" in text
    assert len(bars(tree)) == 4


def test_many_classes_are_put_together():
    model = LinkMixture(30, covariance_type="spherical", reg_covar=1e-2, random_state=0, tol=1e-2).fit(
        np.random.default_rng(0).normal(size=(300, 2))
    )
    tree, text = shown(model)
    assert len(bars(tree)) == MOST_CLASSES
    assert "19 smaller classes" in text
    [together] = [int(part.split()[0]) for part in text if part.endswith("in all")]
    alone = [int(part.split()[0]) for part in text if part.endswith("%)")]
    assert together + sum(alone) == 300


def test_without_labels_the_weights_are_shown():
    model = LinkMixture(3, random_state=0).fit(X, links=LINKS)
    _, text = shown(light(model))
    assert text[0] == "3 classes, by their weights"
    assert f"{100 * model.class_weights_[0]:.1f} %" in text


def test_the_display_setting_of_scikit_learn_is_kept():
    model = LinkMixture(3, random_state=0).fit(X)
    with config_context(display="text"):
        assert not hasattr(model, "_repr_html_")
        assert "text/html" not in model._repr_mimebundle_()
    assert "LinkMixture" in make_pipeline(StandardScaler(), model).fit(X)._repr_html_()
