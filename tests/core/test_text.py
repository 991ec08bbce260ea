"""Text for messages."""

import pytest

from redis_kit.core.text import did_you_mean, shortened, similar


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
