"""Dates and times written as text.

All values of a column are read by one format, the one that reads most of them: whether 03/04/2024 is in March or in
April is decided by the other rows.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache

import numpy as np

from linkmix.basics.arrays import Floats, Ints
from linkmix.columns.numerals import glance

FIRST_YEAR, LAST_YEAR = 1000, 2999
_PIVOT = 70
"""Two digits from here on are a year of the last century."""
_EPOCH = date(1970, 1, 1).toordinal()
_DAY_OF = r"(?P<d>\d{1,2})"
_MONTH_OF = r"(?P<m>\d{1,2})"
_YEAR_OF = r"(?P<y>\d{4})"
_NAME_OF = r"(?P<b>[^\W\d_]{3,12})\.?"
_SHORT = r"(?P<y>\d\d)"
_TIME = (
    r"(?P<H>\d{1,2}):(?P<M>\d\d)(?::(?P<S>\d\d)(?P<f>[.,]\d{1,9})?)?(?: ?(?P<p>[AaPp])\.?[Mm]\.?)?"
    r"(?: ?(?P<z>Z|UTC|GMT|[+-]\d\d:?(?:\d\d)?))?"
)
_WEEKDAY = r"(?:[^\W\d_]+(?:-feira)?\.?,? )?(?:den )?"
_OF = r"(?:[ -]|,? | de )"
_FORMATS = {
    "year-month-day": rf"{_YEAR_OF}-{_MONTH_OF}-{_DAY_OF}",
    "year/month/day": rf"{_YEAR_OF}/{_MONTH_OF}/{_DAY_OF}",
    "year.month.day": rf"{_YEAR_OF}\.{_MONTH_OF}\.{_DAY_OF}",
    "day.month.year": rf"{_DAY_OF}\. ?{_MONTH_OF}\. ?{_YEAR_OF}",
    "month/day/year": rf"{_MONTH_OF}/{_DAY_OF}/{_YEAR_OF}",
    "day/month/year": rf"{_DAY_OF}/{_MONTH_OF}/{_YEAR_OF}",
    "day-month-year": rf"{_DAY_OF}-{_MONTH_OF}-{_YEAR_OF}",
    "month-day-year": rf"{_MONTH_OF}-{_DAY_OF}-{_YEAR_OF}",
    "day name year": rf"{_WEEKDAY}{_DAY_OF}(?:st|nd|rd|th|er|\.)?{_OF}{_NAME_OF}{_OF}{_YEAR_OF}",
    "name day year": rf"{_WEEKDAY}{_NAME_OF} {_DAY_OF}(?:st|nd|rd|th)?,? {_YEAR_OF}",
    "day.month.short year": rf"(?P<d>\d\d)\.(?P<m>\d\d)\.{_SHORT}",
    "month/day/short year": rf"{_MONTH_OF}/{_DAY_OF}/{_SHORT}",
    "day/month/short year": rf"{_DAY_OF}/{_MONTH_OF}/{_SHORT}",
    "year-month": rf"{_YEAR_OF}-(?P<m>\d\d)",
    "name year": rf"{_NAME_OF} {_YEAR_OF}",
    "day name short year": rf"{_DAY_OF}-{_NAME_OF}-{_SHORT}",
    "year年month月day日": rf"{_YEAR_OF}年{_MONTH_OF}月{_DAY_OF}日",
    "yearmonthday": r"(?P<y>\d{4})(?P<m>\d\d)(?P<d>\d\d)",
}
"""Formats by their names. Of those that read as many rows the first is taken."""
DIGITS = "yearmonthday"
"""Name of the format of digits alone, which are also a number."""
CLOCK = "hour:minute"
"""Name of the format of times of day."""
_PATTERNS = {name: re.compile(rf"{pattern}(?:(?:T|,? ){_TIME})?") for name, pattern in _FORMATS.items()} | {
    CLOCK: re.compile(_TIME)
}
_TWINS = {"month/day/year": "day/month/year", "month/day/short year": "day/month/short year"}
_TWINS |= {"day-month-year": "month-day-year"}
_MONTH_NAMES = (
    "ene enero gen gennaio jan janeiro januar januari january janv janvier jän jänner sty styczeń stycznia",
    "feb febbraio febrero februar februari february fev fevereiro févr février lut lutego luty",
    "maart mar marca march mars marts marzec marzo março mrt mrz mär märz",
    "abr abril apr april aprile avr avril kwi kwiecień kwietnia",
    "mag maggio mai maio maj maja may mayo mei",
    "cze czerwca czerwiec giu giugno juin jun june junho juni junio",
    "juil juillet jul julho juli julio july lip lipca lipiec lug luglio",
    "ago agosto août aug august augusti augustus sie sierpień sierpnia",
    "sep sept september septembre septiembre set setembro settembre wrz wrzesień września",
    "oct october octobre octubre okt oktober ott ottobre out outubro paź październik października",
    "lis listopad listopada nov november novembre novembro noviembre",
    "dec december des desember dez dezember dezembro dic dicembre diciembre déc décembre gru grudnia grudzień",
)
"""In Danish, Dutch, English, French, German, Italian, Norwegian, Polish, Portuguese, Spanish and Swedish."""
_MONTHS = {name: number for number, names in enumerate(_MONTH_NAMES, 1) for name in names.split()}


@dataclass(frozen=True, eq=False)
class DateReading:
    """What the texts of a column come to as dates.

    Attributes
    ----------
    format : str
        How they are written.
    days : ndarray of shape (n_texts, 2)
        Days since 1970 as instants and by local clocks; NaN for texts that are not dates of this format. Of times of
        day, the hours.
    share : float
        Share of the rows whose texts are dates.
    is_ambiguous : bool
        Whether day and month could be exchanged.
    """

    format: str
    days: Floats
    share: float
    is_ambiguous: bool = False


def read_dates(texts: Sequence[str], counts: Ints) -> DateReading | None:
    """Read texts as dates, by the format that most rows agree with.

    Parameters
    ----------
    texts : sequence of str
        Different texts, none of them missing.
    counts : ndarray of shape (n_texts,)
        Number of rows with each.

    Returns
    -------
    DateReading or None
        None if no text is a date.

    Examples
    --------
    >>> found = read_dates(["03/04/2024", "25/04/2024"], np.array([1, 1]))
    >>> found.format, found.days[:, 0].tolist()
    ('day/month/year', [19816.0, 19838.0])
    """
    some = [texts[place] for place in glance(counts)]
    best, found, scores = "", np.empty((0, 2)), {"": 0}
    for name in _PATTERNS:
        if np.isnan(parse_dates(some, name)[:, 0]).all():
            continue
        days = parse_dates(texts, name)
        scores[name] = int(counts[~np.isnan(days[:, 0])].sum())
        if scores[name] > scores[best]:
            best, found = name, days
    if not best:
        return None
    is_ambiguous = scores.get(_TWINS.get(best, ""), 0) == scores[best]
    return DateReading(best, found, scores[best] / int(counts.sum()), is_ambiguous)


def parse_dates(texts: Sequence[str], format: str) -> Floats:
    """Instants and local times (n_texts, 2) of texts in a format, in days since 1970; NaN where a text is no date.

    Examples
    --------
    >>> parse_dates(["1970-01-02 12:00+02:00", "soon"], "year-month-day").round(4).tolist()
    [[1.4167, 1.5], [nan, nan]]
    """
    fullmatch = _PATTERNS[format].fullmatch
    day_of, hours_of = cache(_day), cache(_hours)  # days repeat, and so do times
    found = []
    for text in texts:
        match = fullmatch(text)
        if match is None:
            found.append((np.nan, np.nan))
            continue
        part = match.groupdict()
        hours = hours_of(part["H"], part["M"], part["S"], part["f"], part["p"]) if part["H"] else 0.0
        if format == CLOCK:
            found.append((hours, hours))
            continue
        local = day_of(part["y"], part.get("b") or part["m"], part.get("d") or "1") + hours / 24
        found.append((local - _offset(part["z"]), local))
    return np.array(found).reshape(-1, 2)


def days_of_digits(numbers: Floats) -> Floats | None:
    """Days since 1970 of numbers such as 20240131; None if any is not a date from 1900 to 2100.

    Examples
    --------
    >>> days_of_digits(np.array([19700102.0, np.nan])).tolist()
    [1.0, nan]
    >>> days_of_digits(np.array([19700102.0, 19701302.0]))
    """
    known = numbers[~np.isnan(numbers)]
    if not ((known >= 19000101) & (known <= 21001231) & (known == np.round(known))).all():
        return None
    whole = known.astype(np.int64)
    year, month, day = whole // 10_000, whole // 100 % 100, whole % 100
    if not ((month >= 1) & (month <= 12) & (day >= 1)).all():
        return None
    months = ((year - 1970) * 12 + month - 1).astype("M8[M]")
    dates = months.astype("M8[D]") + (day - 1)
    if (dates.astype("M8[M]") != months).any():
        return None
    days = np.full(len(numbers), np.nan)
    days[~np.isnan(numbers)] = dates.astype(np.float64)
    return days


def _day(year: str, month: str, day: str) -> float:
    """Days since 1970; NaN if there is no such day."""
    full_year = int(year)
    if len(year) == 2:
        full_year += 1900 if full_year >= _PIVOT else 2000
    number = int(month) if month.isdigit() else _MONTHS.get(month.lower(), 0)
    try:
        found = date(full_year, number, int(day)).toordinal() - _EPOCH
    except ValueError:
        return np.nan
    return float(found) if FIRST_YEAR <= full_year <= LAST_YEAR else np.nan


def _hours(hour: str, minute: str, second: str | None, fraction: str | None, half: str | None) -> float:
    """Hours of a time of day; NaN if there is no such time."""
    hours, minutes, seconds = int(hour), int(minute), int(second or 0)
    if half:
        if not 1 <= hours <= 12:
            return np.nan
        hours = hours % 12 + (12 if half in "Pp" else 0)
    if hours > 23 or minutes > 59 or seconds > 60:
        return np.nan
    exact = seconds + (float("0." + fraction[1:]) if fraction else 0.0)
    return hours + minutes / 60 + exact / 3600


def _offset(zone: str | None) -> float:
    """Days that local clocks are ahead."""
    if not zone or zone in ("Z", "UTC", "GMT"):
        return 0.0
    digits = zone[1:].replace(":", "")
    minutes = int(digits[:2]) * 60 + int(digits[2:] or 0)
    return (-minutes if zone[0] == "-" else minutes) / 1440
