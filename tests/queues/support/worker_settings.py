"""Settings of the workers that tests start: those of the tests, with REDIS_KIT from the environment."""

import json
import os

from tests.settings import *  # noqa: F403
from tests.settings import INSTALLED_APPS

INSTALLED_APPS = [
    *INSTALLED_APPS,
    "tests.queues.support",
    "tests.queues.support.plain",
    *os.environ.get("MORE_APPS", "").split(),
]
REDIS_KIT = json.loads(os.environ["REDIS_KIT"])
LOGGING = {
    "version": 1,
    "handlers": {"console": {"class": "logging.StreamHandler"}},
    "loggers": {"redis_kit": {"handlers": ["console"], "level": "INFO"}},
}
BACKEND = os.environ.get("TASK_BACKEND", "redis_kit.queues.backend.RedisTaskBackend")
TASKS = {"default": {"BACKEND": BACKEND, "QUEUES": []}}
