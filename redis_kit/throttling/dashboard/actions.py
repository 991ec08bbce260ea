"""What a button of the dashboard is about: a caller of a throttle, or all of them."""

import re
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, unquote

from django.utils.translation import gettext as _

from redis_kit.core.errors import InvalidValue

if TYPE_CHECKING:
    from redis_kit.throttling.throttles.throttle import Throttle

VALUE = re.compile(r"([A-Za-z0-9_-]{22})?(?:@(\S+))? (.+)", re.DOTALL)
DEFAULT = "default"  # the connection that values of buttons leave out
TIME = re.compile(r"[0-9]+ ?[a-z]*", re.IGNORECASE)
RATES_FOR = re.compile(r"(.+?)\s+for\s+(.+)", re.IGNORECASE)


class Target(NamedTuple):
    """A throttle's name, the hash of one caller, "" for everybody, and the throttle's connection."""

    name: str
    who: str = ""
    using: str = DEFAULT

    @classmethod
    def parse(cls, value: str) -> "Target":
        """Return the target in the value of a row's button. Raises InvalidValue for any other text."""
        if (found := VALUE.fullmatch(value)) is None:
            raise InvalidValue(_("Nothing was done: that is no caller of a throttle."))
        return cls(found[3], found[1] or "", unquote(found[2] or DEFAULT))

    @classmethod
    def of(cls, throttle: "Throttle", who: str = "") -> "Target":
        """Return the target for a throttle."""
        return cls(throttle.name, who, throttle.using)

    @property
    def value(self) -> str:
        """Return the value of a button."""
        connection = "" if self.using == DEFAULT else f"@{quote(self.using, safe='')}"
        return f"{self.who}{connection} {self.name}"

    @property
    def shown(self) -> str:
        """Return how it is named where somebody is asked, and in the log: by no identity."""
        name = self.name if self.using == DEFAULT else f"{self.name} ({self.using})"
        return f"{name}, {self.who}" if self.who else name

    @property
    def throttle(self) -> "Throttle":
        """Return the throttle. Raises InvalidValue where this process has not built it."""
        return known(self.name, self.using)

    @property
    def _rules(self) -> Any:
        return self.throttle.rules

    def ban(self, text: str) -> str:
        """Shut the caller out for a time."""
        self._rules.ban(who=self.who, seconds=duration(text))
        return _("Banned for %(time)s: %(target)s.") % {"target": self.shown, "time": text}

    def exempt(self, text: str) -> str:
        """Let the caller pass for a time."""
        self._rules.exempt(who=self.who, seconds=duration(text))
        return _("Exempt for %(time)s: %(target)s.") % {"target": self.shown, "time": text}

    def override(self, text: str) -> str:
        """Give the caller, or everybody, other rates for a time."""
        if (found := RATES_FOR.fullmatch(text)) is None:
            raise InvalidValue(_("Write rates and a time, such as 100/m for 2h."))
        rates, time = found.groups()
        self._rules.override(rates, duration(time), who=self.who)
        return _("Now %(rates)s for %(time)s: %(target)s.") % {"target": self.shown, "rates": rates, "time": time}

    def reset(self) -> str:
        """Forget the caller's calls, and a ban that they led to. Raises InvalidValue where there was nothing."""
        from redis_kit.throttling.statistics.reset import forget

        if not forget(self.throttle, self.who):
            raise InvalidValue(_("Nothing was reset: no call of %(target)s is remembered.") % {"target": self.shown})
        return _("All calls are forgotten: %(target)s.") % {"target": self.shown}

    def lift(self) -> str:
        """End the rule. Raises InvalidValue where it has ended before."""
        if not self._rules.lift(who=self.who):
            raise InvalidValue(_("Nothing was lifted: no rule holds for %(target)s.") % {"target": self.shown})
        return _("The rule was lifted: %(target)s.") % {"target": self.shown}


def known(name: str, using: str = DEFAULT) -> "Throttle":
    """Return a throttle by its name and connection. Raises InvalidValue if this process has not built it."""
    from redis_kit.throttling import discovery as site

    for throttle in site.known():
        if (throttle.name, throttle.using) == (name, using):
            return throttle
    raise InvalidValue(_("This process has built no throttle %(name)s.") % {"name": name})


def duration(text: str) -> float:
    """Return the seconds of a text such as 90, 15m, 2h or 7 days. Raises InvalidValue for any other."""
    from redis_kit.throttling.values.rates import InvalidRate, parse

    try:
        found = parse(f"1/{text}")[0].period if TIME.fullmatch(text) else 0
    except InvalidRate:
        found = 0
    if not found:
        raise InvalidValue(_("Write a time in seconds, or such as 15m, 2h or 7d."))
    return found
