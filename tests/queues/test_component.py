"""The options of queues, and what a start of Django costs with them."""

import subprocess
import sys

import pytest
from django.core.checks import run_checks
from django.core.management import CommandError, call_command

from redis_kit.core import conf
from redis_kit.core.errors import ConfigurationError
from redis_kit.queues import framework, task
from redis_kit.queues.component import Queues
from redis_kit.queues.errors import UnknownBackend
from redis_kit.queues.settings import QueueSettings
from redis_kit.queues.tasks import discovery


@pytest.mark.parametrize(
    ("options", "id", "words"),
    [
        ({"HEARTBEAT_INTERVAL": 5}, "E007", "less than half of WORKER_TIMEOUT"),
        ({"WORKER_TIMEOUT": 4}, "E007", "five times HEARTBEAT_INTERVAL"),
        ({"NAMES": [""]}, "E006", "NAMES"),
        ({"NAMES": "mail"}, "E006", "NAMES"),
        ({"NAMES": ["mail", 3]}, "E006", "REDIS_KIT['QUEUES']['NAMES'][1] is 3; it must be text."),
        ({"MAX_CRASHES": 0}, "E006", "1 to 100."),
        ({"RETRY_BACKOFF": 4000}, "E006", "must not be more than RETRY_BACKOFF_MAX (3,600 s)"),
        ({"RESULT_TTL": 0}, "E006", "it must be 1 to 31,536,000."),
        ({"RETRY_BACKOFF_MAX": -1}, "E006", "RETRY_BACKOFF_MAX"),
        ({"DEAD_LIMIT": True}, "E006", "DEAD_LIMIT"),
        ({"MAX_ATEMPTS": 5}, "E002", "MAX_ATTEMPTS"),
        ({"OUTBOX": "defalt"}, "E018", "Did you mean 'default'?"),
        ({"OUTBOX": 1}, "E006", "OUTBOX"),
        ({"QUEUE_OPTIONS": []}, "E006", "must be a dict"),
        ({"QUEUE_OPTIONS": {"": {}}}, "E006", "QUEUE_OPTIONS"),
        ({"QUEUE_OPTIONS": {"mail": "x"}}, "E002", "REDIS_KIT['QUEUES']['QUEUE_OPTIONS']['mail'] is text"),
        ({"QUEUE_OPTIONS": {"mail": {"SNK": "x"}}}, "E002", "'SINK'"),
        ({"QUEUE_OPTIONS": {"mail": {"SINK": 3}}}, "E006", "['mail']['SINK'] is 3; it must be text."),
        ({"QUEUE_OPTIONS": {"mail": {"SINK": "x"}}}, "E006", "['mail']['SINK'] is 'x'; it must be"),
        ({"QUEUE_OPTIONS": {"mail": {"SHARD": 8}}}, "E002", "Did you mean 'SHARDS'?"),
        ({"QUEUE_OPTIONS": {"mail": {"SHARDS": 17}}}, "E006", "['mail']['SHARDS'] is 17; it must be 1 to 16."),
        ({"QUEUE_OPTIONS": {"mail": {"SHARDS": "8"}}}, "E006", "['mail']['SHARDS'] is '8'; it must be"),
        ({"QUEUE_OPTIONS": {"mail#02": {}}}, "E006", "is the name of a shard of the queue 'mail'. Write 'mail'"),
        ({"NAMES": ["mail#43"]}, "E006", "NAMES'] holds a name that can't be used. 'mail#43' is the name of a shard"),
    ],
    ids=str,
)
def test_wrong_options_are_named(settings, options, id, words):
    settings.REDIS_KIT = {"QUEUES": options}
    (problem,) = conf.problems(QueueSettings)
    assert problem.id == id
    assert words in f"{problem.message} {problem.hint}"
    with pytest.raises(ConfigurationError):
        conf.section(QueueSettings)


def test_defaults_are_right(settings):
    settings.REDIS_KIT = {}
    assert list(conf.problems(QueueSettings)) == []
    assert Queues().label == "queues"


PACKAGE = framework.Task.__module__.partition(".base")[0]
OURS = "redis_kit.queues.backend.RedisTaskBackend"
MISSING = "TASKS['default']['BACKEND'] is {!r}, which can't be imported: "
WRONG_TASKS = {
    "misspelt class": (
        {"default": {"BACKEND": "redis_kit.queues.backend.RedisBackend"}},
        MISSING.format("redis_kit.queues.backend.RedisBackend"),
        f"Did you mean {OURS!r}?",
    ),
    "misspelt class of Celery's": (
        {"default": {"BACKEND": "redis_kit.queues.celery.CeleryBackend"}},
        MISSING.format("redis_kit.queues.celery.CeleryBackend"),
        "Did you mean 'redis_kit.queues.celery.CeleryTaskBackend'?",
    ),
    "misspelt module": (
        {"default": {"BACKEND": "redis_kit.backends.RedisTaskBackend"}},
        MISSING.format("redis_kit.backends.RedisTaskBackend"),
        f"Did you mean {OURS!r}?",
    ),
    "other framework": (
        {"default": {"BACKEND": "django_tasks.backends.imediate.ImmediateBackend"}},
        MISSING.format("django_tasks.backends.imediate.ImmediateBackend"),
        f"Did you mean '{PACKAGE}.backends.immediate.ImmediateBackend'?",
    ),
    "name of another package": (
        {"default": {"BACKEND": "django_tasks.backends.redis.RedisBackend"}},
        MISSING.format("django_tasks.backends.redis.RedisBackend"),
        f"Did you mean {OURS!r}?",
    ),
    "package of the backend": (
        {"default": {"BACKEND": "redis_kit.queues.RedisTaskBackend"}},
        MISSING.format("redis_kit.queues.RedisTaskBackend"),
        f"Did you mean {OURS!r}?",
    ),
    "module of the project": (
        {"default": {"BACKEND": "shop.Backend"}},
        MISSING.format("shop.Backend"),
        "Write the dotted path of a class.",
    ),
    "no default": (
        {"redis": {"BACKEND": OURS}},
        "TASKS has no backend 'default'.",
        "Tasks without backend=... use 'default'. TASKS has 'redis'.",
    ),
    "empty": ({}, "TASKS has no backend 'default'.", "Tasks without backend=... use 'default'. TASKS has no backend."),
}


@pytest.fixture
def urls_with_a_task(tmp_path, monkeypatch, settings):
    """URLs whose import defines a task by the framework's decorator."""
    module = f"urls_{tmp_path.name}"
    (tmp_path / f"{module}.py").write_text(
        f"from {PACKAGE} import task\nurlpatterns = []\n@task\ndef send(): ...\n", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(tmp_path)
    settings.ROOT_URLCONF = module


@pytest.mark.parametrize(("tasks", "words", "hint"), WRONG_TASKS.values(), ids=WRONG_TASKS)
def test_backend_that_does_not_exist_is_an_error_of_check_task_and_worker(
    kit, settings, monkeypatch, tasks, words, hint
):
    settings.TASKS = tasks
    (message,) = run_checks(tags=["redis_kit"])
    assert (message.id, message.hint) == ("redis_kit.E002", hint)
    assert message.msg.startswith(words)
    with pytest.raises(UnknownBackend) as error:
        task(plain)
    assert isinstance(error.value, framework.InvalidTaskBackend)
    assert str(error.value) == f"{message.msg} {hint}"
    with pytest.raises(CommandError) as failure:
        call_command("rk_worker", burst=True, skip_checks=False)
    assert failure.value.returncode == 78
    monkeypatch.setattr(discovery, "discover", lambda: task(plain))
    with pytest.raises(CommandError) as failure:
        call_command("rk_worker", burst=True)
    assert (str(failure.value), failure.value.returncode) == (str(error.value), 78)


def test_worker_names_a_wrong_backend_though_the_urls_can_not_be_imported(kit, settings, urls_with_a_task):
    settings.TASKS = {"default": {"BACKEND": "redis_kit.queues.backend.RedisBackend"}}
    with pytest.raises(CommandError, match=f"Did you mean {OURS!r}") as failure:
        call_command("rk_worker", burst=True, skip_checks=False)
    assert failure.value.returncode == 78


def test_backend_that_a_task_names_must_exist(settings):
    settings.TASKS = {"default": {"BACKEND": OURS}, "mail": {"BACKEND": OURS}}
    with pytest.raises(UnknownBackend, match=r"TASKS has no backend 'mial'\. Did you mean 'mail'") as caught:
        task(backend="mial")(plain)
    assert "'manage.py check --tag redis_kit'" in caught.value.__notes__[0]


def plain():
    """A function that tests make a task of."""


def test_modules_of_tasks_do_not_load_the_client():
    program = """
import sys
from django.conf import settings
settings.configure(INSTALLED_APPS=["redis_kit"], REDIS_KIT={})
import django
django.setup()
from redis_kit.queues import task
import tests.queues.support.tasks
assert "redis" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)
