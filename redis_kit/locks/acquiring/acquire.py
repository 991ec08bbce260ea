"""How a lease is asked for: alone, in the turn of the process, or with a ticket of one's own."""

from time import monotonic
from typing import TYPE_CHECKING, Any

from redis_kit.core.flow import Flow
from redis_kit.locks.acquiring.local_queue import Turn
from redis_kit.locks.acquiring.wait import Attempt, Wait

if TYPE_CHECKING:
    from redis_kit.locks.kinds.base import Leasing


def asking(source: "Leasing", attempt: Attempt) -> Flow[Any]:
    """Ask until there is a lease or the attempt gives up; return the fence, a refusal, or () where its turn never came.

    Where it raises, ``attempt.may_hold()`` tells whether there may be a lease all the same.
    """
    way = _ask if not attempt.patient else _in_queue if source.fair else _in_turn
    return (yield from way(source, attempt))


def _ask(source: "Leasing", attempt: Attempt) -> Flow[Any]:
    return (yield from _wait(source, attempt, (yield attempt.ask(source))))


def _wait(source: "Leasing", attempt: Attempt, reply: Any) -> Flow[Any]:
    # One that was refused before its time was over counts as a waiter, so another one has to follow.
    while not isinstance(reply, int) and attempt.asked < attempt.give_up:
        if attempt.left > 0:
            reply = yield Wait(source, attempt, reply)
        else:
            attempt.refused(reply)
        if not isinstance(reply, int) or not (attempt.is_fresh(reply) or (yield from _renewed(source, attempt))):
            reply = yield attempt.ask(source)  # also to count as a waiter, or as one no longer
    return reply


def _renewed(source: "Leasing", attempt: Attempt) -> Flow[bool]:
    attempt.asked = monotonic()
    return bool((yield source._prolong(attempt.token, attempt.ttl, 2)))


def _in_turn(source: "Leasing", attempt: Attempt) -> Flow[Any]:
    turn = Turn(source.place, attempt.token, until=attempt.give_up)
    try:
        return (yield from _ask(source, attempt)) if (yield turn) else ()
    finally:
        turn.end()


def _in_queue(source: "Leasing", attempt: Attempt) -> Flow[Any]:
    """Get a ticket from the server at once, but listen for it only as the first of this process.

    Tickets are asked for one after another, so that the process's line is in the order of the server's queue.
    """
    counter = Turn(f"{source.place} tickets", attempt.token, until=attempt.give_up)
    turn = Turn(source.place, attempt.token, until=0)
    try:
        try:
            if not (yield counter):
                return ()
            first = yield turn
            attempt.line, attempt.wake = turn.line, source.key(f"{source.member}:wake:{turn.line.id}")
            reply = yield attempt.ask(source)
        finally:
            counter.end()
        if not isinstance(reply, int) and not first:
            turn.until = attempt.give_up
            yield turn
            attempt.refused(reply)
            reply = yield attempt.ask(source)  # which gives the ticket up where the time is over
        return (yield from _wait(source, attempt, reply))
    finally:
        turn.end()
