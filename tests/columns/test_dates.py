"""Dates and times, as values and as texts."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkmix.columns import BadColumns, describe, learn
from linkmix.columns.dates import read_dates


def day(year, month, date, hour=0.0):
    return (dt.date(year, month, date) - dt.date(1970, 1, 1)).days + hour / 24


# The texts of a column, the days that they are, and their format.
COLUMNS = [
    (["2024-01-31", "2023-12-01"], [day(2024, 1, 31), day(2023, 12, 1)], "year-month-day"),
    (["2024-1-3", "2023-12-01"], [day(2024, 1, 3), day(2023, 12, 1)], "year-month-day"),
    (["2024-01-31T12:00:00", "2024-01-31 06:00"], [day(2024, 1, 31, 12), day(2024, 1, 31, 6)], "year-month-day"),
    (
        ["2024-01-31T12:00:00Z", "2024-01-31T12:00+02:00"],
        [day(2024, 1, 31, 12), day(2024, 1, 31, 10)],
        "year-month-day",
    ),
    (["2024-01-31T12:00:00.250-0530"], [day(2024, 1, 31, 17.5) + 0.25 / 86400], "year-month-day"),
    (["2024/01/31"], [day(2024, 1, 31)], "year/month/day"),
    (["2024.01.31"], [day(2024, 1, 31)], "year.month.day"),
    (["31.1.2024", "01.12.2023"], [day(2024, 1, 31), day(2023, 12, 1)], "day.month.year"),
    (["31. 1. 2024"], [day(2024, 1, 31)], "day.month.year"),
    (["31.01.2024 18:00"], [day(2024, 1, 31, 18)], "day.month.year"),
    (["12/31/2024", "01/02/2024"], [day(2024, 12, 31), day(2024, 1, 2)], "month/day/year"),
    (["31/12/2024", "01/02/2024"], [day(2024, 12, 31), day(2024, 2, 1)], "day/month/year"),
    (["1/2/2024", "3/4/2024"], [day(2024, 1, 2), day(2024, 3, 4)], "month/day/year"),
    (["1/2/2024 6:00 PM", "3/4/2024 12:00 am"], [day(2024, 1, 2, 18), day(2024, 3, 4)], "month/day/year"),
    (["31-12-2024", "01-02-2024"], [day(2024, 12, 31), day(2024, 2, 1)], "day-month-year"),
    (["12-31-2024", "01-02-2024"], [day(2024, 12, 31), day(2024, 1, 2)], "month-day-year"),
    (["3 Jan 2024", "14 August 2023"], [day(2024, 1, 3), day(2023, 8, 14)], "day name year"),
    (["3. März 2024", "14. Dezember 2023"], [day(2024, 3, 3), day(2023, 12, 14)], "day name year"),
    (
        ["3 janvier 2024", "14 août 2023", "1er mai 2023"],
        [day(2024, 1, 3), day(2023, 8, 14), day(2023, 5, 1)],
        "day name year",
    ),
    (["lunes, 5 de agosto de 2021"], [day(2021, 8, 5)], "day name year"),
    (["terça-feira, 16 de novembro de 2021"], [day(2021, 11, 16)], "day name year"),
    (["torsdag den 19. maj 2022"], [day(2022, 5, 19)], "day name year"),
    (["15 października 2022"], [day(2022, 10, 15)], "day name year"),
    (["2017年10月21日"], [day(2017, 10, 21)], "year年month月day日"),
    (["03-Jan-2024"], [day(2024, 1, 3)], "day name year"),
    (["Wed, 03 Jan 2024 12:00:00 +0000"], [day(2024, 1, 3, 12)], "day name year"),
    (["Jan 3, 2024", "August 14, 2023"], [day(2024, 1, 3), day(2023, 8, 14)], "name day year"),
    (["Sept. 3rd 2024"], [day(2024, 9, 3)], "name day year"),
    (["31.12.99", "01.02.24"], [day(1999, 12, 31), day(2024, 2, 1)], "day.month.short year"),
    (["12/31/99", "1/2/24"], [day(1999, 12, 31), day(2024, 1, 2)], "month/day/short year"),
    (["03-Jan-24"], [day(2024, 1, 3)], "day name short year"),
    (["2024-01", "2023-12"], [day(2024, 1, 1), day(2023, 12, 1)], "year-month"),
    (["Jan 2024", "December 2023"], [day(2024, 1, 1), day(2023, 12, 1)], "name year"),
    (["2024-02-29"], [day(2024, 2, 29)], "year-month-day"),
]


@pytest.mark.parametrize(("texts", "days", "format"), COLUMNS, ids=lambda value: str(value)[:40])
def test_a_column_is_read_by_one_format(texts, days, format):
    found = read_dates(texts, np.ones(len(texts), dtype=int))
    np.testing.assert_allclose(found.days[:, 0], days, rtol=0, atol=1e-9)
    assert (found.format, found.share) == (format, 1)


@pytest.mark.parametrize(
    "text",
    [
        *("2023-02-29", "2024-13-01", "2024-00-10", "32.1.2024", "31.4.2024", "2024-01-31T25:00", "2024-01-31 12:60"),
        *("Foo 3, 2024", "0999-01-01", "3000-01-01", "1.2.24", "2019-20", "soon", "13:00 PM", "24:00", "2024-01-31x"),
    ],
)
def test_other_texts_are_no_dates(text):
    assert read_dates([text], np.ones(1, dtype=int)) is None


@given(st.lists(st.datetimes(dt.datetime(1000, 1, 1), dt.datetime(2999, 12, 31)), min_size=1, max_size=10))
def test_pandas_reads_the_same_iso_dates(moments):
    texts = sorted({moment.isoformat() for moment in moments})
    expected = (np.array(texts, dtype="M8[us]") - np.datetime64("1970-01-01")) / np.timedelta64(1, "D")
    np.testing.assert_allclose(read_dates(texts, np.ones(len(texts), int)).days[:, 0], expected, rtol=1e-15, atol=1e-10)


STAMPS = [dt.datetime(2024, 1, 31, 12), dt.datetime(2023, 12, 1, 6, 30), None, dt.datetime(1969, 12, 31)]
EXPECTED = [day(2024, 1, 31, 12), day(2023, 12, 1, 6.5), np.nan, -1]


@pytest.mark.parametrize(
    "column",
    [
        STAMPS,
        np.array(STAMPS, dtype="M8[s]"),
        pd.Series(STAMPS),
        pd.Series(STAMPS, dtype="timestamp[us][pyarrow]"),
        pd.Series(STAMPS, dtype=object),
        pl.Series(STAMPS),
        pa.array(STAMPS),
        pa.chunked_array([STAMPS[:2], STAMPS[2:]], type=pa.timestamp("ms")),
        [None if stamp is None else stamp.isoformat() for stamp in STAMPS],
        pl.Series([None if stamp is None else str(stamp) for stamp in STAMPS]),
    ],
    ids=lambda column: f"{type(column).__module__}.{getattr(column, 'dtype', '')}",
)
def test_all_packages_give_the_same_days(column):
    recipe = learn({"when": column})
    assert describe(recipe) == [("when", "date")]
    np.testing.assert_allclose(recipe({"when": column}).ravel(), EXPECTED, rtol=0, atol=1e-9)


@pytest.mark.parametrize("column", [[dt.date(2024, 1, 31), None], pl.Series([dt.date(2024, 1, 31), None])])
def test_dates_without_times(column):
    table = {"when": column, "x": [1.0, 2.0]}
    assert learn(table, {"x": "number"}).left_out == {"when": "the same value in every row that has one"}
    more = {"when": [dt.date(2024, 1, 31), dt.date(2024, 2, 1)]}
    np.testing.assert_array_equal(learn(more)(more).ravel(), [day(2024, 1, 31), day(2024, 2, 1)])


def zoned():
    zone = "Europe/Berlin"
    hours = pd.date_range("2024-03-20 08:00", periods=40, freq="24h")  # over the change to summer time
    return pd.Series(hours).dt.tz_localize(zone)


@pytest.mark.parametrize("package", ["pandas", "arrow", "polars", "objects", "texts"])
def test_instants_are_in_utc_and_parts_by_local_clocks(package):
    column = zoned()
    made = {
        "pandas": lambda: column,
        "arrow": lambda: pa.array(column),
        "polars": lambda: pl.from_pandas(column),
        "objects": lambda: column.tolist(),
        "texts": lambda: [stamp.isoformat() for stamp in column],
    }[package]()
    X = learn({"when": made}, {"when": "date+hour"})({"when": made})
    utc = (column.dt.tz_convert("UTC").dt.tz_localize(None) - pd.Timestamp(0)) / pd.Timedelta(days=1)
    np.testing.assert_allclose(X[:, 0], utc, rtol=0, atol=1e-9)
    angle = 2 * np.pi * 8 / 24  # 8 o'clock throughout
    np.testing.assert_allclose(X[:, 1:], np.tile([np.sin(angle), np.cos(angle)], (40, 1)), atol=1e-6)


def moments(n, *, hours=None, weekdays=None, months=None, days=3000, seed=0):
    rng = np.random.default_rng(seed)
    stamps = pd.Series(pd.Timestamp("2015-01-01") + pd.to_timedelta(rng.random(20 * n) * days * 86400, unit="s"))
    for values, wanted in ((stamps.dt.hour, hours), (stamps.dt.day_of_week, weekdays), (stamps.dt.month, months)):
        stamps = stamps[values.isin(wanted)] if wanted else stamps
    return stamps[:n].reset_index(drop=True)


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (moments(400), "date"),
        (moments(400, hours=range(9, 17)), "date, with hour"),
        (moments(400, weekdays=range(5)), "date, with weekday"),
        (moments(400, months=[6, 7, 8, 12]), "date, with month"),
        (moments(400, weekdays=[5, 6], hours=[9, 10, 20]), "date, with weekday and hour"),
        (moments(400, months=[6, 7, 8], days=500), "date"),  # less than two years
        (moments(15, weekdays=range(5)), "date"),  # too few rows to tell
        (moments(400).dt.floor("D"), "date"),  # midnight throughout is no hour
    ],
)
def test_parts_are_added_where_rows_are_uneven(column, words):
    assert describe(learn({"when": column})) == [("when", words)]


def test_parts_on_request_are_points_on_circles():
    stamps = moments(50)
    recipe = learn({"when": stamps}, {"when": "date+hour+month+weekday"})
    X = recipe({"when": stamps})
    assert recipe.names == (
        "when",
        *("when (month, sine)", "when (month, cosine)", "when (weekday, sine)", "when (weekday, cosine)"),
        *("when (hour, sine)", "when (hour, cosine)"),
    )
    assert set(recipe.owners) == {"when"}
    hour = stamps.dt.hour + stamps.dt.minute / 60 + (stamps.dt.second + stamps.dt.microsecond / 1e6) / 3600
    for place, (values, n) in enumerate([(stamps.dt.month - 1, 12), (stamps.dt.day_of_week, 7), (hour, 24)]):
        np.testing.assert_allclose(X[:, 1 + 2 * place], np.sin(2 * np.pi * values / n), atol=1e-5)
        np.testing.assert_allclose(X[:, 2 + 2 * place], np.cos(2 * np.pi * values / n), atol=1e-5)


def test_a_missing_date_has_no_parts():
    table = {"when": ["2024-01-31", None, "2024-02-01"]}
    assert np.isnan(learn(table, {"when": "date+month+weekday+hour"})(table)[1]).all()


def test_day_and_month_are_decided_by_the_whole_column():
    unclear = learn({"when": ["03/04/2024", "05/06/2024", "03/04/2024"]})
    assert unclear.remarks == (
        "'when': read as month/day/year: '03/04/2024' is 2024-03-04, and day and month could be exchanged in every row",
    )
    clear = learn({"when": ["03/04/2024", "25/06/2024", "03/04/2024"]})
    assert clear.remarks == ("'when': read as day/month/year: '03/04/2024' is 2024-04-03",)
    assert clear({"when": ["05/06/2024"]})[0, 0] == day(2024, 6, 5)  # as learned, though it could be in May
    assert learn({"when": ["2024-01-31", "2024-02-01"]}).remarks == ()


def test_what_is_no_date_is_named_with_its_row():
    with pytest.raises(BadColumns, match="1 of 4 values is not one of the dates written as year-month-day") as error:
        learn({"when": ["2024-01-31", "2024-02-30", "2024-03-01", "2024-03-02"]})
    assert error.value.problems[0].examples == (("2024-02-30", 1),)


def test_digits_that_are_dates():
    for column in (["20240131", "20240229", "20231224"], [20240131, 20240229, 20231224]):
        recipe = learn({"when": column})
        assert describe(recipe) == [("when", "date")]
        expected = [day(2024, 1, 31), day(2024, 2, 29), day(2023, 12, 24)]
        np.testing.assert_array_equal(recipe({"when": column}).ravel(), expected)
        assert "read as dates: 20231224 is 2023-12-24" in recipe.remarks[0]
        with pytest.raises(BadColumns, match="20240230"):
            recipe({"when": [20240131, 20240230]})
    assert describe(learn({"when": [20240131, 20240230, 20240130]})) == [("when", "number")]
    assert describe(learn({"when": [20240131, 20240229, 20231224]}, {"when": "number"})) == [("when", "number")]


def test_times_of_day():
    narrow = {"at": ["08:30", "12:15", None, "3:00 PM"]}
    recipe = learn(narrow)
    assert describe(recipe) == [("at", "time of day")]
    np.testing.assert_array_equal(recipe(narrow).ravel(), [8.5, 12.25, np.nan, 15])
    wide = {"at": [dt.time(23, 0), dt.time(1, 0), dt.time(12, 30)]}
    recipe = learn(wide)
    assert recipe.names == ("at (sine)", "at (cosine)")
    angle = 2 * np.pi * np.array([23, 1, 12.5]) / 24
    np.testing.assert_allclose(recipe(wide), np.column_stack([np.sin(angle), np.cos(angle)]))
    texts = {"at": ["23:00", "01:00:00", "12:30"]}
    np.testing.assert_allclose(recipe(texts), recipe(wide))


@pytest.mark.parametrize("make", [list, pd.Series, pl.Series, pa.array])
def test_durations_are_days(make):
    column = make([dt.timedelta(hours=36), None, dt.timedelta(days=2), dt.timedelta(0)])
    recipe = learn({"took": column})
    assert describe(recipe) == [("took", "number, in days")]
    np.testing.assert_array_equal(recipe({"took": column}).ravel(), [1.5, np.nan, 2, 0])


def test_dates_as_numbers_and_as_levels():
    table = {"when": [dt.date(2024, 1, 31), dt.date(2024, 2, 1), dt.date(2024, 1, 31)]}
    assert learn(table, {"when": "number"})(table)[0] == day(2024, 1, 31)
    assert learn(table, {"when": "category"}).level_names == {"when": ("2024-01-31", "2024-02-01")}


def test_a_date_is_no_number_for_a_model_of_numbers():
    recipe = learn({"x": [1.0, 2.0, 3.5]})
    with pytest.raises(BadColumns, match="'x': holds dates, and no numbers"):
        recipe({"x": [dt.date(2024, 1, 1)]})
    recipe = learn({"x": [dt.date(2024, 1, 1), dt.date(2024, 1, 2)]})
    with pytest.raises(BadColumns, match="'x': holds numbers, and no dates"):
        recipe({"x": [5.0]})
