"""Effects in the database that happen once for a key, however often a job is delivered."""

import inspect
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from functools import partial, wraps
from hashlib import sha256
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from django.apps import apps
from django.db import IntegrityError, transaction
from django.utils.timezone import now

from redis_kit.core.errors import ConfigurationError, InvalidValue
from redis_kit.core.text import shortened
from redis_kit.queues import validation
from redis_kit.queues.engine import payload
from redis_kit.queues.validation import Delay

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from redis_kit.queues.models import OnceKey

LONGEST = 255  # characters of a key
ONE_IN = 100  # first times after which expired keys are deleted
DELETED = 1000  # expired keys at a time
Key = str | Callable[..., str]
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class Occurrence:
    """One run of a block under once(). True if it is the first time; else ``result`` is what the first one set.

    ``result`` is JSON, with datetime, date, Decimal, UUID and bytes beside JSON's types. It is stored with the key.
    """

    def __init__(self, result: Any = None, *, first: bool) -> None:
        self.first, self.result = first, result

    def __bool__(self) -> bool:
        return self.first


class _Blocks(threading.local):
    """The blocks that a thread is in."""

    def __init__(self) -> None:
        self.blocks: list[AbstractContextManager[Occurrence]] = []


class Once:
    """A context manager and a decorator, made by once()."""

    def __init__(self, key: Key, using: str, keep: Delay | None) -> None:
        self._key, self._using, self._keep = key, using, keep
        self._own = _Blocks()

    def __enter__(self) -> Occurrence:
        if callable(self._key):
            raise InvalidValue("A function as the key of once() needs arguments: use it as @once(...), or pass text.")
        block = _block(self._key, self._using, self._keep)
        occurrence = block.__enter__()
        self._own.blocks.append(block)
        return occurrence

    def __exit__(self, *raised: Any) -> bool | None:
        return self._own.blocks.pop().__exit__(*raised)

    def __call__(self, function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        """Return a function that runs once for a key, and then returns what was returned first."""
        if inspect.iscoroutinefunction(function):
            raise InvalidValue(
                f"once() can't decorate the coroutine function {function.__qualname__}: Django has no transactions in "
                "asynchronous code. Decorate a function, and call it with sync_to_async()."
            )

        @wraps(function)
        def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Any:
            key = self._key(*args, **kwargs) if callable(self._key) else self._key
            with _block(key, self._using, self._keep) as occurrence:
                if occurrence:
                    occurrence.result = function(*args, **kwargs)
            return occurrence.result

        return call


def once(key: Key, *, using: str = "default", keep: Delay | None = None) -> Once:
    """Run a block, or a function, whose changes in the database happen once for a key. It runs in a transaction.

    ``with once(f"charge:{order.pk}") as first:`` stores the key (1 to 255 characters) in that transaction. ``first`` is
    True if no committed transaction has done so before, and ``first.result`` is stored for later times. A second run at
    the same moment waits for the end of the first one. After a rollback the key is free.

    ``@once(lambda order_id: f"charge:{order_id}")`` makes a function return its first result again; in place of a
    function the key may be text. Only what the transaction does on the database ``using`` happens once, not a mail or a
    call to an API. ``keep`` is a time in seconds, or a timedelta, after which the key is forgotten; by default never.

    One INSERT in a savepoint, an UPDATE to store a result, a SELECT at later times, and a DELETE with ``keep``. Raises
    InvalidValue, and NotSerializable or PayloadTooLarge for a result.
    """
    if not callable(key):
        _check(key)
    if keep is not None:
        validation.milliseconds(keep, "keep", positive=True)
    return Once(key, using, keep)


@contextmanager
def _block(key: str, using: str, keep: Delay | None) -> Iterator[Occurrence]:
    _check(key)
    if not apps.is_installed("redis_kit"):
        raise ConfigurationError("once() needs a table: add 'redis_kit' to INSTALLED_APPS, and run migrate.")
    with transaction.atomic(using=using):
        occurrence = _occurrence(key, using, keep)
        yield occurrence
        if occurrence and occurrence.result is not None:
            text = payload.dumps(occurrence.result, "result").decode()
            _keys(using).filter(digest=_digest(key)).update(result=text)


def _occurrence(key: str, using: str, keep: Delay | None) -> Occurrence:
    from redis_kit.queues.models import OnceKey

    digest, expires = _digest(key), None
    if keep is not None:
        expires = now() + (keep if isinstance(keep, timedelta) else timedelta(seconds=keep))
        _keys(using).filter(digest=digest, expires__lte=now()).delete()
        if not random.randrange(ONE_IN):  # noqa: S311 -- spreads work, hides nothing
            transaction.on_commit(partial(_delete_expired, using), using=using, robust=True)
    try:
        with transaction.atomic(using=using):
            OnceKey(digest=digest, key=key, expires=expires).save(using=using, force_insert=True)
    except IntegrityError:
        stored = _keys(using).filter(digest=digest).values_list("result", flat=True)
        if not (results := list(stored)):
            raise  # a transaction with an old snapshot does not see the row; another attempt does
        return Occurrence(payload.loads(results[0].encode()) if results[0] else None, first=False)
    return Occurrence(first=True)


def _delete_expired(using: str) -> None:
    expired = _keys(using).filter(expires__lte=now()).order_by("expires").values_list("digest", flat=True)
    _keys(using).filter(digest__in=list(expired[:DELETED])).delete()


def _keys(using: str) -> "QuerySet[OnceKey]":
    from redis_kit.queues.models import OnceKey

    return OnceKey._base_manager.using(using)


def _digest(key: str) -> str:
    return sha256(key.encode()).hexdigest()


def _check(key: Any) -> None:
    is_text = isinstance(key, str) and "\0" not in key and key.encode("utf-8", "replace").decode() == key
    if not is_text or not 0 < len(key) <= LONGEST:
        raise InvalidValue(f"The key of once() must be text of 1 to {LONGEST} characters, not {shortened(key)}.")
