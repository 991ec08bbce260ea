"""The settings of throttles: ``REDIS_KIT["THROTTLING"]``."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from redis_kit.core.conf import Problem, Section
from redis_kit.core.errors import InvalidRate, InvalidValue
from redis_kit.core.values.rates import parse
from redis_kit.throttling.policy_settings import policy_problems
from redis_kit.throttling.values import ban


@dataclass(frozen=True)
class ThrottlingSettings(Section):
    """The options of all throttles."""

    name = "THROTTLING"
    ranges = {"REMEMBER": (0, 1), "PROCESSES": (1, 10_000)}
    examples = {
        "LOGIN_RATES": "Write a rate, such as '5/15m'.",
        "LOGIN_ADDRESS_RATES": "Write a rate, such as '30/15m'.",
    }
    policies = {
        "open": "calls are allowed",
        "closed": "calls are refused",
        "local": "each process counts its own calls",
    }

    #: ``False`` allows every call without asking the server. Meant for the tests of a project.
    ENABLED: bool = True
    #: What a throttle answers while the server is unavailable, unless it has its own ``on_failure``.
    ON_FAILURE: Literal["open", "closed", "local"] = "open"
    #: For how many seconds, at most, a process repeats a refusal of the server without asking again.
    REMEMBER: float = 1.0
    #: How refused identities are stored for the dashboard, for a day: in plain text, masked, or hashed. Values of
    #: ``header:``, ``get:`` and ``post:`` are masked in plain text too.
    OFFENDERS: Literal["plain", "masked", "hashed"] = "plain"
    #: The number of processes that share a limit under the failure policy ``local``.
    PROCESSES: int = 1
    #: How many log-ins may fail for a user name; ``None`` for no limit. That many fail at once, and as many again over
    #: each period: at most 39 in the first day. This option and the next two are for ``ThrottledLogins``.
    LOGIN_RATES: str | None = "5/15m; 20/d"
    #: How many log-ins may fail from an address; ``None`` for no limit.
    LOGIN_ADDRESS_RATES: str | None = "30/15m"
    #: When an address is banned: ``(refused log-ins, within seconds, for seconds)``.
    LOGIN_BAN: tuple[Any, ...] | list[Any] | None = None
    #: Throttles by name, and the requests to which ``ThrottleMiddleware`` applies them.
    POLICIES: Mapping[str, Any] = field(default_factory=dict)
    #: The fields about limits in responses: ``RateLimit`` (``draft``), ``X-RateLimit-...`` (``legacy``), or both.
    HEADERS: Literal["draft", "legacy", "both", "none"] = "draft"
    #: The dotted path of a function that takes request, throttle and decision, and answers a refused request.
    HANDLER: str = ""

    def problems(self) -> Iterator[Problem]:
        """Yield what is wrong with the policies and with the limits on log-ins."""
        yield from policy_problems(self.POLICIES)
        for option in ("LOGIN_RATES", "LOGIN_ADDRESS_RATES"):
            yield from _rate_problems(option, getattr(self, option))
        try:
            ban.read(self.LOGIN_BAN)
        except (InvalidValue, TypeError) as error:
            yield Problem("E006", f"REDIS_KIT['THROTTLING']['LOGIN_BAN'] is {self.LOGIN_BAN!r}: {error}")


def _rate_problems(option: str, text: str | None) -> Iterator[Problem]:
    setting = f"REDIS_KIT['THROTTLING']['{option}']"
    try:
        if not all(rate.limit for rate in parse(text)):
            yield Problem("E006", f"{setting} is {text!r}, which lets nobody log in.", "Use None to set no limit.")
    except InvalidRate as error:
        yield Problem("E006", f"{setting}: {error}")
