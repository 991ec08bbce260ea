"""Settings of all processes that programs start: those of other workers in tests, and the jobs of this folder."""

import os

from tests.queues.support.worker_settings import *  # noqa: F403
from tests.queues.support.worker_settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.chaos.queues"]
MIGRATION_MODULES: dict[str, None] = {}  # only this kit's tables are made
LOGGING = {
    "version": 1,
    "formatters": {"timed": {"format": "%(asctime)s %(process)d %(levelname)s %(message)s"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "timed"}},
    # Each failed attempt is a warning with a traceback, and there are thousands.
    "loggers": {"redis_kit": {"handlers": ["console"], "level": os.environ.get("CHAOS_LOG", "ERROR")}},
}
