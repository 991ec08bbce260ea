"""The plugin as a project uses it: in another pytest run."""

import os
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE, CompletedProcess

import pytest

from redis_kit.core.errors import ConfigurationError
from redis_kit.queues import Queue
from redis_kit.testing.jobs import drain
from tests.fixtures.fork_server import start_python

ROOT = Path(__file__).parents[2]

PROJECT = """
import pytest
from django.db import transaction
from redis_kit.locks import Lock
from redis_kit.queues import Queue, task

seen = []

@task(queue_name="mail")
def send(number):
    seen.append(number)
    if number == 3:
        send.enqueue(4)

@task(queue_name="mail", max_attempts=1)
def fail():
    raise ValueError("no")

def test_a_lock_is_free_in_each_test(redis_kit):
    assert Lock("one").acquire(blocking=False)

def test_a_lock_is_free_in_each_test_again(redis_kit):
    assert Lock("one").acquire(blocking=False)

def test_jobs_run_in_this_thread(redis_kit, run_jobs):
    seen.clear()
    send.enqueue(1)
    send.enqueue(3)
    send.using(run_after=__import__("datetime").timedelta(hours=1)).enqueue(9)
    fail.enqueue()
    assert run_jobs("mail") == 4
    assert seen == [1, 3, 4]
    assert Queue("mail").counts()._asdict() == {"scheduled": 1, "ready": 0, "running": 0, "dead": 1}

@pytest.mark.django_db
def test_on_commit(redis_kit, run_jobs, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True), transaction.atomic():
        send.enqueue(5)
        with pytest.warns(RuntimeWarning, match="1 task waits for the transaction"):
            assert run_jobs("mail") == 0
    assert run_jobs("mail") == 1
"""

SETTINGS = """
SECRET_KEY = "only for this test"
INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth", "redis_kit"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
USE_TZ = True
REDIS_KIT = {"CONNECTIONS": {"default": {"URL": "redis://production.example:6379"}}}
"""


@pytest.fixture
def run(tmp_path):
    """A function that runs pytest on a project; with ``fresh`` in an interpreter that has imported nothing before."""

    def run(*arguments, tests=PROJECT, settings="", fresh=False, **environment):
        (tmp_path / "test_project.py").write_text(tests)
        (tmp_path / "project_settings.py").write_text(SETTINGS + settings)
        command = ["-m", "pytest", "-q", "-p", "no:valkey", "-p", "no:cacheprovider", *arguments, str(tmp_path)]
        given = {"DJANGO_SETTINGS_MODULE": "project_settings", "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
        streams = {"cwd": tmp_path, "env": {**os.environ, **given, **environment}, "stdout": PIPE, "stderr": PIPE}
        if fresh:
            process = subprocess.Popen([sys.executable, *command], text=True, **streams)
        else:
            process = start_python(command, **streams)
        output, errors = process.communicate()
        return CompletedProcess(command, process.returncode, output, errors)

    return run


def test_a_project_tests_with_the_plugin(run):
    done = run(fresh=True)
    assert "4 passed" in done.stdout, done.stdout + done.stderr


RUNNER = """
TEST_RUNNER = "project_settings.Runner"

def __getattr__(name):  # a class of a module that needs the settings
    from redis_kit.testing.runner import RedisKitRunner
    if name == "Runner":
        return type("Runner", (RedisKitRunner,), {})
    raise AttributeError(name)
"""

# No test names a fixture. The server of the project does not exist.
OF_RUNNER = """
from django.test import TestCase
from redis_kit.core.client.addresses import address
from redis_kit.locks import Lock
from redis_kit.testing.jobs import drain

class OrderTests(TestCase):
    def test_lock_is_free(self):
        assert Lock("one").acquire(blocking=False)

    def test_lock_is_free_in_each_test(self):
        assert drain() == 0
        assert Lock("one").acquire(blocking=False)

def test_lock_is_free_in_a_function(redis_kit_server):
    assert address("default").url == redis_kit_server
    assert Lock("one").acquire(blocking=False)

def test_fixture_has_the_same_server(redis_kit, redis_kit_server):
    assert redis_kit.url == redis_kit_server
    assert Lock("one").acquire(blocking=False)
"""


def test_all_tests_use_the_server_for_tests_if_the_runner_does(run):
    done = run(tests=OF_RUNNER, settings=RUNNER)
    assert "4 passed" in done.stdout, done.stdout + done.stderr
    assert "RuntimeWarning" not in done.stdout


def test_tests_without_redis_start_no_server(run):
    body = "import os\n\ndef test_one():\n    assert 'REDIS_KIT_TEST_URL' not in os.environ\n\n"
    done = run(tests=body + body.replace("import os", "").replace("one", "two"), settings=RUNNER)
    assert "2 passed" in done.stdout, done.stdout + done.stderr


def test_processes_of_xdist_leave_a_server_of_the_environment_clean(run, own_server):
    own_server.client().set("foreign", 1)
    done = run("-n", "1", tests=OF_RUNNER, settings=RUNNER, REDIS_KIT_TEST_URL=own_server.url)
    assert "4 passed" in done.stdout, done.stdout + done.stderr
    assert own_server.client().keys("*") == ["foreign"]
    assert "cmdstat_evalsha" in own_server.client().info("commandstats")


def test_jobs_of_the_site_are_never_run(kit):
    Queue("default").put({})
    kit.options(CONNECTIONS={"default": kit.server.connection})
    with pytest.raises(ConfigurationError, match=r"not marked for tests.* RedisKitTestMixin.*\['TEST'\] = True"):
        drain()
    assert Queue("default").counts().ready == 1


def test_a_server_of_the_environment_is_used_and_left_clean(run, own_server):
    own_server.client().set("foreign", 1)
    done = run(REDIS_KIT_TEST_URL=own_server.url)
    assert "4 passed" in done.stdout, done.stdout + done.stderr
    assert own_server.client().keys("*") == ["foreign"]


def test_a_misspelt_runner_ends_the_run(run):
    done = run(settings="TEST_RUNNER = 'redis_kit.testing.runner.RedisKitRuner'")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "TEST_RUNNER has 'redis_kit.testing.runner.RedisKitRuner', which can't be imported" in done.stderr
    assert "Did you mean 'redis_kit.testing.runner.RedisKitRunner'?" in done.stderr


@pytest.mark.parametrize("settings", ["", "TEST_RUNNER = 'redis_kit.testing.runner.RedisKitRunner'"])
def test_wrong_server_of_the_environment_is_named(run, settings):
    done = run(settings=settings, REDIS_KIT_TEST_URL="nope")
    said = done.stdout + done.stderr
    assert "REDIS_KIT_TEST_URL in the environment is 'nope'; it must be a server's URL." in said
    assert "CONNECTIONS" not in said
    assert "INTERNALERROR" not in said
