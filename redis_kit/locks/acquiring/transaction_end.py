"""The end of a database transaction: a function is called once, at its commit or its rollback."""

import logging
from collections.abc import Callable
from threading import Thread
from typing import Any
from weakref import finalize

from django.db import connections
from django.db.transaction import TransactionManagementError

logger = logging.getLogger("redis_kit.locks")
ROLLBACK_WAIT = 2.0  # seconds that a rollback waits for the function

Function = Callable[[], object]


def check_database(database: str) -> None:
    """Raise ConnectionDoesNotExist for an unknown alias, TransactionManagementError if autocommit is off."""
    connection = connections[database]
    managed = connection.in_atomic_block and connection.commit_on_exit
    if connection.connection is not None and not managed and not connection.autocommit:
        raise TransactionManagementError(
            f"release='on_commit' needs autocommit on the database {database!r}: without it Django does not tell when "
            "a transaction is committed. Use transaction.atomic()."
        )


def in_transaction(database: str) -> bool:
    """Tell whether this thread is in a transaction of a database that can still be committed.

    The blocks that a TestCase puts around tests don't count. Always False in a task of an event loop of its own. No
    round trip and no query.
    """
    connection = connections[database]
    return _own_blocks(connection) > 0 and not connection.closed_in_transaction


def call_at_end(database: str, function: Function, *, lease: Any = None) -> None:
    """Call a function once when the outermost transaction is committed or rolled back; at once outside of one.

    Rolling back an inner block does not end the transaction, closing the connection does. After a commit the function
    runs in this thread, after those that ``on_commit()`` registered before. Its errors are logged, never raised.
    ``lease`` is the lease that it will release.
    """
    if not in_transaction(database):
        _call(function)
        return
    connection = connections[database]
    # Django drops the functions of a savepoint that is rolled back, although the transaction goes on.
    savepoints = connection.savepoint_ids
    connection.savepoint_ids = savepoints[: len(savepoints) - (_own_blocks(connection) - 1)]
    try:
        connection.on_commit(_Ending(function, lease).committed, robust=True)
    finally:
        connection.savepoint_ids = savepoints


def leases_until_end(database: str) -> list[Any]:
    """Return the leases that functions will release at the end of this thread's transaction."""
    endings = (getattr(function, "__self__", None) for _, function, *_ in connections[database].run_on_commit)
    return [ending.lease for ending in endings if isinstance(ending, _Ending) and ending.is_pending]


class _Ending:
    """Notices the end. Only Django's list of functions to call after the commit refers to it; a rollback drops that."""

    def __init__(self, function: Function, lease: Any) -> None:
        self._dropped = finalize(self, _call_in_thread, function)
        self._dropped.atexit = False  # the interpreter ends: the transaction may still be committed
        self._function, self.lease = function, lease

    @property
    def is_pending(self) -> bool:
        return self._dropped.alive

    def committed(self) -> None:
        if self._dropped.detach():
            _call(self._function)


def _own_blocks(connection: Any) -> int:
    return sum(not block._from_testcase for block in connection.atomic_blocks) if connection.in_atomic_block else 0


def _call_in_thread(function: Function) -> None:
    # The garbage collector may call this in a thread that holds a lock which the function needs.
    thread = Thread(target=_call, args=(function,), name="redis_kit end of transaction")
    try:
        thread.start()
    except RuntimeError:  # the interpreter ends, or there are too many threads
        _call(function)
    else:
        thread.join(ROLLBACK_WAIT)


def _call(function: Function) -> None:
    try:
        function()
    except Exception:
        logger.exception("A function at the end of a transaction failed.")
