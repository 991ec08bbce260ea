"""Policies: the throttles of ``REDIS_KIT["THROTTLING"]["POLICIES"]``, by name."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from django.http import HttpRequest
from django.utils.module_loading import import_string

from redis_kit.core import conf
from redis_kit.core.conf import Problem, Section
from redis_kit.core.errors import ConfigurationError, InvalidName, InvalidValue, RedisKitError
from redis_kit.core.keys import encode
from redis_kit.throttling.component import ThrottleSettings
from redis_kit.throttling.engine.base import Limits
from redis_kit.throttling.http.guards import Guard, methods_of
from redis_kit.throttling.throttles.throttle import Throttle
from redis_kit.throttling.values.ban import Ban, read
from redis_kit.throttling.values.identity import Key

PLACE = "REDIS_KIT['THROTTLING']['POLICIES']"

# The beginning of a regular expression that no path can match.
NO_PATH = re.compile(r"\^?[a-zA-Z0-9](?![?*{])[^|]*")

Function = str | Callable[..., Any] | None


@dataclass(frozen=True)
class PolicySettings(Section):
    """The options of one policy."""

    #: The rates, in any of the forms that a Throttle takes. The one option that every policy has.
    RATES: Any = None
    #: Whose calls count together.
    KEY: str | Callable[..., Any] | list[Any] | tuple[Any, ...] = "user_or_ip"
    #: How they are counted.
    STRATEGY: str = "gcra"
    #: Regular expressions for the beginning of the path; without this option every path, with an empty list none.
    PATHS: str | list[Any] | tuple[Any, ...] | None = None
    #: Methods that count; without this option all.
    METHODS: str | list[str] | tuple[str, ...] | None = None
    #: ``True`` counts what would be refused, and refuses nothing.
    SHADOW: bool = False
    #: What it answers while the server is away.
    ON_FAILURE: Literal["open", "closed", "local"] | None = None
    #: A function of the request that says whether it is not counted, or its dotted path.
    EXEMPT: Function = None
    #: A function of request and response that says whether the call stays counted, or its dotted path.
    COUNT_WHEN: Function = None
    #: After how many refusals within how many seconds a caller is shut out, and for how many seconds.
    BAN: Ban | list[Any] | tuple[Any, ...] | None = None


@dataclass(frozen=True)
class Policy:
    """A throttle of the settings, and the requests that it is for."""

    name: str
    guard: Guard
    paths: tuple[re.Pattern[str], ...] | None

    @property
    def throttle(self) -> Throttle:
        """Return its throttle."""
        return self.guard.throttle

    def is_for(self, request: HttpRequest) -> bool:
        """Say whether the middleware applies it to a request with this path."""
        return self.paths is None or any(path.match(request.path_info) for path in self.paths)


_built: tuple[ThrottleSettings, dict[str, Policy]] | None = None


def policies() -> list[Policy]:
    """Return the policies of the settings, in their order. Raises ConfigurationError for wrong settings."""
    return list(_policies().values())


def named(name: str) -> Throttle:
    """Return the throttle of a policy. Raises ConfigurationError where there is none of this name, or a wrong one."""
    try:
        found = _policies()
    except ConfigurationError as error:
        return _alone(name, error)
    if name not in found:
        raise _missing(name, found)
    return found[name].throttle


def problems(given: Mapping[Any, Any]) -> Iterator[Problem]:
    """Yield what is wrong with the policies. Imports none of their functions."""
    for name, entry in given.items():
        where = f"{PLACE}[{name!r}]"
        try:
            encode(name)
        except InvalidName as error:
            yield Problem("E006", f"{PLACE} holds a name that can't be used. {error}")
            continue
        found = list(conf.mismatches(PolicySettings, where, entry)) if isinstance(entry, Mapping) else []
        if not found and (not isinstance(entry, Mapping) or "RATES" not in entry):
            yield Problem("E002", f"{where} must be a dict with 'RATES'.", "For instance {'RATES': '60/m'}.")
            continue
        yield from found
        if not found:
            yield from _value_problems(name, where, PolicySettings(**entry))


def _value_problems(name: Any, where: str, options: PolicySettings) -> Iterator[Problem]:
    checks: dict[str, Callable[[], Any]] = {
        "RATES": lambda: Limits(name, options.RATES),
        "STRATEGY": lambda: Limits(name, options.RATES, strategy=options.STRATEGY),
        "KEY": lambda: Key(options.KEY),
        "METHODS": lambda: methods_of(options.METHODS),
        "PATHS": lambda: _patterns(options.PATHS),
        "BAN": lambda: read(options.BAN),
    }
    for option, check in checks.items():
        try:
            check()
        except (RedisKitError, ValueError, TypeError, re.error) as error:
            yield Problem("E006", f"{where}[{option!r}] is {getattr(options, option)!r}: {error}")
            return


def _policies() -> dict[str, Policy]:
    global _built
    options = conf.section(ThrottleSettings)  # another object after each change of the settings
    if _built is None or _built[0] is not options:
        _built = options, {name: _policy(name, PolicySettings(**entry)) for name, entry in options.POLICIES.items()}
    return _built[1]


def _alone(name: str, error: ConfigurationError) -> Throttle:
    """Return the throttle of a policy beside one that is wrong. Raises what is wrong with this one, or elsewhere."""
    options = conf.configured().get(ThrottleSettings.name)
    entries = options.get("POLICIES") if isinstance(options, Mapping) else None
    if not isinstance(entries, Mapping) or not any(problems(entries)):
        raise error  # it is no policy that is wrong
    if name not in entries:
        raise _missing(name, entries) from None  # nor does the traceback speak of another
    for problem in problems({name: entries[name]}):
        raise ConfigurationError(f"{problem.message} {problem.hint}".strip()) from None
    return _policy(name, PolicySettings(**entries[name])).throttle


def _missing(name: str, there: Mapping[str, Any]) -> ConfigurationError:
    hint = conf.unknown(PLACE, name, there).hint if there else ""
    return ConfigurationError(f"{PLACE} has no {name!r}. {hint}".strip())


def _policy(name: str, options: PolicySettings) -> Policy:
    throttle = Throttle(
        name,
        options.RATES,
        strategy=options.STRATEGY,
        on_failure=options.ON_FAILURE,
        shadow=options.SHADOW,
        ban=read(options.BAN),
    )
    exempt, count_when = _function(options.EXEMPT), _function(options.COUNT_WHEN)
    guard = Guard(throttle, Key(options.KEY), methods_of(options.METHODS), exempt=exempt, count_when=count_when)
    return Policy(name, guard, _patterns(options.PATHS))


def _function(found: Function) -> Callable[..., Any] | None:
    # Imported at its first use: settings are read before the project's own modules can be.
    return (lambda *args: import_string(found)(*args)) if isinstance(found, str) else found


def _patterns(paths: str | Iterable[Any] | None) -> tuple[re.Pattern[str], ...] | None:
    if paths is None:
        return None
    return tuple(map(_pattern, [paths] if isinstance(paths, str) else paths))


def _pattern(path: Any) -> re.Pattern[str]:
    if not isinstance(path, str):
        raise InvalidValue(f"each of them must be text, not {path!r}.")
    if NO_PATH.fullmatch(path):
        raise InvalidValue(f"paths begin with '/', so that {path!r} never matches one.")
    return re.compile(path)
