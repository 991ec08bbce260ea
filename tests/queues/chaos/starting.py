"""Settings of a worker that may send itself signals while it starts: see ``starts``."""

from tests.queues.chaos import lines
from tests.queues.chaos.settings import *  # noqa: F403

lines.watch_as_told()
