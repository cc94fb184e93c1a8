"""The report of a fit: the values that ``page.html`` shows, as texts and charts."""

from pathlib import Path
from typing import Any

import numpy as np

from linkmix.app.report import drawing
from linkmix.app.report.columns import columns_in_words, dates_of, day, n_used
from linkmix.app.report.drawing import Chart, cut, icon, number, share
from linkmix.app.report.numbers import EDGES, UNSURE, Result, labels_alone, noise_in_words, percent, share_of
from linkmix.basics.arrays import Array
from linkmix.basics.palette import COLOURS
from linkmix.data.plane import plane
from linkmix.data.summary import summarise
from linkmix.native.versions import versions
from linkmix.plots.pages import count, render
from linkmix.search.contest import THE_BEST

MOST_POINTS = 3000
"""With more points than this, the map shows a random choice of this size and the linked points that it needs."""
MOST_LINKS = 300
"""Links on the map and in the list."""
MOST_COLUMNS = 8
"""Columns in the profile of a class."""
MOST_DECIDING = 12
"""Columns in the list of what decides."""
MOST_CLASSES = 30
"""Classes with a profile."""
SHOWN_LINKS = 12
"""Links listed before the rest is folded away."""
MOST_CANDIDATES = 15
"""Candidates of the search that are listed."""
_TEMPLATE = Path(__file__).with_name("page.html")


def page(result: Result) -> str:
    """Write the report of a fit.

    Parameters
    ----------
    result : Result
        The fit.

    Returns
    -------
    str
        HTML that needs no other file, runs no script, and loads nothing from a network.
    """
    board = getattr(result.model, "leaderboard_", ())
    used = (f"{name} {value}" for name, value in versions().items() if name not in ("system", "computes"))
    return render(
        _TEMPLATE,
        result=result,
        command=result.command,
        quality=_quality(result),
        how=_how(result),
        cards=_cards(result),
        columns=columns_in_words(result.points, result.model),
        deciding=_deciding(result),
        map=_map(result),
        classes=[_profile(result, m) for m in range(min(result.n_classes, MOST_CLASSES))],
        noise=None if result.noise is None else noise_in_words(result.n_noise, len(result.labels)),
        largest=number(_largest(result)),
        links=_links(result),
        convergence=_convergence(result),
        confidence=_confidence(result),
        choice=_choice(result),
        candidates=[_candidate(row) for row in board[:MOST_CANDIDATES]],
        n_candidates=len(board),
        versions=", ".join(used),
        icon=icon,
        most_columns=MOST_COLUMNS,
        has_levels=any(result.points.levels),
        n_colours=len(COLOURS),
        unsure=UNSURE,
    )


def _quality(result: Result) -> dict[str, Any] | None:
    quality = result.quality
    if quality is None:
        return None
    low, middle, high, chance = (
        100 * value for value in (quality.low, quality.pairs_right, quality.high, quality.by_chance)
    )
    return {
        "better": quality.better_than_chance,
        "left": low,
        "width": high - low,
        "middle": middle,
        "chance": chance,
        "said": f"On a scale from 0 to 100 % of all pairs: the interval from {low:.0f} to {high:.0f} % "
        f"{'is above' if quality.better_than_chance else 'includes or is below'} chance, {chance:.0f} %.",
        "keys": (
            ("middle", f"judged right: about {middle:.0f} %"),
            ("interval", f"90 % interval: {low:.0f} to {high:.0f} %"),
            ("chance", f"by chance: {chance:.0f} %"),
        ),
    }


def _how(result: Result) -> str:
    board: Any = getattr(result.model, "leaderboard_", ())
    if not len(board):
        return f"Made by the method {result.method}: {result.what}."
    clusters, _, shared = str(board["shape"][0]).partition(", ")
    shape = f"{count(int(clusters), 'cluster')} per class{', from one pool that all classes share' if shared else ''}"
    members = len(getattr(result.model, "estimators_", ()))
    more = f", and {members - 1} more in a committee" if members > 1 else ""
    who = "others" if result.links.empty else "links"
    begun = _start(board["start"][0])
    return f"Of {len(board)} candidates, the {who} agree best with one that began from {begun}: {shape}{more}."


def _start(name: str) -> str:
    return "what the best candidates agree on" if name == THE_BEST else f"“{name}”"


def _cards(result: Result) -> list[tuple[str, str]]:
    table = result.link_table
    n, d = len(result.points.X), n_used(result.points, result.model)
    cards = [("points", f"{n:,}"), ("columns", f"{d:,}"), ("classes", f"{result.n_classes:,}")]
    if len(table):
        n_must = int(table["is_must"].sum())
        cards.append((f"links ({n_must:,} must, {len(table) - n_must:,} cannot)", f"{len(table):,}"))
        cards.append(("links satisfied by the labels", percent(table["holds"])))
        if result.probabilities is not None:
            cards.append(("links satisfied by the points alone", percent(table["holds_alone"])))
    else:
        cards.append(("links", "none"))
    if result.noise is not None:
        share = 100 * result.n_noise / n
        cards.append(("points that belong to no class", f"{result.n_noise:,} ({share:.1f} %)"))
    if result.confidence is not None:
        name = "mean confidence (calibrated)" if result.calibrated else "mean confidence (not calibrated)"
        cards.append((name, f"{result.confidence.mean:.3f}"))
    return cards


def _map(result: Result) -> dict[str, Any]:
    (X, columns), ids = result.points.without_codes, result.points.ids
    summary = result.summary if X is result.points.X else summarise(X)
    drawn = result.link_table[:MOST_LINKS]
    linked = np.unique(np.concatenate([drawn["a"], drawn["b"]]))
    rows = np.arange(len(X))
    if len(X) > MOST_POINTS:
        rows = np.union1d(np.random.default_rng(0).choice(len(X), MOST_POINTS, replace=False), linked)
    places, axes = plane(X, columns, summary, rows)
    chart = Chart(
        places[:, 0],
        places[:, 1],
        width=760,
        height=520,
        labels=(axes[0], axes[1]),
        title="The points in two dimensions, with links",
        y_ticks=X.shape[1] > 1,
    )
    radius = float(np.clip(60 / np.sqrt(len(rows)), 2.0, 4.5))
    drawing.draw_points(chart, places, result.labels[rows], result.confidence_of(rows), radius)
    lines = []
    if len(drawn):
        inside = drawn.copy()
        for end in ("a", "b"):
            inside[end] = np.searchsorted(rows, drawn[end])
        drawing.draw_links(chart, places, inside, [str(name) for name in ids[rows]])
        drawing.draw_rings(chart, places[np.searchsorted(rows, linked)], [str(name) for name in ids[linked]])
        lines = [("must", "must-link"), ("cannot", "cannot-link")]
        lines += [] if drawn["holds"].all() else [("must broken", "broken link")]
    return {"chart": chart.svg(), "lines": lines, "n_drawn": len(rows), "n_links": len(drawn)}


def _deciding(result: Result) -> list[dict[str, Any]]:
    """The columns that decide most, with their shares; none if these are not known."""
    weights = result.weights
    if weights is None:
        return []
    first = [j for j in np.argsort(-weights, kind="stable")[:MOST_DECIDING].tolist() if weights[j] >= 0.005]
    return [
        {
            "column": result.points.used[j],
            "share": f"{100 * weights[j]:.0f} %",
            "width": 100 * float(weights[j] / weights.max()),
        }
        for j in first
    ]


def _profile(result: Result, m: int) -> dict[str, Any]:
    found, size, confidence = result.profiles, result.sizes[m], result.confidence
    facts = [f"{count(size, 'point')}, {100 * size / len(result.labels):.1f} %"]
    if confidence is not None and size:
        facts.append(f"mean confidence {confidence.means[m]:.3f}, {confidence.unsure[m]:,} below {UNSURE}")
    bars, dates = [], dates_of(result.points)
    for trait in found.top(m, MOST_COLUMNS) if size else ():
        difference = float(found.differences[m, trait])
        width = 50 * abs(difference) / _largest(result)
        shown = share if found.shares[trait] else day if found.names[trait] in dates else number
        bars.append(
            {
                "column": found.names[trait],
                "mean": shown(float(found.means[m, trait])),
                "center": shown(float(found.center[trait])),
                "left": 50 - width if difference < 0 else 50,
                "width": max(width, 0.4),
            }
        )
    name = result.names[m] if result.names else f"class {m}"
    title = name if result.names else f"Class {m}"
    return {"number": m, "name": name, "title": title, "facts": "; ".join(facts), "bars": bars}


def _largest(result: Result) -> float:
    """The difference, in standard deviations, that a full bar stands for."""
    return max(float(np.abs(result.profiles.differences).max()), 1e-9)


def _links(result: Result) -> dict[str, Any]:
    table = result.link_table
    by = ("holds",) if result.probabilities is None else ("holds", "holds_alone")
    summary = [
        (name, f"{len(chosen):,}", *(share_of(chosen[one]) for one in by))
        for name, chosen in (("must-links", table[table["is_must"]]), ("cannot-links", table[~table["is_must"]]))
        if len(chosen)
    ]
    doubtful = ~table["holds_alone"] | (table["probability_wrong"] > 0.5)
    reliability = getattr(result.mixture, "annotator_reliability_", {})
    return {
        "n": len(table),
        "summary": summary,
        "broken": _listed(result, table[~table["holds"]]),
        "doubtful": _listed(result, table[table["holds"] & doubtful]),
        "annotators": [(str(who), f"{p:.2f}") for who, p in sorted(reliability.items(), key=lambda item: item[1])],
    }


def _listed(result: Result, links: Array) -> dict[str, Any]:
    """Links to list; the first ones are always visible."""
    shown = [_link(result, link) for link in links[:MOST_LINKS]]
    return {"n": len(links), "first": shown[:SHOWN_LINKS], "rest": shown[SHOWN_LINKS:]}


def _link(result: Result, link: Array) -> dict[str, Any]:
    ends, wrong = np.array([link["a"], link["b"]]), float(link["probability_wrong"])
    return {
        "ids": [cut(str(result.points.ids[row])) for row in ends.tolist()],
        "kind": "must" if link["is_must"] else "cannot",
        "labels": result.labels[ends].tolist(),
        "alone": labels_alone(result, ends).tolist(),
        "wrong": "-" if np.isnan(wrong) else f"{wrong:.3f}",
    }


def _convergence(result: Result) -> dict[str, Any] | None:
    mixture = result.mixture
    if mixture is None or mixture.n_iter_ < 2:  # one step says nothing
        return None
    trace = np.asarray(mixture.log_likelihood_trace_, dtype=np.float64)
    title = "Log-likelihood after each step of EM"
    return {
        "chart": drawing.line_chart(trace - trace[0], ("step", "gain of J"), title),
        "n_steps": mixture.n_iter_,
        "end": number(float(trace[-1])),
        "converged": mixture.converged_,
        "is_last": mixture is not result.model,
    }


def _confidence(result: Result) -> dict[str, Any] | None:
    confidence = result.confidence
    if confidence is None:
        return None
    title = "Number of points by confidence"
    chart = drawing.histogram(confidence.counts, EDGES, ("confidence", "points"), title)
    return {"chart": chart, "n_unsure": int(confidence.unsure.sum())}


def _choice(result: Result) -> list[tuple[str, ...]]:
    table = getattr(result.model, "choice_", None)
    if table is None:
        return []
    score = table["score"] - table["score"].max()
    return [
        (
            f"{row['n_classes']}" + (" (chosen)" if row["n_classes"] == result.n_classes else ""),
            number(float(row["links_broken"])),
            f"{row['log_probability_of_links']:.2f}",
            f"{row['bic']:,.0f}",
            f"{below:.1f}",
        )
        for row, below in zip(table, score, strict=True)
    ]


def _candidate(row: Array) -> tuple[str, ...]:
    return (
        _start(str(row["start"])).strip("“”"),
        str(row["shape"]),
        number(float(row["links_broken"])),
        f"{row['log_probability_of_links']:.2f}",
        f"{row['log_likelihood']:,.1f}",
        f"{row['seconds']:.2f}",
    )
