"""The figures of the experiments show what is in the table."""

import math

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("matplotlib")

from matplotlib.colors import to_rgb  # noqa: E402

from linkmix.study.paper import figures  # noqa: E402
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
        (
            figures.counted_moons_panels,
            [
                "(a) truth, start for K = 1",
                "(b) start for K = 2",
                "",
                "(c) GMM: 3 errors",
                "(d) GM-PR, K = 1: 2 errors",
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
    upper, ax = figures.purity_against_links(table, ["iris"], "must", ["paper", "gmm"], {}).axes
    assert upper.get_ylim()[0] > 0.55 > ax.get_ylim()[0]
    np.testing.assert_allclose(lines_of(ax)["GM-PR"].get_ydata(), [0.75, 0.85])
    np.testing.assert_allclose(lines_of(ax)["GMM"].get_ydata(), 0.55)
    assert ax.get_xlabel() == "number of must-links"


@pytest.mark.parametrize(("share", "n_parts"), [(0.735, 1), (0.2, 2)])
def test_the_floor_is_at_its_height_and_in_sight(share, n_parts):
    figure = figures.purity_against_links(make_table(CURVES), ["iris"], "both", ["paper"], {"iris": share})
    assert len(figure.axes) == n_parts  # a floor far below breaks the axis
    ax = figure.axes[-1]
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
    table = make_table(CURVES, seeds=7)
    table = table[(table["method"] != "gmm-ec") | (table["seed"] < 3)]
    figure = figures.purity_against_links(table, ["iris"], "both", ["paper", "gmm-ec"], {})
    assert figure.legends[0].get_title().get_text() == "Lines: means of 3 to 7 runs; bands: standard deviations"


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


COIL = {"paper-3": {50: 0.5, 1000: 0.9}, "sskk": {50: 0.4, 1000: 0.5}, "csc": {50: 0.4, 1000: 0.6}}


@pytest.mark.parametrize("kind", ["cannot", "both"])
def test_coil_has_a_panel_for_each_dimension_and_all_have_the_same_axes(kind):
    table = pd.concat([make_table(COIL, data=f"coil20-{d}", kind=kind, spread=d / 1000) for d in (20, 10, 15)])
    figure = figures.coil20(table, kind=kind)
    assert [ax.get_title() for ax in figure.axes] == [
        f"({letter}) COIL-20, d = {d}" for letter, d in zip("abc", (10, 15, 20), strict=True)
    ]
    assert texts_of(figure) == ["GM-PR, K = 3", "SSKK", "CSC"]
    assert len({ax.get_ylim() for ax in figure.axes}) == 1


def test_an_axis_is_broken_where_nothing_is():
    table = make_table({"paper": {4: 0.6, 8: 0.7}, "csc": {4: 0.1, 8: 0.12}})
    upper, lower = figures.purity_against_links(table, ["iris"], "both", ["paper", "csc"], {}).axes
    assert lower.get_ylim()[1] < upper.get_ylim()[0]
    for ax in (upper, lower):  # both curves are in both parts, each in sight in one
        np.testing.assert_allclose(lines_of(ax)["GM-PR"].get_ydata(), [0.6, 0.7])
        np.testing.assert_allclose(lines_of(ax)["CSC"].get_ydata(), [0.1, 0.12])
        assert sum(line.get_label() == "_broken" for line in ax.get_lines()) == 1
    crossing = make_table({"paper": {4: 0.1, 8: 0.7}, "csc": {4: 0.1, 8: 0.12}})
    assert len(figures.purity_against_links(crossing, ["iris"], "both", ["paper", "csc"], {}).axes) == 1


def test_no_axis_makes_noise_look_like_a_trend():
    table = make_table({"paper": {4: 0.735, 8: 0.737}}, spread=0.001)
    (ax,) = figures.purity_against_links(table, ["iris"], "both", ["paper"], {}).axes
    low, high = ax.get_ylim()
    assert high - low == pytest.approx(0.1)


def test_a_curve_below_another_is_wider():
    same = {4: 0.6, 8: 0.7}
    table = make_table({"paper": same, "gmm-ec-chunklets": same, "em-pc": same})
    (ax,) = figures.purity_against_links(table, ["iris"], "both", ["paper", "gmm-ec-chunklets", "em-pc"], {}).axes
    lines = [lines_of(ax)[figures.STYLES[name].name] for name in ("paper", "gmm-ec-chunklets", "em-pc")]
    widths = [line.get_linewidth() for line in lines]
    assert widths == sorted(widths, reverse=True)
    assert widths[0] > 1.3 * widths[1] > 1.3 * 1.3 * widths[2]
    assert [line.get_zorder() for line in lines] == sorted(line.get_zorder() for line in lines)


def test_differences_have_their_intervals():
    index = pd.MultiIndex.from_tuples([("iris", 4), ("iris", 8)], names=["data", "n_links"])
    columns = {"mean": [0.1, -0.05], "low": [0.05, -0.07], "high": [0.15, -0.03], "trials": [40, 40]}
    cells = pd.DataFrame(columns, index=index)
    figure = figures.differences_against_links({"gmm-ec-chunklets": cells, "gmm-ec-must": cells + 0.01}, ["iris"])
    (ax,) = figure.axes
    first = ax.containers[0]
    np.testing.assert_allclose(first.lines[0].get_ydata().astype(float), [0.1, -0.05])
    bars = first.lines[2][0].get_segments()
    np.testing.assert_allclose([bar[:, 1] for bar in bars], [[0.05, 0.15], [-0.07, -0.03]])
    assert "over 40 trials; bars: 95 % intervals" in figure.legends[0].get_title().get_text()


def test_figure_one_shows_a_likelier_and_a_wanted_model():
    likely, wanted = (ax.get_title() for ax in figures.wrong_model().axes)
    values = [float(title.rpartition(" ")[2]) for title in (likely, wanted)]
    assert likely.startswith("(a) the likeliest model")
    assert values[0] > values[1] + 5


def test_figure_two_has_a_label_for_each_pair_of_must_links_and_two_for_cannot_links():
    (ax,) = figures.graphical_model().axes
    texts = [text.get_text() for text in ax.texts]
    assert sum(text.startswith("$z_") for text in texts) == 4
    assert sum(text.startswith("${\\bf x}") for text in texts) == 5
    (line,) = ax.get_lines()
    assert line.get_linestyle() == "--"


def test_the_objects_of_coil_are_their_first_views():
    images = np.arange(4 * 1024.0).reshape(4, 1024)
    figure = figures.coil_objects(images, np.array([1, 0, 0, 1]))
    shown = [ax for ax in figure.axes if ax.get_images()]
    assert [ax.get_title() for ax in shown] == ["1", "2"]
    np.testing.assert_array_equal(shown[0].get_images()[0].get_array(), images[1].reshape(32, 32))
    np.testing.assert_array_equal(shown[1].get_images()[0].get_array(), images[0].reshape(32, 32))


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
    for methods in (
        ["gmm", "paper", "gmm-ec-chunklets", "spectral", "sskk", "csc", "em-pc"],
        figures.CLUSTERS_PER_CLASS,
        (*figures.COVARIANCES, "sskk"),
        ("paper-3", "sskk", "csc"),
        ("gmm-ec-chunklets", "gmm-ec-must"),
    ):
        assert len({figures.STYLES[name].colour for name in methods}) == len(methods)
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
