"""A lease that the caller holds already: acquired again, or held until the end of a transaction."""

import logging

from redis_kit.core.errors import RedisKitError
from redis_kit.locks.acquiring import transaction_end
from redis_kit.locks.acquiring.attempt import Acquirable
from redis_kit.locks.errors import AlreadyHeld, NotHeld, with_notes
from redis_kit.locks.leases.lease import Lease

logger = logging.getLogger("redis_kit.locks")


def reusable_lease(source: Acquirable, wait: float) -> Lease | None:
    """Return the lease that the caller holds already and may acquire again; None if it needs a new one.

    Raises AlreadyHeld if the caller would wait for itself, and the errors of check_database().
    """
    if source.on_commit:
        transaction_end.check_database(source.database)
    if not source.exclusive or not (wait or source.reentrant or source.on_commit):
        return None
    own = source.owned_leases.latest()
    if own and own.held and source.reentrant:
        return _reentered(own)
    if own and own.held and wait:
        raise AlreadyHeld(f"This thread or task holds {source!r} already and would wait for itself.", source.name)
    for lease in transaction_end.leases_until_end(source.database) if source.on_commit else ():
        if lease.source.local_key == source.local_key and lease.held:
            source.owned_leases.add(lease)
            return _reentered(lease)
    return None


def is_still_needed(source: Acquirable, lease: Lease) -> bool:
    """Tell whether a release leaves the lease live: it was acquired more than once, or a transaction needs it."""
    if lease.reentries:
        lease.reentries -= 1
        if lease.until_commit:
            source.owned_leases.remove(lease)
        return True
    if lease.until_commit:
        raise NotHeld(f"{lease!r} was released; it is held until the end of the transaction.", source.name)
    if not source.on_commit or not transaction_end.in_transaction(source.database):
        return False
    lease.until_commit = True
    source.owned_leases.remove(lease)
    transaction_end.call_at_end(source.database, lambda: _end(source, lease), lease=lease)
    return True


def _reentered(lease: Lease) -> Lease:
    lease.reentries += 1
    return lease


def _end(source: Acquirable, lease: Lease) -> None:
    try:
        source.run_flow(source.end_flow(lease))
    except RedisKitError as error:
        message = "%r was held until the end of a transaction and could not be released: %s"
        logger.error(message, lease, with_notes(error))  # noqa: TRY400
