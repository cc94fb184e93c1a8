"""The tables of a run as text for pages: verdicts, means with standard deviations, and what they rest on."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from linkmix.study.paper.evidence import ENOUGH_TRIALS
from linkmix.study.paper.figures.runs import is_blind, score
from linkmix.study.paper.figures.styles import STYLES, data_name

if TYPE_CHECKING:
    import pandas as pd

    from linkmix.study.paper.claims import Claim, Finding

KINDS = {"both": "links of both kinds", "must": "must-links alone", "cannot": "cannot-links alone", "even": "half must"}


def means(table: "pd.DataFrame") -> "pd.DataFrame":
    """Mean and standard deviation of purity for each method, data set, kind and number of links.

    Parameters
    ----------
    table : DataFrame
        Runs.

    Returns
    -------
    DataFrame
        Columns ``data``, ``kind``, ``n_links``, and a column of text for each method.
    """
    scored = table.assign(score=score(table)).drop_duplicates(["data", "kind", "n_links", "method", "seed"])
    groups = scored.groupby(["data", "kind", "n_links", "method"], sort=False)["score"]
    text = groups.mean().map("{:.3f}".format) + " ± " + groups.std().fillna(0).map("{:.3f}".format)
    wide = text.unstack("method").fillna("")
    return wide.sort_index(level=["data", "kind", "n_links"]).reset_index()


def trials(table: "pd.DataFrame") -> dict[str, int]:
    """Number of trials of each experiment."""
    return {str(name): int(part["seed"].nunique()) for name, part in table.groupby("experiment", sort=False)}


def trials_in_words(table: "pd.DataFrame") -> str:
    """Number of trials of all experiments, and of those that have another number.

    Examples
    --------
    >>> import pandas as pd
    >>> runs = {"experiment": ["toy"] * 3 + ["two-moons"] * 3 + ["coil20"], "seed": [0, 1, 2, 0, 1, 2, 0]}
    >>> trials_in_words(pd.DataFrame(runs))
    '3 trials of each experiment (coil20: 1)'
    """
    found = trials(table)
    counts = list(found.values())
    usual = max(set(counts), key=lambda n: (counts.count(n), n))
    others = ", ".join(f"{name}: {n}" for name, n in found.items() if n != usual)
    return f"{usual} trial{'' if usual == 1 else 's'} of each experiment{f' ({others})' if others else ''}"


def too_few(table: "pd.DataFrame") -> int:
    """How many trials verdicts need, if an experiment has fewer; otherwise 0."""
    return ENOUGH_TRIALS if min(trials(table).values()) < ENOUGH_TRIALS else 0


def markdown(
    table: "pd.DataFrame",
    findings: "Iterable[tuple[Claim, Finding]]",
    command: str,
    machine: Sequence[tuple[str, str]],
) -> str:
    """All tables of a run, to be read as they are or put into docs.

    Parameters
    ----------
    table : DataFrame
        Runs.
    findings : iterable of (Claim, Finding)
        What they say about each claim.
    command : str
        The command that gives them.
    machine : sequence of (str, str)
        System and versions.

    Returns
    -------
    str
        Markdown: what it rests on, the verdicts, and for each experiment and kind of links the mean purity.
    """
    failed = int(table["error"].notna().sum())
    lines = [
        f"`{command}`: {trials_in_words(table)}, seeds 0 to {int(table['seed'].max())}; {len(table):,} runs, {failed} "
        f"failed, {table.drop_duplicates(['data', 'method', 'kind', 'n_links', 'seed'])['seconds'].sum() / 60:.0f} "
        "minutes of fits.",
        "",
        ", ".join(f"{name} {value}" for name, value in machine if name != "system") + ".",
        "",
        "## Verdicts",
        "",
        *_rows(
            ["claim", "verdict", "figures"],
            [[claim.text, f"**{finding.verdict}**", finding.figure] for claim, finding in findings],
        ),
    ]
    for experiment, part in table.groupby("experiment", sort=False):
        lines += ["", f"## {experiment}"]
        for kind in part.loc[part["n_links"] > 0, "kind"].unique():
            some = part[((part["kind"] == kind) & (part["n_links"] > 0)) | part["method"].map(is_blind)]
            lines += ["", f"Mean purity and standard deviation, {KINDS[str(kind)]}:", "", *_table(some)]
    return "\n".join(lines) + "\n"


def _table(runs: "pd.DataFrame") -> list[str]:
    """A row for each data set and number of links, a column for each method; level ones are repeated."""
    groups = runs.assign(score=score(runs)).groupby(["data", "n_links", "method"], sort=False)["score"]
    cells = {
        key: f"{some.mean():.3f} ± {some.std() if len(some) > 1 else 0:.3f}".replace("0.", ".") for key, some in groups
    }
    methods = list(dict.fromkeys(runs["method"]))
    rows = []
    for name in runs["data"].unique():
        for n in sorted(set(runs.loc[(runs["data"] == name) & (runs["n_links"] > 0), "n_links"])):
            texts = [cells.get((name, 0 if is_blind(method) else n, method), "") for method in methods]
            rows.append([data_name(str(name)), str(n), *texts])
    names = [STYLES[method].name if method in STYLES else method for method in methods]
    return _rows(["data", "links", *names], rows)


def _rows(names: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    marked = [[cell.replace("|", "\\|") for cell in row] for row in (names, *rows)]
    return [
        f"| {' | '.join(marked[0])} |",
        "|" + "---|" * len(names),
        *(f"| {' | '.join(row)} |" for row in marked[1:]),
    ]
