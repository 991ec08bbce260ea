"""Text without secrets: values are hidden whose names suggest one, and passwords in addresses."""

import re
from collections.abc import Callable
from functools import lru_cache

from redis_kit.core import conf

HIDDEN = "***"
_WORDS = "passw|passphrase|pwd|token|secret|key|credential|authoriz|cookie|session|signature"
_SECRET = re.compile(rf"(?:{_WORDS})(?!\w*error$)", re.IGNORECASE)
# Each of these reads a text without a step back: a text of an attacker must not keep its reader for long.
_NAMED = re.compile(
    r"""
    (?<![\w.-]) ([\w.-]++)
    (?: \\*+["']?+ \s*+ (?:=>|:=|[=:]) \s*+ | \\*+["'] \s*+,\s*+ (?=b?\\*+["']) )
    """,
    re.VERBOSE,
)
_QUOTED = r"""b?(["']) (?:(?!\1)[^\\]|\\.)*+ | (\\++["']) [^\\"']*+"""
_VALUE = re.compile(rf"""{_QUOTED} | (?:(?:bearer|basic|digest|token)\s++)?+ [^\s&,;"'}}\])]++""", re.I | re.X | re.S)
_HEADER = re.compile(rf"{_QUOTED} | [^\r\n]++", re.VERBOSE | re.DOTALL)  # several values
_HEADERS = ("authorization", "cookie")  # the ends of their names
_SCHEME = re.compile(r"\b(bearer|basic|digest|token)(\s++)(?=\S*\d)[\w.~+/=-]{8,}+", re.IGNORECASE)
# The part of an address before the host: a name and a password, or a token.
_IN_ADDRESS = re.compile(r"(://)([^/\s:@\"']*+:)?+[^/\s\"']*@")


def is_secret(name: str) -> bool:
    """Tell whether a name suggests a secret, such as ``api_key``."""
    return bool(_SECRET.search(name))


@lru_cache(maxsize=4096)
def is_hidden(name: str) -> bool:
    """Tell whether a name suggests a secret, or the project's filter of Django's error reports hides its value."""
    if is_secret(name):
        return True
    from django.views.debug import get_exception_reporter_filter

    try:
        shown: object = get_exception_reporter_filter(None).cleanse_setting(name, HIDDEN * 2)
    except Exception:  # of a class of the project's
        return True
    return shown != HIDDEN * 2 and not name.lower().endswith("error")


def without_secrets(text: str, hides: Callable[[str], bool] = is_secret) -> str:
    """Return a text with the values hidden that follow names such as ``token=``, and passwords in addresses."""
    if "://" in text:
        text = _IN_ADDRESS.sub(lambda match: f"://{match[2] or ''}{HIDDEN}@", text)
    parts, place = [], 0
    for name in _NAMED.finditer(text):
        if name.start() < place or not hides(name[1]):
            continue
        values = _HEADER if name[1].lower().endswith(_HEADERS) else _VALUE
        if value := values.match(text, name.end()):
            parts += [text[place : name.end()], value[1] or value[2] or "", HIDDEN]
            place = value.end()
    return _SCHEME.sub(rf"\1\2{HIDDEN}", "".join([*parts, text[place:]]))


conf.on_change(is_hidden.cache_clear, "DEFAULT_EXCEPTION_REPORTER_FILTER")
