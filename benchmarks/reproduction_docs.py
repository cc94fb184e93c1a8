"""Puts runs of `linkmix reproduce` into the docs: verdicts, tables, figures and headline figures, without retyping.

    python -m benchmarks.reproduction_docs results              # the paper
    python -m benchmarks.reproduction_docs results-few          # fewest-links
    python -m benchmarks.reproduction_docs results results-few  # both

A page says by marks what goes where. What follows a mark at the beginning of a line, such as ``<!-- claim: ahead -->``,
is replaced up to the next empty line; what stands between a mark and ``<!-- end -->`` within a line is replaced too.

The experiments of the paper go to docs/reproduction.md, docs/reproduction-tables.md, docs/images/reproduction (without
the images of COIL-20, which may not be passed on) and README.md; fewest-links to docs/fewest-links.md,
docs/images/fewest-links and README.md.
"""

import argparse
import re
import shutil
import textwrap
from collections import Counter
from pathlib import Path

import pandas as pd

from linkmix.study.paper import claims, fewest, protocol, report
from linkmix.study.paper.figures.styles import STYLES, data_name

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
MARK = re.compile(r"^(<!-- (?P<what>[\w :-]+) -->\n).*?(?=\n\n|\n*\Z)", re.DOTALL | re.MULTILINE)
WITHIN = re.compile(r"(<!-- (?P<what>[\w :-]+) -->)[^\n]*?(<!-- end -->)")
HEAD = """# Tables of the paper's experiments

Of the run that [the paper's experiments, run again](reproduction.md) rests on; `linkmix reproduce` writes them as
`tables.md`, and `python -m benchmarks.reproduction_docs results` puts them here.

"""
NOT_OF_A_PAPER = {"coil20-objects", "fewest-links", "fewest-links-mean"}


def main() -> None:
    """Read the runs and write the docs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+", help="folders of runs")
    for folder in parser.parse_args().folders:
        table = pd.read_parquet(folder / protocol.TABLE)
        few = table[table["experiment"] == "fewest-links"]
        text = (folder / report.TABLES).read_text(encoding="utf-8")
        rests_on = " ".join(text.split("\n\n")[:2])
        places = 0
        if len(few):
            said = of_fewest_links(few) | {"rests on": rests_on}
            places += put(said, DOCS / "fewest-links.md", ROOT / "README.md")
            copy(folder, "fewest-links", {"fewest-links", "fewest-links-mean"})
        if len(few) < len(table):
            said = of_the_paper(table) | {"rests on": rests_on}
            places += put(said, DOCS / "reproduction.md", ROOT / "README.md")
            (DOCS / "reproduction-tables.md").write_text(HEAD + text, encoding="utf-8")
            copy(folder, "reproduction", {file.stem for file in folder.glob("*.png")} - NOT_OF_A_PAPER)
        print(f"{places} places of the docs, and their figures, are those of {folder}")


def of_the_paper(table: pd.DataFrame) -> dict[str, str]:
    """What goes after each mark: the verdict of each claim, and how many have each verdict."""
    found = claims.examine(table)
    said = {f"claim: {claim.name}": f"**{said.verdict.capitalize()}**: {said.figure}." for claim, said in found}
    of_theirs = [finding.verdict for claim, finding in found if claim in claims.CLAIMS]
    trials = table.loc[table["experiment"] != "fewest-links", "seed"].nunique()
    listed = ", ".join(f"{verdict}: {n}" for verdict, n in Counter(of_theirs).most_common())
    return said | {"paper: verdicts": f"of {len(of_theirs)} claims, at up to {trials} trials, {listed}"}


def of_fewest_links(runs: pd.DataFrame) -> dict[str, str]:
    """What goes after each mark: tables of all methods, and the sentences about them."""
    predicted = fewest.mean_scores(runs).set_index("method")
    summary = report.fewest_links(runs)
    cells = fewest.against_rivals(runs)
    few, most = (f"{n:g} links" for n in (predicted.columns[0], predicted.columns[-2]))
    ours, theirs = predicted.loc["auto"].iloc[0], predicted.loc["paper"].iloc[-2]
    by_set = fewest.scored(runs, "ARI of predict").groupby(["data", "method", "n_links"])["score"].mean()
    first, last = predicted.columns[0], predicted.columns[-2]
    ahead = [name for name in runs["data"].unique() if by_set[name, "paper", last] >= by_set[name, "auto", first]]
    n_sets, n_behind = runs["data"].nunique(), int(cells["behind"].sum())
    failed = runs[runs["error"].notna()].groupby("method").size()
    where = Counter(data_name(name).split(" (")[0] for name in cells.loc[cells["behind"], "data"])
    behind = f"{n_behind} of {len(cells)} cells"
    said = {
        "fewest: headline": f"With {few}, `AutoLinkMixture` ({number(ours)}) and GM-PR, the model of the paper, with "
        f"{most} ({number(theirs)}): GM-PR is at least level on {len(ahead)} of {n_sets} sets"
        f"{' (' + ', '.join(data_name(name).split(' (')[0] for name in ahead) + ')' if ahead else ''}.",
        "fewest: failed": "Runs that failed, of which the means know nothing: "
        + (", ".join(f"{STYLES[m].name} {n} of {(runs['method'] == m).sum()}" for m, n in failed.items()) or "none")
        + ".",
        "fewest: behind": f"In {behind} a rival is ahead by more than {number(fewest.BEHIND, 2)}"
        + (": " + ", ".join(f"{name} {n}" for name, n in where.most_common()) if where else "")
        + ".",
        "fewest: area": table_of(
            ["method", "area under the purity curve", f"sets that reach 90 % of the ceiling, of {n_sets}"],
            [
                [STYLES[row["method"]].name, number(row["area"]), str(row["sets that reach 90 %"])]
                for _, row in report.fewest_links_means(summary).iterrows()
            ],
        ),
        "fewest: needed": needed(summary),
        "fewest: cells": each_set(cells),
        "fewest: readme": f"{number(ours, 2)} with {few}; the paper's model has {number(theirs, 2)} with {most}. "
        f"A rival is ahead by more than {number(fewest.BEHIND, 2)} in {behind}",
    }
    return said | {f"fewest: {score}": means(fewest.mean_scores(runs, score)) for score in fewest.SCORES}


def means(scores: pd.DataFrame) -> str:
    """A row for each method, a column for each number of links."""
    numbers = [name for name in scores.columns if name not in ("method", "seconds")]
    return table_of(
        ["method", *(f"{n:g}" for n in numbers[:-1]), f"{numbers[-1]:g} links", "seconds a fit"],
        [
            [
                f"**{STYLES[row['method']].name}**" if row["method"] == "auto" else STYLES[row["method"]].name,
                *(number(row[n]) for n in numbers),
                f"{row['seconds']:.2f}",
            ]
            for _, row in scores.iterrows()
        ],
    )


def needed(summary: pd.DataFrame) -> str:
    """Links that the best methods, and GM-PR, need on each set."""
    order = list(report.fewest_links_means(summary)["method"])
    methods = [name for name in order if STYLES[name].marker][:6]
    methods += ["paper"] if "paper" not in methods else []
    wide = summary.pivot(index="data", columns="method", values="links_needed")
    rows = []
    for name in dict.fromkeys(summary["data"]):
        needs = ["never" if n == float("inf") else f"{n:.0f}" for n in wide.loc[name, methods]]
        rows.append([data_name(name), number(protocol.ceiling(*protocol.load(name))), *needs])
    return table_of(["data", "ceiling", *(STYLES[name].name for name in methods)], rows)


def each_set(cells: pd.DataFrame) -> str:
    """Ours and the best rival on each set, at each number of links."""
    numbers = sorted(cells["n_links"].unique())
    rows = []
    for name, part in cells.groupby("data"):
        row = [data_name(str(name)).split(" (")[0]]
        for n in numbers:
            cell = part[part["n_links"] == n].iloc[0]
            ours, best = number(cell["ours"]), number(cell["best"])
            scores = f"*{ours}*, **{best}**" if cell["behind"] else f"{ours}, {best}"
            row.append(f"{scores} {STYLES[cell['rival']].name}")
        rows.append(row)
    return table_of(["data", *(f"{n:g}" for n in numbers[:-1]), f"{numbers[-1]:g} links"], rows)


def table_of(names: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown."""
    head, *others = ("| " + " | ".join(line) + " |" for line in (names, *rows))
    return "\n".join([head, "|" + "---|" * len(names), *others])


def number(value: float, digits: int = 3) -> str:
    """A number as the docs write them.

    Examples
    --------
    >>> number(0.6784), number(-0.01), number(1.0, 2)
    ('.678', '-.010', '1.00')
    """
    return re.sub(r"^(-?)0\.", r"\1.", f"{value:.{digits}f}")


def put(said: dict[str, str], *pages: Path) -> int:
    """Write what is said into pages, and return in how many places."""
    places = 0
    for page in pages:
        text = page.read_text(encoding="utf-8")
        places += sum(mark["what"] in said for pattern in (MARK, WITHIN) for mark in pattern.finditer(text))
        page.write_text(filled(text, said), encoding="utf-8")
    return places


def filled(page: str, said: dict[str, str]) -> str:
    """The page with what is said put after each mark; a mark of which nothing is said stays as it is.

    Examples
    --------
    >>> filled("<!-- claim: toy -->\\nold\\ntext\\n\\nmore\\n", {"claim: toy": "new"})
    '<!-- claim: toy -->\\nnew\\n\\nmore\\n'
    >>> filled("| <!-- sum -->1<!-- end --> | <!-- other -->2<!-- end --> |", {"sum": "3"})
    '| <!-- sum -->3<!-- end --> | <!-- other -->2<!-- end --> |'
    """

    def after(mark: re.Match[str]) -> str:
        text = said.get(mark["what"])
        if text is None:
            return mark[0]
        return mark[1] + (text if text.startswith("|") else textwrap.fill(text, 120, break_on_hyphens=False))

    def within(mark: re.Match[str]) -> str:
        return mark[1] + said[mark["what"]] + mark[3] if mark["what"] in said else mark[0]

    return WITHIN.sub(within, MARK.sub(after, page))


def copy(folder: Path, place: str, names: set[str]) -> None:
    """Copy figures to the images of a page."""
    for name in sorted(names):
        shutil.copy(folder / f"{name}.png", DOCS / "images" / place / f"{name}.png")


if __name__ == "__main__":
    main()
