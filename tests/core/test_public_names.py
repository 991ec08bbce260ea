"""The names that a project imports: where the docs say that they are, and in ``dir()``."""

import json
import re
import subprocess
import sys
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
from django.views import View

from redis_kit.core.errors import RedisKitError
from redis_kit.core.primitive import Primitive
from redis_kit.locks import Lock
from redis_kit.locks.kinds.base import BaseLock
from redis_kit.queues import Queue
from redis_kit.throttling import Throttle
from redis_kit.throttling.engine.base import BaseThrottle

ROOT = Path(__file__).parents[2]
TABLE = (ROOT / "docs" / "reference" / "errors.md").read_text()
DOCUMENTED = [
    (module, name)
    for module, rows in re.findall(r"In `(redis_kit[a-z_.]*)`:\n\n((?:[|].*\n)+)", TABLE)
    for name in re.findall(r"^[|] `(\w+)`", rows, re.MULTILINE)
]
PACKAGES = ("locks", "logs", "pageviews", "queues", "signins", "throttling")
PROGRAM = """
import json, sys
from django.conf import settings
settings.configure(INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "redis_kit"])
import django
django.setup()
from importlib import import_module
packages = [import_module(f"redis_kit.{name}") for name in sys.argv[1:]]
print(json.dumps([{p.__name__: sorted({*p.__all__} - {*dir(p)}) for p in packages}, "redis" in sys.modules]))
"""


@pytest.mark.parametrize(("module", "name"), DOCUMENTED)
def test_error_is_where_the_table_says(module, name):
    assert issubclass(getattr(import_module(module), name), BaseException)


@pytest.mark.parametrize("module", ["core.errors", *PACKAGES])
def test_every_public_error_is_in_the_table(module):
    found = import_module(f"redis_kit.{module}")
    names = getattr(found, "__all__", [name for name in vars(found) if not name.startswith("_")])
    public = {name for name in names if _is_error(getattr(found, name))}
    told = {name for path, name in DOCUMENTED if path == found.__name__}
    assert public - {"ImproperlyConfigured"} == told


def test_dir_shows_the_public_names_and_imports_none():
    run = [sys.executable, "-c", PROGRAM, *PACKAGES]
    missing, client = json.loads(subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=True).stdout)
    assert missing == {f"redis_kit.{name}": [] for name in PACKAGES}
    assert not client


def _is_error(value):
    return isinstance(value, type) and issubclass(value, BaseException)


WRONG_ARGUMENTS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((), {}),
    (("a",) * 12, {}),
    (("a",), {"no_such": 1}),
    (("a", "5/m"), {"no_such": 1}),
]


def test_errors_of_wrong_arguments_name_the_class_that_was_called():
    packages = [import_module(f"redis_kit.{name}") for name in PACKAGES]
    public = [getattr(package, name) for package in packages for name in package.__all__]
    classes = [kind for kind in public if isinstance(kind, type)]
    kinds = [kind for kind in classes if not _is_error(kind) and not issubclass(kind, View)]  # Django makes its views
    if find_spec("ninja"):
        ninja = import_module("redis_kit.throttling.ninja")
        kinds += [ninja.AnonRateThrottle, ninja.AuthRateThrottle, ninja.UserRateThrottle]
    wrong = []
    for kind in kinds:
        for args, kwargs in WRONG_ARGUMENTS:
            try:
                with suppress(RedisKitError):  # about a value
                    kind(*args, **kwargs)
            except TypeError as error:
                if not str(error).startswith((f"{kind.__name__}(", f"{kind.__name__}.")):
                    wrong.append(f"{kind.__name__}: {error}")
    assert not wrong, "\n".join(wrong)


def test_copies_of_init_differ_by_their_names_only():
    for kind, base in ((Lock, BaseLock), (Throttle, BaseThrottle), (Queue, Primitive)):
        assert kind.__init__ is not base.__init__
        assert kind.__init__.__code__ is base.__init__.__code__
        assert signature(kind) == signature(base)
        assert kind.__init__.__qualname__ == f"{kind.__name__}.__init__"
