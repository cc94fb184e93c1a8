"""Numbers in texts, by one convention for each column."""

import io

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkmix.columns import BadColumns, learn
from linkmix.columns.numerals import Convention, read_numerals

# The texts of a column, the numbers that they are, and how they are written: decimal mark, thousands, unit.
COLUMNS = [
    (["1", "2", "35"], [1, 2, 35], ("", "")),
    (["1.5", "-2", "+5"], [1.5, -2, 5], ("", "")),
    (["1e5", "2.5E-3", "7"], [1e5, 2.5e-3, 7], ("", "")),
    ([".5", "5.", "0"], [0.5, 5, 0], ("", "")),
    (["1.234", "5.678"], [1.234, 5.678], ("", "")),
    (["10,216.49", "3", "1,000,000"], [10216.49, 3, 1e6], (",", "")),
    (["1,234", "5,678", "12"], [1234, 5678, 12], (",", "")),
    (["1,23,456.5", "12,34,567", "1,234"], [123456.5, 1234567, 1234], (",", "")),
    (["10.216,49", "3,5", "1.000.000"], [10216.49, 3.5, 1e6], (".", "")),
    (["1.234.567", "1.234"], [1234567, 1234], (".", "")),
    (["3,5", "12,25", "7"], [3.5, 12.25, 7], ("", "")),
    (["1,234", "0,5"], [1.234, 0.5], ("", "")),
    (["1,234", "12,3456"], [1.234, 12.3456], ("", "")),
    (["1,000", "2,000", "3,00"], [1, 2, 3], ("", "")),
    (["0,123", "1,234"], [0.123, 1.234], ("", "")),
    ([",5", "1,5e3"], [0.5, 1500], ("", "")),
    (["1 234,5", "12 345 678,25"], [1234.5, 12345678.25], (" ", "")),
    (["1 234.5", "12"], [1234.5, 12], (" ", "")),
    (["1\u00a0234,5", "1\u202f234,5", "1\u2009234,5"], [1234.5, 1234.5, 1234.5], (" ", "")),
    (["1'234.50", "12"], [1234.5, 12], ("'", "")),
    (["1\u2019234.50", "12\u2019000"], [1234.5, 12000], ("'", "")),
    (["1'234,50", "12"], [1234.5, 12], ("'", "")),
    (["-1,234.5", "(1,234.5)", "1,234.5-", "\u22121,234.5"], [-1234.5] * 4, (",", "")),
    (["+1,234.5", "1,234.5"], [1234.5, 1234.5], (",", "")),
    (["€10,216", "€5", "-€1,000", "€-3"], [10216, 5, -1000, -3], (",", "€")),
    (["10.216,49 €", "5 €", "- 3 €"], [10216.49, 5, -3], (".", "€")),
    (["$5", "$ 6", "$1,200.00", "($7)"], [5, 6, 1200, -7], (",", "$")),
    (["US$ 5", "US$7"], [5, 7], ("", "US$")),
    (["EUR 5", "7 EUR", "8 eur"], [5, 7, 8], ("", "EUR")),
    (["CHF 1'250.00", "CHF 3"], [1250, 3], ("'", "CHF")),
    (["£3.50", "£12"], [3.5, 12], ("", "£")),
    (["¥1,000", "¥20"], [1000, 20], (",", "¥")),
    (["₹1,00,000", "₹50"], [100000, 50], (",", "₹")),
    (["R$ 1.234,56", "R$ 7,00"], [1234.56, 7], (".", "R$")),
    (["120 kr", "1 250 kr"], [120, 1250], (" ", "kr")),
    (["1.234 €", "678 €", "12.345.678 €"], [1234, 678, 12345678], (".", "€")),
    (["1.234 €", "678 €"], [1234, 678], (".", "€")),
    (["$3.459", "$3.499"], [3.459, 3.499], ("", "$")),
    (["JP¥1,200", "JP¥5"], [1200, 5], (",", "JP¥")),
    (["%16,5", "%20"], [16.5, 20], ("", "%")),
    (["12,- €", "1.250,-- €", "3,50 €"], [12, 1250, 3.5], (".", "€")),
    (["5 Euro", "7 euros"], [5, 7], ("", "€")),
    (["9%", "10 %", "-3.5%"], [9, 10, -3.5], ("", "%")),
    (["9,5 %", "10 %"], [9.5, 10], ("", "%")),
    (["9 percent", "12%"], [9, 12], ("", "%")),
    (["(5%)", "2%"], [-5, 2], ("", "%")),
    (["70.9 kg", "65kg", "0"], [70.9, 65, 0], ("", "kg")),
    (["70 KG", "65 Kg", "3 kg"], [70, 65, 3], ("", "kg")),
    (["150 lb", "160 lbs", "155 pounds"], [150, 160, 155], ("", "lb")),
    (["12 cm", "3.5 cm"], [12, 3.5], ("", "cm")),
    (["1,234 km", "15 km"], [1234, 15], (",", "km")),
    (["120 m²", "85 m²"], [120, 85], ("", "m²")),
    (["120 m2", "85m2"], [120, 85], ("", "m2")),
    (["6.5 l/100km", "7 l/100km"], [6.5, 7], ("", "l/100km")),
    (["21.5 °C", "-3 °C"], [21.5, -3], ("", "°C")),
    (["1 year", "2 years", "5 yrs"], [1, 2, 5], ("", "years")),
    (["1 hour", "2 hrs", "3 h"], [1, 2, 3], ("", "h")),
    (["90 min", "15 mins", "1 minute"], [90, 15, 1], ("", "min")),
    (["2.4 GHz", "5 GHz"], [2.4, 5], ("", "GHz")),
    (["16 GB", "8GB"], [16, 8], ("", "GB")),
    (["100 km/h", "50 km/h"], [100, 50], ("", "km/h")),
    (["120 mg/dl", "95 mg/dl"], [120, 95], ("", "mg/dl")),
    (['6"', '7.5"'], [6, 7.5], ("", "in")),
    (["4 stars", "1 star", "5 stars"], [4, 1, 5], ("", "stars")),
    (["3 apples", "4 apples", "10 apples"], [3, 4, 10], ("", "apples")),
    (["1.2k", "3k"], [1.2, 3], ("", "k")),
    (["01", "02", "12"], [1, 2, 12], ("", "")),
    (["\u0663", "\u0664"], [3, 4], ("", "")),
    (["1,234.", "5"], [1234, 5], (",", "")),
    (["1E+5 kg", "2 kg"], [1e5, 2], ("", "kg")),
]


@pytest.mark.parametrize(("texts", "numbers", "how"), COLUMNS, ids=lambda value: str(value)[:40])
def test_a_column_is_read_by_one_convention(texts, numbers, how):
    found = read_numerals(texts, np.ones(len(texts), dtype=int))
    np.testing.assert_array_equal(found.numbers, numbers)
    assert (found.convention.thousands, found.convention.unit) == how
    assert found.share == 1
    np.testing.assert_array_equal(found.convention.read(texts), numbers)  # as for new rows


# Texts that are no numbers: each is a column together with itself and two others like it.
NO_NUMBERS = [
    *("abc", "A34", "Room 12", "<5", ">=7", "0-200", "5 - 7", "5/7", "1:30", "2024-01-31", "1.2.3", "12a4", "1_000"),
    *(
        "--5",
        "+-5",
        "5--",
        "(5",
        "5)",
        "€",
        "kg",
        "$5€",
        "1,2,3",
        "1.234,5.6",
        "12,34.5,6",
        "0x1F",
        "½",
        "five",
        "1 2 3",
    ),
    *("a5", "5 of 7", "~5", "5?", "#5", "No. 5", "1,23", "e5", ".", "-", "1..5", "12,345,67", "555-1234"),
]


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_other_texts_are_no_numbers(text):
    assert np.isnan(Convention(".", ",").read([text])).all()


@pytest.mark.parametrize(
    ("texts", "offending"),
    [
        (["1,5", "2,5", "1.5"], "1.5"),
        (["1,234.5", "2,345.6", "1.234,5"], "1.234,5"),
        (["70 kg", "71 kg", "n/d"], "n/d"),
        (["70 kg", "71 kg", "150 lb"], "150 lb"),
        (["70 kg", "71 kg", "72"], "72"),
        (["9%", "8%", "0.07"], "0.07"),
        (["$5", "$6", "€7"], "€7"),
        (["1", "2", "?"], "?"),
        (["1", "2", "two"], "two"),
        (["10", "20", "<5"], "<5"),
    ],
)
def test_what_does_not_fit_is_named_with_its_row(texts, offending):
    with pytest.raises(BadColumns) as error:
        learn({"x": [*texts, *texts]})
    [problem] = error.value.problems
    assert problem.column == "x"
    assert problem.examples == ((offending, 2),)
    assert repr(offending) in str(error.value)


def test_different_units_are_said():
    with pytest.raises(BadColumns, match=r"different units, kg \(2\), lb \(2\)"):
        learn({"weight": ["70 kg", "71 kg", "150 lb", "160 lb"]})


def test_letters_that_are_units_of_different_things_are_levels():
    recipe = learn({"seat": ["1A", "2B", "1B", "2A"] * 10})
    assert recipe.level_names == {"seat": ("1A", "1B", "2A", "2B")}


def test_codes_with_leading_zeros_are_no_numbers():
    table = {"zip": ["01307", "80331", "10115"] * 10}
    recipe = learn(table)
    assert recipe.level_names == {"zip": ("01307", "10115", "80331")}
    assert recipe.remarks == ("'zip': digits with leading zeros are read as codes and not as numbers",)
    assert learn(table, {"zip": "number"})(table)[0] == 1307


@pytest.mark.parametrize(
    ("texts", "remark"),
    [
        (["1,234", "5,678", "9"], "'1,234' is 1234, and they could also be decimal marks in every row"),
        (["1.234 €", "678 €", "9 €"], "'1.234 €' is 1234, and they could also be decimal marks in every row"),
        (["$3.459", "$3.499"], "'$3.459' is 3.459, and they could also stand between thousands in every row"),
        (["1.234 kg", "2 kg"], "'1.234 kg' is 1.234, and they could also stand between thousands in every row"),
        (["1,234.5", "5,678"], "'x': read with a comma between thousands: '1,234.5' is 1234.5"),
        (["1,5", "2,25"], "'x': read with a decimal comma: '1,5' is 1.5"),
        (["5 kg", "6 kg"], "'x': read as numbers in kg"),
    ],
)
def test_what_is_assumed_is_remarked(texts, remark):
    assert remark in " ".join(learn({"x": [*texts, *texts, "0"]}).remarks)


def test_a_long_column_is_decided_by_all_of_its_rows():
    rng = np.random.default_rng(0)
    texts = [f"{number:,}" for number in rng.permutation(np.arange(1000, 9000))]
    assert read_numerals(texts, np.ones(len(texts), int)).convention == Convention(".", ",")
    assert read_numerals(texts, np.ones(len(texts), int)).is_ambiguous
    texts[4321] = "0,5"  # one row tells that commas are decimal marks
    found = read_numerals(texts, np.ones(len(texts), int))
    assert found.convention == Convention(",", "")
    assert (found.numbers.max(), found.numbers.min()) == (8.999, 0.5)
    texts[1234] = "free"
    found = read_numerals(texts, np.ones(len(texts), int))
    assert found.share == 7999 / 8000
    euros = [f"€{number:,.2f}" for number in rng.lognormal(7, 1, 5000)]
    np.testing.assert_allclose(
        read_numerals(euros, np.ones(5000, int)).numbers, [float(text[1:].replace(",", "")) for text in euros]
    )


def test_frequent_numbers_among_many_other_texts_are_seen():
    texts = [f"x{row}" for row in range(5000)]
    texts[2345] = "7"
    counts = np.ones(5000, int)
    counts[2345] = 10_000
    assert read_numerals(texts, counts).share == 10_000 / 14_999
    counts[2345] = 1
    assert read_numerals(texts, counts) is None


def test_usual_numbers_need_no_remark():
    assert learn({"x": ["1.5", "-2", "3e4"]}).remarks == ()


def test_new_rows_are_read_as_the_learned_ones():
    recipe = learn({"x": ["1,5", "2,5", "7,25"]})
    np.testing.assert_array_equal(recipe({"x": ["1,234", "8"]}).ravel(), [1.234, 8])
    np.testing.assert_array_equal(recipe({"x": [3.5, 4]}).ravel(), [3.5, 4])
    with pytest.raises(BadColumns, match=r"1 of 2 values is not a number with a decimal comma: '1\.5' \(row 1\)"):
        recipe({"x": ["2,5", "1.5"]})


@pytest.mark.parametrize(
    ("decimal", "thousands"), [(".", ","), (",", "."), (",", " "), (".", "'"), (",", ""), (".", "")]
)
@given(numbers=st.lists(st.floats(-1e9, 1e9).map(lambda number: round(number, 3)), min_size=1, max_size=30))
def test_pandas_reads_the_same(decimal, thousands, numbers):
    marks = str.maketrans({",": thousands, ".": decimal})
    texts = [f"{number:,.3f}".translate(marks) for number in numbers]
    options = {"thousands": thousands} if thousands else {}
    read = pd.read_csv(io.StringIO("x\n" + "\n".join(texts)), sep=";", decimal=decimal, **options)["x"]
    np.testing.assert_array_equal(Convention(decimal, thousands).read(texts), read)
    found = read_numerals(list(dict.fromkeys(texts)), np.ones(len(dict.fromkeys(texts)), dtype=int))
    if thousands and any(
        abs(number) >= 1e6 for number in numbers
    ):  # 1,234.567 is clear once it has two marks or a point
        np.testing.assert_array_equal(found.convention.read(texts), read)


NUMERAL = st.from_regex(r"[-+ ]?[0-9]{0,4}[.]?[0-9]{0,3}([eE][-+]?[0-9]{1,2})?[ kg]?", fullmatch=True)


@given(NUMERAL | st.text(max_size=8) | st.floats(allow_nan=False, allow_infinity=False).map(repr))
def test_what_python_reads_is_the_same_number(text):
    # A column that is not plain is read by another way, with the same result.
    found = Convention().read([text, "no number"])[0]
    try:
        expected = float(text)
    except ValueError:
        return  # more than Python reads is a number here, such as (5)
    if np.isfinite(expected) and "_" not in text:
        assert found == expected
