"""The end of a database transaction: a function called once at its commit or rollback, whichever comes."""

import logging
from collections.abc import Callable
from threading import Thread
from typing import Any
from weakref import finalize

from django.db import connections
from django.db.transaction import TransactionManagementError

logger = logging.getLogger("redis_kit.locks")
PATIENCE = 2.0  # seconds that a rollback waits for the function

Function = Callable[[], object]


def check_database(database: str) -> None:
    """Raise ConnectionDoesNotExist for an unknown alias, TransactionManagementError where autocommit is off."""
    connection = connections[database]
    managed = connection.in_atomic_block and connection.commit_on_exit
    if connection.connection is not None and not managed and not connection.autocommit:
        raise TransactionManagementError(
            f"release='on_commit' needs autocommit on the database {database!r}: without it Django tells nobody when a "
            "transaction is committed. Use transaction.atomic()."
        )


def in_transaction(database: str) -> bool:
    """Tell whether this thread is in a transaction of a database that can still be committed.

    The blocks that a TestCase puts around tests don't count. Always False in a task of an event loop of its own. Sends
    nothing, neither to the server nor to the database.
    """
    connection = connections[database]
    return _own_blocks(connection) > 0 and not connection.closed_in_transaction


def at_end_of_transaction(database: str, function: Function, *, kept: Any = None) -> None:
    """Call a function once when the outermost transaction is committed or rolled back; at once where there is none.

    Rolling back an inner block does not end it, closing the connection does. After a commit it runs in this thread,
    after what was registered before with ``on_commit()``. Its errors are logged, never raised. ``kept`` is what it
    will give back.
    """
    if not in_transaction(database):
        _call(function)
        return
    connection = connections[database]
    # Django drops what was registered within a savepoint when that is rolled back, although the transaction goes on.
    savepoints = connection.savepoint_ids
    connection.savepoint_ids = savepoints[: len(savepoints) - (_own_blocks(connection) - 1)]
    try:
        connection.on_commit(_Ending(function, kept).committed, robust=True)
    finally:
        connection.savepoint_ids = savepoints


def kept_until_end(database: str) -> list[Any]:
    """Return what functions will give back at the end of this thread's transaction."""
    found = (getattr(function, "__self__", None) for _, function, *_ in connections[database].run_on_commit)
    return [one.kept for one in found if isinstance(one, _Ending) and one.waits]


class _Ending:
    """Notices the end. Only Django's list of what to do after the commit refers to it, and a rollback drops that."""

    def __init__(self, function: Function, kept: Any) -> None:
        self._dropped = finalize(self, _call_apart, function)
        self._dropped.atexit = False  # a transaction that the interpreter's end cuts off may be committed all the same
        self._function, self.kept = function, kept

    @property
    def waits(self) -> bool:
        return self._dropped.alive

    def committed(self) -> None:
        if self._dropped.detach():
            _call(self._function)


def _own_blocks(connection: Any) -> int:
    return sum(not block._from_testcase for block in connection.atomic_blocks) if connection.in_atomic_block else 0


def _call_apart(function: Function) -> None:
    # The garbage collector may do this in a thread that holds, at this very moment, a lock which the function needs.
    thread = Thread(target=_call, args=(function,), name="redis_kit end of transaction")
    try:
        thread.start()
    except RuntimeError:  # the interpreter ends, or there are too many threads
        _call(function)
    else:
        thread.join(PATIENCE)


def _call(function: Function) -> None:
    try:
        function()
    except Exception:
        logger.exception("What was to happen at the end of a transaction failed.")
