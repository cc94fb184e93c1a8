"""Plots show what they are given, and are written whole or not at all."""

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse
from PIL import Image

from linkmix import LinkMixture, Links, plots
from linkmix.study.paper.figures import toy_panels


@pytest.fixture(scope="module")
def few_points():
    random = np.random.RandomState(0)
    X = np.concatenate([random.randn(40, 3), random.randn(40, 3) + np.array([6, 0, 3])])
    return X, np.repeat([0, 1], 40)


def test_saturation_is_the_soft_label():
    sure, halfway, unsure = plots.soft_colours([[0, 1, 0], [0.2, 0.6, 0.2], [1 / 3, 1 / 3, 1 / 3]])
    pure, pale = np.array(to_rgb(plots.COLOURS[1])), np.array(to_rgb(plots.UNSURE))
    np.testing.assert_allclose(sure, pure)
    np.testing.assert_allclose(unsure, pale)
    np.testing.assert_allclose(halfway, 0.4 * pure + 0.6 * pale)


def test_one_class_is_always_sure():
    np.testing.assert_allclose(plots.soft_colours([[1.0]]), [to_rgb(plots.COLOURS[0])])


def test_must_links_are_solid_and_cannot_links_dashed(few_points):
    X, _ = few_points
    ax = Figure().subplots()
    plots.draw_links(ax, X, Links(must=[(0, 1)], cannot=[(2, 50), (3, 60)]), axes=(2, 0))
    assert [line.get_linestyle() for line in ax.lines] == ["-", "--", "--"]
    np.testing.assert_allclose(ax.lines[0].get_xydata(), X[[0, 1]][:, [2, 0]])


@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag", "spherical"])
@pytest.mark.parametrize("clusters_per_class", [1, 2])
def test_ellipses_are_the_clusters(few_points, covariance_type, clusters_per_class):
    X, y = few_points
    model = LinkMixture(
        2, clusters_per_class=clusters_per_class, covariance_type=covariance_type, random_state=0, max_iter=20, tol=0
    ).fit(X, links=Links.from_labels(y, 10, random_state=0))
    ax = Figure().subplots()
    plots.draw_mixture(ax, model, X, axes=(0, 2), columns=["a", "b", "c"])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("a", "c")
    ellipses = [patch for patch in ax.patches if isinstance(patch, Ellipse)]
    assert len(ellipses) == 2 * clusters_per_class * len(plots.SIGMAS)

    last = model.covariances_ if covariance_type == "tied" else model.covariances_[-1, -1]
    full = {"diag": np.diag, "spherical": lambda v: v * np.eye(3)}.get(covariance_type, np.asarray)(last)
    matrix = full[np.ix_([0, 2], [0, 2])]
    ellipse, around = ellipses[-1], np.linspace(0, 2 * np.pi, 9)
    edge = np.column_stack([ellipse.width / 2 * np.cos(around), ellipse.height / 2 * np.sin(around)])
    turn = np.radians(ellipse.angle)
    edge = edge @ np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
    distance = np.sqrt(np.einsum("ij,jk,ik->i", edge, np.linalg.inv(matrix), edge))
    np.testing.assert_allclose(distance, plots.SIGMAS[-1])
    np.testing.assert_allclose(ellipse.center, model.means_[-1, -1, [0, 2]])


def test_two_pictures_can_agree_on_colours(few_points):
    X, _ = few_points
    model = LinkMixture(2, random_state=0).fit(X)
    ax = Figure().subplots()
    plots.draw_clusters(ax, model, numbers=[3, 1])
    assert [patch.get_edgecolor()[:3] for patch in ax.patches[::2]] == [to_rgb(plots.COLOURS[n]) for n in (3, 1)]


def test_column_names_of_the_model_label_the_axes():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(np.random.RandomState(0).randn(30, 2), columns=["length (cm)", "width (cm)"])
    ax = Figure().subplots()
    plots.draw_mixture(ax, LinkMixture(2, random_state=0).fit(frame), frame)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("length (cm)", "width (cm)")


def test_a_mixture_without_covariances_is_drawn_without_ellipses():
    X = np.random.RandomState(0).randint(0, 2, size=(30, 2))
    ax = Figure().subplots()
    plots.draw_mixture(ax, LinkMixture(2, density="bernoulli", random_state=0).fit(X), X)
    assert not ax.patches


def test_a_picture_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "picture.png"
    path.write_text("the old one")

    def fail(self, target):
        raise OSError("disk full")

    with monkeypatch.context() as patched:
        patched.setattr(type(path), "replace", fail)
        with pytest.raises(OSError, match="disk full"):
            plots.save_picture(Figure(figsize=(1, 1)), path)
    assert path.read_text() == "the old one"
    assert list(tmp_path.iterdir()) == [path]

    plots.save_picture(Figure(figsize=(2, 1)), path, dpi=50)
    with Image.open(path) as image:
        assert image.size == (100, 50)
    assert list(tmp_path.iterdir()) == [path]


def test_a_figure_is_written_as_png_and_svg_and_always_the_same(tmp_path):
    paths = [plots.save_figure(toy_panels(), tmp_path / name) for name in ("one", "two.5")]
    assert [[path.name for path in pair] for pair in paths] == [["one.png", "one.svg"], ["two.5.png", "two.5.svg"]]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.png", "one.svg", "two.5.png", "two.5.svg"]
    with Image.open(paths[0][0]) as picture:
        assert picture.format == "PNG"
        assert picture.size[0] > 1000
    vector = paths[0][1].read_text(encoding="utf-8")
    assert vector.rstrip().endswith("</svg>")
    assert "<dc:date>" not in vector
    assert paths[1][1].read_text(encoding="utf-8") == vector


def test_a_figure_that_cannot_be_drawn_leaves_nothing(tmp_path):
    figure = Figure()
    figure.text(0, 0, "$\\nonsense$")  # fails when drawn
    (tmp_path / "kept.png").write_bytes(b"before")
    with pytest.raises(ValueError, match="nonsense"):
        plots.save_figure(figure, tmp_path / "kept")
    assert [path.name for path in tmp_path.iterdir()] == ["kept.png"]
    assert (tmp_path / "kept.png").read_bytes() == b"before"


def test_a_disk_that_fails_leaves_nothing_half_written(tmp_path):
    (tmp_path / "taken.png").mkdir()  # a file cannot replace a folder
    with pytest.raises(OSError, match="taken"):
        plots.save_figure(Figure(), tmp_path / "taken")
    assert [path.name for path in tmp_path.iterdir()] == ["taken.png"]
