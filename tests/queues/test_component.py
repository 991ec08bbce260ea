"""The options of queues, and what a start of Django costs with them."""

import subprocess
import sys

import pytest

from redis_kit.core import conf
from redis_kit.core.errors import ConfigurationError
from redis_kit.queues.component import Queues
from redis_kit.queues.settings import QueueSettings


@pytest.mark.parametrize(
    ("options", "id", "words"),
    [
        ({"HEARTBEAT_INTERVAL": 5}, "E007", "less than half of WORKER_TIMEOUT"),
        ({"WORKER_TIMEOUT": 4}, "E007", "five times HEARTBEAT_INTERVAL"),
        ({"SERIALIZER": "pickle"}, "E010", "only 'json'"),
        ({"SERIALIZER": "jsn"}, "E010", "only 'json'"),
        ({"NAMES": [""]}, "E006", "NAMES"),
        ({"NAMES": "mail"}, "E006", "NAMES"),
        ({"NAMES": ["mail", 3]}, "E006", "REDIS_KIT['QUEUES']['NAMES'][1] is 3; it must be text."),
        ({"MAX_CRASHES": 0}, "E006", "1 to 100."),
        ({"RETRY_BACKOFF": 4000}, "E006", "must not be more than RETRY_BACKOFF_MAX (3,600 s)"),
        ({"RESULT_TTL": 0}, "E006", "it must be 1 to 31,536,000."),
        ({"RETRY_BACKOFF_MAX": -1}, "E006", "RETRY_BACKOFF_MAX"),
        ({"DEAD_LIMIT": True}, "E006", "DEAD_LIMIT"),
        ({"ON_FAILURE": "open"}, "E011", "'raise'"),
        ({"MAX_ATEMPTS": 5}, "E002", "MAX_ATTEMPTS"),
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


def test_modules_of_tasks_do_not_load_the_client():
    program = """
import sys
from django.conf import settings
settings.configure(INSTALLED_APPS=["redis_kit"], REDIS_KIT={})
import django
django.setup()
from redis_kit.queues import task
import tests.queues.support.tasks, redis_kit.queues.panels.panels
assert "redis" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)
