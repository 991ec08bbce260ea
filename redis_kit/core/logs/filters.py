"""What the kit logs contains text that anybody may have chosen: messages of exceptions, names, ids, source lines."""

import logging
import traceback

from django.conf import settings

from redis_kit.core.logs import error_text
from redis_kit.core.logs.error_text import ExcInfo
from redis_kit.core.text import MARGIN, clean, contained

#: All loggers of the kit.
LOGGERS = (
    *("redis_kit", "redis_kit.connections", "redis_kit.dashboard", "redis_kit.embedded", "redis_kit.locks"),
    *("redis_kit.pageviews", "redis_kit.worker"),
)
FRAMEWORK = "django"  # the logger to which Django gives a handler


class SafeText(logging.Filter):
    """Lets no text in a record forge lines of the log, or reach a terminal as a command.

    The message and the traceback are prepared before a formatter sees them. On the kit's own loggers it is there by
    itself; a project puts it on a handler to have it for all that this one writes.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Prepare a record. Always true."""
        try:
            message = record.getMessage()
        except Exception:
            return True  # the handler tells of it
        if not message.isprintable():
            record.msg, record.args = contained(message), None
        if isinstance(found := record.exc_info, tuple) and found[0] and not record.exc_text:
            record.exc_text = described(found)
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
    if not any(isinstance(one, SafeText) for one in filterer.filters):
        filterer.addFilter(SafeText())


def described(information: ExcInfo) -> str:
    """Return a traceback in the usual form. Of each message and note the lines after the first have a margin."""
    try:
        found = traceback.TracebackException(*information)
        _contain(found, set())
        told = "".join(found.format())
    except BaseException:  # an error's own methods may raise anything
        lines = ["Traceback (most recent call last):\n", *traceback.format_tb(information[2])]
        told = "".join([*lines, contained(error_text.described(information[1]))])
    return "\n".join(clean(line.expandtabs()) for line in told.rstrip("\n").split("\n"))


def _contain(found: traceback.TracebackException, seen: set[int]) -> None:
    if id(found) in seen:
        return
    seen.add(id(found))
    found._str = contained(str(found._str))  # type: ignore[attr-defined]
    notes = getattr(found, "__notes__", None)
    if isinstance(notes, (list, tuple)):
        found.__notes__ = [MARGIN + contained(str(note)) for note in notes]
    elif notes is not None:
        found.__notes__ = [MARGIN + contained(repr(notes))]
    for frame in found.stack:
        frame.filename, frame.name = clean(frame.filename), clean(frame.name)
    for name in ("text", "msg", "filename"):  # of a SyntaxError
        if isinstance(text := getattr(found, name, None), str):
            setattr(found, name, contained(text) if name == "msg" else clean(text.rstrip("\n")))
    for other in (found.__cause__, found.__context__, *(found.exceptions or ())):
        if other is not None:
            _contain(other, seen)
