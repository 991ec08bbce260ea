"""Backends of ``django.tasks``: the ``database`` on SQLite, ``streams`` (django-tasks-redis), ``threadmill``."""

import os
import sys
from functools import cache
from importlib import metadata
from typing import Any

import django

VARIANT = os.environ["BENCH_VARIANT"]
SETTINGS = "benchmarks.support.peers.djangoapp.settings"
WORKERS = {"database": ["db_worker", "--interval", "1"], "streams": ["run_redis_tasks", "--continuous"]}
WORKERS["threadmill"] = ["threadmill", "worker", "--workers", "1", "--threads", "8"]
PACKAGES = ("Django", {"database": "django-tasks-db", "streams": "django-tasks-redis"}.get(VARIANT, VARIANT))
metadata.version(PACKAGES[1])

os.environ["DJANGO_SETTINGS_MODULE"] = SETTINGS
django.setup()

from benchmarks.support.peers.djangoapp.tasks import nothing  # noqa: E402 - tasks need settings


@cache
def _migrate() -> None:
    if VARIANT == "database":
        from django.core.management import call_command

        call_command("migrate", verbosity=0)


def put(about: dict[str, Any]) -> None:
    """Enqueue a task."""
    _migrate()
    nothing.enqueue(about)


def commands(processes: int) -> list[list[str]]:
    """Return a command per process."""
    settings = f"DJANGO_SETTINGS_MODULE={SETTINGS}"
    return [["/usr/bin/env", settings, sys.executable, "-m", "django", *WORKERS[VARIANT]] for _ in range(processes)]
