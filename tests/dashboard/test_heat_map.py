from redis_kit.core.panels import HeatCell, HeatMap
from redis_kit.dashboard.rendering import render


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
