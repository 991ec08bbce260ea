"""The text of an error. Errors come from any code, so their own methods may raise, exit, or return something else."""

import re
from traceback import format_exception
from types import TracebackType

LONGEST = 20_000  # characters of a traceback
TEXT = 5_000  # characters of the text of an error
HUGE = 200_000  # characters beyond which a traceback is not logged as it is
UNREADABLE = "(its text can't be read)"
_BEFORE = (
    "(?:The above exception was the direct cause of the following|During handling of the above exception, another)"
)
_CHAINED = re.compile(f"^{_BEFORE} exception(?: occurred)?:\n", re.MULTILINE)

ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None]


class Unprintable(Exception):
    """Stands for an error whose traceback can't be formatted."""


_STAND_IN = f"{Unprintable.__module__}.{Unprintable.__qualname__}"


def text_of(error: BaseException) -> str:
    """Return the text of an error, at most 5,000 characters."""
    try:
        return str.__getitem__(str(error), slice(TEXT))  # a plain str, also of a subclass with methods of its own
    except BaseException:
        return UNREADABLE


def name_of(error: BaseException) -> str:
    """Return the name of an error's class."""
    return _attribute(type(error), "__qualname__")


def path_of(kind: type[BaseException]) -> str:
    """Return the dotted path of an error's class."""
    return f"{_attribute(kind, '__module__')}.{_attribute(kind, '__qualname__')}"


def described(error: BaseException) -> str:
    """Return the name of an error's class and its text."""
    text = text_of(error)
    return f"{name_of(error)}: {text}" if text else name_of(error)


def traceback_of(error: BaseException) -> str:
    """Return the traceback of an error, with its causes; the last 20,000 characters of a longer one."""
    return "".join(format_exception(*exc_info(error)))[-LONGEST:]


def summary_of(path: str, traceback: str) -> str:
    """Return the first line of an error, such as ``ValueError: no``, from the path of its class and its traceback.

    It is in the last part of a chain, unless the message quotes another chain. "" if a cut traceback lacks it.
    """
    names = "|".join(map(re.escape, (path.removeprefix("builtins.").removeprefix("__main__."), _STAND_IN)))
    line = re.compile(rf"^(?:  \| )?((?:{names})(?::.*)?)$", re.MULTILINE)  # a group's has a margin
    match = next(filter(None, map(line.search, reversed(_CHAINED.split(traceback)))), None)
    if match:
        return match[1].removeprefix(f"{_STAND_IN}: ")
    return "" if "Traceback (most recent call last):" in traceback else traceback.partition("\n")[0]


def exc_info(error: BaseException) -> ExcInfo:
    """Return an error in the form that ``logging`` takes, with which it does not ask the error whether it is true.

    An error that can't be formatted, or has a huge text, is replaced by another one with its name and traceback.
    """
    own: TracebackType | None = BaseException.__dict__["__traceback__"].__get__(error)  # a class may have another one
    try:
        if sum(map(len, format_exception(type(error), error, own))) > HUGE:
            error = Unprintable(described(error))
    except BaseException:
        error = Unprintable(described(error))
    return type(error), error, own


def cut_frames(error: BaseException, folder: str) -> None:
    """Cut the first frames of a traceback off that are of files in a folder; none if all are."""
    own = BaseException.__dict__["__traceback__"]  # a class may have another one
    rest: TracebackType | None = own.__get__(error)
    while rest and rest.tb_frame.f_code.co_filename.startswith(folder):
        rest = rest.tb_next
    if rest:
        own.__set__(error, rest)


def _attribute(kind: type[BaseException], name: str) -> str:
    """Return a text that each class has, without asking its metaclass."""
    try:
        value = type.__dict__[name].__get__(kind)
    except AttributeError:
        value = None
    return value if type(value) is str else "?"
