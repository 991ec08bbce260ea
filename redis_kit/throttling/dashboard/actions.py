"""The actions of buttons on an identity of a throttle, or on all of its identities."""

import math
import re
from datetime import timedelta
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from django.utils import timezone
from django.utils.translation import gettext as _

from redis_kit.core.errors import InvalidValue
from redis_kit.core.keys import hashed
from redis_kit.core.panels import Effect, Meter, duration
from redis_kit.throttling.discovery import DEFAULT, built_throttles, title
from redis_kit.throttling.engine.base import BaseThrottle
from redis_kit.throttling.identity import HIDDEN, has_any_text, masked, suggestion
from redis_kit.throttling.rules import Rule, reset_by_hash, shown
from redis_kit.throttling.throttles import Throttle
from redis_kit.throttling.values import Decision

VALUE = re.compile(r"([A-Za-z0-9_-]{22})?(?:@([^\s!]+))?(?:!(\S+))? (.+)", re.DOTALL)
RATES_FOR = re.compile(r"(.+?)\s+for\s+(.+)", re.IGNORECASE)


class Target(NamedTuple):
    """The name of a throttle, the hash of an identity ("" for all of them), and the connection of the throttle.

    ``rule`` is the one to lift, by its kind and its end; "" for any.
    """

    name: str
    identity_hash: str = ""
    using: str = DEFAULT
    rule: str = ""

    @classmethod
    def parse(cls, value: str) -> "Target":
        """Return the target in the value of a button. Raises InvalidValue for other text."""
        if (match := VALUE.fullmatch(value)) is None:
            raise InvalidValue(_("Nothing was changed: the button names no throttle."))
        return cls(match[4], match[1] or "", unquote(match[2] or DEFAULT), match[3] or "")

    @classmethod
    def of(cls, throttle: BaseThrottle, identity_hash: str = "") -> "Target":
        """Return the target for a throttle."""
        return cls(throttle.name, identity_hash, throttle.using)

    @property
    def value(self) -> str:
        """Return the value of a button."""
        connection = "" if self.using == DEFAULT else f"@{quote(self.using, safe='')}"
        return f"{self.identity_hash}{connection}{self.rule and f'!{self.rule}'} {self.name}"

    @property
    def asked(self) -> dict[str, str]:
        """Return the search for the page of the throttle."""
        return {"throttle": self.name} | ({} if self.using == DEFAULT else {"connection": self.using})

    @property
    def shown(self) -> str:
        """Return how confirmations and the log name the target: by the hash, never by the identity."""
        name = title(self.name, self.using)
        return f"{name}, {self.identity_hash}" if self.identity_hash else name

    @property
    def throttle(self) -> Throttle:
        """Return the throttle. Raises InvalidValue if this process has not built it."""
        for throttle in built_throttles():
            if (throttle.name, throttle.using) == (self.name, self.using):
                return throttle
        raise InvalidValue(_("This process has not built the throttle %(name)s.") % {"name": self.name})

    def identity_sentence(self, *, unmasked: bool) -> str:
        """Return a sentence that names the identity as lists show it. One round trip."""
        stored = self.identity_hash and self.throttle.run_flow(shown(self.throttle, self.identity_hash))
        name = stored if unmasked or not stored else masked(stored)
        return "" if name in ("", HIDDEN) else _("The identity is %s.") % name + " "

    def effect(self, action: str) -> str | Effect:
        """Return what an action will do. One round trip. Raises InvalidValue without a rule to lift."""
        rule = self.throttle.rules.of(identity_hash="" if action == "override_all" else self.identity_hash)
        effects = {
            "reset": _("The calls of this identity that were counted are forgotten, and its automatic ban ends."),
            "ban": _("Every call of this identity is refused until the ban ends or is lifted."),
            "exempt": _("Every call of this identity is allowed until the exemption ends or is lifted."),
            "override": _("Other rates apply to this identity, until the override ends or is lifted."),
            "override_all": _("Other rates apply to every identity without a rule of its own, at once."),
            "lift": _("The rates of the throttle apply again, at once."),
        }
        if rule is None:
            if action == "lift":
                raise self._no_rule()
            return effects[action]
        until = timezone.localtime(rule.until).strftime("%Y-%m-%d %H:%M:%S")
        words = {"ban": _("ban"), "exempt": _("exemption")}.get(rule.kind) or rule.rates
        present = {"rule": words, "until": until}
        if action == "lift":
            text = _("This rule ends: %(rule)s until %(until)s.") % present + " " + effects[action]
            return Effect(text, self._replace(rule=_id(rule)).value)
        if action == "reset":
            return effects[action]
        return effects[action] + " " + _("It replaces this rule: %(rule)s until %(until)s.") % present

    def _no_rule(self) -> InvalidValue:
        return InvalidValue(_("Nothing was lifted: there is no rule for %(target)s.") % {"target": self.shown})

    def ban(self, text: str) -> str:
        """Ban the identity for some time."""
        self.throttle.rules.ban(identity_hash=self.identity_hash, seconds=duration(text))
        return _("Banned for %(time)s: %(target)s.") % {"target": self.shown, "time": text}

    def exempt(self, text: str) -> str:
        """Exempt the identity for some time."""
        self.throttle.rules.exempt(identity_hash=self.identity_hash, seconds=duration(text))
        return _("Exempt for %(time)s: %(target)s.") % {"target": self.shown, "time": text}

    def override(self, text: str) -> str:
        """Set other rates for the identity, or for all, for some time."""
        if (match := RATES_FOR.fullmatch(text)) is None:
            raise InvalidValue(_("Enter rates and a duration, such as 100/m for 2h."))
        new, time = match.groups()
        self.throttle.rules.override(new, duration(time), identity_hash=self.identity_hash)
        return _("Rates are %(rates)s for %(time)s: %(target)s.") % {"target": self.shown, "rates": new, "time": time}

    def override_all(self, text: str) -> str:
        """Set other rates for all identities, whichever it names, for some time."""
        return self._replace(identity_hash="").override(text)

    def reset(self) -> str:
        """Forget the calls of the identity and its automatic ban. Raises InvalidValue if there were none."""
        if not reset_by_hash(self.throttle, self.identity_hash):
            raise InvalidValue(_("Nothing was reset: no calls of %(target)s are counted.") % {"target": self.shown})
        return _("All calls were reset: %(target)s.") % {"target": self.shown}

    def lift(self) -> str:
        """End the rule. Raises InvalidValue if there is none, or another one."""
        rule = self.throttle.rules.of(identity_hash=self.identity_hash)
        if rule and self.rule not in ("", _id(rule)):
            raise InvalidValue(_("Nothing was lifted: %(target)s has another rule now.") % {"target": self.shown})
        if not self.throttle.rules.lift(identity_hash=self.identity_hash):
            raise self._no_rule()
        return _("The rule was lifted: %(target)s.") % {"target": self.shown}


def _id(rule: Rule) -> str:
    return f"{rule.kind}-{rule.until.timestamp()}"


def checked_identity(throttle: Throttle, identity: str) -> str:
    """Return the hash of an identity. Raises InvalidName, or InvalidValue if no key of the throttle makes it."""
    likely = suggestion(identity, throttle.identity_shapes)
    if likely is not None and not has_any_text(throttle.identity_shapes):
        guess = " " + _("Did you mean %s?") % likely if likely else ""
        raise InvalidValue(_("No key of this throttle makes this identity.") + guess)
    return hashed(throttle.checked(identity, 1))


def standing(decision: Decision) -> tuple[Any, ...]:
    """Return the cells of a decision: what it is, how much of its rate is used, the next call's time and the reset."""
    limit, remaining = decision.limit, decision.remaining
    used = Meter(limit - remaining, limit) if decision.rate and decision.reason != "banned" else None
    return _answer(decision), used, _wait(decision.retry_after), _wait(decision.reset_after)


def _answer(decision: Decision) -> str:
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
