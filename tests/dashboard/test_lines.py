from datetime import timedelta

import pytest

from redis_kit.core.panels import Bars, Estimate, LineChart
from redis_kit.dashboard.rendering import render


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
