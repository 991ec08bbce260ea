"""Text without secrets: values are hidden whose names suggest one, and passwords in addresses."""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from logging import LogRecord

from redis_kit.core import conf

HIDDEN = "***"
_WORDS = "passw|passphrase|pwd|jwt|token|secret|key|credential|authoriz|cookie|session|signature"
_NO_SECRET = ("error", "exception", "conflict", "warning", "violation")  # ends of the names of exceptions
_SECRET = re.compile(rf"(?:{_WORDS})(?!\w*(?:{'|'.join(_NO_SECRET)})$)", re.IGNORECASE)
# Names and words of names that hold parts of these words and are harmless. Others count as secret.
_HARMLESS_NAME = re.compile(
    r"keys|sessions|signatures|(?:(?:max|total|prompt|completion|input|output)_)?tokens"
    r"|(?:\w*[_.-])?(?:sort|foreign|partition|group)[_.-]?keys?",
    re.IGNORECASE,
)
_HARMLESS_WORD = re.compile(
    r"(?:un)?authori[sz]ed|authenticated|author(?:s|ed|ity|ities)?"
    r"|(?:mon|tur|don|hot|joc|whis)keys?|hockey|key(?:board|word)s?"
    r"|passengers?|compass|pass(?:ed|es|ing|age|ive)|bypass|capital|rapid|therapist|secretary",
    re.IGNORECASE,
)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
# Each of these reads a text without a step back: a text of an attacker must not keep its reader for long. What a group
# repeats possessively fails at its first character: Python 3.11.0 to 3.11.4 go on where it failed.
_NAMED = re.compile(
    r"""
    (?<![\w.-])
    (?: (--[\w.-]++) [ \t]++ (?![-\s])                                  # --password x
      | \( ([^()=]{1,200}+) \) = (?=\()                                 # Key (email, password)=(x, y)
      | < (\w[\w.-]*+ (?::[\w.-]++)?) (?=(?:\s++[\w.:-]++=[^<>]*+)?>)   # <password>x</password>
      | ([\w.-]++)
        (?: \\*+["']?+ \]?+ \s*+ (?:!?={1,3}+>?+|:=?+) \s*+             # password=x, 'password': x
          | \\*+["'] \s*+,\s*+ (?=b?\\*+["']|[\[({<\d-])                # 'password', 'x'
        )
    )
    """,
    re.VERBOSE,
)
_QUOTED = r"""b?(["']) (?:(?<=")(?:[^"\\]++|\\.)*+|(?<=')(?:[^'\\]++|\\.)*+) | (\\++["']) [^\\"']*+"""
_PLAIN = r"""[^\s&,;"'}\])]"""
_VALUE = re.compile(rf"""{_QUOTED} | (?:(?:bearer|basic|digest|token)\s++)? {_PLAIN}++""", re.I | re.X | re.S)
_HEADER = re.compile(rf"{_QUOTED} | [^\r\n]++", re.VERBOSE | re.DOTALL)  # several values
_HEADERS = ("authorization", "cookie")  # the ends of their names
_OPENING = re.compile(r"[\w.]*+([\[({<])")  # of a list, a dict, or what repr() writes, such as Decimal('1')
_REST = re.compile(f"{_PLAIN}*+")
_BRACKETS = {
    opening: re.compile(
        rf"""
        (?<!\\)\\++["'][^\\"']*+(?:\\++["'])? | "(?:[^"\\]++|\\.)*+"?+ | '(?:[^'\\]++|\\.)*+'?+
        | (\{opening}) | (\{closing})
        """,
        re.VERBOSE | re.DOTALL,
    )
    for opening, closing in ("[]", "()", "{}", "<>")
}
# A value in a text such as "login %(password)s", or a percent sign.
_ARGUMENT = re.compile(r"%%|%\(([^()]*)\)[-#0 +]*(?:\d+|\*)?(?:\.(?:\d+|\*))?[hlL]?[a-zA-Z]")
_ELEMENT = 2000  # characters of an element of XML that are searched for its end
_SCHEME = re.compile(r"\b(bearer|basic|digest|token)(\s++)(?=\S*\d)[\w.~+/=-]{8,}+", re.IGNORECASE)
# The part of an address before the host: a name and a password, or a token.
_IN_ADDRESS = re.compile(r"(://)([^/\s:@\"']*+:)?[^/\s\"']*@")


def is_secret(name: str) -> bool:
    """Tell whether a name suggests a secret, such as ``api_key``."""
    return bool(_SECRET.search(_telling(name)))


@lru_cache(maxsize=4096)
def is_hidden(name: str) -> bool:
    """Tell whether a name suggests a secret, or the project's filter of Django's error reports hides its value."""
    if is_secret(name):
        return True
    from django.views.debug import SafeExceptionReporterFilter, get_exception_reporter_filter

    try:  # a class of the project's may fail, or its path may be wrong
        reporter_filter = get_exception_reporter_filter(None)
        is_djangos = type(reporter_filter) is SafeExceptionReporterFilter
        shown: object = reporter_filter.cleanse_setting(_telling(name) if is_djangos else name, HIDDEN * 2)
    except Exception:
        return True
    return shown != HIDDEN * 2 and not name.lower().endswith(_NO_SECRET)


def _telling(name: str) -> str:
    """Return a name without its harmless words."""
    if _HARMLESS_NAME.fullmatch(name):
        return ""
    return _WORD.sub(lambda match: " " if _HARMLESS_WORD.fullmatch(match[0]) else match[0], name)


def without_secrets(text: str, hides: Callable[[str], bool] = is_secret, *, is_cut: bool = False) -> str:
    """Return a text with the values hidden that follow names such as ``token=``, and passwords in addresses.

    Of a text that is cut, an address at the end is left out: its password may be cut before the sign that ends it.
    """
    if is_cut and (start := text.rfind("://")) > text.rfind(" "):
        text = text[:start]
    if "://" in text:
        text = _IN_ADDRESS.sub(lambda match: f"://{match[2] or ''}{HIDDEN}@", text)
    parts, place = [], 0
    for name in _NAMED.finditer(text):
        if name.start() < place or not hides(name[name.lastindex or 0]):
            continue
        start, end = _value(text, name)
        if start < end:
            parts += [text[place:start], HIDDEN]
            place = end
    return _SCHEME.sub(rf"\1\2{HIDDEN}", "".join([*parts, text[place:]]))


def message_of(record: LogRecord, hides: Callable[[str], bool] = is_secret) -> str:
    """Return the message of a record, also if its text and its arguments do not fit.

    Of ``log.info("login %(password)s", {"password": "x"})`` the argument is hidden, as the message does not name it.
    """
    template = record.msg if isinstance(record.msg, str) else ""
    try:
        if isinstance(record.args, Mapping) and template:
            template = _ARGUMENT.sub(lambda match: HIDDEN if match[1] and hides(match[1]) else match[0], template)
            return str.__str__(template % record.args)
        return str.__str__(record.getMessage())
    except Exception as error:  # perhaps of a method of the project's
        return f"(the arguments can't be formatted: {type(error).__name__}) {template}"


def _value(text: str, name: re.Match[str]) -> tuple[int, int]:
    """Return the place of the value of a name, without its quotes."""
    start = name.end()
    if name[3]:
        start = text.index(">", start) + 1
        end = text.find(f"</{name[3]}", start, start + _ELEMENT)
        if end < 0:
            end = text.find("<", start)
        return start, end if end >= 0 else len(text)
    if opening := _OPENING.match(text, start):
        rest = _REST.match(text, _closed(text, opening.start(1)))
        return start, rest.end() if rest else len(text)
    values = _HEADER if name[name.lastindex or 0].lower().endswith(_HEADERS) else _VALUE
    value = values.match(text, start)
    if not value:
        return start, start
    quote = value.lastindex
    return (value.end(quote) if quote else start), value.end()


def _closed(text: str, start: int) -> int:
    """Return the end of what is in brackets, with others within and texts in quotes; that of the text without one."""
    depth = 0
    for token in _BRACKETS[text[start]].finditer(text, start):
        depth += bool(token[1]) - bool(token[2])
        if not depth:
            return token.end()
    return len(text)


conf.on_change(is_hidden.cache_clear, "DEFAULT_EXCEPTION_REPORTER_FILTER")
