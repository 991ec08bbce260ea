"""Values as the text of cells. Names and values come from anybody, so none of them can be trusted."""

import math
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from django.utils import formats, timezone
from django.utils.translation import gettext as _

from redis_kit.core.panels import Bytes, Estimate, Lines, Link, Meter, Shade, Sparkline, Value, Words
from redis_kit.core.text import byte_size, duration, estimate, text_width

MAX_SHOWN = 200  # characters
MAX_UNBROKEN = 16  # characters that stay on one line; wide ones, as Chinese has, count twice
MAX_ID = 24
MAX_WORD = 40  # characters that are not broken, if they are one word
BREAK = "\0"  # in no text that visible() returns
DOTTED = re.compile(r"(?<!\S)[^\W\d]\w*(?:\.[^\W\d]\w*)+(?=[\s,:;()]|$)")
MOMENT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?")
MAX_TOOLTIP = 4096  # characters
SHADES = 4  # above 0
SPARK_HEIGHT, MOST_POINTS = 20, 120  # of a sparkline
# Persian and Indic scripts and joined emoji need these two; every other format character can deceive.
JOINERS = "\u200c\u200d"
HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def level(value: Value | None) -> float | None:
    """Return the number of a value that can be drawn, None for any other."""
    if isinstance(value, timedelta):
        value = value.total_seconds()
    elif isinstance(value, Estimate):
        value = value.seconds
    return value if value is not None and math.isfinite(value) and value >= 0 else None


def highest(levels: Iterable[float | None]) -> float:
    """Return the highest level; 0 if there is none."""
    return max((each for each in levels if each is not None), default=0)


def highest_value(values: Iterable[Value | None]) -> Value:
    """Return the value with the highest level; 0 if none can be drawn."""
    return max((value for value in values if value is not None), key=lambda value: level(value) or 0, default=0)


def line_path(values: Sequence[float | None], most: float, height: int, step: int) -> str:
    """Return the path of a line, which begins again after a gap; a value between two gaps is a dot."""
    path, pen = "", "M"
    for index, value in enumerate(values):
        if value is None:
            pen = "M"
            continue
        path += f"{pen}{index * step} {height - height * value / (most or 1):.1f}" + ("h0" if pen == "M" else "")
        pen = "L"
    return path


def dots_path(values: Sequence[float | None], most: float, height: int, step: int) -> str:
    """Return the path of the dots of a line: its values between two gaps, which would be too small to see."""
    around = zip([None, *values[:-1]], values, [*values[1:], None], strict=False)
    alone = [value if before is after is None else None for before, value, after in around]
    return line_path(alone, most, height, step)


class MeterView(NamedTuple):
    """The part of the bar that is filled, in percent, and whether a limit is reached."""

    part: str
    full: bool
    template: str = "redis_kit/dashboard/_meter.html"


class SparklineView(NamedTuple):
    """The path of a small line, in a drawing of this size."""

    path: str
    width: int
    height: int = SPARK_HEIGHT
    template: str = "redis_kit/dashboard/_sparkline.html"


class Cell(NamedTuple):
    """A text, what is beside it, and the lines below it; ``full`` is the uncut text if it was cut.

    ``link`` is an address relative to that of the overview, and ``shade`` 0 to 4 is that of its background.
    """

    text: str
    full: str = ""
    number: bool = False
    drawing: MeterView | SparklineView | None = None
    below: tuple["Cell", ...] = ()
    link: str = ""
    shade: int = 0
    beside: tuple["Cell", ...] = ()

    @property
    def short(self) -> bool:
        """Return whether the text is too short to be broken."""
        return not self.beside and len(self.text) <= MAX_UNBROKEN and text_width(self.text) <= MAX_UNBROKEN

    @property
    def unbroken(self) -> bool:
        """Return whether the text stays on one line: it is short, or one word, such as an id, which has hyphens."""
        single = len(self.parts) == len(self.text.split()) == 1
        return self.short or (single and text_width(self.text) <= MAX_ID)

    @property
    def moment(self) -> list[str]:
        """Return the date and the time of a text that is both: a line may break only between them."""
        return self.text.split() if MOMENT.fullmatch(self.text) and not self.link else []

    @property
    def parts(self) -> list[str]:
        """Return the text in parts, between which a line may break: after the dots of long names such as a.b.c."""
        return DOTTED.sub(_with_breaks, self.text).split(BREAK)

    @property
    def words(self) -> list[str]:
        """Return the parts of a label, between which a line may break: after underscores."""
        return re.split("(?<=_)", self.text)

    @property
    def long(self) -> bool:
        """Return whether a word is too long for a line, so that it may be broken anywhere."""
        return any(len(word) > MAX_WORD for part in self.parts for word in part.split())


class Data(NamedTuple):
    """The table below a chart: the names of its columns, and its rows, each a name and its values."""

    columns: Sequence[Cell]
    rows: Sequence[tuple[Cell, Sequence[Cell]]]


def _with_breaks(name: re.Match[str]) -> str:
    return name[0].replace(".", f".{BREAK}") if len(name[0]) > MAX_UNBROKEN else name[0]


def cell(value: Any, cut: int = MAX_SHOWN) -> Cell:
    """Return the cell of any value: cut, with control characters escaped. The template escapes HTML."""
    if isinstance(value, Meter):
        reached = value.number >= value.most and not value.wanted
        meter = MeterView(_part(value.number, value.most), reached) if value.most > 0 else None
        shown = _of(value) if value.shown is None else value.shown
        return cell(shown, cut)._replace(number=False, drawing=meter)
    if isinstance(value, Sparkline):
        points = [level(point) for point in value.values[-MOST_POINTS:]]
        line = line_path(points, highest(points), SPARK_HEIGHT, 1)
        spark = SparklineView(line, max(len(points) - 1, 1))
        return cell(value.value, cut)._replace(number=False, drawing=spark)
    if isinstance(value, Shade):
        return cell(value.value, cut)._replace(shade=shade(value.share, 1))
    if isinstance(value, Link):
        return cell(value.value, cut)._replace(link=address(value.slug, value.asked))
    if isinstance(value, Lines):
        first, *rest = [cell(line, cut) for line in value.lines if line not in ("", None)] or [Cell("")]
        return first._replace(number=False, below=tuple(rest))
    if isinstance(value, Words):
        first, *rest = [cell(word, cut) for word in value.values] or [Cell("")]
        return first._replace(number=False, beside=tuple(rest))
    plain = readable(value)
    text = visible(plain[: MAX_TOOLTIP + 1])
    number = isinstance(value, (int, float, Decimal, timedelta, Estimate, Bytes)) and not isinstance(value, bool)
    if len(text) <= cut:
        return Cell(text, number=number)
    full = text if len(plain) <= MAX_TOOLTIP else text[:MAX_TOOLTIP] + "…"
    return Cell(text[: cut - 1] + "…", full, number)


def lines(text: str, limit: int) -> str:
    """Return a text of several lines: cut, with control characters escaped."""
    shown = "\n".join(visible(line.expandtabs(8)) for line in text[: limit + 1].splitlines())
    return shown if len(text) <= limit else f"{shown[:limit]}…"


def readable(value: Any) -> str:
    """Return a value in the format of the active language and time zone."""
    if value is None or (isinstance(value, (float, Decimal)) and not math.isfinite(value)):
        return "–"
    if isinstance(value, bool):
        return _("Yes") if value else _("No")
    if isinstance(value, (int, float, Decimal)):
        return _number(value)
    if isinstance(value, Bytes):
        return byte_size(value.number)
    if isinstance(value, timedelta):
        seconds = value.total_seconds()
        return ("−" if seconds < 0 else "") + duration(abs(seconds))
    if isinstance(value, Estimate):
        return estimate(value.seconds)
    if isinstance(value, datetime):
        local = timezone.localtime(value) if timezone.is_aware(value) else value
        return local.strftime("%Y-%m-%d %H:%M:%S")
    if isinstance(value, date):
        return value.isoformat()
    return bytes(value).decode(errors="backslashreplace") if isinstance(value, (bytes, bytearray)) else str(value)


def visible(text: str) -> str:
    """Return the text with invisible characters, and those that change its direction, as escapes."""
    if text.isprintable() and text.isascii():
        return text
    return "".join(_escape(character) for character in text)


def _escape(character: str) -> str:
    if character in JOINERS or unicodedata.category(character) not in HIDDEN:
        return character
    return character.encode("unicode_escape", "surrogatepass").decode()


def address(slug: str, asked: Mapping[str, str], file: str = "") -> str:
    """Return where the page of a panel with a search is, or a file of it, relative to the overview."""
    search = f"?{urlencode(asked, errors='replace')}" if asked else ""
    return f"{quote(slug, safe='', errors='replace')}/{file}{search}"


def _of(meter: Meter) -> str:
    number, most = readable(meter.number), readable(meter.most)
    return _("%(number)s of %(most)s") % {"number": number, "most": most} if meter.most > 0 else number


def _part(number: float, most: float) -> str:
    return f"{100 * min(max(number / most, 0), 1) if math.isfinite(number / most) else 0:.1f}"


def shade(number: float, most: float) -> int:
    """Return the shade of a number out of ``most``: 0 for nothing, 4 for all."""
    return math.ceil(SHADES * min(number / most, 1)) if most > 0 and number > 0 and math.isfinite(number) else 0


def _number(value: Any) -> str:
    places = 0 if abs(value) >= 100 else 2 if abs(value) >= 1 else 4
    _whole, _point, fraction = f"{value:.{places}f}".partition(".")
    decimals = len(fraction.rstrip("0"))
    return str(formats.number_format(round(value, decimals), decimal_pos=decimals, force_grouping=True))
