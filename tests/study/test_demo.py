"""The demo shows what it claims, and the pictures show what they are given."""

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse
from PIL import Image

from linkmix import LinkMixture, Links, plots
from linkmix.study import demo


@pytest.fixture(scope="module")
def shown():
    return demo.run()


@pytest.fixture(scope="module")
def few_points():
    random = np.random.RandomState(0)
    X = np.concatenate([random.randn(40, 3), random.randn(40, 3) + np.array([6, 0, 3])])
    return X, np.repeat([0, 1], 40)


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
