"""``manage.py test`` of a small project: with the runner, in several processes, with the mixin, and without them."""

import os
from pathlib import Path
from subprocess import PIPE

import pytest

from tests.fixtures.fork_server import start_python
from tests.fixtures.process import cluster_client

ROOT = Path(__file__).parents[2]

MANAGE = """
import multiprocessing, os, sys
from django.core.management import execute_from_command_line
if __name__ == "__main__":
    os.environ["DJANGO_SETTINGS_MODULE"] = "project_settings"
    if method := os.environ.get("START_METHOD"):
        multiprocessing.set_start_method(method)
    execute_from_command_line(sys.argv)
"""

SETTINGS = """
import os
SECRET_KEY = "only for this test"
INSTALLED_APPS = [os.environ.get("APP", "redis_kit")]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
USE_TZ = True
REDIS_KIT = {
    "PREFIX": "project",
    "CONNECTIONS": {"default": {"URL": os.environ["PROJECT_URL"]}},
}
if test := os.environ.get("TEST_OPTION"):
    REDIS_KIT["CONNECTIONS"]["default"]["TEST"] = eval(test)
if runner := os.environ.get("RUNNER"):
    TEST_RUNNER = runner
"""

# Each class does the same, so that state of one test would change another, in whichever order they run.
TESTS = """
import os
from django.test import SimpleTestCase, override_settings
from redis_kit.core import connections
from redis_kit.core.client.addresses import address
from redis_kit.locks import Lock
from redis_kit.throttling import Throttle

ELSEWHERE = {"CONNECTIONS": {"default": {"URL": os.environ["PROJECT_URL"]}}}

class Each(%s):
    def test_lock_is_free(self):
        self.assertTrue(Lock("order").acquire(blocking=False))

    def test_lock_is_free_in_each_test(self):
        self.assertTrue(Lock("order").acquire(blocking=False))

    def test_refusal(self):
        throttle = Throttle("mail", "1/h")
        self.assertTrue(throttle.hit("me"))
        self.assertFalse(throttle.hit("me"))

    def test_refusal_is_not_remembered(self):
        self.test_refusal()

class Another(Each):
    @override_settings(REDIS_KIT=ELSEWHERE)
    def test_override_does_not_lead_to_the_project(self):
        self.assertTrue(Lock("order").acquire(blocking=False))
        if os.environ.get("RUNNER"):
            self.assertNotEqual(address("default").url, os.environ["PROJECT_URL"])
"""
MIXIN = "RedisKitTestMixin, SimpleTestCase"
RUNNER = "redis_kit.testing.runner.RedisKitRunner"


@pytest.fixture
def run(tmp_path, own_server):
    """A function that runs the project's tests, and the client of the project's own server."""

    def run(*arguments, bases="SimpleTestCase", **environment):
        tests = TESTS % bases
        if "Mixin" in bases:
            tests = "from redis_kit.testing.cases import RedisKitTestMixin\n" + tests
        for name, text in {"manage.py": MANAGE, "project_settings.py": SETTINGS, "test_project.py": tests}.items():
            (tmp_path / name).write_text(text)
        given = {"PROJECT_URL": own_server.url, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
        env = {name: value for name, value in os.environ.items() if not name.startswith(("REDIS_KIT", "DJANGO"))}
        done = start_python(
            ["-m", "manage", "test", *arguments], cwd=tmp_path, env=env | given | environment, stdout=PIPE, stderr=PIPE
        )
        text = "".join(done.communicate())
        return done.returncode, text, sorted(own_server.client().keys("*"))

    return run


def test_without_the_runner_tests_use_the_project_and_warn_once(run):
    code, text, keys = run()
    assert code, text
    assert "refusal_is_not_remembered" in text
    assert any(key.startswith("project:") for key in keys)
    assert text.count("RuntimeWarning: Tests use the connection 'default'") == 1
    assert "TEST_RUNNER = 'redis_kit.testing.runner.RedisKitRunner'" in text
    assert "REDIS_KIT['CONNECTIONS']['default']['TEST'] = True" in text


def test_with_the_runner_nothing_reaches_the_project_or_another_test(run):
    code, text, keys = run(RUNNER=RUNNER)
    assert (code, keys) == (0, []), text
    assert "RuntimeWarning" not in text


def test_runner_warns_once_if_the_app_is_not_installed(run):
    code, text, _ = run(RUNNER=RUNNER, APP="django.contrib.contenttypes")
    assert code == 0, text
    assert text.count("RuntimeWarning: 'redis_kit' is missing from INSTALLED_APPS") == 1


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_have_prefixes_of_their_own_on_one_server(run, method):
    code, text, keys = run("--parallel", "2", RUNNER=RUNNER, START_METHOD=method)
    assert (code, keys) == (0, []), text
    assert "RuntimeWarning" not in text


def test_project_without_a_server_for_tests_gets_one_line(run, tmp_path):
    (folder := tmp_path / ("x" * 100)).mkdir()  # too long for a socket
    code, text, _ = run(RUNNER=RUNNER, TMPDIR=str(folder))
    assert code, text
    assert text.strip().splitlines()[-1].startswith("CommandError: The socket path")
    assert "Traceback" not in text


def test_mixin_does_the_same_for_its_classes(run):
    code, text, keys = run(bases=MIXIN)
    assert (code, keys) == (0, []), text


def test_server_of_the_environment_is_left_as_it_was(run, own_server):
    own_server.client().set("foreign", 1)
    code, text, keys = run(RUNNER=RUNNER, REDIS_KIT_TEST_URL=own_server.url, PROJECT_URL="redis://127.0.0.1:1")
    assert (code, keys) == (0, ["foreign"]), text


def test_connection_that_is_for_tests_is_used_and_left_clean(run, own_server):
    _, text, keys = run("--parallel", "2", RUNNER=RUNNER, TEST_OPTION="True", bases=MIXIN)
    assert "\nOK" in text
    assert keys == [], text
    assert "cmdstat_evalsha" in own_server.client().info("commandstats")


def test_connection_may_name_another_for_tests(run, own_server, valkey):
    code, text, keys = run(RUNNER=RUNNER, TEST_OPTION=repr({"URL": valkey.url}))
    assert (code, keys) == (0, []), text
    _, text, keys = run(TEST_OPTION=repr({"EMBEDDED": True}))
    assert "Tests use the connection" in text  # only where a test overrides the entry without the option
    assert all(key.startswith("rk:") for key in keys), text


def test_keys_are_removed_from_every_node_of_a_cluster(run, cluster):
    code, text, keys = run(RUNNER=RUNNER, TEST_OPTION=repr(cluster.connection))
    assert (code, keys) == (0, []), text
    with cluster_client(cluster.url) as client:
        assert list(client.scan_iter("test-*")) == []
