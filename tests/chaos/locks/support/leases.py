"""The leases of a history: from when to when their holders could count on them."""

from collections.abc import Iterable
from typing import NamedTuple

from tests.chaos.locks.support.history import Event


class Hold(NamedTuple):
    """One lease, as its holder saw it and as the server must have seen it. Each bound errs to the safe side."""

    name: str
    worker: str
    turn: int
    fence: int
    weight: int
    limit: int
    fair: bool
    once: bool
    asked: int
    taken: int
    end: int  # when the holder sent its release, or stopped to count on the lease
    sent: int  # when it last sent a release or an extension
    proven: int  # when it last sent one that the server carried out, so that the lease was its own still
    promised: int  # until when the reply to its attempt let it count on the lease
    ttl: int
    offset: int
    server_taken: int  # the fence is the server's clock in µs, or later
    server_end: int

    def __str__(self) -> str:
        return f"{self.worker} with fence {self.fence}"


def holds(events: Iterable[Event]) -> list[Hold]:
    """Return all leases of a history, in the order in which they were taken."""
    asked: dict[tuple[str, int], int] = {}
    found: dict[tuple[str, int], Hold] = {}
    for event in events:
        key = event.worker, event.turn
        if event.what == "asked":
            asked[key] = event.at
        elif event.what == "taken":
            found[key] = _new(event, asked[key])
        elif key in found:
            found[key] = _later(found[key], event)
    return sorted(found.values(), key=lambda hold: hold.taken)


def _new(event: Event, asked: int) -> Hold:
    return Hold(
        *(event.name, event.worker, event.turn, event.fence, event.weight, event.limit, event.fair, event.once),
        *(asked, event.at, event.until, 0, 0, event.until, event.ttl, event.offset),
        *(event.fence, _later_by(event.fence, event.ttl)),
    )


def _later(hold: Hold, event: Event) -> Hold:
    if event.what == "extending":
        return hold._replace(sent=event.at)
    if event.what == "extended":
        server_end = max(hold.server_end, _later_by(event.server, event.ttl))
        return hold._replace(end=event.until, proven=hold.sent, server_end=server_end)
    if event.what == "letting":
        # A renewal may have moved the deadline since it was last written down.
        end = min(event.at, event.until or hold.end)
        return hold._replace(end=end, sent=event.at, server_end=min(event.server, hold.server_end))
    if event.what == "let_go":
        return hold._replace(proven=hold.sent)
    if event.what == "lost":
        return hold._replace(end=min(event.at, hold.end))
    return hold


def _later_by(server: int, ttl: int) -> int:
    # The server counts in whole ms, so a lease may end almost 1 ms before its length is over.
    return (server // 1000 + ttl // 1_000_000) * 1000
