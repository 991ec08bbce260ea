"""Text for messages: made safe to show, cut to a length, or with the name that was probably meant."""

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from inspect import Parameter, signature
from itertools import filterfalse
from typing import Any, Unpack, get_args, get_origin

from django.utils import formats
from django.utils.translation import gettext as _

MARGIN = "    | "  # of each further line: none of them looks like one that a program wrote by itself
LIKENESS = 0.5  # of 1: "mial" and "mail" are alike, "mial" and "default" are not
DURATION = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?) ?([a-z]*)", re.ASCII | re.IGNORECASE)
UNITS = {
    1: ("s", "sec", "second"),
    60: ("m", "min", "minute"),
    3600: ("h", "hr", "hour"),
    86_400: ("d", "day"),
    604_800: ("w", "wk", "week"),
}
# A letter has no plural: "ms" is not a minute.
SECONDS = {name: unit for unit, names in UNITS.items() for name in names}
SECONDS |= {f"{name}s": unit for name, unit in SECONDS.items() if len(name) > 1} | {"": 1}
LONGEST_NAME = 100  # characters that are compared, as the time grows with their square


def clean(text: str) -> str:
    """Return text without control characters, which terminals obey: these and line ends are escaped."""
    return text if text.isprintable() else "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def contained(text: str) -> str:
    """Return text whose lines stay lines, with a margin from the second one on. Control characters are escaped."""
    return f"\n{MARGIN}".join(map(clean, text.split("\n")))


def shortened(value: Any, limit: int = 80) -> str:
    """Return a value as Python writes it, in ASCII and at most ``limit`` characters, for a message.

    It never raises: a value whose repr() fails is named by its type.
    """
    try:
        text = ascii(value)
    except Exception:  # a repr() of the project's, or a number of too many digits
        text = f"a value of type {type(value).__name__}"
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def cut_to_bytes(text: str, size: int, *, end: bool = False) -> str:
    """Return the beginning of a text, or its end, in at most ``size`` bytes of UTF-8, with a mark where it is cut."""
    encoded = text.encode()
    if len(encoded) <= size:
        return text
    room = size - len("…".encode())
    return f"…{encoded[-room:].decode(errors='ignore')}" if end else f"{encoded[:room].decode(errors='ignore')}…"


def first_of(texts: Sequence[str], most: int, separator: str = ", ") -> str:
    """Return the first texts in a line, with a mark at its end if there are others."""
    return separator.join([*texts[:most], *["…"] * (len(texts) > most)])


def text_width(text: str) -> int:
    """Return how many letters of the usual width take as much room as a text."""
    return len(text) + sum(unicodedata.east_asian_width(character) in "WF" for character in text)


def similar(name: Any, allowed: Iterable[str], likeness: float = LIKENESS) -> list[str]:
    """Return at most three names that are like one that does not exist, the likest first. Case does not count."""
    if not isinstance(name, str):
        return []
    folded = {option.casefold()[:LONGEST_NAME]: option for option in allowed}
    near = get_close_matches(name.casefold()[:LONGEST_NAME], folded, cutoff=likeness)
    return [folded[match] for match in near]


def did_you_mean(name: Any, allowed: Iterable[str], otherwise: str = "") -> str:
    """Return ``Did you mean 'mail'?`` for a name that does not exist, or ``otherwise`` if none is like it."""
    near = similar(name, allowed)
    return f"Did you mean {near[0]!r}?" if near else otherwise


def unexpected(name: str, function: Callable[..., Any], given: Iterable[str], words: Mapping[str, str]) -> TypeError:
    """Return the error about keyword arguments that a function does not have, with the one that was probably meant.

    ``words`` has hints for names that other libraries use.
    """
    first = next(iter(given))
    allowed: list[str] = []
    for each in signature(function).parameters.values():
        if each.kind in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY) and each.name != "self":
            allowed.append(each.name)
        elif get_origin(each.annotation) is Unpack:
            allowed += get_args(each.annotation)[0].__annotations__
    hint = words.get(first) or did_you_mean(first, allowed, f"Arguments: {', '.join(allowed)}.")
    return TypeError(f"{name}() got an unexpected keyword argument {first!r}. {hint}")


def number(value: float) -> str:
    """Return a number without an exponent: ``34,560,000``, ``0.25``."""
    text = f"{value:,.6f}".rstrip("0").rstrip(".")
    return text if text.strip("-0.") or not value else f"{value:g}"


def grouped(count: int) -> str:
    """Return a whole number as pages show it: ``1,136``."""
    return str(formats.number_format(count, force_grouping=True))


def counted(number: int, noun: str) -> str:
    """Return a number of things in English: ``1 key``, ``1,136 keys``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def seconds_of(duration: str) -> float:
    """Return the seconds of a duration such as 90, 15m, 2h or 7 days. Raises ValueError for other text."""
    match = DURATION.fullmatch(duration.strip())
    if not match or match[2].lower() not in SECONDS:
        raise ValueError(f"{shortened(duration)} is not a duration")
    return float(match[1]) * SECONDS[match[2].lower()]


def byte_size(count: float) -> str:
    """Return a number of bytes in the largest unit that fits: ``512 B``, ``1.4 MiB``."""
    unit = "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if count < 1024:
            break
        count, unit = count / 1024, larger
    return f"{count:.0f} {unit}" if unit == "B" or count >= 100 else f"{count:.1f} {unit}"


def duration(seconds: float) -> str:
    """Return seconds in the active language: ``7 ms``, ``41.2 s``, ``3 min 20 s``, ``12 d 5 h``; or ``never``."""
    if math.isinf(seconds):
        return _("never")
    if abs(seconds) < 0.9995:
        return _("%s ms") % f"{round(seconds * 1000, 0 if abs(seconds) >= 0.001 else 1):g}"
    if seconds < 59.95:
        return _("%s s") % f"{seconds:.1f}"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return _("%(minutes)d min %(seconds)d s") % {"minutes": minutes, "seconds": rest}
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return _("%(hours)d h %(minutes)d min") % {"hours": hours, "minutes": minutes}
    return _("%(days)s d %(hours)d h") % {"days": f"{hours // 24:,}", "hours": hours % 24}


def estimate(seconds: float) -> str:
    """Return an estimated time in the active language, in two digits and rounded up: ``~1.1 s``, ``~25 min``."""
    for unit, words in ((86_400, _("%s d")), (3600, _("%s h")), (60, _("%s min")), (1, _("%s s"))):
        if seconds > 0.99 * unit:
            return f"~{words % _rounded_up(seconds / unit)}"
    return f"~{_('%s ms') % _rounded_up(seconds * 1000)}"


def whole_units(seconds: float) -> str:
    """Return seconds in their largest whole unit, in the active language: ``5 s``, ``10 min``, ``1 d``."""
    for unit, words in ((86_400, _("%s d")), (3600, _("%s h")), (60, _("%s min"))):
        if seconds >= unit and seconds % unit == 0:
            return words % f"{seconds / unit:.0f}"
    return _("%s s") % number(seconds)


def _rounded_up(value: float) -> str:
    if value <= 0:
        return "0"
    digit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return f"{math.ceil(value / digit - 0.1) * digit:.6g}"  # 10.001 is 10


def folded(text: str) -> str:
    """Return what is equal for texts that differ in case, accents, width or spaces at the end only."""
    if text.isascii():
        return text.lower().rstrip()  # the same, without a look at each of what may be millions of characters
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return "".join(filterfalse(unicodedata.combining, plain)).rstrip()
