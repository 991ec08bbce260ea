"""Runs the Python blocks of a page in order: plain ones in one namespace, those with a path as a module."""

import ast
import asyncio
import builtins
import contextlib
import inspect
import sys
import types
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any
from unittest import mock

from django.apps import apps
from django.contrib import admin
from django.contrib.auth.signals import user_logged_in
from django.core.checks import ERROR
from django.test.utils import isolate_apps, override_settings
from django.utils.module_loading import import_string

from redis_kit.core.checks.configuration import check_settings
from redis_kit.queues.tasks import registry as tasks
from tests.docs.support.pages import Block, Page

SITE = "tests.docs.shop"
APPS = ("django.contrib.auth", "django.contrib.contenttypes", "tests.app", SITE)
CACHES = {"default": {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": "redis://127.0.0.1:6379/0"}}
APPLIED = ("REDIS_KIT", "AUTHENTICATION_BACKENDS", "REST_FRAMEWORK", "TASKS")
FLAGS = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


class Runner:
    """One page at work."""

    def __init__(self, page: Page, kit: Any) -> None:
        self.page, self.kit = page, kit
        # Django 6.1 warns about mails without this setting.
        kit.settings.MAILERS = {"default": {"BACKEND": "django.core.mail.backends.locmem.EmailBackend"}}
        self.namespaces: list[tuple[types.CodeType, dict[str, Any], Block]] = []

    def run(self) -> None:
        """Run the blocks, then see that each name which a function uses exists."""
        with self._isolated(), asyncio.Runner() as runner:
            module = self._module("page.py")
            for block in self.page.blocks():
                if block.language != "python" or block.reason:
                    continue
                if is_settings(block):
                    self._apply(self._settings(block))
                    continue
                target = self._module(block.file) if block.file else module
                self._execute(block, target, runner)
            missing = [f"{self.page.name}:{block.line}: {names}" for block, names in self._missing()]
        assert not missing, missing

    @contextlib.contextmanager
    def _isolated(self) -> Iterator[None]:
        """Restore what blocks change in this process."""
        modules, registered = dict(sys.modules), dict(tasks._tasks)
        models_of_site = dict(admin.site._registry)
        site = vars(admin.site._wrapped)  # admin.site is lazy
        site_before = dict(site)
        import tests.docs.shop.models

        models, receivers = vars(tests.docs.shop.models).copy(), list(user_logged_in.receivers)
        sys.modules |= {"shop": tests.docs.shop, "shop.models": tests.docs.shop.models}
        from django.contrib.auth.models import User

        try:
            # The project of the tests has another user model; pages may also use Django's.
            with isolate_apps(*APPS), mock.patch.object(User._meta, "swapped", None):
                yield
        finally:
            apps.clear_cache()  # models cache their relations, those of Django's user model too
            for name in set(sys.modules) - set(modules):
                if name.partition(".")[0] == "shop" or name.startswith(f"{SITE}."):
                    del sys.modules[name]
            vars(tests.docs.shop.models).clear()
            vars(tests.docs.shop.models).update(models)
            for name in set(vars(tests.docs.shop)) - {"models"}:
                if isinstance(vars(tests.docs.shop)[name], types.ModuleType):
                    delattr(tests.docs.shop, name)
            user_logged_in.receivers = receivers
            tasks._tasks.clear()
            tasks._tasks.update(registered)
            site.clear()
            site.update(site_before)
            admin.site._registry.clear()
            admin.site._registry.update(models_of_site)

    def _module(self, path: str) -> types.ModuleType:
        """Return the module of a file, with the packages above it."""
        parts = path.removesuffix(".py").removesuffix("/__init__").split("/")
        if parts[0] != "shop":
            parts = ["shop", *parts]
        for length in range(2, len(parts) + 1):
            short, full = ".".join(parts[:length]), ".".join([SITE, *parts[1:length]])
            if short not in sys.modules and length < len(parts) and find_spec(full):
                sys.modules[short] = import_module(full)
            elif short not in sys.modules:
                module = types.ModuleType(full)
                module.__package__ = full if length < len(parts) else full.rpartition(".")[0]
                module.__path__ = []
                sys.modules[short] = sys.modules[full] = module
                setattr(sys.modules[".".join(parts[: length - 1])], parts[length - 1], module)
        return sys.modules[".".join(parts)]

    def _execute(self, block: Block, module: types.ModuleType, runner: asyncio.Runner) -> None:
        code = compile("\n" * (block.line - 1) + block.text, str(self.page.path), "exec", flags=FLAGS)
        self.namespaces.append((code, vars(module), block))
        result = eval(code, vars(module))  # noqa: S307
        if inspect.iscoroutine(result):
            runner.run(_awaited(result))

    def _settings(self, block: Block) -> dict[str, Any]:
        namespace: dict[str, Any] = {"BASE_DIR": self.page.path.parent, "REDIS_KIT": {}}  # which blocks may add to
        exec(compile("\n" * (block.line - 1) + block.text, str(self.page.path), "exec"), namespace)  # noqa: S102
        return {name: value for name, value in namespace.items() if name.isupper() and name in block.text}

    def _apply(self, given: dict[str, Any]) -> None:
        """Check settings, and let those hold for the rest of the page that need no other server."""
        for name in strings(given):
            if name.startswith("redis_kit.") and " " not in name:
                import_string(name)
        if "REDIS_KIT" in given:
            names = ("REDIS_KIT", "CACHES")
            with override_settings(
                **{"CACHES": CACHES, "DEBUG": True} | {name: given[name] for name in names if name in given}
            ):
                wrong = [str(message) for message in check_settings() if message.level >= ERROR]
            wrong = [text for text in wrong if "which does not exist on this machine" not in text]  # files for TLS
            assert not wrong, wrong
            aliases = ["default", *given["REDIS_KIT"].get("CONNECTIONS", {})]
            server = self.kit.settings.REDIS_KIT["CONNECTIONS"]["default"]
            sections = {
                name: value for name, value in given["REDIS_KIT"].items() if name not in ("PREFIX", "CONNECTIONS")
            }
            self.kit.options(**sections, CONNECTIONS=dict.fromkeys(aliases, server))
        for name in set(APPLIED) & set(given) - {"REDIS_KIT"}:
            setattr(self.kit.settings, name, given[name])

    def _missing(self) -> Iterator[tuple[Block, list[str]]]:
        for code, namespace, block in self.namespaces:
            names = [name for name in inner_names(code) if name not in namespace and not hasattr(builtins, name)]
            if names:
                yield block, sorted(set(names))


async def _awaited(coroutine: Any) -> Any:
    return await coroutine


def is_settings(block: Block) -> bool:
    """Return whether a block holds settings: it says so, or only assigns names in capitals."""
    if block.file:
        return block.file in ("settings.py", "mysite/settings.py")
    body = ast.parse(block.text).body
    targets = [target for node in body if isinstance(node, ast.Assign) for target in node.targets]
    plain = all(isinstance(node, ast.Assign | ast.Import | ast.ImportFrom) for node in body)
    names = [target.value if isinstance(target, ast.Subscript) else target for target in targets]
    return bool(names) and plain and all(isinstance(name, ast.Name) and name.id.isupper() for name in names)


def inner_names(code: types.CodeType) -> Iterator[str]:
    """Yield the global names that functions inside this code use."""
    import dis

    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            for instruction in dis.get_instructions(inner):
                if instruction.opname == "LOAD_GLOBAL":
                    yield instruction.argval
            yield from inner_names(inner)


def strings(value: Any) -> Iterator[str]:
    """Yield all strings in nested settings."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from strings(item)
    elif isinstance(value, list | tuple | set):
        for item in value:
            yield from strings(item)
