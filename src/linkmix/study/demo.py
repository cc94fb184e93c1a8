"""What 20 links change: scikit-learn's digits 1, 2 and 5, clustered without and with links.

The digit 1 is written in two ways. The best mixture of three Gaussians makes one of them a class of its own and merges
the other with the twos; links between random pairs of images correct this.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.cluster import contingency_matrix
from threadpoolctl import threadpool_limits

from linkmix.basics.arrays import Array, Floats, Ints
from linkmix.links import Links
from linkmix.mixture import LinkMixture
from linkmix.study.metrics import links_satisfied, purity

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DIGITS = (1, 2, 5)
N_STARTS = 10
"""Number of starts. Both fits use the same ones and keep the most likely result."""


@dataclass(frozen=True)
class Digits:
    """The data of the demo.

    Attributes
    ----------
    X : ndarray of shape (n_images, 2)
        The images on their first two principal components.
    y : ndarray of shape (n_images,)
        The digits.
    columns : tuple of str
        Names of the two columns, with their unit.
    class_names : tuple of str
        A name for each digit, in the order of the digits.
    """

    X: Floats
    y: Ints
    columns: tuple[str, str]
    class_names: tuple[str, ...]


@dataclass(frozen=True)
class Result:
    """A fitted mixture and its scores.

    Attributes
    ----------
    model : LinkMixture
        The mixture.
    purity, adjusted_rand : float
        Agreement of `predict` with the true digits.
    links_by_predict, links_by_labels : float
        Share of the links that `predict` and ``labels_`` satisfy.
    """

    model: LinkMixture
    purity: float
    adjusted_rand: float
    links_by_predict: float
    links_by_labels: float


@dataclass(frozen=True)
class Demo:
    """The contents of the picture.

    Attributes
    ----------
    data : Digits
        The points.
    links : Links
        The links.
    without, with_links : Result
        Both fits, from the same starts.
    """

    data: Digits
    links: Links
    without: Result
    with_links: Result


def load_data() -> Digits:
    """Load the images of three digits, projected onto their first two principal components.

    Returns
    -------
    Digits
        541 images of 8 x 8 pixels, each pixel a grey level from 0 to 16.

    Examples
    --------
    >>> load_data().X.shape
    (541, 2)
    """
    images, digits = load_digits(return_X_y=True)
    chosen = np.isin(digits, DIGITS)
    # Rounded, because the last digits differ between machines and would change the starts.
    X = PCA(2, svd_solver="full").fit_transform(images[chosen]).round(6)
    columns = ("principal component 1 (grey levels)", "principal component 2 (grey levels)")
    return Digits(X, digits[chosen], columns, tuple(f"digit {digit}" for digit in DIGITS))


def run(n_links: int = 20, *, seed: int = 0) -> Demo:
    """Fit the digits without and with links.

    Parameters
    ----------
    n_links : int, default=20
        Number of links, drawn at random from all pairs of images.
    seed : int, default=0
        Seed of the draw.

    Returns
    -------
    Demo
        Data, links and both fits.
    """
    data = load_data()
    links = draw_links(data, n_links, seed)
    return Demo(data, links, fit(data, None, links), fit(data, links, links))


def repeat(demo: Demo, n_draws: int, *, seed: int = 0) -> list[Result]:
    """Fit the digits again with other draws of the same number of links.

    Parameters
    ----------
    demo : Demo
        As returned by `run`.
    n_draws : int
        Number of draws of links.
    seed : int, default=0
        Seed of the first draw; the next draws use the following seeds.

    Returns
    -------
    list of Result
        One for each draw.
    """
    n_links = demo.links.n_must + demo.links.n_cannot
    draws = [draw_links(demo.data, n_links, seed + i) for i in range(n_draws)]
    return [fit(demo.data, links, links) for links in draws]


def picture(demo: Demo) -> "Figure":
    """Draw the mixture without links, the one with links, and the truth side by side.

    Parameters
    ----------
    demo : Demo
        As returned by `run`.

    Returns
    -------
    matplotlib Figure
        Three panels and a legend.
    """
    from matplotlib.figure import Figure

    from linkmix import plots

    X, y = demo.data.X, demo.data.y
    figure = Figure(figsize=(13.5, 4.9), layout="constrained")
    panels = figure.subplots(1, 3, sharex=True, sharey=True)
    n_links = demo.links.n_must + demo.links.n_cannot
    for ax, name, result, links in (
        (panels[0], "without links", demo.without, None),
        (panels[1], f"with {n_links} links", demo.with_links, demo.links),
    ):
        plots.draw_mixture(result.model, X, ax=ax, links=links, numbers=matching_classes(y, result.model.predict(X)))
        ax.set_title(f"{name}: purity {result.purity:.2f}, adjusted Rand {result.adjusted_rand:.2f}")
    plots.draw_points(X, y[:, None] == np.array(DIGITS), ax=panels[2])
    panels[2].set_title("truth")
    for ax in panels:
        ax.set_xlabel(demo.data.columns[0])
        ax.set_aspect("equal")
    panels[0].set_ylabel(demo.data.columns[1])
    plots.draw_legend(figure, demo.data.class_names)
    return figure


def matching_classes(y: Array, labels: Ints) -> list[int]:
    """Match found classes with true ones such that as many points as possible agree.

    Parameters
    ----------
    y : ndarray of shape (n_samples,)
        True labels.
    labels : ndarray of shape (n_samples,)
        Found labels, from 0 without gaps.

    Returns
    -------
    list of int
        For each found class, the position of the matching true class among the sorted true labels.

    Examples
    --------
    >>> import numpy as np
    >>> matching_classes(np.array([5, 5, 7, 7]), np.array([1, 1, 0, 1]))
    [1, 0]
    """
    _, place = linear_sum_assignment(-contingency_matrix(labels, y))
    return [int(p) for p in place]


def draw_links(data: Digits, n_links: int, seed: int) -> Links:
    """Draw links between random pairs of images: must-links if the digits agree, otherwise cannot-links.

    Parameters
    ----------
    data : Digits
        The points.
    n_links : int
        Number of links.
    seed : int
        Seed of the draw.

    Returns
    -------
    Links
        The links.
    """
    return Links.from_labels(data.y, n_links, random_state=seed)


def fit(data: Digits, links: Links | None, asked: Links) -> Result:
    """Fit a mixture, from the same starts for all links.

    Parameters
    ----------
    data : Digits
        The points.
    links : Links or None
        Links for the fit.
    asked : Links
        Links that the labels are compared with.

    Returns
    -------
    Result
        The mixture and its scores.
    """
    with threadpool_limits(1):  # the matrices are so small that more threads would only wait for each other
        model = LinkMixture(len(DIGITS), n_init=N_STARTS, random_state=0).fit(data.X, links=links)
    found = model.predict(data.X)
    return Result(
        model,
        purity(data.y, found),
        float(adjusted_rand_score(data.y, found)),
        links_satisfied(found, asked),
        links_satisfied(model.labels_, asked),
    )
