"""Settings of the kit's workers in benchmarks: a minimum of apps, and the server from the environment."""

import json
import os

SECRET_KEY = "only for benchmarks"
USE_TZ = True
INSTALLED_APPS = ["django.contrib.auth", "django.contrib.contenttypes", "redis_kit", "benchmarks.support.app"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
TASKS = {"default": {"BACKEND": "redis_kit.queues.backend.RedisTaskBackend", "QUEUES": []}}
# On a busy machine a slow answer must not look like an outage.
REDIS_KIT = {"CONNECTIONS": {"default": {"URL": os.environ.get("BENCH_URL", "")}}, "READ_TIMEOUT": 5}
REDIS_KIT = json.loads(os.environ.get("BENCH_KIT", "null")) or REDIS_KIT
LOGGING = {
    "version": 1,
    "handlers": {"console": {"class": "logging.StreamHandler"}},
    "loggers": {"redis_kit": {"handlers": ["console"], "level": "WARNING"}},
}
