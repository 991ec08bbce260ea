"""System checks: every wrong key and value of the settings, and under ``check --deploy`` the servers themselves."""

from collections.abc import Iterator
from typing import Any

from django.core.checks import CheckMessage, Error, Warning

from redis_kit.core import conf
from redis_kit.core.checks import dotted_paths
from redis_kit.core.client import addresses, connection_checks, connection_options
from redis_kit.core.component import components
from redis_kit.core.errors import ConfigurationError, RedisKitError
from redis_kit.core.settings import KitSettings


def check_settings(**kwargs: Any) -> list[CheckMessage]:
    """Return the problems of ``REDIS_KIT``, and of paths of the kit in Django's settings. Talks to no server."""
    wrong_paths = list(map(_message, dotted_paths.problems()))
    if not conf.is_dict():
        return [*wrong_paths, _message(conf.not_a_dict())]
    return [*wrong_paths, *_settings_messages()]


def check_deployment(**kwargs: Any) -> list[CheckMessage]:
    """Return the problems of the servers: version, eviction, persistence. Two round trips to each server."""
    if any(message.is_serious() for message in check_settings()):
        return []
    from redis_kit.core.checks import servers

    return [_message(problem) for alias in addresses.aliases() for problem in servers.problems(alias)]


def _settings_messages() -> Iterator[CheckMessage]:
    top = list(conf.problems(KitSettings))
    yield from map(_message, top)
    of_connections = list(connection_checks.problems(addresses.aliases()))
    yield from map(_message, of_connections)
    if any("EXTRA_COMPONENTS" in problem.message for problem in top):
        return
    try:
        active = components()
    except ConfigurationError as error:
        yield Error(str(error), id="redis_kit.E002")
        return
    allowed = [*(component.settings.name for component in active), *conf.options(KitSettings)]
    for name in conf.configured():
        if name not in allowed:
            problem = connection_options.misplaced_option(name, conf.configured()[name])
            yield _message(problem or conf.unknown("REDIS_KIT", name, allowed))
    for component in active:
        wrong = list(conf.problems(component.settings))
        yield from map(_message, wrong)
        if not (top or of_connections):
            yield from map(_message, _using(component.settings))
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


def _message(problem: conf.Problem) -> CheckMessage:
    kind = Warning if problem.id.startswith("W") else Error
    return kind(problem.message, hint=problem.hint or None, id=f"redis_kit.{problem.id}")
