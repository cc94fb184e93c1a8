"""Numbers written as text: thousands separators, decimal commas, currencies, units, per cent.

All values of a column are read by one convention, the one that reads most of them, so that 1,234 is the same number in
every row.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from linkmix.basics.arrays import Floats, Ints

CURRENCIES = (
    *("US$", "A$", "C$", "HK$", "NZ$", "R$", "S$", "$", "€", "£", "¥", "₹", "₽", "₩", "₺", "₪", "₫", "฿", "₴", "₦"),
    *("AUD", "BRL", "CAD", "CHF", "CNY", "CZK", "DKK", "EUR", "GBP", "HKD", "HUF", "ILS", "INR", "JPY", "KRW", "MXN"),
    *("NOK", "NZD", "PLN", "RUB", "SEK", "SGD", "TRY", "USD", "ZAR", "Fr.", "Kč", "Rs.", "Rs", "kr.", "kr", "zł", "Ft"),
)
"""What may stand before a number, or after it."""
UNITS = frozenset(
    {
        *("%", "‰", "°", "°C", "°F", "K", "C", "F", "pp", "bp", "ppm", "ppb", "x"),
        *("kg", "g", "mg", "µg", "μg", "ug", "t", "lb", "lbs", "oz", "st", "stone", "tons", "tonnes"),
        *(
            "km",
            "m",
            "dm",
            "cm",
            "mm",
            "µm",
            "μm",
            "nm",
            "mi",
            "mile",
            "miles",
            "ft",
            "in",
            "inch",
            "inches",
            "yd",
            '"',
        ),
        *("km²", "m²", "cm²", "mm²", "ha", "km2", "m2", "cm2", "mm2", "sqm", "qm", "sqft", "acre", "acres", "sq ft"),
        *("m³", "cm³", "m3", "cm3", "l", "L", "dl", "dL", "cl", "ml", "mL", "µl", "gal", "fl oz", "pt", "cc"),
        *("km/h", "kmh", "kph", "mph", "m/s", "kn", "knots", "l/100km", "mpg", "rpm", "bpm", "fps"),
        *("s", "sec", "secs", "second", "seconds", "ms", "µs", "ns", "min", "mins", "minute", "minutes"),
        *("h", "hr", "hrs", "hour", "hours", "d", "day", "days", "Tage", "w", "week", "weeks"),
        *("mo", "month", "months", "y", "yr", "yrs", "year", "years", "Jahre", "a"),
        *(
            "B",
            "kB",
            "KB",
            "MB",
            "GB",
            "TB",
            "KiB",
            "MiB",
            "GiB",
            "bit",
            "bits",
            "bytes",
            "Mbit/s",
            "Mbps",
            "px",
            "dpi",
        ),
        *(
            "Hz",
            "kHz",
            "MHz",
            "GHz",
            "W",
            "kW",
            "MW",
            "GW",
            "Wh",
            "kWh",
            "MWh",
            "J",
            "kJ",
            "cal",
            "kcal",
            "V",
            "mV",
            "kV",
        ),
        *("A", "mA", "Ah", "mAh", "Ω", "hp", "PS", "Nm", "N", "kN", "Pa", "hPa", "kPa", "bar", "mbar", "psi", "mmHg"),
        *(
            "mg/dl",
            "mg/dL",
            "g/dl",
            "g/dL",
            "mmol/l",
            "mmol/L",
            "µmol/l",
            "U/l",
            "U/L",
            "IU/L",
            "g/l",
            "g/L",
            "mol",
            "dB",
        ),
        *("k", "K", "M", "bn", "m.", "Mio", "Mio.", "Mrd", "Mrd.", "Stück", "Stk", "St.", "pcs", "pc", "ea"),
    }
)
"""Units that are known. Others are accepted only if (almost) every value has the same one."""
MOSTLY = 0.5
"""A column with a larger share of numbers than this is numeric, and its other values are mistakes."""
_NEARLY = 0.9
_FEWEST = 3
_SPACES = re.compile("[\\s\u00a0\u2007\u2009\u202f]+")
_MARKS = str.maketrans({"\u2019": "'", "\u02bc": "'", "\u2212": "-", "\u2013": "-"})
_HEAD = "|".join(map(re.escape, sorted(CURRENCIES, key=len, reverse=True)))
_NUMERAL = re.compile(
    rf"(?P<open>\()?\s?(?P<sign>[-+])?\s?(?P<head>{_HEAD})?\s?(?P<second>[-+])?"
    r"(?P<body>(?:\d[\d.,' ]*|[.,]\d+)(?<! )(?:[eE][-+]?\d+)?)"
    r"\s?(?P<tail>[^\d\s()+\-][^\d()]{0,11}[²³23]?|%)??\s?(?P<last>-)?(?P<close>\))?"
)
_DECIMALS = {
    (".", ""): "",
    (".", ","): "a comma between thousands",
    (",", "."): "a decimal comma and points between thousands",
    (",", ""): "a decimal comma",
    (".", " "): "spaces between thousands",
    (",", " "): "a decimal comma and spaces between thousands",
    (".", "'"): "apostrophes between thousands",
    (",", "'"): "a decimal comma and apostrophes between thousands",
}
"""Conventions as decimal mark and mark between thousands, in the order in which they are preferred."""


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
        return _DECIMALS[self.decimal, self.thousands]

    def read(self, texts: Sequence[str]) -> Floats:
        """The numbers that texts stand for; NaN if a text is not a number of this convention.

        Examples
        --------
        >>> Convention(",", ".", "€").read(["€1.234,50", "2 €", "-3,5 €", "4", "0"]).tolist()
        [1234.5, 2.0, -3.5, nan, 0.0]
        """
        if self == Convention():
            plain = _plain(texts)
            if plain is not None:
                return plain
        parts = [_split(text) for text in texts]
        body = _body(self)
        return np.array([_value(part, self, body) for part in parts], dtype=np.float64)


@dataclass(frozen=True)
class _Parts:
    negative: bool
    unit: str
    body: str


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
        Number of rows with each unit, if there is more than one.
    ambiguous : bool
        Whether the texts could also be read with a decimal comma.
    """

    convention: Convention
    numbers: Floats
    share: float
    units: dict[str, int]
    ambiguous: bool = False


def read_numerals(texts: Sequence[str], counts: Ints) -> Reading | None:
    """Read texts as numbers, by the convention that most rows agree with.

    Parameters
    ----------
    texts : sequence of str
        Different texts, none of them missing.
    counts : ndarray of shape (n_texts,)
        Number of rows with each.

    Returns
    -------
    Reading or None
        None if no text is a number, or if all look like codes, such as 01307 for a place.

    Examples
    --------
    >>> found = read_numerals(["$1,234.50", "$2", "-$17"], np.array([1, 1, 1]))
    >>> found.numbers.tolist(), found.convention
    ([1234.5, 2.0, -17.0], Convention(decimal='.', thousands=',', unit='$'))
    """
    total = int(counts.sum())
    if not total or _are_codes(texts):
        return None
    plain = _plain(texts)
    if plain is not None:
        return Reading(Convention(), plain, 1.0, {})
    parts = [_split(text) for text in texts]
    units = _units(parts, counts)
    if not units:
        return None
    unit = max(units, key=lambda name: units[name])
    bodies = [
        (part.body, count) for part, count in zip(parts, counts.tolist(), strict=True) if part and _has(part, unit)
    ]
    known = [Convention(decimal, thousands, unit) for decimal, thousands in _DECIMALS]
    marks = set("".join(body for body, _ in bodies)) & set(".,' ")
    known = [one for one in known if not one.thousands or one.thousands in marks]
    scores = [sum(count for body, count in bodies if fits.fullmatch(body)) for fits in map(_body, known)]
    best = int(np.argmax(scores))
    if not scores[best]:
        return None
    convention, body = known[best], _body(known[best])
    numbers = np.array([_value(part, convention, body) for part in parts], dtype=np.float64)
    share = float(counts[~np.isnan(numbers)].sum()) / total
    other = Convention(",", "", unit)
    ambiguous = convention.thousands == "," and scores[best] == scores[known.index(other)]
    return Reading(convention, numbers, share, units if len(units) > 1 else {}, ambiguous)


def _plain(texts: Sequence[str]) -> Floats | None:
    """Numbers as Python and most programs write them; None if any is not."""
    try:
        found = np.fromiter(map(float, texts), np.float64, len(texts))
    except ValueError:
        return None
    return None if np.isnan(found).any() or any("_" in text for text in texts) else found


def _are_codes(texts: Sequence[str]) -> bool:
    """Whether all texts are digits of one length of four or more, and some begin with zero."""
    length = len(texts[0])
    return (
        length >= 4
        and any(text[0] == "0" for text in texts)
        and all(len(text) == length and text.isdigit() for text in texts)
        and len(texts) > 1
    )


def _split(text: str) -> _Parts | None:
    found = _NUMERAL.fullmatch(_SPACES.sub(" ", text.translate(_MARKS)).strip())
    if found is None or bool(found["open"]) != bool(found["close"]):
        return None
    head, tail = found["head"] or "", (found["tail"] or "").strip()
    signs = [sign for sign in (found["open"], found["sign"], found["second"], found["last"]) if sign]
    if len(signs) > 1 or (head and tail):
        return None
    return _Parts(bool(signs) and signs[0] != "+", head or tail, found["body"])


def _units(parts: Sequence[_Parts | None], counts: Ints) -> dict[str, int]:
    """Number of rows with each unit; a unit that is not known counts only if nearly all rows have it."""
    rows: Counter[str] = Counter()
    different: Counter[str] = Counter()
    for part, count in zip(parts, counts.tolist(), strict=True):
        if part is not None:
            rows[part.unit] += count
            different[part.unit] += 1
    total = int(counts.sum())
    return {
        unit: n
        for unit, n in rows.items()
        if unit == "" or unit in UNITS or unit in CURRENCIES or (n >= _NEARLY * total and different[unit] >= _FEWEST)
    }


def _has(part: _Parts, unit: str) -> bool:
    return part.unit == unit or (part.unit == "" and not part.body.strip("0.,"))


def _body(convention: Convention) -> re.Pattern[str]:
    decimal, thousands = re.escape(convention.decimal), re.escape(convention.thousands)
    whole = r"\d+"
    if thousands:
        indian = rf"|[1-9]\d?(?:{thousands}\d\d)+{thousands}\d{{3}}" if convention.thousands == "," else ""
        whole = rf"(?:\d+|[1-9]\d{{0,2}}(?:{thousands}\d{{3}})+{indian})"
    return re.compile(rf"(?:{whole}(?:{decimal}\d*)?|{decimal}\d+)(?:[eE][-+]?\d+)?")


def _value(part: _Parts | None, convention: Convention, body: re.Pattern[str]) -> float:
    if part is None or not _has(part, convention.unit) or not body.fullmatch(part.body):
        return np.nan
    text = part.body.replace(convention.thousands, "") if convention.thousands else part.body
    number = float(text.replace(convention.decimal, "."))
    return -number if part.negative else number
