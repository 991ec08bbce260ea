"""Policies: the throttles that the settings name, each with the requests that it is for."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.utils.module_loading import import_string

from redis_kit.core import conf
from redis_kit.core.errors import ConfigurationError
from redis_kit.throttling.http.guards import Guard
from redis_kit.throttling.identity import IdentityKey
from redis_kit.throttling.settings import (
    SETTING,
    Function,
    PolicySettings,
    ThrottlingSettings,
    methods_of,
    path_patterns,
    policy_problems,
)
from redis_kit.throttling.throttles import Throttle
from redis_kit.throttling.values import read_ban


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

    def matches(self, request: HttpRequest) -> bool:
        """Return whether the middleware applies the policy to a request with this path."""
        return self.paths is None or any(path.match(request.path_info) for path in self.paths)


_built: tuple[ThrottlingSettings, dict[str, Policy]] | None = None


def policies() -> list[Policy]:
    """Return the policies of the settings, in their order. Raises ConfigurationError for wrong settings."""
    return list(_policies().values())


def policy(name: str) -> Throttle:
    """Return the throttle of a policy. Raises ConfigurationError if the policy is missing or wrong."""
    try:
        built = _policies()
    except ConfigurationError as error:
        return _single(name, error)
    if name not in built:
        raise _missing(name, built)
    return built[name].throttle


def _policies() -> dict[str, Policy]:
    global _built
    options = conf.section(ThrottlingSettings)  # another object after each change of the settings
    if _built is None or _built[0] is not options:
        _built = options, {name: _policy(name, PolicySettings(**entry)) for name, entry in options.POLICIES.items()}
    return _built[1]


def _single(name: str, error: ConfigurationError) -> Throttle:
    """Return the throttle of one policy while another one is wrong. Raises what is wrong with this policy."""
    options = conf.configured().get(ThrottlingSettings.name)
    entries = options.get("POLICIES") if isinstance(options, Mapping) else None
    if not isinstance(entries, Mapping) or not any(policy_problems(entries)):
        raise error  # the problem is outside the policies
    if name not in entries:
        raise _missing(name, entries) from None  # the traceback does not mention other policies
    for problem in policy_problems({name: entries[name]}):
        raise ConfigurationError(problem.text) from None
    return _policy(name, PolicySettings(**entries[name])).throttle


def _missing(name: str, entries: Mapping[str, Any]) -> ConfigurationError:
    hint = conf.unknown(SETTING, name, entries).hint if entries else ""
    return ConfigurationError(f"{SETTING} has no {name!r}. {hint}".strip())


def _policy(name: str, options: PolicySettings) -> Policy:
    throttle = Throttle(
        name,
        options.RATES,
        strategy=options.STRATEGY,
        on_failure=options.ON_FAILURE,
        shadow=options.SHADOW,
        ban=read_ban(options.BAN),
    )
    exempt, count_when = _function(options.EXEMPT), _function(options.COUNT_WHEN)
    key = IdentityKey(options.KEY)
    throttle.identity_shapes[key.shape] = None
    guard = Guard(throttle, key, methods_of(options.METHODS), exempt=exempt, count_when=count_when)
    return Policy(name, guard, path_patterns(options.PATHS))


def _function(given: Function) -> Callable[..., Any] | None:
    # Imported at its first use: settings are read before the modules of the project can be imported.
    return (lambda *args: import_string(given)(*args)) if isinstance(given, str) else given
