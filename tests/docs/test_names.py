"""Names in ``code`` font exist: dotted paths, members of public classes, settings, commands and their options."""

import importlib
import inspect
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

from django.conf import global_settings
from django.core.management import get_commands
from django.utils.module_loading import import_string

from redis_kit.core import conf
from redis_kit.core.client import connection_options
from redis_kit.core.component import components
from redis_kit.core.settings import KitSettings
from redis_kit.queues.settings import QueueOptions
from tests.docs.support import console
from tests.docs.support.pages import PAGES, ROOT, assert_none

COMPONENTS = (
    "locks",
    "locks.inspection",
    "throttling",
    "queues",
    "queues.inspection",
    "pageviews",
    "signins",
    "operations",
    "logs",
)
CORE = ("errors", "signals", "panels", "component", "primitive", "conf")
# Names in capitals that are of other projects, or environment variables.
FOREIGN = {
    "X_FORWARDED_FOR",
    "REMOTE_ADDR",
    "DJANGO_SETTINGS_MODULE",
    "REST_FRAMEWORK",
    "CELERY_BROKER_URL",
    "CELERY_TASK_ALWAYS_EAGER",
    "HITCOUNT_EXCLUDE_USER_GROUP",
    "HITCOUNT_HITS_PER_IP_LIMIT",
    "HITCOUNT_KEEP_HIT_ACTIVE",
    "HITCOUNT_KEEP_HIT_IN_DATABASE",
    "CONN_HEALTH_CHECKS",
    "CONN_MAX_AGE",
    "DISABLE_SERVER_SIDE_CURSORS",
    "ENQUEUE_ON_COMMIT",
    "RQ_QUEUES",
    "USERNAME_FIELD",
    "THROTTLE_RATES",
    "NUM_PROXIES",
    "NINJA_DEFAULT_THROTTLE_RATES",
    "NINJA_NUM_PROXIES",
}


def test_names_exist():
    assert_none(
        f"{page.name}: {span}: {problem}" for page in PAGES for span in page.spans() for problem in _problems(span)
    )


def _problems(span: str) -> Iterator[str]:
    for path in re.findall(r"(?<![\w/.])redis_kit(?:\.\w+)+", span):
        if not _imports(path) and path.removeprefix("redis_kit.") not in _others():
            yield f"{path} does not exist"
    for name in re.findall(r"(?<![\w.{])rk_[a-z_]+\b(?![*:])", span):
        if name not in _commands() and name not in _quoted():
            yield f"no command {name}"
    match = re.fullmatch(r"(?:\w+\.)*([A-Z]\w+)\.(\w+)(?:\(.*\))?", span, re.DOTALL)
    if match and (kinds := _public().get(match[1])) and not any(_has(kind, match[2]) for kind in kinds):
        yield f"no member {match[2]}"
    for section, option in re.findall(r"\b([A-Z_]+)(?=['\"]?\]?\[['\"]([A-Z_]+)['\"]\])", span):
        if section in _sections() and option not in _sections()[section]:
            yield f"{section} has no option {option}"
    if re.fullmatch(r"[A-Z]+(?:_[A-Z]+)+", span) and span not in _capitals():
        yield "no setting of this name"
    match = re.fullmatch(r"(--[a-z][a-z-]+)(?:[= ].*)?", span)
    if match and match[1] not in _options():
        yield f"no command has {match[1]}"
    if match := re.fullmatch(r"(?:python )?manage\.py (.+)", span):
        arguments = match[1].split()
        if arguments[0] not in _commands():
            yield f"no command {arguments[0]}"
        elif wrong := {word for word in arguments if word.startswith("--")} - _options():
            yield f"no option {wrong}"
    if (match := re.fullmatch(r"make ([a-z]+)(?: .*)?", span)) and match[1] not in console.TARGETS:
        yield f"no target {match[1]}"


@cache
def _imports(path: str) -> bool:
    try:
        importlib.import_module(path)
    except ImportError:
        try:
            import_string(path)
        except ImportError:
            try:
                owner, _, member = path.rpartition(".")
                return _has(import_string(owner), member)
            except ImportError:
                return False
    return True


@cache
def _others() -> set[str]:
    """Names after ``redis_kit.``: of loggers, permissions and checks."""
    source = "\n".join(path.read_text() for path in (ROOT / "redis_kit").rglob("*.py"))
    names = set(re.findall(r"[\"']redis_kit\.([\w.]+)[\"']", source))
    codenames = {code for component in components() for code, _ in getattr(component, "permissions", ())}
    checks = set(re.findall(r"\b[EW]\d{3}\b", source))
    return names | codenames | checks


@cache
def _quoted() -> set[str]:
    """Other names with the same beginning: cookies, tags of templates."""
    return set(re.findall(r"\b(rk_\w+)", "".join(path.read_text() for path in (ROOT / "redis_kit").rglob("*.py"))))


@cache
def _public() -> dict[str, list[Any]]:
    modules = [f"redis_kit.{name}" for name in COMPONENTS] + [f"redis_kit.core.{name}" for name in CORE]
    found: dict[str, list[Any]] = {}
    for module in map(importlib.import_module, modules):
        for name in getattr(module, "__all__", vars(module)):
            if inspect.isclass(value := getattr(module, name)):
                found.setdefault(name, []).append(value)
    return found


def _has(kind: Any, member: str) -> bool:
    if hasattr(kind, member):
        return True
    annotated = {name for base in getattr(kind, "__mro__", ()) for name in getattr(base, "__annotations__", {})}
    if is_dataclass(kind):
        annotated |= {field.name for field in fields(kind)}
    if member in annotated or not inspect.isclass(kind):
        return member in annotated
    bases = [base for base in kind.__mro__ if base.__module__.startswith("redis_kit")]
    return any(f"self.{member}" in inspect.getsource(base) for base in bases)


@cache
def _sections() -> dict[str, tuple[str, ...]]:
    sections = {component.settings.name: conf.options(component.settings) for component in components()}
    return sections | {"REDIS_KIT": (*conf.options(KitSettings), *sections)}


@cache
def _capitals() -> set[str]:
    options = {option for names in _sections().values() for option in names} | {*conf.options(QueueOptions)}
    groups = (
        connection_options.SOURCES,
        connection_options.CLIENT,
        connection_options.TLS,
        connection_options.SENTINEL,
    )
    connection = {name.upper() for name in connection_options.names(*groups)}
    source = "".join(path.read_text() for path in (ROOT / "redis_kit").rglob("*.py"))
    environment = set(re.findall(r"\"([A-Z_]{5,})\"", source))
    return options | connection | environment | FOREIGN | {name for name in dir(global_settings) if name.isupper()}


@cache
def _commands() -> set[str]:
    return {*get_commands(), "rk_demo", "startproject", "startapp"}


@cache
def _options() -> set[str]:
    names = [*(name for name in _commands() if name.startswith("rk_")), "check", "migrate", "test", "runserver"]
    parsers = [console.command(name).create_parser("manage.py", name) for name in names]
    return {option for parser in parsers for option in console.options(parser)}


def test_examples_do_not_call_their_project_as_a_module_of_python():
    taken = re.compile(r"(?<![\w.])site[./](?:wsgi|asgi|settings|urls)\b|celery -A site\b")
    assert_none(f"{page.name}: {match[0]}" for page in PAGES for match in taken.finditer(page.text))
