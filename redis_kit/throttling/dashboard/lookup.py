"""How one caller of a throttle stands, for the dashboard."""

import math
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from django.utils.translation import gettext as _

from redis_kit.core.keys import hashed
from redis_kit.core.panels import Meter

if TYPE_CHECKING:
    from redis_kit.throttling.rules.rules import Rule
    from redis_kit.throttling.throttles.throttle import Throttle
    from redis_kit.throttling.values.decision import Decision


class Standing(NamedTuple):
    """The hash of a caller, what a call of it would be answered now, and the rule that is its own."""

    who: str
    decision: "Decision"
    rule: "Rule | None"

    @property
    def cells(self) -> tuple[Any, ...]:
        """Return the answer, how much of the rate that decides is used, and when there is room for a call and all."""
        limit, remaining = self.decision.limit, self.decision.remaining
        used = Meter(limit - remaining, limit) if self.decision.rate and self.decision.reason != "banned" else None
        return _answer(self.decision), used, _wait(self.decision.retry_after), _wait(self.decision.reset_after)


def look_up(throttle: "Throttle", identity: str) -> Standing:
    """Return how a caller stands, and count nothing. Raises InvalidName."""
    who = hashed(throttle.checked(identity, 1))
    return Standing(who, throttle.peek(identity), throttle.rules.of(identity))


def _answer(decision: "Decision") -> str:
    reasons = {
        "exempt": _("allowed: exempt"),
        "banned": _("refused: banned"),
        "shadow": _("allowed by shadow mode, else refused"),
    }
    return reasons.get(decision.reason) or (_("allowed") if decision.allowed else _("refused"))


def _wait(seconds: float) -> Any:
    if math.isinf(seconds):
        return _("never")
    return timedelta(seconds=seconds) if seconds else _("now")
