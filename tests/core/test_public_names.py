"""The names that a project imports: where the docs say that they are, and in ``dir()``."""

import json
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

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
