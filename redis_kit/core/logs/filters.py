"""Log records made safe: anybody may have chosen parts of their text, such as names, ids and messages of exceptions."""

import logging
import traceback
from collections.abc import Callable

from django.conf import settings

from redis_kit.core.logs import error_text
from redis_kit.core.logs.error_text import ExcInfo
from redis_kit.core.text import MARGIN, clean, contained

#: All loggers of the kit.
LOGGERS = (
    *("redis_kit", "redis_kit.connections", "redis_kit.dashboard", "redis_kit.embedded", "redis_kit.locks"),
    *("redis_kit.logs", "redis_kit.metrics", "redis_kit.pageviews", "redis_kit.worker"),
)
MARK = "_redis_kit_safe"  # an attribute of a record: its message and traceback as the filter has left them
MOST_ERRORS, MOST_NOTES = 20, 5  # that are captured of a chain or a group, and of an error
FRAMEWORK = "django"  # the logger to which Django gives a handler


class SafeText(logging.Filter):
    """Keeps text in a record from forging lines of the log, and from reaching a terminal as a command.

    The message and the traceback are prepared before a formatter sees them. The loggers of redis_kit
    have it already. A project can add it to a handler, for everything that this handler writes.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Prepare a record. Always true."""
        try:
            message = record.getMessage()
        except Exception:
            return True  # the handler reports it
        safe = getattr(record, MARK, ())  # another filter, or a handler's formatter, may have changed the record since
        if message not in safe and not message.isprintable():
            message = contained(message)
            record.msg, record.args = message, None
        is_safe = record.exc_text and record.exc_text in safe
        if isinstance(information := record.exc_info, tuple) and information[0] and not is_safe:
            record.exc_text = formatted_traceback(information)
        setattr(record, MARK, (message, record.exc_text))
        return True


def protect() -> None:
    """Put the filter on each logger of the kit, once."""
    for name in LOGGERS:
        _protect(logging.getLogger(name))


def protect_default_handlers() -> None:
    """Put the filter on the handlers that write to stderr without a project's ``LOGGING``: Python's and Django's."""
    if logging.lastResort:
        _protect(logging.lastResort)
    given = settings.LOGGING if isinstance(settings.LOGGING, dict) else {}
    if FRAMEWORK not in given.get("loggers", ()):
        for handler in logging.getLogger(FRAMEWORK).handlers:
            if isinstance(handler, logging.StreamHandler):
                _protect(handler)


def _protect(filterer: logging.Filterer) -> None:
    if not any(isinstance(item, SafeText) for item in filterer.filters):
        filterer.addFilter(SafeText())


def formatted_traceback(information: ExcInfo) -> str:
    """Return a traceback in the usual form, with a margin before the second and later lines of a message or note."""
    try:
        return formatted(traceback.TracebackException(*information))
    except BaseException:  # an error's own methods may raise anything
        lines = ["Traceback (most recent call last):\n", *traceback.format_tb(information[2])]
        return _cleaned("".join([*lines, contained(error_text.described(information[1]))]))


def formatted(
    error: traceback.TracebackException | str, change: Callable[[str], str] = str, longest: int | None = None
) -> str:
    """Return what captured() has returned in the form of formatted_traceback().

    Each text and note of an error is changed and cut to a length first.
    """
    if isinstance(error, str):
        return contained(error)
    for part in _parts(error):
        _contain(part, lambda text: _cut(change(text), longest))
    try:
        return _cleaned("".join(error.format()))
    except Exception:  # of the loader of a module, which has its source
        return ""


def captured(information: ExcInfo, *, frames: int, longest: int) -> traceback.TracebackException | str:
    """Return what formatted() takes, without the frames themselves: the last ones, and texts cut to a length.

    Lines of code are looked up by formatted(), so this takes microseconds. If there are more than 20 errors, it has the
    traceback of the first one, and the texts of 15 others.
    """
    kind, error, own = information
    try:
        if _has_many(error):
            others = error.exceptions[:15] if isinstance(error, BaseExceptionGroup) else ()
            kind, error = (
                error_text.Unprintable,
                error_text.Unprintable("\n".join(error_text.described(each)[:longest] for each in (error, *others))),
            )
        capture = traceback.TracebackException(kind, error, own, limit=-frames, lookup_lines=False, compact=True)
        for part in _parts(capture):
            part._str = str(part._str)[:longest]  # type: ignore[attr-defined]
            if (notes := part.__notes__) is not None:
                notes = notes if isinstance(notes, (list, tuple)) else [repr(notes)]
                part.__notes__ = [str(note)[:longest] for note in notes[:MOST_NOTES]]
        return capture
    except Exception:  # of a method of the error
        return f"{error_text.path_of(information[0])}: {error_text.UNREADABLE}"


def _parts(error: traceback.TracebackException) -> list[traceback.TracebackException]:
    parts = [error]
    for part in parts:
        parts += filter(None, (part.__cause__, part.__context__, *(part.exceptions or ())))
    return parts


def _has_many(error: BaseException) -> bool:
    errors = {id(error): error}
    waiting = [error]
    while waiting and len(errors) <= MOST_ERRORS:
        each = waiting.pop()
        others = each.exceptions[: MOST_ERRORS + 1] if isinstance(each, BaseExceptionGroup) else ()
        for other in (each.__cause__, each.__context__, *others):
            if other is not None and id(other) not in errors:
                errors[id(other)] = other
                waiting.append(other)
    return len(errors) > MOST_ERRORS


def _cut(text: str, longest: int | None) -> str:
    return text if longest is None or len(text) <= longest else f"{text[:longest]}…"


def _cleaned(text: str) -> str:
    return "\n".join(clean(line.expandtabs()) for line in text.rstrip("\n").split("\n"))


def _contain(formatted: traceback.TracebackException, change: Callable[[str], str]) -> None:
    formatted._str = contained(change(str(formatted._str)))  # type: ignore[attr-defined]
    notes = getattr(formatted, "__notes__", None)
    if isinstance(notes, (list, tuple)):
        formatted.__notes__ = [MARGIN + contained(change(str(note))) for note in notes]
    elif notes is not None:
        formatted.__notes__ = [MARGIN + contained(change(repr(notes)))]
    for frame in formatted.stack:
        frame.filename, frame.name = clean(frame.filename), clean(frame.name)
    for name in ("text", "msg", "filename"):  # of a SyntaxError
        if isinstance(text := getattr(formatted, name, None), str):
            setattr(formatted, name, contained(text) if name == "msg" else clean(text.rstrip("\n")))
