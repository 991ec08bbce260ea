"""Reservations: calls counted at what they may cost, and corrected when the cost is known."""

from collections.abc import Sequence
from typing import Any

from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import Flow
from redis_kit.core.steps import Batch
from redis_kit.core.values.numbers import whole_number
from redis_kit.throttling.engine.base import BaseThrottle
from redis_kit.throttling.engine.decide import Call, Outcome, settle
from redis_kit.throttling.values.decision import Decision

SKIPPED = dict.fromkeys(("if_open", "if_closed", "if_local"))  # corrections are skipped while the server is unavailable


class Reservation:
    """A call that was counted before its cost was known. Truthy if the call is allowed.

    A refused call took nothing. Without ``settle()`` it stays counted at its full cost.
    """

    def __init__(self, call: Call[Any], outcome: Outcome) -> None:
        self._call, self._outcome, self._settled = call, outcome, False

    def __bool__(self) -> bool:
        return self.decision.allowed

    @property
    def throttle(self) -> BaseThrottle:
        """The throttle that counted the call."""
        throttle: BaseThrottle = self._call.throttle
        return throttle

    @property
    def decision(self) -> Decision:
        """The decision on the call at the reserved cost."""
        return self._outcome.decision

    def settle(self, actual: int) -> None:
        """Set the cost of the call to ``actual``, 0 or more. The rest of the reserved cost is refunded.

        A cost beyond the reserved one is counted as far as there is room, and never refused. Takes one round trip, or
        none if ``actual`` is the reserved cost or nothing was counted. Does nothing while the server is unavailable.
        Raises InvalidValue the second time.
        """
        if self._must_settle(actual):
            self.throttle.run_flow(self._settle(actual), **SKIPPED)

    async def asettle(self, actual: int) -> None:
        """See ``settle()``."""
        if self._must_settle(actual):
            await self.throttle.arun_flow(self._settle(actual), **SKIPPED)

    def refund(self) -> None:
        """Refund the whole cost, as if the call had never happened. See ``settle()``."""
        self.settle(0)

    async def arefund(self) -> None:
        """See refund()."""
        await self.asettle(0)

    def _must_settle(self, actual: int) -> bool:
        whole_number("actual", actual, (0, 2**31))
        if self._settled:
            raise InvalidValue(f"The cost of the reservation with the throttle {self.throttle.name!r} was already set.")
        self._settled = True
        return self._outcome.counted and actual != self._call.cost

    def _settle(self, actual: int) -> Flow[None]:
        yield settle(self._call, self._outcome, actual)


def refund_all(reservations: Sequence[Reservation]) -> None:
    """Refund the calls of one request. One round trip; all of them use one connection."""
    if counted := [reservation for reservation in reservations if reservation._must_settle(0)]:
        counted[0].throttle.run_flow(_refunds(counted), **SKIPPED)


async def arefund_all(reservations: Sequence[Reservation]) -> None:
    """See refund_all()."""
    if counted := [reservation for reservation in reservations if reservation._must_settle(0)]:
        await counted[0].throttle.arun_flow(_refunds(counted), **SKIPPED)


def _refunds(reservations: Sequence[Reservation]) -> Flow[None]:
    yield Batch([settle(reservation._call, reservation._outcome, 0) for reservation in reservations])
