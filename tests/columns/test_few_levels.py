import pytest

from linkmix.columns import BadColumns, learn


def test_few_values_that_are_mostly_numbers_are_levels():
    cylinders = ["4"] * 40 + ["6"] * 30 + ["8"] * 20 + ["rotary"]
    recipe = learn({"cylinders": cylinders})
    assert recipe.level_names["cylinders"][:3] == ("4", "6", "8")
    assert "'cylinders': has numbers and also 'rotary', so it is read as a category" in recipe.remarks


@pytest.mark.parametrize("values", [["4"] * 20 + ["x"], [*map(str, range(60)), "x"], ["4", "6"] * 99 + ["x"]])
def test_a_word_among_few_rows_or_many_numbers_is_a_mistake(values):
    with pytest.raises(BadColumns, match="'x'"):
        learn({"cylinders": values})
