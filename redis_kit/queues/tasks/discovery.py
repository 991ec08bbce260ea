"""The modules that a worker imports: ``tasks`` of each installed app, and those of the option ``IMPORTS``.

Whether they import another module is read from their source: importing them here would prove nothing, as that module
is loaded already. Code that imports by name can't be read; then no warning is given.
"""

import ast
import logging
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module, util
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from django.apps import apps
from django.conf import settings
from django.utils.module_loading import autodiscover_modules

from redis_kit.core import conf
from redis_kit.core.conf import Problem
from redis_kit.core.errors import ConfigurationError
from redis_kit.core.text import did_you_mean
from redis_kit.queues.settings import QUEUE_OPTIONS, QueueSettings

logger = logging.getLogger("redis_kit")
OPTION = "REDIS_KIT['QUEUES']['IMPORTS']"
MOST_FILES = 500  # read for one module, which takes a second at most
DYNAMIC = {"import_module", "__import__", "autodiscover_modules", "import_string", "iter_modules", "walk_packages"}
LIBRARIES = (sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))
SHELL = ".management.commands.shell"  # in the module of a function that is defined in Django's shell
_loaded_at_start: set[str] = set()
looked_at: set[str] = set()
_lacking: dict[str, str] = {}  # by name of what needs a missing package


def discover() -> None:
    """Import the ``tasks`` modules of all installed apps, the modules of ``IMPORTS``, and that of ``CELERY_APP``.

    Raises ConfigurationError for a module of ``IMPORTS`` that does not exist, and for what lacks a package.
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
    if _lacking:
        raise ConfigurationError(" ".join(lacking()))


def note_lacking(name: str, text: str) -> None:
    """Note with a task what lacks a package, such as a schedule. The module of the task can still be imported."""
    _lacking[name] = text


def lacking() -> list[str]:
    """Return a text for each of these."""
    return [text for _, text in sorted(_lacking.items())]


def is_of_app(module: str) -> bool:
    """Return whether a module is the ``tasks`` module of an installed app."""
    package, _, last = module.rpartition(".")
    return last == "tasks" and any(app.name == package for app in apps.get_app_configs())


def problems() -> Iterator[Problem]:
    """Yield the modules of ``IMPORTS`` that do not exist. Imports none of them."""
    for name in conf.valid_options(QueueSettings).IMPORTS:
        is_path = all(part.isidentifier() for part in name.split("."))  # else the settings report it
        if is_path and name not in sys.modules and _spec(name) is None:
            yield _missing(name)


def problems_of_paths() -> Iterator[Problem]:
    """Yield each ``SINK``, and ``CELERY_APP``, that does not exist, as far as that is known without an import."""
    options = conf.valid_options(QueueSettings)
    entries = options.QUEUE_OPTIONS.items()
    named = {f"{QUEUE_OPTIONS}[{queue!r}]['SINK']": of.get("SINK") for queue, of in entries if isinstance(of, Mapping)}
    for option, path in {"REDIS_KIT['QUEUES']['CELERY_APP']": options.CELERY_APP, **named}.items():
        module, _, name = path.rpartition(".") if isinstance(path, str) else ("", "", "")
        is_path = all(part.isidentifier() for part in module.split("."))  # else the settings report it
        example = "Write it as in an import, such as 'shop.sinks.Printer'."
        if is_path and module not in sys.modules and _spec(module) is None:
            hint = did_you_mean(module, _beside(module), example)
            yield Problem("E017", f"{option} is {path!r}, but no module is named {module!r}.", hint)
        elif module in sys.modules and not hasattr(sys.modules[module], name):
            hint = did_you_mean(name, vars(sys.modules[module]), example)
            yield Problem("E017", f"{option} is {path!r}, but the module {module!r} has no {name!r}.", hint)


def warn_unless_imported(task: Any) -> None:
    """Log a warning if no worker imports the module of a task. Each module is looked at once."""
    module = task.func.__module__
    if module in looked_at:
        return
    looked_at.add(module)
    if SHELL in module:
        text = "No worker can run the task %s, as it was defined in the shell. Define it in a module, such as tasks.py."
        logger.warning(text, task.module_path)
        return
    try:
        is_imported = module in _loaded_at_start or not settings.configured or _is_imported(module)
    except Exception:
        logger.debug("Whether workers import %s can't be told.", module, exc_info=True)
        return
    if not is_imported:
        logger.warning(
            "No worker knows the task %s. Workers import the tasks module of each installed app, and none of these "
            "imports %s. Add it to the settings: REDIS_KIT = {'QUEUES': {'IMPORTS': [%r]}}.",
            *(task.module_path, module, module),
        )


def note(module: str) -> None:
    """Note that a module defines a task. A worker also imports all modules that Django imports at its start."""
    if not apps.ready:
        _loaded_at_start.add(module)


def _is_imported(module: str) -> bool:
    """Return whether a worker imports a module, True if that can't be told."""
    if any(part in ("tests", "conftest") or part.startswith("test_") for part in module.split(".")):
        return True  # tests run their tasks themselves
    roots = [f"{app.name}.tasks" for app in apps.get_app_configs()]
    more = [*conf.section(QueueSettings).IMPORTS, getattr(settings, "ROOT_URLCONF", None)]  # the latter by its checks
    waiting = [part for name in [*roots, *more] if name for part in _with_parents(name)]
    seen = set(waiting)
    while waiting:
        name = waiting.pop()
        if name == module:
            return True
        imported = _imports(name, module.partition(".")[0])
        if imported is None or len(seen) > MOST_FILES:
            return True
        new = {part for path in imported for part in _with_parents(path)} - seen
        seen |= new
        waiting += new
    return False


@cache
def _imports(name: str, project: str) -> frozenset[str] | None:
    """Return the names that the source of a module may import; None if it can't be told.

    Libraries are not read, unless they are in the package ``project``.
    """
    spec = _spec(name)
    path = spec.origin if spec and spec.has_location else None
    if spec is None or path is None or (path.startswith(LIBRARIES) and name.partition(".")[0] != project):
        return frozenset()
    try:
        tree = ast.parse(Path(path).read_bytes())
    except (OSError, ValueError, SyntaxError, RecursionError):
        return None
    package = name if spec.submodule_search_locations is not None else name.rpartition(".")[0]
    paths: set[str] = set()
    for node in _executed(tree):
        if isinstance(node, ast.Import):
            paths |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = util.resolve_name("." * node.level + (node.module or ""), package)
            paths |= {f"{base}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Call):
            called = {getattr(node.func, key, "") for key in ("id", "attr")}
            if called & DYNAMIC:
                return None
            if "include" in called and node.args and isinstance(path := getattr(node.args[0], "value", None), str):
                paths.add(path)  # of URLs
    return frozenset(paths)


def _executed(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a module that run when it is imported: no body of a function, no import for types only."""
    children: Any = ast.iter_child_nodes(node)
    if isinstance(node, ast.If) and "TYPE_CHECKING" in (getattr(node.test, "id", ""), getattr(node.test, "attr", "")):
        children = node.orelse
    for child in children:
        if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            yield child
            yield from _executed(child)


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


def _with_parents(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts) + 1)]


def _forget() -> None:
    looked_at.clear()
    _imports.cache_clear()


conf.on_change(_forget, "REDIS_KIT", "INSTALLED_APPS", "ROOT_URLCONF")
