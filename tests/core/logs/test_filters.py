"""What the kit logs can't forge lines, nor command a terminal, whatever others put into it."""

import io
import logging
from types import SimpleNamespace

import pytest
from django.utils.log import AdminEmailHandler

from redis_kit.core.logs import filters
from redis_kit.core.logs.filters import LOGGERS, SafeText, formatted_traceback, protect_default_handlers
from redis_kit.core.text import clean, contained
from tests.test_layout import MODULES

FORGED = "2026-01-01 00:00:00 ERROR root logged in"
EVIL = f'first\n{FORGED}\r\x1b[2Jsecond\x1b]0;title\x07\u202eback\u2028{FORGED}\n  File "x", line 1, in y'


@pytest.fixture
def written():
    """What a common handler writes of the worker's log."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("LOG %(levelname)s %(message)s"))
    logger = logging.getLogger("redis_kit.worker")
    logger.addHandler(handler)
    yield stream.getvalue
    logger.removeHandler(handler)


def raised(error):
    try:
        raise error
    except BaseException as caught:
        return caught


def noted(error):
    error.add_note(EVIL)
    return error


def caused(error):
    error.__cause__ = raised(KeyError(EVIL))
    return error


def unreadable():
    class Unreadable(Exception):
        def __str__(self):
            raise SystemExit(EVIL)

    return Unreadable()


def broken():
    try:
        compile(f"x = ({EVIL}", f"file\n{FORGED}", "exec")
    except (SyntaxError, ValueError) as error:
        return error


def executed():
    try:
        exec(compile("raise ValueError(1)", f"file\n{FORGED}\x1b", "exec"))  # noqa: S102 -- so that the file has that name
    except ValueError as error:
        return error


ERRORS = {
    "message": lambda: ValueError(EVIL),
    "note": lambda: noted(ValueError("a")),
    "cause": lambda: caused(ValueError(EVIL)),
    "group": lambda: ExceptionGroup(EVIL, [ValueError(EVIL), noted(TypeError(EVIL))]),
    "syntax": broken,
    "file": executed,
    "text": unreadable,
    "several": lambda: ValueError(EVIL, EVIL.encode()),
}


@pytest.mark.parametrize("kind", ERRORS)
def test_tracebacks_forge_no_line_and_hold_nothing_that_a_terminal_obeys(kind, written):
    error = raised(ERRORS[kind]())
    logging.getLogger("redis_kit.worker").error("It failed: %s", EVIL, exc_info=error)
    judged(written(), kind)


def judged(text, kind=""):
    assert text.replace("\n", "").isprintable()
    first, *lines = text.splitlines()
    assert first == "LOG ERROR It failed: first"
    outer = ("Traceback (most recent call last):", "The above exception was", "")
    for line in lines:
        assert not line.startswith(FORGED), line
        inner = line.startswith((" ", *filter(None, outer))) or not line
        assert inner or line.split(":")[0].rpartition(".")[2] in {type(ERRORS[kind]()).__name__, "KeyError"}, line


def test_seeded_bug_is_found(written):
    for one in list((logger := logging.getLogger("redis_kit.worker")).filters):
        logger.removeFilter(one)
    try:
        logger.error("It failed: %s", EVIL, exc_info=raised(ValueError(EVIL)))
    finally:
        logger.addFilter(SafeText())
    with pytest.raises(AssertionError):
        judged(written(), "message")


def test_traceback_stays_readable(written):
    def inner():
        raise ValueError("one\n\ttwo")

    try:
        inner()
    except ValueError as error:
        caught = error
    logging.getLogger("redis_kit.worker").error("It failed.", exc_info=caught)
    first, title, *frames, message, more = written().splitlines()
    assert (first, title) == ("LOG ERROR It failed.", "Traceback (most recent call last):")
    assert frames[0].startswith(f'  File "{__file__}", line ')
    assert frames[0].endswith(", in test_traceback_stays_readable")
    assert "    inner()" in frames
    assert '    raise ValueError("one\\n\\ttwo")' in frames
    assert (message, more) == ("ValueError: one", "    | \\ttwo")


def test_plain_record_is_left_as_it_is():
    record = logging.LogRecord("redis_kit.worker", logging.INFO, "", 1, "Job %a of %s", ("a\n", "ünïcode"), None)
    assert SafeText().filter(record)
    assert (record.msg, record.args) == ("Job %a of %s", ("a\n", "ünïcode"))


def test_record_that_can_not_be_formatted_is_left_to_its_handler():
    record = logging.LogRecord("redis_kit.worker", logging.INFO, "", 1, "%d", ("a",), None)
    assert SafeText().filter(record)


def test_filter_serves_a_handler_of_the_project():
    record = logging.LogRecord("shop", logging.INFO, "", 1, EVIL, (), None)
    SafeText().filter(record)
    assert "\x1b" not in record.getMessage()
    assert formatted_traceback((ValueError, ValueError(EVIL), None)).count("\n    | ") == 2


def handled(stream, *, safe):
    """Return a handler that writes to a stream, with the filter or without it."""
    handler = logging.StreamHandler(stream)
    for each in [SafeText()] * safe:
        handler.addFilter(each)
    return handler


def test_traceback_that_another_handler_has_formatted_is_made_safe():
    plain, safe = io.StringIO(), io.StringIO()
    logger = logging.Logger("shop")
    for handler in (handled(plain, safe=False), handled(safe, safe=True)):
        logger.addHandler(handler)
    logger.error("It failed.", exc_info=raised(ValueError(EVIL)))
    assert "\x1b" in plain.getvalue()
    assert "\x1b" not in safe.getvalue()
    assert f"\n    | {FORGED}" in safe.getvalue()


def test_filter_of_a_logger_and_of_its_handler_are_as_one():
    one, two = io.StringIO(), io.StringIO()
    for stream, filters_of_logger in ((one, 0), (two, 1)):
        logger = logging.Logger("shop")
        for each in [SafeText()] * filters_of_logger:
            logger.addFilter(each)
        for _ in range(2):
            logger.addHandler(handled(stream, safe=True))
        logger.error("It failed: %s", EVIL, exc_info=raised(ValueError(EVIL)))
    assert "|     | " not in one.getvalue() + two.getvalue()
    first, second = (text[: len(text) // 2] for text in (one.getvalue(), two.getvalue()))
    assert first == second == two.getvalue()[len(second) :]


def test_text_that_another_filter_adds_is_made_safe():
    record = logging.LogRecord("shop", logging.INFO, "", 1, EVIL, (), None)
    SafeText().filter(record)
    record.msg = f"{record.msg}\x1b"
    SafeText().filter(record)
    assert "\x1b" not in record.getMessage()


def test_each_logger_of_the_kit_has_the_filter():
    used = {
        part.split('"')[1]
        for path in MODULES
        for part in path.read_text().split("logging.getLogger(")[1:]
        if part.startswith('"')
    }
    assert used == set(LOGGERS)
    assert all([type(one) for one in logging.getLogger(name).filters] == [SafeText] for name in LOGGERS)


@pytest.mark.parametrize(
    ("given", "guarded"), [({}, True), ({"loggers": {"shop": {}}}, True), ({"loggers": {"django": {}}}, False)]
)
def test_default_handlers_get_the_filter_and_a_projects_do_not(monkeypatch, given, guarded):
    monkeypatch.setattr(filters, "settings", SimpleNamespace(LOGGING=given))  # Django 6.1 would set logging up by it
    last, console, mail = logging.StreamHandler(), logging.StreamHandler(), AdminEmailHandler()
    monkeypatch.setattr(logging, "lastResort", last)
    monkeypatch.setattr(logging.getLogger("django"), "handlers", [console, mail])
    for _ in range(2):
        protect_default_handlers()
    assert [[type(one) for one in handler.filters] for handler in (last, console, mail)] == [
        [SafeText],
        [SafeText] * guarded,
        [],
    ]


def test_text_of_several_lines_keeps_them_behind_a_margin():
    assert contained("a\nb\x1b\n") == "a\n    | b\\x1b\n    | "
    assert clean("a\nb") == "a\\nb"
