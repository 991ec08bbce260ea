"""System checks: every wrong key and value of the settings, and under ``check --deploy`` the servers themselves."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning
from django.utils.module_loading import import_string

from redis_kit.components import BUILTIN
from redis_kit.core import conf
from redis_kit.core.client import addresses, connection_options
from redis_kit.core.component import Component, components
from redis_kit.core.conf import Problem
from redis_kit.core.errors import ConfigurationError, RedisKitError
from redis_kit.core.panels import Panel
from redis_kit.core.settings import KitSettings
from redis_kit.core.text import similar

# The classes that each of these settings, or an option inside it, may name. The check of the queues reads TASKS.
CLASSES = {
    ("MIDDLEWARE",): (
        "redis_kit.pageviews.middleware.PageViewMiddleware",
        "redis_kit.signins.middleware.SignInMiddleware",
        "redis_kit.throttling.middleware.ThrottleMiddleware",
    ),
    ("AUTHENTICATION_BACKENDS",): ("redis_kit.throttling.logins.ThrottledLogins",),
    ("TEST_RUNNER",): ("redis_kit.testing.runner.RedisKitRunner",),
    ("REST_FRAMEWORK", "DEFAULT_THROTTLE_CLASSES"): (
        "redis_kit.throttling.drf.AnonRateThrottle",
        "redis_kit.throttling.drf.UserRateThrottle",
        "redis_kit.throttling.drf.ScopedRateThrottle",
        "redis_kit.throttling.drf.BurstSustainedThrottle",
    ),
}


def check_settings(**kwargs: Any) -> list[CheckMessage]:
    """Return the problems of ``REDIS_KIT``, and of paths of the kit in Django's settings. Talks to no server."""
    wrong_paths = [problem.check_message for problem in (*path_problems(), *_repeated_middleware())]
    if not conf.is_dict():
        return [*wrong_paths, conf.not_a_dict().check_message]
    return [*wrong_paths, *_settings_messages()]


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
    of_connections = list(connection_options.problems(addresses.aliases()))
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
    yield from _panel_messages(active)


def _panel_messages(active: Sequence[Component]) -> Iterator[CheckMessage]:
    """Yield the problems of the panels of EXTRA_COMPONENTS. Without these, no panel is imported."""
    builtin, extra = active[: len(BUILTIN)], active[len(BUILTIN) :]
    if not any(component.panels for component in extra):
        return
    slugs = {panel.slug: str(panel.title) for component in builtin for panel in component.load_panels()}
    for component in extra:
        paths = component.panels
        if isinstance(paths, str):
            text = f"{type(component).__name__}.panels is a text, {paths!r}, not a tuple of dotted paths."
            yield Error(text, hint=f"Write panels = ({paths!r},) with a comma.", id="redis_kit.E032")
            continue
        for path in paths:
            if wrong := _wrong_panel(path, slugs):
                yield Error(f"{type(component).__name__}.panels has {path!r}: {wrong}.", id="redis_kit.E032")


def _wrong_panel(path: str, slugs: dict[str, str]) -> str:
    """Return what is wrong with a panel, "" if nothing is, and add its slug."""
    try:
        panel = import_string(path)
    except ImportError as error:
        return str(error).rstrip(".")
    if not (isinstance(panel, type) and issubclass(panel, Panel)):
        return "it is not a Panel class"
    missing = [name for name in ("slug", "title") if not getattr(panel, name, "")]
    if missing:
        return f"it has no {' and no '.join(missing)}"
    if panel.slug in slugs:
        return f"its slug {panel.slug!r} is that of the panel {slugs[panel.slug]!r}"
    slugs[panel.slug] = str(panel.title)
    return ""


def _using(kind: type[conf.Section]) -> Iterator[conf.Problem]:
    """Yield the problem of a section whose option names a connection that does not exist."""
    alias = getattr(conf.valid_options(kind), "USING", "default")
    for problem in connection_options.alias_missing(alias, addresses.aliases()):
        yield problem._replace(message=f"REDIS_KIT[{kind.name!r}]['USING'] is {alias!r}. {problem.message}")


def path_problems(*names: str) -> Iterator[Problem]:
    """Yield the dotted paths of the kit that can't be imported, in all settings or in those named.

    Imports none of the paths that are right.
    """
    for setting, right in CLASSES.items():
        if names and setting[0] not in names:
            continue
        given = _setting_value(*setting)
        for path in [given] if isinstance(given, str) else given or ():
            if isinstance(path, str) and path.startswith("redis_kit.") and path not in right:
                yield from _missing_path(setting, path)


def _repeated_middleware() -> Iterator[Problem]:
    for path, times in Counter(settings.MIDDLEWARE).items():
        if times > 1 and isinstance(path, str) and path.startswith("redis_kit."):
            wrong = f"MIDDLEWARE has {path!r} {times} times, so it handles each request as often."
            yield Problem("W031", wrong, "Remove all but one.")


def _setting_value(name: str, *options: str) -> Any:
    given = getattr(settings, name, None)
    for option in options:
        given = given.get(option) if isinstance(given, Mapping) else None
    return given


def _missing_path(setting: tuple[str, ...], path: str) -> Iterator[Problem]:
    try:
        import_string(path)
    except ImportError as error:
        place = setting[0] + "".join(f"[{option!r}]" for option in setting[1:])
        wrong = f"{place} has {path!r}, which can't be imported: {str(error).rstrip('.')}."
        # Names are compared first: the modules are what a project forgets.
        by_name = {right.rpartition(".")[2]: right for right in CLASSES[setting]}
        near = similar(path.rpartition(".")[2], by_name)
        hint = f"Did you mean {by_name[near[0]]!r}?" if near else f"Write {' or '.join(map(repr, by_name.values()))}."
        yield Problem("E002", wrong, hint)
