"""System checks: every wrong key and value of ``REDIS_KIT``, and under ``check --deploy`` the servers themselves."""

from collections.abc import Iterator
from typing import Any

from django.core.checks import CheckMessage, Error, Warning

from redis_kit.core import conf
from redis_kit.core.client import addresses, connection_checks, connection_options
from redis_kit.core.component import components
from redis_kit.core.errors import ConfigurationError, RedisKitError
from redis_kit.core.settings import KitSettings


def check_settings(**kwargs: Any) -> list[CheckMessage]:
    """Return the problems of the settings. Talks to no server."""
    if not conf.is_dict():
        return [_message(conf.Problem("E002", "REDIS_KIT must be a dict."))]
    return list(_settings_messages())


def check_deployment(**kwargs: Any) -> list[CheckMessage]:
    """Return the problems of the servers: version, eviction, persistence. Two round trips to each server."""
    if check_settings():
        return []
    from redis_kit.core.checks import servers

    return [_message(problem) for alias in addresses.aliases() for problem in servers.problems(alias)]


def _settings_messages() -> Iterator[CheckMessage]:
    top = list(conf.problems(KitSettings))
    yield from map(_message, top)
    yield from map(_message, connection_checks.problems(addresses.aliases()))
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
            problem = connection_options.misplaced(name, conf.configured()[name])
            yield _message(problem or conf.unknown("REDIS_KIT", name, allowed))
    for component in active:
        wrong = list(conf.problems(component.settings))
        yield from map(_message, wrong)
        try:
            yield from component.checks()
        except RedisKitError as error:
            if not wrong:
                yield Error(str(error), id="redis_kit.E002")


def _message(problem: conf.Problem) -> CheckMessage:
    kind = Warning if problem.id.startswith("W") else Error
    return kind(problem.message, hint=problem.hint or None, id=f"redis_kit.{problem.id}")
