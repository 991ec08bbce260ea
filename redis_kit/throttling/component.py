"""The throttling component: its options, its checks and its panel."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from django.core.checks import CheckMessage

from redis_kit.core.component import Component
from redis_kit.core.conf import Problem, Section
from redis_kit.core.errors import InvalidValue
from redis_kit.throttling.values.ban import read
from redis_kit.throttling.values.rates import InvalidRate, parse


@dataclass(frozen=True)
class ThrottleSettings(Section):
    """Options of all throttles."""

    name = "THROTTLING"
    ranges = {"REMEMBER": (0, 1), "PROCESSES": (1, 10_000)}

    #: ``False`` admits every call without asking the server, for a project's own tests.
    ENABLED: bool = True
    #: What a throttle answers while the server is away, where it has no ``on_failure`` of its own.
    ON_FAILURE: Literal["open", "closed", "local"] = "open"
    #: Seconds for which a process refuses by itself what the server refused, at most.
    REMEMBER: float = 1.0
    #: What the dashboard keeps of callers that were refused, for a day: themselves, themselves masked, or their hash.
    OFFENDERS: Literal["plain", "masked", "hashed"] = "plain"
    #: How many processes share a limit out among them under the policy ``local``.
    PROCESSES: int = 1
    #: How many failed log-ins a user name may have; ``None`` sets no limit. These three are for ``ThrottledLogins``.
    LOGIN_RATES: str | None = "5/15m; 20/d"
    #: How many failed log-ins an address may have.
    LOGIN_ADDRESS_RATES: str | None = "30/15m"
    #: When an address is shut out altogether: after so many refused log-ins, within so many seconds, for so many.
    LOGIN_BAN: tuple[Any, ...] | list[Any] | None = None
    #: Throttles by name, and the requests that ``ThrottleMiddleware`` applies them to.
    POLICIES: Mapping[str, Any] = field(default_factory=dict)
    #: What responses tell of the limits: ``RateLimit`` fields (``draft``), ``X-RateLimit-...`` (``legacy``), or both.
    HEADERS: Literal["draft", "legacy", "both", "none"] = "draft"
    #: Dotted path of a function of request, throttle and decision that returns the response to a refused request.
    HANDLER: str = ""

    def problems(self) -> Iterator[Problem]:
        """Yield what is wrong with the policies and with the limits of log-ins."""
        if self.POLICIES:
            from redis_kit.throttling.policy_settings import problems  # the client library with it

            yield from problems(self.POLICIES)
        for option in ("LOGIN_RATES", "LOGIN_ADDRESS_RATES"):
            yield from _rate_problems(option, getattr(self, option))
        try:
            read(self.LOGIN_BAN)
        except (InvalidValue, TypeError) as error:
            yield Problem("E006", f"REDIS_KIT['THROTTLING']['LOGIN_BAN'] is {self.LOGIN_BAN!r}: {error}")


def _rate_problems(option: str, text: str | None) -> Iterator[Problem]:
    place = f"REDIS_KIT['THROTTLING']['{option}']"
    try:
        if not all(rate.limit for rate in parse(text)):
            yield Problem("E006", f"{place} is {text!r}, which lets nobody log in.", "Use None to set no limit.")
    except InvalidRate as error:
        yield Problem("E006", f"{place}: {error}")


class Throttling(Component):
    """Limits on how often something may happen."""

    settings = ThrottleSettings
    panels = ("redis_kit.throttling.dashboard.panel.ThrottlesPanel",)
    permissions = (
        ("reset_throttles", "Can reset and change throttles"),
        ("view_identities", "Can see identities unmasked"),
    )

    def ready(self) -> None:
        """Connect what counts failed log-ins; it does nothing unless the project has the backend."""
        from django.contrib.auth.signals import user_logged_in, user_login_failed

        user_login_failed.connect(_login_failed, dispatch_uid="redis_kit.throttling.login_failed")
        user_logged_in.connect(_logged_in, dispatch_uid="redis_kit.throttling.logged_in")

    def checks(self) -> Iterable[CheckMessage]:
        """Return messages about functions that can't be imported, and settings that are without effect."""
        from redis_kit.throttling import checks, policychecks

        return (*checks.messages(), *policychecks.messages())


def _login_failed(*, credentials: dict[str, Any], request: Any = None, **kwargs: Any) -> None:
    from redis_kit.throttling import logins  # the client library with it: not before somebody logs in

    if logins.active():
        logins.count(request, credentials)


def _logged_in(*, user: Any, request: Any = None, **kwargs: Any) -> None:
    from redis_kit.throttling import logins

    if logins.active():
        logins.forget(request, user)
