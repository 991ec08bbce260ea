"""The settings of throttles: ``REDIS_KIT["THROTTLING"]``."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from redis_kit.core import conf
from redis_kit.core.conf import Problem, Section
from redis_kit.core.errors import InvalidName, InvalidRate, InvalidValue, RedisKitError
from redis_kit.core.keys import encode
from redis_kit.core.text import shortened
from redis_kit.core.values.rates import parse
from redis_kit.throttling.identity import IdentityKey
from redis_kit.throttling.strategies import load as load_strategy
from redis_kit.throttling.values import Ban, read_ban

SETTING = "REDIS_KIT['THROTTLING']['POLICIES']"

# The beginning of a regular expression that no path can match.
NO_PATH = re.compile(r"\^?[a-zA-Z0-9](?![?*{])[^|]*")

Function = str | Callable[..., Any] | None
METHODS = frozenset({"CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"})


@dataclass(frozen=True)
class PolicySettings(Section):
    """The options of one policy."""

    #: The rates, in any of the forms that a ``Throttle`` accepts. The only required option.
    RATES: Any = None
    #: Which calls are counted together.
    KEY: str | Callable[..., Any] | list[Any] | tuple[Any, ...] = "user_or_ip"
    #: How calls are counted.
    STRATEGY: str = "gcra"
    #: Regular expressions for the beginning of the path. Omit it for every path; an empty list matches none.
    PATHS: str | list[Any] | tuple[Any, ...] | None = None
    #: The methods that are counted; ``GET`` includes ``HEAD``. Omit it for all of them.
    METHODS: str | list[str] | tuple[str, ...] | None = None
    #: ``True`` counts the calls that would be refused, and refuses none.
    SHADOW: bool = False
    #: What the throttle answers while the server is unavailable.
    ON_FAILURE: Literal["open", "closed", "local"] | None = None
    #: A function that takes a request and returns true if it is not counted, or its dotted path.
    EXEMPT: Function = None
    #: A function that takes request and response and returns true if the call stays counted, or its dotted path.
    COUNT_WHEN: Function = None
    #: When an identity is banned: ``(refusals, within seconds, for seconds)``.
    BAN: Ban | list[Any] | tuple[Any, ...] | None = None


def policy_problems(policies: Mapping[Any, Any]) -> Iterator[Problem]:
    """Yield what is wrong with the policies. Imports none of their functions."""
    for name, entry in policies.items():
        setting = f"{SETTING}[{name!r}]"
        try:
            encode(name)
        except InvalidName as error:
            yield Problem("E006", f"{SETTING} contains a name that can't be used. {error}")
            continue
        if not isinstance(entry, Mapping):
            yield _needs_rates(f"{setting} is {conf.described_value(entry)}; it")
            continue
        mismatches = list(conf.mismatches(PolicySettings, setting, entry))
        yield from mismatches
        if "RATES" not in entry and not mismatches:
            yield _needs_rates(setting)
        yield from _value_problems(setting, PolicySettings(**conf.without_mismatches(PolicySettings, entry)))


def _needs_rates(setting: str) -> Problem:
    return Problem("E002", f"{setting} must be a dict with 'RATES'.", "For example {'RATES': '60/m'}.")


def path_patterns(paths: str | Iterable[Any] | None) -> tuple[re.Pattern[str], ...] | None:
    """Return the compiled patterns of ``PATHS``; None for every path. Raises InvalidValue and re.error."""
    if paths is None:
        return None
    return tuple(map(_pattern, [paths] if isinstance(paths, str) else paths))


def _value_problems(setting: str, options: PolicySettings) -> Iterator[Problem]:
    checks: dict[str, Callable[[], Any]] = {
        "RATES": lambda: parse(options.RATES),
        "STRATEGY": lambda: load_strategy(options.STRATEGY)([rate for rate in parse(options.RATES) if rate.limit]),
        "KEY": lambda: IdentityKey(options.KEY),
        "METHODS": lambda: methods_of(options.METHODS),
        "PATHS": lambda: path_patterns(options.PATHS),
        "BAN": lambda: read_ban(options.BAN),
    }
    wrong = set()
    for option, check in checks.items():
        if option == "STRATEGY" and "RATES" in wrong:
            continue  # a strategy is built for rates
        try:
            check()
        except (RedisKitError, ValueError, TypeError, re.error) as error:
            wrong.add(option)
            yield Problem("E006", f"{setting}[{option!r}] is {getattr(options, option)!r}: {error}")


def _pattern(path: Any) -> re.Pattern[str]:
    if not isinstance(path, str):
        raise InvalidValue(f"each path must be text, not {path!r}.")
    if not path:
        raise InvalidValue("empty text matches every path; omit PATHS to mean that.")
    if NO_PATH.fullmatch(path):
        raise InvalidValue(f"paths begin with '/', so {path!r} never matches.")
    return re.compile(path)


def methods_of(given: str | Iterable[str] | None) -> frozenset[str] | None:
    """Return methods in capital letters; None stands for all of them. GET includes HEAD. Raises InvalidValue."""
    if given is None:
        return None
    if not isinstance(given, Iterable):
        raise InvalidValue(f"methods must be a method or several, such as ('POST', 'PUT'), not {shortened(given)}.")
    methods = frozenset(str(method).upper() for method in ([given] if isinstance(given, str) else given))
    if unknown := sorted(methods - METHODS):
        raise InvalidValue(f"methods contains {', '.join(unknown)}; a method is one of {', '.join(sorted(METHODS))}.")
    if not methods:
        raise InvalidValue("methods is empty, so nothing would be limited; omit it to limit every method.")
    # Django runs the same view for both.
    return methods | {"HEAD"} if "GET" in methods else methods


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
            read_ban(self.LOGIN_BAN)
        except (InvalidValue, TypeError) as error:
            yield Problem("E006", f"REDIS_KIT['THROTTLING']['LOGIN_BAN'] is {self.LOGIN_BAN!r}: {error}")


def _rate_problems(option: str, text: str | None) -> Iterator[Problem]:
    setting = f"REDIS_KIT['THROTTLING']['{option}']"
    try:
        if not all(rate.limit for rate in parse(text)):
            yield Problem("E006", f"{setting} is {text!r}, which lets nobody log in.", "Use None to set no limit.")
    except InvalidRate as error:
        yield Problem("E006", f"{setting}: {error}")
