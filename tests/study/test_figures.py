import math

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("matplotlib")

from matplotlib.colors import to_rgb  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402
from PIL import Image  # noqa: E402

from linkmix.plots import save_figure  # noqa: E402
from linkmix.rivals import GMM  # noqa: E402
from linkmix.study.paper import figures, synthetic  # noqa: E402
from linkmix.study.registry import METHODS  # noqa: E402


def make_table(curves, *, data="iris", kind="both", seeds=3, spread=0.01):
    """Runs around given means: ``curves`` maps a method to a mapping of links to the mean purity of `predict`."""
    rows = [
        {
            "data": data,
            "kind": kind,
            "method": method,
            "n_links": n,
            "seed": seed,
            "purity": 0.1,  # of labels_, not to be shown where there is a predict
            "purity_predict": mean + spread * (seeds - 1 if seed == seeds - 1 else -1),  # the median is another
            "error": None,
        }
        for method, curve in curves.items()
        for n, mean in curve.items()
        for seed in range(seeds)
    ]
    return pd.DataFrame(rows)


CURVES = {"paper": {4: 0.6, 8: 0.7, 16: 0.9}, "gmm-ec": {4: 0.5, 8: 0.65, 16: 0.8}, "gmm": {0: 0.55}}


def lines_of(ax):
    return {line.get_label(): line for line in ax.get_lines()}


def texts_of(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


# The made data


def test_left_and_right_are_likelier_than_the_classes_of_the_toy():
    X, y = synthetic.toy()
    assert np.array_equal(y, X[:, 1] < 0)
    sides = (X[:, 0] > 0).astype(int)
    centres = {name: np.array([X[of == m].mean(axis=0) for m in (0, 1)]) for name, of in (("y", y), ("sides", sides))}
    fits = {}
    for name, means in centres.items():
        start = synthetic.start_at(np.vstack([X, means]), (40, 41))
        fits[name] = GMM(2, init=start).fit(X)
    assert synthetic.count_errors(y, fits["y"].predict(X)) == 0
    assert synthetic.count_errors(sides, fits["sides"].predict(X)) == 0
    assert len(X) * (fits["sides"].score(X) - fits["y"].score(X)) > 10


@pytest.mark.parametrize("noise", [0.0, 1e-9, 0.01])
def test_each_set_of_links_turns_the_toy(noise):
    X, y = synthetic.toy()
    X = X + noise * np.random.RandomState(0).standard_normal(X.shape)
    fits = synthetic.toy_fits(X)
    errors = {name: synthetic.count_errors(y, model.predict(X)) for name, model in fits.items()}
    assert errors == {"none": 20, "both": 0, "must": 0, "cannot": 0}
    assert synthetic.count_errors((X[:, 0] > 0).astype(int), fits["none"].predict(X)) == 0


@pytest.mark.parametrize("noise", [0.0, 1e-9, 0.01])
def test_two_clusters_per_class_trace_the_moons(noise):
    X, y = synthetic.two_moons()
    X = X + noise * np.random.RandomState(0).standard_normal(X.shape)
    errors = {name: synthetic.count_errors(y, m.predict(X)) for name, m in synthetic.two_moons_fits(X).items()}
    assert errors["two"] == 0
    assert 10 <= errors["one"] < errors["none"]


@pytest.mark.parametrize(
    ("data", "links"), [(synthetic.toy, synthetic.TOY_LINKS), (synthetic.two_moons, synthetic.MOONS_LINKS)]
)
def test_links_agree_with_the_true_classes(data, links):
    _, y = data()
    assert links.must.shape == links.cannot.shape == (2, 2)
    assert np.all(y[links.must[:, 0]] == y[links.must[:, 1]])
    assert np.all(y[links.cannot[:, 0]] != y[links.cannot[:, 1]])


def test_clusters_start_among_the_points_nearest_to_the_start_of_their_class():
    X, _ = synthetic.two_moons()
    distances = np.linalg.norm(X[:, None] - X[list(synthetic.MOONS_START)], axis=2)
    for m, rows in enumerate(synthetic.MOONS_CLUSTERS):
        assert np.all(distances[list(rows)].argmin(axis=1) == m)


def test_a_start_has_the_moments_of_the_nearest_points():
    X = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [10.0, 0.0], [12.0, 0.0], [10.0, 4.0]])
    start = synthetic.start_at(X, (0, 3))
    np.testing.assert_array_equal(start["means"][:, 0], X[[0, 3]])
    np.testing.assert_array_equal(start["class_weights"], [0.5, 0.5])
    # Mean (2/3, 2/3): variances 8/9 and 8/9, covariance -4/9; in the other group y is twice as wide.
    np.testing.assert_allclose(start["covariances"][0, 0], np.array([[8, -4], [-4, 8]]) / 9)
    np.testing.assert_allclose(start["covariances"][1, 0], np.array([[8, -8], [-8, 32]]) / 9)


# Panels


@pytest.mark.parametrize(
    ("draw", "titles"),
    [
        (
            figures.toy_panels,
            [
                "(a) truth and start",
                "(b) GMM: 20 errors",
                "",
                "(c) GM-PR, 2 + 2 links: 0 errors",
                "(d) GM-PR, 2 must-links: 0 errors",
                "(e) GM-PR, 2 cannot-links: 0 errors",
            ],
        ),
        (
            figures.two_moons_panels,
            [
                "(a) truth, start for K = 1",
                "(b) start for K = 2",
                "",
                "(c) GMM: 29 errors",
                "(d) GM-PR, K = 1: 15 errors",
                "(e) GM-PR, K = 2: 0 errors",
            ],
        ),
    ],
)
def test_panels_say_their_errors(draw, titles):
    figure = draw()
    assert [ax.get_title() for ax in figure.axes] == titles
    assert all(ax.get_aspect() == 1 for ax in figure.axes if ax.get_title())


def test_the_panels_of_the_toy_show_their_own_links():
    dashes = [
        sorted(line.get_linestyle() for line in ax.get_lines() if len(line.get_xdata()) == 2 and line.get_zorder() == 4)
        for ax in figures.toy_panels().axes
    ]
    assert dashes == [[], [], [], ["-", "-", "--", "--"], ["-", "-"], ["--", "--"]]


def test_digits_have_equal_axes_and_a_name_for_each_class():
    random = np.random.RandomState(0)
    y = np.repeat([1, 2, 3], 20)
    X = random.standard_normal((60, 2)) + 4 * y[:, None]
    (ax,) = figures.digits_scatter({"mnist-123": (X, y)}).axes
    assert ax.get_aspect() == 1
    assert ax.get_title() == "(a) MNIST 1, 2, 3: 60 images"
    assert [text.get_text() for text in ax.texts] == ["1", "2", "3"]
    assert [len(points.get_offsets()) for points in ax.collections] == [20, 20, 20]
    with pytest.raises(ValueError, match="'mnist-123' has 3 columns: give its first two principal components"):
        figures.digits_scatter({"mnist-123": (np.ones((60, 3)), y)})


# Curves


def test_lines_are_means_and_bands_standard_deviations():
    (ax,) = figures.purity_against_links(make_table(CURVES), ["iris"], "both", list(CURVES), {}).axes
    lines = lines_of(ax)
    for method in ("paper", "gmm-ec"):
        line = lines[figures.STYLES[method].name]
        np.testing.assert_array_equal(line.get_xdata(), [4, 8, 16])
        np.testing.assert_allclose(line.get_ydata(), list(CURVES[method].values()))
    np.testing.assert_allclose(lines["GMM"].get_ydata(), 0.55)
    corners = ax.collections[0].get_paths()[0].vertices
    heights = corners[corners[:, 0] == 8, 1]
    np.testing.assert_allclose([heights.min(), heights.max()], [0.7 - 0.01 * 3**0.5, 0.7 + 0.01 * 3**0.5])
    assert ax.get_xscale() == "log"
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["4", "8", "16"]


def test_a_run_that_two_experiments_share_counts_once():
    table = make_table(CURVES)
    extra = table[(table["method"] == "paper") & (table["seed"] == 2)]
    (ax,) = figures.purity_against_links(pd.concat([table, extra]), ["iris"], "both", ["paper"], {}).axes
    np.testing.assert_allclose(lines_of(ax)["GM-PR"].get_ydata(), [0.6, 0.7, 0.9])


def test_kinds_are_kept_apart_but_the_level_line_is_for_all():
    table = pd.concat([make_table(CURVES), make_table({"paper": {4: 0.75, 8: 0.85}}, kind="must")])
    (ax,) = figures.purity_against_links(table, ["iris"], "must", ["paper", "gmm"], {}).axes
    np.testing.assert_allclose(lines_of(ax)["GM-PR"].get_ydata(), [0.75, 0.85])
    np.testing.assert_allclose(lines_of(ax)["GMM"].get_ydata(), 0.55)
    assert ax.get_xlabel() == "number of must-links"


@pytest.mark.parametrize("share", [0.735, 0.2])
def test_the_floor_is_at_its_height_and_in_sight(share):
    figure = figures.purity_against_links(make_table(CURVES), ["iris"], "both", ["paper"], {"iris": share})
    (ax,) = figure.axes
    np.testing.assert_array_equal(lines_of(ax)["_floor"].get_ydata(), share)
    low, high = ax.get_ylim()
    assert low < share < high
    assert [text.get_text() for text in ax.texts] == [f"floor {share:.3f}"]
    assert "share of largest class" in texts_of(figure)


def test_failed_runs_are_announced_and_do_not_move_the_mean():
    table = make_table(CURVES)
    failed = (table["method"] == "gmm-ec") & (table["n_links"] == 8) & (table["seed"] == 2)
    table["error"] = table["error"].astype(object)
    table.loc[failed, "error"] = "MemoryError: too much"
    table.loc[failed, ["purity", "purity_predict"]] = np.nan
    (ax,) = figures.purity_against_links(table, ["iris"], "both", list(CURVES), {}).axes
    assert ax.get_title() == "(a) Iris\n1 of 21 runs failed (GMM-EC 1)"
    np.testing.assert_allclose(lines_of(ax)["GMM-EC"].get_ydata(), [0.5, 0.64, 0.8])
    (ax,) = figures.purity_against_links(table, ["iris"], "both", ["paper", "gmm"], {}).axes
    assert ax.get_title() == "(a) Iris"


def test_a_method_that_always_fails_is_announced():
    table = make_table(CURVES | {"linkmix": {4: 0.8, 8: 0.9}, "csc": {4: np.nan, 8: np.nan}})
    table["error"] = table["error"].where(table["method"] != "csc", "MemoryError: too much")
    table.loc[table["method"] == "csc", "purity"] = np.nan
    for figure in (
        figures.purity_against_links(table, ["iris"], "both", ["paper", "csc"], {}),
        figures.fewest_links(table, {"iris": 0.9}),
    ):
        (ax,) = figure.axes
        assert "runs failed (CSC 6)" in ax.get_title()
        assert "CSC" not in texts_of(figure)
        assert "GM-PR" in texts_of(figure)


def test_a_method_without_predict_is_shown_by_its_labels():
    table = make_table({"sskk": {4: 0.3, 8: 0.4}})
    table["purity"], table["purity_predict"] = table["purity_predict"], np.nan
    (ax,) = figures.purity_against_links(table, ["iris"], "both", ["sskk"], {}).axes
    np.testing.assert_allclose(lines_of(ax)["SSKK"].get_ydata(), [0.3, 0.4])


def test_the_number_of_runs_is_said():
    figure = figures.purity_against_links(make_table(CURVES, seeds=7), ["iris"], "both", ["paper"], {})
    assert figure.legends[0].get_title().get_text() == "Lines: means of 7 runs; bands: standard deviations"


def test_what_is_not_in_the_table_is_named():
    table = make_table(CURVES)
    with pytest.raises(ValueError, match="no runs on 'wine' with links of kind 'both'"):
        figures.purity_against_links(table, ["wine"], "both", ["paper"], {})
    with pytest.raises(ValueError, match="no run of 'csc' on iris: leave it out"):
        figures.purity_against_links(table, ["iris"], "both", ["paper", "csc"], {})
    with pytest.raises(ValueError, match="method 'magic' has no style"):
        figures.purity_against_links(table, ["iris"], "both", ["magic"], {})
    with pytest.raises(ValueError, match="0 data sets"):
        figures.coil20(table)


def test_coil_has_a_panel_for_each_dimension():
    curves = {"paper-3": {50: 0.5, 1000: 0.9}, "sskk": {50: 0.4, 1000: 0.5}, "csc": {50: 0.4, 1000: 0.6}}
    table = pd.concat([make_table(curves, data=f"coil20-{d}") for d in (20, 10, 15)])
    figure = figures.coil20(table)
    assert [ax.get_title() for ax in figure.axes] == [
        f"({letter}) COIL-20, d = {d}" for letter, d in zip("abc", (10, 15, 20), strict=True)
    ]
    assert texts_of(figure) == ["GM-PR, K = 3", "SSKK", "CSC"]


def test_clusters_per_class_are_told_apart():
    curves = {name: {16: 0.5 + k / 20, 64: 0.6 + k / 20} for k, name in enumerate(figures.CLUSTERS_PER_CLASS)}
    figure = figures.clusters_per_class(pd.concat([make_table(curves, data=f"mnist-{d}") for d in ("123", "4567")]))
    assert texts_of(figure) == [f"GM-PR, K = {k}" for k in (1, 2, 3, 4)]
    for k, line in enumerate(figure.axes[1].get_lines()):
        np.testing.assert_allclose(line.get_ydata(), [0.5 + k / 20, 0.6 + k / 20])


def test_our_method_is_emphasised():
    table = make_table(CURVES | {"auto": {4: 0.8, 8: 0.9, 16: 0.95}})
    figure = figures.fewest_links(table, {"iris": 0.98})
    (ax,) = figure.axes
    lines = lines_of(ax)
    widths = {name: line.get_linewidth() for name, line in lines.items()}
    assert widths.pop(figures.STYLES["auto"].name) > 2 * max(widths.values())
    assert len(ax.collections) == 1  # one band
    assert np.allclose(ax.collections[0].get_facecolor()[0, :3], to_rgb(figures.STYLES["auto"].colour))
    np.testing.assert_allclose(lines["_ceiling"].get_ydata(), 0.98)
    np.testing.assert_allclose(lines["_90%"].get_ydata(), 0.882)


def test_every_method_has_a_look_of_its_own():
    assert METHODS.keys() <= figures.STYLES.keys()
    styles = list(figures.STYLES.values())
    assert len({style.name for style in styles}) == len(styles)
    assert len({(style.colour, style.marker) for style in styles}) == len(styles)
    # Without colour there are still markers and dashes, for all that share a figure of the paper.
    for methods in (["gmm", "paper", "gmm-ec", "spectral", "sskk", "csc", "em-pc"], figures.CLUSTERS_PER_CLASS):
        assert len({(figures.STYLES[name].marker, figures.STYLES[name].dashes) for name in methods}) == len(methods)


# The summary


def test_summary_by_hand():
    curves = {
        # log2 of the links is 2, 3, 5: trapezoids (.6 + .7) / 2 * 1 + (.7 + .95) / 2 * 2 = 2.3, over 3.
        "paper": {4: 0.6, 8: 0.7, 32: 0.95},
        "gmm-ec": {4: 0.5, 8: 0.5, 32: 0.5},
        "linkmix": {4: 0.92, 8: 0.7, 32: 0.95},
        "gmm": {0: 0.55},
        "spectral": {0: 0.91},
    }
    summary = figures.fewest_links_summary(make_table(curves), {"iris": 1.0}).set_index("method")
    assert set(summary["data"]) == {"iris"}
    area, needed = summary["area"], summary["links_needed"]
    assert area["paper"] == pytest.approx(2.3 / 3)
    assert needed["paper"] == pytest.approx(2 ** (3 + 2 * (0.9 - 0.7) / 0.25))
    assert (area["gmm-ec"], needed["gmm-ec"]) == (pytest.approx(0.5), math.inf)
    assert needed["linkmix"] == 4
    assert (area["gmm"], needed["gmm"]) == (pytest.approx(0.55), math.inf)
    assert (area["spectral"], needed["spectral"]) == (pytest.approx(0.91), 0)


def test_summary_leaves_out_an_area_that_has_a_hole():
    table = make_table({"paper": {4: 0.6, 8: 0.7, 32: 0.95}, "csc": {4: 0.5, 8: 0.6}})
    table.loc[(table["method"] == "paper") & (table["n_links"] == 8), ["purity", "purity_predict"]] = np.nan
    summary = figures.fewest_links_summary(table, {"iris": 1.0}).set_index("method")
    assert summary["area"].isna().all()
    # From (2, .6) to (5, .95): .9 is reached at 2 + 3 * 6 / 7.
    assert summary["links_needed"]["paper"] == pytest.approx(2 ** (2 + 18 / 7))


# Files


def test_a_figure_is_written_as_png_and_svg_and_always_the_same(tmp_path):
    paths = [save_figure(figures.toy_panels(), tmp_path / name) for name in ("one", "two.5")]
    assert [[path.name for path in pair] for pair in paths] == [["one.png", "one.svg"], ["two.5.png", "two.5.svg"]]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.png", "one.svg", "two.5.png", "two.5.svg"]
    with Image.open(paths[0][0]) as picture:
        assert picture.format == "PNG"
        assert picture.size[0] > 1000
    vector = paths[0][1].read_text(encoding="utf-8")
    assert vector.rstrip().endswith("</svg>")
    assert "<dc:date>" not in vector
    assert paths[1][1].read_text(encoding="utf-8") == vector


def test_a_figure_that_can_not_be_drawn_leaves_nothing(tmp_path):
    figure = Figure()
    figure.text(0, 0, "$\\nonsense$")  # fails when drawn
    (tmp_path / "kept.png").write_bytes(b"before")
    with pytest.raises(ValueError, match="nonsense"):
        save_figure(figure, tmp_path / "kept")
    assert [path.name for path in tmp_path.iterdir()] == ["kept.png"]
    assert (tmp_path / "kept.png").read_bytes() == b"before"


def test_a_disk_that_fails_leaves_nothing_half_written(tmp_path):
    (tmp_path / "taken.png").mkdir()  # a file can not replace a folder
    with pytest.raises(OSError, match="taken"):
        save_figure(figures.digits_scatter({"digits": (np.eye(2), np.arange(2))}), tmp_path / "taken")
    assert [path.name for path in tmp_path.iterdir()] == ["taken.png"]
