"""A lease that the caller holds already: acquired again, or held until the end of a transaction."""

import logging
from math import inf
from time import monotonic

from redis_kit.core.errors import RedisKitError
from redis_kit.core.flow import Flow
from redis_kit.locks.acquiring import transaction_end
from redis_kit.locks.acquiring.attempt import MAX_AGE, Acquirable
from redis_kit.locks.errors import AlreadyHeld, LockLost, NotHeld, with_notes
from redis_kit.locks.leases.lease import Lease, safe_deadline, state_of
from redis_kit.locks.leases.source import LeaseSource

logger = logging.getLogger("redis_kit.locks")


def reusable_lease(source: Acquirable, wait: float) -> Lease | None:
    """Return the lease that the caller holds already and may acquire again; None if it needs a new one.

    Raises AlreadyHeld if the caller would wait for itself, or asks for more than it holds, and the errors of
    check_database().
    """
    if source.on_commit:
        transaction_end.check_database(source.database)
    if not source.exclusive or not (wait or source.reentrant or source.on_commit):
        return None
    own = source.owned_leases.latest()
    if own and own.held and source.reentrant:
        return _checked(source, own)
    if own and own.held and wait:
        raise AlreadyHeld(f"This thread or task holds {source!r} already and would wait for itself.", source.name)
    for lease in transaction_end.leases_until_end(source.database) if source.on_commit else ():
        if lease.source.local_key == source.local_key and lease.held:
            return _checked(source, lease)
    return None


def reenter(source: Acquirable, lease: Lease) -> Flow[bool]:
    """Acquire a lease again that the caller holds, for at least the timeout of ``source``; False if it was lost.

    One round trip if less of the timeout is left than a new lease has, else none.
    """
    state, now = state_of(lease), monotonic()
    state.timeout = max(state.timeout, source.lease_timeout)
    end = now + min(source.lease_timeout, source.max_hold or inf)
    if lease.source.max_hold is not None:
        end = min(end, lease.acquired_at + lease.source.max_hold)
    if lease.deadline < safe_deadline(now, (end - now) * (1 - MAX_AGE)):
        try:
            yield from lease.source.extend_flow(lease, end - now, True)
        except LockLost:
            return False
    state.reentries += 1
    if source.owned_leases.latest() is not lease:
        source.owned_leases.add(lease)
    return True


def is_still_needed(source: Acquirable, lease: Lease) -> bool:
    """Tell whether a release leaves the lease live: it was acquired more than once, or a transaction needs it."""
    state = state_of(lease)
    if state.reentries:
        state.reentries -= 1
        return True
    if state.until_commit:
        raise NotHeld(f"{lease!r} was released; it is held until the end of the transaction.", source.name)
    if not source.on_commit or not transaction_end.in_transaction(source.database):
        return False
    state.until_commit = True
    transaction_end.call_at_end(source.database, lambda: _end(source, lease), lease=lease)
    return True


def _checked(source: Acquirable, lease: Lease) -> Lease:
    """Return a lease that satisfies ``source``, whose options may be others. Raises AlreadyHeld."""
    if lease.source is source or not (missing := _missing(source, lease.source)):
        return lease
    raise AlreadyHeld(
        f"This thread or task holds {source!r} already, without the {missing} of this block. "
        "Pass it to the outer block too.",
        source.name,
    )


def _missing(inner: LeaseSource[Lease], outer: LeaseSource[Lease]) -> str:
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


def _end(source: Acquirable, lease: Lease) -> None:
    try:
        source.run_flow(source.end_flow(lease))
    except RedisKitError as error:
        message = "%r was held until the end of a transaction and could not be released: %s"
        logger.error(message, lease, with_notes(error))  # noqa: TRY400
