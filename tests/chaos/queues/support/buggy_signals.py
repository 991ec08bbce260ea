"""A worker that loses signals as it once did: ``python -m tests.chaos.queues.support.buggy_signals rk_worker ...``.

Its handlers stand before anything remembers what they note.
"""

import signal
import sys

import django
from django.core.management import execute_from_command_line

django.setup()

from redis_kit.queues.worker.supervisor import os_signals, supervisor  # noqa: E402 -- these want settings


class Swallowing(os_signals.Signals):
    """Takes signals from a moment on at which it does not yet listen."""

    def __enter__(self) -> "Swallowing":
        for number in os_signals.ALL:
            signal.signal(number, os_signals._ignored)
        super().__enter__()
        return self


if __name__ == "__main__":
    supervisor.Signals = Swallowing  # type: ignore[misc]
    execute_from_command_line(sys.argv)
