"""The colours and markers of classes and the colours of the pages, for figures, reports and the labelling page.

The first six colours are those of Okabe and Ito, which colour-blind readers can tell apart. Classes also differ in
their marker: class 6 has the colour of class 0, but another marker. Needs no other package.
"""

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P")
"""Circle, square, triangle, diamond, triangle down, plus; by the letters of matplotlib."""
MORE_COLOURS = (*COLOURS, "#7A5195", "#8C6D31", "#C9302C", "#5F6B76")
"""For a map of so many points that all of them are dots."""
_ON_DARK = (
    *("#58A6E0", "#F28C4B", "#35C9A0", "#E3A0C6", "#F0C04F", "#A9DCF9"),
    *("#B694D6", "#C4A465", "#FF7B72", "#9AA5B1"),
)
INK = "#1D2126"
UNSURE = "#E2E2E2"
"""Colour of a point that could be of any class."""
EDGE = "#00000066"

# Names of colours in the style of a page, for light and for dark screens.
_PAGE = {
    "ink": (INK, "#E8EAED"),
    "quiet": ("#58616B", "#A4ACB5"),
    "rule": ("#D9DEE4", "#363D44"),
    "accent": ("#00639C", "#6BB3E8"),
    "good": ("#1A7F37", "#56D364"),
    "bad": ("#B3261E", "#FF8A80"),
    **{f"c{number}": pair for number, pair in enumerate(zip(MORE_COLOURS, _ON_DARK, strict=True))},
}


def colour_of(number: int) -> str:
    """Colour of a class."""
    return COLOURS[number % len(COLOURS)]


def marker_of(number: int) -> str:
    """Marker of a class: no two of the first 36 classes share both colour and marker.

    Examples
    --------
    >>> [(colour_of(number), marker_of(number)) for number in (0, 6)]
    [('#0072B2', 'o'), ('#0072B2', 's')]
    """
    return MARKERS[(number + number // len(COLOURS)) % len(MARKERS)]


def css() -> str:
    """Style rules with all colours as variables, for light and dark screens.

    Returns
    -------
    str
        Variables such as ``--ink`` and ``--c0``, and for each class number a rule such as ``.c0`` that sets ``--c``.
    """
    light, dark = (" ".join(f"--{name}: {pair[side]};" for name, pair in _PAGE.items()) for side in (0, 1))
    classes = " ".join(f".c{number} {{ --c: var(--c{number}); }}" for number in range(len(MORE_COLOURS)))
    return (
        f":root {{ color-scheme: light dark; {light} }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n{classes}\n"
    )
