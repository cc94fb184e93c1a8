"""Dates and times of day as kinds of columns.

A date becomes its days since 1970. Month, weekday and hour are added, each as a point on a circle, where rows are
clearly unevenly spread over them and the dates cover them several times: an even spread tells nothing apart unless
classes cancel exactly, and two useless numbers cost more than they could gain.
"""

from dataclasses import dataclass

import numpy as np

from linkmix.basics.arrays import Floats, Ints
from linkmix.columns.dates import CLOCK, DIGITS, days_of_digits, parse_dates
from linkmix.columns.problems import SHOWN, Unfit
from linkmix.columns.values import Clock, Moments, Numbers, Texts, Values, what_it_is, written

PARTS = {"month": 12, "weekday": 7, "hour": 24}
"""Parts of dates, and how many values each has."""
_DAYS = {"month": 365.25, "weekday": 7.0, "hour": 1.0}
_TIMES = 2
"""How often dates must cover all values of a part."""
_UNEVEN = 0.1
"""Chi-square statistic by rows from which on rows are unevenly spread: that of 1 + 0.45 cos, or of working days."""
_CHANCE = 1e-3
_HALF_A_DAY = 12.0


@dataclass(frozen=True)
class Date:
    """A date: days since 1970, and parts of it on circles.

    Attributes
    ----------
    format : str
        How it is written in texts; nothing if the table has dates and no texts.
    parts : tuple of str
        Which of month, weekday and hour are added.
    """

    format: str = ""
    parts: tuple[str, ...] = ()

    @property
    def levels(self) -> tuple[int, ...]:
        """Numbers alone."""
        return (0,) * (1 + 2 * len(self.parts))

    @property
    def words(self) -> str:
        """The kind, and its parts."""
        return "date" + (f", with {' and '.join(self.parts)}" if self.parts else "")

    def names(self, column: str) -> tuple[str, ...]:
        """The name of the column, and sine and cosine of each part."""
        return (column, *(f"{column} ({part}, {of})" for part in self.parts for of in ("sine", "cosine")))

    def __call__(self, values: Values, folder: str) -> Floats:
        """Days since 1970, and sine and cosine of each part."""
        moments = as_moments(values, self.format)
        circles = [_circle(part_of(moments.local, part), PARTS[part]) for part in self.parts]
        return np.column_stack([moments.instants, *circles])


@dataclass(frozen=True)
class TimeOfDay:
    """A time of day: its hours, or a point on a circle if they span more than half a day.

    Attributes
    ----------
    is_circle : bool
        Whether it is a point on a circle.
    """

    is_circle: bool = False

    words = "time of day"

    @property
    def levels(self) -> tuple[int, ...]:
        """Numbers alone."""
        return (0, 0) if self.is_circle else (0,)

    def names(self, column: str) -> tuple[str, ...]:
        """The name of the column, or sine and cosine."""
        return (f"{column} (sine)", f"{column} (cosine)") if self.is_circle else (column,)

    def __call__(self, values: Values, folder: str) -> Floats:
        """Hours, or sine and cosine."""
        hours = as_clock(values).hours
        return _circle(hours, 24) if self.is_circle else hours[:, None]


def as_moments(values: Values, format: str) -> Moments:
    """Values as dates, texts by a format."""
    match values:
        case Moments():
            return values
        case Texts() if format:
            found = values.spread(_parsed(values, format, "dates"))
            return Moments(found[:, 0], found[:, 1])
        case Numbers() if format == DIGITS:
            days = days_of_digits(values.numbers)
            if days is not None:
                return Moments(days, days)
            wrong = [row for row, number in enumerate(values.numbers.tolist()) if _is_no_date(number)]
            examples = [(written(float(values.numbers[row])), row) for row in wrong[:SHOWN]]
            raise Unfit(f"{len(wrong)} numbers are not dates such as 20240131", "correct them", examples)
    raise Unfit(f"holds {what_it_is(values)}, and no dates", "give dates, or leave the column out")


def as_clock(values: Values) -> Clock:
    """Values as times of day."""
    match values:
        case Clock():
            return values
        case Texts():
            return Clock(values.spread(_parsed(values, CLOCK, "times of day"))[:, 0])
    raise Unfit(f"holds {what_it_is(values)}, and no times of day", "give times such as 08:30, or leave the column out")


def parts_that_help(moments: Moments) -> tuple[str, ...]:
    """The parts of dates that are worth columns of their own.

    Examples
    --------
    >>> working_days = np.array([day for day in range(140) if day % 7 not in (2, 3)], dtype=float)  # day 0: Thursday
    >>> parts_that_help(Moments(working_days, working_days))
    ('weekday',)
    """
    known = moments.local[~np.isnan(moments.local)]
    span = float(np.ptp(known)) if len(known) else 0.0
    return tuple(
        part
        for part, n in PARTS.items()
        if span >= _TIMES * _DAYS[part] and _is_uneven(np.floor(part_of(known, part)).astype(np.int64), n)
    )


def part_of(local: Floats, part: str) -> Floats:
    """Month from 0, weekday from 0 for Monday, or hour of local times in days since 1970; NaN stays NaN."""
    match part:
        case "hour":
            return np.asarray(local % 1 * 24)
        case "weekday":
            return np.asarray((np.floor(local) + 3) % 7)  # 1970 began on a Thursday
    known = ~np.isnan(local)
    months = np.full(len(local), np.nan)
    months[known] = np.floor(local[known]).astype("M8[D]").astype("M8[M]").astype(np.int64) % 12
    return months


def _is_uneven(values: Ints, n: int) -> bool:
    counts = np.bincount(values, minlength=n)
    if np.count_nonzero(counts) < 2:
        return False
    from scipy.special import chdtrc  # late: it takes longer than all the rest

    even = counts.sum() / n
    statistic = float(((counts - even) ** 2).sum() / even)
    return statistic >= _UNEVEN * counts.sum() and bool(chdtrc(n - 1, statistic) < _CHANCE)


def _circle(values: Floats, n: int) -> Floats:
    """Points (n, 2) on a circle of n steps."""
    angle = 2 * np.pi * values / n
    return np.column_stack([np.sin(angle), np.cos(angle)])


def spans_more_than_half_a_day(clock: Clock) -> bool:
    """Whether times of day are better seen on a circle."""
    return bool(np.nanmax(clock.hours) - np.nanmin(clock.hours) > _HALF_A_DAY)


def not_dates(values: Texts, wrong: Ints, format: str, what: str = "dates") -> Unfit:
    """What to say of a column of dates with texts that are none."""
    n_wrong, n_all = int(values.counts[wrong].sum()), int(values.counts.sum())
    are, them = (f"is not one of the {what}", "it") if n_wrong == 1 else (f"are not {what}", "them")
    return Unfit(
        f"{n_wrong} of {n_all} values {are} written as {format}",
        f"correct {them}, name {them} as missing, or read the column as a category",
        values.first_rows(wrong.tolist())[:SHOWN],
    )


def _parsed(values: Texts, format: str, what: str) -> Floats:
    found = parse_dates(values.texts, format)
    wrong = np.flatnonzero(np.isnan(found[:, 0]))
    if len(wrong):
        raise not_dates(values, wrong, format, what)
    return found


def _is_no_date(number: float) -> bool:
    return not np.isnan(number) and days_of_digits(np.array([number])) is None
