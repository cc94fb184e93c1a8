"""Figures of the runs and a page that shows them all."""

import os
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from html import escape
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from linkmix.basics.arrays import Array, Floats
from linkmix.basics.files import aside
from linkmix.plots import save_figure
from linkmix.study.paper import fewest, figures
from linkmix.study.paper.claims import PURITY_SETS, examine
from linkmix.study.paper.data import DATA
from linkmix.study.paper.figures import score
from linkmix.study.paper.protocol import ALL_OF_THE_PAPER, DIGITS, EXPERIMENTS, MIXTURES, TABLE, ceiling, floor, load

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

PAGE = "index.html"
SUMMARY = "fewest-links.csv"


def write(table: "pd.DataFrame", folder: Path, command: str) -> Path:
    """Draw the figures of all experiments in a table and write a page with them.

    Parameters
    ----------
    table : DataFrame
        Runs, as of `linkmix.study.paper.protocol.run`.
    folder : Path
        Where to write; it has to be there.
    command : str
        The command that makes the same page again.

    Returns
    -------
    Path
        The page.
    """
    names = [name for name in EXPERIMENTS if name in set(table["experiment"])]
    blocks = []
    for name, caption, draw in _figures(names, table):
        save_figure(draw(), folder / name)
        blocks.append(
            f'<figure id="{name}"><a href="{name}.svg"><img src="{name}.png" alt="{escape(caption)}"></a>'
            f"<figcaption>{escape(caption)}</figcaption></figure>"
        )
    if "fewest-links" in names:
        summary = fewest_links(table)
        summary.to_csv(folder / SUMMARY, index=False)
        blocks.append("<h2>Fewest links: each method on average</h2>" + _html(fewest_links_means(summary)))
        few = table[table["experiment"] == "fewest-links"]
        blocks += [f"<h2>Mean {name}</h2>" + _html(fewest.mean_scores(few, name).round(3)) for name in fewest.SCORES]
        if "auto" in set(few["method"]):
            cells = fewest.against_rivals(few)
            behind = f"{int(cells['behind'].sum())} of {len(cells)}"
            blocks.append(
                f"<h2>Against the best rival</h2><p>Behind by more than {fewest.BEHIND} ARI in {behind} cells.</p>"
                + _html(cells.round(3))
            )
    parts = [
        "<h1>The experiments of the paper, run again</h1>",
        f"<p>{len(table)} runs of {len(names)} experiments. Made by <code>{escape(command)}</code>; seeds 0 to "
        f"{int(table['seed'].max())}, one for each trial. All runs are in <a href='{TABLE}'>{TABLE}</a>.</p>",
        "<h2>Claims</h2>",
        _claims(table),
        "<h2>Figures</h2>",
        *blocks,
        "<h2>Mean purity</h2>",
        _html(means(table)),
        _failures(table),
        "<h2>Machine and versions</h2>",
        _html_rows(("", ""), machine()),
    ]
    page = folder / PAGE
    with aside(page) as place:
        place.write_text(_FRAME.format(body="\n".join(parts)), encoding="utf-8")
    return page


def means(table: "pd.DataFrame") -> "pd.DataFrame":
    """Mean and standard deviation of the purity for each method, data set, kind and number of links.

    Parameters
    ----------
    table : DataFrame
        Runs.

    Returns
    -------
    DataFrame
        Columns ``data``, ``links``, ``n_links``, and one with text for each method.
    """
    scored = table.assign(score=score(table)).drop_duplicates(["data", "kind", "n_links", "method", "seed"])
    groups = scored.groupby(["data", "kind", "n_links", "method"], sort=False)["score"]
    text = groups.mean().map("{:.3f}".format) + " ± " + groups.std().fillna(0).map("{:.3f}".format)
    wide = text.unstack("method").fillna("")
    return wide.sort_index(level=["data", "kind", "n_links"]).reset_index()


def fewest_links(table: "pd.DataFrame") -> "pd.DataFrame":
    """Area under the curve of purity and links needed for 90 % of the supervised ceiling, by data and method.

    Parameters
    ----------
    table : DataFrame
        Runs with those of the experiment ``fewest-links``.

    Returns
    -------
    DataFrame
    """
    rows = table[table["experiment"] == "fewest-links"]
    ceilings = {name: ceiling(*load(name)) for name in rows["data"].unique()}
    return figures.fewest_links_summary(rows, ceilings)


def fewest_links_means(summary: "pd.DataFrame") -> "pd.DataFrame":
    """Mean area of each method, and on how many data sets it reaches 90 % of the ceiling, and with how many links.

    Parameters
    ----------
    summary : DataFrame
        As of `fewest_links`.

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
    """What the runs were made with.

    Returns
    -------
    list of (str, str)
        Names and values: system, processors, versions.
    """
    packages = ["linkmix", "numpy", "scipy", "scikit-learn", "pandas", "matplotlib"]
    found = [
        ("system", platform.platform()),
        ("processors", str(os.cpu_count())),
        ("Python", platform.python_version()),
    ]
    for package in packages:
        try:
            found.append((package, version(package)))
        except PackageNotFoundError:
            continue
    return found


def _figures(names: Sequence[str], table: "pd.DataFrame") -> "Iterator[tuple[str, str, Callable[[], Figure]]]":
    """File name, caption and drawing of each figure that the experiments give."""
    if "toy" in names:
        yield "toy", "Toy: start; without links; with 2 + 2 links, 2 must-links, 2 cannot-links.", figures.toy_panels
    if "two-moons" in names:
        yield (
            "two-moons",
            "Two moons: starts for one and two clusters per class; GMM; GM-PR with one cluster per class; with two.",
            figures.two_moons_panels,
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
        yield (
            "coil20",
            "COIL-20 in 10, 15 and 20 dimensions: purity against links.",
            lambda: figures.coil20(table[table["experiment"] == "coil20"], floors=_floors(table, "coil20")),
        )
    if "clusters-per-class" in names:
        yield (
            "clusters-per-class",
            "GM-PR with one to four clusters per class.",
            lambda: figures.clusters_per_class(
                table[table["experiment"] == "clusters-per-class"], floors=_floors(table, "clusters-per-class")
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
    """Points of a set of digits, and the digit that each shows."""
    X, y = load(name)
    return X, np.array([int(digit) for digit in DATA[name].class_names])[y]


def _floors(table: "pd.DataFrame", experiment: str) -> dict[str, float]:
    names = table.loc[table["experiment"] == experiment, "data"].unique()
    return {str(name): floor(load(str(name))[1]) for name in names}


def _claims(table: "pd.DataFrame") -> str:
    rows = []
    for claim, finding in examine(table):
        again = f"linkmix reproduce {' '.join(claim.experiments)}" if claim.experiments else ""
        rows.append((claim.text, finding.verdict, finding.figure, again))
    return _html_rows(("claim of the paper", "verdict", "our figures", "command"), rows)


def _failures(table: "pd.DataFrame") -> str:
    failed = table[table["error"].notna()]
    if failed.empty:
        return "<p>No run failed.</p>"
    counts = failed.groupby(["data", "method", "kind", "n_links", "error"]).size().rename("runs").reset_index()
    return f"<h2>{len(failed)} failed runs</h2>" + _html(counts)


def _html(frame: "pd.DataFrame") -> str:
    return _html_rows([str(name) for name in frame.columns], frame.astype(str).to_numpy().tolist())


def _html_rows(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "\n".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<div class='wide'><table><tr>{head}</tr>\n{body}</table></div>"


_FRAME = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>linkmix: the experiments of the paper</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; color: #222; }}
h1, h2 {{ line-height: 1.2; }}
img {{ max-width: 100%; background: #fff; }}
figure {{ margin: 2rem 0; }}
figcaption {{ color: #555; }}
table {{ border-collapse: collapse; font-size: 0.85rem; }}
th, td {{ border-bottom: 1px solid #ddd; padding: 0.3rem 0.6rem; text-align: left; vertical-align: top; }}
.wide {{ overflow-x: auto; }}
@media (prefers-color-scheme: dark) {{ body {{ background: #1b1b1b; color: #ddd; }} figcaption {{ color: #aaa; }}
  th, td {{ border-color: #444; }} a {{ color: #8cc4ff; }} }}
</style>
</head>
<body>
{body}
</body>
</html>
"""
