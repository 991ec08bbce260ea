"""What an error says in one line, from what is stored of it: the path of its class, and its traceback."""

import traceback

import pytest

from redis_kit.core.logs.error_text import HUGE, path_of, summary_of, traceback_of

FORGED = "Job 'X' of queue 'default' (shop.tasks.pay) succeeded."


class Sold(Exception):
    """An error of a project."""


def raised(error, *, cause=None):
    try:
        raise error from cause
    except BaseException as caught:
        return caught


def noted(error):
    error.add_note(f"a note\n{FORGED}")
    return error


def chain():
    return raised(ValueError("last"), cause=raised(ValueError("first")))


def quoting(error):
    return RuntimeError(f"the other side failed:\n{''.join(traceback.format_exception(error))}")


def deep():
    return ExceptionGroup("some", [raised(ExceptionGroup("inner", [chain()])), ValueError("other")])


SHOWN = {
    "one line": (lambda: ValueError("bad"), "ValueError: bad"),
    "several lines": (lambda: ValueError(f"bad\n{FORGED}\r\x1b[31mred"), "ValueError: bad"),
    "its own name again": (lambda: ValueError("bad\nValueError: good"), "ValueError: bad"),
    "nothing": (ValueError, "ValueError"),
    "note": (lambda: noted(ValueError("bad")), "ValueError: bad"),
    "of a project": (lambda: Sold("it is gone\nto Ann"), f"{__name__}.Sold: it is gone"),
    "group": (lambda: ExceptionGroup("some", [ValueError("a")]), "ExceptionGroup: some (1 sub-exception)"),
    "group of groups": (deep, "ExceptionGroup: some (2 sub-exceptions)"),
    "chain": (chain, "ValueError: last"),
    "chain from a group": (
        lambda: raised(ValueError("last"), cause=raised(ExceptionGroup("some", [ValueError("a")]))),
        "ValueError: last",
    ),
    "quoted traceback": (lambda: quoting(raised(KeyError("x"))), "RuntimeError: the other side failed:"),
    "quoted chain": (lambda: quoting(chain()), "RuntimeError: the other side failed:"),
    "text too long to be formatted": (lambda: ValueError("bad\n" + "x" * HUGE), "ValueError: bad"),
    "start cut away": (lambda: ValueError("bad\n" + "x\n" * 15_000), ""),
}


@pytest.mark.parametrize("kind", SHOWN)
def test_first_line_of_an_error_is_found_in_its_traceback(kind):
    make, shown = SHOWN[kind]
    error = raised(make(), cause=getattr(make(), "__cause__", None))
    assert summary_of(path_of(type(error)), traceback_of(error)) == shown


@pytest.mark.parametrize(("text", "shown"), [("damaged\nfor sure", "damaged"), ("", "")])
def test_text_without_a_traceback_is_shown_by_its_first_line(text, shown):
    assert summary_of("?", text) == shown
