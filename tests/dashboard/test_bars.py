from redis_kit.core.panels import Bars, StackedBars
from redis_kit.dashboard.rendering import render


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
