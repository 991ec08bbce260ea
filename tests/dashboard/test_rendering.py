import pytest

from redis_kit.core.panels import Bars, Table
from redis_kit.dashboard.rendering import render


def heights(*values):
    return [(bar.y, bar.height) for bar in render(Bars("B", [("", value) for value in values]), {}).bars]


def test_bars_start_at_the_bottom_and_the_tallest_reaches_the_top():
    assert heights(1, 2, 4) == [("75.0", "25.0"), ("50.0", "50.0"), ("0.0", "100.0")]


def test_chart_without_values_is_empty():
    assert heights(0, 0) == [("100.0", "0.0")] * 2
    assert heights(-5, float("nan"), float("inf"), 2)[:3] == [("100.0", "0.0")] * 3
    assert render(Bars("B", []), {}).bars == []
    assert [render(Bars("B", [("", value)]), {}).flat for value in (0, -1, 1e-9)] == [True, True, False]


def test_small_value_beside_a_large_one_is_visible():
    assert heights(1, 1_000_000)[0] == ("99.5", "0.5")


def test_bars_are_side_by_side_inside_the_chart():
    drawn = render(Bars("B", [(str(n), n) for n in range(24)]), {})
    assert [bar.x for bar in drawn.bars] == [n * 10 + 1 for n in range(24)]
    assert (drawn.width, drawn.bar_width) == (240, 8)
    assert [label.text for label in drawn.labels] == ["0", "11", "23"]


def test_few_bars_all_have_labels_and_many_fill_the_page():
    few, many = (render(Bars("B", [(str(n), n) for n in range(count)]), {}) for count in (7, 100))
    assert [label.text for label in few.labels] == list("0123456")
    assert (few.pixels, many.pixels) == (280, 900)


def test_chart_keeps_the_newest_of_too_many_bars():
    drawn = render(Bars("B", [(str(n), n) for n in range(1000)]), {})
    assert (len(drawn.bars), drawn.bars[-1].label.text) == (400, "999")


def test_column_of_numbers_is_marked_in_its_header():
    drawn = render(Table("T", ("A", "B", "C", "D", "E"), [("x", 1, "a", 1, ""), ("y", 2.5, 2, None, "")]), {})
    assert [column.number for column in drawn.columns] == [False, True, False, True, False]


def test_row_of_another_length_than_the_header_is_an_error():
    for row in [("a",), ("a", 1, 2)]:
        with pytest.raises(ValueError, match="zip"):
            render(Table("T", ("A", "B"), [row]), {})


def test_other_content_is_an_error():
    with pytest.raises(TypeError, match="not str"):
        render("text", {})


def test_table_without_rows_shows_its_own_text():
    assert render(Table("T", ("A",), [], "No lock is held."), {}).empty.text == "No lock is held."
    assert render(Table("T", ("A",), []), {}).empty.text == "Nothing here."


def test_text_of_a_panel_is_whole():
    text = "Do this first, then that. " * 12
    assert render(Table("T", (), [], empty=text), {}).empty.text == text
