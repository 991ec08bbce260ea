"""Reservations: calls counted at what they may cost, and corrected when the cost is known."""

from collections.abc import Sequence
from typing import Any

from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import Flow, single, twin
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.steps import Batch
from redis_kit.core.values.numbers import whole_number
from redis_kit.throttling.engine.base import Asked, BaseThrottle, asking
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

    @asking
    def settle(self, actual: int) -> Flow[None]:
        """Set the cost of the call to ``actual``, 0 or more. The rest of the reserved cost is refunded.

        A cost beyond the reserved one is counted as far as there is room, and never refused. Takes one round trip, or
        none if ``actual`` is the reserved cost or nothing was counted. Does nothing while the server is unavailable.
        Raises InvalidValue the second time.
        """
        return self._settle(actual)

    @asking
    def refund(self) -> Flow[None]:
        """Refund the whole cost, as if the call had never happened. See ``settle()``."""
        return self._settle(0)

    def correction_step(self, actual: int) -> ScriptCall | None:
        """Return the step that sets the cost of the call; None if nothing is to be corrected. See settle()."""
        whole_number("actual", actual, (0, 2**31))
        if self._settled:
            raise InvalidValue(f"The cost of the reservation with the throttle {self.throttle.name!r} was already set.")
        self._settled = True
        is_due = self._outcome.counted and actual != self._call.cost
        return settle(self._call, self._outcome, actual) if is_due else None

    def _settle(self, actual: int) -> Flow[None]:
        if step := self.correction_step(actual):
            yield Asked(self.throttle, single(step), **SKIPPED)

    asettle = twin(settle)
    arefund = twin(refund)


def refund_flow(reservations: Sequence[Reservation]) -> Flow[None]:
    """Refund the calls of one request, without a client. One round trip; all of them use one connection."""
    if steps := [step for reservation in reservations if (step := reservation.correction_step(0))]:
        yield Asked(reservations[0].throttle, single(Batch(steps)), **SKIPPED)
