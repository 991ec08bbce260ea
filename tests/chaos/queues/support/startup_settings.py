"""Settings of a worker that may send itself signals while it starts: see ``starts``."""

from tests.chaos.settings import *  # noqa: F403
from tests.chaos.queues.support import line_signals

line_signals.watch_as_told()
