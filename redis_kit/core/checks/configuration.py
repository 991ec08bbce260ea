"""System checks: every wrong key and value of the settings, and under ``check --deploy`` the servers themselves."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning

from redis_kit.core import conf
from redis_kit.core.client import addresses, connection_checks, connection_options
from redis_kit.core.component import components
from redis_kit.core.conf import Problem
from redis_kit.core.errors import ConfigurationError, RedisKitError
from redis_kit.core.settings import KitSettings


def check_settings(**kwargs: Any) -> list[CheckMessage]:
    """Return the problems of ``REDIS_KIT``, and of middleware of the kit. Talks to no server."""
    repeated = [problem.check_message for problem in _repeated_middleware()]
    if not conf.is_dict():
        return [*repeated, conf.not_a_dict().check_message]
    return [*repeated, *_settings_messages()]


def check_deployment(**kwargs: Any) -> list[CheckMessage]:
    """Return the problems of a change of SECRET_KEY, and of the servers: version, eviction, persistence.

    Two round trips to each server.
    """
    if any(message.is_serious() for message in check_settings()):
        return []
    from redis_kit.core.checks import servers

    of_servers = [problem.check_message for alias in addresses.aliases() for problem in servers.problems(alias)]
    if not settings.SECRET_KEY_FALLBACKS or conf.section(KitSettings).HASH_KEY:
        return of_servers
    wrong = (
        "SECRET_KEY_FALLBACKS is set, and REDIS_KIT['HASH_KEY'] is not. Identities are hashed with SECRET_KEY, so "
        "bans end, and counts of throttles and visitors of pages begin again, when it changes."
    )
    hint = "If you use these, set HASH_KEY to the SECRET_KEY that they were stored with."
    return [Problem("W028", wrong, hint).check_message, *of_servers]


def _settings_messages() -> Iterator[CheckMessage]:
    top = list(conf.problems(KitSettings))
    yield from (problem.check_message for problem in top)
    given = conf.configured()
    if "FORWARDED_HEADER" in given and "TRUSTED_PROXIES" not in given and not top:
        yield Warning(
            "REDIS_KIT['FORWARDED_HEADER'] is set without REDIS_KIT['TRUSTED_PROXIES'], so no header is read.",
            hint="Set TRUSTED_PROXIES to the number of proxies in front, or to their networks.",
            id="redis_kit.W027",
        )
    of_connections = list(connection_checks.problems(addresses.aliases()))
    if not (top or of_connections):
        of_connections = list(addresses.tls_problems())
    yield from (problem.check_message for problem in of_connections)
    if any("EXTRA_COMPONENTS" in problem.message for problem in top):
        return
    try:
        active = components()
    except ConfigurationError as error:
        yield Error(str(error), id="redis_kit.E002")
        return
    sections = [component.settings.name for component in active if component.settings]
    allowed = [*sections, *conf.options(KitSettings)]
    for name in conf.configured():
        if name not in allowed:
            problem = connection_options.misplaced_option(name, conf.configured()[name])
            yield (problem or conf.unknown("REDIS_KIT", name, allowed)).check_message
    for component in active:
        wrong = list(conf.problems(component.settings)) if component.settings else []
        yield from (problem.check_message for problem in wrong)
        if component.settings and not (top or of_connections):
            yield from (problem.check_message for problem in _using(component.settings))
        try:
            yield from component.checks()
        except RedisKitError as error:
            if not wrong:
                yield Error(str(error), id="redis_kit.E002")


def _using(kind: type[conf.Section]) -> Iterator[conf.Problem]:
    """Yield the problem of a section whose option names a connection that does not exist."""
    alias = getattr(conf.valid_options(kind), "USING", "default")
    for problem in connection_checks.alias_missing(alias, addresses.aliases()):
        yield problem._replace(message=f"REDIS_KIT[{kind.name!r}]['USING'] is {alias!r}. {problem.message}")


def _repeated_middleware() -> Iterator[Problem]:
    for path, times in Counter(settings.MIDDLEWARE).items():
        if times > 1 and isinstance(path, str) and path.startswith("redis_kit."):
            wrong = f"MIDDLEWARE has {path!r} {times} times, so it handles each request as often."
            yield Problem("W031", wrong, "Remove all but one.")
