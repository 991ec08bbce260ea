"""Settings of these peers."""

import logging
import os
from pathlib import Path

BACKENDS = {
    "database": ("django_tasks_db", {"BACKEND": "django_tasks_db.DatabaseBackend"}),
    "streams": ("django_tasks_redis", {"BACKEND": "django_tasks_redis.RedisTaskBackend"}),
    "threadmill": ("threadmill", {"BACKEND": "threadmill.backends.redis.RedisTaskBackend"}),
}
ADDRESS = os.environ["BENCH_URL"]
VARIANT = os.environ["BENCH_VARIANT"]
APP, BACKEND = BACKENDS[VARIANT]

logging.disable(logging.INFO)  # threadmill writes two lines for each job

SECRET_KEY = "only for benchmarks"
USE_TZ = True
INSTALLED_APPS = ["django.contrib.auth", "django.contrib.contenttypes", APP, "benchmarks.support.peers.djangoapp"]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(Path(os.environ["BENCH_FOLDER"], "db.sqlite3")),
        "CONN_MAX_AGE": None,  # otherwise its worker opens the database for each job
        "OPTIONS": {"transaction_mode": "IMMEDIATE", "init_command": "PRAGMA journal_mode=WAL"},
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
OPTIONS = {"REDIS_URL": ADDRESS} if VARIANT == "streams" else {}
TASKS = {"default": {**BACKEND, "REDIS_URL": ADDRESS, "OPTIONS": OPTIONS}}
LOGGING = {"version": 1, "root": {"level": "WARNING"}, "loggers": {APP: {"level": "WARNING"}}}
