"""The demo shows what it claims."""

import numpy as np
import pytest
from matplotlib.patches import Ellipse

from linkmix.study import demo


@pytest.fixture(scope="module")
def shown():
    return demo.run()


def test_the_mixture_without_links_is_wrong_and_20_links_mend_it(shown):
    assert shown.links.n_must + shown.links.n_cannot == 20
    assert shown.without.purity == pytest.approx(0.752, abs=0.01)
    assert shown.without.adjusted_rand == pytest.approx(0.554, abs=0.01)
    assert shown.with_links.purity == pytest.approx(0.887, abs=0.01)
    assert shown.with_links.adjusted_rand == pytest.approx(0.713, abs=0.01)
    assert shown.with_links.links_by_labels == 1.0
    assert shown.without.links_by_predict < shown.with_links.links_by_predict <= 1.0


def test_the_links_are_what_differs(shown):
    without, with_links = shown.without.model.get_params(), shown.with_links.model.get_params()
    assert without == with_links


def test_the_gain_is_typical(shown):
    results = demo.repeat(shown, 5)
    assert results[0].adjusted_rand == shown.with_links.adjusted_rand
    assert np.mean([result.adjusted_rand for result in results]) > shown.without.adjusted_rand + 0.1


def test_a_seed_decides_the_links():
    data = demo.load_data()
    assert demo.draw_links(data, 20, 3) == demo.draw_links(data, 20, 3) != demo.draw_links(data, 20, 4)


def test_classes_are_matched_with_the_truth(shown):
    found = shown.with_links.model.predict(shown.data.X)
    numbers = demo.matching_classes(shown.data.y, found)
    assert sorted(numbers) == [0, 1, 2]
    named = np.array(demo.DIGITS)[np.array(numbers)[found]]
    assert np.mean(named == shown.data.y) == pytest.approx(shown.with_links.purity)


def test_the_picture_has_three_panels_that_say_what_they_are(shown):
    figure = demo.picture(shown)
    without, with_links, truth = figure.axes
    assert without.get_title().startswith("without links: purity 0.75")
    assert with_links.get_title().startswith("with 20 links: purity 0.89")
    assert truth.get_title() == "truth"
    assert all(ax.get_xlabel() == "principal component 1 (grey levels)" for ax in figure.axes)
    assert without.get_ylabel() == "principal component 2 (grey levels)"
    assert [len(ax.lines) for ax in figure.axes] == [0, 20, 0]
    assert [sum(isinstance(patch, Ellipse) for patch in ax.patches) for ax in figure.axes] == [6, 6, 0]
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert {"digit 1", "digit 2", "digit 5", "must-link", "cannot-link"} <= set(legend)
