"""The figures of the experiments, and a page that shows them with all findings."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from linkmix.basics.arrays import Array, Floats
from linkmix.basics.files import aside
from linkmix.native.versions import versions
from linkmix.plots import save_figure
from linkmix.plots.pages import render
from linkmix.study.paper import fewest, figures, tables
from linkmix.study.paper.claims import examine
from linkmix.study.paper.data import DATA
from linkmix.study.paper.evidence import PURITY_SETS, differences
from linkmix.study.paper.protocol import ALL_OF_THE_PAPER, DIGITS, EXPERIMENTS, MIXTURES, TABLE, ceiling, floor, load

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

PAGE = "index.html"
SUMMARY = "fewest-links.csv"
TABLES = "tables.md"


def write(table: "pd.DataFrame", folder: Path, command: str) -> Path:
    """Draw the figures of all experiments in a table and write a page with them.

    Parameters
    ----------
    table : DataFrame
        Runs from `linkmix.study.paper.protocol.run`.
    folder : Path
        An existing folder for page and figures.
    command : str
        The command that produces the same page again.

    Returns
    -------
    Path
        The page.
    """
    names = [name for name in EXPERIMENTS if name in set(table["experiment"])]
    drawn = []
    for name, caption, draw in _figures(names, table):
        save_figure(draw(), folder / name)
        drawn.append((name, caption))
    few, cells = [], None
    if "fewest-links" in names:
        summary = fewest_links(table)
        with aside(folder / SUMMARY) as place:
            summary.to_csv(place, index=False)
        runs = table[table["experiment"] == "fewest-links"]
        few.append(("Fewest links: each method on average", fewest_links_means(summary)))
        few += [(f"Mean {name}", fewest.mean_scores(runs, name).round(3)) for name in fewest.SCORES]
        cells = fewest.against_rivals(runs) if "auto" in set(runs["method"]) else None
    failed, findings = table[table["error"].notna()], examine(table)
    with aside(folder / TABLES) as place:
        place.write_text(tables.markdown(table, findings, command, machine()), encoding="utf-8")
    content = render(
        Path(__file__).with_name("page.html"),
        command=command,
        runs=TABLE,
        tables=TABLES,
        n_runs=len(table),
        n_experiments=len(names),
        trials=tables.trials_in_words(table),
        too_few=tables.too_few(table),
        last_seed=int(table["seed"].max()),
        findings=findings,
        figures=drawn,
        fewest_links=few,
        against_rivals=cells,
        behind=fewest.BEHIND,
        means=tables.means(table),
        n_failed=len(failed),
        failures=failed.groupby(["data", "method", "kind", "n_links", "error"]).size().reset_index(name="runs"),
        machine=machine(),
    )
    page = folder / PAGE
    with aside(page) as place:
        place.write_text(content, encoding="utf-8")
    return page


def fewest_links(table: "pd.DataFrame") -> "pd.DataFrame":
    """Area under the purity curve and links needed for 90 % of the supervised ceiling, by data set and method.

    Parameters
    ----------
    table : DataFrame
        Runs that include the experiment ``fewest-links``.

    Returns
    -------
    DataFrame
    """
    rows = table[table["experiment"] == "fewest-links"]
    ceilings = {name: ceiling(*load(name)) for name in rows["data"].unique()}
    return figures.fewest_links_summary(rows, ceilings)


def fewest_links_means(summary: "pd.DataFrame") -> "pd.DataFrame":
    """For each method the mean area, how many data sets reach 90 % of the ceiling, and the median links needed.

    Parameters
    ----------
    summary : DataFrame
        From `fewest_links`.

    Returns
    -------
    DataFrame
        The best method first.
    """
    import pandas as pd

    rows = [
        {
            "method": method,
            "area": round(float(part["area"].mean()), 3),
            "sets that reach 90 %": int((part["links_needed"] < float("inf")).sum()),
            "median links needed": float(part["links_needed"].median()),
        }
        for method, part in summary.groupby("method", sort=False)
    ]
    return pd.DataFrame(rows).sort_values("area", ascending=False, ignore_index=True)


def machine() -> list[tuple[str, str]]:
    """The system, the number of processors and the versions in use.

    Returns
    -------
    list of (str, str)
        Names and values.
    """
    found = {**versions(), "processors": str(os.cpu_count())}
    return [*found.items(), *((name, version(name)) for name in ("pandas", "matplotlib"))]


def _figures(names: Sequence[str], table: "pd.DataFrame") -> "Iterator[tuple[str, str, Callable[[], Figure]]]":
    """File name, caption and drawing function of each figure."""
    if "toy" in names:
        yield (
            "wrong-model",
            "Figure 1: the likeliest mixture of the toy's points, and the one that is wanted.",
            figures.wrong_model,
        )
        yield "graphical-model", "Figure 2: the model as a graph; observed nodes are grey.", figures.graphical_model
        yield "toy", "Toy: start; without links; with 2 + 2 links, 2 must-links, 2 cannot-links.", figures.toy_panels
    if "two-moons" in names:
        yield (
            "two-moons",
            "Two moons: starts for one and two clusters per class; GMM; GM-PR with one cluster per class; with two.",
            figures.two_moons_panels,
        )
        yield (
            "two-moons-counts",
            "Sixteen points on two moons, looked for until the errors were those that the paper counts.",
            figures.counted_moons_panels,
        )
    digits = [name for name in DIGITS if name in names]
    if digits:
        yield (
            "digits",
            "Test images of digits on their first two principal components, by class.",
            lambda: figures.digits_scatter({name: _with_digits(name) for name in digits}),
        )
    sets = [name for name in PURITY_SETS if name in names]
    kinds: Mapping[str, tuple[str, tuple[str, ...]]] = {
        "both": ("links between random pairs", ALL_OF_THE_PAPER),
        "must": ("must-links alone", MIXTURES),
        "cannot": ("cannot-links alone", (*MIXTURES, "em-pc")),
    }
    floors = {name: floor(load(name)[1]) for name in sets}
    curves = table[table["experiment"].isin(sets)]
    for kind, (what, methods) in kinds.items() if sets else ():
        yield (
            f"purity-{kind}",
            f"Purity against the number of {what}: mean and standard deviation over trials.",
            partial(figures.purity_against_links, curves, sets, kind, methods, floors),
        )
    if "coil20" in names:
        coil, levels = table[table["experiment"] == "coil20"], _floors(table, "coil20")
        yield (
            "coil20-objects",
            "COIL-20: the first view of each object. The images may not be passed on.",
            lambda: figures.coil_objects(*load("coil20-pixels")),
        )
        for kind, ending, what in (("cannot", "", "cannot-links alone"), ("both", "-both", "links of both kinds")):
            yield (
                f"coil20{ending}",
                f"COIL-20 in 10, 15 and 20 dimensions: purity against links, {what}.",
                partial(figures.coil20, coil, kind=kind, floors=levels),
            )
        yield (
            "coil20-covariances",
            "COIL-20: GM-PR with K = 3 and other covariances, and SSKK; cannot-links alone.",
            partial(figures.coil20, coil, methods=(*figures.COVARIANCES, "sskk")),
        )
    if "clusters-per-class" in names:
        yield (
            "clusters-per-class",
            "GM-PR with one to four clusters per class.",
            lambda: figures.clusters_per_class(
                table[table["experiment"] == "clusters-per-class"], floors=_floors(table, "clusters-per-class")
            ),
        )
    if "why-ahead" in names:
        others = ("gmm-ec-chunklets", "gmm-ec-must")
        yield (
            "why-ahead",
            "GM-PR minus GMM-EC on the same random pairs, all of them or the must-links among them alone.",
            lambda: figures.differences_against_links(
                {other: differences(table, "paper", other, experiments=["why-ahead"]) for other in others}, PURITY_SETS
            ),
        )
    if "fewest-links" in names:
        few = table[table["experiment"] == "fewest-links"]
        yield (
            "fewest-links",
            "Every method on all data with few links; at most 1000 rows of each set.",
            lambda: figures.fewest_links(few, {name: ceiling(*load(name)) for name in few["data"].unique()}),
        )
        yield "fewest-links-mean", "Mean over all data sets.", lambda: fewest.mean_curves(few)


def _with_digits(name: str) -> tuple[Floats, Array]:
    """Points of a data set of digits, and the digit that each shows."""
    X, y = load(name)
    return X, np.array([int(digit) for digit in DATA[name].class_names])[y]


def _floors(table: "pd.DataFrame", experiment: str) -> dict[str, float]:
    names = table.loc[table["experiment"] == experiment, "data"].unique()
    return {str(name): floor(load(str(name))[1]) for name in names}
