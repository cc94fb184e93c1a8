"""Plots show what they are given, and are written whole or not at all."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse, Polygon
from PIL import Image

from linkmix import AutoLinkMixture, LinkMixture, Links, plots
from linkmix.search.budgets import BUDGETS
from linkmix.search.shapes import SHAPES
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
    plots.draw_links(X, Links(must=[(0, 1)], cannot=[(2, 50), (3, 60)]), ax=ax, axes=(2, 0))
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
    plots.draw_mixture(model, X, ax=ax, axes=(0, 2), columns=["a", "b", "c"])
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


def assert_outlines(model, axes=(0, 1)):
    """Every outline, seen as the winner sees it, lies at its number of standard deviations from its cluster."""
    ax = plots.draw_clusters(model, ax=Figure().subplots(), axes=axes)
    mixture = model.mixture()
    parts, n_sigmas = mixture.parameters.components, len(plots.SIGMAS)
    spreads = parts.covariances if hasattr(parts, "covariances") else parts.scales
    spreads = np.broadcast_to(spreads, (len(parts.means), *spreads.shape[-2:]))  # classes alike have one
    assert len(ax.patches) == n_sigmas * len(parts.means)
    for c, mean in enumerate(parts.means):
        for patch, sigmas in zip(ax.patches[n_sigmas * c : n_sigmas * (c + 1)], plots.SIGMAS, strict=True):
            path = patch.get_patch_transform().transform_path(patch.get_path())
            corners = path.vertices[:-1:3] if isinstance(patch, Ellipse) else path.vertices[:-1]  # no controls
            away = mixture.view(np.asarray(corners)[:, np.argsort(axes)]) - mean
            distance = np.sqrt(np.einsum("ij,jk,ik->i", away, np.linalg.inv(spreads[c]), away))
            np.testing.assert_allclose(distance, sigmas, rtol=1e-6)
    return ax


@pytest.mark.parametrize("shape", list(SHAPES))
@pytest.mark.parametrize("tails", ["short", "long"])
def test_the_winner_of_a_search_is_drawn_in_the_units_of_the_user(few_points, shape, tails):
    X, y = few_points
    X = X[:, [0, 2]] * [100.0, 1.0] + [1e3, 0.0]
    if tails == "long":
        X[:, 0] = np.exp(X[:, 0] / 200)
    budget = replace(BUDGETS["small"], shapes=(shape,), more_shapes=())
    model = AutoLinkMixture(2, budget=budget, random_state=0).fit(X, links=Links.from_labels(y, 10, random_state=0))
    assert_outlines(model)
    assert_outlines(model, axes=(1, 0))
    assert plots.draw_mixture(model, X, ax=Figure().subplots()).patches


def test_a_search_that_compresses_tails_has_bent_outlines():
    random = np.random.RandomState(0)
    X = np.exp(np.concatenate([random.randn(60, 2) * 1.5, random.randn(60, 2) * 1.5 + 5]))
    model = AutoLinkMixture(2, budget="small", random_state=0).fit(
        X, links=Links.from_labels(np.repeat([0, 1], 60), 30)
    )
    assert model.width_.any()
    ax = assert_outlines(model)
    assert all(isinstance(patch, Polygon) for patch in ax.patches)


def test_components_are_drawn_as_columns(few_points):
    X, y = few_points
    random = np.random.RandomState(0)
    wide = np.column_stack([X @ random.randn(3, 60) + 0.1 * random.randn(80, 60), np.ones(80)])
    model = AutoLinkMixture(2, budget="small", random_state=0).fit(wide, links=Links.from_labels(y, 10, random_state=0))
    assert model.components_ is not None
    view = model.mixture().view
    mean, covariance = view.plane(np.zeros(len(model.components_)), np.eye(len(model.components_)), (5, 9))
    np.testing.assert_allclose(mean, wide[:, [5, 9]].mean(axis=0))
    np.testing.assert_allclose(covariance, np.cov(wide[:, [5, 9]].T, bias=True), rtol=0.02)
    ax = plots.draw_mixture(model, wide, ax=Figure().subplots(), axes=(5, 60))  # the last column does not vary
    assert {patch.height for patch in ax.patches} == {0.0}


def test_a_shared_cluster_has_the_colour_of_its_main_class(few_points):
    X, y = few_points
    links = Links.from_labels(y, 30, random_state=0)
    model = LinkMixture(2, clusters_per_class=2, shared_clusters=True, random_state=0).fit(X, links=links)
    owners = (model.class_weights_[:, None] * model.cluster_weights_).argmax(axis=0)
    ax = plots.draw_clusters(model, ax=Figure().subplots())
    assert [patch.get_edgecolor()[:3] for patch in ax.patches[::2]] == [to_rgb(plots.COLOURS[n]) for n in owners]


def test_without_axes_the_current_ones_are_used(few_points):
    X, _ = few_points
    model = LinkMixture(2, density="student", random_state=0).fit(X)
    figure, ax = pyplot.subplots()
    try:
        assert plots.draw_points(X, model.predict_proba(X)) is ax
        assert plots.draw_links(X, Links(must=[(0, 1)])) is ax
        assert plots.draw_clusters(model) is ax
        assert plots.draw_mixture(model, X) is ax
        assert len(ax.patches) == 2 * 2 * len(plots.SIGMAS)
    finally:
        pyplot.close(figure)


def test_a_density_without_ellipses_has_no_clusters_to_draw():
    X = np.random.RandomState(0).randint(0, 2, size=(30, 2))
    model = LinkMixture(2, density="bernoulli", random_state=0).fit(X)
    with pytest.raises(ValueError, match=r"density of the model is Bernoulli.*, which has no ellipses: use"):
        plots.draw_clusters(model, ax=Figure().subplots())


def test_two_pictures_can_agree_on_colours(few_points):
    X, _ = few_points
    model = LinkMixture(2, random_state=0).fit(X)
    ax = Figure().subplots()
    plots.draw_clusters(model, ax=ax, numbers=[3, 1])
    assert [patch.get_edgecolor()[:3] for patch in ax.patches[::2]] == [to_rgb(plots.COLOURS[n]) for n in (3, 1)]


def test_column_names_of_the_model_label_the_axes():
    frame = pd.DataFrame(np.random.RandomState(0).randn(30, 2), columns=["length (cm)", "width (cm)"])
    ax = Figure().subplots()
    plots.draw_mixture(LinkMixture(2, random_state=0).fit(frame), frame, ax=ax)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("length (cm)", "width (cm)")


def test_a_mixture_without_covariances_is_drawn_without_ellipses():
    X = np.random.RandomState(0).randint(0, 2, size=(30, 2))
    ax = Figure().subplots()
    plots.draw_mixture(LinkMixture(2, density="bernoulli", random_state=0).fit(X), X, ax=ax)
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


def test_a_figure_is_written_as_png_svg_and_pdf_and_always_the_same(tmp_path):
    paths = [plots.save_figure(toy_panels(), tmp_path / name) for name in ("one", "two.5")]
    names = [[f"{name}.{ending}" for ending in ("png", "svg", "pdf")] for name in ("one", "two.5")]
    assert [[path.name for path in some] for some in paths] == names
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*names[0], *names[1]])
    assert paths[0][2].read_bytes().startswith(b"%PDF")
    assert paths[0][2].read_bytes() == paths[1][2].read_bytes()
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


def test_a_table_with_categories_is_drawn_by_its_codes():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 30)
    table = pd.DataFrame({"hue": np.array(["red", "blue"])[y], "size": rng.normal(size=60) + 9 * y})
    model = AutoLinkMixture(2, budget="small", calibrate=False, random_state=0).fit(table)
    ax = plots.draw_mixture(model, table, ax=Figure().subplots())
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("size", "hue")
    assert sum(len(drawn.get_offsets()) for drawn in ax.collections) == 60


def test_more_than_six_classes_are_told_apart():
    ax = plots.draw_points(np.zeros((20, 2)), np.eye(20), ax=Figure().subplots())
    looks = {(tuple(drawn.get_facecolor()[0]), drawn.get_paths()[0].vertices.tobytes()) for drawn in ax.collections}
    assert len(looks) == 20
