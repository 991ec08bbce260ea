"""The content of a job as people may see it: shortened, with values hidden whose names suggest a secret."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from redis_kit.core.logs.masking import HIDDEN, is_secret, without_secrets
from redis_kit.queues.errors import CorruptMessage, UnknownTask
from redis_kit.queues.jobs import message
from redis_kit.queues.jobs import payload as serializers
from redis_kit.queues.tasks import registry

LONGEST = 200  # characters of a text in the arguments
MOST = 2000  # characters of all
ITEMS = 50  # of a list or an object
text = without_secrets


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
        HIDDEN if is_secret(name) else _redacted(arg) for name, arg in zip(names + last, args[:ITEMS], strict=False)
    ]


def _redacted(value: Any) -> Any:
    if isinstance(value, Mapping):
        items = list(value.items())[:ITEMS]
        return {name: HIDDEN if is_secret(name) else _redacted(item) for name, item in items}
    if isinstance(value, list):
        return [_redacted(item) for item in value[:ITEMS]]
    if isinstance(value, bytes):
        return HIDDEN
    if isinstance(value, str):
        return text(value if len(value) <= LONGEST else f"{value[:LONGEST]}…")
    return value
