"""What a notebook shows of a fitted estimator below scikit-learn's diagram: the classes as bars, links and quality."""

from html import escape
from typing import Any

import numpy as np

from linkmix.basics.arrays import Array
from linkmix.basics.palette import MORE_COLOURS, UNSURE

MOST_CLASSES = 12
"""Classes that have a bar of their own; the smaller ones share one."""
LONGEST_NAME = 22
WIDTH, BAR, LEFT, LINE = 480, 180, 165, 20
"""Of the picture, of the longest bar, of the names before it, and the height of a line, in pixels."""


def card(model: Any) -> str:
    """A small picture of the result as HTML, with nothing that has to be loaded.

    Parameters
    ----------
    model : LinkMixture or AutoLinkMixture
        A fitted estimator.

    Returns
    -------
    str
        A ``div`` with an ``svg``. All text of the user is escaped.

    Examples
    --------
    >>> from linkmix import LinkMixture, Links
    >>> model = LinkMixture(2, random_state=0).fit([[0.0], [0.1], [9.0], [9.1]], links=Links(cannot=[(0, 2)]))
    >>> "4 points in 2 classes" in card(model), "1 of 1 link kept" in card(model)
    (True, True)
    """
    labels = model.labels_ if isinstance(getattr(model, "labels_", None), np.ndarray) else None
    sizes, title = _sizes(model, labels)
    notes = [] if labels is None else _links(model, labels)
    if getattr(model, "quality_", None) is not None:
        notes.append(str(model.quality_))
    largest = max(size for _, size, _, _ in sizes)
    bars = "".join(
        _bar(number, name, size / largest, said, colour) for number, (name, size, said, colour) in enumerate(sizes)
    )
    height = LINE * len(sizes) + 4
    summary = escape("; ".join(f"{name}: {said}" for name, _, said, _ in sizes))
    return (
        f'<div style="font: 13px/1.5 sans-serif; max-width: {WIDTH}px; margin: 8px 0">'
        f"<strong>{escape(title)}</strong>"
        f'<svg role="img" aria-label="{summary}" viewBox="0 0 {WIDTH} {height}" width="100%" '
        f'style="display: block; margin: 4px 0">{bars}</svg>'
        f"{''.join(f'<div>{escape(note)}</div>' for note in notes)}</div>"
    )


def _sizes(model: Any, labels: Array | None) -> tuple[list[tuple[str, float, str, str]], str]:
    """Name, size, size in words and colour of each bar, and the title."""
    names = [_short(str(name)) for name in model.classes_.tolist()]
    if labels is None:  # they are on a cluster, or not part of this copy
        weights = getattr(model, "best_estimator_", model).class_weights_
        sizes = np.asarray(weights, dtype=np.float64)
        title, words = f"{_classes(len(names))}, by their weights", [f"{100 * size:.1f} %" for size in sizes]
    else:
        sizes = np.array([np.count_nonzero(labels == name) for name in model.classes_], dtype=np.float64)
        title = f"{len(labels):,} points in {_classes(len(names))}"
        words = [f"{size:,.0f} ({100 * size / len(labels):.0f} %)" for size in sizes]
    found = [
        (name, float(size), said, MORE_COLOURS[number % len(MORE_COLOURS)])
        for number, (name, size, said) in enumerate(zip(names, sizes, words, strict=True))
    ]
    if len(found) > MOST_CLASSES:
        order = np.argsort(-sizes, kind="stable")
        rest = [found[number] for number in order[MOST_CLASSES - 1 :].tolist()]
        found = [found[number] for number in sorted(order[: MOST_CLASSES - 1].tolist())]
        total = sum(size for _, size, _, _ in rest)
        said = f"{100 * total:.1f} %" if labels is None else f"{total:,.0f}"
        # The bar is that of one of them, so that it does not look like a large class.
        found.append((f"{len(rest)} smaller classes", total / len(rest), f"{said} in all", UNSURE))
    if labels is not None and (nowhere := len(labels) - int(sizes.sum())):
        found.append(("no class (-1)", float(nowhere), f"{nowhere:,} ({100 * nowhere / len(labels):.0f} %)", UNSURE))
    return found, title


def _links(model: Any, labels: Array) -> list[str]:
    """How many of the links the labels keep."""
    table = getattr(model, "links_to_review_", None)
    if table is None or not len(table):
        return []
    first, second = labels[table["a"]], labels[table["b"]]
    apart = (first != second) | ~np.isin(first, model.classes_)  # a point of no class is in no class with any other
    kept = np.where(table["kind"] == "must", first == second, apart)
    n_kept, n_links = int(np.count_nonzero(kept)), len(table)
    return [f"{n_kept:,} of {n_links:,} {'link' if n_links == 1 else 'links'} kept"]


def _bar(number: int, name: str, share: float, said: str, colour: str) -> str:
    top, width = LINE * number, max(BAR * share, 1.0)
    return (
        f'<text x="{LEFT - 8}" y="{top + 15}" text-anchor="end" font-size="13" fill="currentColor">'
        f"{escape(name)}</text>"
        f'<rect x="{LEFT}" y="{top + 3}" width="{width:.1f}" height="{LINE - 5}" rx="2" fill="{colour}"/>'
        f'<text x="{LEFT + width + 6:.1f}" y="{top + 15}" font-size="13" fill="currentColor">{escape(said)}</text>'
    )


def _classes(n: int) -> str:
    return "1 class" if n == 1 else f"{n} classes"


def _short(name: str) -> str:
    """A name that fits, without what cannot be shown."""
    shown = "".join(letter if letter.isprintable() else " " for letter in name)
    return shown if len(shown) <= LONGEST_NAME else f"{shown[: LONGEST_NAME - 1]}…"
