"""A lease that the caller holds already: acquired again, or held until the end of a transaction."""

import logging
from collections.abc import Callable
from math import inf
from threading import Thread
from time import monotonic
from typing import Any
from weakref import finalize

from django.db import connections
from django.db.transaction import TransactionManagementError

from redis_kit.core.errors import RedisKitError
from redis_kit.core.flow import Flow
from redis_kit.locks.acquiring.wait import MAX_AGE
from redis_kit.locks.errors import AlreadyHeld, LockLost, NotHeld, with_notes
from redis_kit.locks.leases.lease import Lease, LeaseSource, safe_deadline

logger = logging.getLogger("redis_kit.locks")
ROLLBACK_WAIT = 2.0  # seconds that a rollback waits for the function

Function = Callable[[], object]


def reusable_lease(source: LeaseSource, wait: float) -> Lease | None:
    """Return the lease that the caller holds already and may acquire again; None if it needs a new one.

    Raises AlreadyHeld if the caller would wait for itself, or asks for more than it holds, and the errors of
    check_database().
    """
    if source.on_commit:
        check_database(source.database)
    if not source.exclusive or not (wait or source.reentrant or source.on_commit):
        return None
    own = source.owned_leases.latest()
    if own and own.held and source.reentrant:
        return _checked(source, own)
    if own and own.held and wait:
        raise AlreadyHeld(f"This thread or task holds {source!r} already and would wait for itself.", source.name)
    for lease in leases_until_end(source.database) if source.on_commit else ():
        if lease.source.local_key == source.local_key and lease.held:
            return _checked(source, lease)
    return None


def reenter(source: LeaseSource, lease: Lease) -> Flow[bool]:
    """Acquire a lease again that the caller holds, for at least the timeout of ``source``; False if it was lost.

    One round trip if less of the timeout is left than a new lease has, else none.
    """
    now = monotonic()
    lease.timeout = max(lease.timeout, source.lease_timeout)
    end = now + min(source.lease_timeout, source.max_hold or inf)
    if lease.source.max_hold is not None:
        end = min(end, lease.acquired_at + lease.source.max_hold)
    if lease.deadline < safe_deadline(now, (end - now) * (1 - MAX_AGE)):
        try:
            yield from lease.source.extend_flow(lease, end - now, True)
        except LockLost:
            return False
    lease.reentries += 1
    if source.owned_leases.latest() is not lease:
        source.owned_leases.add(lease)
    return True


def is_still_needed(source: LeaseSource, lease: Lease) -> bool:
    """Tell whether a release leaves the lease live: it was acquired more than once, or a transaction needs it."""
    if lease.reentries:
        lease.reentries -= 1
        return True
    if lease.until_commit:
        raise NotHeld(f"{lease!r} was released; it is held until the end of the transaction.", source.name)
    if not source.on_commit or not in_transaction(source.database):
        return False
    lease.until_commit = True
    call_at_end(source.database, lambda: _end(source, lease), lease=lease)
    return True


def _checked(source: LeaseSource, lease: Lease) -> Lease:
    """Return a lease that satisfies ``source``, whose options may be others. Raises AlreadyHeld."""
    if lease.source is source or not (missing := _missing(source, lease.source)):
        return lease
    raise AlreadyHeld(
        f"This thread or task holds {source!r} already, without the {missing} of this block. "
        "Pass it to the outer block too.",
        source.name,
    )


def _missing(inner: LeaseSource, outer: LeaseSource) -> str:
    """Return the first option that an inner block asks for and the outer one lacks."""
    if inner.on_commit and not outer.on_commit:
        return "release='on_commit'"
    if inner.on_commit and inner.database != outer.database:
        return f"database={inner.database!r}"
    if inner.renew and not outer.renew:
        return "renew=True"
    if inner.on_lost and inner.on_lost != outer.on_lost:
        return "on_lost"
    longest = (inner.max_hold or inf) if inner.renew else inner.lease_timeout
    return "longer max_hold" if longest > (outer.max_hold or inf) else ""


def _end(source: LeaseSource, lease: Lease) -> None:
    try:
        source.run_flow(source.end_flow(lease))
    except RedisKitError as error:
        message = "%r was held until the end of a transaction and could not be released: %s"
        logger.error(message, lease, with_notes(error))  # noqa: TRY400


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
        _call_function(function)
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
            _call_function(self._function)


def _own_blocks(connection: Any) -> int:
    return sum(not block._from_testcase for block in connection.atomic_blocks) if connection.in_atomic_block else 0


def _call_in_thread(function: Function) -> None:
    # The garbage collector may call this in a thread that holds a lock which the function needs.
    thread = Thread(target=_call_function, args=(function,), name="redis_kit end of transaction")
    try:
        thread.start()
    except RuntimeError:  # the interpreter ends, or there are too many threads
        _call_function(function)
    else:
        thread.join(ROLLBACK_WAIT)


def _call_function(function: Function) -> None:
    try:
        function()
    except Exception:
        logger.exception("A function at the end of a transaction failed.")
