"""The settings of policies: ``REDIS_KIT["THROTTLING"]["POLICIES"]``."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from redis_kit.core import conf
from redis_kit.core.conf import Problem, Section
from redis_kit.core.errors import InvalidName, InvalidValue, RedisKitError
from redis_kit.core.keys import encode
from redis_kit.core.text import shortened
from redis_kit.core.values.rates import parse
from redis_kit.throttling.strategies import base as strategies
from redis_kit.throttling.values import ban
from redis_kit.throttling.values.ban import Ban
from redis_kit.throttling.values.identity import IdentityKey

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
        "STRATEGY": lambda: strategies.load(options.STRATEGY)([rate for rate in parse(options.RATES) if rate.limit]),
        "KEY": lambda: IdentityKey(options.KEY),
        "METHODS": lambda: methods_of(options.METHODS),
        "PATHS": lambda: path_patterns(options.PATHS),
        "BAN": lambda: ban.read(options.BAN),
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
