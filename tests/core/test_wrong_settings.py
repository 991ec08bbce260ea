"""Every option with values of wrong types: the checks and the first use name it. No other error is raised."""

import math
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, get_type_hints

import pytest
from django.core.checks import CheckMessage
from django.test import override_settings

from redis_kit.core import conf
from redis_kit.core.checks.configuration import check_settings
from redis_kit.core.client import addresses, connection_options
from redis_kit.core.component import components
from redis_kit.core.errors import ConfigurationError, RedisUnavailable
from redis_kit.core.settings import KitSettings
from redis_kit.queues import framework, task
from redis_kit.queues.backend import BackendEntry, BackendOptions
from redis_kit.queues.errors import UnlistedQueue
from redis_kit.throttling.settings import PolicySettings, ThrottlingSettings

VALUES = [
    None,
    "mail",
    b"mail",
    [],
    ["mail"],
    [None],
    [["a"]],
    {},
    {"a": None},
    {1: 2},
    -1,
    1.5,
    math.nan,
    True,
    {"x"},
    {1},
]
SERVER = {"URL": "redis://localhost/0"}
SENTINELS = {"SENTINELS": [("localhost", 26379)], "SERVICE": "primary"}
BACKEND = "redis_kit.queues.backend.RedisTaskBackend"
Setting = Callable[[Any], dict[str, Any]]


class Option(NamedTuple):
    """An option: its place as messages name it, its type, the settings that give it a value, and its first use."""

    place: str
    hint: Any
    setting: Setting
    use: Callable[[], Any]


@task(store_result=False)
def wrongly_configured() -> None: ...


def kit(**given: Any) -> dict[str, Any]:
    return {"REDIS_KIT": {"CONNECTIONS": {"default": SERVER}, **given}}


def connect() -> Any:
    return addresses.address("default")


def in_section(
    kind: type[conf.Section], setting: Callable[[dict[str, Any]], Any]
) -> Iterator[tuple[str, Any, Setting]]:
    """Yield the options of a dataclass, with the settings that have one of them."""
    hints = get_type_hints(kind)
    for name in conf.options(kind):
        yield name, hints[name], lambda value, name=name: setting({name: value})


def options() -> Iterator[Option]:
    """Yield all options that the settings declare, and the dicts that hold them."""
    yield Option("REDIS_KIT", dict, lambda value: {"REDIS_KIT": value}, connect)
    for name, hint, setting in in_section(KitSettings, lambda given: kit(**given)):
        yield Option(f"REDIS_KIT['{name}']", hint, setting, connect)
    for component in components():
        kind = component.settings
        place, use = f"REDIS_KIT['{kind.name}']", lambda kind=kind: conf.section(kind)
        yield Option(place, dict, lambda value, kind=kind: kit(**{kind.name: value}), use)
        for name, hint, setting in in_section(kind, lambda given, kind=kind: kit(**{kind.name: given})):
            yield Option(f"{place}['{name}']", hint, setting, use)
    yield from of_policies()
    yield from of_connections()
    yield from of_tasks()


def of_policies() -> Iterator[Option]:
    place = "REDIS_KIT['THROTTLING']['POLICIES']['api']"

    def use() -> Any:
        return conf.section(ThrottlingSettings)

    def policy(entry: Any) -> dict[str, Any]:
        return kit(THROTTLING={"POLICIES": {"api": entry}})

    yield Option(place, dict, policy, use)
    for name, hint, setting in in_section(PolicySettings, lambda given: policy({"RATES": "5/m", **given})):
        yield Option(f"{place}['{name}']", hint, setting, use)


def of_connections() -> Iterator[Option]:
    place = "REDIS_KIT['CONNECTIONS']['default']"

    def entry(value: Any) -> dict[str, Any]:
        return {"REDIS_KIT": {"CONNECTIONS": {"default": value}}}

    def beside(others: dict[str, Any], name: str) -> Setting:
        return lambda value: entry({**others, name: value})

    yield Option(place, dict, entry, connect)
    for option in connection_options.SOURCES:
        others = {"SERVICE": "primary"} if option.name == "SENTINELS" else {}
        yield Option(place, option.kind, beside(others, option.name), connect)
        for_tests = beside(SERVER, "TEST")
        yield Option(
            f"{place}['TEST']",
            option.kind,
            lambda value, name=option.name, others=others, for_tests=for_tests: for_tests({**others, name: value}),
            connect,
        )
    for option in (*connection_options.CLIENT, *connection_options.TLS, connection_options.TEST):
        hint = option.kind | None if option.name == "TEST" else option.kind
        yield Option(f"{place}['{option.name}']", hint, beside(SERVER, option.name), connect)
    for option in connection_options.SENTINEL:
        named = "'SERVICE'" if option.name == "SERVICE" else f"{place}['{option.name}']"
        hint = option.kind | None if option.name == "SENTINEL_KWARGS" else option.kind
        yield Option(named, hint, beside(SENTINELS, option.name), connect)


def of_tasks() -> Iterator[Option]:
    place, use = "TASKS['default']", wrongly_configured.enqueue

    def tasks(entry: Any) -> dict[str, Any]:
        return kit() | {"TASKS": {"default": entry}}

    yield Option("TASKS", dict, lambda value: kit() | {"TASKS": value}, named_backend)
    yield Option(place, dict, tasks, named_backend)
    for name, hint, setting in in_section(BackendEntry, lambda given: tasks({"BACKEND": BACKEND, **given})):
        of_framework = name == "BACKEND"
        yield Option(
            f"{place}['{name}']", str if of_framework else hint, setting, named_backend if of_framework else use
        )
    for name, hint, setting in in_section(BackendOptions, lambda given: tasks({"BACKEND": BACKEND, "OPTIONS": given})):
        yield Option(f"{place}['OPTIONS']['{name}']", hint, setting, use)


def named_backend() -> Any:
    return wrongly_configured.get_backend()


def faults(option: Option, value: Any) -> Iterator[str]:
    """Yield what is wrong with the messages about a value."""
    with override_settings(**option.setting(value)):
        try:
            messages = [message for message in check_settings() if message.is_serious()]
        except Exception as error:
            yield f"the check raises {error!r}"
            return
        raised = first_use(option)
        if raised is not None and not isinstance(raised, ConfigurationError):
            yield f"the first use raises {raised!r}"
        elif conf.matches(value, option.hint):
            if raised and not messages:
                yield f"only the first use reports {raised}"
        elif not any(names(message, option.place) for message in messages):
            yield f"the check says {[message.msg for message in messages]}"
        elif raised is None or not any(str(raised).startswith(message.msg) for message in messages):
            yield f"the first use raises {raised!r}, the check says {[message.msg for message in messages]}"


def first_use(option: Option) -> BaseException | None:
    try:
        option.use()
    except (RedisUnavailable, UnlistedQueue, framework.InvalidTaskBackend):
        return None  # the settings were read
    except Exception as error:
        return error
    return None


def names(message: CheckMessage, place: str) -> bool:
    """Tell whether a message has an ID, names an option, and says more than that it is wrong."""
    allowed = re.search(r"must|allowed|exactly one|names the cache|no CONNECTIONS|is missing|needs", message.msg)
    return bool(re.fullmatch(r"redis_kit\.E\d{3}", message.id) and place in message.msg and (allowed or message.hint))


@pytest.mark.parametrize("start", ["REDIS_KIT", "TASKS"])
def test_each_option_of_a_wrong_type_is_named_by_checks_and_first_use(start, settings):
    settings.DEBUG = True
    wrong = [
        f"{option.place} = {value!r}: {fault}"
        for option in options()
        if next(iter(option.setting(None).keys() - {"REDIS_KIT"}), "REDIS_KIT") == start
        for value in VALUES
        for fault in faults(option, value)
    ]
    assert not wrong, "\n".join(wrong)


def test_connection_that_an_option_names_must_exist(settings):
    settings.REDIS_KIT = {"CONNECTIONS": {"default": SERVER}, "PAGEVIEWS": {"USING": "defualt"}}
    (message,) = check_settings()
    assert message.msg == "REDIS_KIT['PAGEVIEWS']['USING'] is 'defualt'. There is no connection 'defualt'."
    assert "Did you mean 'default'?" in message.hint
