"""Settings of a worker without ``LOGGING``, as a new project has none."""

import os

from tests.queues.support.worker_settings import *  # noqa: F403

LOGGING: dict[str, object] = {}
DEBUG = bool(os.environ.get("DEBUG"))
