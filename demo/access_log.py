"""Access logs in Combined Log Format, line by line."""

import gzip
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import IO, NamedTuple, cast

QUOTED = r'"((?:[^"\\]|\\.)*)"'
# host identity user [time] "request" status bytes "referer" "agent"; further fields are ignored.
LINE = re.compile(rf"(\S+) \S+ .*?\[([^\]]*)\] {QUOTED} \d{{3}} (?:\d+|-) {QUOTED} {QUOTED}(?: .*)?")
REQUEST = re.compile(r"([A-Z]+) (/[^\x00-\x20\x7f]*) HTTP/\d(?:\.\d)?")
ESCAPED = re.compile(r'\\(x[0-9a-fA-F]{2}|[\\"bnrtv])')
CONTROLS = {"b": "\b", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
NOT_ASCII = re.compile(r"[^\x00-\x7f]")
UNSENDABLE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
GZIP = b"\x1f\x8b"


class Hit(NamedTuple):
    """One request of a log, as it can be sent again. ``moment`` is the text in the log; see seconds()."""

    address: str
    moment: str
    method: str
    target: str
    referer: str
    agent: str


def read(path: Path) -> Iterator[Hit | None]:
    """Yield the request of each line, None for a line without one. The file may be plain or compressed by gzip."""
    with opened(path) as lines:
        for line in lines:
            if not line.isspace():
                yield parse(line)


def opened(path: Path) -> IO[str]:
    """Open a log by its content, not by its name. Each byte is a character, so that none is lost."""
    with path.open("rb") as file:
        compressed = file.read(2) == GZIP
    if compressed:
        return cast(IO[str], gzip.open(path, "rt", encoding="latin-1", newline="\n"))
    return path.open(encoding="latin-1", newline="\n")


def parse(line: str) -> Hit | None:
    """Return the request of a line; None if it can't be sent again: cut off, without a path, not HTTP."""
    fields = LINE.fullmatch(line.rstrip("\r\n"))
    asked = REQUEST.fullmatch(unescaped(fields[3])) if fields else None
    if not fields or not asked:
        return None
    target = NOT_ASCII.sub(lambda char: f"%{ord(char[0]):02X}", asked[2])
    return Hit(fields[1], fields[2], asked[1], target, _header(fields[4]), _header(fields[5]))


def seconds(hit: Hit) -> float | None:
    """Return the time of a request in seconds since 1970; None if the log's time is not valid."""
    try:
        return datetime.strptime(hit.moment, "%d/%b/%Y:%H:%M:%S %z").timestamp()
    except ValueError:
        return None


def unescaped(text: str) -> str:
    r"""Return the text with ``\"``, ``\\`` and ``\xhh`` decoded."""
    return ESCAPED.sub(lambda match: _plain(match[1]), text)


def _header(text: str) -> str:
    return "" if text == "-" else UNSENDABLE.sub("", unescaped(text)).strip()


def _plain(escape: str) -> str:
    if escape.startswith("x"):
        return chr(int(escape[1:], 16))
    return CONTROLS.get(escape, escape)
