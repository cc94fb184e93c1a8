"""How good a clustering is, from links that refits had not seen and that were not chosen."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

from linkmix import AutoLinkMixture, Links
from linkmix.mixture.calibration import LeftOut, quality

NO_ROWS = np.empty(0, dtype=np.int64)


def left_out(links, labels, rows=NO_ROWS, known=NO_ROWS):
    """A refit that is sure of these labels."""
    at = np.arange(links.n_must + links.n_cannot)
    return LeftOut(50.0 * np.eye(2)[labels], links, at, rows, known)


@pytest.fixture
def judged():
    """Labels of which a quarter are wrong, random links, and links that were chosen and are all right."""
    random = np.random.RandomState(0)
    truth = random.randint(2, size=200)
    labels = np.where(random.random_sample(200) < 0.25, 1 - truth, truth)
    drawn = Links.from_labels(truth, 60, random_state=0)
    right = (
        labels[drawn.must[:, 0]] == labels[drawn.must[:, 1]],
        labels[drawn.cannot[:, 0]] != labels[drawn.cannot[:, 1]],
    )
    chosen = drawn.where(*right)
    chosen = Links(chosen.must, chosen.cannot, must_chosen=True, cannot_chosen=True)
    return labels, drawn, chosen


def test_chosen_links_do_not_count_for_the_quality(judged):
    labels, drawn, chosen = judged
    probabilities = 0.5 + 0.3 * (2 * np.eye(2)[labels] - 1)
    alone = quality(probabilities, [left_out(drawn, labels)])
    assert quality(probabilities, [left_out(drawn.union(chosen), labels)]) == alone
    assert alone.n_links == 60
    assert quality(probabilities, [left_out(chosen, labels)]) is None


@pytest.mark.parametrize(("n_random", "can_tell"), [(9, False), (10, True)])
def test_with_chosen_links_it_takes_ten_random_ones(judged, n_random, can_tell):
    labels, drawn, chosen = judged
    probabilities = 0.5 + 0.3 * (2 * np.eye(2)[labels] - 1)
    some = drawn.where(np.arange(4), np.arange(n_random - 4))
    assert quality(probabilities, [left_out(some, labels)]) is not None  # as before, where nothing was chosen
    found = quality(probabilities, [left_out(some, labels), left_out(chosen, labels)])
    assert (found is not None) == can_tell


def test_known_labels_are_random_rows(judged):
    labels, _, chosen = judged
    probabilities = 0.5 + 0.3 * (2 * np.eye(2)[labels] - 1)
    found = quality(probabilities, [left_out(chosen, labels, np.arange(30), labels[:30])])
    assert found.n_links == 15


def test_a_model_of_chosen_links_has_no_quality_until_random_ones_come():
    X, y = load_iris(return_X_y=True)
    random, other = Links.from_labels(y, 20, random_state=0), Links.from_labels(y, 20, random_state=1)
    chosen = Links(other.must, other.cannot, must_chosen=True, cannot_chosen=True)
    assert AutoLinkMixture(3, budget="small", random_state=0).fit(X, links=chosen).quality_ is None
    both = AutoLinkMixture(3, budget="small", random_state=0).fit(X, links=chosen.union(random))
    assert both.quality_.n_links == 20
