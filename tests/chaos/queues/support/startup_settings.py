"""Settings of a worker that may send itself signals while it starts: see ``starts``."""

from tests.chaos.queues.support import line_signals
from tests.chaos.settings import *  # noqa: F403

line_signals.watch_as_told()
