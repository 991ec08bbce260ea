"""The task framework: the old and new names of the package, a missing name, and none at all."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import django
import pytest

from redis_kit.queues import framework

CODE = """
import os, sys
sys.modules["django.tasks"] = None
import django
os.environ["DJANGO_SETTINGS_MODULE"] = "tests.queues.support.worker_settings"
django.setup()
from redis_kit.queues import framework as djangotasks
from redis_kit.testing.jobs import drain
import django_tasks
assert django_tasks.__file__.startswith(sys.argv[1]), django_tasks.__file__
assert djangotasks.FOUND and djangotasks.Task.__module__ == "django_tasks.base"
from tests.queues.support.plain import tasks as calls
result = calls.echo.enqueue(7)
assert drain() == 1
result.refresh()
assert result.return_value == 7
from redis_kit.queues import task
try:
    task(lambda: 1)
except djangotasks.InvalidTask as error:
    print(type(error).__mro__)
try:
    django_tasks.task_backends["none"]
except djangotasks.InvalidTaskBackend as error:
    print(type(error))
"""
BEFORE_6 = pytest.mark.skipif(django.VERSION >= (6,), reason="Django 6.0 and newer bring the framework themselves")
RENAMED = {"InvalidTaskError": "InvalidTask", "InvalidTaskBackendError": "InvalidTaskBackend"}


@pytest.fixture
def package(tmp_path):
    """Return a function that copies the installed django-tasks with other names, and returns where it is."""
    installed = pytest.importorskip("django_tasks")

    def copied(names):
        folder = tmp_path / "site"
        shutil.copytree(Path(installed.__file__).parent, folder / "django_tasks")
        for path in (folder / "django_tasks").rglob("*.py"):
            text = path.read_text()
            for old, new in names.items():
                text = text.replace(old, new)
            path.write_text(text)
        return folder

    return copied


def run(kit, folder, code=CODE):
    kit_settings = json.dumps(kit.settings.REDIS_KIT)
    environment = {**os.environ, "REDIS_KIT": kit_settings, "PYTHONPATH": str(folder)}
    command = [sys.executable, "-c", code, str(folder)]
    return subprocess.run(command, env=environment, cwd=Path(__file__).parents[2], capture_output=True, text=True)


@BEFORE_6
def test_package_is_used_by_its_names_of_after_the_renaming(kit, package):
    done = run(kit, package(RENAMED))  # all other tests have the names of before
    assert done.returncode == 0, done.stderr
    assert "django_tasks.exceptions.InvalidTask" in done.stdout
    assert "django_tasks.exceptions.InvalidTaskBackend" in done.stdout


@BEFORE_6
@pytest.mark.parametrize("names", [{"TaskContext": "RunContext"}, {"InvalidTaskError": "WrongTask"}])
def test_package_that_lacks_a_name_is_one_clear_error(kit, package, names):
    done = run(kit, package(names))
    assert done.returncode == 1
    (last,) = done.stderr.strip().splitlines()[-1:]
    (missing,) = names
    assert last.startswith("redis_kit.core.errors.ConfigurationError: redis_kit.queues can't use django-tasks ")
    assert f"cannot import name '{missing}'" in last
    assert "Install Django 6.0 or newer, or django-tasks 0.12 or newer" in last


def test_names_are_those_of_the_framework_that_is_installed():
    assert framework.FOUND
    assert framework.InvalidTask.__module__ in ("django.tasks.exceptions", "django_tasks.exceptions")
    assert issubclass(framework.InvalidTaskBackend, framework.task_backends.exception_class)


BARE = """
import os, sys
sys.modules["django.tasks"] = sys.modules["django_tasks"] = None
import django
import json
from django.conf import settings
os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
settings.REDIS_KIT = json.loads(os.environ["REDIS_KIT"])
django.setup()
from redis_kit.core import connections
from redis_kit.dashboard.collect import panels
from redis_kit.queues import Queue, framework
assert not framework.FOUND
queue = Queue("mail")
queue.put(1)
connections.client().call("HSET", queue.key("endings"), "j1", "poison 5 its worker died\\n0 1 0 5\\n~x\\nbody")
queue.claim(worker="w1")
assert queue.sign_off(worker="w1") == 1
assert not connections.client().call("HGETALL", queue.key("endings"))
for panel in panels():
    if type(panel).__module__.startswith("redis_kit.queues."):
        list(panel.content())
print("done")
"""


def test_queues_and_their_pages_need_no_framework(kit, tmp_path):
    done = run(kit, tmp_path, BARE)  # another process with one may have left results to store
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("done\n")
