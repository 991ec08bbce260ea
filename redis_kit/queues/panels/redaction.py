"""The content of a job as people may see it: shortened, with values hidden whose names suggest a secret."""

import re
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from redis_kit.queues.errors import CorruptMessage, UnknownTask
from redis_kit.queues.jobs import message
from redis_kit.queues.jobs import payload as serializers
from redis_kit.queues.tasks import registry

HIDDEN = "***"
LONGEST = 200  # characters of a text in the arguments
MOST = 2000  # characters of all
ITEMS = 50  # of a list or an object
_WORDS = "passw|passphrase|pwd|token|secret|key|credential|authoriz|cookie|session|signature"
_NAME = re.compile(_WORDS, re.IGNORECASE)
# Each name is read once, without a step back: a text of an attacker must not keep the page for long.
_GIVEN = re.compile(
    rf"""
    (?<![\w.-]) (?=[\w.-]*?(?:{_WORDS}))
    ([\w.-]++ (?<!error) ["']?+ \s*+ [=:] \s*+ ["']?+)
    (?:(?:bearer|basic|token)\s++)? [^\s&,;"'}}]++
    """,
    re.IGNORECASE | re.VERBOSE,
)
_IN_ADDRESS = re.compile(r"(://[^/\s:@]*:)[^@/\s]+@")


def text(value: str) -> str:
    """Return a text with the values hidden that follow names such as ``token=``, and passwords in addresses."""
    return _IN_ADDRESS.sub(rf"\1{HIDDEN}@", _GIVEN.sub(rf"\1{HIDDEN}", value))


def payload(body: bytes) -> str:
    """Return what a job holds as text: of a task the arguments, of any other the payload."""
    try:
        value = serializers.loads(body)
    except CorruptMessage:
        return _("It can't be read.")
    try:
        call = message.loads(body)
    except CorruptMessage:
        return repr(_redacted(value))[:MOST]
    return ", ".join(_arguments(call))[:MOST]


def value(stored: bytes) -> str:
    """Return a return value, given as it is stored, as text."""
    try:
        return repr(_redacted(serializers.loads(stored)))[:MOST]
    except CorruptMessage:
        return _("It can't be read.")


def _arguments(call: message.Message) -> list[str]:
    try:
        names = [*registry.find(call.task).signature.bind_partial(*call.args).arguments]
    except (UnknownTask, TypeError):
        names = None
    given = [*map(repr, _positional(call.args, names))]
    return [*given, *(f"{name}={value!r}" for name, value in _redacted(call.kwargs).items())]


def _positional(args: list[Any], names: list[str] | None) -> list[Any]:
    # Without names any argument may be a secret.
    if names is None:
        return [arg if arg is None or isinstance(arg, (bool, int, float)) else HIDDEN for arg in args[:ITEMS]]
    last = names[-1:] * len(args)  # what is left over belongs to *args
    return [
        HIDDEN if _NAME.search(name) else _redacted(arg) for name, arg in zip(names + last, args[:ITEMS], strict=False)
    ]


def _redacted(value: Any) -> Any:
    if isinstance(value, Mapping):
        items = list(value.items())[:ITEMS]
        return {name: HIDDEN if _NAME.search(name) else _redacted(item) for name, item in items}
    if isinstance(value, list):
        return [_redacted(item) for item in value[:ITEMS]]
    if isinstance(value, bytes):
        return HIDDEN
    if isinstance(value, str):
        return text(value if len(value) <= LONGEST else f"{value[:LONGEST]}…")
    return value
