"""The look-up of one identity of a throttle, for the dashboard."""

import math
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from django.utils.translation import gettext as _

from redis_kit.core.errors import InvalidValue
from redis_kit.core.keys import hashed
from redis_kit.core.panels import Meter
from redis_kit.throttling.values.identity_shape import fits, has_any_text, named, suggestion

if TYPE_CHECKING:
    from redis_kit.throttling.rules.storage import Rule
    from redis_kit.throttling.throttles.throttle import Throttle
    from redis_kit.throttling.values.decision import Decision


class Standing(NamedTuple):
    """The hash of an identity, the decision on its next call, and its rule."""

    identity_hash: str
    decision: "Decision"
    rule: "Rule | None"

    @property
    def cells(self) -> tuple[Any, ...]:
        """Return the decision, how much of its rate is used, and the times until the next call and the reset."""
        limit, remaining = self.decision.limit, self.decision.remaining
        used = Meter(limit - remaining, limit) if self.decision.rate and self.decision.reason != "banned" else None
        return _answer(self.decision), used, _wait(self.decision.retry_after), _wait(self.decision.reset_after)


def look_up(throttle: "Throttle", identity: str) -> Standing:
    """Return the standing of an identity, without counting. Raises InvalidName, or InvalidValue for a wrong kind."""
    shapes = throttle.identity_shapes
    kinds = named(shapes)
    if kinds and not has_any_text(shapes) and not fits(identity, kinds):
        likely = suggestion(identity, kinds)
        guess = " " + _("Did you mean %s?") % likely if likely else ""
        raise InvalidValue(_("No key of this throttle makes this identity.") + guess)
    identity_hash = hashed(throttle.checked(identity, 1))
    return Standing(identity_hash, throttle.peek(identity), throttle.rules.of(identity))


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
