"""Settings of the workers that tests start: no pages, for a quick start, and REDIS_KIT from the environment."""

import json
import os
from importlib.util import find_spec

from tests.fixtures import failpoints as failpoints  # it looks at the environment
from tests.settings import *  # noqa: F403

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "redis_kit",
    "tests.app",
    "tests.queues.support",
    "tests.queues.support.plain",
    *os.environ.get("MORE_APPS", "").split(),
]
MIDDLEWARE: list[str] = []
TEMPLATES: list[dict[str, object]] = []
ROOT_URLCONF = __name__
urlpatterns: list[object] = []
REDIS_KIT = json.loads(os.environ["REDIS_KIT"])
job_logs = find_spec("redis_kit.queues.features.logs")  # a copy may be without this feature: see without.py
LOGGING = {
    "version": 1,
    "handlers": {
        "console": {"class": "logging.StreamHandler"},
        "job": {"class": "redis_kit.queues.logs.JobLogHandler" if job_logs else "logging.NullHandler"},
    },
    "loggers": {"redis_kit": {"handlers": ["console"], "level": "INFO"}, "tests.jobs": {"handlers": ["job"]}},
}
BACKEND = os.environ.get("TASK_BACKEND", "redis_kit.queues.backend.RedisTaskBackend")
TASKS = {"default": {"BACKEND": BACKEND, "QUEUES": []}}
