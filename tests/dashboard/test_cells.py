from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from django.utils import timezone, translation
from django.utils.translation import gettext_lazy

from redis_kit.core.panels import Link, Meter, Words
from redis_kit.dashboard.cells import MAX_SHOWN, Cell, cell


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (1234567, "1,234,567"),
        (-1500, "-1,500"),
        (2.5, "2.5"),
        (3.0, "3"),
        (0.1239, "0.1239"),
        (0.7, "0.7"),
        (0.00004, "0"),
        (99.999, "100"),
        (12345.678, "12,346"),
        (1e22, "10,000,000,000,000,000,000,000"),
        (Decimal("1.239"), "1.24"),
        (float("nan"), "–"),
        (float("inf"), "–"),
        (None, "–"),
        (True, "Yes"),
        (False, "No"),
        ("", ""),
        ("text", "text"),
        (gettext_lazy("Yes"), "Yes"),
        (b"bytes\xff\n", "bytes\\xff\\n"),
        (date(2026, 11, 20), "2026-11-20"),
        (datetime(2026, 11, 20, 9, 5, 1), "2026-11-20 09:05:01"),
        (timedelta(milliseconds=250), "250 ms"),
        (timedelta(seconds=12.34), "12.3 s"),
        (timedelta(minutes=61, seconds=5), "1 h 1 min"),
        (timedelta(days=2, seconds=61), "2 d 0 h"),
        (-timedelta(minutes=2), "−2 min 0 s"),
        (["a", 1], "['a', 1]"),
    ],
)
def test_values_are_readable(value, text):
    assert cell(value).text == text


def test_times_are_in_the_time_zone_of_the_viewer():
    with timezone.override("Asia/Shanghai"):
        assert cell(datetime(2026, 11, 20, 20, 0, tzinfo=UTC)).text == "2026-11-21 04:00:00"


def test_numbers_follow_the_language():
    with translation.override("de"):
        assert cell(1234567.5).text == "1.234.568"
        assert cell(1.5).text == "1,5"


@pytest.mark.parametrize(
    ("value", "number"),
    [(1, True), (1.5, True), (Decimal(1), True), (timedelta(1), True), (True, False), ("1", False)],
)
def test_numbers_are_marked(value, number):
    assert cell(value).number is number


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("a\tb\r\n", "a\\tb\\r\\n"),
        ("\0", "\\x00"),
        ("\x1b[31m", "\\x1b[31m"),
        ("\x9b", "\\x9b"),
        ("\u202eabc", "\\u202eabc"),
        ("\u2066", "\\u2066"),
        ("\u2028\u2029", "\\u2028\\u2029"),
        ("\ufeff", "\\ufeff"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
        ("部门 ☃ é", "部门 ☃ é"),
        ("👩\u200d🔧", "👩\u200d🔧"),
        ("\\n", "\\n"),
    ],
)
def test_invisible_characters_are_escaped(text, escaped):
    assert cell(text).text == escaped


def test_words_are_beside_each_other():
    first = cell(Words([Link("#a", "jobs"), "b"]))
    assert (first.text, first.link, [one.text for one in first.beside], first.short) == ("#a", "jobs/", ["b"], False)
    assert (cell(Words([])).text, cell(Words(["a"])).short) == ("", True)


def test_meter_may_have_a_text_of_its_own():
    drawn = cell(Meter(5, 10, shown=timedelta(seconds=5)))
    assert (drawn.text, drawn.drawing.part, drawn.number) == ("5.0 s", "50.0", False)


@pytest.mark.parametrize(
    ("number", "most", "text", "part", "full"),
    [
        (0, 5, "0 of 5", "0.0", False),
        (2, 3, "2 of 3", "66.7", False),
        (3, 3, "3 of 3", "100.0", True),
        (4, 3, "4 of 3", "100.0", True),
        (1500, 2000, "1,500 of 2,000", "75.0", False),
    ],
)
def test_meter_shows_a_number_of_a_maximum(number, most, text, part, full):
    drawn = cell(Meter(number, most))
    assert (drawn.text, drawn.drawing.part, drawn.drawing.full) == (text, part, full)


def test_full_meter_is_no_alarm_if_that_is_wanted():
    assert [cell(Meter(3, 3, wanted=wanted)).drawing.full for wanted in (False, True)] == [True, False]


def test_meter_without_a_maximum_is_a_number():
    assert cell(Meter(7, 0)) == Cell("7")


def test_long_text_is_cut_and_full_in_the_tooltip():
    assert cell("x" * MAX_SHOWN) == Cell("x" * MAX_SHOWN)
    assert cell("x" * (MAX_SHOWN + 1)) == Cell("x" * (MAX_SHOWN - 1) + "…", "x" * (MAX_SHOWN + 1))
    assert cell("\n" * MAX_SHOWN).full == "\\n" * MAX_SHOWN
    assert len(cell("x" * 10_000).full) == 4097


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("django.core.management.base", ["django.", "core.", "management.", "base"]),
        ("shop.tasks.send_receipt: failed", ["shop.", "tasks.", "send_receipt: failed"]),
        ("short.name", ["short.name"]),
        ("ip:203.0.113.7, of 10.000.000", ["ip:203.0.113.7, of 10.000.000"]),
        ("<a href=//evil.example.of.somebody>", ["<a href=//evil.example.of.somebody>"]),
    ],
)
def test_long_dotted_names_may_break_at_their_dots(text, parts):
    assert cell(text).parts == parts


def test_only_words_over_40_characters_may_break_anywhere():
    assert not cell(" ".join(["w" * 40] * 3)).long
    assert cell("a " + "w" * 41).long


@pytest.mark.parametrize(
    ("text", "short"), [("", True), ("a" * 16, True), ("a" * 17, False), ("进" * 8, True), ("进" * 9, False)]
)
def test_short_text_stays_on_one_line(text, short):
    assert cell(text).short is short


def test_date_and_time_may_break_only_between_them():
    assert cell(datetime(2026, 11, 23, 10, 29, 48)).moment == ["2026-11-23", "10:29:48"]
    assert cell("since 2026-11-23 10:29").moment == []
