"""Indexes of models: where they are made, how they are found, and what happens if one misses a change."""

import atexit
import hashlib
import logging
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from time import monotonic, sleep
from typing import Any, ClassVar, TypeVar

from django.apps import apps
from django.core.exceptions import ValidationError
from django.db import connections, router

from redis_kit.core import conf
from redis_kit.core.errors import ConfigurationError, InvalidValue, RedisKitError
from redis_kit.core.logs.error_text import described
from redis_kit.core.logs.rate_limit import LogRateLimit
from redis_kit.core.text import did_you_mean, shortened
from redis_kit.core.web.lifespan import on_shutdown

Kind = TypeVar("Kind", bound="ModelIndex")
logger = logging.getLogger("redis_kit")
PAUSE = 1.0  # seconds between two attempts to report that an index misses a change
FIRST_BATCH = 1.0  # seconds that the start of a rebuild waits for it
AT_END = 3.0  # seconds for which a process that ends tries to do so
NO_VALUE = (ValidationError, TypeError, ValueError, ArithmeticError)  # errors about what a field can't take
_log_limit = LogRateLimit()


class ModelIndex:
    """An index of a model. It is made in ``models.py``, so that each process follows the saves of its model.

    A subclass knows how to rebuild itself, and stops all processes from relying on it by ``distrust()``.
    """

    #: The management command that rebuilds it.
    command: ClassVar[str] = ""
    #: What the log says of an index that misses a change.
    distrusted = "is not asked until it is rebuilt"

    def __init__(self, model: Any, name: str) -> None:
        if apps.ready and not conf.tests_run():
            raise ConfigurationError(
                f"Make {type(self).__name__} in models.py. Made later, it would miss what other processes save."
            )
        self.model = model._meta.concrete_model
        self.name = name
        _indexes.append(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"

    @property
    def names(self) -> Sequence[str]:
        """Return the names under which it is found."""
        return [self.name]

    def database_digest(self) -> str:
        """Return 12 digits that name the database that is written to: an index of the rows of another one has others.

        They are made of its ENGINE, HOST, PORT and NAME, and of the service and the search path of PostgreSQL.
        """
        settings = connections[router.db_for_write(self.model)].settings_dict
        options = settings.get("OPTIONS") or {}
        names = [settings.get(name) for name in ("ENGINE", "HOST", "PORT", "NAME")]
        text = repr([*map(str, names), options.get("service"), options.get("options")])
        return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()

    def distrust(self) -> None:
        """Let no process rely on the index until the next rebuild."""
        raise NotImplementedError

    def rebuild(self, *, progress: Callable[[int], object] | None = None) -> int:
        """Read all rows from the database and switch to them in one step; from then on the index is complete.

        Returns the number of rows. ``progress`` is called with the number of rows so far. Raises RebuildRunning, and
        RebuildLost if the server restarts during it.
        """
        raise NotImplementedError

    def rebuild_in_background(self) -> None:
        """Rebuild it in a thread of this process. The log says how it ended.

        Returns after the first batch of rows, and after a second at most. Until then its error is raised.
        """
        begun: Future[None] = Future()
        try:
            threading.Thread(target=self._rebuild_alone, args=[begun], name="redis-kit-rebuild", daemon=True).start()
        except RuntimeError as error:
            raise RedisKitError("This process can start no thread now. Try again later.") from error
        with suppress(TimeoutError):
            begun.result(FIRST_BATCH)

    def misses_change(self) -> bool:
        """Return whether this process failed to tell the index of a change, and could not report it yet."""
        if self not in _incomplete:
            return False
        _start_reporter()  # a fork has copied what is to report, and not the thread
        return True

    def report_miss(self, error: BaseException) -> None:
        """Rely on the index no longer: this process at once, others as soon as the server can be told."""
        if _log_limit.allows(repr(self)):
            logger.error("%r misses a change and %s: %s", self, self.distrusted, described(error))
        with _lock:
            _incomplete[self] = object()
        _start_reporter()

    def _rebuild_alone(self, begun: "Future[None]") -> None:
        def begin(_count: int = 0) -> None:
            if not begun.done():
                begun.set_result(None)

        try:
            logger.info("The rebuild of %r read %d rows.", self, self.rebuild(progress=begin))
            begin()
        except Exception as error:
            logger.error("The rebuild of %r failed: %s", self, described(error))  # noqa: TRY400
            if not begun.done():
                begun.set_exception(error if isinstance(error, RedisKitError) else RedisKitError(described(error)))
        finally:
            connections.close_all()


_indexes: list[ModelIndex] = []
_incomplete: dict[ModelIndex, object] = {}  # the latest missed change of each index whose server does not know it yet
_lock = threading.Lock()
_reporter: threading.Thread | None = None


def indexes(kind: type[Kind]) -> list[Kind]:
    """Return all indexes of models that are of a class."""
    return [index for index in _indexes if isinstance(index, kind)]


def find_index(kind: type[Kind], name: str) -> Kind:
    """Return the index with a name, such as ``shop.Product.pk``, in any case. Raises InvalidValue."""
    by_name = {index.name: index for index in indexes(kind)}
    for index in by_name.values():
        if name.lower() in map(str.lower, index.names):
            return index
    hint = did_you_mean(name, by_name, f"There are: {', '.join(sorted(by_name)) or 'none'}.")
    raise InvalidValue(f"No model has the {kind.__name__} {shortened(name)}. {hint}")


def _start_reporter() -> None:
    global _reporter
    with _lock, suppress(RuntimeError):  # the system allows no more threads: the next look-up tries again
        if _reporter is None:
            thread = threading.Thread(target=_report, name="redis-kit-indexes", daemon=True)
            thread.start()
            _reporter = thread


def _report() -> None:
    global _reporter
    try:
        while not _report_all():
            sleep(PAUSE)
    finally:
        with _lock:
            _reporter = None
        if _incomplete:  # one came after the last look
            _start_reporter()


def _report_all() -> bool:
    """Try to report each index, and return whether none is left."""
    with _lock:
        waiting = list(_incomplete.items())
    for index, miss in waiting:
        with suppress(Exception):  # of any kind: the others have their turn
            index.distrust()
            with _lock:
                if _incomplete.get(index) is miss:  # else a rebuild may have begun before the next one
                    del _incomplete[index]
    return not _incomplete


def report_at_end(timeout: float = AT_END) -> None:
    """Report what other processes do not know yet, before this process ends."""
    deadline = monotonic() + timeout
    while not _report_all() and monotonic() < deadline:
        sleep(PAUSE / 10)
    for index in list(_incomplete):
        hint = f"Run: manage.py {index.command} rebuild {index.name}" if index.command else "Rebuild it."
        logger.critical("%r misses a change, and no server could be told. %s", index, hint)


def _forked() -> None:
    """Let a child process report what its parent has not yet: threads are not copied, and the lock may be taken."""
    global _lock, _reporter
    _lock, _reporter = threading.Lock(), None


os.register_at_fork(after_in_child=_forked)
on_shutdown(report_at_end)
atexit.register(report_at_end)
