"""Values as text to look at. Names and values come from anybody, so nothing here may be trusted."""

import math
import unicodedata
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from django.utils import formats, timezone
from django.utils.translation import gettext as _

from redis_kit.core.panels import Lines, Link, Meter, Ring

CUT = 200  # characters shown
SHORT = 16  # characters that stay on one line
MOST = 4096  # characters kept for the tooltip
# Letters of Persian and Indic scripts and of joined emoji need these two; every other format character can deceive.
JOINERS = "\u200c\u200d"
HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}


class RingDrawn(NamedTuple):
    """The part of a ring that is drawn strong, of 100."""

    part: str
    template: str = "redis_kit/dashboard/_ring.html"


class MeterDrawn(NamedTuple):
    """The part of a bar that is drawn strong, of 100, and whether that is all of it."""

    part: str
    full: bool
    template: str = "redis_kit/dashboard/_meter.html"


class Cell(NamedTuple):
    """A text to draw, what is drawn beside it, and lines below; ``full`` is the uncut text where it was cut.

    ``link`` is where it leads, from the address of the overview on.
    """

    text: str
    full: str = ""
    number: bool = False
    drawing: RingDrawn | MeterDrawn | None = None
    below: tuple["Cell", ...] = ()
    link: str = ""

    @property
    def short(self) -> bool:
        """Say whether it is too short to be broken."""
        return len(self.text) <= SHORT


def cell(value: Any, cut: int = CUT) -> Cell:
    """Return what to draw for any value: cut, with control characters escaped. HTML is escaped by the template."""
    if isinstance(value, Ring):
        ring = RingDrawn(_part(value.share, 1))
        return cell(value.value, cut)._replace(number=False, drawing=ring)
    if isinstance(value, Meter):
        meter = MeterDrawn(_part(value.number, value.most), value.number >= value.most) if value.most > 0 else None
        return Cell(_of(value), drawing=meter)
    if isinstance(value, Link):
        return cell(value.value, cut)._replace(link=_address(value))
    if isinstance(value, Lines):
        first, *rest = [cell(one, cut) for one in value.lines if one not in ("", None)] or [Cell("")]
        return first._replace(number=False, below=tuple(rest))
    plain = readable(value)
    text = visible(plain[: MOST + 1])
    number = isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)
    if len(text) <= cut:
        return Cell(text, number=number)
    full = text if len(plain) <= MOST else text[:MOST] + "…"
    return Cell(text[: cut - 1] + "…", full, number)


def lines(text: str, most: int) -> str:
    """Return a text of several lines as it can be looked at: cut, and with control characters escaped."""
    shown = "\n".join(visible(line.expandtabs(8)) for line in text[: most + 1].splitlines())
    return shown if len(text) <= most else f"{shown[:most]}…"


def readable(value: Any) -> str:
    """Return a value as people of the active language and time zone write it."""
    if value is None or (isinstance(value, (float, Decimal)) and not math.isfinite(value)):
        return "–"
    if isinstance(value, bool):
        return _("Yes") if value else _("No")
    if isinstance(value, (int, float, Decimal)):
        return _number(value)
    if isinstance(value, timedelta):
        return _duration(value.total_seconds())
    if isinstance(value, datetime):
        local = timezone.localtime(value) if timezone.is_aware(value) else value
        return local.strftime("%Y-%m-%d %H:%M:%S")
    if isinstance(value, date):
        return value.isoformat()
    return bytes(value).decode(errors="backslashreplace") if isinstance(value, (bytes, bytearray)) else str(value)


def visible(text: str) -> str:
    """Return the text with characters that can't be seen, or that turn the direction of others, as escapes."""
    if text.isprintable() and text.isascii():
        return text
    return "".join(_escape(one) for one in text)


def _escape(character: str) -> str:
    if character in JOINERS or unicodedata.category(character) not in HIDDEN:
        return character
    return character.encode("unicode_escape", "surrogatepass").decode()


def _address(link: Link) -> str:
    asked = urlencode(link.asked, errors="replace")
    return f"{quote(link.slug, safe='', errors='replace')}/" + (f"?{asked}" if asked else "")


def _of(meter: Meter) -> str:
    number, most = readable(meter.number), readable(meter.most)
    return _("%(number)s of %(most)s") % {"number": number, "most": most} if meter.most > 0 else number


def _part(number: float, most: float) -> str:
    return f"{100 * min(max(number / most, 0), 1) if math.isfinite(number / most) else 0:.1f}"


def _number(value: Any) -> str:
    most = 0 if abs(value) >= 100 else 2 if abs(value) >= 1 else 4
    _whole, _point, fraction = f"{value:.{most}f}".partition(".")
    decimals = len(fraction.rstrip("0"))
    return str(formats.number_format(round(value, decimals), decimal_pos=decimals, force_grouping=True))


def _duration(seconds: float) -> str:
    if abs(seconds) < 1:
        return f"{seconds * 1000:.0f} ms"
    if abs(seconds) < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(abs(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    clock = f"{hours}:{minutes:02}:{rest:02}"
    return ("−" if seconds < 0 else "") + (f"{days} d {clock}" if days else clock)
