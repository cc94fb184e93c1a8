"""Numbers written as text: thousands separators, decimal commas, currencies, units, per cent.

All values of a column are read by one convention, the one that reads most of them, so that 1,234 is the same number in
every row.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from linkmix.basics.arrays import Floats, Ints
from linkmix.columns.units import CURRENCIES, DIMENSIONS, are_same, canonical, dimension

MOSTLY = 0.5
"""A column with a larger share of numbers than this is numeric, and its other values are mistakes."""
_NEARLY = 0.9
"""Share of rows from which on a unit that is not known is one."""
_FEWEST = 3
"""Number of different values from which on a unit that is not known is one."""
_CODE_LENGTH = 4
"""Digits of one length with leading zeros are codes from this length on; shorter ones may be months or minutes."""
_GLANCE = 1000
"""Texts that are looked at first."""
_SPACES = re.compile(r"\s+")
_MARKS = str.maketrans({"\u2019": "'", "\u02bc": "'", "\u00b4": "'", "\u2212": "-", "\u2013": "-", "\u2014": "-"})
_NO_CENTS = re.compile(r"(?<=\d)[.,]-{1,2}(?=\D*$)")  # 12,- € is 12 €, and not -12 €
_HEAD = "|".join(map(re.escape, sorted((*CURRENCIES, "%"), key=len, reverse=True)))  # %5 in Turkey
_WITH_DIGITS = "|".join(
    re.escape(unit) for units in DIMENSIONS.values() for unit in units if any(character.isdigit() for character in unit)
)
_NUMERAL = re.compile(
    rf"(?P<open>\()? ?(?P<first>[-+])? ?(?P<head>{_HEAD})? ?(?P<second>[-+])? ?"
    r"(?P<body>(?:\d[\d.,' ]*|[.,]\d+)(?<! )(?:[eE][-+]?\d+)?)"
    rf" ?(?P<tail>{_WITH_DIGITS}|[^\d\s()+\-.,'][^\d()]{{0,11}})?? ?(?P<last>-)? ?(?P<close>\))?",
    re.IGNORECASE,
)
_CONVENTIONS = {
    (".", ""): "",
    (".", ","): "a comma between thousands",
    (",", "."): "a decimal comma and points between thousands",
    (",", ""): "a decimal comma",
    (".", " "): "spaces between thousands",
    (",", " "): "a decimal comma and spaces between thousands",
    (".", "'"): "apostrophes between thousands",
    (",", "'"): "a decimal comma and apostrophes between thousands",
}
"""Decimal mark and mark between thousands in words. Of those that read as many rows the first is taken."""
_RIVALS = {(".", ","): (",", ""), (".", ""): (",", ".")}
"""Conventions by which 1,234 or 1.234 is another number."""


@dataclass(frozen=True)
class Convention:
    """How the numbers of a column are written.

    Attributes
    ----------
    decimal, thousands : str
        The decimal mark, and what stands between thousands.
    unit : str
        The unit or currency that every number but 0 has; nothing if there is none.
    """

    decimal: str = "."
    thousands: str = ""
    unit: str = ""

    @property
    def words(self) -> str:
        """What is special about it, nothing if it is the usual way of writing numbers."""
        return _CONVENTIONS[self.decimal, self.thousands]

    def read(self, texts: Sequence[str]) -> Floats:
        """The numbers that texts stand for; NaN if a text is not a number of this convention.

        Examples
        --------
        >>> Convention(",", ".", "€").read(["€1.234,50", "2 €", "-3,5 €", "4", "0"]).tolist()
        [1234.5, 2.0, -3.5, nan, 0.0]
        """
        plain = _plain(texts) if self == Convention() else None
        if plain is not None:
            return plain
        body, usual = self._body(), self._usual()
        found = np.empty(len(texts))
        for place, text in enumerate(texts):
            match = usual.fullmatch(text)  # most texts, at a fraction of the time of taking them apart
            if match:
                sign, before, after = match.groups()
                found[place] = self._number(before or after, sign == "-")
            else:
                found[place] = self._value(_split(text), body)
        return found

    def _value(self, part: "_Parts | None", body: re.Pattern[str]) -> float:
        if part is None or not part.is_in(self.unit) or not body.fullmatch(part.body):
            return np.nan
        return self._number(part.body, part.is_negative)

    def _number(self, body: str, is_negative: bool) -> float:
        text = body.replace(self.thousands, "") if self.thousands else body
        number = float(text.replace(self.decimal, "."))
        return -number if is_negative else number

    def _usual(self) -> re.Pattern[str]:
        """Numbers as most are written in this convention."""
        unit, body = re.escape(self.unit), f"({self._body().pattern})"
        return re.compile(rf"([-+]?)(?:{unit} ?{body}|{body} ?{unit})" if unit else rf"([-+]?)(?:{body}|(?!){body})")

    def _body(self) -> re.Pattern[str]:
        """Digits as this convention writes them."""
        decimal, thousands = re.escape(self.decimal), re.escape(self.thousands)
        whole = r"\d+"
        if thousands:
            lakhs = rf"|[1-9]\d?(?:{thousands}\d\d)+{thousands}\d{{3}}" if self.thousands == "," else ""  # as in India
            whole = rf"(?:\d+|[1-9]\d{{0,2}}(?:{thousands}\d{{3}})+{lakhs})"
        return re.compile(rf"(?:{whole}(?:{decimal}\d*)?|{decimal}\d+)(?:[eE][-+]?\d+)?")


@dataclass(frozen=True, eq=False)
class Reading:
    """What the texts of a column come to as numbers.

    Attributes
    ----------
    convention : Convention
        How they are written.
    numbers : ndarray of shape (n_texts,)
        The numbers; NaN for texts that are not numbers of this convention.
    share : float
        Share of the rows whose texts are numbers.
    units : dict of str to int
        Number of rows with each unit, if there are several that measure the same.
    is_ambiguous : bool
        Whether commas or points could be decimal marks as well as marks between thousands, in every row.
    """

    convention: Convention
    numbers: Floats
    share: float
    units: dict[str, int]
    is_ambiguous: bool = False


def read_numerals(texts: Sequence[str], counts: Ints, *, also_codes: bool = False) -> Reading | None:
    """Read texts as numbers, by the convention that most rows agree with.

    Parameters
    ----------
    texts : sequence of str
        Different texts, none of them missing.
    counts : ndarray of shape (n_texts,)
        Number of rows with each.
    also_codes : bool
        Whether digits that look like codes, such as 01307 for a place, are numbers.

    Returns
    -------
    Reading or None
        None if no text is a number, or if they are codes.

    Examples
    --------
    >>> found = read_numerals(["$1,234.50", "$2", "-$17"], np.array([1, 1, 1]))
    >>> found.numbers.tolist(), found.convention
    ([1234.5, 2.0, -17.0], Convention(decimal='.', thousands=',', unit='$'))
    """
    if not counts.any() or (are_codes(texts) and not also_codes):
        return None
    plain = _plain(texts)
    if plain is not None:
        return Reading(Convention(), plain, 1.0, {})
    if len(texts) <= _GLANCE:
        return _by_most_rows(texts, counts)
    some = glance(counts)
    found = _by_most_rows([texts[place] for place in some], counts[some])
    if found is None or found.share < 1:
        return None if found is None else _by_most_rows(texts, counts)
    # No convention that is preferred to this one reads some of the texts, so if it reads all it is the one.
    numbers = found.convention.read(texts)
    if np.isnan(numbers).any() or found.is_ambiguous:
        return _by_most_rows(texts, counts)
    return Reading(found.convention, numbers, 1.0, {})


def glance(counts: Ints) -> Ints:
    """Places of some texts that tell what the others are: the most frequent ones, and others evenly spaced."""
    frequent = np.argsort(-counts, kind="stable")[: _GLANCE // 2]
    even = np.linspace(0, len(counts) - 1, min(len(counts), _GLANCE // 2)).astype(np.int64)
    return np.unique(np.concatenate([frequent, even]))


def _by_most_rows(texts: Sequence[str], counts: Ints) -> Reading | None:
    parts = [_split(text) for text in texts]
    units = _units(parts, counts)
    if not units:
        return None
    unit = max(units, key=lambda name: units[name])
    bodies = [(part.body, n) for part, n in zip(parts, counts.tolist(), strict=True) if part and part.is_in(unit)]
    marks = {mark for mark in ".,' " if any(mark in body for body, _ in bodies)}
    scores = {}  # rows that each convention reads
    for decimal, thousands in _CONVENTIONS:
        if not thousands or thousands in marks:
            fits = Convention(decimal, thousands)._body()
            scores[decimal, thousands] = sum(n for body, n in bodies if fits.fullmatch(body))
    best = max(scores, key=lambda how: scores[how])
    if not scores[best]:
        return None
    rival = _RIVALS.get(best, best)
    is_ambiguous = rival != best and scores.get(rival) == scores[best]
    has_whole = any("." not in body and body.strip("0") for body, _ in bodies)
    if is_ambiguous and best == (".", "") and dimension(unit) == "money" and has_whole:
        best = rival  # amounts such as 950 and 1.200 are whole
    convention = Convention(*best, unit)
    fits = convention._body()
    numbers = np.array([convention._value(part, fits) for part in parts])
    share = float(counts[~np.isnan(numbers)].sum()) / int(counts.sum())
    return Reading(convention, numbers, share, _rival_units(units, unit), is_ambiguous)


def are_codes(texts: Sequence[str]) -> bool:
    """Whether texts are codes and no numbers: digits, all of one length, some with leading zeros.

    Examples
    --------
    >>> are_codes(["01307", "80331"]), are_codes(["01", "12"])
    (True, False)
    """
    length = len(texts[0])
    return (
        length >= _CODE_LENGTH
        and any(text[0] == "0" for text in texts)
        and all(len(text) == length and text.isdigit() for text in texts)
    )


class _Parts(NamedTuple):
    """A number in parts; the body is what is neither sign nor unit."""

    is_negative: bool
    unit: str
    body: str

    def is_in(self, unit: str) -> bool:
        """Whether it is in a unit; 0 is in all of them."""
        return are_same(self.unit, unit) or (self.unit == "" and not self.body.strip("0.,"))


def _plain(texts: Sequence[str]) -> Floats | None:
    """Numbers as most programs write them; None if any is not."""
    try:
        found = np.fromiter(map(float, texts), np.float64, len(texts))
    except ValueError:
        return None
    return None if np.isnan(found).any() or any("_" in text for text in texts) else found


def _split(text: str) -> _Parts | None:
    found = _NUMERAL.fullmatch(_NO_CENTS.sub("", _SPACES.sub(" ", text.translate(_MARKS)).strip()))
    if found is None or bool(found["open"]) != bool(found["close"]):
        return None
    head, tail = found["head"] or "", (found["tail"] or "").strip()
    signs = [found[name] for name in ("open", "first", "second", "last") if found[name]]
    if len(signs) > 1 or (head and tail):
        return None
    return _Parts(bool(signs) and signs[0] != "+", canonical(head or tail), found["body"])


def _units(parts: Sequence[_Parts | None], counts: Ints) -> dict[str, int]:
    """Number of rows with each unit; a unit that is not known counts only if nearly all rows have it."""
    rows: Counter[str] = Counter()
    different: Counter[str] = Counter()
    for part, n in zip(parts, counts.tolist(), strict=True):
        if part is not None:
            rows[part.unit] += n
            different[part.unit] += 1
    for unit in [unit for unit in rows if unit + "s" in rows and are_same(unit, unit + "s")]:
        rows[unit + "s"] += rows.pop(unit)
        different[unit + "s"] += different.pop(unit)
    enough = _NEARLY * int(counts.sum())
    return {
        unit: n
        for unit, n in rows.items()
        if unit == "" or dimension(unit) is not None or (n >= enough and different[unit] >= _FEWEST)
    }


def _rival_units(units: dict[str, int], unit: str) -> dict[str, int]:
    """The units that measure the same as the most frequent one, if there are several; or no unit."""
    measured = dimension(unit or max(units, key=lambda name: units[name] if name else 0))
    rivals = {name: n for name, n in units.items() if name == "" or dimension(name) == measured}
    return rivals if len(rivals) > 1 else {}
