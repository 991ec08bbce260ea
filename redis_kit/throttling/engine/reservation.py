"""Reservations: a call counted at what it may cost, and settled when the cost is known."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import Flow
from redis_kit.core.steps import Batch
from redis_kit.throttling.engine.decide import Asked, Outcome, settle
from redis_kit.throttling.values.decision import Decision

if TYPE_CHECKING:
    from redis_kit.throttling.throttles.throttle import Throttle

LEFT = dict.fromkeys(("if_open", "if_closed", "if_local"))  # a settlement is left undone while the server is away


class Reservation:
    """A call that was counted before its cost was known; worth whether it was allowed as a truth value.

    A refused one took nothing. One that is never settled stays counted at what was reserved.
    """

    def __init__(self, call: Asked, outcome: Outcome) -> None:
        self._call, self._outcome, self._settled = call, outcome, False

    def __bool__(self) -> bool:
        return self.decision.allowed

    @property
    def throttle(self) -> "Throttle":
        """The throttle that it counts against."""
        return self._call.throttle

    @property
    def decision(self) -> Decision:
        """The decision on the call at the cost reserved."""
        return self._outcome.decision

    def settle(self, actual: int) -> None:
        """Make the call cost ``actual``, 0 or more: the rest is given back, or what is beyond is counted too.

        Beyond the reserved cost it takes what room there is, and never refuses. One round trip; none where ``actual``
        is what was reserved, or nothing was counted. While the server is away it is left undone. Raises InvalidValue
        the second time.
        """
        if self._starts(actual):
            self.throttle.carry_out(self._settle(actual), **LEFT)

    async def asettle(self, actual: int) -> None:
        """See settle()."""
        if self._starts(actual):
            await self.throttle.acarry_out(self._settle(actual), **LEFT)

    def refund(self) -> None:
        """Give the whole cost back, as if the call had never come. See settle()."""
        self.settle(0)

    async def arefund(self) -> None:
        """See refund()."""
        await self.asettle(0)

    def _starts(self, actual: int) -> bool:
        if isinstance(actual, bool) or not isinstance(actual, int) or not 0 <= actual <= 2**31:
            raise InvalidValue(f"The actual cost must be a whole number, 0 or more, not {actual!r}.")
        if self._settled:
            raise InvalidValue(f"The reservation with the throttle {self.throttle.name!r} was settled before.")
        self._settled = True
        return self._outcome.counted and actual != self._call.cost

    def _settle(self, actual: int) -> Flow[None]:
        yield settle(self._call, self._outcome, actual)


def refund_all(reservations: Sequence[Reservation]) -> None:
    """Give the calls of one request back, as Reservation.refund() does: one round trip for all of one connection."""
    if held := [one for one in reservations if one._starts(0)]:
        held[0].throttle.carry_out(_refunds(held), **LEFT)


async def arefund_all(reservations: Sequence[Reservation]) -> None:
    """See refund_all()."""
    if held := [one for one in reservations if one._starts(0)]:
        await held[0].throttle.acarry_out(_refunds(held), **LEFT)


def _refunds(held: Sequence[Reservation]) -> Flow[None]:
    yield Batch([settle(one._call, one._outcome, 0) for one in held])
