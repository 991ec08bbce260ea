"""Threads that outlive whatever is raised in them."""

import logging
from collections.abc import Callable
from threading import Thread
from time import sleep

logger = logging.getLogger("redis_kit.worker")
PAUSE = 0.5  # seconds


def start(name: str, work: Callable[[], object]) -> None:
    """Run this in a thread until it returns. What else would end the thread is logged, and it begins again.

    SystemExit would end it without a word. A thread that is busy at the end does not hold up the process.
    """
    Thread(target=_outlive, args=(name, work), name=f"redis-kit-{name}", daemon=True).start()


def _outlive(name: str, work: Callable[[], object]) -> None:
    while True:
        try:
            work()
            return
        except BaseException:
            logger.exception("The thread %s of the worker ended; it begins again.", name)
            sleep(PAUSE)
