"""The modules that a worker imports: ``tasks`` of each installed app, and those of the option ``IMPORTS``."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib import import_module, util
from importlib.machinery import ModuleSpec, PathFinder
from pkgutil import iter_modules
from typing import Any

from django.apps import apps
from django.utils.module_loading import autodiscover_modules

from redis_kit.core import conf
from redis_kit.core.conf import Problem
from redis_kit.core.errors import ConfigurationError
from redis_kit.core.text import did_you_mean
from redis_kit.queues.settings import QUEUE_OPTIONS, QueueSettings

OPTION = "REDIS_KIT['QUEUES']['IMPORTS']"


def discover() -> None:
    """Import the ``tasks`` modules of all installed apps, the modules of ``IMPORTS``, and that of ``CELERY_APP``.

    Raises ConfigurationError for a module of ``IMPORTS`` that does not exist.
    """
    autodiscover_modules("tasks")
    if path := conf.section(QueueSettings).CELERY_APP:
        import_module(path.rpartition(".")[0])
    for name in conf.section(QueueSettings).IMPORTS:
        try:
            import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise  # the module exists, and one that it imports does not
            problem = _missing(name)
            raise ConfigurationError(problem.text) from error


def is_of_app(module: str) -> bool:
    """Return whether a module is the ``tasks`` module of an installed app."""
    package, _, last = module.rpartition(".")
    return last == "tasks" and any(app.name == package for app in apps.get_app_configs())


def problems() -> Iterator[Problem]:
    """Yield the modules of ``IMPORTS`` that do not exist, and each ``SINK``, and ``CELERY_APP``.

    Imports the modules of sinks only.
    """
    options, sinks = conf.valid_options(QueueSettings), paths_of_sinks()
    yield from map(_missing, filter(_is_missing, options.IMPORTS))
    for option, path in {"REDIS_KIT['QUEUES']['CELERY_APP']": options.CELERY_APP, **sinks}.items():
        module, _, name = path.rpartition(".") if isinstance(path, str) else ("", "", "")
        example = "Write it as in an import, such as 'shop.sinks.Printer'."
        if _is_missing(module):
            hint = did_you_mean(module, _beside(module), example)
            yield Problem("E017", f"{option} is {path!r}, but no module is named {module!r}.", hint)
            continue
        if option in sinks:
            with suppress(Exception):  # it may need a package that only workers have
                import_module(module)
        if module in sys.modules and not hasattr(sys.modules[module], name):
            hint = did_you_mean(name, vars(sys.modules[module]), example)
            yield Problem("E017", f"{option} is {path!r}, but the module {module!r} has no {name!r}.", hint)


def _is_missing(path: str) -> bool:
    """Return whether a dotted path names no module. The settings report what is not such a path."""
    is_path = all(part.isidentifier() for part in path.split("."))
    return is_path and path not in sys.modules and _spec(path) is None


def paths_of_sinks() -> dict[str, Any]:
    """Return the value of each option ``SINK``, by its place in the settings; it may not be a path."""
    entries = conf.valid_options(QueueSettings).QUEUE_OPTIONS.items()
    return {f"{QUEUE_OPTIONS}[{queue!r}]['SINK']": of.get("SINK") for queue, of in entries if isinstance(of, Mapping)}


def _spec(name: str) -> ModuleSpec | None:
    """Return the spec of a module without importing it or its packages; None if it does not exist."""
    top, *parts = name.split(".")
    try:
        spec = util.find_spec(top)
    except (ImportError, ValueError):
        return None
    for part in parts:
        if spec is None or spec.submodule_search_locations is None:
            return None
        spec = PathFinder.find_spec(f"{spec.name}.{part}", list(spec.submodule_search_locations))
    return spec


def _missing(name: str) -> Problem:
    hint = did_you_mean(name, _beside(name), "Write the dotted path of a module, such as 'shop.services'.")
    return Problem("E017", f"{OPTION} holds {name!r}, but no module has that name.", hint)


def _beside(name: str) -> list[str]:
    """Return the modules in the package of a module."""
    package, _, _ = name.rpartition(".")
    spec = _spec(package) if package else None
    folders = list(spec.submodule_search_locations or []) if spec else []
    return [f"{package}.{info.name}" for info in iter_modules(folders)] if folders else []
