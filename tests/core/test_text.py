"""Text for messages."""

import pytest
from django.utils import translation

from redis_kit.core import terminal
from redis_kit.core.text import (
    did_you_mean,
    duration,
    estimate,
    folded,
    number,
    seconds_of,
    shortened,
    similar,
    unexpected,
    whole_units,
)


class Unreadable:
    def __repr__(self):
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "None"),
        ("é\n", "'\\xe9\\n'"),
        (Unreadable(), "a value of type Unreadable"),
        ("x" * 78, f"'{'x' * 78}'"),
        ("x" * 79, f"'{'x' * 76}..."),
    ],
)
def test_value_is_shortened_for_a_message(value, text):
    assert shortened(value) == text
    assert len(text) <= 80


def test_number_of_too_many_digits_is_named_by_its_type():
    assert shortened(10**5000) == "a value of type int"


def test_value_is_cut_at_the_limit_given():
    assert shortened("x" * 50, limit=10) == "'xxxxxx..."


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("mial", "Did you mean 'mail'?"),
        ("MAIL", "Did you mean 'mail'?"),
        ("Bulk!", "Did you mean 'Bulk'?"),
        ("zzz", "No."),
        ("", "No."),
        (None, "No."),
        (Unreadable(), "No."),
    ],
)
def test_name_that_is_most_alike_is_suggested(name, hint):
    assert did_you_mean(name, ["default", "mail", "Bulk"], "No.") == hint


def test_nothing_is_suggested_where_nothing_is_alike():
    assert did_you_mean("zzz", ["mail"]) == ""


def test_at_most_three_names_are_similar_the_likest_first():
    assert similar("mail", ["mails", "emails", "fail", "mail2", "mail"]) == ["mail", "mails", "mail2"]


def test_long_names_are_compared_quickly():
    assert similar("a" * 100_000, ["a" * 100_000, "b"]) == ["a" * 100_000]


@pytest.mark.parametrize(
    ("value", "text"),
    [(34_560_000, "34,560,000"), (3.456e7, "34,560,000"), (0.25, "0.25"), (0, "0"), (2.0, "2"), (1e-7, "1e-07")],
)
def test_number_has_no_exponent(value, text):
    assert number(value) == text


def test_unexpected_argument_names_ours():
    def wait(first, *, seconds=1):
        """Wait."""

    def said(name):
        return str(unexpected("wait", wait, [name], {"ttl": "Write seconds=."}))

    assert said("ttl") == "wait() got an unexpected keyword argument 'ttl'. Write seconds=."
    assert said("secnds") == "wait() got an unexpected keyword argument 'secnds'. Did you mean 'seconds'?"
    assert said("zzz") == "wait() got an unexpected keyword argument 'zzz'. Arguments: first, seconds."


@pytest.mark.parametrize(
    ("duration", "seconds"),
    [
        ("0", 0),
        ("90", 90),
        ("0.5", 0.5),
        ("10m", 600),
        ("2 H", 7200),
        ("1d", 86_400),
        (" 7 days ", 604_800),
        ("1w", 604_800),
    ],
)
def test_duration_is_read(duration, seconds):
    assert seconds_of(duration) == seconds


@pytest.mark.parametrize(
    "text",
    [
        *("", "m", "-1", "nan", "inf", "1e3", "1 month", "5 horses", "1h30m", "٣", "9" * 99),
        *("500ms", "1 ss", "1hs", "1ds", "1ws"),
    ],
)
def test_other_text_is_not_a_duration(text):
    with pytest.raises(ValueError, match="is not a duration"):
        seconds_of(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        *((0, "~0 ms"), (0.000125, "~0.13 ms"), (0.086, "~86 ms"), (0.866, "~870 ms"), (0.995, "~1 s")),
        *(
            (1.024, "~1.1 s"),
            (10.001, "~10 s"),
            (59.5, "~1 min"),
            (93, "~1.6 min"),
            (7300, "~2.1 h"),
            (200_000, "~2.4 d"),
        ),
    ],
)
def test_estimate_has_two_digits_and_is_rounded_up(seconds, text):
    assert estimate(seconds) == text


def test_times_are_in_the_active_language():
    with translation.override("zh-hans"):
        assert duration(0.007) == "7 毫秒"
        assert duration(41.2) == "41.2 秒"
        assert duration(1058) == "17 分 38 秒"
        assert duration(13_800) == "3 小时 50 分"
        assert duration(1_054_800) == "12 天 5 小时"
        assert estimate(90) == "~1.5 分钟"
        assert whole_units(20) == "20 秒"
        assert terminal.duration(1058) == "17 min 38 s"


@pytest.mark.parametrize("text", ["", "Ada Lovelace", "A" * 100, *map(chr, range(128)), "a \x1c\x1f\t\n "])
def test_ascii_is_folded_as_any_text_is(text):
    assert folded(text) == folded(f"\u0301{text}")  # a mark that is left out
