"""A lock that its holder has already: taken again by the same caller, or kept until a transaction's end."""

import logging
from typing import TYPE_CHECKING

from redis_kit.core.errors import RedisKitError
from redis_kit.locks.acquiring import transaction_end
from redis_kit.locks.errors import AlreadyHeld, NotHeld, with_notes
from redis_kit.locks.leases.lease import Lease

if TYPE_CHECKING:
    from redis_kit.locks.kinds.base import Leasing

logger = logging.getLogger("redis_kit.locks")


def taken_again(source: "Leasing", patience: float) -> Lease | None:
    """Return the lease that the caller has already and may share; None where a new one is to be asked for.

    Raises AlreadyHeld where the caller would wait for itself, and what check_database() raises.
    """
    if source.on_commit:
        transaction_end.check_database(source.database)
    if not source.exclusive or not (patience or source.reentrant or source.on_commit):
        return None
    mine = source._taken.latest()
    if mine and mine.held and source.reentrant:
        return _once_more(mine)
    if mine and mine.held and patience:
        raise AlreadyHeld(f"This thread or task holds {source!r} already and would wait for itself.", source.name)
    for lease in transaction_end.kept_until_end(source.database) if source.on_commit else ():
        if lease.source.place == source.place and lease.held:
            source._taken.add(lease)
            return _once_more(lease)
    return None


def still_needed(source: "Leasing", lease: Lease) -> bool:
    """Tell whether a release leaves the lease as it is: it was taken more than once, or is kept for a transaction."""
    if lease.depth:
        lease.depth -= 1
        if lease.kept:
            source._taken.drop(lease)
        return True
    if lease.kept:
        raise NotHeld(f"{lease!r} was released; it is kept until the end of the transaction.", source.name)
    if not source.on_commit or not transaction_end.in_transaction(source.database):
        return False
    lease.kept = True
    source._taken.drop(lease)
    transaction_end.at_end_of_transaction(source.database, lambda: _end(source, lease), kept=lease)
    return True


def _once_more(lease: Lease) -> Lease:
    lease.depth += 1
    return lease


def _end(source: "Leasing", lease: Lease) -> None:
    try:
        source._run(source._let_go(lease))
    except RedisKitError as error:
        told = "%r was kept until the end of a transaction, and not released: %s"
        logger.error(told, lease, with_notes(error))  # noqa: TRY400
