import pytest

from redis_kit.core.panels import Bars, HeatCell, HeatMap, LineChart, Table
from redis_kit.dashboard.rendering import render


def test_column_of_numbers_is_marked_in_its_header():
    drawn = render(Table("T", ("A", "B", "C", "D", "E"), [("x", 1, "a", 1, ""), ("y", 2.5, 2, None, "")]), {})
    assert [column.number for column in drawn.columns] == [False, True, False, True, False]
    assert [shown.number for _, shown in drawn.rows[1].cells] == [True, True, True, False]  # a dash stands below the 1


def test_row_of_another_length_than_the_header_is_an_error():
    for row in [("a",), ("a", 1, 2)]:
        with pytest.raises(ValueError, match="zip"):
            render(Table("T", ("A", "B"), [row]), {})


def test_other_content_is_an_error():
    with pytest.raises(TypeError, match=r"HeatMap.*not str"):
        render("text", {})


def test_table_without_rows_shows_its_own_text():
    assert render(Table("T", ("A",), [], "No lock is held."), {}).empty.text == "No lock is held."
    assert render(Table("T", ("A",), []), {}).empty.text == "Nothing here."


def test_text_of_a_panel_is_whole():
    text = "Do this first, then that. " * 12
    assert render(Table("T", (), [], empty=text), {}).empty.text == text


def data(chart):
    columns, rows = render(chart, {}).data
    return [column.text for column in columns], [(name.text, [value.text for value in values]) for name, values in rows]


def test_charts_have_a_table_of_their_data():
    assert data(Bars("B", [("a", 1), ("b", 2)])) == (["Bar", "Value"], [("a", ["1"]), ("b", ["2"])])
    lines = LineChart("L", ["a", "b"], [("one", [0, 4]), ("two", [1, None])])
    assert data(lines) == (["Label", "one", "two"], [("a", ["0", "1"]), ("b", ["4", "–"])])
    squares = HeatMap("H", ["Mon"], ["Jan"], [HeatCell(0, 0, "1 January", 3)])
    assert data(squares) == (["Square", "Value"], [("1 January", ["3"])])
