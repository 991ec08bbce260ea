"""Content as it is drawn: tables, and the geometry of charts."""

from datetime import timedelta

import pytest

from redis_kit.core.panels import Bars, Estimate, HeatCell, HeatMap, LineChart, StackedBars, Table
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


def heights(*values):
    drawn = render(Bars("B", [("", value) for value in values]), {})
    return [(piece.y, piece.height) for bar in drawn.marks for piece in bar.pieces]


def test_bars_start_at_the_bottom_and_the_tallest_reaches_the_top():
    assert heights(1, 2, 4) == [("75.0", "25.0"), ("50.0", "50.0"), ("0.0", "100.0")]


def test_chart_without_values_is_empty():
    assert heights(0, 0) == []
    assert heights(-5, float("nan"), float("inf"), 2) == [("0.0", "100.0")]
    assert render(Bars("B", []), {}).marks == []
    assert [render(Bars("B", [("", value)]), {}).flat for value in (0, -1, 1e-9)] == [True, True, False]


def test_small_value_beside_a_large_one_is_visible():
    assert heights(1, 1_000_000)[0] == ("99.5", "0.5")


def test_bars_are_side_by_side_inside_the_chart():
    drawn = render(Bars("B", [(str(n), n) for n in range(24)]), {})
    assert [bar.x for bar in drawn.marks] == [n * 10 + 1 for n in range(24)]
    assert (drawn.width, drawn.bar_width) == (240, 8)
    assert [label.text for label in drawn.drawn_labels] == ["0", "11", "23"]


def test_few_bars_all_have_labels_and_many_fill_the_page():
    few, many = (render(Bars("B", [(str(n), n) for n in range(count)]), {}) for count in (7, 100))
    assert [label.text for label in few.drawn_labels] == list("0123456")
    assert (few.pixels, many.pixels) == (280, 900)


def test_long_labels_have_room_and_a_chart_with_them_stands_alone():
    short, long = (render(Bars("B", [(name * length, 1) for name in "abcdefg"]), {}) for length in (1, 14))
    assert (short.pixels, short.half) == (280, True)
    assert (long.pixels, long.half) == (826, False)
    assert render(Bars("B", [(str(n) * 14, n) for n in range(48)]), {}).half  # three of its labels are shown


def test_chart_keeps_the_newest_of_too_many_bars():
    drawn = render(Bars("B", [(str(n), n) for n in range(1000)]), {})
    assert (len(drawn.marks), drawn.marks[-1].label.text) == (400, "999")


def test_parts_of_a_bar_stand_on_each_other():
    chart = StackedBars("S", ["a", "b", "c"], [("done", [3, 0, float("nan")]), ("failed", [1, 2, 0])])
    drawn = render(chart, {})
    assert [[tuple(piece) for piece in bar.pieces] for bar in drawn.marks] == [
        [(1, "25.0", "75.0"), (2, "0.0", "25.0")],
        [(2, "50.0", "50.0")],
        [],
    ]
    assert (drawn.highest.text, drawn.flat, drawn.width) == ("4", False, 30)
    assert [[value.text for value in values] for _name, values in drawn.data.rows][2] == ["–", "0"]
    assert render(StackedBars("S", [], [("done", [])]), {}).flat


def test_times_of_charts_are_shown_as_in_tables():
    drawn = render(Bars("B", [("a", timedelta(seconds=0.1699)), ("b", timedelta(0))]), {})
    assert (drawn.highest.text, [bar.values[0].text for bar in drawn.marks]) == ("170 ms", ["170 ms", "0 ms"])
    assert [[piece.height for piece in bar.pieces] for bar in drawn.marks] == [["100.0"], []]
    lines = render(LineChart("L", ["a", "b"], [("p50", [Estimate(1.024), None])]), {})
    assert (lines.highest.text, [value.text for point in lines.marks for value in point.values]) == (
        "~1.1 s",
        ["~1.1 s", "–"],
    )


def test_value_between_two_gaps_is_a_dot():
    (alone, line) = render(LineChart("L", list("abc"), [("one", [None, 2, None]), ("two", [1, 2, None])]), {}).lines
    assert (alone.dots, line.dots) == ("M10 0.0h0", "")


def test_lines_begin_at_the_left_and_break_at_gaps():
    chart = LineChart("L", list("abcd"), [("one", [0, 4, 2, 1]), ("two", [1, None, 3, float("nan")])])
    drawn = render(chart, {})
    assert [line.path for line in drawn.lines] == [
        "M0 100.0h0L10 0.0L20 50.0L30 75.0",
        "M0 75.0h0M20 25.0h0",
    ]
    assert (drawn.width, drawn.highest.text, drawn.flat) == (30, "4", False)
    assert [value.text for value in drawn.marks[1].values] == ["4", "–"]
    assert [point.x for point in drawn.marks] == [-5, 5, 15, 25]


def test_line_chart_may_have_no_values_or_too_many():
    assert render(LineChart("L", [], [("one", [])]), {}).flat
    assert render(LineChart("L", ["a"], [("one", [0])]), {}).flat
    drawn = render(LineChart("L", [str(n) for n in range(1000)], [("one", list(range(1000)))]), {})
    assert (len(drawn.marks), drawn.marks[-1].values[0].text) == (400, "999")


def test_lines_of_unequal_length_are_an_error():
    with pytest.raises(ValueError, match="zip"):
        render(LineChart("L", ["a", "b"], [("one", [1])]), {})


def test_squares_are_darker_for_higher_values():
    cells = [HeatCell(0, column, str(column), value) for column, value in enumerate((0, 1, 25, 26, 100, float("nan")))]
    drawn = render(HeatMap("H", ["a"], list("uvwxyz"), cells), {})
    assert [square.shade for square in drawn.squares] == [0, 1, 1, 2, 4, 0]
    assert drawn.highest.text == "100"
    assert not drawn.flat
    assert render(HeatMap("H", ["a"], ["b"], [HeatCell(0, 0, "x", 0)]), {}).flat


def test_labels_of_columns_have_room_and_are_not_repeated():
    weeks = render(HeatMap("H", ["Mon"], ["Jan"] * 5 + ["Feb"] * 4 + ["Mar"], []), {})
    assert [label.text.text for label in weeks.columns] == ["Jan", "Feb", "Mar"]
    hours = render(HeatMap("H", ["Mon"], [f"{hour:02}" for hour in range(24)], []), {})
    assert [label.text.text for label in hours.columns] == [f"{hour:02}" for hour in range(0, 24, 2)]


def test_rows_of_a_long_heat_map_have_their_labels_at_both_ends():
    year = render(HeatMap("H", ["Mon", "Tue"], ["Jan"] * 53, []), {})
    assert [label.text.text for label in year.rows] == ["Mon", "Tue", "Mon", "Tue"]
    assert {label.x for label in year.rows[2:]} < set(range(80 + 53 * 14, year.width))


def test_labels_behind_a_long_heat_map_have_room_in_each_script():
    def behind(*rows):
        year = render(HeatMap("Days", rows, ["Jan"] * 53, []), {})
        return year.width - year.rows[-1].x

    assert behind("Mon", "Wed") == 28
    assert behind("星期一", "星期三") == 48  # each letter is as wide as two


def test_chart_without_parts_is_empty():
    for chart in (StackedBars("S", ["a", "b"], []), LineChart("S", ["a", "b"], [])):
        drawn = render(chart, {})
        assert len(drawn.data.columns) == 1
