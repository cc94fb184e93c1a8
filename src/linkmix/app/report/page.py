"""The page itself. Every text that comes from the user goes through `_text`."""

from collections.abc import Iterable, Sequence

import numpy as np

from linkmix.app.report import drawing
from linkmix.app.report.drawing import Chart, cut, icon, number, plain
from linkmix.app.report.numbers import EDGES, UNSURE, Result, plane, review
from linkmix.app.report.style import STYLE
from linkmix.basics.arrays import Array, Floats
from linkmix.native.versions import versions

MOST_POINTS = 3000
"""With more points than this, the picture shows so many of them and all that are in links that it draws."""
MOST_LINKS = 300
"""Links in the picture, and in the list."""
MOST_COLUMNS = 8
"""Columns in the profile of a class."""
MOST_CLASSES = 30
"""Classes with a profile."""
SHOWN_LINKS = 12
"""Links that are listed before the rest is folded away."""


def page(result: Result) -> str:
    """Write a page about a fit.

    Parameters
    ----------
    result : Result
        The fit.

    Returns
    -------
    str
        HTML that needs no other file, runs no script, and asks for nothing from a network.
    """
    table = review(result)
    body = [
        _head(result, table),
        _map(result, table),
        _classes(result),
        _links(result, table),
        _figures(result),
        _search(result),
        _foot(result),
    ]
    return _FRAME.format(title=plain(f"linkmix: {result.sources[0]}"), style=STYLE, body="\n".join(body))


def _head(result: Result, table: Array) -> str:
    n, d = result.points.X.shape
    cards = [("points", f"{n:,}"), ("columns", f"{d:,}"), ("classes", f"{result.n_classes:,}")]
    if len(table):
        n_must = int(table["is_must"].sum())
        cards.append((f"links ({n_must:,} must, {len(table) - n_must:,} cannot)", f"{len(table):,}"))
        cards.append(("links satisfied", f"{100 * table['holds'].mean():.0f} %"))
    else:
        cards.append(("links", "none"))
    if (confidence := result.confidence) is not None:
        cards.append(("mean confidence", f"{confidence.mean:.3f}"))
    notes = "".join(f"<li>{_text(note)}</li>" for note in result.notes)
    sources = " and ".join(f"<b>{_text(name)}</b>" for name in result.sources)
    return (
        f"<header><p class='brand'>linkmix</p><h1>{_count(result.n_classes, 'class', 'classes')} from {sources}</h1>"
        f"<p class='lead'>{_text(_how(result))}</p></header><dl class='cards'>"
        + "".join(f"<div><dt>{_text(name)}</dt><dd>{_text(value)}</dd></div>" for name, value in cards)
        + "</dl>"
        + (f"<ul class='notes'>{notes}</ul>" if notes else "")
    )


def _how(result: Result) -> str:
    board = getattr(result.model, "leaderboard_", None)
    if board is None or not len(board):
        return f"Made by the method {result.method}: {result.what}."
    clusters, _, shared = str(board["shape"][0]).partition(", ")
    shape = _count(int(clusters), "cluster") + (
        " per class, from one pool that all classes share" if shared else " per class"
    )
    members = len(getattr(result.model, "estimators_", ()))
    more = f", and {members - 1} more in a committee" if members > 1 else ""
    why = "the links agree best with" if not result.links.empty else "the others agree best with"
    return f"Of {len(board)} candidates, {why} the start “{board['start'][0]}” and {shape}{more}."


def _map(result: Result, table: Array) -> str:
    X, ids = result.points.X, result.points.ids
    n = len(X)
    drawn = table[:MOST_LINKS]
    linked = np.unique(np.concatenate([drawn["a"], drawn["b"]])) if len(drawn) else np.empty(0, dtype=np.int64)
    if n > MOST_POINTS:
        some = np.random.default_rng(0).choice(n, MOST_POINTS, replace=False)
        rows = np.union1d(some, linked)
    else:
        rows = np.arange(n)
    places, names = plane(X, rows)
    labels, confidence = result.labels[rows], result.confidence_of(rows)
    columns = result.points.columns
    axes = names or (columns[0], columns[1] if len(columns) > 1 else "")
    chart = Chart(
        places[:, 0],
        places[:, 1],
        width=760,
        height=520,
        labels=axes,
        title="The points in two dimensions, with links",
        y_ticks=len(columns) > 1,
    )
    radius = float(np.clip(60 / np.sqrt(len(rows)), 2.0, 4.5))
    drawing.draw_points(chart, places, labels, confidence, radius)
    if len(drawn):
        inside = drawn.copy()
        for end in ("a", "b"):
            inside[end] = np.searchsorted(rows, drawn[end])
        drawing.draw_links(chart, places, inside, [str(name) for name in ids[rows]])
        drawing.draw_rings(chart, places[np.searchsorted(rows, linked)], [str(name) for name in ids[linked]])
    shown = "" if len(rows) == n else f" {len(rows):,} of the {n:,} points are drawn, chosen at random."
    if len(table) > len(drawn):
        shown += f" {len(drawn):,} of the {len(table):,} links are drawn, broken ones first."
    what = "The axes are columns of the table." if names is None and len(columns) > 1 else ""
    if names is None and len(columns) == 1:
        what = "There is one column; the height of a point means nothing."
    if names is not None:
        what = (
            f"{len(columns):,} columns, each divided by its standard deviation, seen from the side that shows most "
            "of their spread (principal components, with their share of it)."
        )
    key = "".join(f"<li>{icon(m)}class {m}</li>" for m in range(min(result.n_classes, MOST_CLASSES)))
    if confidence is not None:
        key += "<li><span class='fade'></span>sure to unsure</li>"
    if len(drawn):
        lines = [("must", "must-link"), ("cannot", "cannot-link")]
        lines += [] if drawn["holds"].all() else [("must broken", "broken link")]
        for kind, name in lines:
            key += f"<li><svg class='key' viewBox='0 0 34 10'><path class='link {kind}' d='M1 5H33'/></svg>{name}</li>"
    return (
        f"<section><h2>The classes</h2><figure class='wide'>{chart.svg()}<ul class='legend'>{key}</ul>"
        f"<figcaption>{_text(what + shown)}</figcaption></figure></section>"
    )


def _classes(result: Result) -> str:
    found = result.profiles
    sizes, confidence, n = result.sizes, result.confidence, len(result.labels)
    largest = max(float(np.abs(found.differences).max()), 1e-9)
    cards = []
    for m in range(min(result.n_classes, MOST_CLASSES)):
        facts = [f"{sizes[m]:,} {'point' if sizes[m] == 1 else 'points'}, {100 * sizes[m] / n:.1f} %"]
        if confidence is not None and sizes[m]:
            facts.append(f"mean confidence {confidence.means[m]:.3f}, {confidence.unsure[m]:,} below {UNSURE}")
        order = np.argsort(-np.abs(found.differences[m]), kind="stable")[:MOST_COLUMNS]
        bars = "".join(_bar(result, found.means[m], found.center, found.differences[m], j, largest) for j in order)
        empty = "" if sizes[m] else "<p class='quiet'>No point is in this class.</p>"
        cards.append(
            f"<article><h3>{icon(m)}Class {m}</h3><p class='quiet'>{_text('; '.join(facts))}</p>"
            f"{empty}<ul class='bars c{m % drawing.N_COLOURS}'>{bars if sizes[m] else ''}</ul></article>"
        )
    more = result.n_classes - len(cards)
    d = len(result.points.columns)
    some = f"the {MOST_COLUMNS} columns that set it apart most" if d > MOST_COLUMNS else "its columns"
    return (
        "<section><h2>What sets each class apart</h2>"
        f"<p>For each class {some}. A bar goes from the mean of all points to the mean of the class, in standard "
        f"deviations of all points (a full bar is {number(largest)}); then the mean of the class, and in brackets that "
        "of all points.</p>"
        f"<div class='grid'>{''.join(cards)}</div>"
        + (f"<p class='quiet'>{_count(more, 'more class', 'more classes')} not shown.</p>" if more > 0 else "")
        + "</section>"
    )


def _bar(result: Result, means: Floats, center: Floats, differences: Floats, j: int, largest: float) -> str:
    width = 50 * abs(float(differences[j])) / largest
    left = 50 - width if differences[j] < 0 else 50
    return (
        f"<li><span class='name'>{_text(result.points.columns[j])}</span>"
        f"<span class='value'>{number(float(means[j]))} <small>({number(float(center[j]))})</small></span>"
        f"<span class='track'><i style='left:{left:.1f}%;width:{max(width, 0.4):.1f}%'></i></span></li>"
    )


def _links(result: Result, table: Array) -> str:
    if not len(table):
        return (
            "<section><h2>Links</h2><p>No links were given. Links say which points belong together and which do not: "
            "give a few with <code>--links</code>, and classes become the ones you mean.</p></section>"
        )
    rows = []
    for name, chosen in (("must-links", table[table["is_must"]]), ("cannot-links", table[~table["is_must"]])):
        if len(chosen):
            held = [f"{int(chosen[by].sum()):,} ({100 * chosen[by].mean():.0f} %)" for by in ("holds", "holds_alone")]
            rows.append((name, f"{len(chosen):,}", *held))
    parts = [
        "<section><h2>Links</h2>",
        _table(("", "given", "satisfied by the labels", "satisfied by the points alone"), rows),
        "<p>The labels honour links as far as they can. A link that does not hold for the points alone, without the "
        "help of links, is either news to the model or wrong.</p>",
    ]
    broken, doubtful = table[~table["holds"]], table[table["holds"] & (table["probability_wrong"] > 0.5)]
    if len(broken) or len(doubtful):
        said = []
        if len(broken):
            said.append(f"{_count(len(broken), 'link is', 'links are')} broken")
        if len(doubtful):
            said.append(f"{_count(len(doubtful), 'other is', 'others are')} more likely wrong than right")
        parts.append(f"<h3>To review</h3><p>{' and '.join(said)}.</p>")
    else:
        parts.append("<h3>To review</h3><p>No link is broken, and none is more likely wrong than right.</p>")
    listed = [_link_row(result, link) for link in table[:MOST_LINKS]]
    names = ("a", "b", "link", "classes", "labels", "points alone", "wrong with probability")
    parts.append(_table(names, listed[:SHOWN_LINKS], raw=True))
    if listed[SHOWN_LINKS:]:
        more = "" if len(table) <= MOST_LINKS else f" of {len(table) - SHOWN_LINKS:,}"
        parts.append(
            f"<details><summary>{len(listed) - SHOWN_LINKS:,} more{more}</summary>"
            f"{_table(names, listed[SHOWN_LINKS:], raw=True)}</details>"
        )
    reliability = getattr(result.mixture, "annotator_reliability_", {})
    if reliability:
        ranked = sorted(reliability.items(), key=lambda item: item[1])
        parts.append("<h3>Who is right how often</h3>")
        parts.append(_table(("annotator", "share of right links"), [(str(who), f"{p:.2f}") for who, p in ranked]))
    return "".join(parts) + "</section>"


def _link_row(result: Result, link: Array) -> tuple[str, ...]:
    ids, labels = result.points.ids, result.labels
    a, b = int(link["a"]), int(link["b"])
    wrong = float(link["probability_wrong"])

    def verdict(holds: bool) -> str:
        return "<span class='ok'>satisfied</span>" if holds else "<span class='bad'>broken</span>"

    return (
        _text(cut(str(ids[a]))),
        _text(cut(str(ids[b]))),
        "must" if link["is_must"] else "cannot",
        f"{icon(int(labels[a]))}{labels[a]} {icon(int(labels[b]))}{labels[b]}",
        verdict(bool(link["holds"])),
        verdict(bool(link["holds_alone"])),
        "-" if np.isnan(wrong) else f"{wrong:.3f}",
    )


def _figures(result: Result) -> str:
    parts = []
    if (mixture := result.mixture) is not None:
        trace = np.asarray(mixture.log_likelihood_trace_, dtype=np.float64)
        end = "the tolerance was met" if mixture.converged_ else "the number of steps ran out"
        if mixture is not result.model:
            end += ". These are the last steps, on all points, of what the search had found"
        parts.append(
            "<figure>"
            + drawing.line_chart(trace - trace[0], ("step", "gain of J"), "Log-likelihood after each step of EM")
            + f"<figcaption>Convergence: what {_count(mixture.n_iter_, 'step')} of EM added to J, the log-likelihood "
            f"of points and links (with priors, if there are any), up to {number(float(trace[-1]))}; {end}."
            "</figcaption></figure>"
        )
    if (confidence := result.confidence) is not None:
        unsure = int(confidence.unsure.sum())
        parts.append(
            "<figure>"
            + drawing.histogram(
                confidence.counts, EDGES, ("confidence", "points"), "How many points have which confidence"
            )
            + f"<figcaption>Confidence: the probability of the label of each point, from the point alone. "
            f"{unsure:,} of {len(result.labels):,} are below {UNSURE}. A linked point can have a label that its links "
            "force and that is improbable without them.</figcaption></figure>"
        )
    if not parts:
        return ""
    return f"<section><h2>Convergence and confidence</h2><div class='grid'>{''.join(parts)}</div></section>"


def _search(result: Result) -> str:
    model, parts = result.model, []
    choice = getattr(model, "choice_", None)
    if choice is not None:
        rows = [
            (
                f"{row['n_classes']}" + (" (chosen)" if row["n_classes"] == result.n_classes else ""),
                number(float(row["links_broken"])),
                f"{row['log_probability_of_links']:.2f}",
                f"{row['bic']:,.0f}",
            )
            for row in choice
        ]
        parts.append("<h2>Number of classes</h2><p>The fewest that explain the links about as well as any.</p>")
        parts.append(_table(("classes", "links broken", "log-probability of links", "BIC"), rows))
    board = getattr(model, "leaderboard_", None)
    if board is not None and len(board):
        best = [
            (
                str(row["start"]),
                str(row["shape"]),
                number(float(row["links_broken"])),
                f"{row['log_probability_of_links']:.2f}",
                f"{row['log_likelihood']:,.1f}",
                f"{row['seconds']:.2f}",
            )
            for row in board[:15]
        ]
        names = ("start", "clusters per class", "links broken", "log-probability of links", "log-likelihood", "seconds")
        summary = f"The best {len(best)} of {len(board)} candidates"
        parts.append(f"<details><summary>{summary}</summary>{_table(names, best)}</details>")
    return f"<section>{''.join(parts)}</section>" if parts else ""


def _foot(result: Result) -> str:
    used = ", ".join(f"{name} {value}" for name, value in versions().items() if name not in ("system", "computes"))
    columns = ", ".join(result.points.columns)
    return (
        f"<footer><p>Made by <code>{_text(result.command)}</code></p>"
        f"<details><summary>Columns and versions</summary><p>Columns: {_text(columns)}</p><p>{_text(used)}</p>"
        "</details></footer>"
    )


def _table(names: Sequence[str], rows: Iterable[Sequence[str]], *, raw: bool = False) -> str:
    """A table; ``raw`` if the cells are HTML already."""
    head = "".join(f"<th>{_text(name)}</th>" for name in names)
    body = "".join(
        "<tr>" + "".join(f"<td>{cell if raw else _text(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<div class='scroll'><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"


def _text(value: str) -> str:
    """Text of a user as HTML, shown in its own direction."""
    return f"<bdi>{plain(value)}</bdi>"


def _count(n: int, one: str, many: str | None = None) -> str:
    return f"{n:,} {one if n == 1 else many or one + 's'}"


_FRAME = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>{style}</style>
</head>
<body><main>
{body}
</main></body>
</html>
"""
