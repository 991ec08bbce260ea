"""The geometry of donut charts, gauges and tree maps, and the words beside them."""

import re

import pytest

from redis_kit.core.panels import Area, DonutChart, Gauge, TreeMap
from redis_kit.dashboard.charts.arcs import sector
from redis_kit.dashboard.rendering import render

VALUES = [600, 200, 100, 50, 30, 15, 5]
ODD = (float("nan"), float("inf"), -1, None)


def donut(*values):
    parts = [(f"part {at}", value) for at, value in enumerate(values)]
    return render(DonutChart("R", parts, alarm="part 2"), {})


def gauge(share, **more):
    return render(Gauge("G", share, "7 of 9", [("Used", 7)], **more), {})


def tree_map(*values):
    return render(TreeMap("T", [Area(f"area {at}", value, f"{value} B") for at, value in enumerate(values)]), {})


def frames(drawn):
    return [tuple(map(float, area[:4])) for area in drawn.areas]


def test_slices_follow_each_other_from_the_top():
    drawn = donut(1, 1, 2)
    assert [part.path.partition("A")[0] for part in drawn.parts] == ["M60.00 2.00", "M118.00 60.00", "M60.00 118.00"]
    assert [part.percent.text for part in drawn.parts] == ["25", "25", "50"]
    assert [part.css_class for part in drawn.parts] == ["rk-shade-4", "rk-shade-3", "rk-alarm"]
    assert [(name.text, [value.text for value in values]) for name, values in drawn.data.rows] == [
        ("part 0", ["1", "25"]),
        ("part 1", ["1", "25"]),
        ("part 2", ["2", "50"]),
    ]


def test_donut_of_one_part_is_whole_and_of_none_is_flat():
    whole = donut(5, 0)
    assert whole.parts[0].path.count("M") == 2, "an arc can't end where it begins"
    assert whole.parts[1].path == ""
    assert donut(0, 0).flat
    assert donut().flat
    assert not whole.flat


@pytest.mark.parametrize("odd", ODD)
def test_values_that_can_not_be_drawn_count_as_nothing(odd):
    assert [bool(part.path) for part in donut(odd, 3).parts] == [False, True]
    assert [area.name.text for area in tree_map(odd, 3).areas] == ["area 1"]
    assert len(tree_map(odd, 3).data.rows) == 2
    if odd is not None:
        assert gauge(odd).percent == "0 %"


def test_part_beyond_a_half_takes_the_long_way():
    assert re.findall(r"A\S+ \S+ 0 (\d)", sector((0, 0), (2, 1), 0, 0.4)) == ["0", "0"]
    assert re.findall(r"A\S+ \S+ 0 (\d)", sector((0, 0), (2, 1), 0, 0.6)) == ["1", "1"]


def test_gauge_is_full_from_its_alarm_on():
    assert [gauge(share).full for share in (0, 0.89, 0.9, 1, 5)] == [False, False, True, True, True]
    assert gauge(0.5, alarm=0.4).full
    assert (gauge(0.256).percent, gauge(7).percent, gauge(-1).percent) == ("26 %", "100 %", "0 %")
    assert gauge(1).part == gauge(1).track


def test_areas_are_as_large_as_their_values_and_fill_the_frame():
    drawn = tree_map(*reversed(VALUES))
    assert [area.value.text for area in drawn.areas] == [f"{value} B" for value in VALUES]
    whole = drawn.width * drawn.height
    for value, (x, y, width, height) in zip(VALUES, frames(drawn), strict=True):
        assert width * height == pytest.approx(whole * value / sum(VALUES), rel=0.05)
        assert max(width / height, height / width) < 4
        assert x + width <= drawn.width + 0.2
        assert y + height <= drawn.height + 0.2
    assert sum(width * height for _, _, width, height in frames(drawn)) == pytest.approx(whole, rel=0.01)


def test_areas_do_not_overlap():
    placed = frames(tree_map(*VALUES, *range(1, 30)))
    assert len(placed) == 36
    for at, (x, y, width, height) in enumerate(placed):
        for other_x, other_y, other_width, other_height in placed[at + 1 :]:
            apart = x + width <= other_x + 0.2 or other_x + other_width <= x + 0.2
            assert apart or y + height <= other_y + 0.2 or other_y + other_height <= y + 0.2


def test_area_has_words_if_there_is_room_for_them():
    drawn = tree_map(10**6, 1)
    assert drawn.areas[0].lines == ["area 0", "1000000 B"]
    assert drawn.areas[1].lines == []
    assert render(TreeMap("T", [Area("x" * 99, 1, "1 B")]), {}).areas[0].lines == []


def test_map_has_at_most_forty_areas_and_none_is_flat():
    assert len(tree_map(*range(1, 100)).areas) == 40
    assert tree_map().flat
    assert tree_map(0, 0).flat
